"""Elementwise operators: one expression in binary32, rounded to the result's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

import samebits
from samebits.torch.aten.registry import FORMATS, require, stored

Number = Any  # a tensor, or a number of Python


def _fp32(x: Number) -> torch.Tensor:
    """Return a tensor in fp32, or a number rounded to fp32."""
    return x.to(torch.float32) if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=torch.float32)


def _in_fp32(operation: Any) -> Callable[..., Any]:
    """Return an operation on numbers that are rounded to fp32 first."""
    return lambda *numbers: operation(*map(_fp32, numbers), to="fp32").value


_add, _subtract, _fma = map(_in_fp32, (samebits.add, samebits.subtract, samebits.fma))
multiply, divide = map(_in_fp32, (samebits.multiply, samebits.divide))


def _plus(x: Number, y: Number, alpha: float = 1) -> Any:
    return _add(x, y) if alpha == 1 else _fma(alpha, y, x)


def _minus(x: Number, y: Number, alpha: float = 1) -> Any:
    return _subtract(x, y) if alpha == 1 else _fma(-alpha, y, x)


def _over(x: Number, y: Number) -> Any:
    """Divide; by a number of Python, PyTorch multiplies by its reciprocal, which it computes in binary64."""
    return divide(x, y) if isinstance(y, torch.Tensor) else multiply(x, 1.0 / float(y))


def _lerp(x: Number, y: Number, weight: Number) -> Any:
    require(not isinstance(weight, torch.Tensor), "lerp with a tensor of weights")
    distance = _subtract(y, x)
    if abs(weight) < 0.5:
        return _fma(weight, distance, x)
    return _fma(-distance, float(np.float32(1) - np.float32(weight)), y)


def _square_root(x: Number) -> Any:
    """Round correctly; PyTorch's code for CPUs calls libraries that do not."""
    return torch.from_numpy(np.sqrt(_fp32(x).numpy()))


def _power(x: Number, exponent: Number) -> Any:
    known = isinstance(x, torch.Tensor) and not isinstance(exponent, torch.Tensor) and exponent in (1, 2)
    require(known, "pow with another exponent than 1 or 2")
    return multiply(x, x) if exponent == 2 else x


#: By the name of the operator, without its overload.
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": _plus,
    "sub": _minus,
    "rsub": lambda x, y, alpha=1: _minus(y, x, alpha),
    "mul": multiply,
    "div": _over,
    "_foreach_div": divide,
    "reciprocal": lambda x: divide(1.0, x),
    "sqrt": _square_root,
    "pow": _power,
    "lerp": _lerp,
    "addcmul": lambda x, y, z, value=1: _fma(value, multiply(y, z), x),
    "addcdiv": lambda x, y, z, value=1: _fma(value, divide(y, z), x),
}


def is_elementwise(name: str) -> bool:
    """Whether an operator is elementwise, in place and of lists too."""
    return name.removeprefix("_foreach_").removesuffix("_") in ELEMENTWISE


def elementwise(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], to: torch.dtype | None) -> Any:
    """Return an operator's result, rounded to `to` or else to the format that PyTorch chooses."""
    kind = (ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT if name in ("div", "reciprocal", "sqrt")
            else ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
    _, common = elementwise_dtypes(*args, type_promotion_kind=kind)
    require(common in FORMATS, f"{name} in {common}")
    taken = [x.to(common) if isinstance(x, torch.Tensor) else x for x in args]
    return stored(ELEMENTWISE[name](*taken, **kwargs), to or common)
