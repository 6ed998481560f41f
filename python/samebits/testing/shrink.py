"""Shrinks a failing call: fewer elements, then simpler codes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from samebits.testing.function_runs import Runner, Seen
from samebits.testing.memory import Layout
from samebits.testing.number_formats import Codes, Format, Integers, Mask, magnitudes
from samebits.testing.runs import CallFailed

_TRIES = 24  # single codes, and calls, that are tried first
_MAX_STEPS = 120  # further calls
_FEW = 64  # elements of a call whose codes are made simpler


def complexity(codes: Codes, f: Format) -> Integers:
    """Return how far codes are from 1.0: mantissa bits set, distance of exponents, sign."""
    m = magnitudes(codes, f)
    fraction = m & np.uint64((1 << f.mantissa_bits) - 1)
    bits = np.zeros(m.shape, np.int64)
    for i in range(f.mantissa_bits):
        bits += ((fraction >> np.uint64(i)) & np.uint64(1)).astype(np.int64)
    exponent = (m >> np.uint64(f.mantissa_bits)).astype(np.int64)
    other = (codes != m << np.uint64(f.unused_low_bits)).astype(np.int64)
    found: Integers = bits * 4096 + np.abs(exponent - f.bias) * 2 + other
    return found


def simpler_codes(code: int, f: Format) -> list[int]:
    """Return codes that are simpler than `code`, the simplest first."""
    low, mantissa_mask = f.unused_low_bits, (1 << f.mantissa_bits) - 1
    magnitude = (code >> low) & ((1 << f.magnitude_bits) - 1)
    if not magnitude:  # 1.0 is no simpler than 0
        return [0] if code else []
    sign, fraction = code & f.sign, magnitude & mantissa_mask
    field = magnitude >> f.mantissa_bits
    toward_one = field + (field < f.bias) - (field > f.bias)
    middle = (field + f.bias) // 2
    found = [(0, f.bias, 0), (0, field, 0), (sign, field, 0), (0, f.bias, fraction),
             (0, field, fraction), (sign, f.bias, fraction), (sign, middle, fraction),
             (sign, toward_one, fraction)]
    found += [(sign, field, 1 << i) for i in reversed(range(f.mantissa_bits))]
    found += [(sign, field, fraction & ~(1 << i)) for i in range(f.mantissa_bits)
              if fraction >> i & 1]
    codes = [(s | (e << f.mantissa_bits | m) << low) for s, e, m in found]
    own = complexity(np.array([code], np.uint64), f)[0]
    sizes = complexity(np.array(codes, np.uint64), f)
    return list(dict.fromkeys(c for c, size in zip(codes, sizes) if size < own))


def smallest_failure(runner: Runner, seen: Seen,
                     allowed: Callable[[Codes], Mask]) -> tuple[Seen, Layout]:
    """Return the smallest failing call that was found, and its layout.

    Parameters
    ----------
    runner : Runner
        Has made the calls.
    seen : Seen
        All results of these calls, with at least one wrong.
    allowed : callable
        Says which codes may be tried.
    """
    return _Shrinker(runner, allowed).smallest(seen)


class _Shrinker:
    """Calls one function on smaller and smaller inputs."""

    def __init__(self, runner: Runner, allowed: Callable[[Codes], Mask]) -> None:
        self.runner, self.allowed = runner, allowed
        self.source = runner.model.f
        self.layout = Layout()
        self.steps = 0

    def smallest(self, seen: Seen) -> tuple[Seen, Layout]:
        wrong = seen.take(seen.wrong)
        order = np.argsort(complexity(wrong.codes, self.source), kind="stable")
        for code in list(dict.fromkeys(wrong.codes[order].tolist()))[:_TRIES]:
            if self.fails([code]):
                return self.simplest([code]), self.layout
        found = self.failing_call(seen)
        if found is None:
            return _first_failing(seen), self.layout
        return self.simplest(self.fewer(found)), self.layout

    def result(self, codes: list[int]) -> Seen | None:
        """Return the results of a call; None if the function refuses it."""
        self.steps += 1
        try:
            return self.runner.try_codes(np.array(codes, np.uint64), self.layout)
        except CallFailed:
            return None

    def fails(self, codes: list[int]) -> bool:
        result = self.result(codes)
        return result is not None and bool(result.wrong.any())

    def failing_call(self, seen: Seen) -> list[int] | None:
        """Return the codes of a small call that fails again; sets the layout it needs."""
        calls = _starts(seen)
        failing = [(int(np.argmax(seen.wrong[s:s + n])), int(n), int(s), k)
                   for k, (s, n) in enumerate(calls) if seen.wrong[s:s + n].any()]
        for _, size, start, number in sorted(failing)[:_TRIES]:
            codes: list[int] = seen.codes[start:start + size].tolist()
            for layout in dict.fromkeys((Layout(), self.runner.layouts[number])):
                self.layout = layout
                if self.fails(codes):
                    return codes
        self.layout = Layout()
        return None

    def fewer(self, codes: list[int]) -> list[int]:
        """Drop elements while the call still fails."""
        found = True
        while found and len(codes) > 1:
            n = len(codes)
            result = self.result(codes)
            first = n if result is None else int(np.argmax(result.wrong)) + 1
            parts = (codes[:first], codes[:n // 2], codes[n // 2:], codes[:3 * n // 4], codes[:-1],
                     codes[1:])
            found = False
            for part in parts:
                if len(part) < n and self.fails(part):
                    codes, found = part, True
                    break
        return codes

    def simplest(self, codes: list[int]) -> Seen:
        """Replace codes by simpler ones while the call still fails; return its results."""
        if len(codes) > 1:
            codes = self.plain_others(codes)
        else:
            codes = self.simplest_alone(codes)
        limit = self.steps + _MAX_STEPS
        for i in range(min(len(codes), _FEW)):
            found = True
            while found and self.steps < limit:
                found = False
                for code in self.allowed_simpler(codes[i]):
                    changed = [*codes[:i], code, *codes[i + 1:]]
                    if self.fails(changed):
                        codes, found = changed, True
                        break
        return self.runner.try_codes(np.array(codes, np.uint64), self.layout)

    def simplest_alone(self, codes: list[int]) -> list[int]:
        """Replace the only code by simpler ones; all of them are tried in one call."""
        found = True
        while found:
            simpler = self.allowed_simpler(codes[0])
            result = self.result(simpler) if simpler else None
            if result is None:
                break
            wrong = [c for c, bad in zip(simpler, result.wrong.tolist()) if bad]
            found = bool(wrong) and self.fails(wrong[:1])
            codes = wrong[:1] if found else codes
        return codes

    def allowed_simpler(self, code: int) -> list[int]:
        simpler = simpler_codes(code, self.source)
        allowed = self.allowed(np.array(simpler, np.uint64)) if simpler else ()
        return [c for c, ok in zip(simpler, allowed) if ok]

    def plain_others(self, codes: list[int]) -> list[int]:
        """Replace all elements, or all but one, by 1.0 if the call still fails."""
        one = self.source.bias << self.source.mantissa_bits << self.source.unused_low_bits
        if not self.allowed(np.array([one], np.uint64))[0]:
            return codes
        plain = [one] * len(codes)
        if self.fails(plain):
            return plain
        result = self.result(codes)
        for i in [] if result is None else np.flatnonzero(result.wrong)[:4].tolist():
            alone = [*plain[:i], codes[i], *plain[i + 1:]]
            if self.fails(alone):
                return alone
        return codes


def _starts(seen: Seen) -> list[tuple[int, int]]:
    """Return the first element and the size of each call that has elements."""
    starts = np.flatnonzero(seen.position == 0)
    return [(int(s), int(seen.count[s])) for s in starts]


def _first_failing(seen: Seen) -> Seen:
    """Return the recorded call with the first wrong element, if no further call failed again."""
    start, size = next((s, n) for s, n in _starts(seen) if seen.wrong[s:s + n].any())
    return seen.take(slice(start, start + size))
