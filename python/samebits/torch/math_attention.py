"""Attention written out, as `math_attention` of `samebits.torch.functional`: one buffer holds scores, then probabilities,
then the gradients of the scores.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from samebits.errors import InvalidArgument
from samebits.torch import fused_operators  # noqa: F401 - it defines the operators
from samebits.torch.fused_functions import check_mask
from samebits.torch.row_operators import ops

__all__ = ["math_attention"]


class _MathAttention(torch.autograd.Function):
    """The products are those that torch.matmul and its backward pass call: of tensors [heads, rows, columns]."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None,
                *options: Any) -> torch.Tensor:
        ctx.options, ctx.shapes = options, (q.shape, k.transpose(-2, -1).shape, v.shape)
        ctx.used = False
        ctx.scores = (*q.shape[:-1], k.shape[-2])
        with torch.autocast(q.device.type, enabled=False):
            q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (q, k.transpose(-2, -1), v))
            p = torch.bmm(q, k)
            if torch.compiler.is_compiling():  # the compiler chooses what shares memory
                p = ops.scaled_softmax(p.view(ctx.scores), options[0], mask, options[1]).view(p.shape)
            else:
                ops.scaled_softmax_(p.view(ctx.scores), options[0], mask, options[1])
            y = torch.bmm(p, v)
        ctx.save_for_backward(q, k, v, p, mask)
        return y.view(*ctx.scores[:-1], v.shape[-1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        if ctx.used:  # hooks of saved tensors may hide from PyTorch that they were overwritten
            raise InvalidArgument("math_attention: its backward pass can run once; ask for all gradients at once")
        ctx.used = not torch.compiler.is_compiling()
        q, k, v, p, mask = ctx.saved_tensors
        of_q = of_k = of_v = None
        with torch.autocast(q.device.type, enabled=False):
            grad = grad.reshape(-1, *grad.shape[-2:])
            if ctx.needs_input_grad[2]:
                of_v = torch.bmm(p.transpose(1, 2), grad).view(ctx.shapes[2])
            if any(ctx.needs_input_grad[:2]):
                of_p = torch.bmm(grad, v.transpose(1, 2))
                scores = p.view(ctx.scores)
                if torch.compiler.is_compiling():
                    scores = ops.scaled_softmax_backward(of_p.view(ctx.scores), scores, ctx.options[0], mask,
                                                         ctx.options[1])
                else:
                    ops.scaled_softmax_backward_(scores, of_p.view(ctx.scores), ctx.options[0], mask, ctx.options[1])
                del of_p  # the gradients of q and k take its memory
                of_scores = scores.view(p.shape)
                if ctx.needs_input_grad[0]:
                    of_q = torch.bmm(of_scores, k.transpose(1, 2)).view(ctx.shapes[0])
                if ctx.needs_input_grad[1]:
                    of_k = torch.bmm(q.transpose(1, 2), of_scores).view(ctx.shapes[1]).transpose(-2, -1)
        return of_q, of_k, of_v, None, None, None


def math_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *,
                   attn_mask: torch.Tensor | None = None, is_causal: bool = False,
                   scale: float | None = None) -> torch.Tensor:
    """Return attention as PyTorch's operators compute it one after another, in little memory.

    These are ``query @ key.transpose(-2, -1)``, times `scale`, masked, softmax (`scaled_softmax`), ``@ value``, each
    rounded to the format, and their gradients, bit for bit. Products are PyTorch's.

    Memory, for B sequences of L tokens, N heads and N * D = H columns, in elements: B N L L probabilities are kept,
    beside the operands. The forward pass takes no more. The backward pass overwrites the probabilities by the
    gradients of the scores; it takes B L H for the gradient of `value` and max(B N L L, 2 B L H) for a workspace,
    which becomes the gradients of `query` and `key`. So it can run once, for all gradients together: a second one is
    refused. A compiled call can run it again.

    Parameters
    ----------
    query, key, value : Tensor [..., L, D]
        fp32, bf16 or fp16, of the same heads. Autocast does not convert them.
    attn_mask : Tensor, optional
        Booleans, True where a key takes part, or numbers that are added to the scores, as in
        ``torch.nn.functional.scaled_dot_product_attention``; without a gradient. A query without a key is NaN.
    is_causal : bool
        Whether query i sees keys 0 to i alone.
    scale : float, optional
        By default scores are divided by ``math.sqrt(D)``, which PyTorch computes on a GPU as a product with the
        reciprocal in fp32.

    Examples
    --------
    >>> q = torch.zeros(1, 1, 2, 4)
    >>> sbt.functional.math_attention(q, q, torch.tensor([[[[1.0], [3.0]]]]), is_causal=True)
    tensor([[[[1.],
              [2.]]]])
    """
    if query.dim() < 3 or query.shape[:-2] != key.shape[:-2] or query.shape[-1] != key.shape[-1]:
        raise InvalidArgument(f"key: [..., keys, D] is expected for query of shape {[*query.shape]}; got {[*key.shape]}")
    if value.shape[:-1] != key.shape[:-1]:
        raise InvalidArgument(f"value: [..., keys, D] is expected for key of shape {[*key.shape]}; got {[*value.shape]}")
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.numel() == 0:
            raise InvalidArgument(f"{name}: a tensor with elements is expected; got shape {[*x.shape]}")
    if attn_mask is not None:
        check_mask(attn_mask, query.dtype, (*query.shape[:-1], key.shape[-2]), "attn_mask")
        attn_mask = ~attn_mask if attn_mask.dtype == torch.bool else attn_mask
    if scale is None:
        scale = float(np.float32(1) / np.float32(math.sqrt(query.shape[-1])))
    result: torch.Tensor = _MathAttention.apply(query, key, value, attn_mask, scale, is_causal)  # type: ignore[no-untyped-call]
    return result
