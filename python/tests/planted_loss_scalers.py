"""Loss scalers in NumPy with one planted error each, and what the test kit must say of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def nonfinite(gradients: Any) -> bool:
    return any(not np.isfinite(g).all() for g in gradients)


class Scaler:
    """The rule of torch.amp.GradScaler, on NumPy arrays; subclasses have one error each."""

    def __init__(self, init_scale: float, growth_factor: float, backoff_factor: float, growth_interval: int) -> None:
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
        if self.grows():
            self.grow()

    def grows(self) -> bool:
        return self.tracker == self.interval

    def back_off(self) -> None:
        self.set(float(self.scale) * self.backoff)

    def grow(self) -> None:
        grown = np.float32(float(self.scale) * self.growth)
        self.set(grown if np.isfinite(grown) else self.scale)

    def set(self, scale: Any, tracker: int = 0) -> None:
        self.scale, self.tracker = np.float32(scale), tracker

    def state_dict(self) -> dict[str, Any]:
        return {"scale": self.scale, "tracker": self.tracker}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.set(state["scale"], state["tracker"])


def planted(**methods: Callable[..., Any]) -> Callable[..., Scaler]:
    """Return a make_scaler of scalers with other methods."""
    kind = type("Planted", (Scaler,), methods)

    def make_scaler(**settings: Any) -> Scaler:
        scaler: Scaler = kind(**settings)
        return scaler
    return make_scaler


def _counts_skipped(self: Any, bad: bool) -> None:
    self.tracker += 1
    if self.tracker == self.interval:
        self.grow() if not bad else None
        self.tracker = 0
    if bad:
        self.scale = np.float32(float(self.scale) * self.backoff)


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


PLANTED: dict[str, Callable[..., Scaler]] = {
    "the growth tracker is not reset by a skipped step": planted(
        back_off=lambda s: s.set(float(s.scale) * s.backoff, s.tracker)),
    "a skipped step counts towards the next growth": planted(update=_counts_skipped),
    "the scale grows at every further step": planted(
        grow=lambda s: s.set(float(s.scale) * s.growth, s.tracker),
        grows=lambda s: s.tracker >= s.interval),
    "growth one step too late": planted(grows=lambda s: s.tracker == s.interval + 1),
    "growth one step too early": planted(grows=lambda s: s.tracker == s.interval - 1),
    "backoff applied twice": planted(back_off=lambda s: s.set(float(s.scale) * s.backoff**2)),
    "no backoff: a skipped step keeps the scale": planted(back_off=lambda s: s.set(s.scale)),
    "the scale never grows": planted(grow=lambda s: s.set(s.scale)),
    "the scale grows to Inf": planted(grow=lambda s: s.set(float(s.scale) * s.growth)),
    "seen only in an optimizer's first tensor": planted(is_bad=lambda s, g: nonfinite(g[:1])),
    "seen only in an optimizer's last tensor": planted(is_bad=lambda s, g: nonfinite(g[-1:])),
    "seen only in the first element": planted(is_bad=lambda s, g: nonfinite([t[:1] for t in g])),
    "missed in the last element": planted(is_bad=lambda s, g: nonfinite([t[:-1] for t in g])),
    "NaN is missed: only Inf skips a step": planted(is_bad=lambda s, g: any(np.isinf(t).any() for t in g)),
    "Inf is missed: only NaN skips a step": planted(is_bad=lambda s, g: any(np.isnan(t).any() for t in g)),
    "finite gradients are skipped if their sum of squares overflows": planted(is_bad=_square_overflows),
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
    "the growth tracker is lost in state_dict": planted(
        load_state_dict=lambda s, state: s.set(state["scale"], s.tracker)),
    "load_state_dict does nothing": planted(load_state_dict=lambda s, state: None),
}

#: Found, but without a name.
UNNAMED = {"unscaled by the next scale", "the step after a skipped one is skipped too",
           "only an optimizer's first tensor is unscaled"}
