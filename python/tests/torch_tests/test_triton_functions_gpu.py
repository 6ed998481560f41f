"""Triton's functions and torch.compile's activations on a GPU against samebits.functions with the
rules triton_3_6 and torch_compile_2_11, bit for bit.

fp32: every 61st of the 2^32 codes by default, all codes with SAMEBITS_EXHAUSTIVE=1. fp16 and bf16: all
65,536 codes. All NaN count as equal. The rules are those of Triton 3.6 and PyTorch 2.11 on Hopper; other
versions and other GPUs are skipped.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from gpu_rules import FORMATS, codes, different, require
from test_functional import rows

from samebits import functions

try:
    import triton
    import triton.language as tl

    @triton.jit  # type: ignore[untyped-decorator]
    def evaluate_kernel(x, y, NAME: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + at).to(tl.float32)
        if NAME == "exp":
            v = tl.exp(v)
        elif NAME == "exp2":
            v = tl.exp2(v)
        elif NAME == "log":
            v = tl.log(v)
        elif NAME == "log2":
            v = tl.log2(v)
        elif NAME == "erf":
            v = tl.erf(v)
        elif NAME == "rsqrt":
            v = tl.rsqrt(v)
        else:
            v = tl.sigmoid(v)
        tl.store(y + at, v)

    @triton.jit  # type: ignore[untyped-decorator]
    def softmax_kernel(x, y, n, BLOCK: tl.constexpr):  # type: ignore
        i = tl.arange(0, BLOCK)
        at = tl.program_id(0) * BLOCK + i
        v = tl.load(x + at, mask=i < n, other=float("-inf")).to(tl.float32)
        tl.store(y + at, tl.softmax(v), mask=i < n)

except ImportError:  # the tests are skipped
    pass


def compare(format: str, device: str, gpu: Callable[[torch.Tensor], torch.Tensor],
            model: Callable[[torch.Tensor], torch.Tensor]) -> list[str]:
    found = []
    for x in codes(format, device):
        on_cpu = x.cpu()
        text = different(gpu(x), model(on_cpu), on_cpu)
        if text:
            found.append(text)
    return found


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2", "erf", "rsqrt", "sigmoid"])
def test_triton_returns_the_rules_bits(name: str, format: str, cuda: str) -> None:
    require(torch="2.11.", triton="3.6.")

    def run(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        evaluate_kernel[(x.numel() // 1024,)](x, y, name, 1024)
        return y

    found = compare(format, cuda, run, lambda x: getattr(functions, name)(x, rule="triton_3_6"))
    assert not found, f"{len(found)} chunks differ, first: {found[0]}"


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_torch_compile_returns_the_rules_bits(name: str, format: str, cuda: str) -> None:
    require(torch="2.11.", triton="3.6.")
    torch._dynamo.reset()
    compiled = torch.compile(ACTIVATIONS[name])
    model = getattr(functions, name)
    found = compare(format, cuda, compiled, lambda x: model(x, rule="torch_compile_2_11"))
    assert not found, f"{len(found)} chunks differ, first: {found[0]}"


def softmax_differences(n: int, block: int, warps: int, format: str, device: str) -> str:
    x = rows(block, FORMATS[format], device, seed=n)  # elements from n on are not read
    y = torch.empty_like(x)
    softmax_kernel[(len(x),)](x, y, n, block, num_warps=warps)
    on_cpu = x.cpu()[:, :n]
    model = functions.softmax(on_cpu.contiguous(), rule="triton_3_6", num_warps=warps)
    text = different(y[:, :n], model, on_cpu)
    return text and f"n {n}, block {block}, {warps} warps: {text}"


@pytest.mark.parametrize("format", FORMATS)
def test_softmax_of_triton_returns_the_rules_bits(format: str, cuda: str) -> None:
    require(torch="2.11.", triton="3.6.")
    found = []
    cases = 0
    for block in (1 << i for i in range(1, 15)):
        for n in {block, block - 1, block // 2 + 1, block // 2 + block // 4}:
            if n <= block // 2:
                continue
            for warps in (1, 2, 4, 8, 16):
                cases += 1
                found.append(softmax_differences(n, block, warps, format, cuda))
    found = [text for text in found if text]
    assert not found, "\n".join([f"{len(found)} of {cases} differ", *found[:12]])
