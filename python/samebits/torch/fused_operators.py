"""Fused operators for torch.compile, recordings and autograd: `torch.ops.samebits.gated` and others.

Their rules are those of `samebits.torch.aten.fused`; docs/operators.md has what they compute.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from samebits.torch.aten import fused  # noqa: F401 - it registers the rules
from samebits.torch.aten.rows import statistics_shape
from samebits.torch.quantize import rules_of_text, scales_shape
from samebits.torch.row_operators import define, fake_norm, gradients_by, keep_arguments, new, norm_gradients, ops
from samebits.torch.tensors import torch_dtype


def _like(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return new(x)


def _keep_gelu(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)
    ctx.approximate = keyword_only_inputs.get("approximate", "none")


def _gelu_backward(ctx: Any, grad: torch.Tensor) -> Any:
    return ops.gelu_backward(grad, *ctx.saved_tensors, approximate=ctx.approximate)


def _biased_backward(ctx: Any, grad: torch.Tensor) -> Any:
    of_sum = ops.biased_backward(grad, *ctx.saved_tensors, *ctx.options)
    of_bias = ops.sum_of_rows(of_sum, grad.dim() - 1) if ctx.needs_input_grad[1] else None
    return of_sum if ctx.needs_input_grad[0] else None, of_bias, None


def _fake_quantize_backward(ctx: Any, grad: torch.Tensor) -> Any:
    x, clip = ctx.saved_tensors
    of_x, of_clip = ops.clip_fake_quantize_backward(grad, x, clip, *ctx.options)
    total = ops.sum_of_rows(of_clip, x.dim()).reshape(clip.shape) if ctx.needs_input_grad[1] else None
    return of_x, total, None


def _keep_indices(ctx: Any, inputs: Any, output: Any) -> None:
    indices, table, positions, ctx.scale = inputs
    ctx.words, ctx.positions = table.shape[0], positions is not None
    ctx.save_for_backward(indices)


def _embed_backward(ctx: Any, grad: torch.Tensor) -> Any:
    indices, = ctx.saved_tensors
    of_table = ops.embed_backward(grad, indices, ctx.words, ctx.scale) if ctx.needs_input_grad[1] else None
    of_positions = ops.sum_of_rows(grad, grad.dim() - 2) if ctx.positions and ctx.needs_input_grad[2] else None
    return None, of_table, of_positions, None


def _fake_sum(statistics: int) -> Any:
    return lambda x, _, *rest: (new(x), *fake_norm(statistics)(x, *rest))


def _keep_sum(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, ctx.shape, weight, *bias, _ = inputs
    _, total, *mean, rstd = output
    ctx.mark_non_differentiable(*output[2:])
    ctx.set_materialize_grads(False)  # a result without users has no gradient, not zeros
    ctx.save_for_backward(total, *mean or [None], rstd, weight, *bias or [None])


def gradients_of_sum(wanted: Any, grad: Any, of_sum: Any, total: torch.Tensor, shape: Any, mean: Any, rstd: Any,
                     weight: Any, bias: Any) -> Any:
    """Return the gradients of a sum, and of its norm's weight and bias, if `wanted`; `grad` is that of the norm."""
    if grad is None:
        return of_sum, None, None
    _, dw, db = norm_gradients([False, *wanted], grad, total, shape, mean, rstd, weight, bias)
    return ops.add_norm_backward(grad, of_sum, total, shape, mean, rstd, weight), dw, db


def _add_norm_backward(ctx: Any, grad: Any, of_sum: Any, *_: Any) -> Any:
    total, *tensors = ctx.saved_tensors
    needed = ctx.needs_input_grad
    dx, *others = gradients_of_sum(needed[3:5], grad, of_sum, total, ctx.shape, *tensors)
    return (dx, dx, None, *others, None)[:len(needed)]


def _keep_scores(ctx: Any, inputs: Any, output: Any) -> None:
    _, ctx.scale, mask, ctx.causal = inputs
    ctx.save_for_backward(output, mask)


def _scaled_softmax_backward(ctx: Any, grad: torch.Tensor) -> Any:
    y, mask = ctx.saved_tensors
    return ops.scaled_softmax_backward(grad, y, ctx.scale, mask, ctx.causal), None, None, None


def _quantized_shapes(gate: torch.Tensor, up: torch.Tensor, function: str, rules: str, to: str) -> Any:
    recipe, rows = rules_of_text(rules), math.prod(gate.shape[:-1])
    return (new(gate, dtype=torch_dtype(to)),
            new(gate, scales_shape(rows, gate.shape[-1], recipe.tile), torch_dtype(recipe.scale_format)))


def _quantized_norm_shapes(x: torch.Tensor, added: Any, _weight: Any, _bias: Any, _eps: float, rms: bool, rules: str,
                           to: str) -> Any:
    of = statistics_shape(x, x.shape[-1:])
    return (*_quantized_shapes(x, x, "", rules, to), new(x, (0,) if added is None else x.shape),
            new(x, (0,) if rms else of, torch.float32), new(x, of, torch.float32))


_SUM = "(Tensor x, Tensor added, SymInt[] shape, Tensor? weight"
_SCORES = "float scale, Tensor? mask, bool causal) -> Tensor"
_ROTARY = "Tensor cos, Tensor sin, int each) -> Tensor"
#: By operator: the schema, None of ATen's; shapes of its results; what it keeps; its backward pass.
_OPERATORS: dict[str, tuple[Any, ...]] = {
    "silu": (None, _like, keep_arguments(0, 1), gradients_by("silu_backward")),
    "silu_backward": (None, _like),
    "gelu": (None, _like, _keep_gelu, _gelu_backward),
    "gelu_backward": (None, _like),
    "gated": ("(Tensor gate, Tensor up, str function) -> Tensor", _like, keep_arguments(0, 2),
              gradients_by("gated_backward")),
    "gated_backward": ("(Tensor grad, Tensor gate, Tensor up, str function) -> (Tensor, Tensor)",
                       lambda x, *_: (new(x), new(x))),
    "gated_halves": ("(Tensor x, str function) -> Tensor", lambda x, _: new(x, (*x.shape[:-1], x.shape[-1] // 2)),
                     keep_arguments(0, 1), gradients_by("gated_halves_backward")),
    "gated_halves_backward": ("(Tensor grad, Tensor x, str function) -> Tensor", lambda _, x, *__: new(x)),
    "biased": ("(Tensor x, Tensor bias, str function) -> Tensor", _like, keep_arguments(0, 2), _biased_backward),
    "biased_backward": ("(Tensor grad, Tensor x, Tensor bias, str function) -> Tensor", _like),
    "sum_of_rows": ("(Tensor x, int dims) -> Tensor", lambda x, dims: new(x, x.shape[dims:])),
    "rotary": (f"(Tensor x, {_ROTARY}", _like, keep_arguments(1, 3), gradients_by("rotary_backward")),
    "rotary_backward": (f"(Tensor grad, {_ROTARY}", _like),
    "embed": ("(Tensor indices, Tensor table, Tensor? positions, float scale) -> Tensor",
              lambda indices, table, *_: new(table, (*indices.shape, table.shape[1])), _keep_indices, _embed_backward),
    "embed_backward": ("(Tensor grad, Tensor indices, int words, float scale) -> Tensor",
                       lambda grad, indices, words, scale: new(grad, (words, grad.shape[-1]))),
    "add_layer_norm": (f"{_SUM}, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor, Tensor)", _fake_sum(2),
                       _keep_sum, _add_norm_backward),
    "add_rms_norm": (f"{_SUM}, float? eps) -> (Tensor, Tensor, Tensor)", _fake_sum(1), _keep_sum,
                     _add_norm_backward),
    "add_norm_backward": ("(Tensor grad, Tensor? of_sum, Tensor total, SymInt[] shape, Tensor? mean, Tensor rstd, "
                          "Tensor? weight) -> Tensor", _like),
    "scaled_softmax": (f"(Tensor x, {_SCORES}", _like, _keep_scores, _scaled_softmax_backward),
    "scaled_softmax_backward": (f"(Tensor grad, Tensor y, {_SCORES}", _like),
    "clip_fake_quantize": ("(Tensor x, Tensor clip, int bits) -> Tensor", _like, keep_arguments(0, 2),
                           _fake_quantize_backward),
    "clip_fake_quantize_backward": ("(Tensor grad, Tensor x, Tensor clip, int bits) -> (Tensor, Tensor)",
                                    lambda x, *_: (new(x), new(x))),
    "gated_quantize": ("(Tensor gate, Tensor up, str function, str rules, str to) -> (Tensor, Tensor)",
                       _quantized_shapes),
    "norm_quantize": ("(Tensor x, Tensor? added, Tensor? weight, Tensor? bias, float eps, bool rms, str rules, str to) "
                      "-> (Tensor, Tensor, Tensor, Tensor, Tensor)", _quantized_norm_shapes),
    "dropout_by_index": ("(Tensor x, float p, int seed, int stream, int offset) -> Tensor", _like, keep_arguments(1, 1),
                         gradients_by("dropout_by_index")),
}
for _name, _parts in _OPERATORS.items():
    define(_name, *_parts)

# These write over the scores, and over softmax's result. They have no derivatives: `math_attention` has its own.
for _name, _first in (("scaled_softmax_", "x"), ("scaled_softmax_backward_", "y, Tensor grad")):
    define(_name, f"(Tensor(a!) {_first}, {_SCORES.removesuffix('Tensor')}()", lambda *_: None)
