"""Usual errors of reductions: those of the library, over other elements or in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from samebits import reductions

Floats = npt.NDArray[np.float32]
Reduce = Callable[[Floats], Any]

#: The right results.
REDUCTIONS: dict[str, Callable[..., float]] = {
    "sum": reductions.sum, "sum_of_squares": reductions.sum_of_squares, "amax": reductions.amax}


@dataclass(frozen=True)
class ReductionError:
    """A usual error: a sentence that completes "looks like: ...", and the result.

    The result is that of the elements in order, in fp32, which holds the numbers of every source.
    """

    sentence: str
    reduce: Reduce


def _one_by_one(parts: Iterable[float]) -> float:
    return reduce(add, parts, -0.0)


def _halves(x: npt.NDArray[np.float64]) -> float:
    """Return the sum of the first and second half, added element by element, again and again."""
    while x.size > 1:
        half = (x.size + 1) // 2
        first, second = x[:half].copy(), x[half:]
        first[:second.size] += second
        x = first
    return float(x[0]) if x.size else 0.0


def _orders(square: bool) -> list[ReductionError]:
    """Return errors in the order and precision of a sum."""
    right = REDUCTIONS["sum_of_squares" if square else "sum"]

    def dot(x: Floats, **how: Any) -> float:
        return reductions.dot(x, x if square else np.ones_like(x), **how)

    def terms(x: Floats, dtype: type) -> npt.NDArray[Any]:
        wide: npt.NDArray[Any] = x.astype(dtype)
        return wide * wide if square else wide

    def lanes(count: int, x: Floats) -> float:
        parts = range(min(count, x.size))
        return _one_by_one(dot(x[i::count], order="sequential") for i in parts) if x.size else 0.0

    def chunks(size: int, x: Floats) -> float:
        parts = range(0, x.size, size)
        return _one_by_one(right(x[i:i + size]) for i in parts) if x.size else 0.0

    return [
        ReductionError("added one after the other instead of over the tree",
                       partial(dot, order="sequential")),
        ReductionError("added over the tree, each sum rounded to fp32",
                       partial(dot, precision="fp32")),
        ReductionError("added one after the other, each sum rounded to fp32",
                       partial(dot, precision="fp32", order="sequential")),
        ReductionError("added by NumPy's own sum", lambda x: np.sum(terms(x, np.float64))),
        ReductionError("added by NumPy's own sum in fp32", lambda x: np.sum(terms(x, np.float32))),
        ReductionError("halves added element by element instead of neighbours",
                       lambda x: _halves(terms(x, np.float64))),
        ReductionError("the right sum rounded to fp32", lambda x: np.float32(right(x))),
        ReductionError("added from the last element to the first",
                       lambda x: dot(x[::-1].copy(), order="sequential")),
        ReductionError("added over the tree from the last element to the first",
                       lambda x: right(x[::-1].copy())),
        *(ReductionError(f"sums of chunks of {size} elements added one after the other",
                         partial(chunks, size)) for size in (256, 1024, 4096)),
        *(ReductionError(f"added in {count} lanes, then the lanes one after the other",
                         partial(lanes, count)) for count in (2, 4, 8, 16, 32))]


def _without_tail(right: Reduce, width: int, x: Floats) -> Any:
    return right(x[:x.size - x.size % width])


def _of_first(right: Reduce, count: int, x: Floats) -> Any:
    return right(x[:count])


def _of_elements(right: Reduce) -> list[ReductionError]:
    """Return errors of reductions that leave out elements."""
    return [
        ReductionError("NaN is dropped", lambda x: right(x[~np.isnan(x)])),
        ReductionError("NaN and Inf are dropped", lambda x: right(x[np.isfinite(x)])),
        ReductionError("the first element is missing", lambda x: right(x[1:])),
        ReductionError("the last element is missing", lambda x: right(x[:-1])),
        *(ReductionError(f"the last n mod {n} elements are missing",
                         partial(_without_tail, right, n))
          for n in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)),
        *(ReductionError(f"elements after the first {n} are missing", partial(_of_first, right, n))
          for n in (4096, 1024, 512, 256, 128, 64, 32))]


def errors_of(reduction: str) -> list[ReductionError]:
    """Return the table of usual errors, in the order in which they are named."""
    if reduction == "amax":
        special = [
            ReductionError("the maximum of the elements instead of their magnitudes",
                           lambda x: np.max(x) if x.size else 0.0),
            ReductionError("the smallest instead of the largest magnitude",
                           lambda x: np.min(np.abs(x)) if x.size else 0.0)]
    else:
        special = _orders(reduction == "sum_of_squares")
    found = special + _of_elements(REDUCTIONS[reduction])
    if reduction == "sum":
        found.append(ReductionError("squares are added instead of the elements",
                                    reductions.sum_of_squares))
    return found
