"""Functions of one number, and their gradients."""

from __future__ import annotations

from typing import Any

from samebits import functions
from samebits.torch.aten.registry import RULE, RULES, Conditions, Rule, rule


def _of_one_number(name: Any) -> Rule:
    return lambda _how, x: functions.evaluate(name, x, **RULE)


RULES.update({name: _of_one_number(name) for name in (
    "exp", "expm1", "log", "log1p", "tanh", "sigmoid", "erf", "rsqrt", "silu", "softplus")})


def gelu_of(approximate: str) -> Any:
    return "gelu_tanh" if approximate == "tanh" else "gelu"


@rule("gelu")
def _gelu(_how: Conditions, x: Any, approximate: str = "none") -> Any:
    return functions.evaluate(gelu_of(approximate), x, **RULE)


@rule("gelu_backward")
def _gelu_backward(_how: Conditions, grad: Any, x: Any, approximate: str = "none") -> Any:
    return functions.gradient(gelu_of(approximate), grad, x, **RULE)


@rule("silu_backward")
def _silu_backward(_how: Conditions, grad: Any, x: Any) -> Any:
    return functions.gradient("silu", grad, x, **RULE)
