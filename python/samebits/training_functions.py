"""Losses, gradients of parameters, and norms of lists, as `samebits.functions` offers them.

All arrays are in fp32, fp16 or bf16. They lie in host memory; those of `cross_entropy` and of gradients may
also lie in a GPU's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.list_arguments import named
from samebits.rules import options_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from samebits.option_types import LossOptions, RuleOptions
    from samebits.typing import FormatLike, FunctionRule, LossReduction

__all__ = ["CrossEntropy", "NormGradients", "clip_grad_norm", "cross_entropy",
           "cross_entropy_and_gradient", "cross_entropy_gradient", "embedding_gradient",
           "foreach_norm", "norm_parameter_gradients"]


_DLPACK_CUDA = 2  # kDLCUDA


class CrossEntropy(NamedTuple):
    """Results of `cross_entropy_and_gradient`."""

    loss: Any  #: as `cross_entropy` returns it
    gradient: Any  #: in the shape and format of the logits


class NormGradients(NamedTuple):
    """Results of `norm_parameter_gradients`."""

    weight: Any  #: [cols]
    bias: Any  #: [cols]; None of RMSNorm


def _options(
    *,
    rule: FunctionRule,
    format: FormatLike | None = None,
    threads: int | None = None,
    backend: str | None = None,
    stream: Any = None,
) -> tuple[str, Any, tuple[Any, Any, Any]]:
    """Return the rule, and the last arguments of the core's functions.

    Parameters
    ----------
    rule : str
        Whose bits the function returns: ``torch_2_11`` is the only rule.
    format, threads, backend, stream
        As in `samebits.convert`.

    Raises
    ------
    InvalidArgument, Unsupported
        An argument was refused, or PyTorch's result has no rule; nothing was written.
    """
    return rule, format, (threads, backend, stream)


def _integers(x: Any, name: str) -> bytes:
    """Return the bytes of an array of integers as int64."""
    given = np.asarray(x)
    if given.dtype.kind not in "iu" and given.size > 0:
        raise InvalidArgument(f"{name}: an array of integers is expected; got dtype {given.dtype}")
    return given.astype(np.int64).tobytes()


def _targets(x: Any, name: str = "targets") -> Any:
    """Return targets or words as bytes, or on one axis in device memory."""
    device = getattr(x, "__dlpack_device__", None)
    on_gpu = device is not None and int(device()[0]) == _DLPACK_CUDA
    return x.reshape(-1) if on_gpu else _integers(x, name)


@options_of(_options)
def _loss_options(
    *,
    rule: FunctionRule,
    reduction: LossReduction = "mean",
    log_probabilities: bool = False,
    upcast: bool = False,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    to: FormatLike | None = None,
    offset: int = 0,
    format: FormatLike | None = None,
    threads: int | None = None,
    backend: str | None = None,
    stream: Any = None,
) -> tuple[tuple[Any, ...], Any, Any, tuple[Any, Any, Any]]:
    """Return the options of a loss, and the last arguments of the core's functions.

    Parameters
    ----------
    reduction : str
        ``mean``, ``sum``, or ``none``: one loss for each row.
    log_probabilities : bool
        Whether `x` holds log-probabilities, as ``torch.nn.functional.nll_loss`` takes them. The gradient is
        then theirs, and labels cannot be smoothed.
    upcast : bool
        Whether logits in fp16 or bf16 are first converted to fp32, as in ``cross_entropy(x.float(), targets)``:
        the loss is fp32, and the gradient is rounded to the format of `x`.
    label_smoothing : float
        0 to 1.
    ignore_index : int
        Rows with this target have no loss.
    to : str or dtype
        Format of the loss: that of `x`, or fp32 as with CUDA's autocast, where log-probabilities are rounded
        to the format of `x` and the loss is not. Labels are then not smoothed.
    offset : int
        The storage offset of `x`.
    """
    how = (rule, reduction, log_probabilities, upcast, label_smoothing, ignore_index, offset)
    return how, "fp32" if upcast and to is None else to, format, (threads, backend, stream)


@options_of(_loss_options)
def cross_entropy(
    x: Any, targets: Any, *, multiprocessors: int = 132, **options: Unpack[LossOptions]
) -> Any:
    """Return ``torch.nn.functional.cross_entropy(x, targets)`` as PyTorch computes it on a GPU.

    Parameters
    ----------
    x : array [..., classes]
        Logits.
    targets : array of integers
        The class of each row, or `ignore_index`. On a GPU an array of int64 there, which is not
        checked: the loss and the gradients of a row with another target are NaN. `log_probabilities`
        and `label_smoothing` work in host memory alone.
    multiprocessors : int
        Streaming multiprocessors of the GPU: 132 of an H100 and of an H200. Read only with label
        smoothing.

    Returns
    -------
    array
        The loss, of no axis; without reduction [rows].

    Examples
    --------
    >>> x = np.float32([[1, 2], [3, 3]])
    >>> sb.functions.cross_entropy(x, [1, 0], rule="torch_2_11")
    array(0.50320446, dtype=float32)
    """
    how, *rest = _loss_options(**options)
    return _core.cross_entropy(x, _targets(targets), (*how, multiprocessors), *rest)


@options_of(_loss_options, cross_entropy)
def cross_entropy_gradient(
    grad: Any, x: Any, targets: Any, *, known: tuple[Any, Any] | None = None,
    **options: Unpack[LossOptions]
) -> Any:
    """Return the gradient of cross entropy's logits as PyTorch's backward pass computes it.

    Parameters
    ----------
    grad : array
        The gradient of the loss, in its shape and format `to`: of no axis, or [rows] without reduction.
    known : (array, array), optional
        On a GPU: a gradient of the loss, and its gradient of `x`. The latter is returned, after it was
        updated if `grad` has other bits. Nothing waits.

    Examples
    --------
    >>> x, grad = np.float32([[1, 1]]), np.float32(1)
    >>> sb.functions.cross_entropy_gradient(grad, x, [1], rule="torch_2_11").tolist()
    [[0.5, -0.5]]
    """
    if known is not None and not (isinstance(known, tuple) and len(known) == 2):
        raise TypeError("known: a tuple of two arrays is expected")
    how, to, *rest = _loss_options(**options)
    return _core.cross_entropy_gradient(False, grad, x, _targets(targets), how, to, known, *rest)


@options_of(_loss_options, cross_entropy_gradient, cross_entropy)
def cross_entropy_and_gradient(
    grad: Any, x: Any, targets: Any, *, multiprocessors: int = 132, **options: Unpack[LossOptions]
) -> CrossEntropy:
    """Return cross entropy and the gradient of its logits. On a GPU the logits are read once.

    Examples
    --------
    >>> x, grad = np.float32([[1, 1]]), np.float32(1)
    >>> sb.functions.cross_entropy_and_gradient(grad, x, [1], rule="torch_2_11").loss
    array(0.6931472, dtype=float32)
    """
    how, to, *rest = _loss_options(**options)
    results: Any = _core.cross_entropy_gradient(
        True, grad, x, _targets(targets), (*how, multiprocessors), to, None, *rest)
    return CrossEntropy(*results)


@options_of(_options)
def norm_parameter_gradients(
    grad: Any,
    x: Any,
    rstd: Any,
    mean: Any = None,
    *,
    multiprocessors: int = 132,
    **options: Unpack[RuleOptions],
) -> NormGradients:
    """Return the gradients of LayerNorm's weight and bias, or of RMSNorm's weight.

    Parameters
    ----------
    grad : array [..., cols]
        The gradient of the norm's result.
    x : array [..., cols]
        The norm's argument, in the format of `grad`.
    rstd, mean : array [..., 1]
        fp32, as `layer_norm` or `rms_norm` returned them; without `mean`: of RMSNorm.
    multiprocessors : int
        Streaming multiprocessors of the GPU: 132 of an H100 and of an H200. Read only above 65536
        rows.

    Examples
    --------
    >>> x, ones = np.float32([[1, 3]]), np.ones((1, 1), np.float32)
    >>> f = sb.functions
    >>> f.norm_parameter_gradients(x, x, ones, 2 * ones, rule="torch_2_11").weight.tolist()
    [-1.0, 3.0]
    """
    rule, *rest = _options(**options)
    how = (rule, multiprocessors)
    return NormGradients(*_core.norm_parameter_gradients(grad, x, mean, rstd, how, *rest))


@options_of(_options)
def embedding_gradient(
    grad: Any,
    indices: Any,
    words: int,
    *,
    padding: int = -1,
    deterministic: bool = False,
    **options: Unpack[RuleOptions],
) -> Any:
    """Return the gradient of an embedding's weights as PyTorch's backward pass computes it.

    Parameters
    ----------
    grad : array [..., cols]
        The gradient of the embedding's result.
    indices : array of integers
        The word of each row of `grad`. On a GPU an array of int64 there, which is not checked: a row with a word
        that does not exist is left out.
    words : int
        Rows of the embedding's weights.
    padding : int
        PyTorch's ``padding_idx``: a word whose gradient is 0. Negative: none.
    deterministic : bool
        Whether ``torch.use_deterministic_algorithms(True)`` was set. Without it, above 3072 indices, the
        gradient of a word that occurs more than 20 times depends on the run; it is refused, on a GPU every such
        call.

    Returns
    -------
    array [words, cols]

    Examples
    --------
    >>> grad = np.float32([[1, 2], [3, 4], [5, 6]])
    >>> sb.functions.embedding_gradient(grad, [2, 0, 2], 3, rule="torch_2_11").tolist()
    [[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]]
    """
    rule, *rest = _options(**options)
    count = _core.integer(words, "words", 0, 2**48 - 1)
    how = (rule, padding, deterministic)
    return _core.embedding_gradient(grad, _targets(indices, "indices"), count, how, *rest)


@options_of(_options)
def foreach_norm(tensors: Any, **options: Unpack[RuleOptions]) -> Any:
    """Return ``torch._foreach_norm`` of a list: the norm of each array, in one array.

    PyTorch's tensors begin at a multiple of 4 elements.

    Parameters
    ----------
    tensors : list or dict of arrays
        All in one format.

    Examples
    --------
    >>> sb.functions.foreach_norm([np.float32([3, 4]), np.float32([2])], rule="torch_2_11")
    array([5., 2.], dtype=float32)
    """
    rule, *rest = _options(**options)
    arrays, names = named(tensors)
    if not arrays:
        raise InvalidArgument("tensors: at least one array is expected")
    return _core.foreach_norm(arrays, names, rule, *rest)


@options_of(_options)
def clip_grad_norm(gradients: Any, max_norm: float, **options: Unpack[RuleOptions]) -> float:
    """Clip gradients in place as ``torch.nn.utils.clip_grad_norm_`` does on a GPU, by its foreach form.

    Parameters
    ----------
    gradients : list or dict of arrays
        All in one format; written.
    max_norm : float
        The largest norm.

    Returns
    -------
    float
        The norm before, a number of the gradients' format.

    Examples
    --------
    >>> x = np.float32([3, 4])
    >>> sb.functions.clip_grad_norm([x], 1, rule="torch_2_11")
    5.0
    >>> x
    array([0.5999999 , 0.79999983], dtype=float32)
    """
    rule, *rest = _options(**options)
    arrays, names = named(gradients, "gradients")
    if not arrays:
        return 0.0
    norm: float = _core.clip_grad_norm(
        arrays, names, _core.number(max_norm, "max_norm"), rule, *rest)
    return norm
