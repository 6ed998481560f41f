"""Reductions in a fixed order: the same bits for every backend, thread count and stride."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from samebits import _core
from samebits.rules import options_of

if TYPE_CHECKING:
    from samebits.typing import Accumulation, FormatLike, SumOrder

__all__ = ["ElementCounts", "amax", "counts", "dot", "sum", "sum_of_squares"]


@dataclass(frozen=True)
class ElementCounts:
    """Numbers of elements: all, NaN, Inf, zeros, and subnormal in the array's own format."""

    elements: int
    nan: int
    inf: int
    zeros: int
    subnormals: int


def amax(x: Any, *, format: FormatLike | None = None, threads: int | None = None,
         backend: str | None = None, stream: Any = None) -> float:
    """Return the largest magnitude; NaN if any element is NaN, 0 for an empty array.

    Parameters
    ----------
    x : array [...]
        In fp32, fp16, bf16, e4m3 or e5m2.
    format, threads, backend, stream
        As in `convert`.

    Examples
    --------
    >>> sb.amax(np.float32([1, -3, 2]))
    3.0
    """
    return cast(float, _core.reduce("amax", x, format, (threads, backend, stream)))


@options_of(amax)
def sum(x: Any, *, format: FormatLike | None = None, threads: int | None = None,
        backend: str | None = None, stream: Any = None) -> float:
    """Return the sum of the elements in binary64, over a fixed tree: neighbours are added pairwise.

    The tree takes the elements in C order.

    Examples
    --------
    >>> sb.sum(np.float32([1, 2, 3]))
    6.0
    """
    return cast(float, _core.reduce("sum", x, format, (threads, backend, stream)))


@options_of(amax)
def sum_of_squares(x: Any, *, format: FormatLike | None = None, threads: int | None = None,
                   backend: str | None = None, stream: Any = None) -> float:
    """Return the sum of the squares in binary64, in the order of `sum`.

    Examples
    --------
    >>> sb.sum_of_squares(np.float32([1, 2, 3]))
    14.0
    """
    return cast(float, _core.reduce("sum_of_squares", x, format, (threads, backend, stream)))


@options_of(amax)
def counts(x: Any, *, format: FormatLike | None = None, threads: int | None = None,
           backend: str | None = None, stream: Any = None) -> ElementCounts:
    """Count the elements that are NaN, infinite, zero and subnormal.

    Examples
    --------
    >>> sb.counts(np.float16([1, 0, np.inf, 1e-7])).subnormals
    1
    """
    numbers: Any = _core.reduce("counts", x, format, (threads, backend, stream))
    return ElementCounts(*numbers)


@options_of(amax)
def dot(x: Any, y: Any, *, precision: Accumulation = "fp64", order: SumOrder = "tree",
        format: FormatLike | None = None, threads: int | None = None,
        backend: str | None = None, stream: Any = None) -> float:
    """Return the sum of the products x * y.

    Parameters
    ----------
    x, y : array [...]
        Two arrays of one shape, in fp32, fp16, bf16, e4m3 or e5m2.
    precision : str
        fp64 or fp32: each product and each sum is rounded to this format.
    order : str
        tree: the tree of `sum`. sequential: ((p0 + p1) + p2) + ..., on one thread.

    Examples
    --------
    >>> sb.dot(np.float32([1, 2]), np.float32([3, 4]))
    11.0
    """
    return _core.dot(x, y, format, (precision, order), (threads, backend, stream))
