"""Arrays beside an optimizer's parameters: made, loaded from other layouts, and exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.optimizer_layout import UNSIGNED, Layout, StateArray, layout_of
from samebits.torch.parameter_batch import codes_dtype, memory_order
from samebits.torch.tensors import FORMATS, local

#: The stored formats of floating-point codes with block scales.
_SCALED: Final[dict[torch.dtype, str]] = {
    torch.float16: "fp16_scaled", torch.float8_e4m3fn: "e4m3_scaled",
    torch.float8_e5m2: "e5m2_scaled",
}


def format_of(parameter: torch.Tensor) -> str:
    """Return the format of a parameter."""
    if parameter.dtype not in FORMATS:
        raise InvalidArgument("params: float32, bfloat16 or float16 is expected; got "
                              f"{parameter.dtype}")
    return FORMATS[parameter.dtype]


def parameter_layout(rule: str, parameter: torch.Tensor, group: Mapping[str, Any]) -> Layout:
    """Return the arrays that a parameter of a group needs."""
    return layout_of(rule, format_of(parameter), group)


def _values_in_order(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return values in fp32, bf16 or fp16, with the memory order of another tensor."""
    dtype = values.dtype if values.dtype in FORMATS else torch.float32
    return torch.empty_like(like, dtype=dtype).copy_(values)


def _store(values: torch.Tensor, array: StateArray, state: dict[str, Any], block: int) -> None:
    """Write values to an array, rounded to nearest."""
    codes = state[array.key]
    if array.scale_key is None:
        codes.copy_(values)
    else:
        _core.store_or_load(True, _values_in_order(values, codes), codes, state[array.scale_key],
                            array.stored, block)


def begin_state(parameter: torch.Tensor, layout: Layout) -> dict[str, Any]:
    """Return the arrays beside a parameter before its first step."""
    memory = local(parameter.detach())
    if memory.device.type not in ("cpu", "cuda") or is_traceable_wrapper_subclass(memory):
        raise InvalidArgument("params: tensors in the memory of the CPU or of CUDA are expected; got "
                              f"{type(memory).__name__} on {memory.device}")
    state: dict[str, Any] = {}
    for array in layout.arrays():
        state[array.key] = torch.zeros_like(memory, dtype=codes_dtype(array))
        if array.scale_key is not None:
            state[array.scale_key] = torch.zeros(
                layout.blocks(memory.numel()), dtype=torch.float32, device=memory.device)
        if array.begins_as == "parameter":
            _store(memory, array, state, layout.block)
    return state


def whole_steps(value: Any, what: str) -> int:
    """Return a number of steps; refuse anything but a whole number from 0 on."""
    number = value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
    if not isinstance(number, int | float) or not 0 <= number < 2**63 or number != int(number):
        raise InvalidArgument(f"{what}: the number of steps, a whole number, is expected; got "
                              f"{number}")
    return int(number)


class _Saved(NamedTuple):
    """A saved array."""

    codes: torch.Tensor
    scales: torch.Tensor | None


def _saved_array(saved: Mapping[str, Any], key: str, shape: torch.Size) -> _Saved | None:
    """Return an array of a saved state, or None if the state has none."""
    value = saved.get(key)
    if value is None:
        return None
    value, scales = local(value), saved.get(key + "_scale")
    if hasattr(value, "codes") and hasattr(value, "scale"):  # of torchao
        if value.codes.shape == shape:
            value, scales = value.codes, value.scale
        else:  # the 4-bit optimizers have two codes in a byte
            value, scales = value.dequantize(torch.float32), None  # type: ignore[call-arg]
    if value.shape != shape:
        raise InvalidArgument(f"state_dict: {key}: shape {tuple(shape)} is expected; "
                              f"got {tuple(value.shape)}")
    return _Saved(value, scales)


def _own_names(saved: Mapping[str, Any], layout: Layout) -> Mapping[str, Any]:
    """Return a state with this library's names of TransformerEngine's and bitsandbytes' arrays."""
    saved = {**saved, **saved.get("__bnb_optimizer_quant_state__", {})}
    if "max1" in saved and "absmax1" not in saved:
        raise InvalidArgument("state_dict: max1: states of bitsandbytes with block_wise=False, which "
                              "have one scale for a tensor, are not supported; absmax1, one scale "
                              "for each block, is expected")
    for array, theirs, scales in zip(layout.states, ("state1", "state2"), ("absmax1", "absmax2"),
                                     strict=False):
        if theirs in saved:
            saved = {array.key: saved[theirs], array.key + "_scale": saved.get(scales), **saved}
    other = saved.get("master_param")
    if other is None:
        return saved
    return {"low" if local(other).dtype is torch.int16 else "master": other, **saved}


def load_state(parameter: torch.Tensor, layout: Layout,
               saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays beside a parameter, from a saved state.

    Arrays of the same format are copied bit for bit; those with block scales, if the memory order is
    the same too. Others are rounded to nearest. Master weights and low parts are converted into each
    other, for which the parameter must have its saved values. Takes the layouts of PyTorch, of
    TransformerEngine's FusedAdam (master_param), of bitsandbytes' 8-bit optimizers (state1, absmax1,
    ...), and of torchao's FP8 and 8-bit optimizers (tensors with codes and scale).
    """
    memory = local(parameter.detach())
    saved = _own_names(saved, layout)
    state = begin_state(parameter, layout)
    for array in layout.arrays():
        codes = state[array.key]
        found = _saved_array(saved, array.key, codes.shape)
        if found is not None and _same_format(found, codes, array):
            codes.copy_(found.codes)
            if array.scale_key is not None:
                _copy_scales(found, state[array.scale_key], array.key, layout.block)
        elif array.key in ("master", "low"):
            weights = saved_weights(saved, memory)
            if weights is None:
                continue  # a state of 16-bit weights alone: the array begins as the parameter
            if array.key == "low":
                # Masters in 16 bits have their own rounding error.
                master = _saved_array(saved, "master", codes.shape)
                exact = master is None or master.codes.dtype is torch.float32
                codes.copy_(_low_part(weights, memory, codes.dtype, exact))
            else:
                _store(weights, array, state, layout.block)
        elif found is not None:
            _store(_values(found, array.key).to(codes.device), array, state, layout.block)
        elif array.begins_as != "parameter":
            raise InvalidArgument(f"state_dict: {array.key}: is missing")
    return state


def _same_format(found: _Saved, codes: torch.Tensor, array: StateArray) -> bool:
    """Whether the codes and scales of a saved array are those of an array of the optimizer."""
    if found.codes.dtype != codes.dtype or (found.scales is None) != (array.scale_key is None):
        return False
    return found.scales is None or memory_order(found.codes) == memory_order(codes)


def _values(found: _Saved, key: str) -> torch.Tensor:
    """Return the values of a saved array."""
    codes, scales = found
    if not codes.dtype.is_floating_point and (codes.dtype is not torch.uint8 or scales is None):
        raise InvalidArgument(f"state_dict: {key}: floating-point numbers are expected; got "
                              f"{codes.dtype}")
    if scales is None:
        return codes
    counts = {-(-codes.numel() // block) for block in (128, 256)}
    if scales.numel() not in counts or not torch.ops.aten.is_non_overlapping_and_dense(codes):
        raise InvalidArgument(f"state_dict: {key}: codes without gaps in memory are expected, with "
                              f"one scale for each block of 128 or 256; got {scales.numel()} scales "
                              f"for {codes.numel()} codes")
    dynamic = "dynamic8_unsigned" if key in UNSIGNED else "dynamic8_signed"
    stored = {torch.uint8: dynamic, **_SCALED}.get(codes.dtype)
    if stored is None:
        raise InvalidArgument(f"state_dict: {key}: codes with scales are expected in float16, "
                              f"float8_e4m3fn, float8_e5m2 or uint8; got {codes.dtype}")
    values = torch.empty_like(codes, dtype=torch.float32)
    block = 128 if codes.numel() <= 128 * scales.numel() else 256
    scales = scales.to(codes.device, torch.float32).contiguous()
    _core.store_or_load(False, values, codes, scales, stored, block)
    return values


def saved_weights(saved: Mapping[str, Any], memory: torch.Tensor) -> torch.Tensor | None:
    """Return the fp32 weights of a saved state: its master, or the parameter with its low part."""
    master = _saved_array(saved, "master", memory.shape)
    if master is not None:
        return _values(master, "master").to(memory.device, torch.float32)
    found = _saved_array(saved, "low", memory.shape)
    if found is None:
        return None
    low = found.codes.to(memory.device)
    if memory.dtype is not torch.bfloat16 or low.dtype not in (torch.int16, torch.bfloat16):
        raise InvalidArgument("state_dict: low: int16 or bfloat16 beside a parameter in bfloat16 is "
                              f"expected; got {low.dtype} beside {memory.dtype}")
    if low.dtype is torch.bfloat16:
        return memory.float() + low.float()
    return ((memory.view(torch.int16).int() << 16) + low.int()).view(torch.float32)


def _low_part(weights: torch.Tensor, memory: torch.Tensor, dtype: torch.dtype,
              exact: bool) -> torch.Tensor:
    """Return what fp32 weights have beside the parameter: 16 bits as int16, or the error as bf16.

    If the weights are exact, the parameter must be the weights rounded to bfloat16.
    """
    upper = memory.view(torch.int16).long() << 16
    rest = weights.contiguous().view(torch.int32).long() - upper
    rest = torch.where(weights.isnan(), 0, rest)
    if exact and bool((rest.abs() > 2**15).any()):
        raise InvalidArgument("state_dict: master: the parameter is not the master rounded to "
                              "bfloat16; load the state of the model first")
    if dtype is torch.int16:
        return rest.clamp(-(2**15), 2**15 - 1).to(torch.int16)
    error = (weights - memory.float()).bfloat16()
    return torch.where(memory.isfinite(), error, torch.zeros_like(error))


def _copy_scales(found: _Saved, scales: torch.Tensor, key: str, block: int) -> None:
    """Copy the scales of a saved array with the codes of an array of the optimizer."""
    saved: Any = found.scales
    if saved.numel() != scales.numel():
        other = 256 if block == 128 else 128
        if saved.numel() == -(-found.codes.numel() // other):
            raise InvalidArgument(f"state_dict: {key}: block must be {block}, that of the optimizer; "
                                  f"got one scale for each block of {other}")
        raise InvalidArgument(f"state_dict: {key}: {scales.numel()} scales are expected, one for "
                              f"each block of {block}; got {saved.numel()}")
    scales.copy_(saved.reshape(scales.shape))


def values_of(array: StateArray, state: Mapping[str, Any]) -> torch.Tensor:
    """Return the values of an array as fp32 numbers."""
    scales = state[array.scale_key] if array.scale_key else None
    values = _values(_Saved(state[array.key], scales), array.key)
    return values.to(torch.float32, copy=scales is None)


def loaded_states(rule: str, saved_states: Mapping[Any, Any], groups: Sequence[Mapping[str, Any]],
                  own_groups: Sequence[Mapping[str, Any]]) -> dict[torch.Tensor, dict[str, Any]]:
    """Return the states of all parameters that a saved state has.

    Parameters
    ----------
    rule : str
        The rule of the optimizer.
    saved_states : mapping
        States by the numbers of parameters.
    groups : sequence of mapping
        Groups with the options that the optimizer gets, and the numbers of parameters.
    own_groups : sequence of mapping
        The optimizer's groups, with its parameters.
    """
    loaded = {}
    for group, own in zip(groups, own_groups, strict=True):
        for number, parameter in zip(group["params"], own["params"], strict=True):
            saved = saved_states.get(number)
            if not saved:
                continue
            if "max_exp_avg_sq" in saved:
                raise InvalidArgument("state_dict: amsgrad is not supported")
            steps = saved.get("step", group.get("step"))
            if steps is None and rule == "sgd":  # torch.optim.SGD counts no steps
                if saved.get("momentum_buffer") is None:
                    continue
                steps = 1
            if steps is None:
                raise InvalidArgument("state_dict: the number of steps, 'step', is missing")
            steps = whole_steps(steps, "state_dict: step")
            state = load_state(parameter, parameter_layout(rule, parameter, group), saved)
            state["step"] = torch.tensor(steps)
            loaded[parameter] = state
    return loaded
