"""Tests of a loss scaler against a library's policy: `check_loss_scaler`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from samebits.errors import Error, InvalidArgument
from samebits.formats import nearest_first
from samebits.loss_scaler import POLICY_NAMES, LossScaler
from samebits.testing.loss_scaler_errors import explanations, same_step
from samebits.testing.loss_scaler_runs import (CHOICES, Group, StepResult, Trace, drawn_settings,
                                               interface_of, run_trace, traces)
from samebits.testing.memory import Memory, memory_on
from samebits.testing.number_formats import Format, format_named, values
from samebits.testing.report import arguments_text, code_text, explanation_text
from samebits.testing.runs import CallFailed, called, name_of, smallest_failing

_BLOCK = 16  # runs: among them checkpoints and a large tensor
_ENOUGH = 32  # wrong steps, which tell usual errors apart; no further block of runs
_MAX_RUNS = 400  # that shrink a failure
_SHOWN = 6  # steps before the wrong one


def check_loss_scaler(
    make_scaler: Callable[..., Any],
    policy: str = "torch",
    *,
    settings: Mapping[str, Any] | None = None,
    source: object = "fp32",
    only: Trace | None = None,
    examples: int = 128,
    examples_seed: int = 0,
    device: object = None,
) -> None:
    """Compare a loss scaler with a library's policy on random training runs, bit for bit.

    Compared are, at every step: the scale before and after, the scaled loss, which optimizers
    step, and the unscaled gradients of those that do. The runs have one or two optimizers, one to
    three tensors each, growth intervals of 1 to 5, Inf and NaN in all positions, gradients near the
    largest and the smallest number, and checkpoints.

    Parameters
    ----------
    make_scaler : callable
        Called as ``make_scaler(**settings)`` for each run; returns a scaler. A scaler has

        - the interface of torch.amp.GradScaler: scale, ``unscale_``, step, update, get_scale; or
        - that of samebits.LossScaler: scale, unscale, step, update, get_scale; or
        - ``scaler(gradients)``, which unscales a list of arrays [n] in place, sets the next scale,
          and returns whether the optimizer may step; and an attribute `scale` or a get_scale().

        If it has state_dict and load_state_dict, some runs continue with a new scaler.
    policy : str
        torch, apex, apex_amp, megatron, deepspeed or native: the rule of `samebits.LossScaler`.
    settings : mapping, optional
        Settings that are the same in all runs, such as ``{"backoff_factor": 0.5}``. The others
        are random. For torch: init_scale, growth_factor, backoff_factor, growth_interval.
    source : str or dtype
        Format of the gradients: fp32, fp16 or bf16.
    only : Trace, optional
        Makes exactly this run. The repeat line of a failure uses it.
    examples : int
        Number of random runs.
    examples_seed, device
        As in `check_conversion`. With torch's interface, gradients are CPU tensors by default.

    Raises
    ------
    AssertionError, InvalidArgument, Unsupported
        As in `check_conversion`; the text shows the shortest run that was found. The policy may
        refuse settings.

    Examples
    --------
    >>> import samebits as sb
    >>> check_loss_scaler(lambda **settings: sb.LossScaler("torch", **settings), examples=4)
    """
    if policy not in POLICY_NAMES:
        raise InvalidArgument(f"policy: {policy!r} is not one of "
                              f"{nearest_first(policy, POLICY_NAMES)}")
    fixed = dict(settings or {})
    test = _ScalerTest(make_scaler, policy, format_named(source), memory_on(device))
    try:
        runs = [only] if only is not None else test.traces(fixed, examples, examples_seed)
        test.check(runs, None if only is not None else frozenset(fixed))
    except CallFailed as error:
        raise AssertionError(f"policy {policy}: {error}") from error


class _ScalerTest:
    """Runs a scaler on traces and compares its steps."""

    def __init__(self, make_scaler: Callable[..., Any], policy: Any, f: Format,
                 memory: Memory) -> None:
        self.make_scaler, self.policy, self.f, self.memory = make_scaler, policy, f, memory
        self.name = name_of(make_scaler)

    def traces(self, fixed: Mapping[str, Any], examples: int, seed: int) -> Iterator[Trace]:
        """Return random traces; a first scaler says how many optimizers it supports."""
        rng = np.random.default_rng(seed)
        first = drawn_settings(self.policy, fixed, rng)
        scaler = called(self.name, f"settings {first}",
                        lambda: interface_of(self.make_scaler(**first), self.name))
        return traces(self.policy, fixed, self.f, scaler.max_optimizers, examples, rng)

    def check(self, runs: Iterable[Trace], fixed: frozenset[str] | None) -> None:
        """Run the scaler and raise for a failure, which is shrunk unless `fixed` is None."""
        seen, wrong = [], []
        for number, trace in enumerate(runs, 1):
            try:
                seen.append((trace, self.steps(trace)))
            except CallFailed:
                smallest = self.smallest(trace, fixed, raises=True)
                raise CallFailed(f"{self.raised}\n{self.repeat(smallest)}") from self.raised
            wrong.append(self.wrong_steps(*seen[-1]))
            if number % _BLOCK == 0 and sum(wrong) >= _ENOUGH:
                break
        if not sum(wrong):
            return
        # Most usual errors differ from short failing runs: these come first.
        order = sorted(range(len(seen)), key=lambda i: (not wrong[i], len(seen[i][0].steps)))
        seen = [seen[i] for i in order]
        why = explanation_text(explanations(self.policy, seen, self.f),
                               sum(len(got) for _, got in seen), sum(wrong))
        smallest = self.smallest(seen[0][0], fixed, raises=False)
        raise AssertionError("\n".join([*self.text(smallest), why, self.repeat(smallest)]))

    def repeat(self, trace: Trace) -> str:
        options = arguments_text([("policy", self.policy, "torch"), ("source", self.f.name, "fp32"),
                                  ("device", self.memory.device, None)])
        return f"  repeat:   check_loss_scaler({self.name}{options}, only={trace})"

    def steps(self, trace: Trace) -> list[StepResult]:
        which = f"{len(trace.steps)} step{'' if len(trace.steps) == 1 else 's'}"
        try:
            return called(self.name, which, lambda: run_trace(
                self.make_scaler, trace, self.f, self.memory, self.name))
        except CallFailed as error:
            self.raised = error
            raise

    def expected(self, trace: Trace) -> list[StepResult]:
        return run_trace(partial(LossScaler, self.policy), dataclasses.replace(trace, resume=-1),
                         self.f, Memory())

    def wrong_steps(self, trace: Trace, got: list[StepResult]) -> int:
        return sum(not same_step(g, e) for g, e in zip(got, self.expected(trace)))

    def smallest(self, trace: Trace, fixed: frozenset[str] | None, *, raises: bool) -> Trace:
        """Return the smallest run found that is wrong, or in which the scaler raises."""
        def fails(tried: Trace) -> bool:
            try:
                return self.wrong_steps(tried, self.steps(tried)) > 0 and not raises
            except CallFailed:
                return raises
            except Error:  # the policy refuses the settings
                return False
        return trace if fixed is None else smallest_failing(
            trace, lambda t: _simpler(t, self.f, fixed), fails, _MAX_RUNS)

    def text(self, trace: Trace) -> list[str]:
        """Return the lines that tell a run, step by step, up to the first wrong step."""
        steps = [*zip(self.steps(trace), self.expected(trace))]
        wrong = next((i for i, (g, e) in enumerate(steps) if not same_step(g, e)), None)
        if wrong is None:
            return [f"policy {self.policy}: a step was wrong, and right when the run was repeated"]
        settings = ", ".join(f"{k} {_number(v)}" for k, v in trace.settings.items())
        lines = [f"policy {self.policy}, {settings}: step {wrong} of {len(steps)} is wrong "
                 "(smallest run found)"]
        first = max(wrong - _SHOWN, 0)
        if first:
            lines.append(f"  ...       {first} steps before")
        for i, (_, e) in enumerate(steps[first:wrong + 1], first):
            resumed = "continued by a new scaler from state_dict, " if i == trace.resume else ""
            expected = ", expected" if i == wrong else ""
            lines.append(f"  step {i:<4} {resumed}scale {_number(e.scale)}, gradients "
                         f"{_contents(trace.steps[i], self.f)}{expected}: {_decision(e)}")
        got, right = steps[wrong]
        loss = "" if got.scaled_loss in (None, right.scaled_loss) else (
            f", a scaled loss of {got.scaled_loss!r} instead of {right.scaled_loss!r}")
        lines.append(f"  got       scale {_number(got.scale)}: {_decision(got)}{loss}")
        for j, (mine, correct) in enumerate(zip(got.gradients, right.gradients)):
            if mine is None or correct is None or mine == correct:
                continue
            k, m = next((k, m) for k, tensor in enumerate(correct) for m, code in enumerate(tensor)
                        if mine[k][m] != code)
            given, *codes = (code_text(group[k][m], self.f)
                             for group in (trace.steps[wrong][j], mine, correct))
            lines.append(f"  gradient  optimizer {j}, tensor {k}[{m}]: {given}   got {codes[0]}   "
                         f"expected {codes[1]}")
        return lines


def _number(x: Any) -> str:
    """Return a setting or a scale as the shortest decimal."""
    text = repr(x)
    return text[:-2] if text.endswith(".0") and len(text) < 12 else text


def _decision(step: StepResult) -> str:
    words = ["skipped" if g is None else "stepped" for g in step.gradients]
    told = words[0] if len(set(words)) == 1 else ", ".join(
        f"optimizer {i} {word}" for i, word in enumerate(words))
    return f"{told}, next scale {_number(step.next_scale)}"


def _contents(step: Any, f: Format) -> str:
    """Return where the scaled gradients of a step are Inf or NaN."""
    found = []
    for j, group in enumerate(step):
        for k, tensor in enumerate(group):
            x = values(np.array(tensor, np.uint64), f)
            for word, mask in (("Inf", np.isinf(x)), ("NaN", np.isnan(x))):
                if mask.any():
                    at = f"tensor {k}" if len(step) == 1 else f"tensor {k} of optimizer {j}"
                    found.append(f"with {word} in {at}[{int(np.argmax(mask))}]")
    return " and ".join(found) or "finite"


def _simpler(trace: Trace, f: Format, fixed: frozenset[str]) -> Iterator[Trace]:
    """Yield runs with fewer steps, tensors and elements, and with simpler settings and numbers."""
    but, steps = partial(dataclasses.replace, trace), tuple(trace.steps)
    if trace.resume >= 0:
        yield but(resume=-1)
    for count in (len(steps) // 2, 4, 3, 2, 1):
        for i in reversed(range(len(steps) - count + 1 if 0 < count < len(steps) else 0)):
            yield but(steps=steps[:i] + steps[i + count:],
                      resume=min(trace.resume, len(steps) - count - 1))
    if trace.unscale_first:
        yield but(unscale_first=False)
    for j, group in enumerate(steps[0]):
        for k, tensor in enumerate(group):
            half = len(tensor) // 2
            for part in (slice(0), slice(half), slice(half, None)):  # of this tensor in all steps
                smaller = [[[t[part] if (n, m) == (j, k) else t for m, t in enumerate(g)]
                            for n, g in enumerate(step)] for step in steps]
                smaller = [[[t for t in g if t] for g in step if any(g)] for step in smaller]
                if all(smaller) and (half or part == slice(0)):
                    yield but(steps=smaller)
    for name, own in trace.settings.items():
        simple = () if name in fixed else CHOICES.get(name, ())
        for value in simple[:simple.index(own)] if own in simple else simple:
            for count in range(min(5, len(steps))):  # a shorter interval needs fewer steps before
                yield but(settings={**trace.settings, name: value}, steps=steps[count:],
                          resume=-1 if count else trace.resume)
    for i, step in enumerate(steps):
        plain = tuple(tuple(tuple(f.one if code & (f.sign - 1) <= f.max_magnitude else code
                                  for code in t) for t in g) for g in step)
        if plain != step:
            yield but(steps=(*steps[:i], plain, *steps[i + 1:]))
