"""Inputs and results of a function under test as torch tensors, on the CPU or a GPU.

Codes enter and leave torch as integers of their width, so that no bit of a NaN changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from samebits.errors import InvalidArgument, Unsupported
from samebits.formats import array_attribute
from samebits.testing.memory import EDGE, GUARD, Array, Layout, Memory, Predicate, fill_of
from samebits.testing.number_formats import Codes, Format, Mask

_SIGNED = {8: torch.uint8, 16: torch.int16, 32: torch.int32, 64: torch.int64}
_CODES = {8: (torch.uint8, torch.int8), 16: (torch.uint16, torch.int16),
          32: (torch.uint32, torch.int32), 64: (torch.uint64, torch.int64)}


def dtype_of(f: Format) -> torch.dtype:
    """Return the dtype of a format's tensors; uint8 for formats that torch lacks."""
    found: torch.dtype = getattr(torch, array_attribute(f.name), torch.uint8)
    return found


def _checked_device(device: Any) -> torch.device:
    try:
        found: torch.device = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InvalidArgument(f'device: "cpu", "cuda" or "cuda:1" is expected; got {device!r} '
                              f"({str(error).splitlines()[0]})") from None
    if found.type not in ("cpu", "cuda"):
        raise Unsupported(f"device: {str(device)!r} is not supported; pass \"cpu\" or \"cuda\"")
    if found.type == "cuda" and not torch.cuda.is_available():
        raise Unsupported(f"device: {str(device)!r}: torch finds no GPU; pass \"cpu\" to test the "
                          "kernel on CPU tensors")
    return found


class TorchMemory(Memory):
    """Torch tensors on one device.

    Examples
    --------
    >>> from samebits.testing.number_formats import format_named
    >>> memory = TorchMemory("cpu")
    >>> x = memory.place(np.array([0x3F80, 0x7FC1], np.uint64), format_named("bf16"), Layout(step=2))
    >>> x.dtype, x.stride(), [hex(c) for c in memory.codes(x, format_named("bf16")).tolist()]
    (torch.bfloat16, (2,), ['0x3f80', '0x7fc1'])
    """

    def __init__(self, device: object) -> None:
        self.torch_device = _checked_device(device)
        self.device = str(device)
        self.kind = f"a torch tensor on {self.device}"

    def _filled(self, size: int, fill: int) -> torch.Tensor:
        return torch.full((size,), fill, dtype=torch.uint8, device=self.torch_device)

    def place(self, codes: Codes, f: Format, layout: Layout = Layout()) -> Any:
        if layout.step < 1:
            raise InvalidArgument(f"layouts: torch tensors have no stride of {layout.step}; pass "
                                  "Layouts with a positive step")
        words = torch.from_numpy(codes.astype(f.code_dtype).view(_numpy_signed(f)))
        size = f.storage_bits // 8
        memory = self._filled((layout.offset + codes.size * layout.step + 1) * size + 64, GUARD)
        start = -memory.data_ptr() % 64 + layout.offset * size
        whole = memory[start:start + codes.size * layout.step * size].view(_SIGNED[f.storage_bits])
        placed = whole[::layout.step]
        placed.copy_(words.reshape(-1))
        return placed.view(dtype_of(f)).reshape(codes.shape)

    def output(self, size: int, f: Format) -> tuple[Any, Callable[[], bool]]:
        edge, fill = EDGE * f.storage_bits // 8, fill_of(size)
        memory = self._filled(2 * edge + size * f.storage_bits // 8, fill)
        beside = memory[:edge], memory[memory.numel() - edge:]
        return (memory[edge:memory.numel() - edge].view(dtype_of(f)),
                lambda: all(bool((part == fill).all()) for part in beside))

    def holds(self, result: Any) -> bool:
        return isinstance(result, torch.Tensor) and result.device.type == self.torch_device.type

    def codes(self, array: Any, f: Format) -> Codes:
        if array.dtype not in (dtype_of(f), *_CODES[f.storage_bits]):
            names = " or of ".join(str(d).removeprefix("torch.") for d in (
                dtype_of(f), _CODES[f.storage_bits][0]))
            raise TypeError(f"expected a tensor of {names} codes for {f.name}, got {array.dtype}")
        whole = array.detach().resolve_neg().contiguous()
        words = whole.view(_SIGNED[f.storage_bits]).cpu().numpy()
        found: Codes = words.view(f.code_dtype).astype(np.uint64)
        return found

    def number(self, result: Any) -> Array:
        if not isinstance(result, torch.Tensor):
            return np.asarray(result)
        whole = result.detach().resolve_neg()
        if whole.dtype.is_floating_point and whole.dtype not in (torch.float32, torch.float64):
            whole = whole.to(torch.float64)  # exact
        found: Array = whole.cpu().numpy()
        return found

    def allowed(self, where: Predicate, codes: Codes, f: Format) -> Mask:
        words = torch.from_numpy(codes.astype(f.code_dtype).view(_numpy_signed(f)))
        return np.asarray(where(words.view(dtype_of(f))), np.bool_)


def _numpy_signed(f: Format) -> np.dtype[Any]:
    """Return the NumPy dtype of `_SIGNED`: integers whose views and copies torch supports."""
    return np.dtype("u1" if f.storage_bits == 8 else f"i{f.storage_bits // 8}")
