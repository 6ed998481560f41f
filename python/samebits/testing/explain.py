"""Explanation of wrong conversions: one table of usual errors, compared with all results seen.

A usual error explains a failure if a kernel with this error would have returned every result seen,
right and wrong ones. The C++ test kit has a table of the same errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from samebits.testing import usual_errors as errors
from samebits.testing.model import Overflow, Rounding, Rule
from samebits.testing.number_formats import FORMATS
from samebits.testing.runs import Seen, same

_SAMPLE = 4096  # elements of each kind, right and wrong, that a candidate is compared with first
_MAX_NAMED = 3  # sentences in one text

_ROUNDINGS: dict[Rounding, str] = {
    "nearest_even": "to nearest even",
    "nearest_away": "to nearest with ties away from zero",
    "toward_zero": "toward zero (truncated)",
    "upward": "up (toward +Inf)",
    "downward": "down (toward -Inf)",
    "to_odd": "to odd",
    "stochastic": "stochastically",
}


@dataclass(frozen=True)
class Candidate:
    """A usual error: its name, a sentence that completes "looks like: ...", and its results.

    Candidates with the same name are variants of one error; only the first that fits is named.
    `whole_calls` says that `codes` needs all elements of a call, not a sample.
    """

    name: str
    sentence: str
    codes: errors.Guess
    whole_calls: bool = False


def _instead(other: Rounding, asked: Rounding) -> str:
    if (other, asked) == ("nearest_away", "nearest_even"):
        return "ties away from zero instead of to even"
    if (other, asked) == ("nearest_even", "nearest_away"):
        return "ties to even instead of away from zero"
    return f"rounded {_ROUNDINGS[other]} instead of {_ROUNDINGS[asked]}"


def _roundings(rule: Rule) -> Iterator[Candidate]:
    asked = rule.rounding
    for other in _ROUNDINGS:
        if other not in (asked, "stochastic"):
            for guess in errors.rounded(other):
                yield Candidate(other, _instead(other, asked), guess)
    for guess in errors.rounded_away():
        yield Candidate("away", f"rounded away from zero instead of {_ROUNDINGS[asked]}", guess)
    toward_zero = ("ties toward zero instead of to even" if asked == "nearest_even" else
                   f"rounded to nearest with ties toward zero instead of {_ROUNDINGS[asked]}")
    for guess in errors.ties_toward_zero():
        yield Candidate("ties_toward_zero", toward_zero, guess)


def _overflows(rule: Rule) -> Iterator[Candidate]:
    words: dict[Overflow, str] = {
        "ieee": ("Inf" if rule.target.has_inf else "NaN") + " on overflow",
        "saturate": "saturated to the largest finite number on overflow",
        "saturate_finite": "finite numbers saturated and Inf kept on overflow"}
    for other, word in words.items():
        if other != rule.overflow:
            yield Candidate(other, f"{word} instead of: {words[rule.overflow]}",
                            errors.overflow_policy(other))
    yield Candidate("overflow_before_rounding",
                    "overflow decided before rounding: everything above the largest finite number",
                    errors.overflow_before_rounding)


def _subnormals() -> Iterator[Candidate]:
    rows: tuple[tuple[str, str, errors.Flushed], ...] = (
        ("flushed_inputs", "subnormal inputs flushed to zero", errors.subnormal_input),
        ("flushed_results", "subnormal results flushed to zero", errors.subnormal_result),
        ("flushed_before_rounding",
         "results below the smallest normal number flushed to zero before rounding",
         errors.below_normal),
        ("flushed_both", "subnormal inputs and subnormal results flushed to zero",
         errors.subnormal_either))
    for name, sentence, which in rows:
        yield Candidate(name, sentence, errors.flushed(which, signed=True))
        yield Candidate(name + "_unsigned", sentence + " without their sign",
                        errors.flushed(which, signed=False))


def _double_roundings(rule: Rule) -> Iterator[Candidate]:
    firsts: tuple[tuple[Rounding, str], ...] = (("nearest_even", ""),
                                                ("toward_zero", " (truncated)"))
    for first, how in firsts:
        for middle in ("fp16", "bf16", "tf32", "fp32"):
            yield Candidate(f"twice_{middle}",
                            f"rounded twice: to {middle}{how}, then to {rule.target.name}",
                            errors.rounded_twice(middle, first))


def _nans() -> Iterator[Candidate]:
    rows: tuple[tuple[str, str, errors.Guess], ...] = (
        ("nan_sign", "another NaN code: the sign of the NaN is kept or dropped",
         errors.other_nan_sign),
        ("other_nan", "another NaN code", errors.other_nan),
        ("nan_rounded", "a NaN is rounded like a number",
         errors.integer_rounding(truncated=False)),
        ("nan_truncated", "a NaN is truncated like a number",
         errors.integer_rounding(truncated=True)),
        ("nan_is_largest", "a NaN becomes the largest finite number", errors.nan_is_largest("+")),
        ("nan_is_lowest", "a NaN becomes the most negative finite number",
         errors.nan_is_largest("-")),
        ("nan_is_signed_largest", "a NaN becomes the largest finite number with its sign",
         errors.nan_is_largest("own")),
        ("nan_is_inf", "a NaN becomes Inf", errors.nan_is_inf),
        ("nan_is_zero", "a NaN becomes 0", errors.nan_is_zero),
        ("nan_is_zero_of_other_sign", "a NaN becomes 0 of the opposite sign, as in ml_dtypes",
         errors.nan_is_zero_of_other_sign))
    for name, sentence, guess in rows:
        yield Candidate(name, sentence, errors.of_nan(guess))
    yield Candidate("bits_truncated", "low bits cut off, also those of a NaN",
                    errors.integer_rounding(truncated=True))


def _signs() -> Iterator[Candidate]:
    yield Candidate("negative_zero_input_lost", "-0 lost: an input of -0 becomes +0",
                    errors.negative_zero_input_lost)
    yield Candidate("negative_zero_lost", "-0 lost: every result of -0 becomes +0",
                    errors.negative_zero_lost)
    yield Candidate("sign_lost", "the sign is lost", errors.sign_lost)


def _random(rule: Rule) -> Iterator[Candidate]:
    at, index = errors, errors.random_index
    rows: list[tuple[str, str, errors.Guess]] = [
        ("random_index+1", "random index too large by one", index(at.next_position)),
        ("random_index-1", "random index too small by one", index(at.previous_position)),
        ("random_offset", "random offset ignored", index(at.own_position, offset=0)),
        ("random_stream", "random stream ignored", index(at.own_position, random_stream=0)),
        ("random_shared", "the same random index for every element: the first",
         index(at.first_position))]
    rows += [(f"random_bits{by:+d}",
              f"K = {rule.random_bits + by} random bits instead of {rule.random_bits}",
              errors.random_bits_off(by)) for by in (-1, 1)]
    words = errors.random_words_as
    rows += [
        ("random_top_bit", "the highest random bit is missing",
         words(lambda r, k: r & np.uint64((1 << (k - 1)) - 1))),
        ("random_shifted", "one random bit too few: R is shifted down by one",
         words(lambda r, k: r >> np.uint64(1))),
        ("random_above", "rounded away where v * 2^K + R > 2^K instead of >=",
         words(lambda r, k: r - np.minimum(r, np.uint64(1)))),
        ("random_complement", "rounded away where R < v * 2^K: the random bits are complemented",
         words(lambda r, k: np.uint64((1 << k) - 1) - r)),
        *(("random_low_bits", "the low K bits of the random word instead of the high ones",
           errors.low_bits_of_field(width)) for width in (8, 16, 32))]
    for name, sentence, guess in rows:
        yield Candidate(name, sentence, guess)


def _positions() -> Iterator[Candidate]:
    neighbour = "the neighbour's element: "
    yield Candidate("neighbour+1", neighbour + "out[i] comes from in[i + 1]",
                    errors.element(lambda s: s.position + 1), True)
    yield Candidate("neighbour-1", neighbour + "out[i] comes from in[i - 1]",
                    errors.element(lambda s: s.position - 1), True)
    yield Candidate("pairs_swapped", neighbour + "pairs are swapped",
                    errors.element(lambda s: s.position ^ 1), True)
    for width in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
        last = "last element" if width == 1 else f"last n mod {width} elements"
        yield Candidate("tail", f"tail not written: the {last} of a call of n",
                        errors.tail_not_written(width), True)
    for count in (1 << bits for bits in range(16, 4, -1)):
        yield Candidate("first", f"tail not written: the elements after the first {count}",
                        errors.only_first_written(count), True)
    yield Candidate("not_written", "some elements are not written", errors.not_written)


def _other_formats(rule: Rule) -> Iterator[Candidate]:
    for name in FORMATS:
        yield Candidate(f"codes_of_{name}", f"codes of {name} instead of {rule.target.name}",
                        errors.other_format(name))


def candidates(rule: Rule) -> list[Candidate]:
    """Return the table of usual errors for a rule, in the order in which they are named."""
    return [*(_random(rule) if rule.rounding == "stochastic" else ()), *_roundings(rule),
            *_overflows(rule), *_subnormals(), *_double_roundings(rule), *_nans(), *_signs(),
            *_positions(), *_other_formats(rule)]


@dataclass(frozen=True)
class Explanation:
    """The usual errors that give all results seen, and the number of these results."""

    names: tuple[str, ...]
    sentences: tuple[str, ...]
    results: int
    wrong: int

    @property
    def text(self) -> str:
        """Line of the failure text that begins with "looks like: "."""
        evidence = f"all {self.results} results seen, {self.wrong} wrong"
        if not self.sentences:
            return f"looks like: none of the usual errors (none fits {evidence})"
        named = "; or ".join(self.sentences[:_MAX_NAMED])
        return f"looks like: {named} (fits {evidence})"


def explain(seen: Seen, rule: Rule) -> Explanation:
    """Return the usual errors that give every result seen.

    Parameters
    ----------
    seen : Seen
        All results of a run, with at least one wrong.
    rule : Rule
        The rule tested.
    """
    wrong, right = np.flatnonzero(seen.wrong), np.flatnonzero(~seen.wrong)
    sample = seen.take(np.concatenate([wrong[_spread(wrong.size)], right[_spread(right.size)]]))
    names: list[str] = []
    sentences: list[str] = []
    for candidate in candidates(rule):
        if candidate.name in names or (candidate.whole_calls and names):
            continue
        if candidate.whole_calls or _fits(candidate, sample, rule):
            if _fits(candidate, seen, rule):
                names.append(candidate.name)
                sentences.append(candidate.sentence)
    return Explanation(tuple(names), tuple(sentences), seen.codes.size, wrong.size)


def _spread(size: int) -> np.typing.NDArray[np.int64]:
    """Return up to `_SAMPLE` numbers evenly over 0 .. size − 1."""
    if size <= _SAMPLE:
        return np.arange(size, dtype=np.int64)
    return np.linspace(0, size - 1, _SAMPLE).astype(np.int64)


def _fits(candidate: Candidate, seen: Seen, rule: Rule) -> bool:
    codes = candidate.codes(seen, rule)
    return codes is not None and bool(same(seen.got, codes, rule).all())
