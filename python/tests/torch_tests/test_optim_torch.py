"""samebits.torch.optim against PyTorch's optimizers on CUDA tensors, bit for bit.

PyTorch runs on the GPU; this library runs on the GPU and on the CPU, from the same gradients.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cuda_graphs import captured, no_waits, trained_twice
from optimizers import all_bits

import samebits.torch as sbt
from samebits.torch import optim

SIZES = (5000, 1, 257, 1024, 4099)


def bits(t: torch.Tensor) -> torch.Tensor:
    t = t.detach()
    return t.view(torch.int32 if t.itemsize == 4 else torch.int16)


def differences(ours: list[Any], theirs: list[Any], count: torch.Tensor) -> None:
    """Add the number of different elements to `count`, without waiting."""
    for a, b in zip(ours, theirs, strict=True):
        count += (bits(a).to(b.device) != bits(b)).sum()


def states(optimizer: Any, keys: tuple[str, ...]) -> list[torch.Tensor]:
    params = optimizer.param_groups[0]["params"]
    found = [optimizer.state[p].get(key) for p in params for key in keys]
    return [*params, *(t for t in found if t is not None)]


SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("AdamW", {"lr": 1e-3, "weight_decay": 0.1, "betas": (0.9, 0.95)}),
    ("AdamW", {"lr": 3e-4, "weight_decay": 0.0, "betas": (0.8, 0.999), "eps": 1e-6}),
    *((name, {"weight_decay": 0.0, "eps": 0.0}) for name in ("AdamW", "Adam")),
    ("Adam", {"lr": 1e-3, "weight_decay": 0.0}),
    ("Adam", {"lr": 1e-3, "weight_decay": 0.1, "betas": (0.85, 0.9999)}),
    ("SGD", {"lr": 1e-2}),
    ("SGD", {"lr": 1e-2, "momentum": 0.9, "weight_decay": 0.1}),
    ("SGD", {"lr": 1e-2, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 1e-2, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
]


@pytest.mark.parametrize("where", ["cuda", "cpu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("kind", ["foreach", "fused"])
@pytest.mark.parametrize("name,settings", SETTINGS)
def test_a_thousand_steps(cuda: str, where: str, dtype: torch.dtype, kind: str, name: str,
                          settings: dict[str, Any]) -> None:
    make = torch.Generator(cuda).manual_seed(1)
    values = [torch.randn(n, generator=make, device=cuda).to(dtype) for n in SIZES]
    theirs_params = [torch.nn.Parameter(v.clone()) for v in values]
    ours_params = [torch.nn.Parameter(v.to(where, copy=True)) for v in values]
    theirs = getattr(torch.optim, name)(theirs_params, **settings, **{kind: True})
    form = "fp32" if dtype is torch.float32 else "bf16"
    ours = getattr(optim, name)(ours_params, **settings, weights="direct", states=form, profile=f"torch_{kind}")
    # Without grad_scale, fused Adam with L2 has bits that depend on the place; with it, fused SGD has.
    if kind == "fused" and name != "SGD":
        theirs.grad_scale = torch.ones((), device=cuda)
        theirs.found_inf = torch.zeros((), device=cuda)
    keys = ("momentum_buffer",) if name == "SGD" else ("exp_avg", "exp_avg_sq")
    wrong = torch.zeros((), dtype=torch.int64, device=cuda)
    steps = 1000 if where == "cuda" else 200
    for step in range(steps):
        for p, q in zip(theirs_params, ours_params, strict=True):
            gradient = torch.randn(p.shape, generator=make, device=cuda) * 10.0 ** -(step % 7)
            if settings.get("eps") == 0.0:  # 0 / 0: such elements become NaNs
                gradient[::3] = 0
            p.grad = gradient.to(dtype)
            q.grad = p.grad.to(where, copy=True)
        theirs.step()
        ours.step()
        differences(states(ours, keys), states(theirs, keys), wrong)
    assert int(wrong) == 0


@pytest.mark.parametrize("where", ["cuda", "cpu"])
@pytest.mark.parametrize("settings", [s for name, s in SETTINGS if name == "SGD"])
def test_fused_sgd_under_a_loss_scale(cuda: str, where: str, settings: dict[str, Any]) -> None:
    """Sizes that are no multiple of 4: in others PyTorch rounds by place (docs/findings.md)."""
    make = torch.Generator(cuda).manual_seed(4)
    values = [torch.randn(n, generator=make, device=cuda) for n in (1, 257, 4099, 100003)]
    theirs_params = [torch.nn.Parameter(v.clone()) for v in values]
    ours_params = [torch.nn.Parameter(v.to(where, copy=True)) for v in values]
    theirs = torch.optim.SGD(theirs_params, **settings, fused=True)
    ours = optim.SGD(ours_params, **settings, profile="torch_fused")
    for optimizer, device in ((theirs, cuda), (ours, where)):
        optimizer.grad_scale = torch.tensor(2.0**16, device=device)
        optimizer.found_inf = torch.zeros((), device=device)
    wrong = torch.zeros((), dtype=torch.int64, device=cuda)
    for _ in range(100):
        for p, q in zip(theirs_params, ours_params, strict=True):
            p.grad = torch.randn(p.shape, generator=make, device=cuda) * 2.0**16
            q.grad = p.grad.to(where, copy=True)  # PyTorch's kernel overwrites its gradients
        theirs.step()
        ours.step()
        differences(states(ours, ("momentum_buffer",)), states(theirs, ("momentum_buffer",)), wrong)
    assert int(wrong) == 0


def test_divided_by_the_scale(cuda: str) -> None:
    """A loss scale that is a power of two: division and product have the same bits."""
    make = torch.Generator(cuda).manual_seed(2)
    values = torch.randn(5000, generator=make, device=cuda)
    a, b = (torch.nn.Parameter(values.clone()) for _ in range(2))
    theirs = torch.optim.AdamW([a], fused=True)
    ours = optim.AdamW([b], profile="torch_fused")
    for scale, bad in ((2.0**16, False), (2.0**15, True), (2.0**-3, False)):
        for optimizer, p in ((theirs, a), (ours, b)):
            p.grad = torch.randn(5000, generator=torch.Generator(cuda).manual_seed(3), device=cuda) * scale
            optimizer.grad_scale = torch.tensor(scale, device=cuda)
            optimizer.found_inf = torch.tensor(float(bad), device=cuda)
            optimizer.step()
    assert torch.equal(bits(a), bits(b))


def made(params: list[Any]) -> Any:
    return optim.AdamW(params, lr=0.01, weights="stochastic", states=("bf16", "e4m3"), seed=4)


def test_nothing_waits_and_graph_replays_are_eager_steps(cuda: str) -> None:
    def parts() -> tuple[Any, Any, list[torch.Tensor]]:
        make = torch.Generator().manual_seed(0)
        params = [torch.nn.Parameter(torch.randn(n, generator=make).bfloat16().to(cuda)) for n in SIZES]
        for p in params:
            p.grad = torch.zeros_like(p)
        return params, made(params), [p.grad for p in params]

    def step(optimizer: Any, found: torch.Tensor, scale: torch.Tensor) -> None:
        optimizer.found_inf, optimizer.grad_scale = found, scale
        optimizer.step()

    make = torch.Generator().manual_seed(1)
    gradients = [[torch.randn(n, generator=make).bfloat16().to(cuda) for n in SIZES] for _ in range(12)]
    eager, replayed = parts(), parts()
    found, scale = torch.zeros((), device=cuda), torch.full((), 8.0, device=cuda)
    for i, now in enumerate(gradients):
        with no_waits(cuda if i > 1 else "cpu"):
            torch._foreach_copy_(eager[2], now)
            found.fill_(float(i % 5 == 4))
            step(eager[1], found, scale)
    found.zero_()

    def warm_up() -> None:
        for now in gradients[:2]:
            torch._foreach_copy_(replayed[2], now)
            step(replayed[1], found, scale)

    graph, _ = captured(warm_up, lambda: step(replayed[1], found, scale))
    for i, now in list(enumerate(gradients))[2:]:
        torch._foreach_copy_(replayed[2], now)
        found.fill_(float(i % 5 == 4))
        graph.replay()
    assert all_bits(*eager[:2]) == all_bits(*replayed[:2])


@pytest.mark.parametrize("scaler", [False, True])
def test_a_whole_iteration_in_a_graph(cuda: str, scaler: bool) -> None:
    def parts() -> tuple[Any, Any, Any]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 300), torch.nn.Linear(300, 4)).to(cuda)
        return model, optim.AdamW(model.parameters(), lr=0.01), sbt.GradScaler(
            cuda, 1024.0, growth_interval=3, enabled=scaler)

    trained_twice(parts, torch.randn(10, 5, 8, generator=torch.Generator().manual_seed(1)).to(cuda))
