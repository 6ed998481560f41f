"""Recordings of what PyTorch's operators read and wrote: one .safetensors file.

Its metadata holds a JSON text (`samebits_trace`): versions and card, the memory blocks (storages), and
the operators in their order, each with its arguments and a hash of each tensor that it wrote. Its
tensors are blocks that no operator made (parameters, states, batches), samples of products, and, if
they were kept, all results. A tensor of an operator is [block, offset, shape, strides, dtype].
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from typing import Any

import torch

from samebits.errors import InvalidArgument

__all__ = ["Trace"]

_VERSION = 1
_KEY = "samebits_trace"


@dataclass
class Trace:
    """A recording.

    Attributes
    ----------
    machine : dict
        Versions, card, number of multiprocessors, and whether TF32 is allowed.
    blocks : list of dict
        ``bytes``; of a block that no operator made ``source`` (a name) and ``hash``.
    operators : list of dict
        ``op``, ``args``, ``kwargs``, ``module``; ``deterministic`` if such algorithms were set;
        ``read``: sources that were written since an operator last read them, each with its hash;
        ``out``: the results; ``wrote``: each tensor that was written, with its hash.
    tensors : dict of Tensor
        Contents: ``block.N`` of sources, ``sample.N`` of products, ``N.M`` of kept results.
    """

    machine: dict[str, Any] = field(default_factory=dict)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    operators: list[dict[str, Any]] = field(default_factory=list)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to a .safetensors file."""
        from safetensors.torch import save_file

        text = json.dumps({"version": _VERSION, "machine": self.machine, "blocks": self.blocks,
                           "operators": self.operators}, separators=(",", ":"))
        save_file(self.tensors, path, {_KEY: text})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Return the recording in a file, at `path`."""
        from safetensors import safe_open

        with safe_open(os.fspath(path), "pt") as file:
            text = (file.metadata() or {}).get(_KEY)
            header = {} if text is None else json.loads(text)
            if header.get("version") != _VERSION:
                found = header.get("version", f"no metadata {_KEY}")
                raise InvalidArgument(f"{os.fspath(path)}: a recording of version {_VERSION} is expected; "
                                      f"got {found}")
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        return cls(header["machine"], header["blocks"], header["operators"], tensors)


# --- Hashes ----------------------------------------------------------------------------------------

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_ODD = -7046029254386353131  # 2^64 / golden ratio, odd
_CHUNK = 1 << 24


def hash_of(x: torch.Tensor) -> str:
    """Return a hash of a tensor's values in their order; NaNs of all kinds are alike.

    The sum of a one-to-one function of the code times an odd number of its place, modulo 2^64: tensors of
    one shape and format that differ in one element have different hashes. Any device gives the same.
    """
    return hash_text(int(hash_number(x)))


def hash_text(number: int) -> str:
    return format(number & (2**64 - 1), "016x")


def hash_number(x: torch.Tensor) -> torch.Tensor:
    """Return `hash_of` as an integer of 64 bits on the tensor's device, without waiting for it."""
    x = x.detach()
    if x.dtype.is_floating_point:
        x = torch.where(x.isnan(), torch.full((), math.nan, dtype=x.dtype, device=x.device), x)
    elif x.dtype == torch.bool:
        x = x.to(torch.uint8)
    codes = x.contiguous().reshape(-1).view(_INTEGERS[x.element_size()])
    total = torch.zeros((), dtype=torch.int64, device=x.device)
    for begin in range(0, codes.numel(), _CHUNK):
        part = codes[begin : begin + _CHUNK].to(torch.int64) * _ODD
        part ^= (part >> 32) & 0xFFFFFFFF  # codes of round numbers end in zeros
        places = torch.arange(begin + 1, begin + 1 + part.numel(), device=x.device)
        total += (part * ((places * _ODD) | 1)).sum()
    return total
