"""GradScaler beside torch's on random training runs: the same bits, also after a resume."""

from __future__ import annotations

import copy
import math
import os
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import samebits.torch as sbt
from scaler_models import bits


TRACES = int(os.environ.get("SAMEBITS_TRACES", "200"))

Scaler = torch.amp.GradScaler


class Run:
    """A tiny model with a scaler; each step is made from the numbers of a plan."""

    def __init__(self, scaler: Scaler, device: str, seed: int, optimizers: int = 1,
                 kind: str = "sgd", dtype: torch.dtype = torch.float32) -> None:
        make = torch.Generator().manual_seed(seed)
        self.scaler = scaler
        self.parameters = [
            torch.nn.Parameter(torch.randn(shape, generator=make).to(device=device, dtype=dtype))
            for shape in ((3, 5), (7,), (), (2, 2, 3))]
        groups = [self.parameters[i::optimizers] for i in range(optimizers)]
        classes: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
            "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
            "adam": lambda p: torch.optim.Adam(p, lr=0.1),
            "fused": lambda p: torch.optim.Adam(p, lr=0.1, fused=True),
            # With momentum, torch 2.11 reads unwritten memory if the first step is skipped.
            "fused_sgd": lambda p: torch.optim.SGD(p, lr=0.1, fused=True),
        }
        self.optimizers = [classes[kind](g) for g in groups]

    def step(self, plan: dict[str, Any]) -> None:
        if plan["zero"]:
            for optimizer in self.optimizers:
                optimizer.zero_grad()
        loss = sum(((p * c.to(p.device, p.dtype)).sum() for p, c in zip(
            self.parameters, plan["slopes"], strict=True)), torch.zeros(()))
        self.scaler.scale(loss).backward()
        for i, optimizer in enumerate(self.optimizers):
            if plan["unscale"] >> i & 1:
                self.scaler.unscale_(optimizer)
                if plan["clip"]:
                    torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)
            if plan["skip"] != i:
                self.scaler.step(optimizer)
            elif not plan["unscale"] >> i & 1:
                self.scaler.unscale_(optimizer)
        self.scaler.update(plan["new_scale"])

    def state(self) -> list[torch.Tensor]:
        values: list[torch.Tensor] = [p for p in self.parameters]
        values += [p.grad for p in self.parameters if p.grad is not None]
        for optimizer in self.optimizers:
            for state in optimizer.state.values():
                values += [v for v in state.values() if isinstance(v, torch.Tensor)]
        return [bits(v) for v in values]


def a_plan(chance: random.Random, optimizers: int) -> dict[str, Any]:
    make = torch.Generator().manual_seed(chance.getrandbits(60))
    slopes = [torch.randn(shape, generator=make) * 2.0 ** chance.randint(-30, 10)
              for shape in ((3, 5), (7,), (), (2, 2, 3))]
    if chance.random() < 0.3:
        bad = chance.choice(slopes)
        bad.view(-1)[chance.randrange(bad.numel())] = chance.choice([math.inf, -math.inf, math.nan])
    return {"slopes": slopes, "zero": chance.random() < 0.9, "clip": chance.random() < 0.5,
            "unscale": chance.randrange(2**optimizers) if chance.random() < 0.5 else 0,
            "skip": chance.randrange(optimizers) if chance.random() < 0.1 else None,
            "new_scale": 2.0 ** chance.randint(-3, 20) if chance.random() < 0.05 else None}


def settings(chance: random.Random) -> dict[str, Any]:
    return {"init_scale": chance.choice([2.0**16, 1000.0, 3.0, 2.0**100, 1e-3, 2.0**127]),
            "growth_factor": chance.choice([2.0, 1.5, 1.0001, 16.0, 1.1]),
            "backoff_factor": chance.choice([0.5, 0.25, 0.1, 0.99]),
            "growth_interval": chance.choice([1, 2, 3, 5])}


def same(ours: Run, theirs: Run) -> bool:
    a, b = ours.scaler, theirs.scaler
    assert a._scale is not None and b._scale is not None
    return (torch.equal(bits(a._scale), bits(b._scale)) and a._get_growth_tracker() == b._get_growth_tracker()
            and all(torch.equal(x, y) for x, y in zip(ours.state(), theirs.state(), strict=True)))


@pytest.mark.parametrize("kind", ["sgd", "adam", "fused", "fused_sgd"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_traces_of_torch(device: str, kind: str, dtype: torch.dtype) -> None:
    if device == "cuda" and dtype == torch.bfloat16:
        pytest.skip("torch's GradScaler refuses bf16 gradients on CUDA")
    share = max(1, TRACES // 12)
    for seed in range(share):
        chance = random.Random(f"{seed} {kind} {dtype}")
        given = settings(chance)
        optimizers = chance.choice([1, 1, 2, 3])
        ours, theirs = (Run(scaler(device, **given), device, seed, optimizers, kind, dtype)
                        for scaler in (sbt.GradScaler, Scaler))
        for step in range(12):
            plan = a_plan(chance, optimizers)
            ours.step(plan)
            theirs.step(plan)
            assert same(ours, theirs), f"trace {seed}, step {step}, {given}"


def resumed_by_state(scaler: Scaler, into: Callable[..., Scaler], device: str) -> Scaler:
    other = into(device)
    other.load_state_dict(scaler.state_dict())
    return other


@pytest.mark.parametrize("way", ["ours to torch", "torch to ours", "ours to ours", "pickle",
                                 "deepcopy", "load into a used scaler"])
def test_resume(device: str, way: str) -> None:
    for seed in range(max(1, TRACES // 20)):
        chance = random.Random(f"{seed} {way}")
        given = settings(chance)
        runs = [Run(scaler(device, **given), device, seed) for scaler in (sbt.GradScaler, Scaler)]
        plans = [a_plan(chance, 1) for _ in range(16)]
        for plan in plans[:8]:
            for run in runs:
                run.step(plan)
        ours, theirs = runs
        kept = theirs.scaler
        if way == "ours to torch":
            ours.scaler = resumed_by_state(ours.scaler, Scaler, device)
        elif way == "torch to ours":
            ours.scaler = resumed_by_state(kept, sbt.GradScaler, device)
        elif way == "ours to ours":
            ours.scaler = resumed_by_state(ours.scaler, sbt.GradScaler, device)
        elif way == "pickle":
            ours.scaler = pickle.loads(pickle.dumps(ours.scaler))
        elif way == "deepcopy":
            ours.scaler = copy.deepcopy(ours.scaler)
        else:
            ours.scaler.load_state_dict(kept.state_dict())
        for step, plan in enumerate(plans[8:]):
            ours.step(plan)
            theirs.step(plan)
            assert same(ours, theirs), f"trace {seed}, step {step} after the resume, {given}"


def test_settings_that_were_changed_in_a_state(device: str) -> None:
    """Entries of a state_dict that somebody edited count, as in torch."""
    ours, theirs = (kind(device) for kind in (sbt.GradScaler, Scaler))
    for scaler in (ours, theirs):
        scaler.scale(torch.ones((), device=device))
        state = scaler.state_dict()
        state["growth_interval"], state["growth_factor"] = 7, 4.0
        scaler.load_state_dict(state)
    assert ours.get_growth_interval() == theirs.get_growth_interval() == 7
    assert ours.get_growth_factor() == theirs.get_growth_factor() == 4.0
