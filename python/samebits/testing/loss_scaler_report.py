"""The text of a failed check of a loss scaler: the run, step by step, up to the wrong step."""

from __future__ import annotations

from typing import Any

import numpy as np

from samebits.testing.explanation import Explanation
from samebits.testing.loss_scaler_model import StepResult, same_step
from samebits.testing.loss_scaler_traces import Trace
from samebits.testing.number_formats import Format, values
from samebits.testing.report import code_text

_SHOWN = 6  # steps before the wrong one


def _number(x: float) -> str:
    """Return a scale: a power of two, or the shortest decimal."""
    text = repr(x)
    return text[:-2] if text.endswith(".0") and len(text) < 12 else text


def scaler_text(policy: str, trace: Trace, got: list[StepResult], expected: list[StepResult],
                f: Format, why: Explanation, call: str) -> str:
    """Return the text of a failed check; `call` is the check's call without its parenthesis."""
    wrong = next((i for i, (g, e) in enumerate(zip(got, expected)) if not same_step(g, e)), None)
    if wrong is None:
        return (f"policy {policy}: a step was wrong, and right when the run was repeated\n"
                f"  {why.text}\n  repeat:   {call}, only={trace})")
    settings = ", ".join(f"{k} {_number(v) if isinstance(v, float) else v}"
                         for k, v in trace.settings.items())
    lines = [f"policy {policy}, {settings}: step {wrong} of {len(got)} is wrong "
             "(smallest run found)"]
    if wrong > _SHOWN:
        lines.append(f"  ...       {wrong - _SHOWN} steps before")
    for i in range(max(wrong - _SHOWN, 0), wrong + 1):
        e = expected[i]
        resumed = "continued by a new scaler from state_dict, " if i == trace.resume else ""
        lines.append(f"  step {i:<4} {resumed}scale {_number(e.scale)}, gradients "
                     f"{_gradients(trace.steps[i], f)}: {_decision(e.applied)}, next scale "
                     f"{_number(e.next_scale)}")
    lines[-1] = lines[-1].replace(": ", ", expected: ", 1)
    lines += _differences(trace, wrong, got[wrong], expected[wrong], f)
    return "\n".join([*lines, f"  {why.text}", f"  repeat:   {call}, only={trace})"])


def _decision(applied: tuple[bool, ...]) -> str:
    words = ["stepped" if a else "skipped" for a in applied]
    return words[0] if len(set(words)) == 1 else ", ".join(
        f"optimizer {i} {word}" for i, word in enumerate(words))


def _gradients(step: Any, f: Format) -> str:
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


def _differences(trace: Trace, i: int, got: StepResult, expected: StepResult,
                 f: Format) -> list[str]:
    lines = []
    if got.scale != expected.scale:
        lines.append(f"  got       scale {_number(got.scale)} before the step")
    if got.scaled_loss is not None and got.scaled_loss != expected.scaled_loss:
        lines.append(f"  got       a scaled loss of {got.scaled_loss!r}   expected "
                     f"{expected.scaled_loss!r}")
    if got.applied != expected.applied:
        lines.append(f"  got       {_decision(got.applied)}")
    if got.next_scale != expected.next_scale:
        lines.append(f"  got       next scale {_number(got.next_scale)}")
    for j, (mine, right) in enumerate(zip(got.gradients, expected.gradients)):
        if not mine or not right or mine == right:
            continue
        k = next(k for k, (a, b) in enumerate(zip(mine, right)) if a != b)
        m = next(m for m, (a, b) in enumerate(zip(mine[k], right[k])) if a != b)
        of = "" if trace.optimizers == 1 else f" of optimizer {j}"
        lines += [f"  gradient  tensor {k}[{m}]{of}: "
                  f"{code_text(trace.steps[i][j][k][m], f)}, scale {_number(expected.scale)}",
                  f"  got       {code_text(mine[k][m], f)}   expected {code_text(right[k][m], f)}"]
    return lines
