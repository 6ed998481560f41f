"""Recomputes a sample of a running program's operators on the CPU: `audit`."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._pytree import tree_map
from torch.utils._python_dispatch import _disable_current_modes, _get_current_dispatch_mode

from samebits.errors import InvalidArgument, Unsupported
from samebits.torch import recorded_calls
from samebits.torch.aten.elementwise import ELEMENTWISE
from samebits.torch.audit_report import AuditReport
from samebits.torch.audit_sample import Finding, Sample
from samebits.torch.copies import HostCopy, copied
from samebits.torch.operators import Operator, OperatorMode, is_dense, numbers_of, tensors_of, without_modes
from samebits.torch.recompute import Conditions
from samebits.torch.tiles import tile_of

__all__ = ["AuditReport", "Finding", "audit"]

#: Errors of arguments that no rule expects, and of memory: they must not end the program.
_UNEXPECTED = (IndexError, RuntimeError, TypeError, ValueError)
#: Products without a known rule that are kept until their shape has one.
_UNSURE = 16


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
        self._lock = threading.Lock()
        self._workers: list[threading.Thread] = []
        self._rules: dict[str, list[str]] = {}  # of products, by shapes
        self._unsure: dict[str, tuple[Sample, Finding]] = {}  # the first that has no rule, by shapes
        self._hook: Any = None
        self._entered = 0.0
        self._multiprocessors = 132
        self._failure: Exception | None = None

    def __enter__(self) -> Audit:
        if torch.cuda.is_available():
            self._multiprocessors = torch.cuda.get_device_properties().multi_processor_count
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

    def _chosen(self, operator: Operator) -> int | None:
        """Count an operator; return 64 random bits if it is chosen."""
        self._report.operators += 1
        self._number += 1
        step = self._first_step + self._report.steps
        word = random_word(self._seed, step, self._number - 1)
        return random_word(word, step, self._number) if word < self._threshold else None

    def before(self, operator: Operator, args: Any, kwargs: Any, tensors: list[torch.Tensor]) -> Any:
        word = self._chosen(operator)
        if word is None:
            return None
        began = time.perf_counter()
        state = None
        try:
            with without_modes():
                state = self._begun(operator, args, kwargs, tensors, word)
        except _UNEXPECTED as error:
            self._count(f"{operator.name}: {error}")
        self._report.seconds += time.perf_counter() - began
        return state

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
        sample = self._sample(operator, tile.args, tile.kwargs, tensors, written)
        if sample is None:
            return None
        sample.tile = tile.place
        return sample, tile, written, {id(x) for x in operator.written(args, kwargs)}

    def after(self, operator: Operator, result: Any, state: Any) -> None:
        if state is None:
            return
        began = time.perf_counter()
        sample, tile, written, known = state
        try:
            with without_modes():
                compared = {id(x) for x in operator.valued(tensors_of([result])) if is_dense(x)} - known
                if compared or written:
                    results = tree_map(lambda y: y if id(y) in compared else None, result)
                    self._enqueue(sample, written, tile.of_result(results) if compared else [])
                else:  # it returned no numbers
                    self._report.chosen -= 1
                    self._release(sample.size)
        except _UNEXPECTED as error:
            self._release(sample.size)
            self._count(f"{operator.name}: {error}")
        self._report.seconds += time.perf_counter() - began

    def failed(self, operator: Operator, state: Any) -> None:
        if state is not None:
            self._report.chosen -= 1
            self._release(state[0].size)

    def record_call(self, call: recorded_calls.Call, arguments: Callable[[], list[Any]], run: Callable[[], Any]) -> None:
        operator = Operator.of_call(call)
        with _disable_current_modes():
            args = arguments()
            state = self.before(operator, args, {}, tensors_of(args))
            try:
                result = run()
            except BaseException:
                self.failed(operator, state)
                raise
            self.after(operator, result, state)

    def _sample(self, operator: Operator, args: list[Any], kwargs: dict[str, Any], tensors: list[torch.Tensor],
                written: list[torch.Tensor]) -> Sample | None:
        """Copy an operator's arguments; None if too many bytes are waiting."""
        size = sum(HostCopy.nbytes(x) for x in tensors_of([args, kwargs]))
        size += 2 * sum(HostCopy.nbytes(x) for x in written)
        if not self._reserve(size):
            return None
        plain = operator.short.removeprefix("_foreach_").removesuffix("_")
        numbers = numbers_of(tensors, operator.written(args, kwargs))
        how = Conditions(self._multiprocessors, operator.is_deterministic())
        try:
            return Sample(self._first_step + self._report.steps, self._number - 1, operator, self.module(), how,
                          copied(args, numbers, plain in ELEMENTWISE), copied(kwargs, numbers, plain in ELEMENTWISE),
                          size=size)
        except RuntimeError:  # no memory
            self._release(size)
            raise

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
        size = sum(HostCopy.nbytes(x) for x in tensors_of([results]))
        if not self._reserve(size):
            self._release(sample.size)
            return
        sample.size += size
        sample.written, sample.results = copied(written, set(), False), copied(results, set(), False)
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
            finally:
                self._release(sample.size)
                with self._lock:
                    self._report.worker_seconds += time.perf_counter() - began
                self._queue.task_done()
        self._queue.task_done()

    def _judge(self, sample: Sample) -> None:
        try:
            finding = sample.judged(self._rules)
        except Unsupported as error:
            return self._count(str(error).removeprefix("not covered: "))
        except Exception as error:  # of PyTorch, from arguments that no rule expects
            return self._count(f"{sample.operator.name}: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        with self._lock:
            self._report.tiles += 1
            unsure = None
            if finding is None:
                self._report.equal += 1
                unsure = self._unsure.pop(sample.tile.alike, None)
            else:
                self._report.findings.append(finding)
                if not finding.sure and len(self._unsure) < _UNSURE:
                    self._unsure.setdefault(sample.tile.alike, (sample, finding))
        self._tell(finding)
        if unsure is not None:
            self._judge_again(*unsure)

    def _judge_again(self, sample: Sample, before: Finding) -> None:
        """Judge a product whose shape has a known rule now."""
        finding = sample.judged(self._rules)
        with self._lock:
            self._report.findings.remove(before)
            if finding is None:
                self._report.equal += 1
            else:
                self._report.findings.append(finding)
        self._tell(finding)

    def _tell(self, finding: Finding | None) -> None:
        if finding is not None and self._on_finding is not None:
            try:
                self._on_finding(finding)
            except Exception as error:  # noqa: BLE001 - of the program, whose thread gets it
                self._failure = error


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
    >>> import torch
    >>> import samebits.torch as sbt
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
