"""The usual errors of conversion kernels, as functions from inputs to the codes they give.

Each function returns an array of codes, or None if the error makes no sense for the rule. Where an
error says nothing about an element, the function returns the result that was seen there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from samebits.testing.memory import fill_of
from samebits.testing.model import (NanPolicy, Overflow, Rounding, Rule, convert_codes, is_tie,
                                    overflows)
from samebits.testing.number_formats import (FORMATS, Codes, Format, Mask, is_nan, is_subnormal,
                                             is_zero, magnitudes, values)
from samebits.testing.random_words import random_fields, random_words
from samebits.testing.runs import Seen, indices

#: The codes that a kernel with one usual error returns; None where the error makes no sense.
Guess = Callable[[Seen, Rule], "Codes | None"]

_FEW = 32  # elements: errors of position are not guessed from fewer


def _by_rule(seen: Seen, rule: Rule) -> Codes:
    """Return the results of the inputs by a rule, with each element's own random bits."""
    return convert_codes(seen.codes, rule, indices(rule, seen.position))


def _negative(codes: Codes, f: Format) -> Mask:
    found: Mask = (codes & np.uint64(f.sign)) != 0
    return found


# ---- Roundings and overflow ----

def _with_own_overflow(guess: Guess) -> tuple[Guess, Guess]:
    """Return two guesses: a rounding with its own overflow results, and with those of the rule."""
    def asked(seen: Seen, rule: Rule) -> Codes | None:
        codes = guess(seen, rule)
        if codes is None:
            return None
        beyond = overflows(seen.codes, rule, indices(rule, seen.position))
        return np.where(beyond, seen.expected, codes)
    return guess, asked


def rounded(rounding: Rounding) -> tuple[Guess, Guess]:
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        return None if rounding == rule.rounding else _by_rule(seen, rule.but(rounding=rounding))
    return _with_own_overflow(codes)


def rounded_away() -> tuple[Guess, Guess]:
    def codes(seen: Seen, rule: Rule) -> Codes:
        down, up = (_by_rule(seen, rule.but(rounding=r)) for r in ("downward", "upward"))
        return np.where(_negative(seen.codes, rule.source), down, up)
    return _with_own_overflow(codes)


def ties_toward_zero() -> tuple[Guess, Guess]:
    def codes(seen: Seen, rule: Rule) -> Codes:
        tie = is_tie(seen.codes, rule.source, rule.target)
        down, even = (_by_rule(seen, rule.but(rounding=r)) for r in ("toward_zero", "nearest_even"))
        return np.where(tie, down, even)
    return _with_own_overflow(codes)


def overflow_policy(overflow: Overflow) -> Guess:
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        return None if overflow == rule.overflow else _by_rule(seen, rule.but(overflow=overflow))
    return codes


def overflow_before_rounding(seen: Seen, rule: Rule) -> Codes:
    """Finite numbers above the largest one overflow, also those that round down to it."""
    top = values(np.array([_largest(rule.target)], np.uint64), rule.target)[0]
    x = values(seen.codes, rule.source)
    huge = np.where(x < 0, np.float64(-1e300), np.float64(1e300)).view(np.uint64)
    beyond = convert_codes(huge, rule.but(source=FORMATS["fp64"]), indices(rule, seen.position))
    return np.where(np.isfinite(x) & (np.abs(x) > top), beyond, seen.expected)


def _largest(f: Format) -> int:
    return f.max_magnitude << f.unused_low_bits


# ---- Subnormal numbers ----

Flushed = Callable[[Seen, Rule], Mask]


def subnormal_input(seen: Seen, rule: Rule) -> Mask:
    return is_subnormal(seen.codes, rule.source)


def subnormal_result(seen: Seen, rule: Rule) -> Mask:
    return is_subnormal(seen.expected, rule.target)


def subnormal_either(seen: Seen, rule: Rule) -> Mask:
    return subnormal_input(seen, rule) | subnormal_result(seen, rule)


def below_normal(seen: Seen, rule: Rule) -> Mask:
    """Return for each input whether it is not 0 and below the target's smallest normal number."""
    smallest = np.array([1 << rule.target.mantissa_bits << rule.target.unused_low_bits], np.uint64)
    x = np.abs(values(seen.codes, rule.source))
    found: Mask = (x > 0) & (x < values(smallest, rule.target)[0])
    return found


def flushed(which: Flushed, *, signed: bool) -> Guess:
    """Return the guess that some numbers become zero, with or without their sign."""
    def codes(seen: Seen, rule: Rule) -> Codes:
        keeps = signed and rule.target.nan != "negative_zero"
        sign = np.uint64(rule.target.sign if keeps else 0)
        zero = np.where(_negative(seen.codes, rule.source), sign, np.uint64(0))
        return np.where(which(seen, rule), zero, seen.expected)
    return codes


# ---- Two roundings, and other formats ----

def rounded_twice(middle: str, first: Rounding) -> Guess:
    """Return the guess that the kernel converts to a middle format first."""
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        between = FORMATS[middle]
        if between.name in (rule.source.name, rule.target.name):
            return None
        step = Rule(rule.source, between, first, "ieee", "preserve_sign")
        return convert_codes(convert_codes(seen.codes, step), rule.but(source=between),
                             indices(rule, seen.position))
    return codes


def other_format(name: str) -> Guess:
    """Return the guess that the results are codes of another format."""
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        other = FORMATS[name]
        if other.name == rule.target.name or other.storage_bits != rule.target.storage_bits:
            return None
        return _by_rule(seen, rule.but(target=other))
    return codes


# ---- NaN and signs ----

def of_nan(result: Callable[[Seen, Rule], "Codes | None"]) -> Guess:
    """Return the guess that only the results of NaN inputs differ."""
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        found = result(seen, rule)
        nan = is_nan(seen.codes, rule.source)
        return None if found is None else np.where(nan, found, seen.expected)
    return codes


def other_nan_sign(seen: Seen, rule: Rule) -> Codes:
    other: NanPolicy = "canonical" if rule.nan == "preserve_sign" else "preserve_sign"
    return _by_rule(seen, rule.but(nan=other))


def other_nan(seen: Seen, rule: Rule) -> Codes:
    return np.where(is_nan(seen.got, rule.target), seen.got, seen.expected)


def integer_rounding(*, truncated: bool) -> Guess:
    """Return the guess that low bits are rounded off as if every code were a number."""
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        shift = rule.source.storage_bits - rule.target.storage_bits
        if rule.source.exponent_bits != rule.target.exponent_bits or shift <= 0:
            return None
        down, x = np.uint64(shift), seen.codes
        if not truncated:
            x = x + np.uint64((1 << (shift - 1)) - 1) + ((x >> down) & np.uint64(1))
        return (x >> down) & np.uint64((1 << rule.target.storage_bits) - 1)
    return codes


def nan_is_largest(sign: str) -> Guess:
    """Return the guess that NaN becomes the largest number: "+", "-" or with its sign, "own"."""
    def codes(seen: Seen, rule: Rule) -> Codes:
        negative = _negative(seen.codes, rule.source) if sign == "own" else (
            np.full(seen.codes.shape, sign == "-"))
        top, minus = np.uint64(_largest(rule.target)), np.uint64(rule.target.sign)
        return np.where(negative, top | minus, top)
    return codes


def nan_is_inf(seen: Seen, rule: Rule) -> Codes:
    fp64 = FORMATS["fp64"]
    inf = np.where(_negative(seen.codes, rule.source), -np.inf, np.inf).view(np.uint64)
    return convert_codes(inf, rule.but(source=fp64), indices(rule, seen.position))


def nan_is_zero(seen: Seen, rule: Rule) -> Codes:
    return np.zeros_like(seen.codes)


def nan_is_zero_of_other_sign(seen: Seen, rule: Rule) -> Codes:
    negative = _negative(seen.codes, rule.source)
    return np.where(negative, np.uint64(0), np.uint64(rule.target.sign))


def negative_zero_input_lost(seen: Seen, rule: Rule) -> Codes:
    return np.where(is_zero(seen.codes, rule.source), np.uint64(0), seen.expected)


def negative_zero_lost(seen: Seen, rule: Rule) -> Codes:
    return np.where(is_zero(seen.expected, rule.target), np.uint64(0), seen.expected)


def sign_lost(seen: Seen, rule: Rule) -> Codes:
    low = np.uint64(rule.target.unused_low_bits)
    positive = magnitudes(seen.expected, rule.target) << low
    return np.where(is_nan(seen.expected, rule.target), seen.expected, positive)


# ---- Random bits ----

def random_index(position: Callable[[Seen], Codes], **changes: int) -> Guess:
    """Return the guess that random bits are those of other positions, or of a changed rule."""
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        if rule.rounding != "stochastic" or (
                changes and all(getattr(rule, k) == v for k, v in changes.items())):
            return None
        other = rule.but(**changes)
        index = np.uint64(other.offset & (2**64 - 1)) + position(seen)
        return convert_codes(seen.codes, other, index)
    return codes


def own_position(seen: Seen) -> Codes:
    return seen.position.astype(np.uint64)


def next_position(seen: Seen) -> Codes:
    return (seen.position + 1).astype(np.uint64)


def previous_position(seen: Seen) -> Codes:
    return (seen.position - 1).astype(np.uint64)


def first_position(seen: Seen) -> Codes:
    return np.zeros(seen.codes.shape, np.uint64)


def random_bits_off(by: int) -> Guess:
    """Return the guess that K, the number of random bits, is larger by `by`."""
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        bits = rule.random_bits + by
        if rule.rounding != "stochastic" or not 1 <= bits <= 32:
            return None
        return _by_rule(seen, rule.but(random_bits=bits))
    return codes


def random_words_as(change: Callable[[Codes, int], Codes]) -> Guess:
    """Return the guess of random bits that are a function of the right ones and of K."""
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        if rule.rounding != "stochastic":
            return None
        index = indices(rule, seen.position)
        right = random_words(rule.seed, rule.random_stream, index, rule.random_bits)
        return convert_codes(seen.codes, rule, index, change(right, rule.random_bits))
    return codes


def low_bits_of_field(width: int) -> Guess:
    """Return the guess of the low K bits of a field of `width` bits."""
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        bits = rule.random_bits
        if rule.rounding != "stochastic" or bits >= width:
            return None
        index = indices(rule, seen.position)
        fields = random_fields(rule.seed, rule.random_stream, index, width)
        return convert_codes(seen.codes, rule, index, fields & np.uint64((1 << bits) - 1))
    return codes


# ---- Positions and memory ----

def element(source: Callable[[Seen], "np.typing.NDArray[np.int64]"]) -> Guess:
    """Return the guess that out[i] comes from in[source(i)] of its call."""
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        at = source(seen)
        inside = (at >= 0) & (at < seen.count)
        if seen.codes.size < _FEW or not (seen.wrong & inside).any():
            return None
        start = np.arange(seen.codes.size) - seen.position
        other = seen.codes[np.where(inside, start + at, 0)]
        return np.where(inside, convert_codes(other, rule, indices(rule, seen.position)), seen.got)
    return codes


def not_written(seen: Seen, rule: Rule) -> Codes:
    """Guess that elements are not written: they still have the test kit's fill bytes."""
    odd = seen.count % 2 != 0
    every_byte = np.where(odd, *(np.uint64(fill_of(n) * 0x0101010101010101) for n in (1, 0)))
    before = every_byte & np.uint64((1 << rule.target.storage_bits) - 1)
    return np.where(seen.got == before, seen.got, seen.expected)


def tail_not_written(width: int) -> Guess:
    """Return the guess that a call's last n mod `width` elements, or its last one, are wrong."""
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        if seen.codes.size < _FEW or int(seen.count.max()) <= width:
            return None
        tail = seen.count % width if width > 1 else 1
        return _unwritten(seen, seen.position >= seen.count - tail)
    return codes


def _unwritten(seen: Seen, where: Mask) -> Codes | None:
    """Return the results seen at some elements; None if few of these are wrong."""
    if not where.any() or seen.wrong[where].mean() < 0.1:
        return None
    return np.where(where, seen.got, seen.expected)


def only_first_written(count: int) -> Guess:
    """Return the guess that elements from number `count` on are not written."""
    def codes(seen: Seen, rule: Rule) -> Codes | None:
        if int(seen.count.max()) <= count:
            return None
        return _unwritten(seen, seen.position >= count)
    return codes
