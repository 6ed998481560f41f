"""Recomputes a recording on a CPU: `replay`."""

from __future__ import annotations

import copy
import math
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from samebits.errors import Unsupported
from samebits.torch.aten.elementwise import is_elementwise
from samebits.torch.aten.products import rules_of_product
from samebits.torch.differences import difference
from samebits.torch.operators import PRODUCTS
from samebits.torch.other_rules import OtherRule, other_rules
from samebits.torch.recompute import Conditions, reason_of, recompute_recorded
from samebits.torch.record import spaced
from samebits.torch.replay_memory import Memory, MissingSource, blocks_of
from samebits.torch.trace import Trace, hash_of, hashes_of, places

__all__ = ["Replay", "Step", "replay"]

_DRAWS = frozenset("""bernoulli binomial cauchy exponential geometric log_normal multinomial normal normal_functional
    poisson rand rand_like randint randint_like randn randn_like random randperm uniform""".split())


@dataclass(frozen=True)
class Step:
    """What became of one operator.

    Attributes
    ----------
    number : int
        Its place in the recording.
    operator : str
    module : str
        The module that called it, or an empty text.
    state : str
        ``equal``; ``differs``: the operands are equal and the results are not; ``follows``: an operand
        differs already; ``random``: random numbers, taken from the recording and not compared; ``not covered``.
    detail : str
        Which results differ, or what is not covered; of an equal product its rule.
    elements : int
        Number of elements that were compared.
    differ : int, optional
        How many of them differ, where the recording keeps all results.
    """

    number: int
    operator: str
    module: str
    state: str
    detail: str = ""
    elements: int = 0
    differ: int | None = 0

    def __str__(self) -> str:
        where = f" ({self.module})" if self.module else ""
        return f"{self.state}: {self.operator} #{self.number}{where}" + (f": {self.detail}" if self.detail else "")


@dataclass(frozen=True)
class Replay:
    """The result of `replay`.

    Attributes
    ----------
    steps : list of Step
        One for each operator.
    """

    steps: list[Step]

    @property
    def equal(self) -> bool:
        """Whether every operator is covered and equal, but for random numbers."""
        return all(step.state in ("equal", "random") for step in self.steps)

    def __str__(self) -> str:
        count = Counter(step.state for step in self.steps)
        lines = [f"{len(self.steps)} operators: {count['equal']} equal, bit for bit"]
        uncovered = Counter(step.detail for step in self.steps if step.state == "not covered")
        lines += [f"  {n} not covered: {what}" for what, n in uncovered.items()]
        for step in self.steps:
            if step.state == "differs":
                counted = "" if step.differ is None else f", {step.differ} of {step.elements} elements"
                lines.append(f"  {step}{counted}")
        if count["random"]:
            lines.append(f"  {count['random']} with random numbers, taken from the recording")
        if count["follows"]:
            lines.append(f"  {count['follows']} with operands that differ already")
        return "\n".join(lines)


class _OtherNumber(Exception):
    """An operator returned another number than the recorded one."""


def decoded(x: Any, tensor: Callable[[list[Any]], torch.Tensor], as_number: bool = False,
            device: str = "cpu") -> Any:
    """Return an argument of a recording; `tensor` makes its tensors, on a device."""
    if isinstance(x, list):
        return [decoded(y, tensor, as_number, device) for y in x]
    if not isinstance(x, dict):
        return x
    if "t" in x:
        return tensor(x["t"])
    if "number" in x:
        number = decoded(x["number"], tensor)
        return number if as_number else torch.tensor(number, dtype=getattr(torch, x["dtype"]))
    if "float" in x:
        return float(x["float"])
    if "torch" in x:
        if x["torch"].startswith(("cuda", "cpu")):
            return torch.device(device)
        if not hasattr(torch, x["torch"]):
            raise Unsupported(f"the device {x['torch']}")
        return getattr(torch, x["torch"])
    if "tensor" in x or "other" in x:
        raise Unsupported(f"an argument of {x.get('tensor') or x['other']}")
    return {key: decoded(y, tensor, as_number, device) for key, y in x.items()}


def short_name(operator: str) -> str:
    """Return an operator's name without overload, of ATen's without namespace."""
    return operator.removeprefix("aten.").partition(".")[0] if operator.startswith("aten.") else operator


def only_draws(operator: str) -> bool:
    """Whether an operator does nothing but draw random numbers."""
    return short_name(operator).removesuffix("_") in _DRAWS


def conditions(trace: Trace, i: int, product: str | None = None) -> Conditions:
    """Return what an operator's results depend on besides its operands."""
    return Conditions(trace.machine.get("multiprocessors", 132),
                      trace.operators[i].get("deterministic", False), product)


class Player:
    """Recomputes the operators of a recording, one after another."""

    def __init__(self, trace: Trace, given: Any) -> None:
        self._trace, self.memory = trace, Memory(trace, given)
        self._rules: dict[str, str] = {}  # by operands' shapes, strides and formats: the last product's rule

    def step(self, i: int) -> Step:
        """Recompute one operator, and compare what it writes."""
        entry = self._trace.operators[i]
        follows = self.reads_wrong(entry)
        state, detail, wrong = "follows" if follows else "equal", "", []
        self._without_rule: dict[int, bool] = {}  # blocks of results: whether operators compute with them
        try:
            if not follows:
                self.check_reads(i, entry)
                detail = self.run(i)
        except MissingSource:
            raise
        except _OtherNumber as error:
            state, detail = "differs", str(error)
        except Exception as error:  # noqa: BLE001 - also of PyTorch, from arguments that no rule expects
            state, detail = "not covered", reason_of(error, entry["op"])
        if state != "equal":
            self.mark_wrong(entry)
        elif wrong := self.compare(entry):
            state, detail = "differs", f"result {', '.join(map(str, wrong))}"
        elif any(self._without_rule.values()):
            state, detail = "not covered", f"one result of {entry['op']}"
        compared = [place for place, _ in entry["wrote"] if place[0] not in self._without_rule]
        without = state in ("not covered", "random", "follows")
        elements = 0 if without else sum(math.prod(place[2]) for place in compared)
        differ = 0 if state != "differs" else self._differing(i, entry, wrong) if wrong else None
        if state != "equal":
            taken = self.take_recorded(i, entry)
            if state == "not covered" and taken and only_draws(entry["op"]):
                state, detail = "random", ""
        self.memory.free(i, entry)
        return Step(i, entry["op"], entry.get("module", ""), state, detail, elements, differ)

    def reads_wrong(self, entry: Any) -> bool:
        """Whether an operand has other values than the recorded ones."""
        return any(self.memory.is_wrong(place[0]) for place in places([entry["args"], entry["kwargs"]]))

    def mark_wrong(self, entry: Any) -> None:
        """Keep in mind that what an operator writes is not known."""
        for place in [place for place, _ in entry["wrote"]] or places(entry["out"]):
            self.memory.mark(place, wrong=True)

    def check_reads(self, i: int, entry: Any) -> None:
        """Take what was written outside operators, where the recording has kept it."""
        unknown = []
        for k, (place, expected) in enumerate(entry.get("read", ())):
            x, kept = self.memory.tensor(place), self._trace.tensors.get(f"{i}.read{k}")
            if hash_of(x) == expected:
                continue
            if kept is not None:
                x.copy_(kept)
            else:
                self.memory.mark(place, wrong=True)
                unknown.append(self._trace.blocks[place[0]].get("source", f"an operand of {entry['op']}"))
        if unknown:
            raise Unsupported(f"{unknown[0]} was written by no operator that PyTorch's dispatcher sees")

    def run(self, i: int) -> str:
        """Recompute an operator; of a product return the rule that gives the recorded results."""
        entry = self._trace.operators[i]
        name = short_name(entry["op"])
        if name not in PRODUCTS:
            self.run_by(i, conditions(self._trace, i))
            return ""
        alike = str([name, *(place[2:] for place in places(entry["args"]))])
        if alike in self._rules and self._follows(i, self._rules[alike]):
            return self._rules[alike]
        for rule in self.rules_of(i, name, self._trace):
            if self._follows(i, rule):
                self._rules[alike] = rule
                return rule
        return ""

    def _follows(self, i: int, rule: str) -> bool:
        """Recompute a product by a rule, and return whether it gives the recorded results."""
        self.run_by(i, conditions(self._trace, i, rule))
        return not self.compare(self._trace.operators[i])

    def run_by(self, i: int, how: Conditions) -> None:
        """Recompute an operator."""
        args, kwargs = self.operands(i)
        operator = self._trace.operators[i]["op"]
        self.store(i, recompute_recorded(operator, args, kwargs, how))

    def store(self, i: int, results: Any) -> None:
        """Copy an operator's results to where it wrote them."""
        self._without_rule = {}
        self._store(self._trace.operators[i]["out"], results)

    def fork(self, i: int) -> Player:
        """Return a player with memory of its own for one operator."""
        other = copy.copy(self)
        other.memory = self.memory.fork(blocks_of(self._trace.operators[i]))
        return other

    def _store(self, out: Any, results: Any) -> None:
        """Copy results to where the operator wrote them."""
        if isinstance(out, list):
            given = [None] * len(out) if results is None else results
            for place, result in zip_longest(out, given[: len(out)]):
                self._store(place, result)
        elif isinstance(out, dict) and "tensor" in out:
            raise Unsupported(f"a result of {out['tensor']}")
        elif isinstance(results, bool | int | float) and (number := decoded(out, self.memory.tensor)) != results:
            if number == number or results == results:
                raise _OtherNumber(f"returned {number}, and {results} here")
        elif isinstance(out, dict) and "t" in out:
            x = self.memory.tensor(out["t"], fresh=True)
            if results is None:
                self._without_rule[out["t"][0]] = x.dtype.is_floating_point and x.numel() > 0
            elif x.data_ptr() != results.data_ptr():
                x.copy_(results.reshape(x.shape))

    def operands(self, i: int) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of an operator, whose values are those of this moment."""
        entry = self._trace.operators[i]
        as_number = is_elementwise(short_name(entry["op"]))
        args, kwargs = (decoded(entry[key], self.memory.tensor, as_number) for key in ("args", "kwargs"))
        return args, kwargs

    def rule_giving(self, i: int, j: int, expected: str, trace: Trace) -> str:
        """Return the known rule by which a result has a hash, or an empty text; `trace` samples a product's results."""
        operator, place = self._trace.operators[i]["op"], self._trace.operators[i]["wrote"][j][0]
        name, how = short_name(operator), conditions(trace, i)
        rules: dict[str, OtherRule] = {}
        if name in PRODUCTS:
            with suppress(Unsupported):
                rules = {product: partial(recompute_recorded, operator, how=replace(how, product=product))
                         for product in self.rules_of(i, name, trace)}
        else:
            self.fork(i).run_by(i, how)  # whether it has a rule
            rules = {"the rule of PyTorch's kernel": partial(recompute_recorded, operator, how=how),
                     **other_rules(operator, how)}
        for text, rule in rules.items():
            fork = self.fork(i)
            try:
                fork.store(i, rule(*fork.operands(i)))
            except Exception:  # noqa: BLE001, S112 - a candidate that does not apply
                continue
            if place[0] not in fork._without_rule and hash_of(fork.memory.tensor(place)) == expected:
                return text
        return ""

    def rules_of(self, i: int, name: str, trace: Trace) -> list[str]:
        """Return the rules that give a recording's sample of a product."""
        args, _ = self.operands(i)
        a, b = (args[place] for place in PRODUCTS[name])
        if (sample := trace.tensors.get(f"sample.{i}")) is None:
            raise Unsupported(f"aten.{name} without a sample of its results")
        rules = rules_of_product(name, args, sample, spaced(a.shape[-2]), spaced(b.shape[-1]))
        if not rules:
            raise Unsupported(f"aten.{name} of {a.dtype}, K = {a.shape[-1]}: no rule gives the sampled results")
        return rules

    def take_recorded(self, i: int, entry: Any) -> bool:
        """Go on with the recorded results of an operator; return whether all were kept."""
        kept = [self._trace.tensors.get(f"{i}.{j}") for j in range(len(entry["wrote"]))]
        for (place, _), x in zip(entry["wrote"], kept, strict=True):
            if x is not None:
                self.memory.tensor(place, fresh=True).copy_(x)
                self.memory.mark(place, wrong=False)
        return all(x is not None for x in kept)

    def _differing(self, i: int, entry: Any, wrong: list[int]) -> int | None:
        """Return how many elements of results differ from the kept ones; None if not all were kept."""
        count = 0
        for j in wrong:
            kept = self._trace.tensors.get(f"{i}.{j}")
            if kept is None:
                return None
            where = difference(self.memory.tensor(entry["wrote"][j][0]), kept)
            count += where.count if where else 0
        return count

    def compare(self, entry: Any) -> list[int]:
        """Return which results differ, and keep in mind their blocks."""
        compared = [j for j, (place, _) in enumerate(entry["wrote"]) if place[0] not in self._without_rule]
        hashes = hashes_of([self.memory.tensor(entry["wrote"][j][0]) for j in compared])
        wrong = [j for j, found in zip(compared, hashes, strict=True) if found != entry["wrote"][j][1]]
        changed = {entry["wrote"][j][0][0] for j in wrong} | {b for b, read in self._without_rule.items() if read}
        for place, _ in entry["wrote"]:
            self.memory.mark(place, place[0] in changed)
        return wrong


def replay(recording: str | os.PathLike[str] | Trace, *given: Any) -> Replay:
    """Recompute every operator of a recording on the CPU, and compare the bits of what it wrote.

    The operators read what earlier ones computed here, from parameters, states and batches alone.

    Parameters
    ----------
    recording : path or Trace
        As `record` wrote it.
    given : modules, optimizers or tensors, optional
        Values of the sources of a recording that keeps hashes only.

    Returns
    -------
    Replay

    Raises
    ------
    InvalidArgument
        The values of a source are missing.

    Examples
    --------
    >>> with sbt.record() as r:
    ...     y = torch.ones(2) + 1
    >>> print(sbt.replay(r.trace))
    2 operators: 2 equal, bit for bit
    """
    trace = recording if isinstance(recording, Trace) else Trace.load(recording)
    with _disable_current_modes():
        player = Player(trace, given)
        return Replay([player.step(i) for i in range(len(trace.operators))])
