"""Calls of a function under test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from samebits.errors import InvalidArgument
from samebits.testing.memory import Layout, Memory, Predicate, memory_on
from samebits.testing.number_formats import Codes, Format, codes_of, format_named

Function = Callable[..., Any]


class CallFailed(AssertionError):
    """The function raised, or returned something that is not an array of results."""


def name_of(fn: Function) -> str:
    """Return a function's name for texts; "..." if it has none."""
    name = getattr(fn, "__name__", type(fn).__name__)
    return "..." if name == "<lambda>" else str(name)


T = TypeVar("T")


def called(name: str, which: str, call: Callable[[], T]) -> T:
    """Return call(); an exception becomes a CallFailed that names the function and the call."""
    try:
        with np.errstate(all="ignore"):
            return call()
    except CallFailed:
        raise
    except Exception as error:
        raise CallFailed(f"{name} raised {type(error).__name__}: {error}\n"
                         f"  in a call with {which}") from error


def smallest_failing(case: T, simpler: Callable[[T], Iterable[T]], fails: Callable[[T], bool],
                     tries: int) -> T:
    """Return the smallest failing case that was found, after at most so many tries."""
    candidates = iter(simpler(case))
    for _ in range(tries):
        candidate = next(candidates, None)
        if candidate is None:
            break
        if fails(candidate):
            case, candidates = candidate, iter(simpler(candidate))
    return case


def checked_codes(name: str, result: Any, shape: tuple[int, ...], f: Format,
                  memory: Memory) -> Codes:
    """Return the codes of a result; CallFailed if it has another kind, shape or dtype."""
    if not memory.holds(result):
        raise CallFailed(f"{name} returned {_kind_of(result)}; expected {memory.kind}")
    if tuple(result.shape) != shape:
        raise CallFailed(f"{name} returned shape {tuple(result.shape)}; expected {shape}")
    try:
        return memory.codes(result, f)
    except TypeError as error:
        raise CallFailed(f"{name}: {error}") from None


def _kind_of(result: Any) -> str:
    """Return the type of a result, and the device of a tensor."""
    device = getattr(result, "device", None)
    kind = type(result).__name__
    return kind if device is None or isinstance(result, np.ndarray) else f"{kind} on {device}"


class Calls:
    """A function under test, and its inputs, as a check of the engine calls them.

    The engine goes on, or ends, without an exception of a call, which `raised` remembers.
    """

    def __init__(self, fn: Function, source: Any, where: Predicate | None, device: object) -> None:
        self.fn, self.name, self.source = fn, name_of(fn), format_named(source)
        self.memory, self.where = memory_on(device), where
        self.raised: BaseException | None = None
        self._asked = self._found = False  # whether an input was asked for, and satisfied `where`

    def failure_of(self, check: Callable[..., Any], *arguments: Any) -> Any:
        """Return the failure that a check of the engine finds, None if there is none."""
        try:
            failed = check(self, *arguments)
        except InvalidArgument:
            if self._asked and not self._found:
                raise InvalidArgument("where: no input satisfies the predicate") from None
            raise
        self._raise_interruption()
        return failed

    @property
    def predicate(self) -> Callable[[memoryview], bytes] | None:
        """The predicate of codes in memory, 8 bytes each; None if every code is an input."""
        return None if self.where is None else self._accepted

    def _accepted(self, codes: memoryview) -> bytes:
        """Return a byte for each code: 1 if it is an input."""
        given = np.asarray(codes).view(np.uint64)
        assert self.where is not None
        accepted = self.memory.allowed(self.where, given, self.source)
        self._asked, self._found = True, self._found or bool(accepted.any())
        return np.broadcast_to(accepted, given.shape).tobytes()

    def codes_of(self, only: npt.ArrayLike) -> Codes:
        """Return the codes of the one array that a caller passes."""
        return codes_of(np.asarray(only), self.source)

    def one_call(self, only: npt.ArrayLike | None, axes: int) -> tuple[int, int, list[int]] | None:
        """Return rows, columns and codes of the one array that a caller passes, if it passes one."""
        if only is None:
            return None
        codes = np.atleast_2d(self.codes_of(only))
        rows, cols = codes.shape if axes == 2 else (1, codes.size)
        return rows, cols, codes.ravel().tolist()

    def result_of(self, codes: Codes, layout: Layout, which: str, call: Callable[[Any], T]) -> T:
        """Return call(x) for an input of codes.

        Raises
        ------
        CallFailed
            The function raised, returned something else, or changed its input.
        """
        self._raise_interruption()
        try:
            x = self.memory.place(codes, self.source, layout)
            got = called(self.name, which, lambda: call(x))
            if (self.memory.codes(x, self.source) != codes).any():
                raise CallFailed(f"{self.name} changed its input in a call with {which}")
            return got
        except BaseException as error:
            self.raised = error
            raise

    def _raise_interruption(self) -> None:
        """Raise an exception that says nothing of the function, such as KeyboardInterrupt."""
        if self.raised is not None and not isinstance(self.raised, CallFailed):
            raise self.raised


class KernelCalls(Calls):
    """A function from an array to an array of as many elements.

    `fills_out` says that the function is called as ``fn(x, out)`` and writes its results to `out`.
    """

    def __init__(self, fn: Function, source: Any, target: Any, *, where: Predicate | None,
                 device: object, fills_out: bool, layouts: Sequence[Layout]) -> None:
        super().__init__(fn, source, where, device)
        self.target, self.fills_out, self.layouts = format_named(target), fills_out, layouts
        if not layouts:
            raise InvalidArgument("layouts: at least one Layout is expected")

    def layout(self, number: int) -> Layout:
        return self.layouts[number % len(self.layouts)]

    def __call__(self, codes: memoryview, layout: int, results: memoryview) -> None:
        given = np.asarray(codes).view(self.source.code_dtype)
        which = f"{given.size} element{'' if given.size == 1 else 's'}"

        def call(x: Any) -> Codes:
            if not self.fills_out:
                result = self.fn(x)
            else:
                result, intact = self.memory.output(given.size, self.target)
                self.fn(x, result)
                if not intact():
                    raise CallFailed(f"{self.name} wrote beside its output in a call with {which}")
            return checked_codes(self.name, result, given.shape, self.target, self.memory)
        np.asarray(results).view(self.target.code_dtype)[:] = self.result_of(
            given, self.layout(layout), which, call)
