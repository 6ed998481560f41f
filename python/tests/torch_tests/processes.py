"""Ranks of torch.distributed in processes of their own, which run the functions of a test."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import pytest
import torch
import torch.distributed as dist

#: Seconds after which torch.distributed gives up an operation, and the test a rank.
OPERATION_LIMIT, RANK_LIMIT = 30, 120


class Failure(Exception):
    """The exception of a rank: its type, its text, and where it was raised."""

    def __init__(self, kind: str, text: str, where: str) -> None:
        super().__init__(kind, text, where)
        self.kind, self.text, self.where = kind, text, where


def _run(rank: int, size: int, backend: str, store: str, pipe: Connection) -> None:
    """Run the functions that the test sends, as one rank."""
    torch.set_num_threads(1)
    if backend == "nccl":
        torch.cuda.set_device(rank)
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=size,
                            timeout=timedelta(seconds=OPERATION_LIMIT))
    pipe.send(None)
    while (job := pipe.recv()) is not None:
        function, arguments = job
        try:
            pipe.send((function(*arguments), None))
        except Exception as error:
            pipe.send((None, Failure(type(error).__name__, str(error), traceback.format_exc())))
    dist.destroy_process_group()


class Processes:
    """`size` ranks, each a process."""

    def __init__(self, backend: str, size: int, store: str) -> None:
        self.backend, self.size = backend, size
        self.device = "cuda" if backend == "nccl" else "cpu"
        # A server that is forked imports torch once for all ranks; CUDA must not be forked.
        context: Any = multiprocessing.get_context("spawn" if backend == "nccl" else "forkserver")
        context.set_forkserver_preload(["torch.distributed.fsdp", "samebits.torch"])
        pipes = [context.Pipe() for _ in range(size)]
        self._pipes = [ours for ours, _ in pipes]
        self._processes = [
            context.Process(target=_run, args=(rank, size, backend, store, pipes[rank][1]),
                            daemon=True) for rank in range(size)]
        for process in self._processes:
            process.start()
        for _, theirs in pipes:
            theirs.close()
        for rank in range(size):
            self._answer(rank)

    def _answer(self, rank: int) -> Any:
        if not self._pipes[rank].poll(RANK_LIMIT):
            self.__exit__()
            pytest.fail(f"rank {rank} did not answer in {RANK_LIMIT} s")
        return self._pipes[rank].recv()

    def outcomes(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Run ``function(*arguments)`` on every rank; return results, and a Failure of each rank
        that raised."""
        for pipe in self._pipes:
            pipe.send((function, arguments))
        answers = [self._answer(rank) for rank in range(self.size)]
        return [result if failure is None else failure for result, failure in answers]

    def results(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Run a function on every rank; return the results."""
        outcomes = self.outcomes(function, *arguments)
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                pytest.fail(outcome.where)
        return outcomes

    def end(self, rank: int) -> None:
        """End one process, as if its machine had failed."""
        self._processes[rank].kill()
        self._processes[rank].join()

    def send(self, rank: int, function: Callable[..., Any], *arguments: Any) -> None:
        """Start a function on one rank; `answer` waits for it."""
        self._pipes[rank].send((function, arguments))

    def answer(self, rank: int) -> Any:
        """Return the result of the function that `send` started, or its Failure."""
        result, failure = self._answer(rank)
        return result if failure is None else failure

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: Any) -> None:
        """End all processes."""
        for pipe in self._pipes:
            try:
                pipe.send(None)
            except OSError:  # the process has ended
                pass
        for process in self._processes:
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join()
