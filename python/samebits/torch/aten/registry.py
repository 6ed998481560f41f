"""The registry of rules: by ATen operator, what PyTorch's CUDA kernel computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import samebits
from samebits.errors import Unsupported

RULE: Any = {"rule": "torch_2_11"}
FORMATS = (torch.float32, torch.bfloat16, torch.float16)
Rule = Callable[..., Any]
#: By the name of the operator, without its overload. The first argument: Conditions.
RULES: dict[str, Rule] = {}


@dataclass(frozen=True)
class Conditions:
    """What a kernel's results depend on besides its operands.

    Attributes
    ----------
    multiprocessors : int
        Streaming multiprocessors of the GPU: 132 of an H100 and of an H200.
    deterministic : bool
        Whether ``torch.use_deterministic_algorithms(True)`` was set.
    product : str, optional
        The rule of a matrix product, as `samebits.find_rule` returns it.
    """

    multiprocessors: int = 132
    deterministic: bool = False
    product: str | None = None


def require(condition: bool, what: str) -> None:
    """Refuse what has no rule."""
    if not condition:
        raise Unsupported(f"not covered: {what}")


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of operators."""
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function
    return register


def stored(x: torch.Tensor, dtype: torch.dtype) -> Any:
    """Return a tensor in fp32, rounded to a format."""
    return x if x.dtype == dtype else samebits.convert(x, dtype, overflow="ieee")
