"""samebits.functions and samebits.torch.evaluate on torch tensors, on the CPU and on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import samebits
import samebits.torch as sbt
from samebits import functions
from samebits.testing import check_function
from tensors import numbers, same

TORCH = "torch_2_11"
CUDA = "cuda_13_0"
NAMES = samebits._core.enumerations()["function"]


@pytest.mark.parametrize("name", NAMES)
def test_the_bits_are_those_of_numpy(device: str, name: str) -> None:
    x = numbers("fp32", (37, 41), device)
    parameter = 1.7 if name == "pow" else None
    for rule in (CUDA, TORCH):
        try:
            expected = functions.evaluate(name, x.cpu().numpy(), parameter, rule=rule)
        except samebits.Unsupported:
            continue
        result = functions.evaluate(name, x, parameter, rule=rule)
        assert result.device == x.device
        assert same(result, torch.from_numpy(expected))
        assert same(sbt.evaluate(x, name, parameter, rule=rule), result)
        strided = functions.evaluate(name, x.T[::3], parameter, rule=rule)
        assert same(strided, result.T[::3].contiguous())


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_gradients(device: str, dtype: str) -> None:
    x = numbers(dtype, (8, 128), device).requires_grad_()
    weight = numbers(dtype, (8, 128), device, seed=1)
    for name, parameter, options in (
            ("gelu", None, {"rule": TORCH}), ("silu", None, {"rule": TORCH}), ("tanh", None, {"rule": TORCH}),
            ("pow", 3.0, {"rule": TORCH}), ("leaky_relu", 0.25, {"rule": TORCH}), ("silu", None, {})):
        y = sbt.evaluate(x, name, parameter, **options)
        assert same(y, functions.evaluate(name, x.detach(), parameter, **options))
        for grad in (weight, weight[:1, :1].expand(8, 128)):  # also one that repeats a number
            got, = torch.autograd.grad(y, x, grad, retain_graph=True)
            assert same(got, functions.gradient(name, grad.contiguous(), x.detach(), parameter, **options))


def test_what_autograd_refuses(device: str) -> None:
    x = numbers("fp32", (4,), device).requires_grad_()
    for rule in ("exact", CUDA):
        with pytest.raises(samebits.Unsupported, match=f"rule {rule} has no gradient of exp"):
            sbt.evaluate(x, "exp", rule=rule).sum().backward()
    for given in (x, {"a": x}):
        with pytest.raises(samebits.InvalidArgument, match="threads: not supported"):
            sbt.evaluate(given, "exp", rule=TORCH, threads=1)
    first, = torch.autograd.grad(sbt.evaluate(x, "silu", rule=TORCH).sum(), x, create_graph=True)
    with pytest.raises(samebits.Unsupported, match="evaluate has no second derivative"):
        first.sum().backward()


def test_lists_have_the_results_of_their_tensors(device: str) -> None:
    a, b = numbers("fp32", (5, 7), device).requires_grad_(), numbers("bf16", (300,), device)
    for rule in ("exact", TORCH):
        results = sbt.evaluate([a.T, b], "silu", rule=rule)
        assert same(results[0], functions.silu(a.detach().T, rule=rule))
        assert same(results[1], functions.silu(b, rule=rule))
        assert results[0].requires_grad and not results[1].requires_grad
        got, = torch.autograd.grad(results[0].sum(), a)
        assert same(got, functions.gradient("silu", torch.ones_like(got), a.detach(), rule=rule))
        named = sbt.evaluate({"a": a, "b": b}, "silu", rule=rule)
        assert list(named) == ["a", "b"] and same(named["b"], results[1])
    out = [torch.zeros(5, 7, device=device), torch.zeros_like(b)]
    version = out[1]._version
    with torch.no_grad():
        assert sbt.evaluate([a, b], "tanh", out=out)[0] is out[0] and not out[0].requires_grad
    assert out[1]._version > version and same(out[1], functions.tanh(b))


def test_out_and_no_grad(device: str) -> None:
    x, out = numbers("fp32", (3, 5), device).requires_grad_(), torch.zeros(3, 5, device=device)
    expected, version = functions.exp(x, rule=CUDA), out._version
    assert not expected.requires_grad
    assert sbt.evaluate(x, "exp", rule=CUDA, out=out) is out
    assert out._version > version and same(out, expected)
    with torch.no_grad():
        assert not sbt.evaluate(x, "exp", rule=CUDA).requires_grad


@pytest.mark.parametrize("gradient", [False, True])
def test_opcheck(device: str, gradient: bool) -> None:
    x = numbers("bf16", (6, 8), device).T[::2].detach().requires_grad_(gradient)
    torch.library.opcheck(torch.ops.samebits.evaluate_v1.default, (x, "gelu_tanh", None, TORCH))
    torch.library.opcheck(torch.ops.samebits.evaluate_v1.default, (x, "pow", 3.0, TORCH))


def test_the_check_of_kernels_on_torch_tensors(device: str) -> None:
    check_function(lambda x: sbt.evaluate(x, "silu", rule=TORCH), "silu", "bf16", rule=TORCH,
                   nan="canonical", examples=1, device=device)
    with pytest.raises(AssertionError, match="silu of fp32 by torch_2_11"):
        check_function(lambda x: x * 0.5, "silu", rule=TORCH, examples=1, device=device)


def test_backends_of_a_gpu(cuda: str) -> None:
    x = numbers("fp32", (100, 100), cuda)
    results: list[Any] = [functions.gelu(x, rule=TORCH, backend=backend)
                          for backend in (None, "cuda-emulated", "cuda-native")]
    expected = torch.from_numpy(np.asarray(functions.gelu(x.cpu().numpy(), rule=TORCH)))
    assert all(same(result, expected) for result in results)
