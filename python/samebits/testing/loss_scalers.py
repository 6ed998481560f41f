"""Tests of a loss scaler against a library's policy: `check_loss_scaler`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from samebits.errors import InvalidArgument
from samebits.formats import nearest_first
from samebits.loss_scaler import POLICY_NAMES
from samebits.testing.loss_scaler_errors import explain_scaler
from samebits.testing.loss_scaler_model import StepResult, expected_steps, same_step
from samebits.testing.loss_scaler_report import scaler_text
from samebits.testing.loss_scaler_runs import interface_of, run_trace
from samebits.testing.loss_scaler_shrink import smallest_trace
from samebits.testing.loss_scaler_traces import Trace, drawn_settings, traces
from samebits.testing.memory import Memory, memory_on
from samebits.testing.number_formats import Format, format_named
from samebits.testing.report import arguments_text
from samebits.testing.runs import CallFailed, called, name_of

_BLOCK = 16  # runs: among them checkpoints and a large tensor
_ENOUGH = 32  # wrong steps, which tell usual errors apart; no further block of runs


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
    examples_seed : int
        Seed of the runs.
    device : str or torch.device, optional
        "cuda" or "cpu": gradients are torch tensors there. By default they are NumPy arrays, for
        scalers with torch's interface CPU tensors.

    Raises
    ------
    AssertionError
        A step is wrong. The text shows the shortest run that was found, the usual error that gives
        all steps seen, and a line that repeats the run.
    InvalidArgument
        The policy is unknown, or refuses the settings.
    Unsupported
        torch is not installed, or does not find the device.

    Examples
    --------
    >>> import samebits as sb
    >>> check_loss_scaler(lambda **settings: sb.LossScaler("torch", **settings), examples=4)
    """
    memory = memory_on(device)
    if policy not in POLICY_NAMES:
        raise InvalidArgument(f"policy: {policy!r} is not one of "
                              f"{nearest_first(policy, POLICY_NAMES)}")
    fixed = dict(settings or {})
    test = _ScalerTest(make_scaler, policy, format_named(source), memory)
    runs = [only] if only is not None else test.runs(fixed, examples, examples_seed)
    head = [("policy", policy, "torch"), ("source", test.source.name, "fp32"),
            ("device", memory.device, None)]
    call = f"check_loss_scaler({name_of(make_scaler)}" + arguments_text(head)
    test.check(runs, call, frozenset(fixed), shrinks=only is None)


class _ScalerTest:
    """Runs a scaler on traces and compares its steps."""

    def __init__(self, make_scaler: Callable[..., Any], policy: str, source: Format,
                 memory: Memory) -> None:
        self.make_scaler, self.policy, self.source = make_scaler, policy, source
        self.memory = memory

    def runs(self, fixed: Mapping[str, Any], examples: int, seed: int) -> Iterator[Trace]:
        """Return random traces; a first scaler says how many optimizers it supports."""
        rng = np.random.default_rng(seed)
        first = {**drawn_settings(self.policy, rng), **fixed}
        name = name_of(self.make_scaler)
        try:
            scaler = called(name, f"settings {first}", lambda: interface_of(
                self.make_scaler(**first), name, self.source, self.memory))
        except CallFailed as error:
            raise AssertionError(str(error)) from error
        return traces(self.policy, fixed, self.source, scaler.max_optimizers, examples, rng)

    def check(self, runs: Iterable[Trace], call: str, fixed: frozenset[str], *,
              shrinks: bool) -> None:
        seen, wrong = [], []
        for number, trace in enumerate(runs, 1):
            try:
                seen.append((trace, self.steps(trace)))
            except CallFailed:
                smallest = smallest_trace(trace, self.raises, fixed) if shrinks else trace
                self.report_exception(smallest, call)
            wrong.append(len(self.wrong_steps(*seen[-1])))
            if number % _BLOCK == 0 and sum(wrong) >= _ENOUGH:
                break
        failing = [s for s, count in zip(seen, wrong) if count]
        if not failing:
            return
        failing.sort(key=lambda s: len(s[0].steps))
        # Most usual errors differ from short failing runs.
        others = [s for s, count in zip(seen, wrong) if not count]
        why = explain_scaler(failing + others, self.policy, self.source, sum(wrong))
        smallest = failing[0][0]
        if shrinks:
            smallest = smallest_trace(smallest, self.fails, fixed)
        raise AssertionError(scaler_text(self.policy, smallest, self.steps(smallest),
                                         self.expected(smallest), self.source, why, call))

    def report_exception(self, trace: Trace, call: str) -> NoReturn:
        try:
            self.steps(trace)
        except CallFailed as error:
            raise AssertionError(f"policy {self.policy}: {error}\n"
                                 f"  repeat:   {call}, only={trace})") from error
        raise AssertionError(f"policy {self.policy}: {name_of(self.make_scaler)} raised, but not "
                             f"when the run was repeated\n  repeat:   {call}, only={trace})")

    def steps(self, trace: Trace) -> list[StepResult]:
        return run_trace(self.make_scaler, trace, self.source, self.memory)

    def expected(self, trace: Trace) -> list[StepResult]:
        return expected_steps(self.policy, trace, self.source)

    def wrong_steps(self, trace: Trace, got: list[StepResult]) -> list[int]:
        """Return the numbers of the wrong steps."""
        return [i for i, (g, e) in enumerate(zip(got, self.expected(trace)))
                if not same_step(g, e)]

    def fails(self, trace: Trace) -> bool:
        """Return whether a shorter run is wrong, too; runs that raise do not count."""
        try:
            return bool(self.wrong_steps(trace, self.steps(trace)))
        except CallFailed:
            return False

    def raises(self, trace: Trace) -> bool:
        try:
            self.steps(trace)
        except CallFailed:
            return True
        return False
