"""softmax, log_softmax and LayerNorm over the last axis, as `samebits.functions` offers them.

All arrays lie in host memory, in fp32, fp16 or bf16.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from samebits import _core
from samebits.formats import choose
from samebits.rules import number, optional_format

if TYPE_CHECKING:
    from typing_extensions import Required, TypedDict, Unpack

    class Options(TypedDict, total=False):
        """Keyword arguments of every function of rows."""

        rule: Required[str]
        out: Any
        format: object
        threads: int | None
        backend: str | None


_RULES: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("function_rule"))}


class LayerNorm(NamedTuple):
    """Results of `layer_norm`."""

    out: Any  #: in the shape and format of the argument
    mean: Any  #: fp32, the shape of the argument with a last axis of 1
    rstd: Any  #: fp32, 1 / sqrt(variance + epsilon), in the shape of `mean`


def _rest(
    out: Any = None,
    format: object = None,
    threads: int | None = None,
    backend: str | None = None,
) -> tuple[int, Any, int | None, str | None]:
    return optional_format(format), out, threads, backend


def _split(function: str, options: Any) -> tuple[int, tuple[int, Any, int | None, str | None]]:
    """The rule's number, and format, out, threads and backend."""
    if "rule" not in options:
        raise TypeError(f"{function}() missing 1 required keyword-only argument: 'rule'")
    for name in options:
        if name not in ("rule", "out", "format", "threads", "backend"):
            axis = "; it computes over the last axis" if name in ("dim", "axis") else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{axis}")
    others = {name: value for name, value in options.items() if name != "rule"}
    return choose("rule", options["rule"], _RULES), _rest(**others)


def softmax(
    x: Any,
    *,
    offset: int = 0,
    num_warps: int = 4,
    elements_per_thread: int = 0,
    **options: Unpack[Options],
) -> Any:
    """Return softmax over the last axis, as ``torch.softmax(x, -1)`` computes it on a GPU.

    The rule ``triton_3_6`` gives the bits of ``tl.softmax`` of rows that are one block, of the next
    power of two.

    Parameters
    ----------
    x : array [..., cols]
    offset : int
        Elements from a 16-byte boundary of the GPU's memory to the tensor's first element: the
        tensor's ``storage_offset()``. PyTorch adds the elements of rows of more than 9216 in another
        order if the tensor begins elsewhere.
    num_warps : int
        Of the Triton kernel; other rules ignore it.
    elements_per_thread : int
        Consecutive elements that a thread of the Triton kernel loads: 1, 2, 4 or 8; 0: 16 bytes.
    **options
        `rule` (required): ``torch_2_11`` or ``triton_3_6``. `out`, `format`, `threads` and
        `backend` as in `samebits.convert`. All arrays lie in host memory.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits
    >>> samebits.functions.softmax(np.float32([[1, 2, 3]]), rule="torch_2_11")
    array([[0.09003057, 0.24472848, 0.6652409 ]], dtype=float32)
    """
    rule, rest = _split("softmax", options)
    return _core.softmax(False, rule, x, operator.index(offset), operator.index(num_warps),
                         operator.index(elements_per_thread), *rest)


def log_softmax(x: Any, *, offset: int = 0, **options: Unpack[Options]) -> Any:
    """Return the logarithm of softmax over the last axis.

    Parameters as in `softmax`. The only rule is ``torch_2_11``.
    """
    rule, rest = _split("log_softmax", options)
    return _core.softmax(True, rule, x, operator.index(offset), 4, 0, *rest)


def softmax_gradient(grad: Any, result: Any, **options: Unpack[Options]) -> Any:
    """Return the gradient of softmax's argument as PyTorch's backward pass computes it.

    Parameters
    ----------
    grad : array [..., cols]
        The gradient of softmax's result.
    result : array [..., cols]
        softmax's result, in the format of `grad`.
    **options
        `rule` (required): ``torch_2_11``. `out`, `format`, `threads` and `backend` as in
        `samebits.convert`. All arrays lie in host memory.
    """
    rule, rest = _split("softmax_gradient", options)
    return _core.softmax_gradient(False, rule, grad, result, 0, *rest)


def log_softmax_gradient(
    grad: Any, result: Any, *, offset: int = 0, **options: Unpack[Options]
) -> Any:
    """Return the gradient of log_softmax's argument.

    Parameters as in `softmax_gradient`, but `offset` is the storage offset of `grad`. It changes
    the order of sums of rows of more than 1024 elements.
    """
    rule, rest = _split("log_softmax_gradient", options)
    return _core.softmax_gradient(True, rule, grad, result, operator.index(offset), *rest)


def layer_norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    epsilon: float = 1e-5,
    offset: int = 0,
    **options: Unpack[Options],
) -> LayerNorm:
    """Return LayerNorm over the last axis, as ``torch.native_layer_norm`` computes it on a GPU.

    Parameters
    ----------
    x : array [..., cols]
    weight, bias : array [cols], optional
        In the format of `x`.
    epsilon : float
        Added to the variance.
    offset : int
        The storage offset of `x`. PyTorch has another kernel for tensors that do not begin at a
        multiple of 4 elements. If `weight` or `bias` is not aligned to 4 elements, any offset that
        is no multiple of 4, such as 1, gives PyTorch's bits.
    **options
        `rule` (required): ``torch_2_11``. `out`, `format`, `threads` and `backend` as in
        `samebits.convert`. All arrays lie in host memory.

    Returns
    -------
    LayerNorm
        The result, and mean and rstd of every row.
    """
    rule, rest = _split("layer_norm", options)
    return LayerNorm(*_core.layer_norm(
        rule, x, weight, bias, number(epsilon, "epsilon"), operator.index(offset), *rest))


def layer_norm_gradient(
    grad: Any, x: Any, mean: Any, rstd: Any, weight: Any = None, **options: Unpack[Options]
) -> Any:
    """Return the gradient of LayerNorm's argument as PyTorch's backward pass computes it.

    Parameters
    ----------
    grad : array [..., cols]
        The gradient of LayerNorm's result.
    x : array [..., cols]
        LayerNorm's argument, in the format of `grad`.
    mean, rstd : array [..., 1]
        fp32, as `layer_norm` returned them.
    weight : array [cols], optional
        In the format of `grad`.
    **options
        `rule` (required): ``torch_2_11``. `out`, `format`, `threads` and `backend` as in
        `samebits.convert`. All arrays lie in host memory.
    """
    rule, rest = _split("layer_norm_gradient", options)
    return _core.layer_norm_gradient(rule, grad, x, mean, rstd, weight, *rest)
