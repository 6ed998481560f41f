"""The random bits of stochastic rounding: Philox4x32-10 by element index, by contract §3."""

from __future__ import annotations

import numpy as np

from samebits.testing.number_formats import Codes

_MASK = np.uint64(0xFFFFFFFF)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


def _philox(block: Codes, stream: int, seed: int) -> list[Codes]:
    """Return the four 32-bit words of each block."""
    key = [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF]
    ones = np.ones_like(block)
    c = [block & _MASK, block >> np.uint64(32), ones * np.uint64(stream & 0xFFFFFFFF),
         ones * np.uint64((stream >> 32) & 0xFFFFFFFF)]
    for _ in range(10):
        first, second = c[0] * _MULTIPLIERS[0], c[2] * _MULTIPLIERS[1]
        c = [(second >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), second & _MASK,
             (first >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), first & _MASK]
        key = [(k + s) & 0xFFFFFFFF for k, s in zip(key, _KEY_STEPS)]
    return c


def field_width(bits: int) -> int:
    """Return the width W of the fields that a block is cut into for K random bits."""
    return 8 if bits <= 8 else 16 if bits <= 16 else 32


def random_fields(seed: int, stream: int, index: Codes, width: int) -> Codes:
    """Return the whole fields of `width` bits of elements by their indices."""
    per_block = np.uint64(128 // width)
    words = np.stack(_philox(index // per_block, stream, seed))
    bit = (index % per_block) * np.uint64(width)
    word = np.take_along_axis(words, (bit >> np.uint64(5)).astype(np.int64)[None], 0)[0]
    found: Codes = (word >> (bit & np.uint64(31))) & np.uint64((1 << width) - 1)
    return found


def random_words(seed: int, stream: int, index: Codes, bits: int) -> Codes:
    """Return R, the `bits` random bits of each element, by its index.

    Examples
    --------
    >>> hex(random_words(1, 0, np.array([0], np.uint64), 32)[0])
    '0xe3e80670'
    >>> hex(random_words(0x123456789ABCDEF0, 5, np.array([3], np.uint64), 16)[0])
    '0x70bb'
    """
    width = field_width(bits)
    fields = random_fields(seed, stream, np.asarray(index, np.uint64), width)
    return fields >> np.uint64(width - bits)
