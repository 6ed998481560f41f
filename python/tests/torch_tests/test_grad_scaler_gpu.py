"""GradScaler on a GPU: nothing waits, CUDA graphs, gradients in both memories."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from cuda_graphs import no_waits, trained_twice

import samebits as sb
import samebits.torch as sbt
from scaler_models import model_of, wait_for_reports


def test_gradients_on_the_cpu_and_the_gpu(cuda: str) -> None:
    places = [torch.nn.Parameter(torch.zeros(3, device=d)) for d in ("cpu", cuda)]
    scaler, optimizer = sbt.GradScaler(cuda, 4.0), torch.optim.SGD(places, lr=1.0)
    for bad in (None, 0, 1):
        scaler.scale(torch.ones((), device=cuda))
        for p in places:
            p.grad = torch.full_like(p, 8.0)
        if bad is not None:
            places[bad].grad[1] = math.inf  # type: ignore[index]
        scaler.step(optimizer)
        scaler.update()
    assert [p.tolist() for p in places] == [[-2.0] * 3] * 2 and scaler.get_scale() == 1.0
    reports = wait_for_reports(scaler, 3)
    assert [r.first_bad for r in reports] == [None, "group 0, parameter 0", "group 0, parameter 1"]
    scaler = sbt.GradScaler(cuda, max_norm=1.0)
    scaler.scale(torch.ones((), device=cuda))
    with pytest.raises(sb.InvalidArgument, match="one norm needs one device"):
        scaler.unscale_(optimizer)


@pytest.mark.parametrize("max_norm", [math.inf, 1.0])
@pytest.mark.parametrize("policy", ["torch", "native"])
def test_nothing_waits_for_the_gpu(cuda: str, policy: str, max_norm: float) -> None:
    model = model_of(cuda)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)
    scaler = sbt.GradScaler(cuda, policy=policy, max_norm=max_norm)

    def step(x: torch.Tensor) -> None:
        optimizer.zero_grad()
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        list(scaler.reports())

    x = torch.ones(3, 4, device=cuda)
    step(x)
    kept: list[Any] = []
    with no_waits(cuda):
        for _ in range(10):
            step(x)
            kept.append([p.grad for p in model.parameters()])  # gradients move in every step
    assert scaler.state_dict()["samebits"].count("updates 11\n") == 1


@pytest.mark.parametrize("max_norm", [math.inf, 1.0])
def test_graph_replays_are_eager_steps(cuda: str, max_norm: float) -> None:
    def parts() -> tuple[Any, Any, Any]:
        torch.manual_seed(0)
        model = model_of(cuda)
        return (model, torch.optim.Adam(model.parameters(), lr=0.1, fused=True, capturable=True),
                sbt.GradScaler(cuda, 1024.0, max_norm=max_norm, growth_interval=3))

    inputs = torch.randn(12, 3, 4, generator=torch.Generator().manual_seed(1))
    inputs[7, 0, 0] = math.inf
    eager, replayed = trained_twice(parts, inputs.to(cuda))
    assert eager.state_dict() == replayed.state_dict()
    assert repr(list(eager.reports())) == repr(list(replayed.reports()))
