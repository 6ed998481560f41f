"""Calls of this package's kernels in recordings: PyTorch's dispatcher does not see them.

A step of an optimizer and the unscaling of gradients are one operator each: `run` calls their kernels. `written_unseen`
says what a kernel of no operator has written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from samebits.torch.operators import ACTIVE, Operator, tensors_of

#: What a GradScaler sets on an optimizer.
_SCALING = ("found_inf", "grad_scale", "grad_mul")


def _operator(short: str, *writes: tuple[int, str]) -> Operator:
    """Return an operator of this package, with the places and names of arguments that it writes."""
    return Operator(f"samebits.{short}", short, False, writes, counts=False)  # the call raised the versions already


STEP = _operator("optimizer_step", (3, "values"))
UNSCALE = _operator("unscale", (0, "gradients"), (2, "report"))
INSPECT = _operator("inspect_gradients", (2, "report"))


def run(operator: Operator, arguments: Callable[[], list[Any]], kernels: Callable[[], None],
        results: Callable[[], Any] = lambda: None) -> None:
    """Call kernels: as one operator of the innermost recorder, if one sees operators now.

    arguments, results: make the operator's arguments and its results, for a recorder alone.
    """
    if not ACTIVE or not torch._C._len_torch_dispatch_stack():  # within a recorder's own work there is none
        kernels()
        return

    def recorded() -> Any:
        kernels()
        return results()

    ACTIVE[-1].see(operator, arguments, recorded)
    if len(ACTIVE) > 1:
        for x in tensors_of(arguments()):
            written_unseen(x, ACTIVE[:-1])


def written_unseen(x: torch.Tensor, recorders: Sequence[Any] | None = None) -> None:
    """Note that a kernel may have written x, and that no operator did."""
    for recorder in ACTIVE if recorders is None else recorders:
        recorder.written_unseen(x)


def arguments_of_step(optimizer: Any) -> list[Any]:
    """Return what a step reads; parameters without a gradient count, because random bits follow their numbers."""
    groups = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    parameters = [(at, p) for at, group in enumerate(optimizer.param_groups) for p in group["params"]]
    found = {name: getattr(optimizer, name, None) for name in _SCALING}
    return [type(optimizer).__name__, groups, [at for at, _ in parameters], [p.detach() for _, p in parameters],
            [None if p.grad is None else p.grad.detach() for _, p in parameters],
            [dict(optimizer.state.get(p, {})) for _, p in parameters],
            {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}]


def states_of(optimizer: Any) -> list[list[Any]]:
    """Return the states of all parameters, which a step returns."""
    return [[*optimizer.state.get(p, {}).values()] for group in optimizer.param_groups for p in group["params"]]


def _step(kind: str, groups: Sequence[Mapping[str, Any]], at: Sequence[int], values: Sequence[torch.Tensor],
          gradients: Sequence[Any], states: Sequence[Any], scaling: Mapping[str, torch.Tensor]) -> list[list[Any]]:
    from samebits.torch import optim

    made = [torch.nn.Parameter(x) for x in values]
    optimizer = getattr(optim, kind)([{**options, "params": [p for p, group in zip(made, at, strict=True) if group == n]}
                                      for n, options in enumerate(groups)])
    for p, gradient, state in zip(made, gradients, states, strict=True):
        p.grad = gradient
        if state:
            optimizer.state[p] = dict(state)
    for name, value in scaling.items():
        setattr(optimizer, name, value)
    optimizer.step()
    return states_of(optimizer)


def _unscale(gradients: Sequence[Any], words: torch.Tensor, report: torch.Tensor, options: Mapping[str, Any]) -> None:
    from samebits.torch.gradient_list import GradientLists, GradientReport

    lists = GradientLists([str(i) for i in range(len(gradients))])
    lists.unscale(gradients, words, GradientReport(report), **options)


#: By operator of this package what runs it on the CPU: it writes its arguments, and returns its results.
RECOMPUTED: dict[str, Any] = {STEP.name: _step, UNSCALE.name: _unscale, INSPECT.name: _unscale}
