"""Property tests of a quantizer: `check_quantize`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.recipes import SCALE_RULES, Recipe, recipe_of
from samebits.testing.memory import Layout, Predicate
from samebits.testing.number_formats import Codes, format_named
from samebits.testing.report import arguments_text, array_text
from samebits.testing.runs import CallFailed, Calls, checked_codes

_MAX_ELEMENTS = 1 << 16
_WHOLE = 96  # columns of the first matrices if a tile has no width of its own


def check_quantize(
    fn: Callable[..., Any],
    recipe: Any = None,
    *,
    source: object = "fp32",
    to: object = None,
    tile: tuple[int, int] | None = None,
    scale: str | None = None,
    eps: float | None = None,
    upper_bound: float | None = None,
    nonfinite: str | None = None,
    scale_overflow: str | None = None,
    overflow: str | None = None,
    scale_format: str | None = None,
    nan: str = "any",
    only: npt.ArrayLike | None = None,
    where: Predicate | None = None,
    shapes: Sequence[tuple[int, int]] | None = None,
    examples: int = 64,
    examples_seed: int = 0,
    device: object = None,
) -> None:
    """Compare all codes and scales of a quantizer with `samebits.quantize`.

    The matrices have tiles that are cut at the edges, tiles of zeros, NaN and Inf, elements that
    lie on ties once they are scaled, outliers, and numbers of all magnitudes.

    Parameters
    ----------
    fn : callable
        Called as ``fn(x)`` with an array [rows, cols]. Returns the pair (codes [rows, cols],
        scales [tile rows, tile cols]), or an object with these attributes. Scales are the
        dequantization scales: value = code * scale.
    recipe : str or Recipe, optional
        A preset's name or a recipe with one level.
    source, to : str or dtype
        Format of `x`: fp32, fp16 or bf16. Format of the codes: by default the recipe's.
    tile, scale, eps, upper_bound, nonfinite, scale_overflow, overflow, scale_format
        As in `samebits.quantize`: each replaces the rule of the recipe.
    nan : str
        "any": any NaN is right where NaN is expected. "canonical": only the canonical NaN.
    shapes : sequence of (rows, cols), optional
        Shapes of the matrices. By default shapes around the borders of tiles.
    examples : int
        Number of random matrices beside one of each shape.
    only, where, examples_seed, device
        As in `check_conversion`; `only` is a matrix [rows, cols].

    Raises
    ------
    AssertionError, InvalidArgument, Unsupported
        As in `check_conversion`.

    Examples
    --------
    >>> import samebits as sb
    >>> check_quantize(lambda x: sb.quantize(x, "TE_CURRENT"), "TE_CURRENT", examples=2)
    """
    options: dict[str, Any] = {
        "tile": tile, "scale": scale, "eps": eps, "upper_bound": upper_bound,
        "nonfinite": nonfinite, "scale_overflow": scale_overflow, "overflow": overflow,
        "scale_format": scale_format}
    given = {k: v for k, v in options.items() if v is not None}
    rules: Any = dataclasses.replace(Recipe() if recipe is None else recipe_of(recipe), **given)
    calls = _QuantizerCalls(fn, source, rules, to, where, device)
    source, to = calls.source.name, calls.to.name
    how = ("nearest_even", rules.overflow, "canonical", 0, 0, 0, None, 32)
    failed = calls.failure_of(
        _core.check_quantize, source, to, rules.scale_format, attrgetter(*SCALE_RULES)(rules), how,
        nan == "any", calls.predicate, calls.one_call(only, 2),
        _shapes(rules.tile) if shapes is None else shapes, examples, examples_seed)
    if failed is None:
        return
    text, found, _, rows, cols, _ = failed
    if text is None:
        text = f"{source} to {to}: {calls.raised}"
    head = [("source", source, "fp32"), ("to", to, "e4m3"),
            *((k, v, None) for k, v in given.items()), ("nan", nan, "any"),
            ("device", calls.memory.device, None)]
    named = f', "{_recipe_name(recipe)}"' if recipe else ""
    call = f"check_quantize({calls.name}{named}{arguments_text(head)}"
    array = array_text(np.array(found, np.uint64), calls.source)
    shown = "" if array is None else f", only={array}.reshape({rows}, {cols})"
    raise AssertionError(f"{text}\n  repeat:   {call}{shown})") from calls.raised


def _shapes(tile: tuple[int, int]) -> list[tuple[int, int]]:
    """Return shapes around the borders of tiles, small ones first."""
    rows, cols = (sorted({1, 2, n - 1, n, n + 1, 2 * n, 2 * n + n // 2 + 1} - {0})
                  for n in (tile[0] or 3, tile[1] or _WHOLE))
    found = [(r, c) for r in rows for c in cols if r * c <= _MAX_ELEMENTS]
    return sorted(found, key=lambda s: s[0] * s[1])


def _recipe_name(recipe: Any) -> str:
    return recipe if isinstance(recipe, str) else str(getattr(recipe, "name", "") or recipe)


class _QuantizerCalls(Calls):
    """A function from a matrix to codes and scales."""

    def __init__(self, fn: Callable[..., Any], source: object, rules: Any, to: object,
                 where: Predicate | None, device: object) -> None:
        super().__init__(fn, source, where, device)
        self.to = format_named(rules.code_format if to is None else to)
        self.scale_format, self.tile = format_named(rules.scale_format), rules.tile

    def __call__(self, matrix: memoryview, rows: int, cols: int, codes: memoryview,
                 scales: memoryview) -> None:
        shape = rows, cols
        given = np.asarray(matrix).view(self.source.code_dtype).reshape(shape)
        tiles = tuple(-(-n // t) if t else 1 for n, t in zip(shape, self.tile)
                      ) if given.size else (0, 0)
        parts = (("codes", codes, shape, self.to), ("scales", scales, tiles, self.scale_format))

        def call(x: Any) -> tuple[Codes, ...]:
            result = self.fn(x)
            if hasattr(result, "codes") and hasattr(result, "scales"):
                result = (result.codes, result.scales)
            if not isinstance(result, tuple) or len(result) != 2:
                raise CallFailed(f"{self.name} returned {type(result).__name__}; expected "
                                 "(codes, scales)")
            return tuple(
                checked_codes(f"{self.name} (x of shape {shape}, {what})", got, size, f, self.memory)
                for got, (what, _, size, f) in zip(result, parts))
        got = self.result_of(given, Layout(), f"shape {shape}", call)
        for array, (_, memory, _, f) in zip(got, parts):
            np.asarray(memory).view(f.code_dtype)[:] = array.ravel()
