"""What a quantizer returns: scales and codes by contract §7, in NumPy.

Every step is one binary32 operation of NumPy, which IEEE 754 defines. The model and
`samebits.quantize` share no code; a test compares them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from samebits.testing.model import Overflow, Rounding, Rule, convert_codes
from samebits.testing.number_formats import FORMATS, Codes, Format, values

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint32]

_ABS = np.uint32(0x7FFFFFFF)
_INF = np.uint32(0x7F800000)
_NAN = np.uint32(0x7FFFFFFF)
_MIN_NORMAL = np.float32(2.0**-126)
_ONE = np.float32(1)

SCALE_RULES = ("te", "div", "rcp", "pow2", "dg_cuda", "dg_tile", "sgl_v2", "te_pow2", "mx_floor",
               "mx_ceil", "mx_even", "mx_rceil")
POWER_OF_TWO_RULES = ("pow2", "te_pow2", "mx_floor", "mx_ceil", "mx_even", "mx_rceil")
NONFINITE = ("te", "skip_nonfinite", "skip_nan", "propagate")


@dataclass(frozen=True)
class QuantizeRule:
    """The rules of a quantizer; fields as in `samebits.Recipe`."""

    source: Format = field(default_factory=lambda: FORMATS["fp32"])
    to: Format = field(default_factory=lambda: FORMATS["e4m3"])
    tile: tuple[int, int] = (1, 128)
    scale: Any = "te"
    eps: float = 0.0
    upper_bound: float = float("inf")
    nonfinite: Any = "te"
    scale_overflow: Any = "flt_max"
    overflow: Overflow = "saturate"
    scale_format: Any = "fp32"
    rounding: Any = "nearest_even"

    def but(self, **changes: object) -> QuantizeRule:
        """Return this rule with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Variations:
    """Steps of the model that `quantize_errors` replaces; by default none."""

    amax: Callable[[Floats], Floats] | None = None  # of the elements, before the maximum
    element_rule: str | None = None  # scale rule of the scaled elements only
    largest: float | None = None  # M
    stored: Callable[[Floats, Floats], Floats] | None = None  # stored scale from s and S
    scaled: Callable[[Floats, Floats, bool], Codes] | None = None  # fp64 codes of y
    codes: Callable[[Codes], Codes] | None = None  # of the codes
    plain_formulas: bool = False  # no special case for an amax of 0 and for scales below 2^-126


@dataclass(frozen=True)
class Quantized:
    """Codes [rows, cols] and stored scales [tile rows, tile cols], as codes of their formats."""

    codes: Codes
    scales: Codes


def scales_shape(shape: tuple[int, ...], tile: tuple[int, int]) -> tuple[int, int]:
    """Return the number of tiles, by rows and columns.

    Examples
    --------
    >>> scales_shape((3, 300), (1, 128)), scales_shape((3, 300), (0, 0))
    ((3, 3), (1, 1))
    """
    if 0 in shape:
        return 0, 0
    rows, cols = (-(-n // t) if t else 1 for n, t in zip(shape, tile))
    return rows, cols


def per_element(of_tiles: npt.NDArray[Any], shape: tuple[int, ...],
                tile: tuple[int, int]) -> npt.NDArray[Any]:
    """Return a value of each tile, repeated for its elements."""
    at = [np.arange(n) // (t or max(n, 1)) for n, t in zip(shape, tile)]
    return of_tiles[np.ix_(*at)]


def tile_maximum(words: Words, tile: tuple[int, int]) -> Words:
    """Return the largest word of each tile."""
    for axis, (n, t) in enumerate(zip(words.shape, tile)):
        words = np.maximum.reduceat(words, np.arange(0, n, t or n), axis)
    return words


def _bits(x: Floats) -> Words:
    return x.view(np.uint32)


def _amax(x: Floats, rule: QuantizeRule) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the bounded amax of each tile, and which tiles have scale 1 by their policy."""
    words = _bits(x) & _ABS
    nan, inf = words > _INF, words == _INF
    left_out = nan & (rule.nonfinite != "propagate")
    if rule.nonfinite == "skip_nonfinite":
        left_out = left_out | inf
    counted = tile_maximum(np.where(left_out, np.uint32(0), np.uint32(1)), rule.tile)
    a = tile_maximum(np.where(left_out, np.uint32(0), np.minimum(words, _NAN)), rule.tile)
    unit = counted == 0
    if rule.nonfinite == "te":
        unit = unit | (a == _INF)
    low, high = _bits(np.array([rule.eps, rule.upper_bound], np.float32))
    bounded = np.minimum(np.maximum(a, low), high)
    return np.where(a > _INF, a, bounded).astype(np.uint32).view(np.float32), unit


def _power_of_two(exponent_field: npt.NDArray[np.int64]) -> Floats:
    return np.ldexp(_ONE, (exponent_field - 127).astype(np.int32)).astype(np.float32)


def _field_above(t: Floats) -> npt.NDArray[np.int64]:
    """Return the exponent field, plus one if t is not a power of two."""
    words = _bits(t).astype(np.int64)
    found: npt.NDArray[np.int64] = (words >> 23) + ((words & 0x7FFFFF) != 0)
    return found


def _mx_field(scale: str, a: Floats, largest: np.float32, to: Format) -> npt.NDArray[np.int64]:
    words = _bits(a).astype(np.int64)
    if scale == "mx_rceil":
        t = a / largest
        tiny = (t > np.float32(2.0**-127)).astype(np.int64)
        return np.minimum(np.where(t < _MIN_NORMAL, tiny, _field_above(t)), 254)
    exponent = words >> 23
    if scale == "mx_ceil":
        exponent = _field_above(a)
    if scale == "mx_even":
        exponent = (words + (1 << (22 - to.mantissa_bits))) >> 23
    emax = int(np.frexp(largest)[1]) - 1
    found = np.maximum(exponent, emax) - emax
    return np.where(words < 0x7F800000, found, 254)


def _scales(a: Floats, rule: QuantizeRule, largest: np.float32,
            smallest: np.float32 = _MIN_NORMAL) -> tuple[Floats, Floats]:
    """Return s and the number that elements are multiplied (under "div": divided) by."""
    scale = rule.scale
    if scale.startswith("mx_"):
        e = _mx_field(scale, a, largest, rule.to)
        return _power_of_two(e), _power_of_two(254 - e)
    inverse = largest / a
    if scale in ("te", "te_pow2"):
        limit = np.float32(3.4028234663852886e38)
        if rule.scale_overflow == "input_max":
            f = rule.source
            limit = np.float32(values(np.array([f.max_magnitude], np.uint64), f)[0])
        factor = np.where(np.isposinf(inverse), limit, inverse)
        if scale == "te_pow2":
            cut = (_bits(factor) & np.uint32(0xFF800000)).view(np.float32)
            factor = np.where(np.isnan(factor), factor, cut)
        return (_ONE / factor).astype(np.float32), factor.astype(np.float32)
    t = a * (_ONE / largest) if scale in ("dg_cuda", "sgl_v2") else a / largest
    if scale == "pow2":
        e = np.clip(_field_above(t), 1, 254)
        return _power_of_two(e), _power_of_two(254 - e)
    s: Floats = np.where(t < smallest, smallest, t).astype(np.float32)
    if scale == "div":
        return s, s
    if scale in ("dg_tile", "sgl_v2"):
        most = np.float32(2.0**126)
        return s, np.where(inverse > most, most, inverse)
    return s, (_ONE / s).astype(np.float32)


def _tile_scales(x: Floats, rule: QuantizeRule, largest: np.float32,
                 plain: bool) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Return stored scales, factors, and which tiles have amax 0."""
    a, unit = _amax(x, rule)
    if plain:
        return *_scales(a, rule, largest, np.float32(0)), unit & False
    zeros = a == 0
    s, factor = _scales(np.where(unit | zeros, _ONE, a), rule, largest)
    if rule.scale.startswith("mx_") and rule.nonfinite == "propagate":
        poisoned = ~np.isfinite(a) & ~unit
        s, factor = (np.where(poisoned, np.float32(np.nan), v) for v in (s, factor))
    s = np.where(unit | zeros, _ONE, s)
    return s, np.where(unit | zeros, _ONE, factor), zeros & ~unit


def _stored_codes(s: Floats, zeros: npt.NDArray[np.bool_], rule: QuantizeRule) -> Codes:
    words = np.where(np.isnan(s), _NAN, _bits(s)).astype(np.uint64)
    if rule.scale_format == "fp32":
        return words
    codes = (words >> np.uint64(23)) & np.uint64(0xFF)
    return np.where(zeros, np.uint64(0), codes)


def quantize_model(x: Floats, rule: QuantizeRule, change: Variations = Variations()) -> Quantized:
    """Return codes and stored scales of a matrix.

    Parameters
    ----------
    x : float32 array [rows, cols]
        Elements, widened to fp32.
    rule : QuantizeRule
        The rules.
    change : Variations
        Steps to replace.

    Examples
    --------
    >>> q = quantize_model(np.float32([[1, -2, 0, 448]]), QuantizeRule())
    >>> [hex(c) for c in q.codes[0]], q.scales.astype(np.uint32).view(np.float32).item()
    (['0x38', '0xc0', '0x0', '0x7e'], 1.0)
    """
    if x.size == 0:
        return Quantized(np.zeros(x.shape, np.uint64), np.zeros((0, 0), np.uint64))
    top = values(np.array([rule.to.max_magnitude], np.uint64), rule.to)[0]
    largest = np.float32(top if change.largest is None else change.largest)
    with np.errstate(all="ignore"):
        amax_inputs = x if change.amax is None else change.amax(x)
        s, factor, zeros = _tile_scales(amax_inputs, rule, largest, change.plain_formulas)
        divides = rule.scale == "div"
        if change.element_rule is not None:
            other = rule.but(scale=change.element_rule)
            factor = _tile_scales(amax_inputs, other, largest, False)[1]
            divides = other.scale == "div"
        by = per_element(factor, x.shape, rule.tile)
        stored = s if change.stored is None else change.stored(s, factor)
        if change.scaled is not None:
            y, wide = change.scaled(x, by, divides), FORMATS["fp64"]
        else:
            y = _bits(x / by if divides else x * by).astype(np.uint64)
            wide = FORMATS["fp32"]
    codes = convert_codes(y, Rule(wide, rule.to, rule.rounding, rule.overflow))
    if change.codes is not None:
        codes = change.codes(codes)
    return Quantized(codes, _stored_codes(stored, zeros, rule))
