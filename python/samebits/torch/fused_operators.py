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
from samebits.torch.row_operators import define, new, ops, refuse_second_derivative, register
from samebits.torch.tensors import torch_dtype

__all__: list[str] = []


def _like(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return new(x)


def _like_second(_grad: torch.Tensor, x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return new(x)


def _pair(x: torch.Tensor, *_: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return new(x), new(x)


def _half(x: torch.Tensor, *_: Any) -> torch.Tensor:
    return new(x, (*x.shape[:-1], x.shape[-1] // 2))


def _keep(first: int, end: int) -> Any:
    """Keep the arguments from `first` to `end`, tensors, and those behind as options."""
    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[first:end])
        ctx.options, ctx.count = inputs[end:], len(inputs)
    return keep


def _gradients(name: str) -> Any:
    """Compute the gradients of the first arguments by an operator of the gradient and of what was kept."""
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        of = getattr(ops, name)(grad, *ctx.saved_tensors, *ctx.options)
        of = of if isinstance(of, tuple) else (of,)
        return *of, *[None] * (ctx.count - len(of))
    return backward


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


def _embed_shape(indices: torch.Tensor, table: torch.Tensor, *_: Any) -> torch.Tensor:
    return new(table, (*indices.shape, table.shape[1]))


def _keep_indices(ctx: Any, inputs: Any, output: Any) -> None:
    indices, table, positions, ctx.scale = inputs
    ctx.words, ctx.positions = table.shape[0], positions is not None
    ctx.save_for_backward(indices)


def _embed_backward(ctx: Any, grad: torch.Tensor) -> Any:
    indices, = ctx.saved_tensors
    of_table = ops.embed_backward(grad, indices, ctx.words, ctx.scale) if ctx.needs_input_grad[1] else None
    of_positions = ops.sum_of_rows(grad, grad.dim() - 2) if ctx.positions and ctx.needs_input_grad[2] else None
    return None, of_table, of_positions, None


def _sum_shapes(statistics: int) -> Any:
    def shapes(x: torch.Tensor, added: torch.Tensor, shape: Any, *_: Any) -> tuple[torch.Tensor, ...]:
        of = statistics_shape(x, shape)
        return (new(x), new(x), *(new(x, of, torch.float32) for _ in range(statistics)))
    return shapes


def _keep_sum(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, ctx.shape, weight, *rest = inputs
    ctx.mark_non_differentiable(*output[2:])
    ctx.set_materialize_grads(False)  # a result without users has no gradient, not zeros
    ctx.save_for_backward(weight, *rest[:-1], *output[1:])


def _add_layer_norm_backward(ctx: Any, grad: Any, of_sum: Any, *_: Any) -> Any:
    weight, bias, total, mean, rstd = ctx.saved_tensors
    if grad is None:
        return of_sum, of_sum, None, None, None, None
    mask = [False, *(ctx.needs_input_grad[i] for i in (3, 4))]
    _, dw, db = ops.native_layer_norm_backward(grad, total, ctx.shape, mean, rstd, weight, bias, mask)
    dx = ops.add_norm_backward(grad, of_sum, total, ctx.shape, mean, rstd, weight)
    return dx, dx, None, dw, db, None


def _add_rms_norm_backward(ctx: Any, grad: Any, of_sum: Any, *_: Any) -> Any:
    weight, total, rstd = ctx.saved_tensors
    if grad is None:
        return of_sum, of_sum, None, None, None
    _, dw = ops._fused_rms_norm_backward(grad, total, ctx.shape, rstd, weight, [False, ctx.needs_input_grad[3]])
    dx = ops.add_norm_backward(grad, of_sum, total, ctx.shape, None, rstd, weight)
    return dx, dx, None, dw, None


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
_NONE = (None, refuse_second_derivative)
#: By operator: the schema, None of ATen's; shapes of its results; what it keeps; its backward pass.
_OPERATORS: dict[str, tuple[Any, ...]] = {
    "silu": (None, _like, _keep(0, 1), _gradients("silu_backward")),
    "silu_backward": (None, _like, *_NONE),
    "gelu": (None, _like, _keep_gelu, _gelu_backward),
    "gelu_backward": (None, _like, *_NONE),
    "gated": ("(Tensor gate, Tensor up, str function) -> Tensor", _like, _keep(0, 2), _gradients("gated_backward")),
    "gated_backward": ("(Tensor grad, Tensor gate, Tensor up, str function) -> (Tensor, Tensor)", _pair, *_NONE),
    "gated_halves": ("(Tensor x, str function) -> Tensor", _half, _keep(0, 1), _gradients("gated_halves_backward")),
    "gated_halves_backward": ("(Tensor grad, Tensor x, str function) -> Tensor", _like_second, *_NONE),
    "biased": ("(Tensor x, Tensor bias, str function) -> Tensor", _like, _keep(0, 2), _biased_backward),
    "biased_backward": ("(Tensor grad, Tensor x, Tensor bias, str function) -> Tensor", _like, *_NONE),
    "sum_of_rows": ("(Tensor x, int dims) -> Tensor", lambda x, dims: new(x, x.shape[dims:]), *_NONE),
    "rotary": (f"(Tensor x, {_ROTARY}", _like, _keep(1, 3), _gradients("rotary_backward")),
    "rotary_backward": (f"(Tensor grad, {_ROTARY}", _like, *_NONE),
    "embed": ("(Tensor indices, Tensor table, Tensor? positions, float scale) -> Tensor", _embed_shape,
              _keep_indices, _embed_backward),
    "embed_backward": ("(Tensor grad, Tensor indices, int words, float scale) -> Tensor",
                       lambda grad, indices, words, scale: new(grad, (words, grad.shape[-1])), *_NONE),
    "add_layer_norm": (f"{_SUM}, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor, Tensor)", _sum_shapes(2),
                       _keep_sum, _add_layer_norm_backward),
    "add_rms_norm": (f"{_SUM}, float? eps) -> (Tensor, Tensor, Tensor)", _sum_shapes(1), _keep_sum,
                     _add_rms_norm_backward),
    "add_norm_backward": ("(Tensor grad, Tensor? of_sum, Tensor total, SymInt[] shape, Tensor? mean, Tensor rstd, "
                          "Tensor? weight) -> Tensor", _like, *_NONE),
    "scaled_softmax": (f"(Tensor x, {_SCORES}", _like, _keep_scores, _scaled_softmax_backward),
    "scaled_softmax_backward": (f"(Tensor grad, Tensor y, {_SCORES}", _like, *_NONE),
    "clip_fake_quantize": ("(Tensor x, Tensor clip, int bits) -> Tensor", _like, _keep(0, 2), _fake_quantize_backward),
    "clip_fake_quantize_backward": ("(Tensor grad, Tensor x, Tensor clip, int bits) -> (Tensor, Tensor)", _pair,
                                    *_NONE),
    "gated_quantize": ("(Tensor gate, Tensor up, str function, str rules, str to) -> (Tensor, Tensor)",
                       _quantized_shapes, *_NONE),
    "norm_quantize": ("(Tensor x, Tensor? added, Tensor? weight, Tensor? bias, float eps, bool rms, str rules, str to) "
                      "-> (Tensor, Tensor, Tensor, Tensor, Tensor)", _quantized_norm_shapes, *_NONE),
    "dropout_by_index": ("(Tensor x, float p, int seed, int stream, int offset) -> Tensor", _like, _keep(1, 1),
                         _gradients("dropout_by_index")),
}
for _name, (_schema, *_parts) in _OPERATORS.items():
    define(_name, _schema)
register({name: tuple(parts) for name, (_, *parts) in _OPERATORS.items()})

# These write over the scores, and over softmax's result. They have no derivatives: `math_attention` has its own.
for _name, _first in (("scaled_softmax_", "x"), ("scaled_softmax_backward_", "y, Tensor grad")):
    define(_name, f"(Tensor(a!) {_first}, {_SCORES.removesuffix('Tensor')}()")
    torch.library.register_fake(f"samebits::{_name}")(lambda *_: None)
