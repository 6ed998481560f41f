"""Recomputes a recording on a CPU: `replay`."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

import samebits
from samebits.errors import InvalidArgument, Unsupported
from samebits.torch.recompute import Conditions, recompute
from samebits.torch.record import PRODUCTS, spaced
from samebits.torch.trace import Trace, hash_of

__all__ = ["Replay", "Step", "replay"]


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
        differs already; ``not covered``.
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
        """Whether every operator is covered and equal."""
        return all(step.state == "equal" for step in self.steps)

    def __str__(self) -> str:
        count = Counter(step.state for step in self.steps)
        lines = [f"{len(self.steps)} operators: {count['equal']} equal, bit for bit"]
        uncovered = Counter(step.detail for step in self.steps if step.state == "not covered")
        lines += [f"  {n} not covered: {what}" for what, n in uncovered.items()]
        for step in self.steps:
            if step.state == "differs":
                counted = "" if step.differ is None else f", {step.differ} of {step.elements} elements"
                lines.append(f"  {step}{counted}")
        if count["follows"]:
            lines.append(f"  {count['follows']} with operands that differ already")
        return "\n".join(lines)


class _Memory:
    """The memory blocks of a recording on the CPU; a block is freed after its last operator."""

    def __init__(self, trace: Trace, given: Any) -> None:
        self._trace = trace
        self._blocks: dict[int, torch.UntypedStorage] = {}
        self._wrong: set[int] = set()  # blocks whose values differ from the recorded ones
        self._last: dict[int, int] = {}
        for i, entry in enumerate(trace.operators):
            self._last.update(dict.fromkeys(_blocks_of(entry), i))
        self._given = {(hash_of(y), y.numel()): y for y in map(_bytes_of, _tensors_of(given))}

    def tensor(self, place: list[Any], fresh: bool = False) -> torch.Tensor:
        """Return a tensor of the recording. fresh: an operator is about to make it."""
        number, offset, shape, stride, dtype = place
        if number not in self._blocks:
            self._blocks[number] = self._made(number, fresh)
        x = torch.empty(0, dtype=getattr(torch, dtype))
        return x.set_(self._blocks[number], offset, shape, stride)  # type: ignore[arg-type]

    def _made(self, number: int, fresh: bool) -> torch.UntypedStorage:
        block = self._trace.blocks[number]
        if "source" not in block:
            if not fresh:
                self._wrong.add(number)
            return torch.UntypedStorage(block["bytes"])
        content = self._trace.tensors.get(f"block.{number}")
        if content is None:
            content = self._given.get((block["hash"], block["bytes"]))
        if content is None:
            raise InvalidArgument(f"{block['source']}: the recording has no values of this source; pass a module, "
                                  "optimizer or tensor with them")
        return content.clone().untyped_storage()

    def is_wrong(self, number: int) -> bool:
        return number in self._wrong

    def mark(self, number: int, wrong: bool) -> None:
        (self._wrong.add if wrong else self._wrong.discard)(number)

    def free(self, i: int, entry: Any) -> None:
        for number in _blocks_of(entry):
            if self._last[number] == i:
                self._blocks.pop(number, None)


def _bytes_of(x: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(x.detach().cpu().untyped_storage())  # type: ignore[arg-type]


def _tensors_of(given: Any) -> Iterator[torch.Tensor]:
    for one in given:
        leaves = one.state_dict() if hasattr(one, "state_dict") else one
        yield from (x for x in tree_leaves(leaves) if isinstance(x, torch.Tensor))


def places(encoded: Any) -> Iterator[list[Any]]:
    if isinstance(encoded, dict):
        if "t" in encoded:
            yield encoded["t"]
        else:
            for value in encoded.values():
                yield from places(value)
    elif isinstance(encoded, list):
        for value in encoded:
            yield from places(value)


def _blocks_of(entry: Any) -> set[int]:
    return {place[0] for place in places([entry["args"], entry["kwargs"], entry["out"]])}


def _decoded(x: Any, tensor: Callable[[list[Any]], torch.Tensor]) -> Any:
    if isinstance(x, list):
        return [_decoded(y, tensor) for y in x]
    if not isinstance(x, dict):
        return x
    if "t" in x:
        return tensor(x["t"])
    if "float" in x:
        return float(x["float"])
    if "torch" in x:
        return getattr(torch, x["torch"], torch.device("cpu") if x["torch"].startswith(("cuda", "cpu")) else None)
    return {key: _decoded(y, tensor) for key, y in x.items()}


def conditions(trace: Trace, i: int, product: str | None = None) -> Conditions:
    """Return what an operator's results depend on besides its operands."""
    return Conditions(trace.machine.get("multiprocessors", 132),
                      trace.operators[i].get("deterministic", False), product)


class Player:
    """Recomputes the operators of a recording, one after another."""

    def __init__(self, trace: Trace, given: Any) -> None:
        self._trace, self.memory = trace, _Memory(trace, given)

    def step(self, i: int) -> Step:
        """Recompute one operator, and compare what it writes."""
        entry = self._trace.operators[i]
        inputs = {place[0] for place in places([entry["args"], entry["kwargs"]])}
        args, kwargs = self.operands(i)
        follows = any(self.memory.is_wrong(block) for block in inputs)
        written = [place[0] for place, expected in entry.get("read", ())
                   if not follows and hash_of(self.memory.tensor(place)) != expected]
        state, detail = "follows" if follows else "equal", ""
        self._without_rule: dict[int, bool] = {}  # blocks of results: whether operators compute with them
        try:
            if written:
                source = self._trace.blocks[written[0]]["source"]
                raise Unsupported(f"{source} was written by no operator that PyTorch's dispatcher sees")
            detail = self._run(i, entry, args, kwargs)
        except Unsupported as error:
            if not follows:
                state, detail = "not covered", str(error).removeprefix("not covered: ")
        wrong = self._compare(entry)
        if wrong and state == "equal":
            state, detail = "differs", f"result {', '.join(map(str, wrong))}"
        elif state == "equal" and any(self._without_rule.values()):
            state, detail = "not covered", f"one result of {entry['op']}"
        compared = [place for place, _ in entry["wrote"] if place[0] not in self._without_rule]
        elements = 0 if state == "not covered" else sum(math.prod(place[2]) for place in compared)
        differ = self._differing(i, entry, wrong) if state in ("differs", "follows") else 0
        if state != "equal":
            self._take_recorded(i, entry)
        self.memory.free(i, entry)
        return Step(i, entry["op"], entry.get("module", ""), state, detail, elements, differ)

    def _run(self, i: int, entry: Any, args: Any, kwargs: Any) -> str:
        """Recompute an operator; of a product return the rule that gives the recorded results."""
        name = entry["op"].split(".")[1]
        rules = self.rules_of(i, name, args, self._trace) if name in PRODUCTS else [""]
        for rule in rules:
            results = recompute(entry["op"], args, kwargs, conditions(self._trace, i, rule or None))
            if not name.endswith("_"):
                self._store(entry["out"], results)
            if len(rules) == 1 or not self._compare(entry):
                return rule
        return ""

    def _store(self, out: Any, results: Any) -> None:
        """Copy results to where the operator wrote them."""
        if isinstance(out, list):
            for place, result in zip(out, results, strict=False):
                self._store(place, result)
        elif isinstance(out, dict):
            x = self.memory.tensor(out["t"], fresh=True)
            if results is None:
                self._without_rule[out["t"][0]] = x.dtype.is_floating_point and x.numel() > 0
            elif x.data_ptr() != results.data_ptr():
                x.copy_(results.reshape(x.shape))

    def operands(self, i: int) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of an operator, whose values are those of this moment."""
        entry = self._trace.operators[i]
        return _decoded(entry["args"], self.memory.tensor), _decoded(entry["kwargs"], self.memory.tensor)

    def written(self, i: int) -> list[torch.Tensor]:
        """Return what an operator writes."""
        return [self.memory.tensor(place) for place, _ in self._trace.operators[i]["wrote"]]

    def rules_of(self, i: int, name: str, args: Any, trace: Trace) -> list[str]:
        """Return the rules that give a recording's sample of a product."""
        a, b = (args[place] for place in PRODUCTS[name])
        rows, cols = spaced(a.shape[-2]), spaced(b.shape[-1])
        if name == "bmm":
            a, b = a[0], b[0]
        c = args[0].expand(a.shape[0], b.shape[1])[rows][:, cols] if name == "addmm" else None
        rules = samebits.find_rule(a[rows], b[:, cols], trace.tensors[f"sample.{i}"], c=c, sample=0)
        if not rules:
            raise Unsupported(f"aten.{name} of {a.dtype}, K = {a.shape[1]}: no rule gives the sampled results")
        return rules

    def _take_recorded(self, i: int, entry: Any) -> None:
        """Go on with the recorded results of an operator, if they were kept."""
        for j, (place, _) in enumerate(entry["wrote"]):
            kept = self._trace.tensors.get(f"{i}.{j}")
            if kept is not None:
                self.memory.tensor(place, fresh=True).copy_(kept)
                self.memory.mark(place[0], wrong=False)

    def _differing(self, i: int, entry: Any, wrong: list[int]) -> int | None:
        """Return how many elements of results differ from the kept ones; NaNs are alike."""
        count = 0
        for j in wrong:
            x, kept = self.memory.tensor(entry["wrote"][j][0]), self._trace.tensors.get(f"{i}.{j}")
            if kept is None:
                return None
            same = x == kept
            if x.dtype.is_floating_point:
                same = same & (x.signbit() == kept.signbit()) | x.isnan() & kept.isnan()
            count += int((~same).sum())
        return count

    def _compare(self, entry: Any) -> list[int]:
        """Return which results differ, and keep in mind their blocks."""
        wrong = [j for j, (place, expected) in enumerate(entry["wrote"])
                 if place[0] not in self._without_rule and hash_of(self.memory.tensor(place)) != expected]
        changed = {entry["wrote"][j][0][0] for j in wrong} | {b for b, read in self._without_rule.items() if read}
        for place, _ in entry["wrote"]:
            self.memory.mark(place[0], place[0] in changed)
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
    >>> import torch
    >>> import samebits.torch as sbt
    >>> with sbt.record() as r:
    ...     y = torch.ones(2) + 1
    >>> print(sbt.replay(r.trace))
    2 operators: 2 equal, bit for bit
    """
    trace = recording if isinstance(recording, Trace) else Trace.load(recording)
    with _disable_current_modes():
        player = Player(trace, given)
        return Replay([player.step(i) for i in range(len(trace.operators))])
