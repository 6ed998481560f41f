"""clip_grad_norm_ and inspect_gradients: the bits of the library's functions on the host."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from cuda_graphs import no_waits

import samebits as sb
import samebits.torch as sbt
from tensors import same

SHAPES = ((3, 5), (7,), (), (0,), (2, 3, 4, 5), (70, 100))


def gradients(dtype: torch.dtype, device: str, seed: int = 0) -> list[torch.nn.Parameter]:
    make = torch.Generator().manual_seed(seed)
    parameters = []
    for shape in SHAPES:
        p = torch.nn.Parameter(torch.zeros(shape, dtype=dtype, device=device))
        p.grad = torch.randn(shape, generator=make).to(device, dtype)
        parameters.append(p)
    parameters.append(torch.nn.Parameter(torch.zeros(2, device=device)))  # without a gradient
    return parameters


def on_host(parameters: list[torch.nn.Parameter]) -> list[torch.Tensor]:
    return [p.grad.detach().clone().cpu() for p in parameters if p.grad is not None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("max_norm", [1.0, 1e-6, 1e6, 0.0, math.inf])
def test_clip_grad_norm(device: str, dtype: torch.dtype, max_norm: float) -> None:
    for seed in range(2):  # gradients move
        parameters = gradients(dtype, device, seed)
        expected = on_host(parameters)
        report = sb.clip(expected, max_norm)
        norm = sbt.clip_grad_norm_(parameters, max_norm)
        assert norm.dtype == torch.float64 and norm.device == parameters[0].device and norm.item() == report.norm
        assert all(same(a, b) for a, b in zip(on_host(parameters), expected, strict=True))


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_gradients_that_are_not_finite_stay(device: str, bad: float) -> None:
    parameters = gradients(torch.float32, device)
    assert parameters[1].grad is not None
    parameters[1].grad[3] = bad
    before = on_host(parameters)
    norm = sbt.clip_grad_norm_(iter(parameters), 1.0)
    assert norm.item() == bad or math.isnan(bad) and norm.isnan()
    assert all(same(a, b) for a, b in zip(before, on_host(parameters), strict=True))
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        sbt.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)


def test_one_parameter_and_none(device: str) -> None:
    (p, *_) = gradients(torch.float32, device)
    expected = sb.l2norm(on_host([p]))[0]
    assert sbt.clip_grad_norm_(p, 1.0).item() == expected
    p.grad = None
    assert sbt.clip_grad_norm_([p], 1.0).item() == 0.0
    assert sbt.clip_grad_norm_([], 1.0).item() == 0.0


def test_other_orders_in_memory(device: str) -> None:
    """A gradient is read as it lies in memory: the norm is that of the transposed array."""
    p = torch.nn.Parameter(torch.zeros(40, 30, device=device))
    p.grad = torch.randn(30, 40, generator=torch.Generator().manual_seed(1)).to(device).t()
    expected = p.grad.cpu().t().contiguous().clone()
    report = sb.clip(expected, 1.0)
    assert sbt.clip_grad_norm_([p], 1.0).item() == report.norm
    assert same(p.grad.t(), expected)


def test_what_is_refused(device: str) -> None:
    p = torch.nn.Parameter(torch.zeros(4, dtype=torch.float64, device=device))
    p.grad = torch.ones_like(p)
    for call, message in ((lambda: sbt.clip_grad_norm_([p], 1.0), "parameters: gradient 0 is torch.float64"),
                          (lambda: sbt.clip_grad_norm_([p], 1.0, math.inf), "norm_type: 2 is expected; got inf"),
                          (lambda: sbt.clip_grad_norm_([p], -1.0), "max_norm: a number >= 0 is expected"),
                          (lambda: sbt.inspect_gradients([("weight", p)]),
                           "module: the gradient of weight is torch.float64")):
        with pytest.raises(sb.InvalidArgument, match=message):
            call()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_inspect_gradients(device: str, dtype: torch.dtype) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)).to(device, dtype)
    make = torch.Generator().manual_seed(2)
    for p in model.parameters():
        p.grad = torch.randn(p.shape, generator=make).to(device, dtype)
    model[0].bias.grad = None
    assert model[1].weight.grad is not None
    model[1].weight.grad[1, 2] = math.inf
    report = sbt.inspect_gradients(model)
    assert list(report.tensors) == ["0.weight", "1.weight", "1.bias"]
    assert report.first_bad == "1.weight" and report.total.inf == 1
    expected = sb.inspect({name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None})
    assert report.total == expected.total and report.tensors == expected.tensors
    assert report.exponents == expected.exponents
    assert sum(sbt.inspect_gradients(model, distribution=False).exponents) == 0
    assert np.isfinite(report.tensors["1.bias"].norm)


def test_clipping_does_not_wait(cuda: str) -> None:
    parameters = gradients(torch.float32, cuda)
    sbt.clip_grad_norm_(parameters, 1.0)
    with no_waits(cuda):
        norm = sbt.clip_grad_norm_(parameters, 0.5)
    assert norm.item() <= 1.0 + 1e-3


def test_lists_of_a_graph_stay(cuda: str) -> None:
    """The list of a warm-up on the stream of the capture is the graph's, and is never freed."""
    p = torch.nn.Parameter(torch.zeros(64, device=cuda))
    p.grad = torch.ones_like(p)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        sbt.clip_grad_norm_([p], 1e9)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        norm = sbt.clip_grad_norm_([p], 1e9)
    others = [torch.nn.Parameter(torch.zeros(64, device=cuda)) for _ in range(8)]
    with torch.cuda.stream(stream):
        for other in others:  # more lists than are kept
            other.grad = torch.ones_like(other)
            sbt.clip_grad_norm_([other], 1e9)
    torch.cuda.synchronize()
    for value in (3.0, 5.0):
        p.grad.fill_(value)
        torch.cuda.synchronize()
        graph.replay()
        torch.cuda.synchronize()
        assert norm.item() == 8 * value
