"""What reductions return, by contract §6, and how kernels usually err, in NumPy.

All functions take the elements in order, widened to binary64, and return a binary64 number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Reduce = Callable[[Doubles], float]

_CANONICAL_NAN = float(np.array([0x7FFFFFFFFFFFFFFF], np.uint64).view(np.float64)[0])


def tree_sum(x: Doubles) -> float:
    """Return the sum over the fixed tree: neighbours 2j and 2j + 1, level by level.

    Examples
    --------
    >>> tree_sum(np.array([1.0, 2.0**53, 1.0]))
    9007199254740992.0
    """
    while x.size > 1:
        pairs = x[:x.size // 2 * 2].reshape(-1, 2)
        sums = pairs[:, 0] + pairs[:, 1]
        x = np.concatenate([sums, x[-1:]]) if x.size % 2 else sums
    if x.size == 0:
        return 0.0
    return float(x[0]) if not np.isnan(x[0]) else _CANONICAL_NAN


def amax(x: Doubles) -> float:
    """Return the largest magnitude; NaN if any element is NaN."""
    return float(np.max(np.abs(x))) if x.size else 0.0


def _sequential(x: Doubles, dtype: type = np.float64) -> float:
    """Return the sum in the order of the elements, rounded to `dtype` at each step."""
    return float(np.add.accumulate(x.astype(dtype))[-1]) if x.size else 0.0


def _tree32(x: Doubles) -> float:
    x = x.astype(np.float32).astype(np.float64)
    while x.size > 1:
        pairs = x[:x.size // 2 * 2].reshape(-1, 2)
        sums = (pairs[:, 0] + pairs[:, 1]).astype(np.float32).astype(np.float64)
        x = np.concatenate([sums, x[-1:]]) if x.size % 2 else sums
    return float(x[0]) if x.size else 0.0


def _halves(x: Doubles) -> float:
    """Return the sum of the first and second half, added element by element, again and again."""
    while x.size > 1:
        half = (x.size + 1) // 2
        first, second = x[:half].copy(), x[half:]
        first[:second.size] += second
        x = first
    return float(x[0]) if x.size else 0.0


def _lanes(lanes: int, x: Doubles) -> float:
    """Return the sum of `lanes` partial sums, of the elements i, i + lanes, ..."""
    padded = np.concatenate([x, np.zeros(-x.size % lanes)]).reshape(-1, lanes)
    return _sequential(np.add.accumulate(padded)[-1]) if x.size else 0.0


def _chunks(size: int, x: Doubles) -> float:
    """Return the tree sums of chunks of `size` elements, added one after the other."""
    return _sequential(np.array([tree_sum(x[i:i + size]) for i in range(0, x.size, size)]))


def _without_tail(reduce: Reduce, width: int, x: Doubles) -> float:
    return reduce(x[:x.size - x.size % width])


def _of_first(reduce: Reduce, count: int, x: Doubles) -> float:
    return reduce(x[:count])


def _finite(x: Doubles) -> Doubles:
    return x[np.isfinite(x)]


def _not_nan(x: Doubles) -> Doubles:
    return x[~np.isnan(x)]


@dataclass(frozen=True)
class ReductionError:
    """A usual error: its name, a sentence that completes "looks like: ...", and its result."""

    name: str
    sentence: str
    reduce: Reduce


def _of_elements(reduce: Reduce, square: bool) -> list[ReductionError]:
    """Return errors of reductions that omit or change elements."""
    found = [
        ReductionError("nan_dropped", "NaN is dropped", lambda x: reduce(_not_nan(x))),
        ReductionError("nonfinite_dropped", "NaN and Inf are dropped",
                       lambda x: reduce(_finite(x))),
        ReductionError("first_missing", "the first element is missing", lambda x: reduce(x[1:])),
        ReductionError("last_missing", "the last element is missing", lambda x: reduce(x[:-1]))]
    for width in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
        found.append(ReductionError(f"tail_{width}", f"the last n mod {width} elements are missing",
                                    partial(_without_tail, reduce, width)))
    for count in (4096, 1024, 512, 256, 128, 64, 32):
        found.append(ReductionError(f"first_{count}",
                                    f"elements after the first {count} are missing",
                                    partial(_of_first, reduce, count)))
    if not square:
        found.append(ReductionError("squares", "squares are added instead of the elements",
                                    lambda x: reduce(x * x)))
    return found


def _orders(square: bool) -> list[ReductionError]:
    """Return errors in the order and precision of a sum."""
    def of(sentence: str, name: str, reduce: Reduce) -> ReductionError:
        return ReductionError(name, sentence, lambda x: reduce(x * x if square else x))
    found = [of("added one after the other instead of over the tree", "sequential", _sequential),
             of("added over the tree, each sum rounded to fp32", "tree_fp32", _tree32),
             of("added one after the other, each sum rounded to fp32", "sequential_fp32",
                lambda x: _sequential(x, np.float32)),
             of("added by NumPy's own sum", "numpy_sum", lambda x: float(np.sum(x))),
             of("added by NumPy's own sum in fp32", "numpy_sum_fp32",
                lambda x: float(np.sum(x.astype(np.float32)))),
             of("halves added element by element instead of neighbours", "halves", _halves),
             of("the right sum rounded to fp32", "rounded_fp32",
                lambda x: float(np.float32(tree_sum(x)))),
             of("added from the last element to the first", "reversed",
                lambda x: _sequential(x[::-1])),
             of("added over the tree from the last element to the first", "tree_reversed",
                lambda x: tree_sum(x[::-1]))]
    found += [of(f"sums of chunks of {size} elements added one after the other",
                 f"chunks_{size}", partial(_chunks, size)) for size in (256, 1024, 4096)]
    return found + [of(f"added in {lanes} lanes, then the lanes one after the other",
                       f"lanes_{lanes}", partial(_lanes, lanes)) for lanes in (2, 4, 8, 16, 32)]


def sum_of_squares(x: Doubles) -> float:
    """Return the tree sum of the squares, each rounded to binary64."""
    return tree_sum(x * x)


def _amax_errors() -> list[ReductionError]:
    return [
        ReductionError("signed", "the maximum of the elements instead of their magnitudes",
                       lambda x: float(np.max(x)) if x.size else 0.0),
        ReductionError("max_ignores_nan", "NaN is dropped: max(a, NaN) = a",
                       lambda x: amax(_not_nan(x))),
        ReductionError("min", "the smallest instead of the largest magnitude",
                       lambda x: float(np.min(np.abs(x))) if x.size else 0.0)]


@dataclass(frozen=True)
class Reduction:
    """A reduction: its right result, the format of the result, and its usual errors."""

    reduce: Reduce
    result: str
    errors: list[ReductionError]


REDUCTIONS = {
    "sum": Reduction(tree_sum, "fp64", _orders(False) + _of_elements(tree_sum, False)),
    "sum_of_squares": Reduction(sum_of_squares, "fp64",
                                _orders(True) + _of_elements(sum_of_squares, True)),
    "amax": Reduction(amax, "fp32", _amax_errors() + _of_elements(amax, True)),
}
