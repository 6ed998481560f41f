"""States of optimizers in the layouts of PyTorch, TransformerEngine and torchao."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

import torch

from samebits.errors import InvalidArgument
from samebits.formats import choose
from samebits.optimizer_layout import Layout
from samebits.torch.optimizer_groups import OPTIONS
from samebits.torch.optimizer_state import (
    parameter_layout,
    saved_weights,
    values_of,
    whole_steps,
)

_LAYOUTS: Final = ("torch", "transformer_engine", "torchao")
_BLOCK: Final = 256  # elements with one scale in torchao's FP8 states
_SMALLEST: Final = 4096  # torchao keeps the states of smaller parameters without scales


def _torchao_tensor() -> Any:
    """Return torchao's class of FP8 states."""
    try:
        return importlib.import_module("torchao.optim.subclass_fp8").OptimStateFp8
    except ImportError as error:
        raise InvalidArgument("layout: torchao needs the package torchao with "
                              f"torchao.optim.subclass_fp8: {error}") from error


def _fp8_blocks(kind: Any, parameter: torch.Tensor, layout: Layout,
                state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the states in e4m3 whose blocks are torchao's."""
    found = {}
    for array in layout.states:
        codes = state[array.key]
        if (array.stored == "e4m3_scaled" and array.scale_key is not None
                and layout.block == _BLOCK
                and codes.numel() % _BLOCK == 0 and codes.numel() >= _SMALLEST
                and codes.is_contiguous()):
            found[array.key] = kind(codes.clone(), state[array.scale_key].clone(),
                                    dtype=parameter.dtype)
    return found


def _master_param(parameter: torch.Tensor, layout: Layout, state: Mapping[str, Any]) -> Any:
    """Return the master weights as TransformerEngine has them; None if there are none."""
    if layout.low_kind == "split":
        return state["low"].clone()
    if layout.master is None and layout.low is None:
        return None
    if layout.master is not None:
        return values_of(layout.master, state)
    return saved_weights(state, parameter)


def _check(optimizer: torch.optim.Optimizer, rule: str, layout: str) -> None:
    choose("layout", layout, _LAYOUTS)
    if layout == "torch":
        return
    if rule not in ("adamw", "adam"):
        raise InvalidArgument(f"layout: {layout} has Adam and AdamW alone")
    if any(group["maximize"] for group in optimizer.param_groups):
        raise InvalidArgument(f"layout: {layout} has no maximize")


def _group_steps(at: int, steps: set[int]) -> int:
    """Return the number of steps of a group, which TransformerEngine counts once."""
    if len(steps) != 1:
        raise InvalidArgument(f"layout: transformer_engine counts the steps of a group; parameters "
                              f"of group {at} were stepped {sorted(steps)} times")
    return next(iter(steps))


def exported_state(optimizer: torch.optim.Optimizer, rule: str, layout: str) -> dict[str, Any]:
    """Return the state of an optimizer in another library's layout: see `torch_state_dict`."""
    _check(optimizer, rule, layout)
    fp8 = _torchao_tensor() if layout == "torchao" else None
    groups = optimizer.state_dict()["param_groups"]
    states: dict[int, Any] = {}
    for at, (group, own) in enumerate(zip(groups, optimizer.param_groups, strict=True)):
        counts = set()
        for number, parameter in zip(group["params"], own["params"], strict=True):
            state = optimizer.state.get(parameter)
            if not state:
                continue
            arrays = parameter_layout(rule, parameter, own)
            steps = whole_steps(state.get("step"), f"parameter {number}: state step")
            counts.add(steps)
            values = states[number] = {a.key: values_of(a, state) for a in arrays.states}
            if layout == "transformer_engine":
                master = _master_param(parameter, arrays, state)
                if master is not None:
                    values["master_param"] = master
                continue
            values["step"] = torch.tensor(float(steps))
            if fp8 is not None:
                values.update(_fp8_blocks(fp8, parameter, arrays, state))
        for key in OPTIONS:
            if key != "maximize" or layout != "torch":
                del group[key]
        if layout == "transformer_engine":
            group["bias_correction"] = True
            if counts:
                group["step"] = _group_steps(at, counts)
        if layout == "torchao":  # its step takes the learning rate from a tensor alone
            group["lr"] = torch.as_tensor(group["lr"], dtype=torch.float32)
            group["amsgrad"] = False
    return {"state": states, "param_groups": groups}
