"""Steps of this package's optimizers in recordings: PyTorch's dispatcher does not see their kernels.

`Optimizer.step` asks `recorder()` who records it. A step is one operator, `OPERATOR`: class, options of groups,
for each parameter its group, values, gradient and states, and what a GradScaler left on the optimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

__all__: list[str] = []

OPERATOR = "samebits.optimizer_step"
#: What a GradScaler sets on an optimizer: tensors that kernels write unseen, so recordings keep their values.
SCALING = ("found_inf", "grad_scale", "grad_mul")
#: The recorders whose blocks have been entered.
ACTIVE: list[Any] = []


def recorder() -> Any:
    """Return the recorder that sees operators now, or None: within a recorder's own work there is none."""
    return ACTIVE[-1] if ACTIVE and torch._C._len_torch_dispatch_stack() else None


def arguments_of(optimizer: Any) -> list[Any]:
    """Return what a step reads; parameters without a gradient count, because random bits follow their numbers."""
    groups = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    parameters = [[at, p.detach(), None if p.grad is None else p.grad.detach(), dict(optimizer.state.get(p, {}))]
                  for at, group in enumerate(optimizer.param_groups) for p in group["params"]]
    return [type(optimizer).__name__, groups, parameters]


def scaling_of(optimizer: Any) -> dict[str, torch.Tensor]:
    """Return what a GradScaler has set on an optimizer."""
    found = {name: getattr(optimizer, name, None) for name in SCALING}
    return {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}


def results_of(optimizer: Any) -> list[list[Any]]:
    """Return the states of all parameters after a step."""
    return [[*optimizer.state.get(p, {}).values()] for group in optimizer.param_groups for p in group["params"]]


def recompute_step(kind: str, groups: Sequence[Mapping[str, Any]], parameters: Sequence[Any],
                   scaling: Mapping[str, torch.Tensor]) -> list[list[Any]]:
    """Step on the CPU; parameters and states are written, and states returned."""
    from samebits.torch import optim

    made = [torch.nn.Parameter(values) for _, values, _, _ in parameters]
    optimizer = getattr(optim, kind)(
        [{**options, "params": [p for p, (at, *_) in zip(made, parameters, strict=True) if at == number]}
         for number, options in enumerate(groups)])
    for p, (_, _, gradient, state) in zip(made, parameters, strict=True):
        p.grad = gradient
        if state:
            optimizer.state[p] = dict(state)
    for name, value in scaling.items():
        setattr(optimizer, name, value)
    step: Callable[[], Any] = optimizer.step
    step()
    return results_of(optimizer)
