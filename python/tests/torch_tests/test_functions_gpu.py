"""PyTorch's operators on a GPU against samebits.functions with the rule torch_2_11, bit for bit.

fp32: every 61st of the 2^32 codes by default, all codes with SAMEBITS_EXHAUSTIVE=1. fp16 and bf16:
all 65,536 codes. All NaN count as equal. The rule is that of PyTorch 2.11 on Hopper; other versions
and other GPUs are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from gpu_rules import FORMATS, codes, different, require

from samebits import functions

RULE = "torch_2_11"


@dataclass(frozen=True)
class Operator:
    """One of PyTorch's operators, and the name and parameter of its model."""

    name: str
    call: Callable[[torch.Tensor], torch.Tensor]
    parameter: float | None = None

    def __str__(self) -> str:
        return self.name if self.parameter is None else f"{self.name}_{self.parameter}"


def power(exponent: float) -> Operator:
    return Operator("pow", lambda x: torch.pow(x, exponent), exponent)


OPERATORS = [
    *(Operator(name, getattr(torch, name)) for name in (
        "exp", "exp2", "expm1", "log", "log2", "log1p", "tanh", "erf", "rsqrt", "reciprocal", "sigmoid")),
    *(Operator(name, getattr(F, name)) for name in ("silu", "gelu", "softplus", "relu", "mish", "hardswish")),
    Operator("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")),
    Operator("elu", F.elu, 1.0),
    Operator("elu", lambda x: F.elu(x, 0.7), 0.7),
    Operator("leaky_relu", F.leaky_relu, 0.01),
    *(power(e) for e in (0.0, 1.0, 0.5, -0.5, -1.0, 2.0, 3.0, -2.0, 0.3, 1.5, 2.001, -3.0)),
]
def gradients(x: torch.Tensor) -> torch.Tensor:
    """Pseudo-random gradients: any code, or in every second element a number near 1."""
    mixed = torch.arange(x.numel(), device=x.device, dtype=torch.int64) * 0x9E3779B1
    mixed = (mixed ^ (mixed >> 15)) * 0x85EBCA6B
    mixed = (mixed ^ (mixed >> 13)) & 0xFFFFFFFF
    near_one = 0x3F000000 + mixed % 0x01000000
    chosen = torch.where(mixed & 0x10000 != 0, mixed, near_one)
    if x.dtype == torch.float32:
        return chosen.to(torch.int32).view(torch.float32)
    return (chosen >> 16).to(torch.int16).view(x.dtype)


def compare(operator: Operator, format: str, device: str) -> list[str]:
    """What differs in results and gradients, one text per chunk."""
    found = []
    for x in codes(format, device):
        grad = gradients(x)
        x.requires_grad_()
        y = operator.call(x)
        y.backward(grad)
        assert x.grad is not None
        on_cpu = x.detach().cpu()
        arguments = (on_cpu,) if operator.parameter is None else (on_cpu, operator.parameter)
        model = getattr(functions, operator.name)(*arguments, rule=RULE)
        found.append(different(y, model, on_cpu))
        model = functions.gradient(operator.name, grad.cpu(), on_cpu, operator.parameter, rule=RULE)
        text = different(x.grad, model, on_cpu)
        found.append(text and "gradient: " + text)
    return [text for text in found if text]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_the_gpu_returns_the_rules_bits(operator: Operator, format: str, cuda: str) -> None:
    require(torch="2.11.")
    found = compare(operator, format, cuda)
    assert not found, f"{len(found)} comparisons differ, first: {found[0]}"


@pytest.mark.parametrize("format", ["fp16", "bf16"])
@pytest.mark.parametrize("name", ["reciprocal", "leaky_relu"])
def test_the_comparison_on_the_cpu(name: str, format: str) -> None:
    """The CPU rounds these functions as the GPU does; so the comparison itself is tested without a
    GPU."""
    operator = next(o for o in OPERATORS if o.name == name)
    assert compare(operator, format, "cpu") == []
    wrong = Operator("reciprocal", torch.abs)
    assert compare(wrong, format, "cpu") != []
