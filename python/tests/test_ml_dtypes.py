"""Conversions against ml_dtypes and NumPy: all codes of 8 and 16 bits, and many of fp32."""

from __future__ import annotations

import os

import numpy as np
import pytest

import samebits as sb

ml_dtypes = pytest.importorskip("ml_dtypes")

SMALL = ("fp16", "bf16", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e4m3fnuz", "e5m2fnuz", "e8m0")
BITS = {"e3m2": 6, "e2m3": 6, "e2m1": 4}


def codes_of(name: str) -> np.ndarray:
    """Return every code of a format of up to 16 bits."""
    info = sb.finfo(name)
    return np.arange(1 << info.bits, dtype=f"u{info.storage_bits // 8}")


def bits_of(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}")


def known_difference(to: str, x: np.ndarray) -> np.ndarray:
    """Return where ml_dtypes differs by its own rules: e8m0 of values that e8m0 does not have."""
    if to != "e8m0":
        return np.isnan(x)
    low = (np.abs(x) > 2.0**-127) & (np.abs(x) < 2.0**-126)  # ml_dtypes rounds all of them up
    return np.isnan(x) | np.signbit(x) | (x == 0) | low


def check(x: np.ndarray, wide: np.ndarray, to: str) -> None:
    """Compare the conversion of x, whose exact fp32 values are `wide`, with ml_dtypes' cast."""
    ours = bits_of(sb.convert(x, to, nan="preserve_sign"))
    with np.errstate(all="ignore"):
        theirs = bits_of(wide.astype(sb.dtype_of(to)))
    different = np.flatnonzero((ours != theirs) & ~known_difference(to, wide))
    assert different.size == 0, (
        f"{x.dtype} to {to}: {different.size} of {x.size} differ, first 0x"
        f"{int(bits_of(x)[different[0]]):X}: got 0x{int(ours[different[0]]):X}, "
        f"expected 0x{int(theirs[different[0]]):X}")
    nan = np.isnan(wide)
    if sb.finfo(to).has_nan:
        assert np.isnan(sb.convert(sb.convert(x[nan], to), "fp64")).all()
    else:
        assert (np.abs(sb.convert(sb.convert(x[nan], to), "fp64")) == sb.finfo(to).max).all()


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
    special = np.array([0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FFFFFFF],
                       np.uint32)
    special = np.concatenate([special, special | 0x80000000]).view(np.float32)
    return np.concatenate([words, near, *ends, special])


@pytest.mark.parametrize("to", SMALL)
def test_fp32_words(to: str) -> None:
    x = fp32_words(to, 1 << 20, seed=1)
    check(x, x, to)


@pytest.mark.skipif("SAMEBITS_EXHAUSTIVE" not in os.environ, reason="set SAMEBITS_EXHAUSTIVE=1")
@pytest.mark.parametrize("to", SMALL)
def test_1e8_fp32_words(to: str) -> None:
    for part in range(100):
        x = fp32_words(to, 1_000_000, seed=1000 + part)
        check(x, x, to)
