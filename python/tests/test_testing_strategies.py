"""Tests of the Hypothesis strategies: what they generate, and how it shrinks."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings

import samebits as sb
from samebits.testing.number_formats import format_named, special_codes, values
from samebits.testing.strategies import arrays, codes

QUICK = settings(max_examples=150, database=None, derandomize=True, deadline=None,
                 suppress_health_check=list(HealthCheck))


# An infinity is one of about 60 examples, so 150 examples miss it in one of twelve environments.
SEARCH = settings(QUICK, max_examples=3000)


def is_tie(code: int) -> bool:
    """Return whether an fp32 code lies halfway between two codes of e4m3."""
    x = np.array([code], np.uint32).view(np.float32)
    low, high = (float(np.asarray(sb.convert(x, "e4m3", rounding=r, overflow="saturate"))[0])
                 for r in ("downward", "upward"))
    return low < float(x[0]) < high and float(x[0]) - low == high - float(x[0])


def number(code: int) -> float:
    return float(np.uint32(code).view(np.float32))


@pytest.mark.parametrize("wanted", [
    lambda c: np.isnan(number(c)),
    lambda c: np.isinf(number(c)),
    lambda c: 0 < abs(number(c)) < 2.0**-126,
    is_tie,
    lambda c: bool(c) and is_tie(c - 1),
    lambda c: c == 0x80000000,
], ids=["nan", "inf", "subnormal", "tie", "above_tie", "negative_zero"])
def test_codes_have_what_kernels_get_wrong(wanted: Any) -> None:
    find(codes("fp32", to="e4m3"), wanted, settings=SEARCH)


def test_codes_shrink_to_one() -> None:
    assert find(codes("bf16", to="e4m3"), lambda code: True, settings=QUICK) == 0x3F80


@pytest.mark.parametrize("format", sb.formats())
def test_special_codes(format: str) -> None:
    f, info = format_named(format), sb.finfo(format)
    found = set(np.abs(values(special_codes(f), f)).tolist())
    top = [info.max, info.smallest_normal, info.smallest_subnormal, 1.0]
    assert found > {*top, *(info.smallest_normal / 2**i for i in range(f.mantissa_bits + 1))}
    if f.mantissa_bits:
        below = 1.0 - max(info.eps / 2, info.smallest_subnormal)
        assert {0.0, below, 1.0 + info.eps, 1.5} <= found
    assert not info.has_inf or np.inf in found
    assert set(special_codes(f).tolist()) == {c ^ f.sign for c in special_codes(f).tolist()}


@pytest.mark.parametrize(("format", "ignored"), [("e2m1", 0xF0), ("e2m3", 0xC0), ("e3m2", 0xC0), ("tf32", 0x1FFF)])
def test_ignored_bits_are_zero(format: str, ignored: int) -> None:
    @QUICK
    @given(codes(format), codes(format, to="e2m1"))
    def check(code: int, near: int) -> None:
        assert not (code | near) & ignored

    check()


def test_arrays_have_all_layouts() -> None:
    seen: set[str] = set()

    @QUICK
    @given(arrays("bf16", to="e4m3"))
    def collect(x: Any) -> None:
        assert x.dtype == ml_dtypes.bfloat16 and x.size <= 257
        seen.add("empty" if x.size == 0 else f"{x.ndim}d")
        if x.size and not x.flags.c_contiguous:
            seen.add("strided")
        if any(step < 0 for step in x.strides):
            seen.add("negative")

    collect()
    assert seen == {"empty", "1d", "2d", "strided", "negative"}


def test_arrays_shrink() -> None:
    x = find(arrays("fp32"), lambda a: np.isnan(a).any(), settings=QUICK)
    assert x.size <= 2 and x.flags.c_contiguous


def test_contiguous_arrays() -> None:
    @QUICK
    @given(arrays("fp32", contiguous=True, max_dims=1))
    def check(x: Any) -> None:
        assert x.ndim == 1 and x.flags.c_contiguous

    check()


def test_only_the_strategies_import_hypothesis() -> None:
    code = "import sys, samebits.testing; sys.exit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
