"""The rule of torch.amp.GradScaler in NumPy, each part of which can be replaced by a usual error.

The right results come from samebits.LossScaler; this model only explains wrong ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import samebits.loss_scaler as library
from samebits import _core
from samebits.convert import convert
from samebits.errors import Error, ScaleExhausted
from samebits.testing.loss_scaler_traces import Group, Step, Tensor, Trace
from samebits.testing.number_formats import Codes, Format, array_of, values

Floats = np.typing.NDArray[np.float32]

LOSS = 1.5  # the loss of every step


@dataclass(frozen=True)
class StepResult:
    """What a scaler did in one step.

    Attributes
    ----------
    scale, next_scale : float
        Scale before and after the step.
    scaled_loss : float or None
        LOSS times the scale, or None for scalers that do not scale losses.
    applied : tuple of bool
        Whether each optimizer stepped.
    gradients : tuple
        Codes of the unscaled gradients of each optimizer that stepped, () for the others.
    """

    scale: float
    next_scale: float
    scaled_loss: float | None
    applied: tuple[bool, ...]
    gradients: tuple[Group, ...]


def same_step(got: StepResult, expected: StepResult) -> bool:
    """Return whether a step is right. Losses are compared if both scalers have them."""
    losses = (got.scaled_loss, expected.scaled_loss)
    return (got.scale, got.next_scale, got.applied, got.gradients) == (
        expected.scale, expected.next_scale, expected.applied, expected.gradients) and (
        None in losses or losses[0] == losses[1])


def tensor_codes(codes: Codes, f: Format) -> tuple[int, ...]:
    """Return codes of a tensor for comparison: every NaN becomes the canonical one."""
    plain = np.asarray(convert(array_of(codes, f), f.name, format=f.name))
    return tuple(plain.view(f.code_dtype).tolist())


def expected_steps(policy: Any, trace: Trace, f: Format) -> list[StepResult]:
    """Return the right results: those of samebits.LossScaler."""
    scaler = library.LossScaler(policy, **trace.settings)
    found = []
    for step in trace.steps:
        scale, loss = scaler.get_scale(), scaler.scale(LOSS)
        applied, gradients = [], []
        for number, group in enumerate(step):
            arrays = [array_of(np.array(tensor, np.uint64), f) for tensor in group]
            scaler.unscale(arrays, str(number))
            applied.append(scaler.step(None, str(number)))
            gradients.append(tuple(tensor_codes(a.view(f.code_dtype).astype(np.uint64), f)
                                   for a in arrays) if applied[-1] else ())
        try:
            scaler.update()
        except ScaleExhausted:
            pass  # the scaler is ready for the next step
        found.append(StepResult(scale, scaler.get_scale(), loss, tuple(applied), tuple(gradients)))
    return found


@dataclass(frozen=True)
class State:
    """State of the model: the scale, a binary32 number, and the good steps since the last change.

    `was_bad` says whether the last step was skipped.
    """

    scale: float
    tracker: int = 0
    was_bad: bool = False


@dataclass(frozen=True)
class Moment:
    """What a step's unscaling may depend on."""

    scale: float
    next_scale: float
    unscale_first: bool
    tensor: int  # number of the tensor


def any_nonfinite(group: list[Floats], scale: float) -> bool:
    """Return whether an optimizer's scaled gradients contain Inf or NaN."""
    return any(not np.isfinite(x).all() for x in group)


def times_inverse(x: Floats, moment: Moment) -> Floats:
    """Return x times 1 / scale, rounded twice."""
    return x * inverse(moment.scale)


def inverse(scale: float) -> np.float32:
    return np.float32(np.float64(1.0) / np.float64(scale))


def torch_rule(state: State, bad: list[bool], settings: Mapping[str, Any]) -> State:
    """Return the next state by the rule of torch."""
    if any(bad):
        return State(rounded(state.scale * settings["backoff_factor"]))
    if state.tracker + 1 != settings["growth_interval"]:
        return State(state.scale, state.tracker + 1)
    grown = rounded(state.scale * settings["growth_factor"])
    return State(grown if math.isfinite(grown) else state.scale)


def rounded(x: float) -> float:
    return float(np.float32(x))


def skips_bad(bad: list[bool], state: State) -> list[bool]:
    """Return which optimizers step: those whose own gradients are finite."""
    return [not b for b in bad]


@dataclass(frozen=True)
class Variations:
    """Parts of the model that can be replaced."""

    bad: Callable[[list[Floats], float], bool] = any_nonfinite
    unscaled: Callable[[Floats, Moment], Floats] = times_inverse
    advance: Callable[[State, list[bool], Mapping[str, Any]], State] = torch_rule
    applied: Callable[[list[bool], State], list[bool]] = skips_bad
    loss: Callable[[float], float] = lambda scale: LOSS * scale
    resumed: Callable[[State, Mapping[str, Any]], State] = lambda state, settings: state


def modelled_steps(trace: Trace, f: Format,
                   change: Variations = Variations()) -> Iterator[StepResult]:
    """Yield what the model does on a trace of torch's settings."""
    state = State(rounded(trace.settings["init_scale"]))
    for number, step in enumerate(trace.steps):
        if number == trace.resume:
            state = dataclasses.replace(change.resumed(state, trace.settings), was_bad=False)
        with np.errstate(all="ignore"):
            state, result = _modelled(step, state, trace, f, change)
        yield result


def _modelled(step: Step, state: State, trace: Trace, f: Format,
              change: Variations) -> tuple[State, StepResult]:
    groups = [[_floats(t, f) for t in g] for g in step]
    bad = [change.bad(group, state.scale) for group in groups]
    following = change.advance(state, bad, trace.settings)
    applied = change.applied(bad, state)
    following = State(following.scale, following.tracker, any(bad))
    gradients = []
    for group, runs in zip(groups, applied):
        moments = (Moment(state.scale, following.scale, trace.unscale_first, i)
                   for i in range(len(group)))
        gradients.append(tuple(_codes(change.unscaled(x, m), f) for x, m in zip(group, moments))
                         if runs else ())
    return following, StepResult(state.scale, following.scale, rounded(change.loss(state.scale)),
                                 tuple(applied), tuple(gradients))


def _floats(tensor: Tensor, f: Format) -> Floats:
    codes = np.array(tensor, np.uint64)
    if f.name == "fp32":
        return codes.astype(np.uint32).view(np.float32)
    return values(codes, f).astype(np.float32)


def _codes(x: Floats, f: Format) -> tuple[int, ...]:
    codes = x.view(np.uint32).astype(np.uint64)
    if f.name == "fp32":
        return tensor_codes(codes, f)
    narrow = np.asarray(convert(x, f.name)).view(f.code_dtype)
    return tensor_codes(narrow.astype(np.uint64), f)


#: Torch's names of settings that other policies name otherwise.
_TORCHS = {"initial_scale": "init_scale", "scale_factor": "growth_factor",
           "scale_window": "growth_interval", "delayed_shift": "hysteresis"}


@cache
def _settings(policy: Any) -> dict[str, str]:
    """Return the settings of a policy: its names by those of torch."""
    return {_TORCHS.get(name, name): name
            for name in library.settings_of(_core.LossScaler(policy, []))}


def other_policy(other: str, trace: Trace, f: Format) -> list[StepResult] | None:
    """Return what the rule of another library does; None if it cannot have the trace's settings."""
    given = {_TORCHS.get(name, name): value for name, value in trace.settings.items()}
    names = _settings(other)
    factors = given.get("growth_factor", 2.0), given.get("backoff_factor", 0.5)
    if (other == "deepspeed" and factors[0] * factors[1] != 1) or (
            other == "apex_amp" and factors != (2.0, 0.5)):
        return None
    settings: dict[str, Any] = {names[k]: v for k, v in given.items() if k in names}
    if other == "deepspeed":
        settings["raise_error_at_min_scale"] = False
    try:
        return expected_steps(other, Trace(settings, trace.steps), f)
    except Error:
        return None
