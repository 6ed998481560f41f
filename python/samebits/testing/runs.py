"""Calls of a function under test, and all results seen in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from samebits.testing.model import Rule
from samebits.testing.number_formats import Codes, Integers, Mask, array_of, codes_of, is_nan
from samebits.testing.reference import converted

Array = np.typing.NDArray[Any]
Kernel = Callable[..., Any]

GUARD = 0xA5
_EDGE = 64


class CallFailed(AssertionError):
    """The function raised, or returned something that is not an array of results."""


def name_of(fn: Kernel) -> str:
    """Return a function's name for texts; "..." if it has none."""
    name = getattr(fn, "__name__", type(fn).__name__)
    return "..." if name == "<lambda>" else str(name)


@dataclass(frozen=True)
class Layout:
    """Memory of one call's input: first element after a 64-byte border, and its stride."""

    offset: int = 0
    step: int = 1

    def place(self, array: Array) -> Array:
        """Return a copy of a one-dimensional array in this layout."""
        size = array.dtype.itemsize
        memory = np.full((self.offset + array.size * abs(self.step) + 1) * size + 64, GUARD,
                         np.uint8)
        start = -memory.ctypes.data % 64 + self.offset * size
        whole = memory[start:start + array.size * abs(self.step) * size].view(array.dtype)
        placed = whole[::self.step]
        placed[...] = array
        return placed


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
        x = layout.place(array_of(codes, self.rule.source))
        before = x.copy()
        try:
            with np.errstate(all="ignore"):
                result = self._filled(x) if self.fills_out else self.fn(x)
        except CallFailed:
            raise
        except Exception as error:
            raise CallFailed(f"{self.name} raised {type(error).__name__}: {error}\n"
                             f"  in a call with {_elements(x.size)}") from error
        got = self._checked(result, x.size)
        if before.tobytes() != x.tobytes():
            raise CallFailed(f"{self.name} changed its input in a call with {_elements(x.size)}")
        return got

    def _filled(self, x: Array) -> Array:
        dtype = array_of(np.zeros(0, np.uint64), self.rule.target).dtype
        memory = np.full((x.size + 2 * _EDGE) * dtype.itemsize, GUARD, np.uint8)
        edge = _EDGE * dtype.itemsize
        out = memory[edge:memory.size - edge].view(dtype)
        self.fn(x, out)
        if (memory[:edge] != GUARD).any() or (memory[memory.size - edge:] != GUARD).any():
            raise CallFailed(f"{self.name} wrote beside its output in a call with "
                             f"{_elements(x.size)}")
        return out

    def _checked(self, result: Any, size: int) -> Codes:
        if not isinstance(result, (np.ndarray, np.generic)):
            raise CallFailed(f"{self.name} returned {type(result).__name__}; "
                             "expected a NumPy array")
        array = np.asarray(result)
        if array.shape != (size,):
            raise CallFailed(f"{self.name} returned shape {array.shape}; expected ({size},)")
        try:
            return codes_of(np.ascontiguousarray(array), self.rule.target)
        except TypeError as error:
            raise CallFailed(f"{self.name}: {error}") from None

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
        if self.rule.rounding == "stochastic":  # random bits follow the position in the call
            expected = np.concatenate([converted(c, self.rule) for c, _ in calls])
        else:
            expected = converted(codes, self.rule)
        wrong = ~same(got, expected, self.rule)
        return Seen(codes, got, expected, position, count, wrong)

    def try_codes(self, codes: Codes, layout: Layout = Layout()) -> Seen:
        """Call the function once more, without keeping the results."""
        return self.compared([(codes, self.call(codes, layout))])


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"
