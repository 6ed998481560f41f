"""Conversions against ml_dtypes and NumPy: all codes of 8 and 16 bits, and many of fp32 and fp64.

Where ml_dtypes differs from the contract, the exact difference is asserted: the codes of NaN, and e8m0
of values that it does not have. It casts fp64 through fp32, which rounds twice; so it gets fp32 numbers
that were rounded to odd.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import samebits as sb

ml_dtypes = pytest.importorskip("ml_dtypes")

SMALL = ("fp16", "bf16", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e4m3fnuz", "e5m2fnuz", "e8m0")
#: NaN of ml_dtypes and ours; in the formats of SIGNED with the sign of the input. NumPy's fp16 keeps
#: payloads, and a format without NaN gets a zero of the other sign from ml_dtypes.
NAN = {"fp16": (None, 0x7FFF), "bf16": (0x7FC0, 0x7FFF), "e4m3": (0x7F, 0x7F), "e5m2": (0x7E, 0x7F),
       "e4m3fnuz": (0x80, 0x80), "e5m2fnuz": (0x80, 0x80), "e8m0": (0xFF, 0xFF)}
SIGNED = ("fp16", "bf16", "e4m3", "e5m2")
POLICIES = ("ieee", "saturate_finite")


def codes_of(name: str) -> np.ndarray:
    """Return every code of a format of up to 16 bits."""
    info = sb.finfo(name)
    return np.arange(1 << info.bits, dtype=f"u{info.storage_bits // 8}")


def bits_of(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}")


def check_nan(x: np.ndarray, wide: np.ndarray, ours: np.ndarray, theirs: np.ndarray, to: str) -> None:
    """Compare the codes of NaNs with those of NAN; the NaN of a format of one NaN has no sign."""
    sign_bit = 1 << (sb.finfo(to).bits - 1)
    their_sign = np.where(np.signbit(wide), sign_bit, 0)
    if to not in NAN:
        assert (theirs == sign_bit - their_sign).all(), "their NaN changed"
        assert (ours == bits_of(sb.convert(np.float32([sb.finfo(to).max]), to))).all()
        return
    signless = x.dtype in [sb.dtype_of(f) for f in NAN if f not in SIGNED]
    their_nan, our_nan = NAN[to]
    if to in SIGNED:
        assert (ours == (our_nan if signless else our_nan | their_sign)).all()
    else:
        assert (ours == our_nan).all()
        their_sign = np.zeros_like(their_sign)
    assert their_nan is None or (theirs == (their_nan | their_sign)).all(), "their NaN changed"


def check(x: np.ndarray, wide: np.ndarray, to: str, overflow: Any = "ieee") -> None:
    """Compare the conversion of x, which ml_dtypes casts as `wide`, with ml_dtypes' cast."""
    ours = bits_of(sb.convert(x, to, nan="preserve_sign", overflow=overflow))
    if overflow == "saturate_finite":
        top = wide.dtype.type(sb.finfo(to).max)
        wide = np.where(np.isfinite(wide), np.clip(wide, -top, top), wide)
    with np.errstate(all="ignore"):
        theirs = bits_of(wide.astype(sb.dtype_of(to)))
    nan = np.isnan(wide)
    check_nan(x, wide[nan], ours[nan], theirs[nan], to)
    compared = ~nan
    if to == "e8m0":  # the contract ignores signs, takes 0 to 2^-127, and rounds to nearest
        outside = np.signbit(wide) | (wide == 0)
        low = ~nan & ~outside & (np.abs(wide) > 2.0**-127) & (np.abs(wide) < 2.0**-126)
        assert (theirs[~nan & outside & ~np.isinf(wide)] == 0xFF).all()
        assert (theirs[low] == 0x01).all(), "their rounding below 2^-126 changed"
        assert np.array_equal(ours[low], np.abs(wide[low]) >= 1.5 * 2.0**-127)
        compared &= ~outside & ~low
    different = np.flatnonzero((ours != theirs) & compared)
    assert different.size == 0, (
        f"{x.dtype} to {to}: {different.size} of {x.size} differ, first 0x"
        f"{int(bits_of(x)[different[0]]):X}: got 0x{int(ours[different[0]]):X}, "
        f"expected 0x{int(theirs[different[0]]):X}")


@pytest.mark.parametrize("source", SMALL)
def test_decoding_of_every_code(source: str) -> None:
    codes = codes_of(source)
    theirs = codes.view(sb.dtype_of(source)).astype(np.float32)
    ours = sb.convert(codes.view(sb.dtype_of(source)), "fp32")
    assert ours.dtype == np.float32
    number = ~np.isnan(theirs)
    assert np.array_equal(np.isnan(ours), ~number)
    assert np.array_equal(bits_of(ours)[number], bits_of(theirs)[number])


@pytest.mark.parametrize("to", SMALL)
@pytest.mark.parametrize("source", SMALL)
def test_every_code_of_every_pair(source: str, to: str) -> None:
    x = codes_of(source).view(sb.dtype_of(source))
    if source == to and source != "e8m0":
        number = ~np.isnan(x.astype(np.float32))
        assert np.array_equal(bits_of(sb.convert(x, to))[number], bits_of(x)[number])
        return
    check(x, x.astype(np.float32), to)


def fp32_words(to: str, count: int, seed: int) -> np.ndarray:
    """Return random words, and the values, midpoints and neighbours at every step of a format."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    if to == "fp32":
        return words
    values = codes_of(to).view(sb.dtype_of(to)).astype(np.float64)
    values = np.unique(values[np.isfinite(values)])
    points = np.concatenate([values, (values[1:] + values[:-1]) / 2, values * 1.5])
    with np.errstate(over="ignore"):
        near = points.astype(np.float32)
    ends = [np.nextafter(near, np.float32(e)) for e in (np.inf, -np.inf)]
    special = np.array([0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FFFFFFF], np.uint32)
    special = np.concatenate([special, special | 0x80000000]).view(np.float32)
    return np.concatenate([words, near, *ends, special])


@pytest.mark.parametrize("overflow", POLICIES)
@pytest.mark.parametrize("to", SMALL)
def test_fp32_words(to: str, overflow: str) -> None:
    x = fp32_words(to, 1 << 20, seed=1)
    check(x, x, to, overflow)


def rounded_to_odd(x: np.ndarray) -> np.ndarray:
    """Return fp32: exact, or the neighbour whose last bit is 1."""
    with np.errstate(all="ignore"):
        f = x.astype(np.float32)
    back, bits = f.astype(np.float64), f.view(np.uint32).copy()
    bits[np.abs(back) > np.abs(x)] -= 1
    bits[(back != x) & ~np.isnan(x)] |= 1
    return bits.view(np.float32)


@pytest.mark.parametrize("overflow", POLICIES)
@pytest.mark.parametrize("to", SMALL)
def test_fp64_words(to: str, overflow: str) -> None:
    rng = np.random.default_rng(64)
    with np.errstate(invalid="ignore"):
        near = fp32_words(to, 1 << 18, seed=2).astype(np.float64)
    words = rng.integers(0, 1 << 64, 1 << 18, dtype=np.uint64)
    words[:52] = (0x7FF << 52) | (1 << np.arange(52, dtype=np.uint64))
    x = np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf), words.view(np.float64)])
    check(x, x if to == "fp16" else rounded_to_odd(x), to, overflow)  # NumPy rounds to fp16 once


@pytest.mark.skipif("SAMEBITS_EXHAUSTIVE" not in os.environ, reason="set SAMEBITS_EXHAUSTIVE=1")
@pytest.mark.parametrize("to", SMALL)
def test_1e8_fp32_words(to: str) -> None:
    for part in range(100):
        x = fp32_words(to, 1_000_000, seed=1000 + part)
        check(x, x, to)
