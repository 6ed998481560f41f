"""The usual errors of loss scalers: one table, compared with all steps that the check has seen."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from samebits.convert import convert
from samebits.testing.explanation import Explanation
from samebits.testing.loss_scaler_model import (Floats, Moment, State, StepResult, Variations,
                                                any_nonfinite, inverse, modelled_steps,
                                                other_policy, rounded, same_step, torch_rule)
from samebits.testing.loss_scaler_traces import Trace
from samebits.testing.number_formats import Format

Settings = Mapping[str, Any]
Advance = Callable[[State, list[bool], Settings], State]


@dataclass(frozen=True)
class ScalerCandidate:
    """A usual error: a sentence that completes "looks like: ...", and its results."""

    sentence: str
    steps: Callable[[Trace, Format], "Iterable[StepResult] | None"]


def _varied(sentence: str, **changes: Any) -> ScalerCandidate:
    change = dataclasses.replace(Variations(), **changes)
    return ScalerCandidate(sentence, lambda trace, f: modelled_steps(trace, f, change))


# ---- The next scale ----

def _backoff(state: State, s: Settings, tracker: int = 0) -> State:
    return State(rounded(state.scale * s["backoff_factor"]), tracker)


def _tracker_kept(state: State, bad: list[bool], s: Settings) -> State:
    return _backoff(state, s, state.tracker) if any(bad) else torch_rule(state, bad, s)


def _skipped_counted(state: State, bad: list[bool], s: Settings) -> State:
    following = torch_rule(state, [False], s)
    return _backoff(state, s, following.tracker) if any(bad) else following


def _grows_on(state: State, bad: list[bool], s: Settings) -> State:
    """Grow at every step once the interval is reached: the growth does not reset the tracker."""
    if any(bad) or state.tracker + 1 < s["growth_interval"]:
        return torch_rule(state, bad, s)
    return State(rounded(state.scale * s["growth_factor"]), state.tracker + 1)


def _interval(by: int) -> Advance:
    def advance(state: State, bad: list[bool], s: Settings) -> State:
        return torch_rule(state, bad, {**s, "growth_interval": s["growth_interval"] + by})
    return advance


def _with(**changes: Callable[[Settings], float]) -> Advance:
    """Return the rule with other settings."""
    def advance(state: State, bad: list[bool], s: Settings) -> State:
        return torch_rule(state, bad, {**s, **{k: f(s) for k, f in changes.items()}})
    return advance


def _backoff_per_optimizer(state: State, bad: list[bool], s: Settings) -> State:
    scale = state.scale
    for _ in range(sum(bad)):
        scale = rounded(scale * s["backoff_factor"])
    return State(scale) if any(bad) else torch_rule(state, bad, s)


def _of_optimizer(number: int) -> Advance:
    return lambda state, bad, s: torch_rule(state, [bad[number]], s)


def _all_must_be_bad(state: State, bad: list[bool], s: Settings) -> State:
    return torch_rule(state, [all(bad)], s)


def _grows_to_inf(state: State, bad: list[bool], s: Settings) -> State:
    grows = not any(bad) and state.tracker + 1 == s["growth_interval"]
    return State(rounded(state.scale * s["growth_factor"])) if grows else torch_rule(state, bad, s)


def _clamped(low: float, high: float) -> Advance:
    def advance(state: State, bad: list[bool], s: Settings) -> State:
        following = torch_rule(state, bad, s)
        return State(min(max(following.scale, low), high), following.tracker)
    return advance


def _not_rounded(state: State, bad: list[bool], s: Settings) -> State:
    grows = not any(bad) and state.tracker + 1 == s["growth_interval"]
    if any(bad) or grows:
        return State(state.scale * s["growth_factor" if grows else "backoff_factor"])
    return torch_rule(state, bad, s)


def _scales() -> Iterator[ScalerCandidate]:
    rows: list[tuple[str, Advance]] = [
        ("the growth tracker is not reset by a skipped step", _tracker_kept),
        ("a skipped step counts towards the next growth", _skipped_counted),
        ("the growth tracker is not reset by a growth: the scale grows at every further "
         "step", _grows_on),
        ("growth one step too late: at growth_interval + 1", _interval(1)),
        ("growth one step too early: at growth_interval - 1", _interval(-1)),
        ("backoff applied twice", _with(backoff_factor=lambda s: s["backoff_factor"] ** 2)),
        ("no backoff: a skipped step keeps the scale", _with(backoff_factor=lambda s: 1.0)),
        ("the scale never grows", _with(growth_factor=lambda s: 1.0)),
        ("backs off by 1 / growth_factor instead of backoff_factor",
         _with(backoff_factor=lambda s: 1.0 / s["growth_factor"])),
        ("grows by 1 / backoff_factor instead of growth_factor",
         _with(growth_factor=lambda s: 1.0 / s["backoff_factor"])),
        ("multiplies by growth_factor where it should back off",
         _with(backoff_factor=lambda s: s["growth_factor"])),
        ("backs off by 0.5, whatever backoff_factor is", _with(backoff_factor=lambda s: 0.5)),
        ("grows by 2, whatever growth_factor is", _with(growth_factor=lambda s: 2.0)),
        ("backoff once for each optimizer with bad gradients instead of once a "
         "step", _backoff_per_optimizer),
        ("the scale follows only the first optimizer's gradients", _of_optimizer(0)),
        ("the scale follows only the last optimizer's gradients", _of_optimizer(-1)),
        ("backoff only if the gradients of all optimizers are bad", _all_must_be_bad),
        ("the scale grows to Inf", _grows_to_inf),
        ("the scale is kept in binary64, not rounded to fp32", _not_rounded)]
    rows += [(f"the scale does not fall below {low:g}", _clamped(low, math.inf))
             for low in (1.0, 2.0**-14, 2.0)]
    rows += [(f"the scale does not rise above {high:g}", _clamped(0.0, high))
             for high in (65536.0, 2.0**24, 2.0**32)]
    for sentence, advance in rows:
        yield _varied(sentence, advance=advance)


# ---- Which steps are skipped ----

def _seen_in(which: slice) -> Callable[[list[Floats], float], bool]:
    return lambda group, scale: any_nonfinite(group[which], scale)


def _of_elements(bad: Callable[[Floats], Any]) -> Callable[[list[Floats], float], bool]:
    return lambda group, scale: any(bool(np.any(bad(x))) for x in group)


def _sum_overflows(power: int) -> Callable[[list[Floats], float], bool]:
    def bad(group: list[Floats], scale: float) -> bool:
        total = sum(float(np.sum(x.astype(np.float64) ** power)) for x in group)
        return not np.isfinite(np.float32(total))
    return bad


def _decisions() -> Iterator[ScalerCandidate]:
    rows: list[tuple[str, Callable[[list[Floats], float], bool]]] = [
        ("Inf and NaN are seen only in an optimizer's first tensor", _seen_in(slice(0, 1))),
        ("Inf and NaN are seen only in an optimizer's last tensor", _seen_in(slice(-1, None))),
        ("Inf and NaN are seen only in the first element of a tensor",
         _of_elements(lambda x: ~np.isfinite(x[:1]))),
        ("Inf and NaN are missed in the last element of a tensor",
         _of_elements(lambda x: ~np.isfinite(x[:-1]))),
        ("NaN is missed: only Inf skips a step", _of_elements(np.isinf)),
        ("Inf is missed: only NaN skips a step", _of_elements(np.isnan)),
        ("-Inf is missed", _of_elements(lambda x: np.isnan(x) | (x == np.inf))),
        ("a step is skipped only if all tensors have Inf or NaN",
         lambda group, scale: all(not np.isfinite(x).all() for x in group)),
        ("a step is skipped only if a whole tensor is Inf or NaN",
         _of_elements(lambda x: not np.isfinite(x).any())),
        ("Inf is looked for after unscaling, which can overflow",
         lambda group, scale: any_nonfinite([x * inverse(scale) for x in group], scale)),
        ("finite gradients are skipped if their sum of squares overflows fp32", _sum_overflows(2)),
        ("finite gradients are skipped if their sum overflows fp32", _sum_overflows(1)),
        ("Inf and NaN are not looked for", lambda group, scale: False)]
    for sentence, bad in rows:
        yield _varied(sentence, bad=bad)
    steps: list[tuple[str, Callable[[list[bool], State], list[bool]]]] = [
        ("no step is skipped, though the scale backs off", lambda bad, state: [True] * len(bad)),
        ("Inf or NaN of one optimizer skips the steps of all",
         lambda bad, state: [not any(bad)] * len(bad)),
        ("a step is skipped only if the gradients of all optimizers are bad",
         lambda bad, state: [not all(bad)] * len(bad)),
        ("the step after a skipped one is skipped too",
         lambda bad, state: [not b and not state.was_bad for b in bad]),
        ("the step after the bad one is skipped instead of the bad one",
         lambda bad, state: [not state.was_bad] * len(bad)),
        ("good steps are skipped, and bad ones applied", lambda bad, state: bad)]
    for sentence, applied in steps:
        yield _varied(sentence, applied=applied)


# ---- Unscaling ----

def _only_tensor(number: int) -> Callable[[Floats, Moment], Floats]:
    return lambda x, m: x * inverse(m.scale) if m.tensor == number else x


def _twice(x: Floats, m: Moment) -> Floats:
    return x * inverse(m.scale) * inverse(m.scale)


def _flushed(x: Floats, m: Moment) -> Floats:
    y = x * inverse(m.scale)
    return np.where(np.abs(y) < np.float32(2.0**-126), np.copysign(np.float32(0), y), y)


def _unscaling() -> Iterator[ScalerCandidate]:
    rows: list[tuple[str, Callable[[Floats, Moment], Floats]]] = [
        ("gradients are divided by the scale instead of multiplied by its inverse in "
         "fp32", lambda x, m: x / np.float32(m.scale)),
        ("unscaled by the scale instead of 1 / scale", lambda x, m: x * np.float32(m.scale)),
        ("gradients are not unscaled", lambda x, m: x),
        ("gradients are not unscaled if unscale_() was not called",
         lambda x, m: x * inverse(m.scale) if m.unscale_first else x),
        ("unscale_() does not unscale gradients",
         lambda x, m: x if m.unscale_first else x * inverse(m.scale)),
        ("gradients are unscaled twice", _twice),
        ("step() unscales again after unscale_()",
         lambda x, m: _twice(x, m) if m.unscale_first else x * inverse(m.scale)),
        ("unscaled by the next scale: the scale is updated before the gradients are "
         "unscaled", lambda x, m: x * inverse(m.next_scale)),
        ("only an optimizer's first tensor is unscaled", _only_tensor(0)),
        ("unscaled gradients below 2^-126 are flushed to zero", _flushed),
        *((f"unscaled gradients are rounded to {name}", _through(name))
          for name in ("fp16", "bf16"))]
    for sentence, unscaled in rows:
        yield _varied(sentence, unscaled=unscaled)
    yield _varied("the loss is not scaled", loss=lambda scale: 1.5)
    yield _varied("the loss is divided by the scale", loss=lambda s: 1.5 / s)


def _through(name: Any) -> Callable[[Floats, Moment], Floats]:
    def unscaled(x: Floats, m: Moment) -> Floats:
        narrow = convert(x * inverse(m.scale), name)
        return np.asarray(convert(narrow, "fp32", format=name))
    return unscaled


# ---- Checkpoints ----

def _states() -> Iterator[ScalerCandidate]:
    yield _varied("the growth tracker is lost in state_dict or "
                  "load_state_dict", resumed=lambda state, s: State(state.scale))
    yield _varied("the scale is lost in state_dict or load_state_dict",
                  resumed=lambda state, s: State(rounded(s["init_scale"]), state.tracker))
    yield _varied("load_state_dict does nothing",
                  resumed=lambda state, s: State(rounded(s["init_scale"])))


def candidates(policy: str) -> list[ScalerCandidate]:
    """Return the table of usual errors, in the order in which they are named."""
    names = ("torch", "apex", "apex_amp", "megatron", "deepspeed")
    others = [ScalerCandidate(f"the rule of {name} instead of {policy}",
                              partial(other_policy, name)) for name in names if name != policy]
    if policy != "torch":
        return others
    return [*_scales(), *_decisions(), *_unscaling(), *_states(), *others]


def explain_scaler(seen: list[tuple[Trace, list[StepResult]]], policy: str, f: Format,
                   wrong: int) -> Explanation:
    """Return the usual errors that give every step of every trace.

    Parameters
    ----------
    seen : list of (trace, results)
        All traces and what the scaler under test did on them.
    policy : str
        The policy tested.
    f : Format
        Format of the gradients.
    wrong : int
        Number of wrong steps.
    """
    found = [c for c in candidates(policy) if all(_fits(c, trace, got, f) for trace, got in seen)]
    return Explanation(tuple(c.sentence for c in found), sum(len(got) for _, got in seen), wrong)


def _fits(candidate: ScalerCandidate, trace: Trace, got: list[StepResult], f: Format) -> bool:
    steps = candidate.steps(trace, f)
    return steps is not None and all(map(same_step, got, steps))
