"""Functions of one number, and their gradients."""

from __future__ import annotations

from typing import Any

from samebits import functions
from samebits.torch.aten.registry import RULE, RULES


_OF_ONE_NUMBER: Any = "exp expm1 log log1p tanh sigmoid erf rsqrt silu softplus".split()


def gelu_of(approximate: str) -> Any:
    return "gelu_tanh" if approximate == "tanh" else "gelu"


RULES.update({name: lambda _how, x, *, name=name: functions.evaluate(name, x, **RULE) for name in _OF_ONE_NUMBER})
RULES.update({
    "gelu": lambda _how, x, approximate="none": functions.evaluate(gelu_of(approximate), x, **RULE),
    "gelu_backward": lambda _how, grad, x, approximate="none": functions.gradient(
        gelu_of(approximate), grad, x, **RULE),
    "silu_backward": lambda _how, grad, x: functions.gradient("silu", grad, x, **RULE),
})
