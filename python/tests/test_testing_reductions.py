"""Tests of `samebits.testing.check_reduction` and `assert_same_bits`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import samebits as sb
from planted import SEEDS, failure_of, results_per_error
from samebits.testing import assert_same_bits, check_reduction


def wide(x: Any) -> Any:
    return x.astype(np.float64)


def sequential(x: Any) -> float:
    return float(np.add.accumulate(wide(x))[-1]) if x.size else 0.0


def tree_sum(x: Any) -> float:
    """Return the sum of numbers in binary64 over the tree of the contract."""
    while x.size > 1:
        pairs = x[:x.size // 2 * 2].reshape(-1, 2)
        x = np.append(pairs[:, 0] + pairs[:, 1], x[x.size // 2 * 2:])
    return float(x[0]) if x.size else 0.0


PLANTED: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("sum", "added one after the other instead of over the tree", sequential),
    ("sum", "added by NumPy's own sum", lambda x: np.sum(wide(x))),
    ("sum", "added by NumPy's own sum in fp32", lambda x: np.float64(np.sum(x))),
    ("sum", "the right sum rounded to fp32", lambda x: np.float32(sb.sum(x))),
    ("sum", "the last n mod 8 elements are missing", lambda x: sb.sum(x[:x.size // 8 * 8])),
    ("sum_of_squares", "added one after the other instead of over the tree", lambda x: sequential(wide(x) * wide(x))),
    ("amax", "the maximum of the elements instead of their magnitudes",
     lambda x: np.max(x, initial=-np.inf) if x.size else np.float32(0)),
    ("amax", "NaN is dropped", lambda x: sb.amax(x[~np.isnan(x)])),
    ("amax", "elements after the first 1024 are missing", lambda x: sb.amax(x[:1024])),
]


@pytest.mark.parametrize(("reduction", "says", "kernel"), PLANTED,
                         ids=[f"{p[0]}-{p[1].replace(' ', '_')}" for p in PLANTED])
def test_planted_error_is_found_and_named(reduction: str, says: str, kernel: Callable[[Any], Any],
                                          record_property: Any) -> None:
    for seed in SEEDS:
        text = failure_of(check_reduction, kernel, reduction, examples=12, examples_seed=seed)
        assert says in text.split("looks like: ")[1], text
        assert "(smallest case found)" in text and "  repeat:   check_reduction(" in text
        record_property("cases", results_per_error(text))


@pytest.mark.parametrize("source", ["fp32", "fp16", "bf16", "e4m3", "e5m2"])
def test_right_kernels_pass(source: str) -> None:
    check_reduction(lambda x: tree_sum(wide(x)), "sum", source, examples=8)
    check_reduction(lambda x: tree_sum(wide(x) * wide(x)), "sum_of_squares", source, examples=8)
    check_reduction(lambda x: np.max(np.abs(wide(x)), initial=0), "amax", source, examples=8)


#: What a kernel sees of its array.
SEEN: dict[str, Callable[[Any], Any]] = {
    "only the first 4096": lambda x: x[:4096],
    "all but the last": lambda x: x[:-1],
    "all but element 100": lambda x: np.delete(x, 100) if x.size > 100 else x,
    "all but a last NaN": lambda x: x[:-1] if x.size and np.isnan(x[-1]) else x,
}


@pytest.mark.parametrize("reduction", ["sum", "amax"])
@pytest.mark.parametrize("seen", SEEN)
def test_missing_elements_are_found_with_every_seed(reduction: str, seen: str) -> None:
    for seed in SEEDS:
        with pytest.raises(AssertionError, match="is wrong"):
            check_reduction(lambda x: getattr(sb, reduction)(SEEN[seen](x)), reduction, examples=0, examples_seed=seed)


@pytest.mark.parametrize(("reduction", "source"), [("sum", "fp32"), ("sum", "bf16"), ("sum_of_squares", "fp32")])
def test_chunk_sums_in_sequence_are_found_with_every_seed(reduction: str, source: str) -> None:
    def chunked(x: Any) -> float:
        sums = [getattr(sb, reduction)(x[i:i + 4096]) for i in range(0, x.size, 4096)]
        return sequential(np.array(sums))
    for seed in SEEDS:
        with pytest.raises(AssertionError, match="chunks of 4096 elements added one after"):
            check_reduction(chunked, reduction, source, examples_seed=seed)


def test_domains_calls_and_refusals() -> None:
    def amax(x: Any) -> Any:
        assert np.isfinite(x).all() and x.ndim == 1
        return sb.amax(x)
    check_reduction(amax, "amax", where=np.isfinite)
    check_reduction(amax, "amax", only=np.array([[1, 2], [3, 4]], np.float32))
    with pytest.raises(ValueError, match="reduction: 'mean' is not one of"):
        check_reduction(np.mean, "mean")
    with pytest.raises(AssertionError, match="returned float32 of shape"):
        check_reduction(lambda x: np.zeros(2, np.float32), "amax")


def test_assert_same_bits() -> None:
    nans = np.array([0x7FC00000, 0x3F800000], np.uint32)
    assert_same_bits(nans, nans, "fp32")
    with pytest.raises(AssertionError, match=r"fp32: 1 of 2 elements is wrong\n  \[0\]   got 0x7F"):
        assert_same_bits(nans, nans | np.uint32(0x80000000) * np.uint32([1, 0]), "fp32")
    assert_same_bits(nans, nans | np.uint32([1, 0]), "fp32", nan="any")
    with pytest.raises(AssertionError, match="expected 0x8000 = -0"):
        assert_same_bits(np.zeros(3, ml_dtypes.bfloat16), -np.zeros(3, ml_dtypes.bfloat16))
    with pytest.raises(AssertionError, match=r"got shape \(2,\), expected \(3,\)"):
        assert_same_bits(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match="format: the arrays hold codes"):
        assert_same_bits(nans, nans)
    with pytest.raises(AssertionError, match="and 5 more"):
        assert_same_bits(np.zeros(10), np.ones(10))
