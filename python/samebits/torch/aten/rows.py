"""Operators of rows: softmax, LayerNorm, RMSNorm, losses, embeddings, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from samebits import functions
from samebits.torch.aten.registry import RULE, RULES, Conditions, require, rule, stored


def _last(x: Any, dim: int, *dtypes: Any) -> None:
    """Require an operator of rows, whose result has the argument's format."""
    require(dim % x.dim() == x.dim() - 1, f"softmax over axis {dim} of {x.dim()}")
    require(all(dtype in (None, False, x.dtype) for dtype in dtypes), "softmax of another format")


def _widened(x: Any, other: Any) -> tuple[Any, Any]:
    """Return fp16 whose result is fp32 as fp32: the order of narrow rows is that of any format."""
    if other is not True:
        return x, other
    require(x.shape[-1] <= 1024, "softmax of fp16 with a result in fp32, of more than 1024 elements")
    return x.float(), False


@rule("_softmax")
def _softmax(_how: Conditions, x: Any, dim: int, other: Any, function: Any = functions.softmax) -> Any:
    x, other = _widened(x, other)
    _last(x, dim, other)
    return function(x.contiguous(), offset=_offset(x), **RULE)


@rule("_safe_softmax")
def _safe_softmax(how: Conditions, x: Any, dim: int, dtype: Any = None) -> Any:
    """Rows that are masked whole give 0."""
    masked = (x == -torch.inf).all(dim, keepdim=True)
    return torch.where(masked, torch.zeros((), dtype=x.dtype), _softmax(how, x, dim, dtype))


@rule("_softmax_backward_data")
def _softmax_backward(how: Conditions, grad: Any, y: Any, dim: int, dtype: Any, log: bool = False) -> Any:
    if dtype == torch.float16 and y.dtype == torch.float32:  # the order is that of fp32
        return stored(_softmax_backward(how, grad, y, dim, y.dtype, log), dtype)
    _last(y, dim, dtype)
    if log:
        return functions.log_softmax_gradient(grad.contiguous(), y.contiguous(), offset=_offset(grad), **RULE)
    return functions.softmax_gradient(grad.contiguous(), y.contiguous(), **RULE)


RULES["_log_softmax"] = partial(_softmax, function=functions.log_softmax)
RULES["_log_softmax_backward_data"] = partial(_softmax_backward, log=True)


def _offset(x: torch.Tensor) -> int:
    """Return the storage offset that the kernel sees: PyTorch copies tensors that are not contiguous."""
    return int(x.storage_offset()) if x.is_contiguous() else 0


def as_rows(x: Any, shape: Sequence[int]) -> Any:
    return x.contiguous() if len(shape) == 1 else x.reshape(-1, math.prod(shape))


def shaped(x: Any, shape: Sequence[int]) -> Any:
    """Return x.reshape(shape); of a contiguous tensor no view, which autograd would not let programs write."""
    if x.shape == tuple(shape):
        return x
    return torch.ops.aten._unsafe_view(x, shape) if x.is_contiguous() else x.reshape(shape)


def flat(parameter: Any) -> Any:
    return parameter if parameter is None or parameter.dim() == 1 else parameter.reshape(-1)


def _norm_offset(x: torch.Tensor, *parameters: torch.Tensor | None) -> int:
    """Return the offset of a norm's argument; 1 for parameters that are not aligned: one kernel takes both."""
    aligned = all(p is None or p.storage_offset() % 4 == 0 for p in parameters)
    return _offset(x) if aligned else 1


def statistics_shape(x: Any, shape: Sequence[int]) -> list[int]:
    return [*x.shape[: x.dim() - len(shape)], *[1] * len(shape)]


@rule("native_layer_norm")
def _layer_norm(_how: Conditions, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    y = functions.layer_norm(as_rows(x, shape), flat(weight), flat(bias), epsilon=eps,
                             offset=_norm_offset(x, weight, bias), **RULE)
    of = statistics_shape(x, shape)
    return shaped(y.out, x.shape), shaped(y.mean, of), shaped(y.rstd, of)


@rule("native_layer_norm_backward")
def _layer_norm_backward(how: Conditions, grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any,
                         _bias: Any, mask: Any) -> Any:
    """Of RMSNorm if there is no mean."""
    rows, grads = as_rows(x, shape), as_rows(grad, shape)
    statistics = [shaped(each, (*rows.shape[:-1], 1)) for each in (mean, rstd) if each is not None]
    dx = dw = db = None
    if mask[0]:
        gradient: Any = functions.rms_norm_gradient if mean is None else functions.layer_norm_gradient
        dx = shaped(gradient(grads, rows, *statistics, flat(weight), **RULE), x.shape)
    if mask[1] or mask[2]:
        dw, db = (each if each is None else shaped(each, shape) for each in functions.norm_parameter_gradients(
            grads, rows, *statistics[::-1], multiprocessors=how.multiprocessors, **RULE))
    return dx, dw if mask[1] else None, db if mask[2] else None


@rule("_fused_rms_norm")
def _rms_norm(_how: Conditions, x: Any, shape: Any, weight: Any, eps: float | None) -> Any:
    eps = torch.finfo(torch.float32).eps if eps is None else eps  # of what the kernel computes in
    y = functions.rms_norm(as_rows(x, shape), flat(weight), epsilon=eps, offset=_norm_offset(x, weight), **RULE)
    return shaped(y.out, x.shape), shaped(y.rstd, statistics_shape(x, shape))


@rule("_fused_rms_norm_backward")
def _rms_norm_backward(how: Conditions, grad: Any, x: Any, shape: Any, rstd: Any, weight: Any, mask: Any) -> Any:
    return _layer_norm_backward(how, grad, x, shape, None, rstd, weight, None, [*mask, False])[:2]


@rule("embedding_dense_backward")
def _embedding_backward(how: Conditions, grad: Any, indices: Any, words: int, padding: int, by_count: bool) -> Any:
    require(not by_count, "embedding gradients scaled by frequency")
    return functions.embedding_gradient(grad.contiguous(), indices, words, padding=padding,
                                        deterministic=how.deterministic, **RULE)


def _nll_options(logs: Any, weight: Any, reduction: int, ignored: int) -> dict[str, Any]:
    require(weight is None and logs.dim() == 2, "nll_loss with weights of classes, or of one row")
    return {"reduction": ("none", "mean", "sum")[reduction], "log_probabilities": True, "ignore_index": ignored, **RULE}


@rule("nll_loss_forward")
def _nll_loss(_how: Conditions, logs: Any, targets: Any, weight: Any, reduction: int, ignored: int) -> Any:
    loss = functions.cross_entropy(logs, targets, **_nll_options(logs, weight, reduction, ignored))
    counted = 0 if reduction == 0 else int((targets != ignored).sum())
    return loss, torch.tensor(counted, dtype=logs.dtype)


@rule("nll_loss_backward")
def _nll_loss_backward(_how: Conditions, grad: Any, logs: Any, targets: Any, weight: Any, reduction: int,
                       ignored: int, _counted: Any) -> Any:
    return functions.cross_entropy_gradient(grad.contiguous(), logs, targets,
                                            **_nll_options(logs, weight, reduction, ignored))


def _loss_options(x: Any, reduction: str, ignored: int, smoothing: float, widens: bool, upcast: bool) -> dict[str, Any]:
    """Return the options of a loss of logits x. Logits in fp32 are a new tensor, which begins at a boundary."""
    return {"reduction": reduction, "ignore_index": ignored, "label_smoothing": smoothing, "to": "fp32" if widens else None,
            "upcast": upcast, "offset": 0 if upcast else _offset(x), **RULE}


@rule("cross_entropy")
def _cross_entropy(how: Conditions, x: Any, targets: Any, *options: Any) -> Any:
    return functions.cross_entropy(x.contiguous(), targets, multiprocessors=how.multiprocessors,
                                   **_loss_options(x, *options))


@rule("cross_entropy_backward")
def _cross_entropy_backward(_how: Conditions, grad: Any, x: Any, targets: Any, *options: Any) -> Any:
    return functions.cross_entropy_gradient(grad.contiguous(), x.contiguous(), targets,
                                            **_loss_options(x, *options))


def update_loss_gradient(known: tuple[Any, Any], grad: Any, x: Any, targets: Any, *options: Any) -> Any:
    """Return the gradient of logits on a GPU: known[1], updated unless `grad` is known[0]. Nothing waits."""
    return functions.cross_entropy_gradient(grad.contiguous(), x.contiguous(), targets, known=known,
                                            **_loss_options(x, *options))


@rule("cross_entropy_and_gradient")
def _cross_entropy_and_gradient(how: Conditions, grad: Any, x: Any, targets: Any, *options: Any) -> Any:
    return functions.cross_entropy_and_gradient(grad.contiguous(), x.contiguous(), targets,
                                                multiprocessors=how.multiprocessors, **_loss_options(x, *options))
