"""The inputs that a kernel must support, as the checks of the engine ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from samebits.errors import InvalidArgument
from samebits.testing.memory import Memory, Predicate
from samebits.testing.number_formats import Format


class Domain:
    """A caller's predicate of arrays, or none."""

    def __init__(self, where: Predicate | None, f: Format, memory: Memory) -> None:
        self.where, self.f, self.memory = where, f, memory
        self.is_empty = False  # an input was asked for, and none satisfied the predicate
        self._found = False

    @property
    def predicate(self) -> Callable[[memoryview], bytes] | None:
        """The predicate of codes in memory, 8 bytes each; None if every code is an input."""
        return None if self.where is None else self.accepted

    def accepted(self, codes: memoryview) -> bytes:
        """Return a byte for each code: 1 if it is an input."""
        given = np.asarray(codes).view(np.uint64)
        assert self.where is not None
        accepted = self.memory.allowed(self.where, given, self.f)
        self._found |= bool(accepted.any())
        self.is_empty = not self._found
        return np.broadcast_to(accepted, given.shape).tobytes()

    @contextmanager
    def refused(self) -> Iterator[None]:
        """Refuse a predicate that no input of the check satisfied."""
        try:
            yield
        except InvalidArgument:
            if self.is_empty:
                raise InvalidArgument("where: no input satisfies the predicate") from None
            raise
