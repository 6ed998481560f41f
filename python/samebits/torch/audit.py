"""Recomputes a sample of a running program's operators on the CPU: `audit`."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._pytree import tree_map
from torch.utils._python_dispatch import _get_current_dispatch_mode

from samebits.errors import InvalidArgument
from samebits.torch.aten.elementwise import is_elementwise
from samebits.torch.audit_sample import Finding, Sample
from samebits.torch.copies import HostCopy, copied
from samebits.torch.operators import Operator, OperatorMode, is_dense, numbers_of, tensors_of, without_modes
from samebits.torch.recompute import Conditions, reason_of
from samebits.torch.tiles import tile_of

__all__ = ["AuditReport", "Finding", "audit"]

#: Errors of arguments that no rule expects, and of memory: they must not end the program.
_UNEXPECTED = (IndexError, RuntimeError, TypeError, ValueError)
#: Products without a known rule that are kept until their shape has one.
_UNSURE = 16


@dataclass
class AuditReport:
    """What an audit has seen so far.

    Attributes
    ----------
    steps, operators : int
        Steps of optimizers that have ended; operators that ran in audited steps.
    chosen, tiles, equal : int
        Operators that were chosen; parts that were recomputed; those that were equal, bit for bit.
    findings : list of Finding
        Parts that differ from the rule, also those that follow another known rule.
    not_covered : dict
        Chosen operators without a rule: how many, by name.
    dropped : int
        Chosen operators that were not copied, because `max_bytes` were waiting.
    bytes : int
        Bytes that were copied.
    seconds, worker_seconds, wall_seconds : float
        Time that the program's thread spent on the audit's own work, time of the workers, time in the block.
    """

    steps: int = 0
    operators: int = 0
    chosen: int = 0
    tiles: int = 0
    equal: int = 0
    findings: list[Finding] = field(default_factory=list)
    not_covered: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    bytes: int = 0
    seconds: float = 0.0
    worker_seconds: float = 0.0
    wall_seconds: float = 0.0

    @property
    def suspect(self) -> list[Finding]:
        """The findings that follow no known rule, and are sure."""
        return [finding for finding in self.findings if finding.sure and not finding.follows]

    def __str__(self) -> str:
        lines = [f"{self.tiles} tiles of {self.operators} operators in {self.steps} steps recomputed: "
                 f"{self.equal} equal, bit for bit"]
        lines += [f"  {finding}" for finding in self.findings]
        lines += [f"  {n} not covered: {name}" for name, n in sorted(self.not_covered.items())]
        if self.dropped:
            lines.append(f"  {self.dropped} dropped: too many bytes were waiting")
        share = self.seconds / self.wall_seconds if self.wall_seconds else 0.0
        lines.append(f"  cost: {100 * share:.1f} % of the program's time, {self.worker_seconds:.1f} s of workers, "
                     f"{self.bytes / 1e6:.1f} MB copied")
        return "\n".join(lines)


class Audit(OperatorMode):
    """A context manager that samples operators, made by `audit`."""

    def __init__(self, share: float, every: int, seed: int, tile: int, max_bytes: int, threads: int, first_step: int,
                 on_finding: Callable[[Finding], None] | None) -> None:
        super().__init__()
        self._every, self._active = every, False
        self._threshold, self._seed, self._tile, self._max_bytes = int(share * 2**64), seed, tile, max_bytes
        self._threads, self._first_step, self._on_finding = threads, first_step, on_finding
        self._report = AuditReport()
        self._number = self._waiting = 0  # of the operator in its step; bytes in the queue
        self._queue: queue.Queue[Sample | None] = queue.Queue()
        self._workers: list[threading.Thread] = []
        self._failure: Exception | None = None
        self._lock = threading.Lock()
        self._rules: dict[str, list[str]] = {}  # of products, by shapes
        self._unsure: dict[str, tuple[Sample, Finding]] = {}  # the first that has no rule, by shapes
        self._entered = 0.0

    def __enter__(self) -> Audit:
        self._multiprocessors = (torch.cuda.get_device_properties().multi_processor_count
                                 if torch.cuda.is_available() else Conditions.multiprocessors)
        self._workers = [threading.Thread(target=self._work, daemon=True) for _ in range(self._threads)]
        for worker in self._workers:
            worker.start()
        self._hook = register_optimizer_step_post_hook(self._step_ended)
        self._entered = time.perf_counter()
        self._activate()
        return self

    def __exit__(self, *failure: Any) -> None:
        if self._active:
            self._active = False
            super().__exit__(*failure)
        self._hook.remove()
        self._report.wall_seconds += time.perf_counter() - self._entered
        self._entered = 0.0
        for _ in self._workers:
            self._queue.put(None)
        for worker in self._workers:
            worker.join()
        self._workers = []
        if failure[0] is None:
            self._raise()

    def report(self) -> AuditReport:
        """Wait for the samples that were taken, and return what was found so far.

        An error of `on_finding` is raised here, or at the end of the block.
        """
        self._queue.join()
        if self._entered:
            now = time.perf_counter()
            self._report.wall_seconds += now - self._entered
            self._entered = now
        self._raise()
        return self._report

    def _raise(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # --- On the program's thread ---------------------------------------------------------------------------

    def _step_ended(self, *_: Any) -> None:
        if threading.current_thread() not in self._workers:  # which recompute steps
            self._report.steps += 1
            self._number = 0
            self._activate()

    def _activate(self) -> None:
        """See the operators of the steps that are audited; the mode goes where no other has come upon it."""
        wanted = (self._first_step + self._report.steps) % self._every == 0
        if wanted and not self._active:
            self._active = True
            super().__enter__()
        elif self._active and not wanted and _get_current_dispatch_mode() is self:
            self._active = False
            super().__exit__(None, None, None)

    def before(self, operator: Operator, args: Any, kwargs: Any, tensors: list[torch.Tensor]) -> Any:
        self._report.operators += 1
        self._number += 1
        step = self._first_step + self._report.steps
        word = random_word(self._seed, step, self._number - 1)
        if word < self._threshold:
            with self._own_work(operator):
                return self._begun(operator, args, kwargs, tensors, random_word(word, step, self._number))
        return None

    @contextmanager
    def _own_work(self, operator: Operator, sample: Sample | None = None) -> Iterator[None]:
        """Count the time of the audit's own work, and its errors, after which the program goes on."""
        began = time.perf_counter()
        try:
            with without_modes():
                yield
        except _UNEXPECTED as error:
            self._release(sample.size if sample else 0)
            self._count(f"{operator.name}: {error}")
        self._report.seconds += time.perf_counter() - began

    def _begun(self, operator: Operator, args: Any, kwargs: Any, tensors: list[torch.Tensor], word: int) -> Any:
        """Copy the arguments of a part of an operator; None if it cannot be recomputed."""
        self._report.chosen += 1
        if operator.name.startswith("higher_order."):
            return self._count(operator.name)
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            return self._count(f"{operator.name} in a CUDA graph")
        if not all(map(is_dense, tensors)):
            return self._count(f"{operator.name} of sparse or complex tensors")
        tile = tile_of(operator, args, kwargs, word, self._tile)
        written = operator.written(tile.args, tile.kwargs)
        size = sum(map(HostCopy.nbytes, [*tensors_of([tile.args, tile.kwargs]), *written, *written]))
        if not self._reserve(size):
            return None
        numbers = numbers_of(tensors, written) if is_elementwise(operator.short) else set()
        how = Conditions(self._multiprocessors, operator.is_deterministic())
        try:
            own_args, own_kwargs = copied((tile.args, tile.kwargs), numbers)
            sample = Sample(self._first_step + self._report.steps, self._number - 1, operator, self.module(), how,
                            own_args, own_kwargs, size, tile.place)
        except RuntimeError:  # no memory
            self._release(size)
            raise
        return sample, tile, written, {id(x) for x in operator.written(args, kwargs)}

    def after(self, operator: Operator, result: Any, state: Any) -> None:
        if state is None:
            return
        sample, tile, written, known = state
        with self._own_work(operator, sample):
            compared = {id(x) for x in operator.valued(tensors_of([result])) if is_dense(x)} - known
            if compared or written:
                results = tree_map(lambda y: y if id(y) in compared else None, result)
                self._enqueue(sample, written, tile.of_result(results) if compared else [])
            else:  # it returned no numbers
                self.failed(operator, state)

    def failed(self, operator: Operator, state: Any) -> None:
        if state is not None:
            self._report.chosen -= 1
            self._release(state[0].size)

    def _reserve(self, size: int) -> bool:
        with self._lock:
            if self._waiting + size > self._max_bytes:
                self._report.dropped += 1
                return False
            self._waiting += size
            self._report.bytes += size
            return True

    def _enqueue(self, sample: Sample, written: list[torch.Tensor], results: Any) -> None:
        """Copy what an operator wrote, and hand it to a worker."""
        size = sum(map(HostCopy.nbytes, tensors_of([results])))
        if not self._reserve(size):
            self._release(sample.size)
            return
        sample.size += size
        sample.written, sample.results = copied((written, results))
        devices = {x.device for x in tensors_of([written, results]) if x.is_cuda}
        sample.ready = [torch.cuda.current_stream(device).record_event() for device in devices]
        self._queue.put(sample)

    # --- On a worker's thread ------------------------------------------------------------------------------

    def _release(self, size: int) -> None:
        with self._lock:
            self._waiting -= size

    def _count(self, name: str) -> None:
        with self._lock:
            self._report.not_covered[name] += 1

    def _work(self) -> None:
        while (sample := self._queue.get()) is not None:
            began = time.perf_counter()
            try:
                self._judge(sample)
            finally:  # else report() would wait for ever
                self._release(sample.size)
                with self._lock:
                    self._report.worker_seconds += time.perf_counter() - began
                self._queue.task_done()
        self._queue.task_done()

    def _judge(self, sample: Sample, before: Finding | None = None) -> None:
        """Judge a sample. before: what was found of a product whose shape had no known rule yet."""
        try:
            finding = sample.judged(self._rules)
        except Exception as error:  # noqa: BLE001 - also of PyTorch, from arguments that no rule expects
            return self._count(reason_of(error, sample.operator.name))
        unsure = None
        with self._lock:
            if before is None:
                self._report.tiles += 1
            else:
                self._report.findings.remove(before)
            if finding is None:
                self._report.equal += 1
                unsure = self._unsure.pop(sample.tile.alike, None)
            else:
                self._report.findings.append(finding)
                if not finding.sure and len(self._unsure) < _UNSURE:
                    self._unsure.setdefault(sample.tile.alike, (sample, finding))
        if finding is not None and self._on_finding is not None:
            try:
                self._on_finding(finding)
            except Exception as error:  # noqa: BLE001 - of the program, whose thread gets it
                self._failure = error
        if unsure is not None:
            self._judge(*unsure)


def random_word(*numbers: int) -> int:
    """Return 64 random bits that depend on whole numbers alone (SplitMix64)."""
    word = 0
    for number in numbers:
        word = (word + number + 0x9E3779B97F4A7C15) % 2**64
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
        word ^= word >> 31
    return word


def audit(share: float = 0.05, *, every: int = 512, seed: int = 0, tile: int = 64, max_bytes: int = 256 << 20,
          threads: int = 1, first_step: int = 0, on_finding: Callable[[Finding], None] | None = None) -> Audit:
    """Recompute a sample of the operators that run in a ``with`` block on the CPU, and compare bits.

    Which operators are chosen, and which part of each, follows from the seed, the step and the operator's number
    in its step: a second run chooses the same. A step ends when an optimizer's step has ended.

    Parameters
    ----------
    share : float
        The probability that an operator of an audited step is chosen.
    every : int
        Steps whose number is a multiple of it are audited; the others run as without an audit.
    seed : int
        Another seed chooses other operators.
    tile : int
        Rows and columns of a product that are recomputed, each with the whole sum; of other operators about
        ``tile * tile`` results, if each follows from its own operands, or the whole operator.
    max_bytes : int
        Bytes of copies that may wait. An operator beyond is dropped, and counted.
    threads : int
        Worker threads.
    first_step : int
        The number of the first step, where training goes on from a checkpoint.
    on_finding : function, optional
        Called with each Finding, on a worker's thread.

    Returns
    -------
    Audit
        The context manager; its `report` waits for the workers and returns an AuditReport.

    Examples
    --------
    >>> with sbt.audit(share=1.0) as audit:
    ...     y = torch.ones(1000) + 1
    >>> report = audit.report()
    >>> report.tiles, report.equal, report.findings
    (2, 2, [])
    """
    for name, value, right in (("share", share, 0 <= share <= 1), ("every", every, every > 0), ("tile", tile, tile > 0),
                               ("max_bytes", max_bytes, max_bytes > 0), ("threads", threads, threads > 0)):
        if not right:
            raise InvalidArgument(f"{name}: {value} is not possible")
    return Audit(share, every, seed, tile, max_bytes, threads, first_step, on_finding)
