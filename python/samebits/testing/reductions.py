"""Property tests of a reduction kernel: `check_reduction`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.convert import convert
from samebits.errors import InvalidArgument
from samebits.formats import nearest_first
from samebits.testing.memory import Layout, Predicate
from samebits.testing.number_formats import (Codes, array_of, drawn_codes, format_named,
                                             special_codes, values)
from samebits.testing.reduction_errors import REDUCTIONS, errors_of
from samebits.testing.report import arguments_text, array_text, code_text, explanation_text
from samebits.testing.runs import CallFailed, Calls, smallest_failing

_CHUNK = 4096  # kernels often split longer arrays into chunks of so many elements
_SIZES = (*range(34), *(n + d for n in (64, 128, 256, 512, 1024, _CHUNK, 5 * _CHUNK)
                        for d in (-1, 0, 1)))
_EVERY = 1031  # elements of the array in which each element is the maximum once
_LONG = 32  # long finite arrays: another order of a few chunks changes half of their sums at most
_MAX_STEPS = 500  # calls that shrink a failure
_FEW = 4  # elements of a call whose codes are made simpler
_ROUNDS = 7  # each makes every seventh call
_ENOUGH = 4  # wrong results, which tell usual errors apart; no further round


def check_reduction(
    fn: Callable[..., Any],
    reduction: str,
    source: object = "fp32",
    *,
    nan: str = "any",
    only: npt.ArrayLike | None = None,
    where: Predicate | None = None,
    examples: int = 64,
    examples_seed: int = 0,
    device: object = None,
) -> None:
    """Compare the results of a reduction kernel with the library's, bit for bit.

    The arrays have 0 to 24575 elements, among them NaN, Inf, zeros, subnormal and huge elements.
    Of each size, there are arrays of random codes, of finite numbers and of -0. In others, one
    element is the maximum, the format's largest number, NaN or Inf: each of the first two, the
    last, those beside multiples of 16, 32 and 4096, and one at random. For amax, each of 1031
    elements is the maximum once. Some sums have other bits if the elements are added in another
    order.

    Parameters
    ----------
    fn : callable
        Called as ``fn(x)`` with a one-dimensional array [n]; returns a number or an array of one.
    reduction : str
        sum: binary64 sum over the tree of the contract. sum_of_squares: the same of RN64(x * x).
        amax: largest magnitude in fp32, NaN if any element is NaN.
    source : str or dtype
        Format of `x`.
    nan : str
        "any": any NaN is right where NaN is expected. "canonical": only the canonical NaN.
    examples : int
        Number of random sizes, beside those of every run.
    only, where, examples_seed, device
        As in `check_conversion`.

    Raises
    ------
    AssertionError, InvalidArgument, Unsupported
        As in `check_conversion`; the format may be one that cannot be reduced.

    Examples
    --------
    >>> check_reduction(lambda x: np.max(np.abs(x), initial=np.float32(0)), "amax")
    """
    if reduction not in REDUCTIONS:
        raise InvalidArgument(f"reduction: {reduction!r} is not one of "
                              f"{nearest_first(reduction, REDUCTIONS)}")
    test = _ReductionTest(fn, reduction, source, nan, where, device)
    if only is not None:
        test.check([test.codes_of(only).ravel().copy], shrinks=False)
    else:
        test.check([*test.calls(examples, np.random.default_rng(examples_seed))], shrinks=True)


def _positions(size: int, rng: np.random.Generator) -> list[int]:
    """Return places of `size` elements where kernels err: both ends, borders, one at random."""
    borders = [width * int(rng.integers(1 + size // width)) for width in (16, 32)]
    borders += range(_CHUNK, size + 1, _CHUNK)
    found = {0, 1, size - 1, int(rng.integers(max(size, 1)))}
    found |= {border + d for border in borders for d in (-1, 0, 1)}
    return sorted(i for i in found if 0 <= i < size)


def _planted(codes: Codes, position: int, code: int) -> Codes:
    copy = codes.copy()
    copy[position] = code
    return copy


class _Call(NamedTuple):
    """A call of the kernel."""

    codes: Codes
    got: np.float64
    expected: np.float64


class _ReductionTest(Calls):
    """Calls a reduction, compares its results, and shrinks a failure."""

    def __init__(self, fn: Callable[..., Any], reduction: str, source: object, nan: str,
                 where: Predicate | None, device: object) -> None:
        super().__init__(fn, source, where, device)
        self.reduction, self.nan = reduction, nan
        self.result = format_named("fp32" if reduction == "amax" else "fp64")
        # Finite arrays have magnitudes in 2^±spread: their sums do not fit into binary64.
        f = self.source
        self.spread = 20 + (23 - f.mantissa_bits) // 2
        self.above = min((f.bias + self.spread) << f.mantissa_bits, f.max_magnitude)

    def calls(self, examples: int, rng: np.random.Generator) -> Iterator[Callable[[], Codes]]:
        """Yield functions that return the codes of a call."""
        odd = [_CHUNK * k + 2 * int(rng.integers(1, _CHUNK // 2)) + 1 for k in range(1, 6)]
        more = rng.integers(1, 2048, examples).tolist()
        for size in [*_SIZES, *odd]:
            for kind in (0, 1, 3, 2):
                finite = self.content(kind, size, rng)
                yield finite.copy
            yield self.allowed(np.full(size, self.source.sign, np.uint64)).copy
            yield from self.planted(finite, _positions(finite.size, rng), self.marks(), rng)
        for number, size in enumerate(more):
            yield self.content(number % 4, size, rng).copy
            yield self.content(2, size, rng).copy
        for code in self.allowed(special_codes(self.source)).reshape(-1, 1):
            yield code.copy
        if self.reduction == "amax":  # which differs without one of its elements only
            finite = self.content(2, _EVERY, rng)
            yield from self.planted(finite, range(finite.size), self.marks()[:1], rng)
        else:
            for size in rng.integers(4 * _CHUNK, 6 * _CHUNK, _LONG).tolist():
                yield self.content(2, size, rng).copy

    def allowed(self, codes: Codes) -> Codes:
        """Return the codes that satisfy the caller's predicate."""
        narrow = codes.astype(self.source.code_dtype)
        if self.where is None:
            return narrow
        return narrow[self.memory.allowed(self.where, narrow, self.source)]

    def marks(self) -> Codes:
        """Return the codes that are planted: a maximum, the format's largest number, Inf, NaN."""
        f = self.source
        numbers = [self.above, f.max_magnitude] + [f.max_magnitude + 1] * f.has_inf
        marks = [n << f.unused_low_bits for n in numbers]
        return self.allowed(np.array([*marks, f.canonical_nan], np.uint64))

    def planted(self, codes: Codes, positions: Iterable[int], marks: Codes,
                rng: np.random.Generator) -> Iterator[Callable[[], Codes]]:
        """Yield calls of `codes`, each with one mark of a random sign in one of the positions."""
        for position in positions:
            for mark in marks.tolist():
                code = mark | int(rng.integers(2)) * self.source.sign
                yield partial(_planted, codes, position, code)

    def content(self, kind: int, size: int, rng: np.random.Generator) -> Codes:
        """Return random codes of a kind that satisfy the caller's predicate.

        0: any codes. 1: finite. 2: magnitudes in 2^±spread. 3: as 2, with some special codes.
        """
        f = self.source
        if kind == 0:
            return self.allowed(drawn_codes(f, f, size, int(rng.integers(1 << 63))))
        low = 0 if kind == 1 else max((f.bias - self.spread) << f.mantissa_bits, 0)
        above = f.max_magnitude + 1 if kind == 1 else self.above
        codes = rng.integers(low, above, size, np.uint64) << np.uint64(f.unused_low_bits)
        codes |= rng.integers(0, 2, size, np.uint64) * np.uint64(f.sign)
        if kind == 3:
            special = rng.choice(special_codes(f), size)
            codes = np.where(rng.random(size) < 2.0 / max(size, 1), special, codes)
        return self.allowed(codes)

    def call(self, codes: Codes) -> _Call:
        """Call the function; every number of its result's format is one of binary64.

        Raises
        ------
        CallFailed
            The function raises, does not return a number, or changes its input.
        """
        got = self.result_of(codes, Layout(), f"{codes.size} elements", self.number)
        right = REDUCTIONS[self.reduction](array_of(codes, self.source), format=self.source.name)
        return _Call(codes, got, np.float64(right))

    def number(self, x: Any) -> np.float64:
        """Return the result of the function."""
        result = self.memory.number(self.fn(x))
        if result.size != 1 or result.dtype.kind not in "fiu" or result.itemsize > 8:
            raise CallFailed(f"{self.name} returned {result.dtype} of shape {result.shape}; "
                             f"expected one number of {self.result.name}")
        if result.dtype == self.result.code_dtype:
            result = result.reshape(1).view(self.result.dtype)
        return np.float64(result.reshape(()))

    def same(self, got: np.float64, expected: np.float64) -> bool:
        return got.tobytes() == expected.tobytes() or (
            self.nan == "any" and bool(np.isnan(got) and np.isnan(expected)))

    @np.errstate(all="ignore")
    def check(self, calls: list[Callable[[], Codes]], *, shrinks: bool) -> None:
        seen: list[_Call] = []
        for first in range(_ROUNDS):
            for make in calls[first::_ROUNDS]:
                codes = make()
                try:
                    seen.append(self.call(codes))
                except CallFailed as error:
                    raise AssertionError(f"{self.title()}: {error}\n{self.repeat(codes)}"
                                         ) from error
            wrong = [c for c in seen if not self.same(c.got, c.expected)]
            if len(wrong) >= _ENOUGH:
                break
        if not wrong:
            return
        wrong.sort(key=lambda c: c.codes.size)
        # A case of zeros, whose result has another sign, says less than any other.
        smallest = next((c for c in wrong if values(c.codes, self.source).any()), wrong[0])
        if shrinks:
            smallest = self.call(self.shrink(smallest.codes))
        raise AssertionError(self.text(smallest, self.explanation(seen, wrong)))

    def title(self) -> str:
        return f"{self.reduction} of {self.source.name}, result in {self.result.name}"

    def explanation(self, seen: list[_Call], wrong: list[_Call]) -> str:
        """Return the line of the usual errors that give all results; `wrong` ones come first."""
        def gives(error: Callable[[Any], Any], c: _Call) -> bool:
            x = convert(array_of(c.codes, self.source), "fp32", format=self.source.name)
            number = np.float64(error(x))
            return self.same(c.got, np.float64("nan") if np.isnan(number) else number)
        found = [sentence for sentence, error in errors_of(self.reduction).items()
                 if all(gives(error, c) for c in [*wrong, *seen])]
        return explanation_text(found, len(seen), len(wrong))

    def shrink(self, codes: Codes) -> Codes:
        """Return fewer and simpler codes whose result is still wrong."""
        def fails(tried: Codes) -> bool:
            try:
                call = self.call(tried)
            except CallFailed:
                return False
            return not self.same(call.got, call.expected)
        return smallest_failing(codes, self.simpler, fails, _MAX_STEPS)

    def simpler(self, codes: Codes) -> list[Codes]:
        n = codes.size
        parts = [codes[:n // 2], codes[n // 2:], codes[1:], codes[:-1]] if n else []
        for start in range(0, n, max(n // 16, 1)):
            plain = codes.copy()
            plain[start:start + max(n // 16, 1)] = self.source.one
            parts.append(plain)
        for i in range(n if n <= _FEW else 0):
            for code in _core.simpler_codes(self.source.name, int(codes[i])):
                parts.append(_planted(codes, i, code))
        return [p for p in parts if (p.size < n or (p != codes).any())
                and self.allowed(p).size == p.size]

    def repeat(self, codes: Codes) -> str:
        options = arguments_text([("source", self.source.name, "fp32"), ("nan", self.nan, "any"),
                                  ("device", self.memory.device, None)])
        array = array_text(codes, self.source)
        return (f'  repeat:   check_reduction({self.name}, "{self.reduction}"{options}'
                + (f", only={array})" if array else ")"))

    def text(self, call: _Call, why: str) -> str:
        count = call.codes.size
        shown = ", ".join(code_text(code, self.source) for code in call.codes[:4].tolist())
        more = f", and {count - 4} more" if count > 4 else ""
        got, expected = self.result_text(call.got), self.result_text(call.expected)
        return "\n".join([
            f"{self.title()}: the result of {count} elements is wrong (smallest case found)",
            f"  input     [{shown}{more}]", f"  got       {got}   expected {expected}",
            why, self.repeat(call.codes)])

    def result_text(self, number: np.float64) -> str:
        narrow = self.result.dtype.type(number)
        if narrow != number and not np.isnan(number):
            return f"a number that {self.result.name} does not have"
        return code_text(int(narrow.view(self.result.code_dtype)), self.result)
