"""softmax, log_softmax, LayerNorm and RMSNorm over the last axis, as `samebits.functions` offers them.

All arrays lie in host memory or in the memory of one GPU, in fp32, fp16 or bf16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from samebits import _core
from samebits.rules import options_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from samebits.option_types import RowOptions
    from samebits.typing import FormatLike, FunctionRule

__all__ = ["LayerNorm", "RMSNorm", "layer_norm", "layer_norm_gradient", "log_softmax",
           "log_softmax_gradient", "rms_norm", "rms_norm_gradient", "softmax", "softmax_gradient"]


class LayerNorm(NamedTuple):
    """Results of `layer_norm`."""

    out: Any  #: in the shape and format of the argument
    mean: Any  #: fp32, the shape of the argument with a last axis of 1
    rstd: Any  #: fp32, 1 / sqrt(variance + epsilon), in the shape of `mean`


class RMSNorm(NamedTuple):
    """Results of `rms_norm`."""

    out: Any  #: in the shape and format of the argument
    rstd: Any  #: fp32, 1 / sqrt(mean of squares + epsilon), the shape of `out` with a last axis of 1


def _options(
    *,
    rule: FunctionRule,
    out: Any = None,
    format: FormatLike | None = None,
    threads: int | None = None,
    backend: str | None = None,
    stream: Any = None,
) -> tuple[str, tuple[Any, Any, Any]]:
    """Return the rule, and the last arguments of the core's functions.

    Parameters
    ----------
    rule : str
        Whose bits the function returns.
    out, format, threads, backend, stream
        As in `samebits.convert`.

    Raises
    ------
    InvalidArgument, Unsupported
        An argument was refused, or the rule lacks the function; nothing was written.
    """
    return rule, (format, out, (threads, backend, stream))


def _split(function: str, options: Any) -> tuple[str, tuple[Any, Any, Any]]:
    """Return what `_options` does; messages about keyword arguments name the function."""
    if "rule" not in options:
        raise TypeError(f"{function}() missing 1 required keyword-only argument: 'rule'")
    for name in options:
        if name not in ("rule", "out", "format", "threads", "backend", "stream"):
            axis = "; it computes over the last axis" if name in ("dim", "axis") else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{axis}")
    return _options(**options)


@options_of(_options)
def softmax(
    x: Any,
    *,
    offset: int = 0,
    num_warps: int = 4,
    elements_per_thread: int = 0,
    **options: Unpack[RowOptions],
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

    Examples
    --------
    >>> sb.functions.softmax(np.float32([[1, 2, 3]]), rule="torch_2_11")
    array([[0.09003057, 0.24472848, 0.6652409 ]], dtype=float32)
    """
    rule, rest = _split("softmax", options)
    return _core.softmax(False, x, (rule, offset, num_warps, elements_per_thread), *rest)


@options_of(_options, softmax)
def log_softmax(x: Any, *, offset: int = 0, **options: Unpack[RowOptions]) -> Any:
    """Return the logarithm of softmax over the last axis.

    The only rule is ``torch_2_11``.

    Examples
    --------
    >>> sb.functions.log_softmax(np.float32([[0, 0]]), rule="torch_2_11")
    array([[-0.6931472, -0.6931472]], dtype=float32)
    """
    rule, rest = _split("log_softmax", options)
    return _core.softmax(True, x, (rule, offset), *rest)


@options_of(_options)
def softmax_gradient(grad: Any, result: Any, **options: Unpack[RowOptions]) -> Any:
    """Return the gradient of softmax's argument as PyTorch's backward pass computes it.

    Parameters
    ----------
    grad : array [..., cols]
        The gradient of the function's result.
    result : array [..., cols]
        The function's result, in the format of `grad`.

    Examples
    --------
    >>> grad, result = np.float32([[1, 0]]), np.float32([[0.5, 0.5]])
    >>> sb.functions.softmax_gradient(grad, result, rule="torch_2_11").tolist()
    [[0.25, -0.25]]
    """
    rule, rest = _split("softmax_gradient", options)
    return _core.softmax_gradient(False, grad, result, (rule,), *rest)


@options_of(_options, softmax_gradient)
def log_softmax_gradient(
    grad: Any, result: Any, *, offset: int = 0, **options: Unpack[RowOptions]
) -> Any:
    """Return the gradient of log_softmax's argument.

    Parameters
    ----------
    offset : int
        The storage offset of `grad`. It changes the order of sums of rows of more than 1024
        elements.

    Examples
    --------
    >>> grad, result = np.float32([[0, 0]]), np.float32([[-0.5, -1]])
    >>> sb.functions.log_softmax_gradient(grad, result, rule="torch_2_11").tolist()
    [[0.0, 0.0]]
    """
    rule, rest = _split("log_softmax_gradient", options)
    return _core.softmax_gradient(True, grad, result, (rule, offset), *rest)


@options_of(_options)
def layer_norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    epsilon: float = 1e-5,
    offset: int = 0,
    **options: Unpack[RowOptions],
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
        multiple of 4 elements. If a parameter is not aligned to 4 elements, any offset that is no
        multiple of 4, such as 1, gives PyTorch's bits.

    Returns
    -------
    LayerNorm
        The result, and mean and rstd of every row.

    Examples
    --------
    >>> sb.functions.layer_norm(np.float32([[1, 3]]), rule="torch_2_11").mean.tolist()
    [[2.0]]
    """
    rule, rest = _split("layer_norm", options)
    return LayerNorm(*_core.norm(False, x, weight, bias, (rule, epsilon, offset), *rest))


@options_of(_options)
def layer_norm_gradient(
    grad: Any, x: Any, mean: Any, rstd: Any, weight: Any = None, **options: Unpack[RowOptions]
) -> Any:
    """Return the gradient of LayerNorm's argument as PyTorch's backward pass computes it.

    Parameters
    ----------
    grad : array [..., cols]
        The gradient of the norm's result.
    x : array [..., cols]
        The norm's argument, in the format of `grad`.
    mean, rstd : array [..., 1]
        fp32, as the norm returned them.
    weight : array [cols], optional
        In the format of `grad`.

    Examples
    --------
    >>> x, ones = np.float32([[1, 3]]), np.ones((1, 1), np.float32)
    >>> sb.functions.layer_norm_gradient(x, x, 2 * ones, ones, rule="torch_2_11").shape
    (1, 2)
    """
    rule, rest = _split("layer_norm_gradient", options)
    if mean is None:
        raise TypeError("mean: an array is expected; got a NoneType")
    return _core.norm_gradient(grad, x, mean, rstd, weight, (rule,), *rest)


@options_of(_options, layer_norm)
def rms_norm(
    x: Any,
    weight: Any = None,
    *,
    epsilon: float = 1e-5,
    offset: int = 0,
    **options: Unpack[RowOptions],
) -> RMSNorm:
    """Return RMSNorm over the last axis, as ``torch.nn.functional.rms_norm`` computes it on a GPU.

    Parameters
    ----------
    epsilon : float
        Added to the mean of the squares. PyTorch's default is the format's ``finfo(...).eps``.

    Returns
    -------
    RMSNorm
        The result, and rstd of every row.

    Examples
    --------
    >>> sb.functions.rms_norm(np.float32([[3, 4]]), epsilon=0, rule="torch_2_11").rstd
    array([[0.2828427]], dtype=float32)
    """
    rule, rest = _split("rms_norm", options)
    return RMSNorm(*_core.norm(True, x, weight, None, (rule, epsilon, offset), *rest))


@options_of(_options, layer_norm_gradient)
def rms_norm_gradient(
    grad: Any, x: Any, rstd: Any, weight: Any = None, **options: Unpack[RowOptions]
) -> Any:
    """Return the gradient of RMSNorm's argument as PyTorch's backward pass computes it.

    Examples
    --------
    >>> x, ones = np.float32([[1, 3]]), np.ones((1, 1), np.float32)
    >>> sb.functions.rms_norm_gradient(x, x, ones, rule="torch_2_11").tolist()
    [[-4.0, -12.0]]
    """
    rule, rest = _split("rms_norm_gradient", options)
    return _core.norm_gradient(grad, x, None, rstd, weight, (rule,), *rest)
