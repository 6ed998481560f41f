"""Calls of a function under test, and all results seen in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from samebits.testing.memory import Layout, Memory, NumpyMemory
from samebits.testing.model import Rule
from samebits.testing.number_formats import Codes, Format, Integers, Mask, is_nan
from samebits.testing.reference import converted

Kernel = Callable[..., Any]


class CallFailed(AssertionError):
    """The function raised, or returned something that is not an array of results."""


def name_of(fn: Kernel) -> str:
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
class Seen:
    """Results of calls, element by element: the evidence that `explain` works on."""

    codes: Codes  # of the input
    got: Codes
    expected: Codes
    position: Integers  # in its call
    count: Integers  # elements of its call
    wrong: Mask

    def take(self, which: Any) -> Seen:
        """Return some of the elements."""
        return Seen(*(getattr(self, f.name)[which] for f in dataclasses.fields(self)))


def same(got: Codes, expected: Codes, rule: Rule) -> Mask:
    """Return for each result whether it is right: equal bits, or both NaN if rule.nan is "any"."""
    equal: Mask = got == expected
    if rule.nan == "any":
        equal |= is_nan(got, rule.target) & is_nan(expected, rule.target)
    return equal


def indices(rule: Rule, position: Integers) -> Codes:
    """Return the random index of elements by their positions."""
    return np.uint64(rule.offset & (2**64 - 1)) + position.astype(np.uint64)


@dataclass
class Runner:
    """Calls one function and collects its results.

    `fills_out` says that the function is called as ``fn(x, out)`` and writes its results to `out`.
    """

    fn: Kernel
    rule: Rule
    fills_out: bool = False
    memory: Memory = dataclasses.field(default_factory=NumpyMemory)
    layouts: list[Layout] = dataclasses.field(default_factory=list)  # of calls with elements
    _calls: list[tuple[Codes, Codes]] = dataclasses.field(default_factory=list)

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
        x = self.memory.place(codes, self.rule.source, layout)
        got, unchanged = called(self.name, _elements(codes.size), lambda: self._results(x, codes))
        if not unchanged:
            raise CallFailed(f"{self.name} changed its input in a call with "
                             f"{_elements(codes.size)}")
        return got

    def _results(self, x: Any, codes: Codes) -> tuple[Codes, bool]:
        """Call the function; return its results and whether its input is unchanged."""
        result = self._filled(x, codes.size) if self.fills_out else self.fn(x)
        got = checked_codes(self.name, result, codes.shape, self.rule.target, self.memory)
        return got, bool((self.memory.codes(x, self.rule.source) == codes).all())

    def _filled(self, x: Any, size: int) -> Any:
        out, intact = self.memory.output(size, self.rule.target)
        self.fn(x, out)
        if not intact():
            raise CallFailed(f"{self.name} wrote beside its output in a call with "
                             f"{_elements(size)}")
        return out

    def observe(self, codes: Codes, layout: Layout = Layout()) -> None:
        """Call the function and keep the results."""
        self._calls.append((codes, self.call(codes, layout)))
        if codes.size:
            self.layouts.append(layout)

    def seen(self) -> Seen:
        """Return the results of all observed calls."""
        return self.compared(self._calls)

    def compared(self, calls: list[tuple[Codes, Codes]]) -> Seen:
        """Return results and right results of calls; a call is (input codes, result codes)."""
        codes = np.concatenate([c for c, _ in calls])
        got = np.concatenate([g for _, g in calls])
        sizes = np.array([c.size for c, _ in calls], np.int64)
        count = np.repeat(sizes, sizes)
        position = np.concatenate([np.arange(n, dtype=np.int64) for n in sizes])
        expected = self.expected(calls)
        wrong = ~same(got, expected, self.rule)
        return Seen(codes, got, expected, position, count, wrong)

    def expected(self, calls: list[tuple[Codes, Codes]]) -> Codes:
        """Return the right results of all calls, one after another."""
        if self.rule.rounding == "stochastic":  # random bits follow the position in the call
            return np.concatenate([converted(c, self.rule) for c, _ in calls])
        return converted(np.concatenate([c for c, _ in calls]), self.rule)

    def try_codes(self, codes: Codes, layout: Layout = Layout()) -> Seen:
        """Call the function once more, without keeping the results."""
        return self.compared([(codes, self.call(codes, layout))])


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"
