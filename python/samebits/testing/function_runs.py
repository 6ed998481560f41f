"""Results of a kernel that computes a function, seen in all calls."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from samebits.testing.function_model import FunctionModel
from samebits.testing.memory import Layout
from samebits.testing.number_formats import Codes, Integers, Mask, is_nan
from samebits.testing.runs import Kernel


@dataclass(frozen=True)
class Seen:
    """Results of calls, element by element: the evidence of an explanation."""

    codes: Codes  # of the input
    got: Codes
    expected: Codes
    position: Integers  # in its call
    count: Integers  # elements of its call
    wrong: Mask

    def take(self, which: Any) -> Seen:
        """Return some of the elements."""
        return Seen(*(getattr(self, f.name)[which] for f in dataclasses.fields(self)))


@dataclass
class Runner:
    """Calls a kernel and collects its results. `any_nan`: any NaN is right where NaN is expected."""

    kernel: Kernel
    model: FunctionModel
    any_nan: bool
    layouts: list[Layout] = dataclasses.field(default_factory=list)  # of calls with elements
    _calls: list[tuple[Codes, Codes]] = dataclasses.field(default_factory=list)

    def observe(self, codes: Codes, layout: Layout = Layout()) -> None:
        """Call the function and keep the results."""
        self._calls.append((codes, self.kernel.call(codes, layout)))
        if codes.size:
            self.layouts.append(layout)

    def seen(self) -> Seen:
        """Return the results of all observed calls."""
        return self._compared(self._calls)

    def try_codes(self, codes: Codes, layout: Layout = Layout()) -> Seen:
        """Call the function once more, without keeping the results."""
        return self._compared([(codes, self.kernel.call(codes, layout))])

    def same(self, got: Codes, expected: Codes) -> Mask:
        """Return for each result whether it is right."""
        equal: Mask = got == expected
        if self.any_nan:
            equal |= is_nan(got, self.model.f) & is_nan(expected, self.model.f)
        return equal

    def _compared(self, calls: list[tuple[Codes, Codes]]) -> Seen:
        """Return results and right results of calls; a call is (input codes, result codes)."""
        codes = np.concatenate([c for c, _ in calls])
        got = np.concatenate([g for _, g in calls])
        sizes = np.array([c.size for c, _ in calls], np.int64)
        count = np.repeat(sizes, sizes)
        position = np.concatenate([np.arange(n, dtype=np.int64) for n in sizes])
        expected = self.model(codes)
        return Seen(codes, got, expected, position, count, ~self.same(got, expected))
