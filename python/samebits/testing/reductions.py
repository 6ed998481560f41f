"""Property tests of a reduction kernel: `check_reduction`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.convert import convert
from samebits.errors import InvalidArgument
from samebits.formats import nearest_first
from samebits.testing.explanation import Explanation
from samebits.testing.memory import Memory, Predicate, memory_on
from samebits.testing.number_formats import (Codes, Format, array_of, codes_of, drawn_codes,
                                             format_named, special_codes, values)
from samebits.testing.reduction_errors import REDUCTIONS, Floats, ReductionError, errors_of
from samebits.testing.report import arguments_text, array_text, code_text
from samebits.testing.runs import CallFailed, called, name_of, smallest_failing

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
    element is the maximum, the format's largest number, NaN or Inf: each of the first two, the last,
    those beside multiples of 16, 32 and 4096, and one at random. For amax, each of 1031 elements is
    the maximum once. Some sums have other bits if the elements are added
    in another order.

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
    only : array of codes [n], optional
        Makes one call, on exactly these codes.
    where : callable, optional
        Predicate of arrays in the source's dtype, for example ``np.isfinite``.
    examples : int
        Number of random sizes, beside those of every run.
    examples_seed : int
        Seed of the inputs.
    device : str or torch.device, optional
        "cuda" or "cpu": the kernel gets torch tensors there; so does `where`, on the
        CPU. By default they get NumPy arrays.

    Raises
    ------
    AssertionError
        A result is wrong.
    InvalidArgument
        The reduction or the format is unknown, or the format cannot be reduced.
    Unsupported
        torch is not installed, or does not find the device.

    Examples
    --------
    >>> check_reduction(lambda x: np.max(np.abs(x), initial=np.float32(0)), "amax")
    """
    memory = memory_on(device)
    if reduction not in REDUCTIONS:
        raise InvalidArgument(f"reduction: {reduction!r} is not one of "
                              f"{nearest_first(reduction, REDUCTIONS)}")
    test = _ReductionTest(fn, reduction, format_named(source), nan == "any", where, memory)
    calls: list[Callable[[], Codes]]
    if only is not None:
        codes = codes_of(np.ravel(np.asarray(only)), test.source)
        calls = [codes.copy]
    else:
        calls = list(test.calls(examples, np.random.default_rng(examples_seed)))
    options = arguments_text([("source", test.source.name, "fp32"), ("nan", nan, "any"),
                              ("device", memory.device, None)])
    test.check(calls, options, shrinks=only is None)


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


@dataclass(frozen=True)
class _Call:
    """A call of the kernel: its elements, the result, and the right result."""

    codes: Codes
    source: Format
    got: int
    expected: int

    @cached_property
    def x(self) -> Floats:
        """The elements, which the usual errors reduce."""
        wide: Floats = convert(array_of(self.codes, self.source), "fp32", format=self.source.name)
        return wide


class _ReductionTest:
    """Calls a reduction, compares its results, and shrinks a failure."""

    def __init__(self, fn: Callable[..., Any], name: str, source: Format, any_nan: bool,
                 where: Predicate | None, memory: Memory) -> None:
        self.fn, self.name, self.source, self.memory = fn, name, source, memory
        self.any_nan, self.where = any_nan, where
        self.result = format_named("fp32" if name == "amax" else "fp64")
        # Finite arrays have magnitudes in 2^±spread: their sums do not fit into binary64.
        f = self.source
        self.spread = 20 + (23 - f.mantissa_bits) // 2
        self.above = min((f.bias + self.spread) << f.mantissa_bits, f.max_magnitude)

    def calls(self, examples: int, rng: np.random.Generator) -> Iterator[Callable[[], Codes]]:
        """Yield functions that return the codes of a call."""
        odd = [_CHUNK * k + 2 * int(rng.integers(1, _CHUNK // 2)) + 1 for k in range(1, 6)]
        sizes = [*_SIZES, *odd, *rng.integers(1, 2048, examples).tolist()]
        for number, size in enumerate(sizes):
            if number >= len(sizes) - examples:
                yield self.allowed(self.content(number % 4, size, rng)).copy
                yield self.allowed(self.content(2, size, rng)).copy
                continue
            for kind in (0, 1, 3, 2):
                finite = self.allowed(self.content(kind, size, rng))
                yield finite.copy
            yield self.allowed(np.full(size, self.source.sign, np.uint64)).copy
            yield from self.planted(finite, _positions(finite.size, rng), self.marks(), rng)
        for code in self.allowed(special_codes(self.source)).reshape(-1, 1):
            yield code.copy
        if self.name == "amax":  # a sum differs without any of its elements, amax without one only
            finite = self.allowed(self.content(2, _EVERY, rng))
            yield from self.planted(finite, range(finite.size), self.marks()[:1], rng)
        else:
            for size in rng.integers(4 * _CHUNK, 6 * _CHUNK, _LONG).tolist():
                yield self.allowed(self.content(2, size, rng)).copy

    def allowed(self, codes: Codes) -> Codes:
        """Return the codes that satisfy the caller's predicate."""
        narrow = codes.astype(self.source.code_dtype)
        if self.where is None:
            return narrow
        return narrow[self.memory.allowed(self.where, narrow, self.source)]

    def marks(self) -> Codes:
        """Return the codes that are planted: a maximum, the format's largest number, NaN, and Inf."""
        f = self.source
        numbers = [self.above, f.max_magnitude] + [f.max_magnitude + 1] * f.has_inf
        marks = [n << f.unused_low_bits for n in numbers]
        return self.allowed(np.array([*marks, f.canonical_nan], np.uint64))

    def planted(self, codes: Codes, positions: Iterable[int], marks: Codes,
                rng: np.random.Generator) -> Iterator[Callable[[], Codes]]:
        """Yield calls of `codes`, each with one mark of a random sign in one of the positions."""
        for position in positions:
            for mark in marks:
                code = int(mark) | int(rng.integers(2)) * self.source.sign
                yield partial(_planted, codes, position, code)

    def content(self, kind: int, size: int, rng: np.random.Generator) -> Codes:
        """Return random codes of a kind.

        0: any codes. 1: finite. 2: magnitudes in 2^±spread. 3: as 2, with some special codes.
        """
        f = self.source
        if kind == 0:
            return drawn_codes(f, f, size, int(rng.integers(1 << 63)))
        low = 0 if kind == 1 else max((f.bias - self.spread) << f.mantissa_bits, 0)
        above = f.max_magnitude + 1 if kind == 1 else self.above
        codes = rng.integers(low, above, size, np.uint64) << np.uint64(f.unused_low_bits)
        codes |= rng.integers(0, 2, size, np.uint64) * np.uint64(f.sign)
        if kind == 3:
            special = rng.choice(special_codes(f), size)
            codes = np.where(rng.random(size) < 2.0 / max(size, 1), special, codes)
        return codes

    def call(self, codes: Codes) -> int:
        """Call the function and return the code of its result.

        Raises
        ------
        CallFailed
            If the function raises or does not return a number.
        """
        name, x = name_of(self.fn), self.memory.place(codes, self.source)
        result = called(name, f"{codes.size} elements", lambda: self.memory.number(self.fn(x)))
        if result.size != 1 or result.dtype.kind not in "fiu":
            raise CallFailed(f"{name} returned {result.dtype} of shape {result.shape}; "
                             f"expected one number of {self.result.name}")
        if result.dtype in (self.result.code_dtype, self.result.dtype):
            return int(result.reshape(1).view(self.result.code_dtype)[0])
        return self.code_of(result.reshape(())[()])

    def code_of(self, number: Any) -> int:
        """Return the code of a number in the result's format.

        A number that the format lacks gets a code outside the format, which equals no right code.
        """
        narrow = self.result.dtype.type(number)
        if narrow == number or np.isnan(number):
            return int(narrow.view(self.result.code_dtype))
        return 1 << self.result.storage_bits

    def right(self, codes: Codes) -> int:
        """Return the code of the right result."""
        return self.code_of(REDUCTIONS[self.name](array_of(codes, self.source),
                                                  format=self.source.name))

    def same(self, got: int, expected: int) -> bool:
        return got == expected or (self.any_nan and self.is_nan(got) and self.is_nan(expected))

    def is_nan(self, code: int) -> bool:
        return code >> self.result.storage_bits == 0 and bool(
            np.isnan(values(np.array([code], np.uint64), self.result)[0]))

    @np.errstate(all="ignore")
    def check(self, calls: Sequence[Callable[[], Codes]], options: str, *, shrinks: bool) -> None:
        head = f'check_reduction({name_of(self.fn)}, "{self.name}"{options}'
        seen: list[_Call] = []
        wrong: list[_Call] = []
        for first in range(_ROUNDS):
            for call in calls[first::_ROUNDS]:
                codes = call()
                try:
                    got = self.call(codes)
                except CallFailed as error:
                    raise AssertionError(f"{self.title()}: {error}\n{self.repeat(head, codes)}"
                                         ) from error
                seen.append(_Call(codes, self.source, got, self.right(codes)))
                if not self.same(got, seen[-1].expected):
                    wrong.append(seen[-1])
            if len(wrong) >= _ENOUGH:
                break
        if wrong:
            wrong.sort(key=lambda c: c.codes.size)
            why = self.explain(seen, wrong)
            # A case of zeros, whose result has another sign, says less than any other.
            smallest = next((c for c in wrong if c.x.any()), wrong[0]).codes
            raise AssertionError(self.text(self.shrink(smallest) if shrinks else smallest, why,
                                           head))

    def title(self) -> str:
        return f"{self.name} of {self.source.name}, result in {self.result.name}"

    def explain(self, seen: list[_Call], wrong: list[_Call]) -> Explanation:
        """Return the usual errors that give all results; `wrong` are the wrong calls of `seen`."""
        def gives(error: ReductionError, calls: list[_Call]) -> bool:
            return all(self.same(c.got, self.by(error, c)) for c in calls)
        found = [e for e in errors_of(self.name) if gives(e, wrong) and gives(e, seen)]
        return Explanation(tuple(e.sentence for e in found), len(seen), len(wrong))

    def by(self, error: ReductionError, call: _Call) -> int:
        """Return the code that a kernel with a usual error gives; each NaN is the canonical one."""
        number = error.reduce(call.x)
        return self.result.canonical_nan if np.isnan(number) else self.code_of(number)

    def shrink(self, codes: Codes) -> Codes:
        """Return fewer and simpler codes whose result is still wrong."""
        def fails(tried: Codes) -> bool:
            try:
                return self.allowed(tried).size == tried.size and not self.same(
                    self.call(tried), self.right(tried))
            except CallFailed:
                return False
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
        return [p for p in parts if p.size < n or (p != codes).any()]

    def repeat(self, head: str, codes: Codes) -> str:
        array = array_text(codes, self.source)
        return f"  repeat:   {head}" + (f", only={array})" if array else ")")

    def text(self, codes: Codes, why: Explanation, head: str) -> str:
        got, expected = self.call(codes), self.right(codes)
        shown = ", ".join(code_text(int(c), self.source) for c in codes[:4])
        more = f", and {codes.size - 4} more" if codes.size > 4 else ""
        return "\n".join([
            f"{self.title()}: the result of {codes.size} elements is wrong (smallest case found)",
            f"  input     [{shown}{more}]",
            f"  got       {self.result_text(got)}   expected {self.result_text(expected)}",
            f"  {why.text}", self.repeat(head, codes)])

    def result_text(self, code: int) -> str:
        if code >> self.result.storage_bits:
            return f"a number that {self.result.name} does not have"
        return code_text(code, self.result)
