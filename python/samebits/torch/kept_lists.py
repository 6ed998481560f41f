"""Lists of the library for tensors that move: one list for each set of addresses, kept for a while."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

import torch

from samebits.errors import InvalidArgument

_LISTS_KEPT: Final = 4  # of tensors that move between a few addresses

List = TypeVar("List")


class KeptLists(Generic[List]):
    """Lists by the addresses that they hold for, and page-locked memory for their tables.

    Lists that a CUDA graph uses stay as long as this object.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, List] = OrderedDict()
        self._in_graphs: dict[Hashable, List] = {}  # their tables are on the device
        # Lists made during a capture: only a replay of that graph fills their tables.
        self._made_by_graphs: list[List] = []
        self._spare: torch.Tensor | None = None

    @property
    def captured(self) -> bool:
        """Whether a CUDA graph uses a list of this object."""
        return bool(self._in_graphs or self._made_by_graphs)

    def find(self, key: Hashable, device: torch.device, make: Callable[[bool], List]) -> List:
        """Return the list of a key; a capture keeps it for good.

        `make` makes a list; its argument says whether the current stream is being captured.
        """
        with self._lock:
            capturing = device.type == "cuda" and torch.cuda.is_current_stream_capturing()
            found = self._in_graphs.get(key) or self._kept.pop(key, None)
            if found is None:
                found = make(capturing)
                if capturing:
                    self._made_by_graphs.append(found)
                    return found
            if capturing or key in self._in_graphs:
                self._in_graphs[key] = found
                return found
            self._kept[key] = found  # the last one that was used
            if len(self._kept) > _LISTS_KEPT:
                self._kept.popitem(last=False)
            return found

    def page_locked(self, size: int, capturing: bool) -> torch.Tensor:
        """Return page-locked memory. A capture cannot allocate it and takes the spare."""
        spare, self._spare = self._spare, None
        if spare is None or spare.numel() < size:
            if capturing:
                raise InvalidArgument("gradients: their first call is captured into a CUDA graph; "
                                      "make one call outside the capture before")
            spare = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        if not capturing:
            self._spare = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        return spare
