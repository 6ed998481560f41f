"""Functions of one number, and their gradients."""

from __future__ import annotations

from typing import Any

from samebits import functions
from samebits.torch.aten.registry import RULE, RULES, Rule


def _of_one_number(name: Any) -> Rule:
    return lambda _how, x: functions.evaluate(name, x, **RULE)


RULES.update({name: _of_one_number(name) for name in (
    "exp", "expm1", "log", "log1p", "tanh", "sigmoid", "erf", "rsqrt", "silu", "softplus")})


def gelu_of(approximate: str) -> Any:
    return "gelu_tanh" if approximate == "tanh" else "gelu"


RULES.update({
    "gelu": lambda _how, x, approximate="none": functions.evaluate(gelu_of(approximate), x, **RULE),
    "gelu_backward": lambda _how, grad, x, approximate="none": functions.gradient(
        gelu_of(approximate), grad, x, **RULE),
    "silu_backward": lambda _how, grad, x: functions.gradient("silu", grad, x, **RULE),
})
