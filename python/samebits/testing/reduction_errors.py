"""Usual errors of reductions: those of the library, over other elements or in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from samebits import reductions

Reduce = Callable[[Any], Any]  # of elements in fp32, which holds the numbers of every source

#: The right results.
REDUCTIONS: dict[str, Callable[..., float]] = {
    "sum": reductions.sum, "sum_of_squares": reductions.sum_of_squares, "amax": reductions.amax}


def errors_of(reduction: str) -> dict[str, Reduce]:
    """Return results with usual errors, by sentences that complete "looks like: "."""
    right = REDUCTIONS[reduction]
    found: dict[str, Reduce] = _orders(right, reduction == "sum_of_squares")
    if reduction == "amax":
        found = {"the maximum of the elements instead of their magnitudes":
                 lambda x: np.max(x, initial=-np.inf) if x.size else 0.0,
                 "the smallest instead of the largest magnitude":
                 lambda x: np.min(np.abs(x)) if x.size else 0.0}
    found |= {
        "NaN is dropped": lambda x: right(x[~np.isnan(x)]),
        "NaN and Inf are dropped": lambda x: right(x[np.isfinite(x)]),
        "the first element is missing": lambda x: right(x[1:]),
        "the last element is missing": lambda x: right(x[:-1]),
        **{f"the last n mod {n} elements are missing": partial(
            lambda n, x: right(x[:x.size - x.size % n]), n) for n in (2**k for k in range(1, 11))},
        **{f"elements after the first {n} are missing": partial(lambda n, x: right(x[:n]), n)
           for n in (4096, 1024, 512, 256, 128, 64, 32)}}
    if reduction == "sum":
        found["squares are added instead of the elements"] = reductions.sum_of_squares
    return found


def _orders(right: Reduce, square: bool) -> dict[str, Reduce]:
    """Return errors in the order and precision of a sum."""
    def dot(x: Any, **how: Any) -> float:
        return reductions.dot(x, x if square else np.ones_like(x), **how)

    def terms(x: Any, dtype: type) -> Any:
        return np.square(x.astype(dtype)) if square else x.astype(dtype)

    def halves(x: Any) -> Any:
        while x.size > 1:
            half = (x.size + 1) // 2
            x = np.append(x[:x.size - half] + x[half:], x[x.size - half:half])
        return x[0] if x.size else 0.0

    def one_by_one(parts: Iterable[float]) -> float:
        return reduce(add, parts, -0.0)

    def lanes(count: int, x: Any) -> float:
        return one_by_one(dot(x[i::count], order="sequential") for i in range(min(count, x.size))
                          ) if x.size else 0.0

    def chunks(size: int, x: Any) -> float:
        return one_by_one(right(x[i:i + size]) for i in range(0, x.size, size)) if x.size else 0.0

    return {
        "added one after the other instead of over the tree": partial(dot, order="sequential"),
        "added over the tree, each sum rounded to fp32": partial(dot, precision="fp32"),
        "added one after the other, each sum rounded to fp32": partial(
            dot, precision="fp32", order="sequential"),
        "added by NumPy's own sum": lambda x: np.sum(terms(x, np.float64)),
        "added by NumPy's own sum in fp32": lambda x: np.sum(terms(x, np.float32)),
        "halves added element by element instead of neighbours":
            lambda x: halves(terms(x, np.float64)),
        "the right sum rounded to fp32": lambda x: np.float32(right(x)),
        "added from the last element to the first":
            lambda x: dot(x[::-1].copy(), order="sequential"),
        "added over the tree from the last element to the first": lambda x: right(x[::-1].copy()),
        **{f"sums of chunks of {size} elements added one after the other": partial(chunks, size)
           for size in (256, 1024, 4096)},
        **{f"added in {count} lanes, then the lanes one after the other": partial(lanes, count)
           for count in (2, 4, 8, 16, 32)}}
