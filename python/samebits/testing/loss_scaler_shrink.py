"""Shrinks a failing run of a loss scaler: fewer steps, tensors and elements, simpler numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from samebits.errors import Error
from samebits.testing.loss_scaler_traces import Step, Trace
from samebits.testing.runs import smallest_failing

_MAX_STEPS = 400  # runs that shrink a failure
_ONE = 0x3F800000
_SIMPLE: dict[str, tuple[Any, ...]] = {
    "init_scale": (65536.0, 4.0, 3.0), "initial_scale": (65536.0, 4.0), "growth_factor": (2.0,),
    "backoff_factor": (0.5,), "growth_interval": (1, 2, 3), "scale_window": (1, 2, 3),
    "hysteresis": (1, 2), "delayed_shift": (1, 2)}


def smallest_trace(trace: Trace, fails: Callable[[Trace], bool],
                   fixed: frozenset[str]) -> Trace:
    """Return the smallest failing run that was found; settings in `fixed` stay."""
    def failing(candidate: Trace) -> bool:
        try:
            return fails(candidate)
        except Error:  # the policy refuses the settings
            return False
    return smallest_failing(trace, lambda t: _simpler(t, fixed), failing, _MAX_STEPS)


def _simpler(trace: Trace, fixed: frozenset[str]) -> Iterator[Trace]:
    def but(**changes: Any) -> Trace:
        return dataclasses.replace(trace, **changes)

    if trace.resume >= 0:
        yield but(resume=-1)
    for steps in _fewer_steps(trace):
        yield but(steps=steps, resume=min(trace.resume, len(steps) - 1))
    if trace.unscale_first:
        yield but(unscale_first=False)
    for smaller in _smaller_steps(trace):
        yield but(steps=smaller)
    for settings in _simpler_settings(trace, fixed):
        yield but(settings=settings)
        for count in (1, 2, 3, 4):  # an interval that is shorter needs fewer steps before
            if count < len(trace.steps):
                yield but(settings=settings, steps=trace.steps[count:], resume=-1)
    for i, step in enumerate(trace.steps):
        plain = tuple(tuple(tuple(_plain(c) for c in t) for t in g) for g in step)
        if plain != step:
            yield but(steps=(*trace.steps[:i], plain, *trace.steps[i + 1:]))


def _simpler_settings(trace: Trace, fixed: frozenset[str]) -> Iterator[dict[str, Any]]:
    for name, values in _SIMPLE.items():
        if name in trace.settings and name not in fixed:
            own = trace.settings[name]
            better = values[:values.index(own)] if own in values else values
            yield from ({**trace.settings, name: value} for value in better)


def _fewer_steps(trace: Trace) -> Iterator[Sequence[Step]]:
    steps = trace.steps
    half = len(steps) // 2
    if half:
        yield from (steps[:half], steps[half:])
    for count in (4, 3, 2, 1):
        if count < len(steps):
            yield from ([*steps[:i], *steps[i + count:]]
                        for i in reversed(range(len(steps) - count + 1)))


def _smaller_steps(trace: Trace) -> Iterator[list[Any]]:
    """Yield the steps with one optimizer, one tensor or half of the elements less, everywhere."""
    steps, shape = trace.steps, [len(g) for g in trace.steps[0]]
    if len(shape) > 1:
        for j in range(len(shape)):
            yield [[g for k, g in enumerate(step) if k != j] for step in steps]
    for j, tensors in enumerate(shape):
        for k in range(tensors):
            if tensors > 1:
                yield [[[t for m, t in enumerate(g) if (n, m) != (j, k)]
                        for n, g in enumerate(step)] for step in steps]
            size = len(steps[0][j][k])
            for part in (slice(0, size // 2), slice(size // 2, size)):
                if size > 1:
                    yield [[[t[part] if (n, m) == (j, k) else t for m, t in enumerate(g)]
                            for n, g in enumerate(step)] for step in steps]


def _plain(code: int) -> int:
    """Return the code of 1.0 for a finite number in fp32; Inf, NaN and narrow codes stay."""
    return _ONE if code > 0xFFFF and code & 0x7F800000 != 0x7F800000 else code
