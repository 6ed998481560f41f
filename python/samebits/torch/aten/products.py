"""Matrix products and attention."""

from __future__ import annotations

from typing import Any

import torch

import samebits
from samebits import functions
from samebits.torch.aten.registry import RULES, Conditions, require, rule
from samebits.torch.operators import PRODUCTS


def _product(how: Conditions, a: Any, b: Any, c: Any = None) -> Any:
    require(how.product is not None, "a product without its rule")
    return samebits.matmul(a, b, rule=how.product, c=c, out=a.dtype)


def rules_of_product(name: str, args: Any, results: torch.Tensor, rows: slice, cols: slice) -> list[str]:
    """Return the rules that give the results in some rows and columns of a product; of a batch, of its first one."""
    a, b = (args[i] for i in PRODUCTS[name])
    if name == "bmm":
        a, b = a[0], b[0]
    c = args[0].expand(a.shape[0], b.shape[1])[rows, cols].contiguous() if name == "addmm" else None
    return samebits.find_rule(a[rows], b[:, cols], results, c=c, sample=0)


RULES["mm"] = lambda how, a, b: _product(how, a, b)


@rule("addmm")
def _addmm(how: Conditions, bias: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    require(beta == 1 and alpha == 1, "addmm with beta or alpha")
    return _product(how, a, b, bias.expand(a.shape[0], b.shape[1]).contiguous())


@rule("bmm")
def _bmm(how: Conditions, a: Any, b: Any) -> Any:
    return torch.stack([_product(how, x, y) for x, y in zip(a, b, strict=True)])


def _attention_options(how: Conditions, kernel: str, dropout: float, causal: bool, scale: Any) -> Any:
    return {"kernel": kernel, "causal": causal, "scale": scale, "dropout": dropout,
            "multiprocessors": how.multiprocessors}


@rule("_scaled_dot_product_flash_attention")
def _flash(how: Conditions, q: Any, k: Any, v: Any, dropout: float = 0.0, causal: bool = False,
           _mask: bool = False, *, scale: Any = None) -> Any:
    return functions.attention(q, k, v, **_attention_options(how, "flash", dropout, causal, scale))


@rule("_scaled_dot_product_flash_attention_backward")
def _flash_backward(how: Conditions, grad: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, _cq: Any, _ck: Any,
                    _mq: Any, _mk: Any, dropout: float, causal: bool, *_seed: Any, scale: Any = None) -> Any:
    require(how.deterministic, "gradients of FlashAttention without deterministic algorithms")
    return functions.attention_backward(grad, q, k, v, out, lse,
                                        **_attention_options(how, "flash", dropout, causal, scale))


@rule("_scaled_dot_product_cudnn_attention")
def _cudnn(how: Conditions, q: Any, k: Any, v: Any, bias: Any, _lse: bool, dropout: float = 0.0,
           causal: bool = False, _mask: bool = False, *, scale: Any = None) -> Any:
    require(bias is None, "attention with a bias")
    y = functions.attention(q, k, v, **_attention_options(how, "cudnn", dropout, causal, scale))
    return y.out, y.lse.unsqueeze(-1)


@rule("_scaled_dot_product_cudnn_attention_backward")
def _cudnn_backward(how: Conditions, grad: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, _seed: Any,
                    _offset: Any, bias: Any, _cq: Any, _ck: Any, _mq: Any, _mk: Any, dropout: float,
                    causal: bool, *, scale: Any = None) -> Any:
    """Above 256 keys the gradient of q differs from run to run: None."""
    require(bias is None, "attention with a bias")
    return functions.attention_backward(grad, q, k, v, out, lse.squeeze(-1), dq=k.shape[2] <= 256,
                                        **_attention_options(how, "cudnn", dropout, causal, scale))
