"""Tests of `samebits.testing.check_loss_scaler` on scalers with the interface of GradScaler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import samebits.torch as sbt
from samebits.testing import Trace, check_loss_scaler

SEEDS = range(10)


def failure(make_scaler: Any, **options: Any) -> str:
    """Return the text of a check that must fail."""
    with pytest.raises(AssertionError) as caught:
        check_loss_scaler(make_scaler, **options)
    return str(caught.value)


def of(device: str, kind: type = torch.amp.GradScaler) -> Callable[..., Any]:
    """Return a make_scaler of scalers on a device."""
    def make_scaler(**settings: Any) -> Any:
        return kind(device, **settings)
    return make_scaler


class KeepsTracker(torch.amp.GradScaler):
    """The growth tracker survives a skipped step."""

    def update(self, new_scale: Any = None) -> None:
        before = self._get_growth_tracker()
        super().update(new_scale)
        if self._growth_tracker is not None and self._growth_tracker.item() == 0 and before:
            if self.get_scale() < self.last:
                self._growth_tracker.fill_(before)

    def scale(self, outputs: Any) -> Any:
        result = super().scale(outputs)
        self.last = self.get_scale()
        return result


class FirstTensorOnly(torch.amp.GradScaler):
    """Inf and NaN are looked for in the first tensor alone; the others are multiplied."""

    def unscale_(self, optimizer: Any) -> None:
        first, *others = optimizer.param_groups[0]["params"]
        optimizer.param_groups[0]["params"] = [first]
        super().unscale_(optimizer)
        optimizer.param_groups[0]["params"] = [first, *others]
        for p in others:
            p.grad.mul_(self._scale.double().reciprocal().float())

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is torch.amp.grad_scaler.OptState.READY:
            self.unscale_(optimizer)
        return super().step(optimizer, *args, **kwargs)


class UnscalesByScale(torch.amp.GradScaler):
    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, *args: Any) -> Any:
        return super()._unscale_grads_(optimizer, self._scale.clone(), *args)


class Divides(torch.amp.GradScaler):
    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, *args: Any) -> Any:
        found = super()._unscale_grads_(optimizer, torch.ones_like(inv_scale), *args)
        for p in optimizer.param_groups[0]["params"]:
            p.grad.div_(self._scale)
        return found


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
    (KeepsTracker, "the growth tracker is not reset by a skipped step"),
    (FirstTensorOnly, "seen only in an optimizer's first tensor"),
    (UnscalesByScale, "unscaled by the scale instead of 1 / scale"),
    (Divides, "gradients are divided by the scale"),
    (SkipsTogether, ""),
    (ForgetsTracker, "the growth tracker is lost in state_dict or load_state_dict"),
]


def test_torchs_own_scaler_passes(device: str) -> None:
    check_loss_scaler(of(device), device=device, examples=48)


@pytest.mark.parametrize("policy", ["torch", "native", "apex", "apex_amp", "megatron", "deepspeed"])
def test_the_librarys_own_scaler_passes(policy: str, device: str) -> None:
    def make_scaler(**settings: Any) -> Any:
        return sbt.GradScaler(device, policy=policy, **settings)

    check_loss_scaler(make_scaler, policy, device=device, examples=48)


@pytest.mark.parametrize("source", ["fp16", "bf16"])
def test_the_librarys_own_scaler_passes_on_narrow_gradients(source: str, device: str) -> None:
    check_loss_scaler(lambda **s: sbt.GradScaler(device, **s), device=device,
                      source=source, examples=16)


def test_torchs_own_scaler_on_bf16_gradients(device: str) -> None:
    if device == "cpu":
        check_loss_scaler(of(device), device=device, source="bf16", examples=16)
    else:  # torch's scaler refuses them, and the check says so
        text = failure(of(device), device=device, source="bf16", examples=16)
        assert "not implemented for 'BFloat16'" in text


def test_device_of_a_torch_scaler_is_the_cpu_by_default() -> None:
    check_loss_scaler(of("cpu"), examples=8)


@pytest.mark.parametrize(("kind", "says"), PLANTED, ids=[p[0].__name__ for p in PLANTED])
def test_planted_error_is_found_shrunk_and_named(kind: type, says: str, device: str) -> None:
    for seed in SEEDS:
        text = failure(of(device, kind), device=device, examples=32, examples_seed=seed)
        assert says in text.split("looks like: ")[1], text
        assert "(smallest run found)" in text
    line = text.splitlines()[-1].replace("  repeat:   ", "")
    scope = {"check_loss_scaler": check_loss_scaler, "Trace": Trace,
             "make_scaler": of(device, kind)}
    with pytest.raises(AssertionError, match="is wrong"):
        eval(line, scope)


def test_plain_callables_get_tensors(device: str) -> None:
    class Plain:
        def __init__(self, **settings: Any) -> None:
            self.settings, self.scale, self.tracker = settings, settings["init_scale"], 0

        def __call__(self, gradients: Any) -> bool:
            assert all(g.device.type == device for g in gradients)
            finite = all(bool(g.isfinite().all()) for g in gradients)
            inverse = torch.tensor(1 / self.scale, dtype=torch.float32, device=device)
            for g in gradients:
                g.mul_(inverse)
            factor, self.tracker = 1.0, self.tracker + 1
            if not finite:
                factor, self.tracker = self.settings["backoff_factor"], 0
            elif self.tracker == self.settings["growth_interval"]:
                factor, self.tracker = self.settings["growth_factor"], 0
            following = torch.tensor(self.scale * factor, dtype=torch.float32).item()
            self.scale = following if following < float("inf") else self.scale
            return finite

    check_loss_scaler(Plain, device=device, examples=24)


def test_wrong_order_inside_a_scaler_is_reported() -> None:
    class Refuses(torch.amp.GradScaler):
        def update(self, new_scale: Any = None) -> None:
            raise RuntimeError("no update")

    text = failure(of("cpu", Refuses), examples=2)
    assert "make_scaler raised RuntimeError: no update" in text
