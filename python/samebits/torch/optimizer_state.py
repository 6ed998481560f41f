"""Arrays beside an optimizer's parameters: made, loaded from other layouts, and exported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from samebits.errors import InvalidArgument
from samebits.optimizer_layout import Layout, StateArray, layout_of
from samebits.torch.gradient_list import local
from samebits.torch.parameter_batch import FORMATS, codes_dtype, store_values

__all__ = ["begin_state", "load_state", "parameter_layout", "values_of"]

#: Names of a state in TransformerEngine.
_OTHER_NAMES = {"master": "master_param", "low": "master_param"}


def parameter_layout(parameter: torch.Tensor, group: Mapping[str, Any],
                     keys: tuple[str, ...]) -> Layout:
    """Return the arrays that a parameter needs."""
    if parameter.dtype not in FORMATS:
        raise InvalidArgument("params: float32, bfloat16 or float16 is expected; got "
                              f"{parameter.dtype}")
    return layout_of(FORMATS[parameter.dtype], group["weights"], group["states"], keys)


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
        store_values(_values_in_order(values, codes), codes, state[array.scale_key], array.stored,
                     block)


def begin_state(parameter: torch.Tensor, layout: Layout, block: int) -> dict[str, Any]:
    """Return the arrays beside a parameter before its first step."""
    memory = local(parameter.detach())
    if not torch.ops.aten.is_non_overlapping_and_dense(memory):
        raise InvalidArgument("params: a parameter without gaps in memory is expected")
    state: dict[str, Any] = {}
    for array in layout.arrays():
        state[array.key] = torch.zeros_like(memory, dtype=codes_dtype(array))
        if array.scale_key is not None:
            blocks = -(-memory.numel() // block)
            state[array.scale_key] = torch.ones(blocks, dtype=torch.float32, device=memory.device)
        if array.begins_as == "parameter":
            _store(memory, array, state, block)
    return state


def load_state(parameter: torch.Tensor, layout: Layout, block: int,
               saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays beside a parameter, from a saved state.

    Arrays of the same format are copied bit for bit. Others are rounded to nearest. Takes the
    layouts of PyTorch, of TransformerEngine's FusedAdam (master_param), and of torchao's low-bit
    optimizers (tensors with codes and scale).
    """
    state = begin_state(parameter, layout, block)
    for array in layout.arrays():
        value = saved.get(array.key)
        if value is None:
            value = saved.get(_OTHER_NAMES.get(array.key, ""))
        if value is None:
            continue
        value = local(value)
        codes = state[array.key]
        scales = saved.get(array.scale_key) if array.scale_key else None
        if hasattr(value, "codes") and hasattr(value, "scale"):
            value, scales = value.codes, value.scale
        if value.shape != codes.shape:
            raise InvalidArgument(f"state_dict: {array.key}: shape {tuple(codes.shape)} is expected; "
                                  f"got {tuple(value.shape)}")
        if value.dtype == codes.dtype and (array.scale_key is None or scales is not None):
            codes.copy_(value)
            if array.scale_key is not None:
                _copy_scales(scales, state[array.scale_key], array.key)
        elif codes.dtype is torch.int16 or not value.dtype.is_floating_point:
            raise InvalidArgument(f"state_dict: {array.key}: {codes.dtype} is expected; got "
                                  f"{value.dtype}")
        else:
            if scales is not None:
                value = _decoded(value, scales)
            _store(value.to(codes.device), array, state, block)
    return state


def _copy_scales(saved: Any, scales: torch.Tensor, key: str) -> None:
    if saved.numel() != scales.numel():
        raise InvalidArgument(f"state_dict: {key}: {scales.numel()} scales are expected, one for "
                              f"each block; got {saved.numel()}")
    scales.copy_(saved.reshape(scales.shape))


def _decoded(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return the values of codes with block scales, in fp32; blocks follow the order of memory."""
    flat = codes.as_strided((codes.numel(),), (1,)).float()
    block = -(-flat.numel() // max(scales.numel(), 1))
    block = 128 if block <= 128 else 256
    values = flat * scales.reshape(-1).repeat_interleave(block)[: flat.numel()]
    return values.as_strided(codes.shape, codes.stride())


def values_of(array: StateArray, state: Mapping[str, Any]) -> torch.Tensor:
    """Return the values of an array as fp32 numbers."""
    codes: torch.Tensor = state[array.key]
    if array.scale_key is None:
        return codes.float() if codes.dtype is not torch.float32 else codes.clone()
    return _decoded(codes, state[array.scale_key])
