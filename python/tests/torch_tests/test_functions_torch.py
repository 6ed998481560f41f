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
from tensors import numbers

TORCH = "torch_2_11"
CUDA = "cuda_13_0"
NAMES = samebits._core.names("function")


def codes(x: torch.Tensor) -> list[int]:
    x = x.detach().cpu().contiguous()
    integer = torch.int32 if x.dtype == torch.float32 else torch.int16
    return [int(code) for code in x.view(integer).ravel()]


def same(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape and codes(x) == codes(y)


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
    for name, parameter in (("gelu", None), ("silu", None), ("tanh", None), ("pow", 3.0),
                            ("leaky_relu", 0.25)):
        x.grad = None
        y = sbt.evaluate(x, name, parameter, rule=TORCH)
        assert same(y, functions.evaluate(name, x.detach(), parameter, rule=TORCH))
        y.backward(weight)
        assert x.grad is not None
        expected = functions.gradient(name, weight, x.detach(), parameter, rule=TORCH)
        assert same(x.grad, expected)


def test_lists_have_the_results_of_their_tensors(device: str) -> None:
    a = numbers("fp32", (5, 7), device)
    b = numbers("bf16", (300,), device)
    for rule in ("exact", TORCH):
        results = sbt.evaluate([a.T, b], "gelu", rule=rule)
        assert same(results[0], functions.gelu(a.T, rule=rule))
        assert same(results[1], functions.gelu(b, rule=rule))
        named = sbt.evaluate({"a": a, "b": b}, "silu", rule=rule)
        assert list(named) == ["a", "b"] and same(named["b"], functions.silu(b, rule=rule))
    out = [torch.zeros_like(a), torch.zeros_like(b)]
    version = out[1]._version
    assert sbt.evaluate([a, b], "tanh", out=out)[0] is out[0]
    assert out[1]._version > version
    assert same(out[1], functions.tanh(b))


def test_autograd_records_lists(device: str) -> None:
    a = numbers("fp32", (5, 7), device).requires_grad_()
    b = numbers("fp32", (3,), device)
    results = sbt.evaluate([a, b], "silu")
    assert results[0].requires_grad and not results[1].requires_grad
    results[0].backward(torch.ones(5, 7, device=device))
    assert a.grad is not None
    ones = torch.ones(5, 7, device=device)
    assert same(a.grad, functions.gradient("silu", ones, a.detach()))
    with pytest.raises(samebits.InvalidArgument, match="threads: not supported"):
        sbt.evaluate({"a": a}, "silu", threads=1)
    with torch.no_grad():
        assert not sbt.evaluate([a], "silu")[0].requires_grad


def test_a_gradient_that_repeats_one_number(device: str) -> None:
    x = numbers("fp32", (5, 7), device).requires_grad_()
    sbt.evaluate(x, "sigmoid", rule=TORCH).sum().backward()
    assert x.grad is not None
    ones = torch.ones(5, 7, device=device)
    assert same(x.grad, functions.gradient("sigmoid", ones, x.detach(), rule=TORCH))


def test_the_rule_is_exact_by_default(device: str) -> None:
    x = numbers("fp32", (5, 7), device).requires_grad_()
    y = sbt.evaluate(x, "silu")
    assert same(y, functions.silu(x.detach()))
    y.sum().backward()
    assert x.grad is not None
    ones = torch.ones(5, 7, device=device)
    assert same(x.grad, functions.gradient("silu", ones, x.detach()))
    with pytest.raises(samebits.Unsupported, match="rule exact has no gradient of exp"):
        sbt.evaluate(x, "exp").sum().backward()


def test_out_and_no_grad(device: str) -> None:
    x = numbers("fp32", (3, 5), device).requires_grad_()
    expected = functions.exp(x, rule=CUDA)
    assert not expected.requires_grad
    out = torch.zeros(3, 5, device=device)
    version = out._version
    assert sbt.evaluate(x, "exp", rule=CUDA, out=out) is out
    assert out._version > version
    assert same(out, expected)
    with torch.no_grad():
        assert not sbt.evaluate(x, "exp", rule=CUDA).requires_grad


def test_other_rules_have_no_gradient(device: str) -> None:
    x = numbers("fp32", (4,), device).requires_grad_()
    y = sbt.evaluate(x, "exp", rule=CUDA)
    with pytest.raises(samebits.Unsupported, match="rule cuda_13_0 has no gradient of exp"):
        y.sum().backward()


def test_second_derivatives_are_refused(device: str) -> None:
    x = numbers("fp32", (4,), device).requires_grad_()
    y = sbt.evaluate(x, "silu", rule=TORCH)
    first, = torch.autograd.grad(y.sum(), x, create_graph=True)
    ones = torch.ones(4, device=device)
    assert same(first, functions.gradient("silu", ones, x.detach(), rule=TORCH))
    with pytest.raises(samebits.Unsupported, match="evaluate has no second derivative"):
        first.sum().backward()


def test_options_that_autograd_would_lose(device: str) -> None:
    x = numbers("fp32", (4,), device).requires_grad_()
    with pytest.raises(samebits.InvalidArgument, match="threads: not supported"):
        sbt.evaluate(x, "exp", rule=TORCH, threads=1)


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


def test_the_stream_is_torchs(cuda: str) -> None:
    x = numbers("fp32", (1024, 1024), cuda)
    expected = functions.tanh(x, rule=CUDA)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        y = x.clone()
        for _ in range(20):
            y = y * 1.0
        result = functions.tanh(y, rule=CUDA)
    stream.synchronize()
    assert same(result, expected)


def test_backends_of_a_gpu(cuda: str) -> None:
    x = numbers("fp32", (100, 100), cuda)
    results: list[Any] = [functions.gelu(x, rule=TORCH, backend=backend)
                          for backend in (None, "cuda-emulated", "cuda-native")]
    expected = torch.from_numpy(np.asarray(functions.gelu(x.cpu().numpy(), rule=TORCH)))
    assert all(same(result, expected) for result in results)
