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
    """The memory blocks of a recording on the CPU; a block is freed after its last operator."""

    def __init__(self, trace: Trace, given: Any) -> None:
        self._trace = trace
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
            return torch.UntypedStorage(block["bytes"])
        content = self._trace.tensors.get(f"block.{number}")
        if content is None:
            content = self._given.get((block["hash"], block["bytes"]))
        if content is None:
            raise MissingSource(f"{block['source']}: the recording has no values of this source; pass a module, "
                                  "optimizer or tensor with them")
        return content.clone().untyped_storage()

    def is_wrong(self, number: int) -> bool:
        return number in self._wrong

    def mark(self, place: list[Any], wrong: bool) -> None:
        """Keep in mind whether what was written is wrong; a part does not make a wrong block right."""
        number, _, shape, _, dtype = place
        if wrong:
            self._wrong.add(number)
        elif math.prod(shape) * getattr(torch, dtype).itemsize >= self._trace.blocks[number]["bytes"]:
            self._wrong.discard(number)

    def fork(self, blocks: set[int]) -> Memory:
        """Return a memory that has copies of some blocks, and shares the others."""
        other = copy.copy(self)
        other.blocks = {n: block.clone() if n in blocks else block for n, block in self.blocks.items()}
        other._wrong = set(self._wrong)
        return other

    def take(self, other: Memory, entry: Any) -> None:
        """Go on with what another memory has for an operator."""
        self.blocks.update({n: other.blocks[n] for n in blocks_of(entry) if n in other.blocks})
        self._wrong = other._wrong

    def free(self, i: int, entry: Any) -> None:
        for number in blocks_of(entry):
            if self._last[number] == i:
                self.blocks.pop(number, None)


class Copies(Memory):
    """Copies of a memory's blocks on a device, made when they are needed."""

    def __init__(self, of: Memory, device: str) -> None:
        self._of, self._device, self.blocks = of, device, {}

    def _made(self, number: int, fresh: bool) -> torch.UntypedStorage:
        storage = self._of.tensor([number, 0, [0], [1], "uint8"]).untyped_storage()
        return bytes_of(storage).to(self._device, copy=True).untyped_storage()


def _tensors_of(given: Any) -> Iterator[torch.Tensor]:
    for one in given:
        leaves = one.state_dict() if hasattr(one, "state_dict") else one
        yield from (x for x in tree_leaves(leaves) if isinstance(x, torch.Tensor))


def blocks_of(entry: Any) -> set[int]:
    return {place[0] for place in places([entry["args"], entry["kwargs"], entry["out"]])}
