"""Rows of work and their times, beside a copy of the same memory and beside other libraries."""

from __future__ import annotations

import ctypes
import os
import re
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import torch

import samebits

Call = Callable[[], object]


@dataclass
class Row:
    """A call that is timed, and the calls of other libraries that do the same work.

    Attributes
    ----------
    bytes : float
        Bytes that the call must move: each operand read once, each result written once. 0: not counted.
    kind : str
        ``device``: time of the device, with several calls enqueued; ``host``: time until the host may go on, of small
        calls; ``whole``: from the call to the end of its work.
    prepare : callable, optional
        Runs before each call and is not timed.
    products : float
        Multiply-adds of the call.
    """

    name: str
    bytes: float
    call: Call
    peers: dict[str, Call] = field(default_factory=dict)
    kind: str = "device"
    prepare: Call | None = None
    products: float = 0


@dataclass
class Machine:
    """Where rows run, how large they are, and which of them are wanted."""

    device: str
    elements: int
    cols: int
    rounds: int
    backends: list[str]
    threads: list[int]
    only: str
    library: str

    def wants(self, name: str) -> bool:
        """Whether the command line chooses a row."""
        return re.search(self.only, name) is not None

    def normal(self, *shape: int) -> torch.Tensor:
        """Return normally distributed fp32 numbers; by default `elements` of them."""
        return torch.randn(shape or (self.elements,), device=self.device)

    def synchronize(self) -> None:
        """Wait for the GPU."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def milliseconds(self, row: Row, call: Call) -> float:
        """Return the time of one call."""
        if row.prepare is not None:
            row.prepare()
        self.synchronize()
        if self.device == "cuda" and row.kind == "device":
            calls = 4 if row.prepare is None else 1
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(20_000_000)  # the device begins when the host has enqueued everything
            first.record()
            for _ in range(calls):
                call()
            last.record()
            last.synchronize()
            return first.elapsed_time(last) / calls
        calls = 20 if row.kind == "host" else 1
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        if row.kind != "host":
            self.synchronize()
        return (time.perf_counter() - begin) / calls * 1e3

    def copy(self) -> Row:
        """Return the copy of `elements` fp32 numbers: cudaMemcpyAsync, or a memcpy on each thread of the CPU."""
        source = self.normal()
        target = torch.empty_like(source)
        if self.device == "cuda":
            return Row("copy", 2.0 * source.nbytes, lambda: target.copy_(source))
        pool = ThreadPoolExecutor(max(self.threads))

        def copy() -> None:
            threads = torch.get_num_threads()
            part = source.nbytes // threads
            for done in [pool.submit(ctypes.memmove, target.data_ptr() + i * part, source.data_ptr() + i * part, part)
                         for i in range(threads)]:
                done.result()

        return Row("copy", 2.0 * source.nbytes, copy)

    def measure(self, rows: list[Row]) -> None:
        """Time rows in turn, on each backend and number of threads, and print a line for each."""
        rows = [row for row in rows if self.wants(row.name)]
        if not rows:
            return
        copy = self.copy()
        settings = [(backend, threads) for backend in self.backends for threads in self.threads]
        times: dict[tuple[str, int, str, str], list[float]] = {}
        for number in range(self.rounds + 1):  # the first one warms up
            for backend, threads in settings:
                os.environ["SAMEBITS_BACKEND"] = backend  # read by each call
                samebits.set_num_threads(threads)
                torch.set_num_threads(threads)
                for row in [copy, *rows]:
                    for label, call in {"": row.call, **row.peers}.items():
                        taken = self.milliseconds(row, call)
                        if number > 0:
                            times.setdefault((backend, threads, row.name, label), []).append(taken)
        for backend, threads in settings:
            rate = copy.bytes / statistics.median(times[backend, threads, "copy", ""])
            of = f", {backend}" * (backend != "") + f", {threads} threads" * (len(self.threads) > 1)
            for row in [copy, *rows] if len(rows) > 1 else rows:
                own = times[backend, threads, row.name, ""]
                others = {label: times[backend, threads, row.name, label] for label in row.peers}
                print(line(row, of, own, rate, others), flush=True)


def line(row: Row, of: str, own: list[float], rate: float, others: dict[str, list[float]]) -> str:
    """Return a line of the table: medians, and medians of the ratios of each round."""
    ms = statistics.median(own)
    speed = f"{row.bytes / ms / 1e6:.1f} GB/s" if row.bytes else ""
    if row.products:
        speed = f"{row.products / ms / 1e6:.1f} GMAC/s"
    beside = ", ".join(f"{name} {statistics.median(a / b for a, b in zip(own, other, strict=True)):.2f}"
                       for name, other in others.items())
    time_of_call = f"{ms:.4f} ms" if ms > 0.1 else f"{1e3 * ms:.2f} us"
    floor = f"{ms * rate / row.bytes:.2f}" if row.bytes else ""
    return f"| {row.name}{of} | {time_of_call} | {speed} | {floor} | {beside} |"
