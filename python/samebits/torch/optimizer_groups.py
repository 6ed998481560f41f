"""Options of an optimizer's parameter groups: which ones are refused, and which ones must stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import torch

from samebits import optimizer_layout
from samebits.errors import InvalidArgument
from samebits.torch.optimizer_state import format_of
from samebits.torch.parameter_batch import Slot

#: The options that the optimizers of ``torch.optim`` lack, and maximize.
OPTIONS: Final = ("weights", "states", "profile", "block", "seed", "maximize")

# Options of ``torch.optim`` and what to write instead. False and None are accepted.
_REFUSED: Final[dict[str, str]] = {
    "amsgrad": "is not supported",
    "differentiable": "is not supported",
    "foreach": "is no option here; profile='torch_foreach' takes the steps of foreach=True",
    "fused": "is no option here; profile='torch_fused' takes the steps of fused=True",
}


def refuse_torch_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse arguments of ``torch.optim`` that have no meaning here.

    `capturable` is accepted: every step can be captured into a CUDA graph.
    """
    for key, value in options.items():
        if key != "capturable" and key not in _REFUSED:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        if key in _REFUSED and value:
            raise InvalidArgument(f"{key}: {_REFUSED[key]}")


def _refuse_other_rules(rule: str, group: Mapping[str, Any], what: str) -> None:
    """Refuse options of other libraries' groups that stand for another rule."""
    for key in ("amsgrad", "differentiable"):
        if group.get(key):
            raise InvalidArgument(f"{what}: {key} is not supported")
    if not group.get("bias_correction", True):  # of TransformerEngine and Apex
        raise InvalidArgument(f"{what}: bias_correction=False is not supported")
    decoupled = group.get("decoupled_weight_decay")  # of torch.optim: AdamW is Adam with True
    if (decoupled is not None and rule in ("adamw", "adam") and group["weight_decay"] != 0
            and bool(decoupled) != (rule == "adamw")):
        raise InvalidArgument(f"{what}: decoupled_weight_decay is {bool(decoupled)}; use "
                              f"{'AdamW' if decoupled else 'Adam'}")


def _refuse_repeated(parameters: Sequence[torch.Tensor]) -> None:
    """Refuse a group that lists a parameter twice: a step would update it twice at once."""
    seen: dict[int, int] = {}
    for at, parameter in enumerate(parameters):
        first = seen.setdefault(id(parameter), at)
        if first != at:
            raise InvalidArgument(f"params: parameters {first} and {at} of the group are the same "
                                  "tensor; pass each parameter once")


def check_group(rule: str, group: Mapping[str, Any], what: str = "params") -> None:
    """Refuse a group that no step could update.

    Parameters
    ----------
    rule : str
        The rule of the optimizer.
    group : mapping
        All options of the group, and its parameters.
    what : str
        The argument that the group comes from.
    """
    _refuse_other_rules(rule, group, what)
    _refuse_repeated(group["params"])
    formats = dict.fromkeys(map(format_of, group["params"]))
    rate = group["lr"]
    if isinstance(rate, torch.Tensor) and rate.device.type != "cpu":  # reading it would wait
        rate = 0.0
    try:
        optimizer_layout.check_group(rule, group, rate, formats)
    except (InvalidArgument, TypeError) as error:
        raise type(error)(f"{what}: {error}") from None


class KeptOptions(NamedTuple):
    """The options that the arrays beside a group's parameters were made for."""

    weights: str
    states: object
    block: int
    momentum: bool  # SGD without momentum has no states


def kept_options(group: Mapping[str, Any]) -> KeptOptions:
    """Return the options of a group that must stay after the first step, but momentum may end."""
    states = group["states"]
    return KeptOptions(group["weights"], states if isinstance(states, str) else tuple(states),
                       group["block"], group.get("momentum", 0) != 0)


def refuse_changes(groups: Sequence[Mapping[str, Any]], known: Sequence[KeptOptions],
                   slots: Iterable[Slot]) -> None:
    """Refuse groups whose options changed after the first step.

    Parameters
    ----------
    groups : sequence of mapping
        The groups now.
    known : sequence of KeptOptions
        Their options when the arrays were made.
    slots : iterable of Slot
        The parameters with arrays.
    """
    # Every step runs this, so unchanged groups need one comparison alone.
    changed = [at for at, (group, kept) in enumerate(zip(groups, known, strict=True))
               if (now := kept_options(group)) != kept
               and (now[:3] != kept[:3] or now.momentum > kept.momentum)]
    used = {slot.group for slot in slots} if changed else set()
    if used.intersection(changed):
        raise InvalidArgument(
            f"group {min(used.intersection(changed))}: weights, states and block must stay as in "
            "the first step, and momentum cannot begin later; make a new optimizer")
