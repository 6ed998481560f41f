"""Property tests of a quantizer: `check_quantize`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.recipes import SCALE_RULES, Recipe, recipe_of
from samebits.testing.domain import Domain
from samebits.testing.memory import Memory, Predicate, memory_on
from samebits.testing.number_formats import Codes, Format, codes_of, format_named
from samebits.testing.report import arguments_text, array_text
from samebits.testing.runs import CallFailed, Interrupted, called, checked_codes, name_of

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
    only : array of codes [rows, cols], optional
        Makes one call, on exactly this matrix of source codes.
    where : callable, optional
        Predicate of arrays in the source's dtype, for example ``np.isfinite``.
    shapes : sequence of (rows, cols), optional
        Shapes of the matrices. By default shapes around the borders of tiles.
    examples : int
        Number of random matrices beside one of each shape.
    examples_seed : int
        Seed of the inputs.
    device : str or torch.device, optional
        "cuda" or "cpu": the quantizer gets and returns torch tensors there; so does `where`, on the
        CPU. By default they get NumPy arrays.

    Raises
    ------
    AssertionError
        A code or scale is wrong. The text shows the smallest failing matrix that was found, the
        usual error that gives all results seen, and a line that repeats the case.
    InvalidArgument
        A name is unknown.
    Unsupported
        torch is not installed, or does not find the device.

    Examples
    --------
    >>> import samebits as sb
    >>> check_quantize(lambda x: sb.quantize(x, "TE_CURRENT"), "TE_CURRENT", examples=2)
    """
    memory = memory_on(device)
    if examples < 0:
        raise InvalidArgument(f"examples: 0 or a positive number is expected; got {examples}")
    options: dict[str, Any] = {
        "tile": tile, "scale": scale, "eps": eps, "upper_bound": upper_bound,
        "nonfinite": nonfinite, "scale_overflow": scale_overflow, "overflow": overflow,
        "scale_format": scale_format}
    given = {k: v for k, v in options.items() if v is not None}
    rules: Any = dataclasses.replace(Recipe() if recipe is None else recipe_of(recipe), **given)
    quantizer = _Quantizer(fn, format_named(source),
                           format_named(rules.code_format if to is None else to),
                           format_named(rules.scale_format), rules.tile, memory)
    calls, domain = _Calls(quantizer), Domain(where, quantizer.source, memory)
    one_call = None
    if only is not None:
        codes = codes_of(np.atleast_2d(np.asarray(only)), quantizer.source)
        one_call = (*codes.shape, codes.ravel().tolist())
    chosen = _shapes(rules.tile) if shapes is None else [(int(r), int(c)) for r, c in shapes]
    how = ("nearest_even", rules.overflow, "canonical", 0, 0, 0, None, 32)
    failed: Any
    with domain.refused():
        failed = _core.check_quantize(
            calls, quantizer.source.name, quantizer.to.name, rules.scale_format,
            attrgetter(*SCALE_RULES)(rules), how, nan == "any", domain.predicate, one_call, chosen,
            examples, examples_seed)
    calls.raise_interruption()
    if failed is None:
        return
    text, found, rows, cols = failed
    if text is None:
        text = f"{quantizer.source.name} to {quantizer.to.name}: {calls.raised}"
    head = [("source", quantizer.source.name, "fp32"), ("to", quantizer.to.name, "e4m3"),
            *((k, v, None) for k, v in given.items()), ("nan", nan, "any"),
            ("device", memory.device, None)]
    named = f', "{_recipe_name(recipe)}"' if recipe else ""
    call = f"check_quantize({name_of(fn)}{named}{arguments_text(head)}"
    array = array_text(np.array(found, np.uint64), quantizer.source)
    shown = "" if array is None else f", only={array}.reshape({rows}, {cols})"
    raise AssertionError(f"{text}\n  repeat:   {call}{shown})") from calls.raised


def _shapes(tile: tuple[int, int]) -> list[tuple[int, int]]:
    """Return shapes around the borders of tiles, small ones first."""
    rows, cols = (_around(tile[0], 3), _around(tile[1], _WHOLE))
    found = [(r, c) for r in rows for c in cols if r * c <= _MAX_ELEMENTS]
    return sorted(found, key=lambda s: s[0] * s[1])


def _around(size: int, whole: int) -> list[int]:
    n = size or whole
    return sorted({1, 2, n - 1, n, n + 1, 2 * n, 2 * n + n // 2 + 1} - {0})


def _scales_shape(shape: tuple[int, int], tile: tuple[int, int]) -> tuple[int, int]:
    """Return the number of tiles, by rows and columns."""
    if 0 in shape:
        return 0, 0
    rows, cols = (-(-n // t) if t else 1 for n, t in zip(shape, tile))
    return rows, cols


def _recipe_name(recipe: Any) -> str:
    return recipe if isinstance(recipe, str) else str(getattr(recipe, "name", "") or recipe)


@dataclasses.dataclass(frozen=True)
class _Quantizer:
    """A function from a matrix to codes and scales."""

    fn: Callable[..., Any]
    source: Format
    to: Format
    scale_format: Format
    tile: tuple[int, int]
    memory: Memory

    def call(self, codes: Codes) -> tuple[Codes, Codes]:
        """Call the function on a matrix of codes; return its codes and scales.

        Raises
        ------
        CallFailed
            If the function raises, returns other shapes or dtypes, or changes its input.
        """
        name, array = name_of(self.fn), self.memory.place(codes, self.source)

        def results() -> tuple[tuple[Codes, Codes], bool]:
            got = self.results(name, self.fn(array), codes.shape)
            return got, bool((self.memory.codes(array, self.source) == codes).all())

        got, unchanged = called(name, f"shape {codes.shape}", results)
        if not unchanged:
            raise CallFailed(f"{name} changed its input")
        return got

    def results(self, name: str, result: Any, shape: Any) -> tuple[Codes, Codes]:
        if hasattr(result, "codes") and hasattr(result, "scales"):
            result = (result.codes, result.scales)
        if not isinstance(result, tuple) or len(result) != 2:
            raise CallFailed(f"{name} returned {type(result).__name__}; expected (codes, scales)")
        return (checked_codes(name, result[0], shape, self.to, self.memory, "codes", shape),
                checked_codes(name, result[1], _scales_shape(shape, self.tile), self.scale_format,
                              self.memory, "scales", shape))


class _Calls(Interrupted):
    """The quantizer as the function of matrices in memory that the check calls."""

    def __init__(self, quantizer: _Quantizer) -> None:
        self.quantizer = quantizer

    def __call__(self, matrix: memoryview, rows: int, cols: int, codes: memoryview,
                 scales: memoryview) -> None:
        q = self.quantizer
        given = np.asarray(matrix).view(q.source.code_dtype).reshape(rows, cols)
        got = self.result_of(lambda: q.call(given))
        for results, part, f in zip((codes, scales), got, (q.to, q.scale_format)):
            np.asarray(results).view(f.code_dtype)[:] = part.ravel()
