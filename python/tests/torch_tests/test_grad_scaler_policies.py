"""The policies of GradScaler beside samebits.LossScaler."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import samebits as sb
import samebits.torch as sbt
from scaler_models import bits, model_of, step, wait_for_reports

Scaler = torch.amp.GradScaler


POLICIES: list[tuple[str, dict[str, Any]]] = [
    ("torch", {"init_scale": 2.0**12, "growth_interval": 3}),
    ("native", {"init_exponent": 12, "growth_interval": 5, "recovery_interval": 2, "proof": 4}),
    ("native", {"init_exponent": 20, "growth_headroom": "off", "hysteresis": 1}),
    ("apex", {"init_scale": 2.0**12, "growth_interval": 3, "hysteresis": 2}),
    ("apex_amp", {"init_scale": 2.0**12, "scale_window": 3}),
    ("megatron", {"initial_scale": 2.0**12, "hysteresis": 2, "growth_interval": 3}),
    ("deepspeed", {"init_scale": 2.0**12, "scale_window": 3, "scale_factor": 1.5, "raise_error_at_min_scale": False}),
]


@pytest.mark.parametrize("policy, given", POLICIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_policies_against_the_loss_scaler(device: str, policy: str, given: dict[str, Any], dtype: torch.dtype) -> None:
    """Every policy: scales, decisions and unscaled gradients of samebits.LossScaler."""
    chance = np.random.default_rng(1)
    scaler = sbt.GradScaler(device, policy=policy, **given)
    reference = sb.LossScaler(policy, **given)
    p = torch.nn.Parameter(torch.zeros(64, device=device, dtype=dtype))
    optimizer = torch.optim.SGD([p], lr=0.0)
    for number in range(60):
        loss = math.nan if chance.random() < 0.05 else 1.0
        scaled = scaler.scale(torch.tensor(loss, device=device))
        assert math.isnan(loss) or float(scaled) == np.float32(reference.scale(loss))
        if math.isnan(loss) and policy == "native":  # the others do not look at losses
            reference.scale(loss)
        values = chance.standard_normal(64) * 2.0 ** chance.integers(-20, 8)
        if math.isnan(loss) or chance.random() < 0.2:
            values[chance.integers(64)] = chance.choice([np.inf, np.nan])
        p.grad = torch.tensor(values, device=device).to(dtype)
        expected = p.grad.clone().cpu()
        report = reference.unscale(expected)
        scaler.unscale_(optimizer)
        assert torch.equal(bits(p.grad), bits(expected)), f"step {number}"
        stepped = reference.step()
        scaler.step(optimizer)
        found = scaler._found_inf_per_device(optimizer)[torch.device(p.device)]
        assert bool(found) != stepped
        scaler.update()
        decision = reference.update()
        (seen,) = wait_for_reports(scaler, 1)
        assert (seen.applied, seen.cause, seen.change, seen.stop) == (
            decision.applied, decision.cause, decision.change, decision.stop)
        assert (seen.first_bad is not None) == (report.first_bad is not None)
        assert scaler.get_scale() == np.float32(reference.get_scale()), f"step {number}"
    assert scaler._synchronized().scaler.save() == reference.save()


@pytest.mark.parametrize("policy, scale, interval", [
    ("torch", 2.0**16, 2000), ("native", 2.0**16, 2000), ("apex", 2.0**16, 2000),
    ("megatron", 2.0**32, 1000), ("deepspeed", 2.0**16, 1000), ("apex_amp", 2.0**16, 2000)])
def test_each_policy_has_its_own_defaults(policy: str, scale: float, interval: int) -> None:
    scaler = sbt.GradScaler("cpu", policy=policy)
    assert (scaler.get_scale(), scaler.get_growth_interval()) == (scale, interval)
    given = sbt.GradScaler("cpu", 256.0, growth_interval=7, policy=policy)
    assert (given.get_scale(), given.get_growth_interval()) == (256.0, 7)
    given.scale(torch.ones(()))
    assert given.get_scale() == 256.0


def test_policy_that_ends_the_run(device: str) -> None:
    scaler = sbt.GradScaler(device, policy="deepspeed", init_scale=2.0, delayed_shift=1)
    optimizer = torch.optim.SGD(model_of(device).parameters(), lr=0.1)
    with pytest.raises(sb.ScaleExhausted, match="policy deepspeed ends the run"):
        for _ in range(4):
            step(scaler, optimizer, math.nan)
            if device == "cuda":
                torch.cuda.synchronize()


@pytest.mark.parametrize("policy", ["torch", "native", "apex", "apex_amp", "megatron", "deepspeed"])
def test_state_of_every_policy(device: str, policy: str) -> None:
    """Policies keep all of their state in "samebits"; torch reads the five keys."""
    def run(scaler: sbt.GradScaler, steps: range) -> None:
        optimizer = torch.optim.SGD(model_of(device).parameters(), lr=0.0)
        for i in steps:
            step(scaler, optimizer, math.inf if i % 5 == 3 else 1.0)

    scaler = sbt.GradScaler(device, policy=policy, growth_interval=2)
    run(scaler, range(10))
    state = scaler.state_dict()
    assert list(state)[:5] == list(Scaler(device).state_dict())
    assert sb.LossScaler.load(state["samebits"]).get_scale() == state["scale"]
    again = sbt.GradScaler(device, policy=policy)
    again.load_state_dict(state)
    assert again.state_dict() == state
    of_torch = Scaler(device)
    of_torch.load_state_dict(state)
    assert of_torch.get_scale() == state["scale"]
    run(scaler, range(10, 20))
    run(again, range(10, 20))
    assert again.state_dict() == scaler.state_dict()
    from_torch = sbt.GradScaler(device, policy=policy)
    from_torch.load_state_dict({**Scaler(device, 512.0).state_dict(), "_growth_tracker": 1})
    assert from_torch.get_scale() == 512.0
