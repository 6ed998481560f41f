"""Tests of `samebits.testing.check_loss_scaler` on scalers with the interface of GradScaler."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

import samebits as sb
import samebits.torch as sbt
from planted import SEEDS, failure_of, repeated
from samebits.testing import check_loss_scaler

failure = partial(failure_of, check_loss_scaler)


def of(device: str, kind: type = torch.amp.GradScaler) -> Callable[..., Any]:
    """Return a make_scaler of scalers on a device."""
    def make_scaler(**settings: Any) -> Any:
        return kind(device, **settings)
    return make_scaler


class NeverGrows(torch.amp.GradScaler):
    def __init__(self, device: str, growth_interval: int, **settings: Any) -> None:
        super().__init__(device, growth_interval=10**6, **settings)


class FirstTensorOnly(torch.amp.GradScaler):
    """Inf and NaN are looked for in the first tensor alone; the others are multiplied."""

    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, *args: Any) -> Any:
        first, *others = optimizer.param_groups[0]["params"]
        optimizer.param_groups[0]["params"] = [first]
        found = super()._unscale_grads_(optimizer, inv_scale, *args)
        optimizer.param_groups[0]["params"] = [first, *others]
        for p in others:
            p.grad.mul_(inv_scale)
        return found


class UnscalesByScale(torch.amp.GradScaler):
    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, *args: Any) -> Any:
        return super()._unscale_grads_(optimizer, self._scale.clone(), *args)


class SkipsTogether(torch.amp.GradScaler):
    """Inf of one optimizer skips the steps of all that are asked afterwards."""

    def _maybe_opt_step(self, optimizer: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        states = self._per_optimizer_states.values()
        if any(v.item() for s in states for v in s["found_inf_per_device"].values()):
            return None
        return super()._maybe_opt_step(optimizer, state, *args, **kwargs)


class ForgetsTracker(torch.amp.GradScaler):
    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_growth_tracker": 0}


PLANTED: list[tuple[type, str]] = [
    (NeverGrows, "the scale never grows"),
    (FirstTensorOnly, "seen only in an optimizer's first tensor"),
    (UnscalesByScale, "unscaled by the scale instead of 1 / scale"),
    (SkipsTogether, ""),
    (ForgetsTracker, "the growth tracker is lost in state_dict or load_state_dict"),
]


@pytest.mark.parametrize(("policy", "source"), [("torch", "fp16"), ("torch", "bf16"), *(
    (policy, "fp32") for policy in ("torch", "native", "apex", "apex_amp", "megatron", "deepspeed"))])
def test_the_librarys_own_scaler_passes(policy: str, source: str, device: str) -> None:
    check_loss_scaler(lambda **s: sbt.GradScaler(device, policy=policy, **s), policy, device=device, source=source,
                      examples=48 if source == "fp32" else 16)


def test_torchs_own_scaler_passes(device: str) -> None:
    check_loss_scaler(of(device), device=device, examples=48)
    check_loss_scaler(of("cpu"), source="bf16", examples=16)  # the device of a torch scaler is the CPU by default
    if device == "cuda":  # torch's scaler refuses bf16 there, and the check says so
        text = failure(of(device), device=device, source="bf16", examples=16)
        assert "not implemented for 'BFloat16'" in text


@pytest.mark.parametrize(("kind", "says"), PLANTED, ids=[p[0].__name__ for p in PLANTED])
def test_planted_error_is_found_shrunk_and_named(kind: type, says: str, device: str) -> None:
    for seed in SEEDS:
        text = failure(of(device, kind), device=device, examples=32, examples_seed=seed)
        assert says in text.split("looks like: ")[1], text
        assert "(smallest run found)" in text
    assert " is wrong" in repeated(text, check_loss_scaler, of(device, kind))[0]


def test_plain_callables_get_tensors(device: str) -> None:
    class Plain:
        def __init__(self, **settings: Any) -> None:
            self.scaler = sb.LossScaler("torch", **settings)
            self.scale = self.scaler.get_scale()

        def __call__(self, gradients: Any) -> bool:
            assert all(g.device.type == device for g in gradients)
            self.scaler.unscale(gradients)
            applied = self.scaler.step()
            self.scaler.update()
            self.scale = self.scaler.get_scale()
            return applied

    check_loss_scaler(Plain, device=device, examples=24)
