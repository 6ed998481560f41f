"""Recordings of what PyTorch's operators read and wrote: one .safetensors file.

Its metadata holds a JSON text (`samebits_trace`): versions and card, the memory blocks (storages), and
the operators in their order, each with its arguments and a hash of each tensor that it wrote. Its
tensors are blocks that no operator made (parameters, states, batches), samples of products, and, if
they were kept, all results. A tensor of an operator is [block, offset, shape, strides, dtype].
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

import samebits
from samebits import _core
from samebits.errors import InvalidArgument, Unsupported

__all__ = ["Trace"]

_VERSION = 2
_KEY = "samebits_trace"
#: The names of the dtypes in a recording.
NAMES = {getattr(torch, name): name for name in """float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2
    float8_e4m3fnuz float8_e5m2fnuz bool uint8 int8 int16 int32 int64 uint16 uint32 uint64""".split()}
_DTYPES = {name: dtype for dtype, name in NAMES.items()}


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
        ``op``, ``args``, ``kwargs``, ``module``; ``deterministic`` if such algorithms were set; ``random`` if it draws random numbers;
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
        from safetensors import SafetensorError, safe_open

        path = os.fspath(path)
        try:
            with safe_open(path, "pt") as file:
                text = (file.metadata() or {}).get(_KEY)
                if text is None:
                    raise InvalidArgument(f"{path}: a recording of version {_VERSION} is expected; "
                                          f"got no metadata {_KEY}")
                tensors = {name: file.get_tensor(name) for name in file.keys()}
        except SafetensorError as error:
            raise InvalidArgument(f"{path}: {error}") from None
        try:
            header = json.loads(text)
            version = header["version"]
            trace = cls(header.get("machine"), header.get("blocks"), header.get("operators"), tensors)
            if version == _VERSION:
                trace._check()
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise InvalidArgument(f"{path}: {_KEY} is no recording: {error!r}") from None
        if version != _VERSION:
            raise InvalidArgument(f"{path}: a recording of version {_VERSION} is expected; got {version}")
        return trace

    def _check(self) -> None:
        """Refuse a header that is none, tensors outside of their blocks, and contents of other sizes."""
        _require(isinstance(self.machine, dict) and isinstance(self.machine.get("multiprocessors", 1), int), "machine")
        for n, block in enumerate(self.blocks):
            _require(type(block["bytes"]) is int and block["bytes"] >= 0, f"block {n}: bytes")
            _require("source" not in block or isinstance(block["hash"], str), f"block {n}: hash")
            content = self.tensors.get(f"block.{n}")
            _require(content is None or content.nbytes == block["bytes"], f"block.{n}: size")
        for i, entry in enumerate(self.operators):
            _require(isinstance(entry["op"], str) and isinstance(entry.get("module", ""), str)
                     and isinstance(entry["args"], list) and isinstance(entry["kwargs"], dict), f"operator {i}")
            for place in places([entry["args"], entry["kwargs"], entry["out"]]):
                self._check_place(i, place)
            for what, kept in (("wrote", f"{i}."), ("read", f"{i}.read")):
                for j, (place, number) in enumerate(entry[what] if what == "wrote" else entry.get(what, [])):
                    self._check_place(i, place)
                    content = self.tensors.get(f"{kept}{j}")
                    _require(isinstance(number, str), f"operator {i}: hash")
                    _require(content is None or [[*content.shape], content.dtype] == [place[2], _DTYPES[place[4]]],
                             f"{kept}{j}: shape")

    def _check_place(self, i: int, place: Any) -> None:
        number, offset, shape, strides, dtype = place
        _require(all(type(n) is int and n >= 0 for n in (number, offset, *shape, *strides)) and dtype in _DTYPES,
                 f"operator {i}: tensor {place}")
        last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        _require(0 in shape or (last + 1) * _DTYPES[dtype].itemsize <= self.blocks[number]["bytes"],
                 f"operator {i}: tensor {place} beyond its block")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


def places(encoded: Any) -> Iterator[list[Any]]:
    """Return the tensors among arguments or results."""
    if isinstance(encoded, dict):
        if "t" in encoded:
            yield encoded["t"]
        else:
            for value in encoded.values():
                yield from places(value)
    elif isinstance(encoded, list):
        for value in encoded:
            yield from places(value)


def bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    """Return a block's memory as bytes."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)  # type: ignore[arg-type]


# --- Hashes ----------------------------------------------------------------------------------------

def hash_of(x: torch.Tensor) -> str:
    """Return a hash of a tensor's values in their order; NaNs of all kinds are alike.

    `samebits::hash_codes`: tensors of one shape and format that differ in one element have different hashes.
    Any device gives the same.
    """
    return hashes_of([x])[0]


def hashes_of(tensors: Sequence[torch.Tensor]) -> list[str]:
    """Return the hash of each tensor."""
    buffer = HashBuffer(len(tensors))
    pairs = [["", ""] for _ in tensors]
    buffer.add(pairs, tensors)
    buffer.enqueue()
    buffer.finish()
    return [text for _, text in pairs]


class HashBuffer:
    """Hashes that GPUs compute while the program goes on.

    `add` notes tensors, `enqueue` enqueues the hashes of what was noted on the current streams, one call for
    each device, and `finish` waits for all and writes them.
    """

    def __init__(self, slots: int = 1 << 16) -> None:
        self._slots = slots  # enough for many steps: a full buffer is waited for
        self._noted: dict[int, tuple[list[Any], list[torch.Tensor]]] = {}  # by device; the CPU is -1
        self._buffers: dict[int, tuple[torch.Tensor, list[Any]]] = {}

    def add(self, owners: Sequence[Any], tensors: Sequence[torch.Tensor]) -> None:
        """Note tensors. At the end owner[1] of a list, or owner["hash"] of a dict, is a tensor's hash."""
        for owner, x in zip(owners, tensors, strict=True):
            there = self._noted.setdefault(x.get_device(), ([], []))
            there[0].append(owner)
            there[1].append(x)

    def enqueue(self) -> None:
        """Hash what was noted."""
        noted, self._noted = self._noted, {}
        for device, there in noted.items():
            self._enqueue(device, *there)

    def _enqueue(self, device: int, owners: list[Any], tensors: list[torch.Tensor]) -> None:
        buffer, known = self._buffers.get(device, (None, []))
        if buffer is None or len(known) + len(tensors) > len(buffer):
            self._write(device)
            slots = max(self._slots, len(tensors))
            memory = torch.empty(slots, dtype=torch.int64, device="cpu" if device < 0 else device)
            buffer, known = self._buffers[device] = (memory, [])
            if device >= 0:
                torch.cuda.synchronize(device)  # one stream may still write this memory when another hashes
        rows = [x if x.is_contiguous() else x.contiguous() for x in tensors]
        results = buffer.data_ptr() + 8 * len(known)
        if device >= 0:
            try:
                _core.hash_codes(rows, results, True, 1, torch._C._cuda_getCurrentRawStream(device))
            except Unsupported:  # a package without CUDA
                return self._enqueue(-1, owners, [x.cpu() for x in tensors])
        else:
            _core.hash_codes(rows, results, False, samebits.get_num_threads() or 0, None)
        known += owners

    def _write(self, device: int) -> None:
        """Wait for a device, on whatever stream, and write its hashes."""
        buffer, owners = self._buffers.pop(device, (torch.empty(0, dtype=torch.int64), []))
        if device >= 0:
            torch.cuda.synchronize(device)
        text = struct.pack(f">{len(owners)}q", *buffer[: len(owners)].tolist()).hex()
        for i, owner in enumerate(owners):
            owner["hash" if isinstance(owner, dict) else 1] = text[16 * i : 16 * i + 16]

    def finish(self) -> None:
        """Wait for all hashes, and write them."""
        for device in [*self._buffers]:
            self._write(device)
