"""Matrices that quantizers get wrong: cut tiles, zeros, NaN and Inf, ties, tiny and huge amaxes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from samebits.testing.model import Rule, convert_codes
from samebits.testing.number_formats import FORMATS, Codes, Format, array_of, values
from samebits.testing.quantize_model import (Floats, QuantizeRule, per_element, quantize_model,
                                             scales_shape)

Doubles = np.typing.NDArray[np.float64]

_MAX_ELEMENTS = 1 << 16
_WHOLE = 96  # columns of the first matrices if a tile has no width of its own


def shapes(tile: tuple[int, int]) -> list[tuple[int, int]]:
    """Return shapes around the borders of tiles, small ones first."""
    rows, cols = (_around(tile[0], 3), _around(tile[1], _WHOLE))
    found = [(r, c) for r in rows for c in cols if r * c <= _MAX_ELEMENTS]
    return sorted(found, key=lambda s: s[0] * s[1])


def _around(size: int, whole: int) -> list[int]:
    n = size or whole
    return sorted({1, 2, n - 1, n, n + 1, 2 * n, 2 * n + n // 2 + 1} - {0})


def to_source(x: Floats, source: Format) -> Floats:
    """Return numbers rounded toward zero to the source format, as fp32."""
    if source.name == "fp32":
        return x
    codes = x.view(np.uint32).astype(np.uint64)
    narrow = convert_codes(codes, Rule(FORMATS["fp32"], source, "toward_zero"))
    with np.errstate(all="ignore"):
        return values(narrow, source).astype(np.float32)


def source_codes(x: Floats, source: Format) -> Codes:
    """Return the source's codes of numbers of the source format, held as fp32."""
    codes = x.view(np.uint32).astype(np.uint64)
    return convert_codes(codes, Rule(FORMATS["fp32"], source, nan="preserve_sign"))


def source_array(x: Floats, source: Format) -> np.typing.NDArray[np.generic]:
    """Return numbers of the source format, held as fp32, in the source's dtype."""
    return array_of(source_codes(x, source), source)


def matrix(shape: tuple[int, int], rule: QuantizeRule, rng: np.random.Generator) -> Floats:
    """Return a matrix whose tiles are of different kinds, as fp32 numbers of the source format."""
    kinds = _kinds(shape, rule, rng)
    of_tiles = rng.integers(0, len(kinds), scales_shape(shape, rule.tile))
    chosen = per_element(of_tiles, shape, rule.tile)
    x = np.zeros(shape, np.float32)
    for kind in np.unique(of_tiles).tolist():
        x = np.where(chosen == kind, kinds[kind](), x).astype(np.float32)
    return to_source(x, rule.source)


def _kinds(shape: tuple[int, int], rule: QuantizeRule,
           rng: np.random.Generator) -> list[Callable[[], Doubles]]:
    """Return functions that return a matrix of one kind."""
    tiles = scales_shape(shape, rule.tile)
    eps = rule.eps or 1e-12

    def normal(low: int = 0, high: int = 0) -> Doubles:
        """Return normally distributed elements times a power of two for each tile."""
        exponents = rng.integers(low, high, tiles, endpoint=True)
        powers = per_element(np.ldexp(1.0, exponents), shape, rule.tile)
        x: Doubles = rng.standard_normal(shape) * powers
        return x

    def one_element() -> Doubles:
        x = np.zeros(shape)
        number = np.ldexp(1.5, rng.integers(-30, 30))
        x[rng.integers(shape[0], size=3), rng.integers(shape[1], size=3)] = number
        return x

    def special() -> Doubles:
        numbers = np.array([0.0, -0.0, 1.0, -3.0, np.nan, np.inf, -np.inf])
        return rng.choice(numbers, shape, p=[0.3, 0.1, 0.3, 0.2, 0.06, 0.02, 0.02])

    def zeros() -> Doubles:
        return np.where(rng.random(shape) < 0.5, 0.0, -0.0)

    return [
        lambda: normal(-20, 20),
        lambda: np.round(normal() * 64) / 64,  # few bits: scaled elements are often ties
        lambda: _ties(shape, rule, rng, np.ones(tiles)),
        lambda: _ties(shape, rule, rng, rng.uniform(1, 2, tiles)),
        lambda: _ties(shape, rule, rng, None),
        lambda: np.ldexp(normal(-4, 4), rng.integers(-30, 0, shape, endpoint=True)),
        zeros, one_element, special,
        lambda: np.where(rng.random(shape) < 0.05, np.nan, normal()),
        lambda: normal(-148, -120),
        lambda: normal() * eps,
        lambda: np.clip(normal(), -2, 2) * 2.0**126]


def _ties(shape: tuple[int, int], rule: QuantizeRule, rng: np.random.Generator,
          factors: Doubles | None) -> Doubles:
    """Return elements that are midpoints of codes once they are scaled.

    The amax of each tile is the largest code times a power of two times a factor of the tile.
    Without factors the amax is a number of few bits.
    """
    numbers = values(np.arange(rule.to.max_magnitude + 1, dtype=np.uint64), rule.to)
    tiles = scales_shape(shape, rule.tile)
    if factors is None:
        amax = rng.integers(1, 256, tiles) / 16.0
    else:
        amax = np.ldexp(numbers[-1] * factors, rng.integers(-20, 20, tiles, endpoint=True))
    first = np.ix_(*(np.arange(0, n, t or n) for n, t in zip(shape, rule.tile)))
    x = np.zeros(shape, np.float32)
    x[first] = amax
    scales = quantize_model(to_source(x, rule.source), rule).scales
    s = per_element(values(scales, FORMATS[rule.scale_format]), shape, rule.tile)
    middle = (numbers[:-1] + numbers[1:]) / 2
    ties: Doubles = rng.choice(middle, shape) * rng.choice(np.array([-1.0, 1.0]), shape) * s
    ties[first] = x[first]
    return ties


def matrices(rule: QuantizeRule, chosen: list[tuple[int, int]], examples: int,
             rng: np.random.Generator) -> Iterator[Floats]:
    """Yield the matrices of all calls: each shape once, then `examples` more of random shapes."""
    for shape in chosen:
        yield matrix(shape, rule, rng)
    for _ in range(examples):
        yield matrix(chosen[int(rng.integers(len(chosen)))], rule, rng)
