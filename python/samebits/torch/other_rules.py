"""Rules that a result may follow instead of that of PyTorch's kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

import samebits
from samebits.errors import Unsupported
from samebits.torch.recompute import Conditions, overload_of, recompute

#: A rule: it takes an operator's arguments, returns its results and writes what the operator writes.
OtherRule = Callable[[list[Any], dict[str, Any]], Any]
_ORDERS = {"sequential": "a sum in rising order", "tree": "a sum by pairs"}


def other_rules(operator: str, how: Conditions) -> dict[str, OtherRule]:
    """Return other rules of an operator, by what they are; one that does not apply raises."""
    return {"the rule, with subnormals flushed to zero": partial(_flushed, operator, how),
            **{name: partial(_sum_in, operator, order) for order, name in _ORDERS.items()},
            "PyTorch's own kernel for CPUs": lambda args, kwargs: overload_of(operator)(*args, **kwargs)}


def _flushed(operator: str, how: Conditions, args: list[Any], kwargs: dict[str, Any]) -> Any:
    _flush((args, kwargs))
    results = recompute(operator, args, kwargs, how)
    _flush((args, kwargs, results))
    return results


def _flush(x: Any) -> None:
    """Set subnormals in fp32 to zero."""
    for y in tree_leaves(x):
        if isinstance(y, torch.Tensor) and y.dtype == torch.float32:
            y.copy_(torch.where(y.abs() < 2.0**-126, torch.zeros((), dtype=y.dtype).copysign(y), y))


def _sum_in(operator: str, order: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    x = args[0]
    if operator.split(".")[1] != "sum" or kwargs or x.numel() > 1 << 20:
        raise Unsupported("no short sum")
    axes = [axis % x.dim() for axis in (args[1] if len(args) > 1 and args[1] else range(x.dim()))]
    rest = [axis for axis in range(x.dim()) if axis not in axes]
    rows = x.permute(*rest, *axes).reshape(math.prod(x.shape[axis] for axis in rest), -1)
    if len(rows) > 1 << 12:
        raise Unsupported("no few sums")
    sums = [samebits.dot(row.contiguous(), torch.ones_like(row), precision="fp32", order=order) for row in rows]
    return torch.tensor(sums, dtype=torch.float32).to(x.dtype)
