"""Quantization into 8-bit codes with one scale per tile."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, replace
from typing import Any, Final

from samebits import _core
from samebits.arrays import mark_written
from samebits.errors import InvalidArgument
from samebits.formats import INDEX, NAMES, choose, format_index
from samebits.recipes import Recipe, recipe_of, recipes
from samebits.rules import (
    integer,
    number,
    optional_format,
    random_of,
    rule_of,
    stream_handle,
)
from samebits.safetensors import read_safetensors, write_safetensors

__all__ = ["QuantizedTensor", "Statistics", "dequantize", "load_quantized", "quantize"]

SCALE_RULES: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("scale_rule"))}
NONFINITE: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("nonfinite"))}
SCALE_OVERFLOW: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("scale_overflow"))}


@dataclass(frozen=True)
class Statistics:
    """Statistics of a quantized matrix.

    Attributes
    ----------
    elements, zeros, nan, inf : int
        Elements of the input: all, zeros of either sign, NaN, Inf.
    underflowed : int
        Finite elements other than zero that became zero.
    saturated : int
        Finite elements beyond the largest code.
    amax, min_nonzero : float
        Largest magnitude, NaN if any element is NaN; smallest finite magnitude above zero, or 0.
    signal, noise : float
        Sums of x^2 and of (x - dequantized)^2; the ratio in decibels is
        10 * log10(signal / noise).
    """

    elements: int
    zeros: int
    nan: int
    inf: int
    underflowed: int
    saturated: int
    amax: float
    min_nonzero: float
    signal: float
    noise: float


@dataclass(eq=False)
class QuantizedTensor:
    """Codes, scales and the rules that made them.

    Attributes
    ----------
    codes : array [...]
        E4M3 or E5M2 codes, of the shape of the input.
    scales : array [tile rows, tile columns]
        Dequantization scales: code * scale is close to the input.
    recipe : Recipe
        The rules that made codes and scales.
    format : str
        Format of the codes.
    codes_transposed, scales_transposed : array or None
        Codes and scales of the transposed matrix, if ``transposed=True``.
    statistics : Statistics or None
        Statistics, if ``statistics=True``.
    """

    codes: Any
    scales: Any
    recipe: Recipe
    format: str
    codes_transposed: Any = None
    scales_transposed: Any = None
    statistics: Statistics | None = None

    def dequantize(
        self, to: object = "fp32", *, out: Any = None, threads: int | None = None,
        backend: str | None = None, stream: Any = None,
    ) -> Any:
        """Return the values: code * scale, rounded once to fp32 and once to `to`.

        Parameters
        ----------
        to : str or dtype
            fp32, fp16 or bf16.
        out : array [...], optional
            Receives the values.
        threads, backend, stream
            As in `convert`.

        Examples
        --------
        >>> import numpy as np
        >>> import samebits as sb
        >>> x = np.array([[1.0, -2.0, 3.5, 0.0]], np.float32)
        >>> sb.quantize(x, "TE_CURRENT").dequantize()
        array([[ 1. , -2. ,  3.5,  0. ]], dtype=float32)
        """
        return dequantize(self.codes, self.scales, to, tile=self.recipe.tile, format=self.format,
                          scale_format=self.recipe.scale_format, out=out, threads=threads,
                          backend=backend, stream=stream)

    @property
    def transposed(self) -> QuantizedTensor:
        """The transposed tensor, if ``quantize(..., transposed=True)`` made it."""
        if self.codes_transposed is None:
            raise InvalidArgument("transposed: pass transposed=True to quantize()")
        rows, cols = self.recipe.tile
        return QuantizedTensor(self.codes_transposed, self.scales_transposed,
                               replace(self.recipe, name="", tile=(cols, rows)), self.format,
                               self.codes, self.scales, self.statistics)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write codes, scales and rules into a .safetensors file. Supports NumPy arrays only."""
        r = self.recipe
        rules = {
            "samebits.recipe": r.name, "samebits.tile": f"{r.tile[0]} {r.tile[1]}",
            "samebits.scale": r.scale, "samebits.eps": float(r.eps).hex(),
            "samebits.upper_bound": float(r.upper_bound).hex(),
            "samebits.nonfinite": r.nonfinite, "samebits.scale_overflow": r.scale_overflow,
            "samebits.overflow": r.overflow, "samebits.source": r.source,
        }
        tensors = {"scales": (self.scales, r.scale_format), "codes": (self.codes, self.format)}
        if self.codes_transposed is not None:
            tensors["scales_transposed"] = (self.scales_transposed, r.scale_format)
            tensors["codes_transposed"] = (self.codes_transposed, self.format)
        write_safetensors(path, {k: v for k, v in tensors.items() if v[0] is not None}, rules)


def load_quantized(path: str | os.PathLike[str]) -> QuantizedTensor:
    """Read a file that `QuantizedTensor.save` wrote.

    Raises
    ------
    InvalidArgument
        The file is no .safetensors file, or holds no quantized tensor.
    """
    tensors, rules = read_safetensors(path)
    for name in ("codes", "scales"):
        if name not in tensors:
            raise InvalidArgument(f"{os.fspath(path)}: no tensor {name!r}; found "
                                  f"{', '.join(tensors) or 'none'}")
    try:
        rows, cols = rules["samebits.tile"].split()
        recipe = Recipe(
            tile=(int(rows), int(cols)), scale=rules["samebits.scale"],
            eps=float.fromhex(rules["samebits.eps"]),
            upper_bound=float.fromhex(rules["samebits.upper_bound"]),
            nonfinite=rules["samebits.nonfinite"],
            scale_overflow=rules["samebits.scale_overflow"], overflow=rules["samebits.overflow"],
            scale_format=tensors["scales"][1], source=rules["samebits.source"],
        )
        options_of(recipe, rule_of("nearest_even", recipe.overflow, "canonical"))  # checks names
    except (KeyError, ValueError) as error:
        raise InvalidArgument(f"{os.fspath(path)}: no rules of samebits: {error}") from None
    name = rules.get("samebits.recipe", "")
    if name in recipes:  # not one of a later version
        recipe = replace(recipe_of(name), **{
            field: getattr(recipe, field)
            for field in ("tile", "scale", "eps", "upper_bound", "nonfinite", "scale_overflow",
                          "overflow", "scale_format", "source")
        })
    transposed = tensors.get("codes_transposed", (None, ""))[0]
    return QuantizedTensor(tensors["codes"][0], tensors["scales"][0], recipe, tensors["codes"][1],
                           transposed, tensors.get("scales_transposed", (None, ""))[0])


def quantize(
    x: Any,
    recipe: Recipe | str | None = None,
    *,
    to: object = "e4m3",
    tile: tuple[int, int] | None = None,
    scale: str | None = None,
    eps: float | None = None,
    upper_bound: float | None = None,
    nonfinite: str | None = None,
    scale_overflow: str | None = None,
    scale_format: object = None,
    rounding: str = "nearest_even",
    overflow: str | None = None,
    nan: str = "canonical",
    inverse_scales: Any = None,
    transposed: bool = False,
    statistics: bool = False,
    seed: int | None = None,
    random_stream: int = 0,
    offset: int = 0,
    pitch: int | None = None,
    random_bits: int = 32,
    format: object = None,
    out: QuantizedTensor | None = None,
    threads: int | None = None,
    backend: str | None = None,
    stream: Any = None,
) -> QuantizedTensor:
    """Quantize a matrix tile by tile into E4M3 or E5M2 codes with one scale per tile.

    Parameters
    ----------
    x : array [..., cols]
        In fp32, fp16 or bf16. All leading axes together are the rows of the matrix.
    recipe : str or Recipe, optional
        Name of one of `recipes`, or a `Recipe`. Default: ``Recipe()``. Each of the options tile,
        scale, ... replaces the rule of the recipe.
    to : str or dtype
        Format of the codes: e4m3 or e5m2.
    tile, scale, eps, upper_bound, nonfinite, scale_overflow, scale_format, overflow
        Rules; see `Recipe`.
    rounding : str
        nearest_even or stochastic.
    nan : str
        canonical or preserve_sign.
    inverse_scales : array [tile rows, tile columns] of fp32, optional
        Inverse scales to use, such as those of `DelayedScaling`: a code is x * inverse scale,
        rounded.
    transposed : bool
        Whether to make the transposed codes and scales too.
    statistics : bool
        Whether to compute `Statistics` in the same pass; host arrays only.
    seed, random_stream, offset, pitch, random_bits : int
        Random bits of stochastic rounding, as in `convert`.
    format : str or dtype, optional
        The format of `x` if its dtype does not say it.
    out : QuantizedTensor, optional
        Result of an earlier call on the same shape. The arrays of `out` receive the new result.
    threads, backend, stream
        As in `convert`.

    Returns
    -------
    QuantizedTensor

    Raises
    ------
    InvalidArgument
        An argument was refused; nothing was written.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> x = np.linspace(-4, 4, 512, dtype=np.float32).reshape(2, 256)
    >>> q = sb.quantize(x, tile=(1, 128), scale="te")
    >>> q.codes.shape, q.scales.shape
    ((2, 256), (2, 2))
    """
    if out is not None and not isinstance(out, QuantizedTensor):
        raise TypeError(f"out: a QuantizedTensor is expected; got a {type(out).__name__}")
    if out is not None and transposed and out.codes_transposed is None:
        raise InvalidArgument("transposed: `out` was made without transposed=True")
    rules, core_rules = _rules(
        recipe, tuple(tile) if isinstance(tile, list) else tile, scale, eps, upper_bound,
        nonfinite, scale_overflow, scale_format, rounding, overflow, nan)
    if rules.source == "delayed" and inverse_scales is None:
        raise InvalidArgument(f"recipe: {rules.name} needs inverse_scales=, from earlier steps")
    codes_format = format_index(to, "to")
    earlier = None
    if out is not None:
        earlier = (out.codes, out.scales, out.codes_transposed, out.scales_transposed)
        mark_written(list(earlier))
    *arrays, found = _core.quantize(
        x, optional_format(format), earlier, transposed, codes_format, INDEX[rules.scale_format],
        core_rules,
        random_of(seed, random_stream, offset, pitch, random_bits)
        if rounding == "stochastic" else None,
        inverse_scales, statistics, threads, backend, stream_handle(stream),
    )
    result = QuantizedTensor(arrays[0], arrays[1], rules, "", arrays[2], arrays[3])
    if out is not None:
        result = out
        result.recipe = rules
    result.format = NAMES[codes_format]
    result.statistics = Statistics(*found) if found is not None else None
    return result


@functools.lru_cache(maxsize=256)
def _rules(
    recipe: Recipe | str | None, tile: Any, scale: str | None, eps: float | None,
    upper_bound: float | None, nonfinite: str | None, scale_overflow: str | None,
    scale_format: object, rounding: str, overflow: str | None, nan: str,
) -> tuple[Recipe, tuple[int, int, int, float, float, int, int, int]]:
    """Return the rules of a call, and these rules as the core takes them."""
    rules = rules_of(recipe, tile=tile, scale=scale, eps=eps, upper_bound=upper_bound,
                     nonfinite=nonfinite, scale_overflow=scale_overflow,
                     scale_format=scale_format, overflow=overflow)
    return rules, options_of(rules, rule_of(rounding, rules.overflow, nan))


def rules_of(recipe: Recipe | str | None, **given: Any) -> Recipe:
    """Return the rules of a recipe, with those replaced that are given and not None."""
    rules = Recipe() if recipe is None else recipe_of(recipe)
    changed = {name: value for name, value in given.items() if value is not None}
    if "scale_format" in changed:
        changed["scale_format"] = NAMES[format_index(changed["scale_format"], "scale_format")]
    return replace(rules, **changed)


def tile_of(tile: Any) -> tuple[int, int]:
    """Return a tile given as two integers."""
    if not isinstance(tile, (tuple, list)) or len(tile) != 2:
        raise TypeError(f"tile: rows and columns are expected, such as (1, 128); got {tile!r}")
    return integer(tile[0], "tile"), integer(tile[1], "tile")


def options_of(
    rules: Recipe, rule: int
) -> tuple[int, int, int, float, float, int, int, int]:
    """Return the rules as the core takes them."""
    rows, cols = tile_of(rules.tile)
    return (rows, cols, choose("scale", rules.scale, SCALE_RULES), number(rules.eps, "eps"),
            number(rules.upper_bound, "upper_bound"),
            choose("nonfinite", rules.nonfinite, NONFINITE), rule,
            choose("scale_overflow", rules.scale_overflow, SCALE_OVERFLOW))


def dequantize(
    codes: Any,
    scales: Any,
    to: object = "fp32",
    *,
    tile: tuple[int, int] = (1, 128),
    format: object = None,
    scale_format: object = None,
    out: Any = None,
    threads: int | None = None,
    backend: str | None = None,
    stream: Any = None,
) -> Any:
    """Dequantize codes: code * scale, rounded to fp32 and then to `to`.

    Parameters
    ----------
    codes : array [..., cols]
        E4M3 or E5M2 codes.
    scales : array [tile rows, tile columns]
        Dequantization scales in fp32 or e8m0.
    to : str or dtype
        fp32, fp16 or bf16.
    tile : (int, int)
        The tile of `quantize`.
    format, scale_format : str or dtype, optional
        The formats of `codes` and `scales` if their dtypes do not say them.
    out : array [..., cols], optional
        Receives the values.
    threads, backend, stream
        As in `convert`.

    Returns
    -------
    array [..., cols]
        `out`, or a new array of the same library and device as `codes`.
    """
    return _core.dequantize(codes, optional_format(format), scales, optional_format(scale_format),
                            *tile_of(tile), out, format_index(to, "to"), threads, backend,
                            stream_handle(stream))
