"""Sums, means and norms over axes, as `samebits.functions` offers them.

All arrays lie in host memory, in fp32, fp16 or bf16.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

from samebits import _core
from samebits.rules import options_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from samebits.option_types import AxisOptions
    from samebits.typing import FormatLike, FunctionRule

    Axes = SupportsIndex | Iterable[SupportsIndex] | None

__all__ = ["mean", "norm", "sum"]


def _reduced(
    of: str,
    x: Any,
    axis: Axes,
    *,
    rule: FunctionRule,
    offset: int = 0,
    multiprocessors: int = 132,
    out: Any = None,
    format: FormatLike | None = None,
    threads: int | None = None,
    backend: str | None = None,
) -> Any:
    """Return a reduction of an array.

    Parameters
    ----------
    x : array [...]
    axis : int or ints, optional
        The axes to reduce; default, and with no axis, all.
    rule : str
        Whose bits the function returns: ``torch_2_11`` is the only rule.
    offset : int
        Elements from a 16-byte boundary of the GPU's memory to the tensor's first element: the
        tensor's ``storage_offset()``.
    multiprocessors : int
        Streaming multiprocessors of the GPU: 132 of an H100 and of an H200.
    out, format, threads, backend
        As in `samebits.convert`. All arrays lie in host memory.

    Raises
    ------
    InvalidArgument, Unsupported
        An argument was refused, or the rule lacks the reduction; nothing was written.
    """
    axes = () if axis is None else tuple(axis) if isinstance(axis, Iterable) else (axis,)
    how = (of, rule, offset, multiprocessors)
    return _core.reduce_axes(x, axes, how, format, out, (threads, backend, None))


@options_of(_reduced)
def sum(x: Any, axis: Axes = None, **options: Unpack[AxisOptions]) -> Any:
    """Return ``torch.sum(x, axis)`` as PyTorch computes it on a GPU.

    The order of the additions follows from shape, strides, format and GPU.

    Examples
    --------
    >>> sb.functions.sum(np.float32([[1, 2], [3, 4]]), 0, rule="torch_2_11")
    array([4., 6.], dtype=float32)
    """
    return _reduced("sum", x, axis, **options)


@options_of(_reduced)
def mean(x: Any, axis: Axes = None, **options: Unpack[AxisOptions]) -> Any:
    """Return ``torch.mean(x, axis)`` as PyTorch computes it on a GPU.

    Examples
    --------
    >>> sb.functions.mean(np.float32([[1, 2], [3, 4]]), 1, rule="torch_2_11")
    array([1.5, 3.5], dtype=float32)
    """
    return _reduced("mean", x, axis, **options)


@options_of(_reduced)
def norm(x: Any, axis: Axes = None, **options: Unpack[AxisOptions]) -> Any:
    """Return ``torch.linalg.vector_norm(x, dim=axis)`` as PyTorch computes it on a GPU.

    Examples
    --------
    >>> sb.functions.norm(np.float32([[3, 4], [0, 2]]), -1, rule="torch_2_11")
    array([5., 2.], dtype=float32)
    """
    return _reduced("norm", x, axis, **options)
