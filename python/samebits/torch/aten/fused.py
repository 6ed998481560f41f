"""Fused operators of this library: PyTorch's operators one after another, and dropout by element index.

They read CPU and CUDA tensors. `samebits.torch.fused_operators` defines them for autograd.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import torch

from samebits import _core
from samebits.recipes import SCALE_RULES
from samebits.torch.aten.elementwise import elementwise
from samebits.torch.aten.functions import gelu_of
from samebits.torch.aten.registry import RULES, Conditions, require, rule
from samebits.torch.aten.rows import as_rows, flat, shaped, statistics_shape
from samebits.torch.quantize import rules_of_text


def _rows(x: torch.Tensor) -> torch.Tensor:
    """Return the tensor itself if its leading axes are one axis of rows in memory, else a copy."""
    strides, shape = x.stride(), x.shape
    if x.is_contiguous() or x.dim() == 2:
        return x
    merges = all(strides[i] == strides[i + 1] * shape[i + 1] for i in range(x.dim() - 2))
    return x if merges and min(strides) > 0 else x.contiguous()


def function_of(name: str, approximate: str = "none") -> str:
    """Return the library's name of silu or gelu."""
    return gelu_of(approximate) if name == "gelu" else name


def _on_rows(core: Any, *first: Any) -> Any:
    """Return the rule of an operator that the core computes from tensors whose rows follow each other in memory.

    Its results, which are contiguous or halves of contiguous tensors, are among the arguments: none is copied.
    """
    return lambda _how, *arguments: core(*first, *(_rows(x) if isinstance(x, torch.Tensor) else x for x in arguments))


RULES.update({
    "gated": _on_rows(_core.gated),
    "gated_halves": lambda how, x, function: RULES["gated"](how, *x.chunk(2, -1), function),
    "biased": _on_rows(_core.biased, None),
    "biased_backward": _on_rows(_core.biased),
    "rotary": _on_rows(_core.rotate),
    "rotary_backward": _on_rows(_core.rotate_gradient),
    "clip_fake_quantize": _on_rows(_core.clip_fake_quantize),
    "clip_fake_quantize_backward": _on_rows(_core.clip_fake_quantize_gradient),
    "dropout_by_index": lambda _how, x, *options: _core.dropout(x.contiguous(), *options),
    "scaled_softmax": lambda _how, x, *options: _scaled_softmax_of(x, None, *options),
    "scaled_softmax_backward": lambda _how, grad, y, *options: _scaled_softmax_of(grad, _rows(y), *options),
})
_gated_gradients = _on_rows(_core.gated_gradient)


@rule("gated_backward")
def _gated_backward(how: Conditions, grad: Any, gate: Any, up: Any, function: str) -> Any:
    results = grad.new_empty(grad.shape), grad.new_empty(grad.shape)
    _gated_gradients(how, grad, gate, up, function, *results)
    return results


@rule("gated_halves_backward")
def _gated_halves_backward(how: Conditions, grad: Any, x: Any, function: str) -> Any:
    result = x.new_empty(x.shape)
    _gated_gradients(how, grad, *x.chunk(2, -1), function, *result.chunk(2, -1))
    return result


@rule("sum_of_rows")
def _sum_of_rows(how: Conditions, x: Any, dims: int) -> Any:
    """Sum the leading axes as autograd does for an operand that was broadcast along them."""
    axes = [*range(dims)]
    if not axes:
        return x.clone()
    return x.sum(axes) if x.is_cuda else RULES["sum"](how, x.contiguous(), axes)


@rule("embed")
def _embed(_how: Conditions, indices: Any, table: Any, positions: Any, scale: float) -> Any:
    require(indices.dtype == torch.int64, f"embedding of indices of {indices.dtype}; int64 is expected")
    flat = indices.reshape(-1).contiguous()
    given = flat if flat.is_cuda else flat.numpy().tobytes()
    y: Any = _core.embed(given, table.detach(), positions, scale)
    return shaped(y, (*indices.shape, table.shape[1]))


@rule("embed_backward")
def _embed_backward(how: Conditions, grad: Any, indices: Any, words: int, scale: float) -> Any:
    if scale != 1:
        grad = grad * scale if grad.is_cuda else elementwise("mul", (grad, scale), {}, None)
    flat = grad.reshape(-1, grad.shape[-1])
    return RULES["embedding_dense_backward"](Conditions(how.multiprocessors, True), flat, indices.reshape(-1), words,
                                             -1, False)


def _norm_options(eps: float, *parameters: Any) -> Any:
    """Return the options of a norm whose argument, the sum, begins at a 16-byte boundary."""
    aligned = all(p is None or p.storage_offset() % 4 == 0 for p in parameters)
    return "torch_2_11", eps, 0 if aligned else 1


@rule("add_layer_norm")
def _add_layer_norm(_how: Conditions, x: Any, added: Any, shape: Any, weight: Any, bias: Any, eps: float,
                    rms: bool = False) -> Any:
    y, total, *statistics = _core.norm_of_sum(rms, as_rows(x, shape), as_rows(added, shape), flat(weight), flat(bias),
                                              _norm_options(eps, weight, bias))
    of = statistics_shape(x, shape)
    return shaped(y, x.shape), shaped(total, x.shape), *(shaped(each, of) for each in statistics)


@rule("add_rms_norm")
def _add_rms_norm(how: Conditions, x: Any, added: Any, shape: Any, weight: Any, eps: float | None) -> Any:
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    return _add_layer_norm(how, x, added, shape, weight, None, eps, True)


@rule("add_norm_backward")
def _add_norm_backward(_how: Conditions, grad: Any, of_sum: Any, total: Any, shape: Any, mean: Any, rstd: Any,
                       weight: Any) -> Any:
    rows = as_rows(total, shape)
    column = (*rows.shape[:-1], 1)
    dx = _core.norm_of_sum_gradient(
        as_rows(grad, shape), None if of_sum is None else as_rows(of_sum, shape), rows,
        None if mean is None else shaped(mean, column), shaped(rstd, column), flat(weight), ("torch_2_11",))
    return shaped(dx, total.shape)


def _score_rows(shape: Any, mask: Any, causal: bool) -> tuple[Any, tuple[int, ...]]:
    """Return the rows of a mask; heads and queries of scores of a shape, and the mask's rows from one to the next.

    The leading axes of the scores, merged where one step leads from row to row of the mask, are at most three.
    """
    n = shape[-1]
    if mask is None:
        return None, (1, shape[-2] if causal else 1, 0, 0, 0)
    mask = mask.expand(*mask.shape[:-1], n)
    sizes = [*[1] * (len(shape) - mask.dim()), *mask.shape[:-1]]
    axes: list[list[int]] = []  # [size, step], the last axis first
    rows = 1
    for size, own in zip(shape[-2::-1], sizes[::-1], strict=True):
        step = rows if own > 1 else 0
        rows *= own
        merges = axes and not (causal and len(axes) == 1) and step == axes[-1][0] * axes[-1][1]
        if merges or (axes and size == 1):
            axes[-1][0] *= size
        else:
            axes.append([size, step])
    if len(axes) > 3:
        return _score_rows(shape, mask.expand(shape).contiguous(), causal)
    queries, heads, batches = *axes, *[[1, 0]] * (3 - len(axes))
    mask = mask.reshape(-1, n)
    return mask.view(torch.uint8) if mask.dtype == torch.bool else mask, (
        heads[0], queries[0], batches[1], heads[1], queries[1])


def _scaled_softmax_of(x: Any, result: Any, scale: float, mask: Any, causal: bool, out: Any = None) -> Any:
    if x.numel() == 0:
        return x.new_empty(x.shape) if out is None else out
    masks, rows = _score_rows(x.shape, mask, causal)
    is_boolean = mask is not None and mask.dtype == torch.bool
    return _core.scaled_softmax(_rows(x), result, scale, causal, masks, is_boolean, rows, out)


@rule("scaled_softmax_")
def _scaled_softmax_in_place(_how: Conditions, x: Any, scale: float, mask: Any, causal: bool) -> None:
    _scaled_softmax_of(x, None, scale, mask, causal, x)


@rule("scaled_softmax_backward_")
def _scaled_softmax_backward_in_place(_how: Conditions, y: Any, grad: Any, scale: float, mask: Any, causal: bool) -> None:
    _scaled_softmax_of(grad, y, scale, mask, causal, y)


@rule("norm_quantize")
def _norm_quantize(_how: Conditions, x: Any, added: Any, weight: Any, bias: Any, eps: float, rms: bool, rules: str,
                   to: str) -> Any:
    recipe, shape = rules_of_text(rules), x.shape[-1:]
    codes, scales, total, mean, rstd = _core.norm_quantize(
        as_rows(x, shape), None if added is None else as_rows(added, shape),
        (rms, _norm_options(eps, weight, bias), flat(weight), flat(bias)), to, recipe.scale_format,
        attrgetter(*SCALE_RULES)(recipe), recipe.overflow)
    of = statistics_shape(x, shape)
    empty = x.new_empty((0,))  # an operator's results are tensors
    return (shaped(codes, x.shape), scales, empty if total is None else shaped(total, x.shape),
            empty.float() if mean is None else shaped(mean, of), shaped(rstd, of))


@rule("gated_quantize")
def _gated_quantize(_how: Conditions, gate: Any, up: Any, function: str, rules: str, to: str) -> Any:
    recipe = rules_of_text(rules)
    return _core.gated_quantize(_rows(gate), _rows(up), function, to, recipe.scale_format,
                                attrgetter(*SCALE_RULES)(recipe), recipe.overflow)
