"""The memory blocks of a recording that is replayed."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from samebits.errors import InvalidArgument
from samebits.torch.trace import Trace, bytes_of, hash_of, places


class MissingSource(InvalidArgument):
    """A recording has no values of a source, and none were given."""


class Memory:
    """The memory blocks of a recording on a device; a block is freed after its last operator."""

    def __init__(self, trace: Trace, given: Any) -> None:
        self._trace, self.device = trace, "cpu"
        self.blocks: dict[int, torch.UntypedStorage] = {}
        self._wrong: set[int] = set()  # blocks whose values differ from the recorded ones
        self._last: dict[int, int] = {}
        for i, entry in enumerate(trace.operators):
            self._last.update(dict.fromkeys(blocks_of(entry), i))
        sources = (bytes_of(x.detach().cpu().untyped_storage()) for x in _tensors_of(given))
        self._given = {(hash_of(x), x.numel()): x for x in sources}

    def tensor(self, place: list[Any], fresh: bool = False) -> torch.Tensor:
        """Return a tensor of the recording. fresh: an operator is about to make it."""
        number, offset, shape, stride, dtype = place
        if number not in self.blocks:
            self.blocks[number] = self._made(number, fresh)
        x = torch.empty(0, dtype=getattr(torch, dtype), device=self.blocks[number].device)
        return x.set_(self.blocks[number], offset, shape, stride)  # type: ignore[arg-type]

    def _made(self, number: int, fresh: bool) -> torch.UntypedStorage:
        block = self._trace.blocks[number]
        if "source" not in block:
            if not fresh:
                self._wrong.add(number)
            return torch.UntypedStorage(block["bytes"], device=self.device)
        content = self._trace.tensors.get(f"block.{number}")
        if content is None:
            content = self._given.get((block["hash"], block["bytes"]))
        if content is None:
            raise MissingSource(f"{block['source']}: the recording has no values of this source; pass a module, "
                                  "optimizer or tensor with them")
        return content.to(self.device, copy=True).untyped_storage()

    def is_wrong(self, number: int) -> bool:
        return number in self._wrong

    def mark(self, place: list[Any], wrong: bool) -> None:
        """Keep in mind whether what was written is wrong; a part does not make a wrong block right."""
        number, _, shape, _, dtype = place
        if wrong:
            self._wrong.add(number)
        elif math.prod(shape) * getattr(torch, dtype).itemsize >= self._trace.blocks[number]["bytes"]:
            self._wrong.discard(number)

    def fork(self, blocks: set[int], device: str = "cpu") -> Memory:
        """Return a memory for one operator, on a device, that has copies of the operator's blocks."""
        other = copy.copy(self)
        other.device, other.blocks = device, {}
        other.take(self, blocks)
        return other

    def take(self, other: Memory, blocks: set[int]) -> None:
        """Go on with copies of another memory's blocks."""
        self._wrong = set(other._wrong)
        self.blocks |= {n: bytes_of(other.blocks[n]).to(self.device, copy=True).untyped_storage()
                        for n in blocks & other.blocks.keys()}

    def free(self, i: int, entry: Any) -> None:
        for number in blocks_of(entry):
            if self._last[number] == i:
                self.blocks.pop(number, None)


def _tensors_of(given: Any) -> Iterator[torch.Tensor]:
    for one in given:
        leaves = one.state_dict() if hasattr(one, "state_dict") else one
        yield from (x for x in tree_leaves(leaves) if isinstance(x, torch.Tensor))


def blocks_of(entry: Any) -> set[int]:
    return {place[0] for place in places([entry["args"], entry["kwargs"], entry["out"]])}
