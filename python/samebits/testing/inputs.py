"""Inputs that conversions get wrong: special codes, ties, neighbours of ties, edges, borders.

All functions are pure: the same `rng` state gives the same codes.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from samebits.testing.model import Rule, convert_codes
from samebits.testing.number_formats import Codes, Format
from samebits.testing.random_words import random_words


def every_code(f: Format) -> Codes:
    """Return every code of a format of up to 16 bits."""
    return np.arange(1 << (f.sign_bits + f.magnitude_bits), dtype=np.uint64)


def special_codes(f: Format) -> Codes:
    """Return zeros, subnormals, exponent edges, the largest numbers, Inf and NaNs, both signs."""
    m, top = f.mantissa_bits, f.max_magnitude
    mantissa, one = (1 << m) - 1, f.bias << m
    every_bit = (1 << f.magnitude_bits) - 1
    found = {0, 1, 2, mantissa, mantissa + 1, mantissa + 2, top - 1, top, top + 1, top + 2,
             every_bit, every_bit - 1, one - 1, one, one + 1, one + (mantissa + 1) // 2}
    found |= {1 << i for i in range(m + 1)}  # subnormal powers of two, smallest normal
    if f.has_inf:
        found |= {top + 1 + (1 << i) for i in range(m)}  # NaNs with one payload bit
    kept = np.array(sorted(v for v in found if 0 <= v <= every_bit), np.uint64)
    kept = kept << np.uint64(f.unused_low_bits)
    return np.unique(np.concatenate([kept, kept | np.uint64(f.sign)]))


def _grid(target: Format) -> tuple[Format, int]:
    """Return a format with one more mantissa bit than `target`, and an offset for its magnitudes.

    Magnitude 2m of the wider format is magnitude m of `target`, and 2m + 1 the midpoint above it.
    """
    no_sign = not target.sign_bits
    wider = dataclasses.replace(
        target, sign_bits=1, exponent_bits=target.exponent_bits + 1, nan="none",
        mantissa_bits=target.mantissa_bits + 1, unused_low_bits=0, storage_bits=64,
        bias=target.bias + (1 if no_sign else 0))
    return wider, 1 if no_sign else 0


def is_finer(source: Format, target: Format) -> bool:
    """Return whether the source has enough bits for midpoints between numbers of the target."""
    return target.mantissa_bits < source.mantissa_bits and target.magnitude_bits <= 60


def grid_codes(source: Format, target: Format, magnitudes: Codes) -> Codes:
    """Return source codes at the given target magnitudes and at the midpoints above them.

    Numbers that the source lacks are replaced by the next number toward zero. The magnitude after
    the largest finite one stands for the number that would follow with unbounded exponent.
    """
    wider, extra = _grid(target)
    halves = np.uint64(2) * (magnitudes + np.uint64(extra))
    rule = Rule(wider, source, "toward_zero", "saturate")
    return convert_codes(np.concatenate([halves, halves + np.uint64(1)]), rule)


def moved(codes: Codes, f: Format, ulps: np.typing.NDArray[np.int64]) -> Codes:
    """Move positive codes by units of the last place, not below 0."""
    unit = np.int64(1 << f.unused_low_bits)
    return np.maximum(codes.astype(np.int64) + ulps * unit, 0).astype(np.uint64)


def edge_codes(source: Format, target: Format) -> Codes:
    """Return codes within 2 ulp of the target's zero, subnormals, overflow and exponent edges."""
    if not is_finer(source, target):
        return special_codes(source)
    top, normal = target.max_magnitude, 1 << target.mantissa_bits
    near = {0, 1, 2, 3, normal - 2, normal - 1, normal, normal + 1, top - 2, top - 1, top, top + 1}
    near |= {e << target.mantissa_bits for e in range(0, (top >> target.mantissa_bits) + 1,
                                                     1 + (top >> target.mantissa_bits) // 64)}
    at = grid_codes(source, target, np.array(sorted(m for m in near if m >= 0), np.uint64))
    around = np.concatenate([moved(at, source, np.array(u)) for u in (-2, -1, 0, 1, 2)])
    return np.unique(np.concatenate([special_codes(source), around,
                                     around | np.uint64(source.sign)]))


def random_codes(source: Format, target: Format, count: int, rng: np.random.Generator) -> Codes:
    """Return `count` codes: a quarter uniform bits, the others at or near the target's steps."""
    bits = source.sign_bits + source.magnitude_bits + source.unused_low_bits
    uniform = rng.integers(0, (1 << bits) - 1, count, np.uint64, endpoint=True)
    if not is_finer(source, target):
        specials = special_codes(source)
        return np.where(rng.random(count) < 0.25, rng.choice(specials, count), uniform)
    steps = rng.integers(0, target.max_magnitude + 1, count, np.uint64, endpoint=True)
    at = grid_codes(source, target, steps).reshape(2, count)
    chosen = np.where(rng.random(count) < 0.6, at[1], at[0])  # midpoints, numbers
    ulps = rng.choice(np.array([-2, -1, -1, 0, 0, 0, 0, 1, 1, 2], np.int64), count)
    near = moved(chosen, source, ulps)
    near |= rng.integers(0, 1, count, np.uint64, endpoint=True) * np.uint64(source.sign)
    return np.where(rng.random(count) < 0.25, uniform, near)


def hard_codes(source: Format, target: Format, count: int, rng: np.random.Generator) -> Codes:
    """Return codes of a large call: every code of up to 16 bits, else edges and random codes."""
    if source.storage_bits <= 16:
        return every_code(source)
    edges = edge_codes(source, target)
    return np.concatenate([edges, random_codes(source, target, count, rng)])


def border_codes(rule: Rule, count: int, rng: np.random.Generator) -> Codes:
    """Return codes whose stochastic rounding is barely up or barely not, each for its own index.

    An element with the fraction v rounds away from zero if ⌊v · 2^K⌋ + R >= 2^K. R are the K random
    bits of index ``offset + i`` for the element at position i. A returned code has
    ⌊v · 2^K⌋ = 2^K − R, or one less with further bits of v set. So a kernel with one random bit too
    few or too many gives other results. If the source has fewer than K bits below the target's last
    bit, v is the nearest fraction that the source has.

    Returns an empty array if the source has no bits to discard.
    """
    source, target = rule.source, rule.target
    spare = source.mantissa_bits - target.mantissa_bits
    if spare <= 0 or not (source.sign_bits and target.sign_bits):
        return np.zeros(0, np.uint64)
    k = rule.random_bits
    index = np.uint64(rule.offset & (2**64 - 1)) + np.arange(count, dtype=np.uint64)
    needed = np.uint64(1 << k) - random_words(rule.seed, rule.random_stream, index, k)
    barely_not = rng.random(count) < 0.5
    needed = needed - barely_not.astype(np.uint64)
    lowest, highest = _common_exponents(source, target)
    below = rng.integers(0, target.mantissa_bits, count, np.int64, endpoint=True)
    below = np.where((rng.random(count) < 0.7) | (lowest - below < 1 - source.bias), 0, below)
    exponent = np.where(below > 0, lowest - below,
                        rng.integers(lowest, highest, count, np.int64, endpoint=True))
    discarded = (spare + below).astype(np.uint64)
    fraction = _scaled(needed, k, discarded)
    behind = (np.uint64(1) << (discarded - np.minimum(discarded, np.uint64(k)))) - np.uint64(1)
    fraction |= np.where(barely_not & (rng.random(count) < 0.8), behind, np.uint64(0))
    quotient = rng.integers(0, (1 << target.mantissa_bits) - 1, count, np.uint64, endpoint=True)
    mantissa = (quotient >> below.astype(np.uint64) << discarded) + fraction
    mantissa &= np.uint64((1 << source.mantissa_bits) - 1)
    field = (exponent + source.bias).astype(np.uint64)
    codes = (field << np.uint64(source.mantissa_bits)) | mantissa
    codes = codes << np.uint64(source.unused_low_bits)
    signs = rng.integers(0, 1, count, np.uint64, endpoint=True) * np.uint64(source.sign)
    found: Codes = (codes | signs).astype(np.uint64)
    return found


def _common_exponents(source: Format, target: Format) -> tuple[int, int]:
    """Return the exponents between which both formats have normal numbers."""
    lowest = max(f.min_exponent + f.mantissa_bits for f in (source, target))
    highest = min((f.max_magnitude >> f.mantissa_bits) - f.bias for f in (source, target))
    return lowest, highest - 1


def _scaled(needed: Codes, bits: int, discarded: Codes) -> Codes:
    """Return needed / 2^bits in units of 2^−discarded, rounded up; below 1."""
    wide = np.uint64(bits)
    down = np.where(wide > discarded, wide - np.minimum(wide, discarded), np.uint64(0))
    up = np.where(wide < discarded, discarded - np.minimum(wide, discarded), np.uint64(0))
    scaled = ((needed + ((np.uint64(1) << down) - np.uint64(1))) >> down) << up
    found: Codes = np.minimum(scaled, (np.uint64(1) << discarded) - np.uint64(1))
    return found
