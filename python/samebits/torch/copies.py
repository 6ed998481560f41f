"""Copies of tensors in host memory that keep strides and alignment, made while a GPU goes on."""

from __future__ import annotations

import math
from collections.abc import Set
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

#: Elements that a copy's offset counts modulo: no kernel asks for a coarser alignment.
ALIGNMENT = 256


class HostCopy:
    """A tensor's values on the way to the CPU. Its stream must be waited for before `tensor`."""

    def __init__(self, x: torch.Tensor) -> None:
        x = x.detach()
        self._shape, self._strides = x.shape, x.stride()
        self._offset = x.storage_offset() % ALIGNMENT
        for axis, stride in enumerate(self._strides):
            if stride == 0 and x.shape[axis] > 1:  # the same elements again
                x = x.narrow(axis, 0, 1)
        packed = x.contiguous()
        self._host = torch.empty(packed.shape, dtype=x.dtype, pin_memory=x.is_cuda)
        self._host.copy_(packed, non_blocking=x.is_cuda)

    @staticmethod
    def nbytes(x: torch.Tensor) -> int:
        """Return the bytes of a copy."""
        axes = zip(x.shape, x.stride(), strict=True)
        return math.prod(size if stride else min(size, 1) for size, stride in axes) * x.element_size()

    def tensor(self) -> torch.Tensor:
        """Return a new tensor with the shape, strides and alignment of the copied one."""
        span = sum((n - 1) * stride for n, stride in zip(self._shape, self._strides, strict=True)) + 1
        memory = torch.empty(self._offset + max(span, 0), dtype=self._host.dtype)
        if self._host.numel():
            memory.as_strided(self._host.shape, self._strides, self._offset).copy_(self._host)
        return memory.as_strided(self._shape, self._strides, self._offset)


def copied(x: Any, numbers: Set[int] = frozenset()) -> Any:
    """Return arguments or results with a HostCopy for each tensor, or a number for those whose ids are `numbers`."""
    return tree_map_only(torch.Tensor, lambda y: y.item() if id(y) in numbers else HostCopy(y), x)


def restored(x: Any) -> Any:
    """Return what `copied` got, with new tensors on the CPU."""
    return tree_map_only(HostCopy, HostCopy.tensor, x)
