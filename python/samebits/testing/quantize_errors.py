"""The usual errors of quantizers: one table, compared with all calls that the check has made.

The explanation is the first errors in the table that give every code and every scale of every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from samebits.testing.explanation import Explanation
from samebits.testing.model import Rule, convert_codes
from samebits.testing.number_formats import FORMATS, Codes, Format, Mask, is_nan, is_subnormal
from samebits.testing.quantize_model import (NONFINITE, POWER_OF_TWO_RULES, SCALE_RULES, Floats,
                                             Quantized, QuantizeRule, Variations, per_element,
                                             quantize_model, tile_maximum)


@dataclass(frozen=True)
class QuantizeCall:
    """One call: input [rows, cols], the function's results, the right results."""

    x: Floats
    got: Quantized
    expected: Quantized


#: What a quantizer with one usual error returns for a call; None where the error makes no sense.
QuantizeGuess = Callable[[QuantizeCall, QuantizeRule], "Quantized | None"]


@dataclass(frozen=True)
class QuantizeCandidate:
    """A usual error: its name, a sentence that completes "looks like: ...", and its results.

    An error with `only_alone` is not named if an earlier error of the table fits.
    """

    name: str
    sentence: str
    result: QuantizeGuess
    only_alone: bool = False


def same_codes(got: Codes, expected: Codes, f: Format, any_nan: bool) -> Mask:
    """Return which codes are right."""
    equal: Mask = got == expected
    if any_nan:
        equal |= is_nan(got, f) & is_nan(expected, f)
    return equal


def same_result(got: Quantized, expected: Quantized, rule: QuantizeRule, any_nan: bool) -> bool:
    """Return whether all codes and scales are right."""
    return got.scales.shape == expected.scales.shape and bool(
        same_codes(got.scales, expected.scales, FORMATS[rule.scale_format], any_nan).all()
        and same_codes(got.codes, expected.codes, rule.to, any_nan).all())


def _rule(**changes: object) -> QuantizeGuess:
    """Return the guess of a rule with other fields."""
    def result(call: QuantizeCall, rule: QuantizeRule) -> Quantized | None:
        other = rule.but(**changes)
        if other == rule:
            return None
        if other.scale_format == "e8m0" and other.scale not in POWER_OF_TWO_RULES:
            return None
        return quantize_model(call.x, other)
    return result


def _varied(change: Variations) -> QuantizeGuess:
    """Return the guess of a changed step."""
    return lambda call, rule: quantize_model(call.x, rule, change)


def _scales_of(other: Callable[[QuantizeRule], QuantizeRule | None]) -> QuantizeGuess:
    """Return the guess of codes and scales of another rule, made from the rule tested."""
    def result(call: QuantizeCall, rule: QuantizeRule) -> Quantized | None:
        changed = other(rule)
        return None if changed is None or changed == rule else quantize_model(call.x, changed)
    return result


def _scale_rules() -> Iterator[QuantizeCandidate]:
    for name in SCALE_RULES:
        yield QuantizeCandidate(f"scale_{name}", f"scale rule {name} instead of {{scale}}",
                                _rule(scale=name))
    for name in SCALE_RULES:
        yield QuantizeCandidate(f"elements_{name}", f"scales by {{scale}}, but elements scaled as "
                                f"{name} does", _element_rule(name), only_alone=True)
    yield QuantizeCandidate("scale_inverse", "scales stored as their inverse (S instead of s)",
                            _varied(Variations(stored=_inverse)))
    yield QuantizeCandidate("scale_pow2_up", "the stored scale is rounded up to a power of two",
                            _varied(Variations(stored=_power_above)))
    yield QuantizeCandidate("scale_pow2_down", "the stored scale is rounded down to a power of two",
                            _varied(Variations(stored=_power_below)))


def _element_rule(name: str) -> QuantizeGuess:
    def result(call: QuantizeCall, rule: QuantizeRule) -> Quantized | None:
        if name == rule.scale:
            return None
        return quantize_model(call.x, rule, Variations(element_rule=name))
    return result


def _inverse(s: Floats, factor: Floats) -> Floats:
    return np.float32(1) / s


def _power_above(s: Floats, factor: Floats) -> Floats:
    mantissa, exponent = np.frexp(s)
    power = np.ldexp(np.float32(1), exponent - (mantissa == 0.5))
    return np.where(np.isfinite(s), power, s).astype(np.float32)


def _power_below(s: Floats, factor: Floats) -> Floats:
    power = np.ldexp(np.float32(1), np.frexp(s)[1] - 1)
    return np.where(np.isfinite(s), power, s).astype(np.float32)


def _amaxes() -> Iterator[QuantizeCandidate]:
    yield QuantizeCandidate("eps_missing", "eps missing: small amaxes are not raised",
                            _rule(eps=0.0))
    yield QuantizeCandidate("eps_missing_plain", "eps missing, and the scale of a tile of zeros "
                            "is computed like any other", _without_eps)
    for eps in (1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12):
        yield QuantizeCandidate(f"eps_{eps:g}", f"eps is {eps:g} instead of {{eps}}",
                                _rule(eps=eps))
    yield QuantizeCandidate("upper_bound_missing", "upper bound of the amax missing",
                            _rule(upper_bound=float("inf")))
    for name in NONFINITE:
        yield QuantizeCandidate(f"nonfinite_{name}", f"NaN and Inf in a tile as under nonfinite "
                                f"{name} instead of {{nonfinite}}", _rule(nonfinite=name))
    yield QuantizeCandidate("amax_signed",
                            "the maximum of the elements instead of their magnitudes",
                            _varied(Variations(amax=lambda x: np.maximum(x, np.float32(0)))))
    yield QuantizeCandidate("other_largest", "the scale is made for 240, the largest number of "
                            "e4m3fnuz", _varied(Variations(largest=240.0)))
    for other in ("flt_max", "input_max"):
        yield QuantizeCandidate(f"scale_overflow_{other}", f"an infinite S replaced as under "
                                f"scale_overflow {other}",
                                _rule(scale_overflow=other))
    yield QuantizeCandidate("zeros_scale_0", "the scale of a tile of zeros is 0 instead of 1",
                            _zeros_scale)


def _without_eps(call: QuantizeCall, rule: QuantizeRule) -> Quantized | None:
    if rule.scale_format != "fp32" or not call.x.size:
        return None
    return quantize_model(call.x, rule.but(eps=0.0), Variations(plain_formulas=True))


def _zeros_scale(call: QuantizeCall, rule: QuantizeRule) -> Quantized | None:
    if rule.scale_format != "fp32":
        return None
    at = np.zeros(call.expected.scales.shape, np.bool_)
    nonzero = (call.x != 0) & ~np.isnan(call.x)
    rows, cols = np.nonzero(nonzero)
    tile = [t or max(n, 1) for n, t in zip(call.x.shape, rule.tile)]
    at[rows // tile[0], cols // tile[1]] = True
    zero = ~at & (call.expected.scales == np.uint64(0x3F800000))
    return Quantized(call.expected.codes, np.where(zero, np.uint64(0), call.expected.scales))


def _tiles() -> Iterator[QuantizeCandidate]:
    def tiled(change: Callable[[int, int], tuple[int, int]]) -> QuantizeGuess:
        return _scales_of(lambda rule: rule.but(tile=change(*rule.tile)))
    yield QuantizeCandidate("tile_transposed", "the tile transposed: rows and columns exchanged",
                            tiled(lambda r, c: (c, r)))
    for name, sentence, change in (
            ("tile_half", "tiles of half the size", lambda r, c: (max(r // 2, 1), max(c // 2, 1))),
            ("tile_double", "tiles of double the size",
             lambda r, c: (2 * r if r > 1 else r, 2 * c if c > 1 else c))):
        yield QuantizeCandidate(name, sentence, _amax_of_tile(change))
    yield QuantizeCandidate("amax_of_row", "the amax of the whole row instead of the tile",
                            _amax_of_tile(lambda r, c: (r, 0)))
    yield QuantizeCandidate("amax_of_tensor", "the amax of the whole tensor instead of the tile",
                            _amax_of_tile(lambda r, c: (0, 0)))


def _amax_of_tile(change: Callable[[int, int], tuple[int, int]]) -> QuantizeGuess:
    """Return the guess that a tile's scale comes from another tile around it or within it."""
    def result(call: QuantizeCall, rule: QuantizeRule) -> Quantized | None:
        other = change(*rule.tile)
        if other == rule.tile or not call.x.size:
            return None if other == rule.tile else call.expected
        wide = quantize_model(call.x, rule.but(tile=other))
        at = [np.minimum(np.arange(n) * (t or 1), size - 1) for n, t, size in
              zip(call.expected.scales.shape, rule.tile, call.x.shape)]
        scales = per_element(wide.scales, call.x.shape, other)[np.ix_(*at)]
        return Quantized(wide.codes, scales)
    return result


def _scale_places() -> Iterator[QuantizeCandidate]:
    yield QuantizeCandidate("scales_transposed", "scales stored column by column: the matrix of "
                            "scales is transposed", _transposed_scales)
    yield QuantizeCandidate("scales_next", "scales of the next tile", _moved_scales(1))
    yield QuantizeCandidate("scales_before", "scales of the tile before", _moved_scales(-1))


def _transposed_scales(call: QuantizeCall, rule: QuantizeRule) -> Quantized:
    scales = call.expected.scales
    return Quantized(call.expected.codes, scales.T.reshape(scales.shape))


def _moved_scales(by: int) -> QuantizeGuess:
    """Return the guess of right codes with scales of neighbouring tiles."""
    def result(call: QuantizeCall, rule: QuantizeRule) -> Quantized | None:
        expected, got = call.expected.scales.ravel(), call.got.scales.ravel()
        if expected.size < 2:
            return call.expected
        moved = np.roll(expected, -by)
        end = -1 if by > 0 else 0
        moved[end] = got[end]
        return Quantized(call.expected.codes, moved.reshape(call.expected.scales.shape))
    return result


def _affected_tiles() -> Iterator[QuantizeCandidate]:
    rows: tuple[tuple[str, str, AffectedTiles], ...] = (
        ("zero_tiles", "only tiles of zeros are wrong", _zero_tiles),
        ("cut_tiles", "only tiles cut off at the edge of the matrix are wrong", _cut_tiles),
        ("nonfinite_tiles", "only tiles with NaN or Inf are wrong", _nonfinite_tiles))
    for name, sentence, affected in rows:
        yield QuantizeCandidate(name, sentence, _wrong_where(affected), only_alone=True)


AffectedTiles = Callable[[QuantizeCall, QuantizeRule], Mask]


def _zero_tiles(call: QuantizeCall, rule: QuantizeRule) -> Mask:
    found: Mask = tile_maximum(call.x.view(np.uint32) << np.uint32(1), rule.tile) == 0
    return found


def _nonfinite_tiles(call: QuantizeCall, rule: QuantizeRule) -> Mask:
    found: Mask = tile_maximum((~np.isfinite(call.x)).astype(np.uint32), rule.tile) != 0
    return found


def _cut_tiles(call: QuantizeCall, rule: QuantizeRule) -> Mask:
    cut = np.zeros(call.expected.scales.shape, np.bool_)
    for axis, (n, t) in enumerate(zip(call.x.shape, rule.tile)):
        if t and n % t:
            cut[(slice(None),) * axis + (-1,)] = True
    return cut


def _wrong_where(affected: AffectedTiles) -> QuantizeGuess:
    """Return the guess that some tiles may have any codes and scales, and all others are right."""
    def result(call: QuantizeCall, rule: QuantizeRule) -> Quantized:
        if call.x.size == 0:
            return call.expected
        tiles = affected(call, rule)
        elements = per_element(tiles, call.x.shape, rule.tile)
        return Quantized(np.where(elements, call.got.codes, call.expected.codes),
                         np.where(tiles, call.got.scales, call.expected.scales))
    return result


def _casts() -> Iterator[QuantizeCandidate]:
    for rounding, words in (("nearest_away", "codes with ties away from zero instead of to even"),
                            ("toward_zero", "codes rounded toward zero (truncated)")):
        yield QuantizeCandidate(f"codes_{rounding}", words, _rule(rounding=rounding))
    for overflow, words in (("ieee", "codes not saturated: NaN or Inf on overflow"),
                            ("saturate", "codes saturated on overflow"),
                            ("saturate_finite", "finite codes saturated and Inf kept")):
        yield QuantizeCandidate(f"codes_{overflow}", words, _rule(overflow=overflow))
    yield QuantizeCandidate("codes_flushed", "subnormal codes flushed to zero", _flushed)
    yield QuantizeCandidate("scaled_exactly",
                            "the scaled element is not rounded to fp32 before the cast",
                            _varied(Variations(scaled=_exact)))
    for middle in ("bf16", "fp16"):
        yield QuantizeCandidate(f"twice_{middle}", f"the scaled element is rounded to {middle} "
                                "before the cast", _varied(Variations(scaled=_through(middle))))


def _flushed(call: QuantizeCall, rule: QuantizeRule) -> Quantized:
    small = is_subnormal(call.expected.codes, rule.to)
    zero = call.expected.codes & np.uint64(rule.to.sign)
    return Quantized(np.where(small, zero, call.expected.codes), call.expected.scales)


def _exact(x: Floats, by: Floats, divides: bool) -> Codes:
    wide = x.astype(np.float64)
    return (wide / by if divides else wide * by).view(np.uint64)


def _through(middle: str) -> Callable[[Floats, Floats, bool], Codes]:
    def scaled(x: Floats, by: Floats, divides: bool) -> Codes:
        y = (x / by if divides else x * by).view(np.uint32).astype(np.uint64)
        first = convert_codes(y, Rule(FORMATS["fp32"], FORMATS[middle]))
        return convert_codes(first, Rule(FORMATS[middle], FORMATS["fp64"]))
    return scaled


def quantize_candidates() -> list[QuantizeCandidate]:
    """Return the table of usual errors, in the order in which they are named."""
    return [*_scale_rules(), *_amaxes(), *_tiles(), *_casts(), *_scale_places(),
            *_affected_tiles()]


def explain_quantize(calls: list[QuantizeCall], rule: QuantizeRule, any_nan: bool) -> Explanation:
    """Return the usual errors that give every code and scale of all calls."""
    wrong = [c for c in calls if not same_result(c.got, c.expected, rule, any_nan)]
    wrong.sort(key=lambda c: c.x.size)
    ordered = wrong + [c for c in calls if not any(c is w for w in wrong)]
    found: list[QuantizeCandidate] = []
    for candidate in quantize_candidates():
        if candidate.only_alone and found:
            continue
        if _fits(candidate, ordered, rule, any_nan):
            found.append(candidate)
    words = {"scale": rule.scale, "eps": f"{rule.eps:g}", "nonfinite": rule.nonfinite,
             "scale_overflow": rule.scale_overflow}
    return Explanation(tuple(c.name for c in found),
                       tuple(c.sentence.format(**words) for c in found),
                       sum(c.x.size + c.got.scales.size for c in calls),
                       sum(_wrong_results(c, rule, any_nan) for c in wrong))


def _fits(candidate: QuantizeCandidate, calls: list[QuantizeCall], rule: QuantizeRule,
          any_nan: bool) -> bool:
    for call in calls:
        result = candidate.result(call, rule)
        if result is None or not same_result(call.got, result, rule, any_nan):
            return False
    return True


def _wrong_results(call: QuantizeCall, rule: QuantizeRule, any_nan: bool) -> int:
    scale_format = FORMATS[rule.scale_format]
    codes = same_codes(call.got.codes, call.expected.codes, rule.to, any_nan)
    scales = same_codes(call.got.scales, call.expected.scales, scale_format, any_nan)
    return int((~codes).sum() + (~scales).sum())
