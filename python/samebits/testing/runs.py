"""Calls of a function under test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from samebits.testing.memory import Layout, Memory
from samebits.testing.number_formats import Codes, Format

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


class Interrupted:
    """Remembers what a call raised: the checks of the engine go on, or end, without the exception."""

    raised: BaseException | None = None

    def result_of(self, call: Callable[[], T]) -> T:
        """Return call(), unless an earlier call was interrupted."""
        self.raise_interruption()
        try:
            return call()
        except BaseException as error:
            self.raised = error
            raise

    def raise_interruption(self) -> None:
        """Raise an exception that says nothing of the function, such as KeyboardInterrupt."""
        if self.raised is not None and not isinstance(self.raised, CallFailed):
            raise self.raised


def checked_codes(name: str, result: Any, shape: tuple[int, ...], f: Format, memory: Memory,
                  what: str = "", x_shape: tuple[int, ...] = ()) -> Codes:
    """Return the codes of a result; `what` names a result of several, for x of shape `x_shape`.

    Raises
    ------
    CallFailed
        The result is of another kind, shape or dtype.
    """
    if not memory.holds(result):
        named = f" as {what}" if what else ""
        raise CallFailed(f"{name} returned {_kind_of(result)}{named}; expected {memory.kind}")
    if tuple(result.shape) != shape:
        of = f"{what} of shape {tuple(result.shape)} for x of shape {x_shape}" if what else (
            f"shape {tuple(result.shape)}")
        raise CallFailed(f"{name} returned {of}; expected {shape}")
    try:
        return memory.codes(result, f)
    except TypeError as error:
        raise CallFailed(f"{name}: " + (f"{what}: " if what else "") + str(error)) from None


def _kind_of(result: Any) -> str:
    """Return the type of a result, and the device of a tensor."""
    device = getattr(result, "device", None)
    kind = type(result).__name__
    return kind if device is None or isinstance(result, np.ndarray) else f"{kind} on {device}"


@dataclass(frozen=True)
class Kernel:
    """A function from an array to an array of as many elements.

    `fills_out` says that the function is called as ``fn(x, out)`` and writes its results to `out`.
    """

    fn: Function
    source: Format
    target: Format
    fills_out: bool
    memory: Memory

    @property
    def name(self) -> str:
        return name_of(self.fn)

    def call(self, codes: Codes, layout: Layout = Layout()) -> Codes:
        """Call the function on codes and return the codes of its results.

        Raises
        ------
        CallFailed
            If the function raises, returns another shape or dtype, changes its input or writes
            beside its output.
        """
        x = self.memory.place(codes, self.source, layout)
        got, unchanged = called(self.name, _elements(codes.size), lambda: self._results(x, codes))
        if not unchanged:
            raise CallFailed(f"{self.name} changed its input in a call with "
                             f"{_elements(codes.size)}")
        return got

    def _results(self, x: Any, codes: Codes) -> tuple[Codes, bool]:
        """Call the function; return its results and whether its input is unchanged."""
        result = self._filled(x, codes.size) if self.fills_out else self.fn(x)
        got = checked_codes(self.name, result, codes.shape, self.target, self.memory)
        return got, bool((self.memory.codes(x, self.source) == codes).all())

    def _filled(self, x: Any, size: int) -> Any:
        out, intact = self.memory.output(size, self.target)
        self.fn(x, out)
        if not intact():
            raise CallFailed(f"{self.name} wrote beside its output in a call with "
                             f"{_elements(size)}")
        return out


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"


class Calls(Interrupted):
    """The kernel as the function of codes in memory that a check calls."""

    def __init__(self, kernel: Kernel, layouts: Sequence[Layout]) -> None:
        self.kernel, self.layouts = kernel, layouts

    def layout(self, number: int) -> Layout:
        return self.layouts[number % len(self.layouts)]

    def __call__(self, codes: memoryview, layout: int, results: memoryview) -> None:
        given = np.asarray(codes).view(self.kernel.source.code_dtype)
        got = self.result_of(lambda: self.kernel.call(given, self.layout(layout)))
        np.asarray(results).view(self.kernel.target.code_dtype)[:] = got
