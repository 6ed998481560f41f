"""What a conversion returns: rounding of exact integers by contract §2 to §4, in NumPy.

`explain` changes one step of this model at a time and looks for the change that gives the kernel's
results.
The model and `samebits.convert` share no code; a test compares them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from samebits.errors import InvalidArgument
from samebits.formats import nearest_first
from samebits.testing.number_formats import Codes, Decoded, Format, Mask, decode
from samebits.testing.random_words import random_words

Rounding = Literal["nearest_even", "nearest_away", "toward_zero", "upward", "downward", "to_odd",
                   "stochastic"]
Overflow = Literal["ieee", "saturate", "saturate_finite"]
NanPolicy = Literal["any", "canonical", "preserve_sign"]


@dataclass(frozen=True)
class Rule:
    """A conversion: formats, policies and the source of random bits.

    The element at position i of a call has the random index ``offset + i``.
    """

    source: Format
    target: Format
    rounding: Rounding = "nearest_even"
    overflow: Overflow = "ieee"
    nan: NanPolicy = "any"
    seed: int = 0
    random_stream: int = 0
    offset: int = 0
    random_bits: int = 32

    def __post_init__(self) -> None:
        _check_name("rounding", self.rounding, get_args(Rounding))
        _check_name("overflow", self.overflow, get_args(Overflow))
        _check_name("nan", self.nan, get_args(NanPolicy))
        if not 1 <= self.random_bits <= 32:
            raise InvalidArgument(f"random_bits: 1 .. 32 is expected; got {self.random_bits}")

    def but(self, **changes: object) -> Rule:
        """Return this rule with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


def _check_name(what: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise InvalidArgument(f"{what}: {name!r} is not one of {nearest_first(name, names)}")


@dataclass(frozen=True)
class GridStep:
    """Positions of exact numbers between the numbers of a target format.

    A number is (quotient + v) · 2^spacing without its sign, v in [0, 1). v = rest / 2^shift; where
    v has more than 62 bits, the last bit of rest stands for all bits after it.
    """

    quotient: Codes
    spacing: np.typing.NDArray[np.int64]
    rest: Codes
    shift: Codes

    @property
    def inexact(self) -> Mask:
        found: Mask = self.rest != 0
        return found

    @property
    def compared_with_half(self) -> np.typing.NDArray[np.int8]:
        """−1 for v < ½, 0 for a tie, 1 for v > ½."""
        half = np.where(self.shift > 0, np.uint64(1) << (np.maximum(self.shift, 1) - np.uint64(1)),
                        np.uint64(1))
        return ((self.rest > half).astype(np.int8) - (self.rest < half).astype(np.int8))

    def fraction(self, bits: int) -> Codes:
        """Return ⌊v · 2^bits⌋."""
        wide = np.uint64(bits)
        down = np.where(self.shift > wide, self.shift - np.minimum(self.shift, wide), np.uint64(0))
        up = np.where(self.shift < wide, wide - np.minimum(self.shift, wide), np.uint64(0))
        return (self.rest >> down) << up


def is_tie(codes: Codes, source: Format, target: Format) -> Mask:
    """Return which codes lie halfway between two neighbouring numbers of the target."""
    d = decode(codes, source)
    step = locate(d, target)
    found: Mask = step.inexact & (step.compared_with_half == 0)
    return found


def _bit_length(x: Codes) -> np.typing.NDArray[np.int64]:
    """Return the number of bits of integers below 2^53, which binary64 holds exactly."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)


def locate(d: Decoded, target: Format) -> GridStep:
    """Return where finite numbers lie on the target's grid; exponents are unbounded above."""
    top = d.exponent + _bit_length(d.significand) - 1
    spacing = np.maximum(top - target.mantissa_bits, target.min_exponent)
    distance = spacing - d.exponent
    up = np.clip(-distance, 0, 63).astype(np.uint64)
    shift = np.clip(distance, 0, 62).astype(np.uint64)
    beyond = np.clip(distance - 62, 0, 63).astype(np.uint64)
    dropped = d.significand & ((np.uint64(1) << beyond) - np.uint64(1))
    kept = (d.significand >> beyond) | (dropped != 0).astype(np.uint64)
    quotient = np.where(distance > 0, kept >> shift, d.significand << up)
    rest = np.where(distance > 0, kept & ((np.uint64(1) << shift) - np.uint64(1)), np.uint64(0))
    return GridStep(quotient, spacing, rest, shift)


def _away(rule: Rule, step: GridStep, negative: Mask, odd: Mask, words: Codes | None) -> Mask:
    """Return which numbers are rounded away from zero (the table of contract §3)."""
    half = step.compared_with_half
    away: Mask = (half > 0) | ((half == 0) & odd & step.inexact)
    if rule.rounding == "nearest_even":
        return away
    if rule.rounding == "nearest_away":
        return (half >= 0) & step.inexact
    if rule.rounding == "upward":
        return step.inexact & ~negative
    if rule.rounding == "downward":
        return step.inexact & negative
    if rule.rounding == "to_odd":
        return step.inexact & ~odd
    if rule.rounding == "stochastic" and words is not None:
        total = step.fraction(rule.random_bits) + words
        return total >= np.uint64(1 << rule.random_bits)
    return np.zeros(negative.shape, np.bool_)


def _round_finite(d: Decoded, rule: Rule, words: Codes | None) -> Codes:
    """Return magnitudes with unbounded exponent; above the target's largest one is overflow."""
    target = rule.target
    step = locate(d, target)
    if target.sign_bits:
        odd = (step.quotient & np.uint64(1)) != 0
        rounded = step.quotient + _away(rule, step, d.negative, odd, words)
        binade = (step.spacing - target.min_exponent).astype(np.uint64)
        return (binade << np.uint64(target.mantissa_bits)) + rounded
    # e8m0: powers of two without sign and zero; its quotient is 1, so that it is odd
    positive = np.zeros(d.negative.shape, np.bool_)
    away = _away(rule, step, positive, ~positive, words)
    tiny = step.quotient == 0
    return np.where(tiny, np.uint64(0),
                    (step.spacing - target.min_exponent + away).astype(np.uint64))


def _overflow_magnitude(rule: Rule, negative: Mask) -> Codes:
    """Return the magnitudes of finite overflow; NaN is one above Inf or above max finite."""
    top = rule.target.max_magnitude
    toward_zero = np.full(negative.shape, rule.rounding in ("toward_zero", "to_odd"))
    if not rule.target.sign_bits:
        toward_zero |= rule.rounding == "downward"
    elif rule.rounding in ("upward", "downward"):
        toward_zero |= negative == (rule.rounding == "upward")
    stays = toward_zero | (rule.overflow != "ieee") | (not rule.target.has_nan)
    return np.where(stays, np.uint64(top), np.uint64(top + 1))


def convert_codes(codes: Codes, rule: Rule, index: Codes | None = None,
                  words: Codes | None = None) -> Codes:
    """Return the codes that a conversion must give.

    Parameters
    ----------
    codes : uint64 array of any shape
        Codes of ``rule.source``.
    rule : Rule
        The policy "any" counts as "canonical".
    index : uint64 array of the same shape, optional
        Indices of the random bits, 0 if absent; only stochastic rounding reads them.
    words : uint64 array of the same shape, optional
        Random bits to use in place of those of the indices.

    Returns
    -------
    uint64 array of the shape of `codes`

    Examples
    --------
    >>> from samebits.testing.number_formats import FORMATS
    >>> rule = Rule(FORMATS["fp32"], FORMATS["e4m3"])
    >>> hex(convert_codes(np.array([0x43E80000], np.uint64), rule)[0])  # 464 is a tie
    '0x7e'
    """
    codes = np.asarray(codes, np.uint64)
    target = rule.target
    d = decode(codes, rule.source)
    magnitude = _round_finite(d, rule, _words(codes, rule, index, words))
    finite = ~d.nan & ~d.inf
    magnitude = np.where(finite & (d.significand == 0), np.uint64(0), magnitude)
    too_large = finite & (magnitude > np.uint64(target.max_magnitude))
    magnitude = np.where(too_large, _overflow_magnitude(rule, d.negative), magnitude)
    inf_stays = rule.overflow == "saturate" or not target.has_nan
    magnitude = np.where(d.inf, np.uint64(target.max_magnitude + (not inf_stays)), magnitude)
    nan = d.nan.copy()
    if not target.has_inf:
        nan |= (d.inf | too_large) & (magnitude > np.uint64(target.max_magnitude))
    return _with_signs(magnitude, nan, d, rule)


def _words(codes: Codes, rule: Rule, index: Codes | None, words: Codes | None) -> Codes | None:
    """Return the random bits of stochastic rounding; None for other roundings."""
    if rule.rounding != "stochastic" or words is not None:
        return words
    at = np.zeros(codes.shape, np.uint64) if index is None else index
    return random_words(rule.seed, rule.random_stream, at, rule.random_bits)


def overflows(codes: Codes, rule: Rule, index: Codes | None = None) -> Mask:
    """Return which codes are infinite or, once rounded, beyond the largest finite number."""
    d = decode(codes, rule.source)
    magnitude = _round_finite(d, rule, _words(codes, rule, index, None))
    too_large = magnitude > np.uint64(rule.target.max_magnitude)
    found: Mask = d.inf | (~d.nan & (d.significand != 0) & too_large)
    return found


def _with_signs(magnitude: Codes, nan: Mask, d: Decoded, rule: Rule) -> Codes:
    target = rule.target
    sign = np.where(d.negative, np.uint64(target.sign), np.uint64(0))
    if target.nan == "negative_zero":
        sign = np.where(magnitude == 0, np.uint64(0), sign)
    codes = (magnitude << np.uint64(target.unused_low_bits)) | sign
    nan_sign = np.zeros_like(codes)
    if rule.nan == "preserve_sign" and target.nan in ("ieee", "top"):
        nan_sign = sign
    return np.where(nan, np.uint64(target.canonical_nan) | nan_sign, codes)
