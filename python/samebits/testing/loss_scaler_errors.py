"""Usual errors of loss scalers: each is the library's own scaler with one part replaced."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from samebits import _core
from samebits.convert import convert
from samebits.errors import Error
from samebits.loss_scaler import POLICY_NAMES, LossScaler, settings_of
from samebits.testing.loss_scaler_runs import StepResult, Trace, run_trace
from samebits.testing.memory import Memory
from samebits.testing.number_formats import Format

State = dict[str, float]  # of LossScaler.state_dict()
_TRACKER = "_growth_tracker"


def _not_finite(x: Any) -> Any:
    return ~np.isfinite(x)


def _any(bad: Callable[[Any], Any]) -> Callable[[list[Any]], bool]:
    """Return what says whether a predicate holds for an element of an optimizer's gradients."""
    return lambda gradients: any(bool(np.any(bad(x))) for x in gradients)


_bad = _any(_not_finite)


def _unscaled(x: Any, scale: float) -> Any:
    return x * np.float32(1 / np.float64(scale))


def _rounded(name: Any, x: Any, scale: float) -> Any:
    return convert(convert(_unscaled(x, scale), name), "fp32", format=name)


#: What a part of the scaler is in each error. `made`: what the state of a new scaler has.
#: `skipped`, `grown`: what the state has after such a step, from the state before. `resumed`: what
#: the state has after load_state_dict, from a new scaler's. `bad`: whether an optimizer's gradients
#: are. `applied`: whether it steps, from whether it should. `unscaled`: gradients, from the scale.
ERRORS: Final[dict[str, dict[str, Any]]] = {
    "made": {
        "growth one step too late": lambda s: {"growth_interval": s["growth_interval"] + 1},
        "growth one step too early": lambda s: {"growth_interval": s["growth_interval"] - 1}},
    "skipped": {
        "the growth tracker is not reset by a skipped step": lambda s: {_TRACKER: s[_TRACKER]},
        "a skipped step counts towards the next growth": lambda s: {
            _TRACKER: (s[_TRACKER] + 1) % s["growth_interval"]},
        "backoff applied twice": lambda s: {"scale": s["scale"] * s["backoff_factor"]**2},
        "no backoff: a skipped step keeps the scale": lambda s: {"scale": s["scale"]},
        "the scale does not fall below 1": lambda s: {
            "scale": max(s["scale"] * s["backoff_factor"], 1.0)}},
    "grown": {
        "the scale never grows": lambda s: {"scale": s["scale"]},
        "the scale grows to Inf": lambda s: {"scale": s["scale"] * s["growth_factor"]},
        "after a growth the scale grows at every further step": lambda s: {
            "scale": s["scale"] * s["growth_factor"], _TRACKER: s["growth_interval"] - 1}},
    "resumed": {
        "the growth tracker is lost in state_dict or load_state_dict": lambda new: {_TRACKER: 0},
        "load_state_dict does nothing": lambda new: new},
    "bad": {
        "Inf and NaN are seen only in an optimizer's first tensor": lambda g: _bad(g[:1]),
        "Inf and NaN are seen only in an optimizer's last tensor": lambda g: _bad(g[-1:]),
        "Inf and NaN are seen only in the first element": _any(lambda x: _not_finite(x[:1])),
        "Inf and NaN are missed in the last element": _any(lambda x: _not_finite(x[:-1])),
        "NaN is missed: only Inf skips a step": _any(np.isinf),
        "Inf is missed: only NaN skips a step": _any(np.isnan),
        "finite gradients are skipped if their sum of squares overflows": lambda g: _not_finite(
            np.float32(sum(np.sum(np.float64(x)**2) for x in g)))},
    "applied": {"no step is skipped, though the scale backs off": lambda applied: True,
                "good steps are skipped, and bad ones applied": lambda applied: not applied},
    "unscaled": {
        "gradients are divided by the scale": lambda x, scale: x / np.float32(scale),
        "unscaled by the scale instead of 1 / scale": lambda x, scale: x * np.float32(scale),
        "gradients are not unscaled": lambda x, scale: x,
        "gradients are unscaled twice": lambda x, scale: _unscaled(_unscaled(x, scale), scale),
        "unscaled gradients are rounded to fp16": partial(_rounded, "fp16"),
        "unscaled gradients are rounded to bf16": partial(_rounded, "bf16")}}


class _Faulty:
    """The library's scaler with the rule of torch and a usual error."""

    def __init__(self, f: Format, part: str, change: Any, **settings: Any) -> None:
        self.core, self.format = LossScaler("torch", **settings), f.name
        self.scale, self.get_scale = self.core.scale, self.core.get_scale
        self.state_dict, self.changes = self.core.state_dict, {part: change}
        self.new = self.state_dict()
        self._change("made", self.new)

    def unscale(self, arrays: list[Any], optimizer: str) -> None:
        gradients = [convert(x, "fp32", format=self.format) for x in arrays]
        bad = self.changes.get("bad", _bad)(gradients)
        self.core.observe(nonfinite=bool(bad), optimizer=optimizer)
        unscaled = self.changes.get("unscaled", _unscaled)
        for array, x in zip(arrays, gradients):
            array[...] = convert(unscaled(x, self.get_scale()), self.format)

    def step(self, run: None, optimizer: str) -> bool:
        return bool(self.changes.get("applied", bool)(self.core.step(run, optimizer)))

    def update(self) -> None:
        before = self.state_dict()
        if not self.core.update().applied:
            self._change("skipped", before)
        elif self.state_dict()[_TRACKER] != before[_TRACKER] + 1:
            self._change("grown", before)

    def load_state_dict(self, state: State) -> None:
        self.core.load_state_dict(state)
        self._change("resumed", self.new)

    def _change(self, event: str, of: State) -> None:
        changed = self.changes.get(event, lambda state: {})(of)
        self.core.load_state_dict({**self.state_dict(), **{
            k: float(np.float32(v)) for k, v in changed.items()}})


#: Torch's names of settings that other policies name otherwise.
_TORCHS = {"initial_scale": "init_scale", "scale_factor": "growth_factor",
           "scale_window": "growth_interval", "delayed_shift": "hysteresis"}


def _by_rule_of(policy: Any, **settings: Any) -> LossScaler:
    """Return the library's scaler with another policy, and the settings that the policy has."""
    theirs = {_TORCHS.get(n, n): n for n in settings_of(_core.LossScaler(policy, []))}
    given = {_TORCHS.get(n, n): value for n, value in settings.items()}
    return LossScaler(policy, **{theirs[n]: given[n] for n in given if n in theirs})


def explanations(policy: str, seen: list[tuple[Trace, list[StepResult]]], f: Format) -> list[str]:
    """Return the usual errors that give every step seen; sentences that complete "looks like: "."""
    scalers: dict[str, Callable[..., Any]] = {
        sentence: partial(_Faulty, f, part, change) for part, errors in ERRORS.items()
        for sentence, change in errors.items() if policy == "torch"}
    scalers |= {f"the rule of {other} instead of {policy}": partial(_by_rule_of, other)
                for other in POLICY_NAMES if other not in (policy, "native")}

    def fits(make_scaler: Callable[..., Any]) -> bool:
        try:
            with np.errstate(all="ignore"):
                return all(all(map(same_step, got, run_trace(make_scaler, trace, f, Memory())))
                           for trace, got in seen)
        except (Error, ZeroDivisionError):  # the other library refuses the settings, or interval 0
            return False
    return [sentence for sentence, make_scaler in scalers.items() if fits(make_scaler)]


def same_step(got: StepResult, expected: StepResult) -> bool:
    """Return whether a step is right. Losses are compared if the scaler under test has them."""
    return got == (expected if got.scaled_loss is not None else expected._replace(scaled_loss=None))
