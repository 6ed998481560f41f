"""Why two recordings differ: `explain`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_map
from torch.utils._python_dispatch import _disable_current_modes

from samebits.errors import InvalidArgument, Unsupported
from samebits.torch.differences import difference
from samebits.torch.operators import Operator
from samebits.torch.recompute import overload_of, reason_of
from samebits.torch.record import record
from samebits.torch.replay import Player, only_draws, short_name
from samebits.torch.trace import Trace, places

__all__ = ["Explanation", "explain"]

#: What an operator tells of its program.
_KINDS = {
    "_scaled_dot_product_flash_attention": "FlashAttention",
    "_scaled_dot_product_cudnn_attention": "cuDNN's attention",
    "_scaled_dot_product_efficient_attention": "the memory-efficient attention",
    "bmm": "attention by products and softmax (the math path)",
    "_to_copy": "casts, as another precision of autocast has them",
    "_fused_adamw_": "a fused optimizer", "_fused_adam_": "a fused optimizer", "_fused_sgd_": "a fused optimizer",
    "_foreach_addcdiv_": "a foreach optimizer", "_foreach_lerp_": "a foreach optimizer",
    "addcdiv_": "an optimizer with a loop over tensors",
    "higher_order.inductor_compiled_code": "a program of torch.compile, whose Triton kernels have no rule",
    "native_dropout": "dropout", "bernoulli_": "dropout",
    "_amp_update_scale_": "a loss scaler", "_foreach_norm": "a norm of lists, as clipping has it",
}


@dataclass(frozen=True)
class Explanation:
    """What `explain` found.

    Attributes
    ----------
    cause : str
        ``equal``, ``source``, ``program``, ``rule``, or ``no known rule``.
    text : str
        The first difference, what each side follows, and what to do.
    number : int, optional
        The first operator that differs.
    """

    cause: str
    text: str
    number: int | None = None

    def __str__(self) -> str:
        return self.text


def _trace_of(x: Any, operator: str | None, inputs: Sequence[Any]) -> Trace:
    """Return a recording: one that is given, or of a program, or of one operator."""
    if isinstance(x, Trace):
        return x
    if isinstance(x, str | os.PathLike):
        return Trace.load(x)
    if callable(x):
        with record(keep="all") as recorder:
            x()
        return recorder.trace
    if operator is None:
        raise InvalidArgument("operator: name the operator of these results, such as 'aten.mm.default'")
    function = overload_of(operator)
    arguments = function._schema.arguments
    needed = [a.name for a in arguments if not a.has_default_value() and not a.kwarg_only]
    if not len(needed) <= len(inputs) <= len(arguments):
        few = "" if len(needed) == len(arguments) else f"{len(needed)} to "
        raise InvalidArgument(f"inputs: {operator} takes {few}{len(arguments)} arguments; got {len(inputs)}")
    for argument, given in zip(arguments, inputs, strict=False):
        if str(argument.type) == "Tensor" and not isinstance(given, torch.Tensor):
            raise InvalidArgument(f"inputs: {argument.name} of {operator} is a tensor; got a {type(given).__name__}")
    with record(keep="all") as recorder:
        recorder.see(Operator.of(function), lambda: [*inputs], lambda: x)
    return recorder.trace


def explain(a: Any, b: Any, *given: Any, operator: str | None = None, inputs: Sequence[Any] = ()) -> Explanation:
    """Return the first operator whose results differ between two runs, and the rule that each follows.

    Parameters
    ----------
    a, b : path or Trace, or function, or Tensor or sequence of them
        Recordings that `record` wrote; or programs, which are called without arguments and recorded; or
        results of `operator`.
    given : modules, optimizers or tensors, optional
        As in `replay`. Without values of the sources the operator is named, and no rule.
    operator : str, optional
        The ATen operator that returned `a` and `b`.
    inputs : sequence
        Its arguments, in the order of its schema; also those that have only a name in PyTorch.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> def recorded(x):
    ...     with sbt.record(names={"x": x}) as r:
    ...         x + 1
    ...     return r.trace
    >>> print(sbt.explain(recorded(torch.ones(2)), recorded(torch.zeros(2))))
    the source x has other values
      read first by operator 0 aten.add.Tensor
    """
    old, new = (_trace_of(x, operator, inputs) for x in (a, b))
    blocks: dict[int, int] = {}  # of a: the block of b in its place
    back: dict[int, int] = {}
    for i, (one, other) in enumerate(zip(old.operators, new.operators, strict=False)):
        pairs = [[x[0] for x in places([entry["args"], entry["kwargs"], entry["out"], entry["wrote"]])]
                 for entry in (one, other)]
        if one["op"] != other["op"] or _shown(one) != _shown(other) or len(one["wrote"]) != len(other["wrote"]):
            return _other_program(old, new, i)
        if any(blocks.setdefault(x, y) != y or back.setdefault(y, x) != x for x, y in zip(*pairs, strict=False)):
            return Explanation("program", f"{_named(i, one)} reads or writes other tensors", i)
        read = {place[0] for place in places([one["args"], one["kwargs"]])}
        sources = [n for n in sorted(read) if old.blocks[n].get("hash") != new.blocks[blocks[n]].get("hash")]
        found = [{place[0]: x for place, x in entry.get("read", ())} for entry in (one, other)]
        changed = [n for n in sorted(read) if found[0].get(n) != found[1].get(blocks[n])]
        sources += [n for n in changed if n in found[0] and blocks[n] in found[1]]
        if sources:
            return _other_source(old, new, i, sources[0])
        wrong = [j for j, (x, y) in enumerate(zip(one["wrote"], other["wrote"], strict=True)) if x[1] != y[1]]
        if wrong and changed:
            return Explanation("source", f"{_source(old, changed[0])} was written on one side, by no operator\n"
                               f"  read first by {_named(i, one)}", i)
        if wrong and one.get("random"):
            others = "" if only_draws(one["op"]) else ", or computed something else"
            return Explanation("source", f"{_named(i, one)} drew other random numbers{others}: another seed?", i)
        if wrong:
            with _disable_current_modes():
                return _of_results((old, new), i, wrong[0], given)
    if len(old.operators) != len(new.operators):
        i = min(len(old.operators), len(new.operators))
        more = old if len(old.operators) > i else new
        text = f"only one recording goes on after operator {i}: {_named(i, more.operators[i])}"
        return Explanation("program", text, i)
    return Explanation("equal", f"all {len(old.operators)} operators are equal, bit for bit")


def _shown(entry: Any) -> Any:
    """Return an operator's arguments without the numbers of memory blocks, which tell nothing."""
    def is_tensor(x: Any) -> bool:
        return isinstance(x, dict) and "t" in x

    return tree_map(lambda x: {"t": x["t"][1:]} if is_tensor(x) else x, [entry["args"], entry["kwargs"]],
                    is_leaf=is_tensor)


def _named(i: int, entry: Any) -> str:
    module = f" ({entry['module']})" if entry.get("module") else ""
    return f"operator {i} {entry['op']}{module}"


def _source(trace: Trace, block: int) -> str:
    name = trace.blocks[block].get("source")
    return "an operand" if name is None else f"the source {name}"


def _other_source(old: Trace, new: Trace, i: int, block: int) -> Explanation:
    pairs = [(x, y) for x, y in zip(old.blocks, new.blocks, strict=False) if "source" in x and "source" in y]
    changed = [x["source"] for x, y in pairs if x["hash"] != y["hash"]]
    text = f"{_source(old, block)} has other values\n  read first by {_named(i, old.operators[i])}"
    if len(changed) > 1:
        text += f"\n  so have {len(changed) - 1} more of {len(pairs)} sources: another seed, batch or checkpoint?"
    return Explanation("source", text, i)


def _other_program(old: Trace, new: Trace, i: int) -> Explanation:
    """The programs differ: another operator, or other arguments."""
    rest = [trace.operators[i:] for trace in (old, new)]
    one, other = (entries[0] for entries in rest)
    if one["op"] == other["op"]:
        shown = [str(_shown(entry)) for entry in (one, other)]
        sides = [f"{side}: {_named(i, one)} {text if len(text) <= 300 else text[:300] + '...'}"
                 for side, text in zip("ab", shown, strict=True)]
        return Explanation("program", "\n  ".join([f"operator {i} has other arguments", *sides]), i)
    lines = [f"the programs differ from operator {i} on"]
    names = [{short_name(entry["op"]) for entry in entries} for entries in rest]
    for side, entry, own, others in zip("ab", (one, other), names, reversed(names), strict=True):
        kinds = dict.fromkeys(_KINDS[name] for name in _KINDS if name in own - others)
        lines.append(f"  {side}: {_named(i, entry)}" + (f"; only here: {', '.join(kinds)}" if kinds else ""))
    return Explanation("program", "\n".join(lines), i)


# --- One operator, with equal operands and other results -----------------------------------------------------


def _of_results(traces: Sequence[Trace], i: int, result: int, given: Any) -> Explanation:
    """Say which rule each side's result of an operator follows."""
    entry = traces[0].operators[i]
    first = f"first difference: {_named(i, entry)}, same operands"
    try:
        player = Player(traces[0], given)
        steps = [player.step(n) for n in range(i)]
        if player.reads_wrong(entry):
            raise InvalidArgument(str(next(step for step in steps if step.state != "equal")))
        found = [player.rule_giving(i, result, trace.operators[i]["wrote"][result][1], trace) for trace in traces]
    except InvalidArgument as error:
        return Explanation("no known rule", f"{first}\n  no rule is named without the operands: {error}", i)
    except Unsupported as error:
        return Explanation("no known rule", f"{first}\n  it has no rule: {reason_of(error, entry['op'])}", i)
    kept = [trace.tensors.get(f"{i}.{result}") for trace in traces]
    lines = [first, *(f"{side}: {rule or 'no known rule'}" for side, rule in zip("ab", found, strict=True)),
             f"cause: {_cause(found, kept)}"]
    return Explanation("rule" if all(found) else "no known rule", "\n  ".join(lines), i)


def _cause(found: list[str], kept: list[torch.Tensor | None]) -> str:
    """Return what the rules of both sides tell; kept: their results, if they were kept."""
    if all(found):
        return "each side follows a rule; nothing computes wrongly" + _advice(found)
    if not any(found):
        return "both sides follow other rules than the known ones"
    odd = "a" if not found[0] else "b"
    if kept[0] is None or kept[1] is None:
        return f"{odd} follows no known rule: another kernel, or a wrong result"
    return f"{difference(kept[0], kept[1])}; {odd} follows no known rule: suspect it"


def _advice(found: list[str]) -> str:
    """Return what brings the other bits back."""
    slices = [rule.partition("slices=")[2].split(" ")[0] or "1" for rule in found]
    if found[0].startswith("sum=") and slices[0] != slices[1]:
        return f"\n  the library splits K: {slices[0]} and {slices[1]} slices"
    if any("tf32" in rule for rule in found) and not all("tf32" in rule for rule in found):
        return "\n  TF32 is allowed on one side: torch.backends.cuda.matmul.allow_tf32"
    if any("flushed" in rule for rule in found):
        return "\n  one side flushes subnormals: compiled with -ftz=true or --use_fast_math"
    return ""
