"""Whether a card computes rightly: `check_card`."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from samebits.errors import InvalidArgument, Unsupported
from samebits.torch import kernel_rules
from samebits.torch.differences import Difference, difference
from samebits.torch.operators import PRODUCTS
from samebits.torch.recompute import overload_of
from samebits.torch.record import sample_of
from samebits.torch.recorded_calls import RECOMPUTED
from samebits.torch.replay import Player, decoded, only_draws, short_name
from samebits.torch.replay_memory import Copies
from samebits.torch.trace import Trace, hash_of

__all__ = ["CardCheck", "CardFinding", "check_card"]

#: Sums that an H200 computed and that the rules give: a JSON object, ``hashes``, by call.
SUMS = Path(__file__).parent / "kernel_rules_h200.json"
#: Attention is left out: its rules take minutes on two cores.
_GROUPS = [group for group in kernel_rules.GROUPS if group != "attention"]


@dataclass(frozen=True)
class CardFinding:
    """A result of a card with other bits than expected.

    Attributes
    ----------
    unit : str
        The operator of the recording, or the call.
    detail : str
        How much differs.
    where : Difference, optional
        Of an operator: the elements, and the bit if it is one.
    follows : str
        Another known rule that the card's result follows, or an empty text: it computes wrongly.
    """

    unit: str
    detail: str
    where: Difference | None = None
    follows: str = ""

    def __str__(self) -> str:
        return f"{self.unit}: {self.detail}" + (f"; follows {self.follows}" if self.follows else "")


@dataclass
class CardCheck:
    """The result of `check_card`.

    Attributes
    ----------
    operators, calls : int
        Operators of the recording, and calls, that were compared.
    findings : list of CardFinding
        All results with other bits than expected.
    not_covered : dict
        What was not compared: how often, by name.
    seconds : float
    """

    operators: int = 0
    calls: int = 0
    findings: list[CardFinding] = field(default_factory=list)
    not_covered: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def wrong(self) -> list[CardFinding]:
        """The findings that follow no known rule."""
        return [finding for finding in self.findings if not finding.follows]

    def __str__(self) -> str:
        compared, wrong = self.operators + self.calls, len(self.wrong)
        lines = [f"{self.operators} operators and {self.calls} calls in {self.seconds:.1f} s: "
                 f"{compared - len(self.findings)} equal, bit for bit; {wrong} wrong"]
        lines += [f"  wrong: {finding}" for finding in self.wrong]
        lines += [f"  another rule: {finding}" for finding in self.findings if finding.follows]
        lines += [f"  {n} not compared: {name}" for name, n in sorted(self.not_covered.items())]
        return "\n".join(lines)


def run_there(operator: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Run an operator on the device of its tensors."""
    return overload_of(operator)(*args, **{key: value for key, value in kwargs.items() if key != "pin_memory"})


def results_there(case: kernel_rules.Case, device: str) -> Any:
    """Run a call on a device."""
    return case.run(*[t.to(device) for t in case.operands])


class _Card(Player):
    """Runs the operators of a recording on a device, each from operands that the CPU has."""

    def __init__(self, trace: Trace, given: Any, device: str) -> None:
        super().__init__(trace, given)
        self._device = device

    def check(self, i: int, to: CardCheck) -> None:
        """Run an operator on the device, compare its hashes, and go on with the right values."""
        entry = self._trace.operators[i]
        name = f"{entry['op']} #{i}" + (f" ({entry['module']})" if entry.get("module") else "")
        right = self.fork(i)
        try:
            if self.reads_wrong(entry):
                to.not_covered["operators with operands that are not known"] += 1
                self.mark_wrong(entry)
            elif entry.get("random"):
                if not self.take_recorded(i, entry):
                    raise Unsupported("random numbers that the recording has not kept")
                if not only_draws(entry["op"]):  # it computes with them, as dropout
                    to.not_covered[entry["op"]] += 1
            else:
                self.check_reads(i, entry)
                self._run_there(i)
                to.operators += 1
                if wrong := self.compare(entry):
                    to.findings.append(self._judged(i, name, wrong[0], right))
        except (RuntimeError, Unsupported) as error:  # of PyTorch on this device
            to.not_covered[f"{entry['op']}: {str(error).partition(chr(10))[0]}"] += 1
            self.mark_wrong(entry)
        self.memory.free(i, entry)

    def _run_there(self, i: int) -> None:
        entry, there = self._trace.operators[i], Copies(self.memory, self._device)
        if entry["op"] in RECOMPUTED:
            raise Unsupported("an operator of this package runs its own kernels")
        args, kwargs = (decoded(entry[key], there.tensor, device=self._device) for key in ("args", "kwargs"))
        # Products have no other algorithm, and PyTorch would ask for CUBLAS_WORKSPACE_CONFIG.
        product = short_name(entry["op"]) in PRODUCTS
        with kernel_rules.deterministic(entry.get("deterministic", False) and not product):
            results = run_there(entry["op"], args, kwargs)
        for place, _ in entry["wrote"]:
            if place[0] in there.blocks:
                self.memory.tensor(place).copy_(there.tensor(place))
        self.store(i, results)

    def _judged(self, i: int, name: str, j: int, right: Player) -> CardFinding:
        """Say where a result differs, and which other rule it follows; go on with the right values."""
        entry = self._trace.operators[i]
        place = entry["wrote"][j][0]
        wrong, follows = self.memory.tensor(place).clone(), ""
        if short_name(entry["op"]) in PRODUCTS:  # another library may choose another rule
            seen = replace(self._trace, tensors={f"sample.{i}": sample_of(wrong)})
            follows = right.rule_giving(i, j, hash_of(wrong), seen)
        try:
            right.run(i)
        except Unsupported as error:
            return CardFinding(name, f"result {j} differs, and has no rule: {error}", None, follows)
        if right.compare(entry):
            return CardFinding(name, f"result {j} differs, and the rule does not give the recorded one", None, follows)
        where = difference(wrong, right.memory.tensor(place))
        self.memory.take(right.memory, entry)
        return CardFinding(name, f"result {j}, {where}", where, follows)


def _check_call(name: str, case: kernel_rules.Case, expected: str | None, device: str, to: CardCheck) -> None:
    """Compare a call with its sum; one without a sum, and one that differs, with the rules of its operators."""
    if expected is not None:
        try:
            found = kernel_rules.hash_of_results(results_there(case, device))
        except RuntimeError as error:
            to.not_covered[f"{name}: {str(error).partition(chr(10))[0]}"] += 1
            return
        to.calls += 1
        if found == expected:
            return
    entry = kernel_rules.judged(case, device)
    if "refused" in entry:
        to.not_covered[f"{name}: {entry['refused']}"] += 1
        return
    to.calls += expected is None
    if "not covered" in entry:
        to.findings.append(CardFinding(name, f"no known rule: {entry['not covered']}"))
    elif entry["differ"]:
        to.findings.append(CardFinding(name, f"{entry['differ']} of {entry['results']} results differ from the rule"))
    elif expected is not None:
        to.findings.append(CardFinding(name, "another sum than expected", None,
                                       "its operators' rules, when it was run again"))


def check_card(recording: str | os.PathLike[str] | Trace | None = None, *given: Any, device: str = "cuda",
               groups: Sequence[str] = tuple(_GROUPS)) -> CardCheck:
    """Compare the bits that a card computes with those that its rules give.

    The calls of `samebits.torch.kernel_rules` are compared with sums that ship with this package
    (``kernel_rules_h200.json``); products, whose kernel the library chooses, with their rules on the CPU.
    Each operator of a recorded step runs on the card with the operands that it had, and is compared with the
    recorded hashes: no second card and no earlier run of this card is needed.

    Parameters
    ----------
    recording : path or Trace, optional
        A step that `record` wrote on a card, and that `replay` finds equal, such as
        ``examples/python/gpt_step.sbt``.
    given : modules, optimizers or tensors, optional
        As in `replay`.
    device : str
        The card.
    groups : list of str
        Calls: elementwise, functions, rows, reductions, losses, products, attention; empty: none.

    Raises
    ------
    InvalidArgument
        The values of a source are missing, or a group is not known.
    Unsupported
        torch finds no GPU.

    Returns
    -------
    CardCheck
        `wrong` names the operators and calls that follow no known rule.

    Examples
    --------
    >>> with sbt.record() as r:
    ...     y = torch.ones(2) + 1
    >>> card = sbt.check_card(r.trace, device="cpu", groups=[])
    >>> card.operators, card.wrong
    (2, [])
    """
    for group in groups:
        if group not in kernel_rules.GROUPS:
            raise InvalidArgument(f"groups: one of {', '.join(kernel_rules.GROUPS)} is expected, got {group!r}")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise Unsupported(f"device {device}: torch finds no GPU")
    began, result = time.perf_counter(), CardCheck()
    if recording is not None:
        trace = recording if isinstance(recording, Trace) else Trace.load(recording)
        with _disable_current_modes(), kernel_rules.tf32(trace.machine.get("tf32", False)):
            card = _Card(trace, given, device)
            for i in range(len(trace.operators)):
                card.check(i, result)
    sums = json.loads(SUMS.read_text())["hashes"]
    for group in groups:
        for form, dtype in kernel_rules.FORMATS.items():
            for case in kernel_rules.GROUPS[group](dtype):
                name = f"{group} {form}: {case.name}"
                _check_call(name, case, sums.get(name), device, result)
    result.seconds = time.perf_counter() - began
    return result
