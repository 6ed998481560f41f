"""The library of calls.cpp on torch tensors."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import torch
from timing import Call, Machine


class _Place(ctypes.Structure):
    _fields_ = [("stream", ctypes.c_void_p), ("threads", ctypes.c_int32), ("on_device", ctypes.c_int32)]


def _converted(value: Any) -> Any:
    """Return an argument as ctypes passes it: tensors as pointers, lists as arrays."""
    if isinstance(value, torch.Tensor):
        return ctypes.c_void_p(value.data_ptr())
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, int):
        return ctypes.c_int64(value)
    if isinstance(value, (list, tuple)):
        kind = ctypes.c_void_p if isinstance(value[0], torch.Tensor) else ctypes.c_int64
        return (kind * len(value))(*(v.data_ptr() if isinstance(v, torch.Tensor) else v for v in value))
    return value


class Library:
    """Calls of C++. Tensors that a call gets stay as long as the call."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._c = ctypes.CDLL(machine.library)
        for name in ("bench_tensors", "bench_matrices"):
            getattr(self._c, name).restype = ctypes.c_void_p

    def __call__(self, name: str, *arguments: Any) -> Call:
        """Return a call of the function bench_NAME."""
        function = getattr(self._c, f"bench_{name}")
        on_device = self._machine.device == "cuda"
        stream = torch.cuda.current_stream().cuda_stream if on_device else None
        given = [_converted(a) for a in arguments]

        def call(_kept: Any = arguments) -> Any:
            return function(*given, ctypes.byref(_Place(stream, torch.get_num_threads(), on_device)))

        return call

    def tensors(self, format: str, tensors: Sequence[torch.Tensor]) -> ctypes.c_void_p:
        """Return a list of tensors."""
        return ctypes.c_void_p(self("tensors", format, tensors, [t.numel() for t in tensors], len(tensors))())

    def matrices(self, format: str, matrices: Sequence[torch.Tensor], tile: tuple[int, int],
                 rule: str) -> tuple[Call, int]:
        """Return the call that quantizes a list of matrices into e4m3, and the bytes that it moves."""
        codes = [torch.empty(m.shape, dtype=torch.float8_e4m3fn, device=m.device) for m in matrices]
        grids = [[math.ceil(size / (t or size)) for size, t in zip(m.shape, tile, strict=True)] for m in matrices]
        dtype = torch.uint8 if rule.startswith("mx") else torch.float32
        scales = [torch.empty(grid, dtype=dtype, device=m.device) for grid, m in zip(grids, matrices, strict=True)]
        sizes = [size for m in matrices for size in m.shape]
        made = self("matrices", format, matrices, codes, scales, sizes, len(matrices), *tile, rule)
        call = self("quantize", ctypes.c_void_p(made()))

        def quantize(_kept: Any = (codes, scales, matrices)) -> object:
            return call()

        return quantize, sum(t.nbytes for t in [*matrices, *codes, *scales])
