"""Drop-ins for PyTorch's functions of rows and its cross entropy, and fused operators, with the bits of PyTorch
2.11's CUDA kernels.

On CUDA tensors this library's kernels run, on CPU tensors its CPU backends; the bits are the same. What has no
rule is refused. docs/operators.md describes the operators.

Examples
--------
>>> import torch
>>> import samebits.torch as sbt
>>> sbt.functional.softmax(torch.tensor([[1.0, 2, 3]]))
tensor([[0.0900, 0.2447, 0.6652]])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch.autograd.function import once_differentiable

import samebits
from samebits.errors import InvalidArgument
from samebits.rules import dir_of, options_of
from samebits.torch import fused_functions, math_attention as _attention, quantized_norms
from samebits.torch.aten.registry import require
from samebits.torch.aten.rows import update_loss_gradient
from samebits.torch.fused_functions import *
from samebits.torch.math_attention import *
from samebits.torch.quantized_norms import *
from samebits.torch.row_operators import is_seen, ops

__all__ = ["add_layer_norm", "add_rms_norm", "cross_entropy", "layer_norm", "log_softmax", "rms_norm", "softmax"]
__all__ += fused_functions.__all__ + _attention.__all__ + quantized_norms.__all__
__dir__ = dir_of(__name__)


def _autocast_dtype(operation: str, x: torch.Tensor) -> torch.dtype | None:
    """Return the format in which autocast runs an operation of a tensor; None: in the tensor's.

    Autocast of CPUs lists the loss alone; that of CUDA lists what it is made of, see `cross_entropy`.
    """
    device = x.device.type
    low = x.dtype in (torch.float16, torch.bfloat16)
    if not low or not torch.is_autocast_enabled(device):
        return None
    if device == "cpu":
        return torch.float32 if operation == "nll_loss" else None
    return torch.float32 if samebits.autocast_rule(operation).startswith("fp32") else None


def _softmax(log: bool, x: torch.Tensor, dim: int, dtype: torch.dtype | None) -> torch.Tensor:
    name = "log_softmax" if log else "softmax"
    require(x.dim() > 0, f"{name} of a tensor of no axis")
    to = dtype or _autocast_dtype(name, x) or x.dtype
    widens = x.dtype == torch.float16 and to == torch.float32  # within PyTorch's kernel
    x = x if widens else x.to(to)
    return (ops._log_softmax if log else ops._softmax)(x, dim, widens)


def softmax(input: torch.Tensor, dim: int = -1, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return what ``torch.nn.functional.softmax`` returns on a GPU.

    Parameters
    ----------
    input : Tensor
        fp32, bf16 or fp16.
    dim : int
        The last axis.
    dtype : torch.dtype, optional
        Of the result. Rows of fp16 with a result in fp32 have at most 1024 elements.

    Examples
    --------
    >>> sbt.functional.softmax(torch.zeros(1, 2))
    tensor([[0.5000, 0.5000]])
    """
    return _softmax(False, input, dim, dtype)


@options_of(softmax)
def log_softmax(input: torch.Tensor, dim: int = -1, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return what ``torch.nn.functional.log_softmax`` returns on a GPU.

    Examples
    --------
    >>> sbt.functional.log_softmax(torch.zeros(1, 2))
    tensor([[-0.6931, -0.6931]])
    """
    return _softmax(True, input, dim, dtype)


def _shape_of(x: torch.Tensor, shape: Sequence[int] | int) -> list[int]:
    """Return the shape of a norm's rows; refuse one that the tensor does not end with."""
    of = [shape] if isinstance(shape, int) else [*shape]
    if not of or [*x.shape[-len(of):]] != of:
        raise InvalidArgument(f"normalized_shape: a tensor of shape {[*x.shape]} does not end with {of}")
    return of


def layer_norm(input: torch.Tensor, normalized_shape: Sequence[int] | int, weight: torch.Tensor | None = None,
               bias: torch.Tensor | None = None, eps: float = 1e-5) -> torch.Tensor:
    """Return what ``torch.nn.functional.layer_norm`` returns on a GPU.

    Parameters
    ----------
    input : Tensor
        fp32, bf16 or fp16.
    normalized_shape : int or sequence of int
        The last axes of `input`: a row.
    weight, bias : Tensor, optional
        In the format of `input` and of this shape.
    eps : float

    Examples
    --------
    >>> sbt.functional.layer_norm(torch.tensor([[1.0, 3]]), 2)
    tensor([[-1.0000,  1.0000]])
    """
    shape = _shape_of(input, normalized_shape)
    tensors: list[Any] = [input, weight, bias]
    x, weight, bias = (t if t is None else t.to(_autocast_dtype("layer_norm", t) or t.dtype) for t in tensors)
    return ops.native_layer_norm(x, shape, weight, bias, eps)[0]


@options_of(layer_norm)
def rms_norm(input: torch.Tensor, normalized_shape: Sequence[int] | int, weight: torch.Tensor | None = None,
             eps: float | None = None) -> torch.Tensor:
    """Return what ``torch.nn.functional.rms_norm`` returns on a GPU.

    Parameters
    ----------
    eps : float, optional
        By default ``torch.finfo(torch.float32).eps``, as in PyTorch's CUDA kernel.

    Examples
    --------
    >>> sbt.functional.rms_norm(torch.tensor([[3.0, 4]]), 2)
    tensor([[0.8485, 1.1314]])
    """
    return ops._fused_rms_norm(input, _shape_of(input, normalized_shape), weight, eps)[0]


@options_of(layer_norm)
def add_layer_norm(input: torch.Tensor, residual: torch.Tensor, normalized_shape: Sequence[int] | int,
                   weight: torch.Tensor | None = None, bias: torch.Tensor | None = None,
                   eps: float = 1e-5) -> tuple[torch.Tensor, torch.Tensor]:
    """Return LayerNorm of ``input + residual``, and ``input + residual``, with PyTorch's bits, in one pass.

    Parameters
    ----------
    input, residual : Tensor
        fp32, bf16 or fp16, of one shape.

    Returns
    -------
    tuple of Tensor
        The norm, and the sum. The backward pass adds the gradients of both.

    Examples
    --------
    >>> sbt.functional.add_layer_norm(torch.tensor([[1.0, 2]]), torch.tensor([[0.0, 1]]), 2)
    (tensor([[-1.0000,  1.0000]]), tensor([[1., 3.]]))
    """
    y, total, *_ = ops.add_layer_norm(input, residual, _shape_of(input, normalized_shape), weight, bias, eps)
    return y, total


@options_of(add_layer_norm, rms_norm)
def add_rms_norm(input: torch.Tensor, residual: torch.Tensor, normalized_shape: Sequence[int] | int,
                 weight: torch.Tensor | None = None, eps: float | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return RMSNorm of ``input + residual``, and ``input + residual``, as `add_layer_norm` does.

    Examples
    --------
    >>> sbt.functional.add_rms_norm(torch.tensor([[1.0, 2]]), torch.tensor([[2.0, 2]]), 2)
    (tensor([[0.8485, 1.1314]]), tensor([[3., 4.]]))
    """
    y, total, _ = ops.add_rms_norm(input, residual, _shape_of(input, normalized_shape), weight, eps)
    return y, total


def _may_wait(x: torch.Tensor) -> bool:
    """Whether the backward pass may look at the value of its gradient: not captured."""
    return not (x.is_cuda and torch.cuda.is_current_stream_capturing())


class _LossAndGradient(torch.autograd.Function):
    """Cross entropy whose gradient the forward pass computes, for the expected gradient of the loss.

    For another gradient of the loss it is computed anew, and not scaled: PyTorch multiplies before it rounds. So it is
    in a second backward pass, since a GPU updates the gradient in its place.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, targets: torch.Tensor, expected: torch.Tensor,
                *options: Any) -> torch.Tensor:
        loss, gradient = ops.cross_entropy_and_gradient(expected, x, targets, *options)
        ctx.options, ctx.updated = options, False
        ctx.save_for_backward(x, targets, expected, gradient)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        x, targets, expected, gradient = ctx.saved_tensors
        if x.is_cuda and not ctx.updated and not is_seen((grad, x, targets)):
            ctx.updated = True
            update_loss_gradient((expected, gradient.data), grad, x, targets, *ctx.options)  # not a write for autograd
        elif ctx.updated or not (_may_wait(x) and bool(grad == expected)):
            gradient = ops.cross_entropy_backward(grad, x, targets, *ctx.options)
        return gradient, *[None] * (2 + len(ctx.options))


def cross_entropy(input: torch.Tensor, target: torch.Tensor, *, ignore_index: int = -100,
                  reduction: Literal["mean", "sum", "none"] = "mean", label_smoothing: float = 0.0,
                  upcast: bool = False, expected_gradient: float | torch.Tensor | None = 1.0) -> torch.Tensor:
    """Return what ``torch.nn.functional.cross_entropy`` returns on a GPU, without weights of classes.

    Where `input` needs a gradient, the forward pass also computes the gradient of `input`, and reads the logits
    once. The backward pass returns it if the gradient of the loss is the expected one, and else computes it anew.

    Parameters
    ----------
    input : Tensor [rows, classes]
        Logits.
    target : Tensor [rows]
        int64: the class of each row, or `ignore_index`.
    ignore_index : int
        Rows with this target have no loss.
    reduction : str
    label_smoothing : float
        On a CPU only.
    upcast : bool
        Whether the result is that of ``cross_entropy(input.float(), target)``, without the copy of the logits: the
        loss is float32, and the gradient is rounded to the dtype of `input`.
    expected_gradient : float, Tensor or None
        The gradient of the loss that the backward pass will bring: 1 of ``loss.backward()``, with a loss scaler
        its scale. A kernel compares them; only recordings and other modes wait for the GPU. None,
        ``reduction="none"`` and torch.compile: the backward pass computes the gradient.

    Examples
    --------
    >>> sbt.functional.cross_entropy(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.6931)
    """
    require(input.dim() == 2 and target.dim() == 1,
            "cross entropy of other than [rows, classes] logits and [rows] targets")
    require(target.dtype == torch.int64, f"cross entropy with targets of {target.dtype}; int64 classes are expected")
    if input.shape[0] != target.shape[0]:
        raise InvalidArgument(f"target: {input.shape[0]} classes are expected, got {target.shape[0]}")
    to = torch.float32 if upcast else _autocast_dtype("nll_loss", input) or input.dtype
    upcast = upcast and input.dtype != to
    widens = not upcast and input.is_cuda and to != input.dtype  # PyTorch names the format of log_softmax, so it stays
    require(not widens or label_smoothing == 0, "cross entropy with smoothed labels on a GPU")
    x = input if widens or upcast else input.to(to)
    options = (reduction, ignore_index, label_smoothing, widens, upcast)
    together = expected_gradient is not None and reduction != "none" and torch.is_grad_enabled()
    if not (together and x.requires_grad) or torch.compiler.is_compiling():
        return ops.cross_entropy(x, target, *options)
    expected: Any = expected_gradient
    if not isinstance(expected, torch.Tensor):
        expected = torch.full((), expected, dtype=to, device=x.device)
    expected = expected.detach().to(x.device, to).reshape(())
    result: torch.Tensor = _LossAndGradient.apply(x, target, expected, *options)
    return result
