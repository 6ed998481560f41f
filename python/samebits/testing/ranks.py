"""Simulated ranks: several ranks inside one process, for tests of code that uses a communicator."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from samebits.errors import InvalidArgument
from samebits.ranks import Communicator
from samebits._core import integer

__all__ = ["RankCallsDiffer", "simulate_ranks"]

Result = TypeVar("Result")


class RankCallsDiffer(AssertionError):
    """The ranks' operations do not match: real ranks would hang or exchange wrong data."""


class _Network:
    """Messages between the threads. All fields are guarded by `changed`."""

    def __init__(self, count: int) -> None:
        self.changed = threading.Condition()
        self.calls: list[tuple[str, int, Any] | None] = [None] * count
        self.waiting = 0
        self.round = 0
        self.received: list[Any] = []
        self.ended: dict[int, str] = {}
        self.failure: str | None = None

    def exchange(self, rank: int, operation: str, message: Any) -> list[Any]:
        """Return the messages of all ranks when every rank has sent one."""
        with self.changed:
            self._check()
            self.calls[rank] = (operation, message.nbytes, message)
            self.waiting += 1
            mine = self.round
            if self.waiting == len(self.calls):
                self._deliver()
            elif self.ended:
                self._fail()
            self.changed.wait_for(lambda: self.round != mine or self.failure is not None)
            if self.round == mine:
                self._check()
            return self.received

    def end(self, rank: int, how: str) -> None:
        """Tell the other ranks that a rank makes no more calls."""
        with self.changed:
            self.ended[rank] = how
            if self.waiting:
                self._fail()

    def _deliver(self) -> None:
        calls = [call for call in self.calls if call is not None]
        if any(call[:2] != calls[0][:2] for call in calls):
            self._fail()
            return
        self.received = [call[2] for call in calls]
        self.calls = [None] * len(calls)
        self.waiting = 0
        self.round += 1
        self.changed.notify_all()

    def _fail(self) -> None:
        what = [self.ended.get(r) or ("computes" if call is None else
                                      f"calls {call[0]} with {call[1]} bytes")
                for r, call in enumerate(self.calls)]
        self.failure = "; ".join(f"rank {r} {w}" for r, w in enumerate(what))
        self.changed.notify_all()

    def _check(self) -> None:
        if self.failure is not None:
            raise RankCallsDiffer(f"the ranks' calls do not match: {self.failure}")


class _Rank(Communicator):
    """One simulated rank."""

    def __init__(self, network: _Network, rank: int) -> None:
        self._network = network
        self._rank = rank

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def size(self) -> int:
        return len(self._network.calls)

    def all_reduce_max(self, words: Any) -> None:
        words[:] = np.maximum.reduce(self._network.exchange(self._rank, "all_reduce_max",
                                                            words.copy()))

    def all_gather(self, sent: Any, received: Any) -> None:
        received[:] = np.concatenate(self._network.exchange(self._rank, "all_gather", sent.copy()))

    def all_to_all(self, sent: Any, received: Any) -> None:
        everyone = self._network.exchange(self._rank, "all_to_all", sent.copy())
        received[:] = np.concatenate([m.reshape(self.size, -1)[self._rank] for m in everyone])


def simulate_ranks(count: int, body: Callable[[Communicator], Result]) -> list[Result]:
    """Run ``body(ranks)`` once per rank, each on its own thread, over host memory.

    Never waits for ever. An exception of a body ends its rank, and the other ranks at their next
    operation.

    Parameters
    ----------
    count : int
        Number of ranks, 1 .. 1024.
    body : callable
        The program of a rank.

    Returns
    -------
    list
        The results of the bodies, by rank.

    Raises
    ------
    RankCallsDiffer
        The ranks' operations do not match. The message says what each rank did.
    Exception
        The exception of a body; of several, the one of the lowest rank.

    Examples
    --------
    >>> import numpy as np
    >>> from samebits.ranks import reduce_gradients
    >>> from samebits.testing import simulate_ranks
    >>> def train(ranks):
    ...     gradient = np.float32([ranks.rank, 1])
    ...     reduce_gradients(ranks, gradient, factor=1 / ranks.size)
    ...     return gradient.tolist()
    >>> simulate_ranks(3, train)
    [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    """
    count = integer(count, "count")
    if not 1 <= count <= 1024:
        raise InvalidArgument(f"count: 1 .. 1024 is expected; got {count}")
    network = _Network(count)
    results: list[Any] = [None] * count
    errors: list[BaseException | None] = [None] * count

    def run(rank: int) -> None:
        try:
            results[rank] = body(_Rank(network, rank))
            network.end(rank, "has returned")
        except BaseException as error:  # raised again below
            errors[rank] = error
            network.end(rank, f"has raised {type(error).__name__}: {error}")

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    raised = [error for error in errors if error is not None]
    for error in sorted(raised, key=lambda e: isinstance(e, RankCallsDiffer)):
        raise error
    return results
