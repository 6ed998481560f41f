"""Loss scalers in NumPy with one planted error each, and what the test kit must say of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def nonfinite(gradients: Any) -> bool:
    return any(not np.isfinite(g).all() for g in gradients)


class Scaler:
    """The rule of torch.amp.GradScaler, on NumPy arrays; subclasses have one error each."""

    def __init__(self, init_scale: float, growth_factor: float, backoff_factor: float,
                 growth_interval: int) -> None:
        self.scale = np.float32(init_scale)
        self.growth, self.backoff = growth_factor, backoff_factor
        self.interval, self.tracker = growth_interval, 0

    def __call__(self, gradients: Any) -> bool:
        bad = self.is_bad(gradients)
        for number, g in enumerate(gradients):
            g[...] = self.unscaled(g, number)
        self.update(bad)
        return self.applies(bad)

    def is_bad(self, gradients: Any) -> bool:
        return nonfinite(gradients)

    def applies(self, bad: bool) -> bool:
        return not bad

    def unscaled(self, g: Any, number: int) -> Any:
        return g * (np.float32(1) / self.scale)

    def update(self, bad: bool) -> None:
        if bad:
            self.back_off()
            return
        self.tracker += 1
        if self.tracker == self.interval:
            self.grow()

    def back_off(self) -> None:
        self.scale, self.tracker = np.float32(float(self.scale) * self.backoff), 0

    def grow(self) -> None:
        grown = np.float32(float(self.scale) * self.growth)
        self.scale, self.tracker = grown if np.isfinite(grown) else self.scale, 0

    def state_dict(self) -> dict[str, Any]:
        return {"scale": self.scale, "tracker": self.tracker}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.scale, self.tracker = state["scale"], state["tracker"]


def planted(**methods: Callable[..., Any]) -> Callable[..., Scaler]:
    """Return a make_scaler of scalers with other methods."""
    kind = type("Planted", (Scaler,), methods)

    def make_scaler(**settings: Any) -> Scaler:
        scaler: Scaler = kind(**settings)
        return scaler
    return make_scaler


def _keeps_tracker(self: Any) -> None:
    self.scale = np.float32(float(self.scale) * self.backoff)


def _backs_off_twice(self: Any) -> None:
    self.scale, self.tracker = np.float32(float(self.scale) * self.backoff**2), 0


def _no_backoff(self: Any) -> None:
    self.tracker = 0


def _keeps_growing(self: Any) -> None:
    self.scale = np.float32(float(self.scale) * self.growth)


def _update_if(reached: Callable[[Any], bool]) -> Callable[[Any, bool], None]:
    def update(self: Any, bad: bool) -> None:
        if bad:
            self.back_off()
            return
        self.tracker += 1
        if reached(self):
            self.grow()
    return update


def _counts_skipped(self: Any, bad: bool) -> None:
    self.tracker += 1
    if self.tracker == self.interval:
        self.grow() if not bad else None
        self.tracker = 0
    if bad:
        self.scale = np.float32(float(self.scale) * self.backoff)


def _grows_to_inf(self: Any) -> None:
    self.scale, self.tracker = np.float32(float(self.scale) * self.growth), 0


def _updated_first(self: Any, gradients: Any) -> bool:
    bad = nonfinite(gradients)
    self.update(bad)
    for number, g in enumerate(gradients):
        g[...] = self.unscaled(g, number)
    return not bad


def _stale(self: Any, bad: bool) -> bool:
    before, self.before = getattr(self, "before", False), bad
    return not bad and not before


def _square_overflows(self: Any, gradients: Any) -> bool:
    total = sum(float(np.sum(g.astype(np.float64) ** 2)) for g in gradients)
    return not np.isfinite(np.float32(total))


def _forgets_tracker(self: Any, state: dict[str, Any]) -> None:
    self.scale = state["scale"]


PLANTED: dict[str, Callable[..., Scaler]] = {
    "the growth tracker is not reset by a skipped step": planted(back_off=_keeps_tracker),
    "a skipped step counts towards the next growth": planted(update=_counts_skipped),
    "the scale grows at every further step": planted(
        grow=_keeps_growing, update=_update_if(lambda s: bool(s.tracker >= s.interval))),
    "growth one step too late": planted(
        update=_update_if(lambda s: bool(s.tracker == s.interval + 1))),
    "growth one step too early": planted(
        update=_update_if(lambda s: bool(s.tracker == s.interval - 1))),
    "backoff applied twice": planted(back_off=_backs_off_twice),
    "no backoff: a skipped step keeps the scale": planted(back_off=_no_backoff),
    "the scale never grows": planted(grow=_no_backoff),
    "the scale grows to Inf": planted(grow=_grows_to_inf),
    "seen only in an optimizer's first tensor": planted(is_bad=lambda s, g: nonfinite(g[:1])),
    "seen only in an optimizer's last tensor": planted(is_bad=lambda s, g: nonfinite(g[-1:])),
    "seen only in the first element": planted(
        is_bad=lambda s, g: nonfinite([t[:1] for t in g])),
    "missed in the last element": planted(is_bad=lambda s, g: nonfinite([t[:-1] for t in g])),
    "NaN is missed: only Inf skips a step": planted(
        is_bad=lambda s, g: any(np.isinf(t).any() for t in g)),
    "Inf is missed: only NaN skips a step": planted(
        is_bad=lambda s, g: any(np.isnan(t).any() for t in g)),
    "finite gradients are skipped if their sum of squares overflows": planted(
        is_bad=_square_overflows),
    "no step is skipped, though the scale backs off": planted(applies=lambda s, bad: True),
    "the step after a skipped one is skipped too": planted(applies=_stale),
    "gradients are divided by the scale": planted(unscaled=lambda s, g, n: g / s.scale),
    "unscaled by the scale instead of 1 / scale": planted(unscaled=lambda s, g, n: g * s.scale),
    "gradients are not unscaled": planted(unscaled=lambda s, g, n: g),
    "unscaled by the next scale": planted(__call__=_updated_first),
    "only an optimizer's first tensor is unscaled": planted(
        unscaled=lambda s, g, n: g if n else g * (np.float32(1) / s.scale)),
    "unscaled gradients are rounded to fp16": planted(
        unscaled=lambda s, g, n: (g * (np.float32(1) / s.scale)).astype(np.float16)),
    "the growth tracker is lost in state_dict": planted(load_state_dict=_forgets_tracker),
    "load_state_dict does nothing": planted(load_state_dict=lambda s, state: None),
}
