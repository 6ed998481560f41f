"""Codes that kernels get wrong: special ones, and a target's numbers and ties.

All functions are pure: the same `rng` state gives the same codes.
"""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np

from samebits.convert import convert
from samebits.testing.number_formats import Codes, Format, values


def every_code(f: Format) -> Codes:
    """Return every code of a format of up to 16 bits."""
    return np.arange(1 << (f.sign_bits + f.magnitude_bits), dtype=np.uint64)


@cache
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
    numbers = values(np.concatenate([halves, halves + np.uint64(1)]), wider)
    found = convert(numbers, source.name, rounding="toward_zero", overflow="saturate")
    return np.asarray(found).view(source.code_dtype).astype(np.uint64)


def moved(codes: Codes, f: Format, ulps: np.typing.NDArray[np.int64]) -> Codes:
    """Move positive codes by units of the last place, not below 0."""
    unit = np.int64(1 << f.unused_low_bits)
    return np.maximum(codes.astype(np.int64) + ulps * unit, 0).astype(np.uint64)


def random_codes(f: Format, count: int, rng: np.random.Generator) -> Codes:
    """Return `count` codes: a quarter special ones, the others uniform bits."""
    bits = f.sign_bits + f.magnitude_bits + f.unused_low_bits
    uniform = rng.integers(0, (1 << bits) - 1, count, np.uint64, endpoint=True)
    return np.where(rng.random(count) < 0.25, rng.choice(special_codes(f), count), uniform)
