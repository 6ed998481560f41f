"""PyTorch's operators on a GPU against samebits.functions with the rule torch_2_11, bit for bit.

fp32: every 61st of the 2^32 codes by default, all codes with SAMEBITS_EXHAUSTIVE=1. fp16 and bf16:
all 65,536 codes. All NaN count as equal. The rule is that of PyTorch 2.11 on Hopper; other versions
and other GPUs are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torch.nn.functional as F

from samebits import functions

STRIDE = 1 if os.environ.get("SAMEBITS_EXHAUSTIVE") == "1" else 61
CHUNK = 1 << 24
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
    Operator("exp", torch.exp),
    Operator("exp2", torch.exp2),
    Operator("expm1", torch.expm1),
    Operator("log", torch.log),
    Operator("log2", torch.log2),
    Operator("log1p", torch.log1p),
    Operator("tanh", torch.tanh),
    Operator("erf", torch.erf),
    Operator("rsqrt", torch.rsqrt),
    Operator("reciprocal", torch.reciprocal),
    Operator("sigmoid", torch.sigmoid),
    Operator("silu", F.silu),
    Operator("gelu", F.gelu),
    Operator("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")),
    Operator("softplus", F.softplus),
    Operator("elu", F.elu, 1.0),
    Operator("elu", lambda x: F.elu(x, 0.7), 0.7),
    Operator("relu", F.relu),
    Operator("leaky_relu", F.leaky_relu, 0.01),
    Operator("mish", F.mish),
    Operator("hardswish", F.hardswish),
    *(power(e) for e in (0.0, 1.0, 0.5, -0.5, -1.0, 2.0, 3.0, -2.0, 0.3, 1.5, 2.001, -3.0)),
]
FORMATS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def codes(format: str, device: str) -> Iterator[torch.Tensor]:
    """The operands as tensors of at most CHUNK elements."""
    if format != "fp32":
        yield torch.arange(1 << 16, device=device).to(torch.int16).repeat(16).view(FORMATS[format])
        return
    for first in range(0, 1 << 32, CHUNK * STRIDE):
        last = min(first + CHUNK * STRIDE, 1 << 32)
        numbers = torch.arange(first, last, STRIDE, device=device, dtype=torch.int64)
        yield numbers.to(torch.int32).view(torch.float32)


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


def bits(t: torch.Tensor) -> npt.NDArray[np.int32 | np.int16]:
    """The codes of a tensor, all NaN alike."""
    t = t.detach()
    integer = torch.int32 if t.dtype == torch.float32 else torch.int16
    nan = 0x7FFFFFFF if t.dtype == torch.float32 else 0x7FFF
    array: npt.NDArray[np.int32 | np.int16] = (
        t.view(integer).masked_fill(t.isnan(), nan).cpu().numpy())
    return array


def different(torch_result: torch.Tensor, model: torch.Tensor, x: torch.Tensor) -> str:
    """The number of results that differ and the first one, or an empty text."""
    got, expected = bits(torch_result), bits(model)
    wrong = np.flatnonzero(got != expected)
    if wrong.size == 0:
        return ""
    first = wrong[0]
    mask = 0xFFFFFFFF if got.itemsize == 4 else 0xFFFF
    return (f"{wrong.size} of {got.size}; x = {x[first].item()!r}: "
            f"PyTorch {int(got[first]) & mask:X}, model {int(expected[first]) & mask:X}")


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
        model = functions.gradient(
            operator.name, grad.cpu(), on_cpu, operator.parameter, rule=RULE)
        text = different(x.grad, model, on_cpu)
        found.append(text and "gradient: " + text)
    return [text for text in found if text]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_the_gpu_returns_the_rules_bits(operator: Operator, format: str, cuda: str) -> None:
    if not torch.__version__.startswith("2.11."):
        pytest.skip(f"the rule is that of PyTorch 2.11, not {torch.__version__}")
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("the rule is that of GPUs of compute capability 9.0")
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
