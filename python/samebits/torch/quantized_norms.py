"""Norms that are quantized at once, for `samebits.torch.functional`: no tensor holds them before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable

from samebits.errors import InvalidArgument
from samebits.rules import options_of
from samebits.torch.fused_functions import quantization_of
from samebits.torch.fused_operators import gradients_of_sum
from samebits.torch.quantize import QuantizedTensor
from samebits.torch.row_operators import ops

if TYPE_CHECKING:
    from samebits.recipes import Recipe
    from samebits.typing import FormatLike, RecipeName

__all__ = ["layer_norm_quantize", "rms_norm_quantize"]


class _QuantizedNorm(torch.autograd.Function):
    """Codes and scales, and a source of the norm's shape with the memory of one element, which takes its gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, added: torch.Tensor | None, weight: torch.Tensor | None,
                bias: torch.Tensor | None, *options: Any) -> Any:
        codes, scales, total, mean, rstd = ops.norm_quantize(x, added, weight, bias, *options)
        ctx.adds, rms = added is not None, options[1]
        ctx.save_for_backward(total if ctx.adds else x, None if rms else mean, rstd, weight, bias)
        ctx.mark_non_differentiable(codes, scales)
        ctx.set_materialize_grads(False)
        return x.new_zeros(()).expand_as(x), total if ctx.adds else x.view_as(x), codes, scales

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Any, of_sum: Any, *_: Any) -> Any:
        total, *tensors = ctx.saved_tensors
        dx, dw, db = gradients_of_sum(ctx.needs_input_grad[2:4], grad, of_sum, total, total.shape[-1:], *tensors)
        return dx, dx if ctx.adds else None, dw, db, None, None, None, None


def layer_norm_quantize(input: torch.Tensor, weight: torch.Tensor | None = None, bias: torch.Tensor | None = None,
                        eps: float = 1e-5, *, residual: torch.Tensor | None = None,
                        recipe: Recipe | RecipeName | None = None,
                        to: FormatLike = "e4m3") -> tuple[QuantizedTensor, torch.Tensor]:
    """Return ``samebits.torch.quantize(layer_norm(input + residual), recipe)`` and the sum, without a tensor between.

    Parameters
    ----------
    input, residual : Tensor [..., n]
        fp32, bf16 or fp16, of one shape. None: `input` itself is normalized. Autocast does not convert them.
    weight, bias : Tensor [n], optional
        In the format of `input`.
    eps : float
    recipe, to
        As in `swiglu_quantize`. On a GPU one kernel computes recipes of 1 x 128 tiles.

    Returns
    -------
    tuple of QuantizedTensor and Tensor
        The norm, whose `dequantize` passes the gradient straight through; and ``input + residual``, or `input`.

    Examples
    --------
    >>> x = torch.ones(2, 128)
    >>> q, total = sbt.functional.layer_norm_quantize(x, residual=x, recipe="DSV3_IEEE")
    >>> q.codes.shape, q.scales.shape, total[0, 0].item()
    (torch.Size([2, 128]), torch.Size([2, 1]), 2.0)
    """
    return _quantized(input, residual, weight, bias, eps, False, recipe, to)


@options_of(layer_norm_quantize)
def rms_norm_quantize(input: torch.Tensor, weight: torch.Tensor | None = None, eps: float | None = None, *,
                      residual: torch.Tensor | None = None, recipe: Recipe | RecipeName | None = None,
                      to: FormatLike = "e4m3") -> tuple[QuantizedTensor, torch.Tensor]:
    """Return ``samebits.torch.quantize(rms_norm(input + residual), recipe)`` and the sum, as `layer_norm_quantize` does.

    Parameters
    ----------
    eps : float, optional
        As in `rms_norm`.

    Examples
    --------
    >>> q, _ = sbt.functional.rms_norm_quantize(torch.ones(2, 128), recipe="DSV3_IEEE")
    >>> round(q.dequantize()[0, 0].item(), 6)
    1.0
    """
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    return _quantized(input, residual, weight, None, eps, True, recipe, to)


def _quantized(x: torch.Tensor, added: torch.Tensor | None, weight: torch.Tensor | None, bias: torch.Tensor | None,
               eps: float, rms: bool, recipe: Any, to: Any) -> tuple[QuantizedTensor, torch.Tensor]:
    if x.dim() == 0:
        raise InvalidArgument("input: at least one axis is expected")
    if added is not None and (added.shape != x.shape or added.dtype != x.dtype):
        raise InvalidArgument(f"residual: {x.dtype} {[*x.shape]} is expected; got {added.dtype} {[*added.shape]}")
    for what, p in (("weight", weight), ("bias", bias)):
        if p is not None and p.shape != x.shape[-1:]:
            raise InvalidArgument(f"{what}: shape {[*x.shape[-1:]]} is expected; got {[*p.shape]}")
    rules, text, name = quantization_of(recipe, to)
    source, total, codes, scales = _QuantizedNorm.apply(  # type: ignore[no-untyped-call]
        x, added, weight, bias, eps, rms, text, name)
    made = QuantizedTensor(codes, scales, rules, name)
    if source.requires_grad:
        made.source = source
    return made, total if added is not None else x
