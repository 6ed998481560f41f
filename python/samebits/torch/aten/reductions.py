"""Sums, means and norms over axes, and norms of lists."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from samebits import functions
from samebits.torch.aten.registry import RULE, RULES, Conditions, require, rule


def _reduce(function: Callable[..., Any], how: Conditions, x: Any, dim: Any = None, keepdim: bool = False, *,
            dtype: Any = None) -> Any:
    require(dtype in (None, x.dtype), f"a reduction of {x.dtype} with dtype {dtype}")
    axes = range(x.dim()) if dim is None or dim == [] else [dim] if isinstance(dim, int) else dim
    axes = sorted(axis % x.dim() for axis in axes) if x.dim() else []
    y = function(x, axes, offset=x.storage_offset(), multiprocessors=how.multiprocessors, **RULE)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdim or i not in axes]
    return y.reshape(shape)


RULES["sum"] = partial(_reduce, functions.sum)
RULES["mean"] = partial(_reduce, functions.mean)


@rule("linalg_vector_norm")
def _norm(how: Conditions, x: Any, ord: float = 2, *args: Any, **kwargs: Any) -> Any:
    require(ord == 2, f"a norm of order {ord}")
    return _reduce(functions.norm, how, x, *args, **kwargs)


@rule("_foreach_norm")
def _foreach_norm(_how: Conditions, tensors: Any, ord: float = 2, dtype: Any = None) -> Any:
    require(ord == 2 and dtype is None, f"_foreach_norm of order {ord} with dtype {dtype}")
    require(all(x.is_contiguous() for x in tensors), "_foreach_norm of tensors that are not contiguous")
    return list(functions.foreach_norm(tensors, **RULE).unbind())
