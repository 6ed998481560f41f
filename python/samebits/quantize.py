"""Quantization into codes of 8, 6 or 4 bits with one scale per tile."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from samebits import _core
from samebits.arrays import mark_written
from samebits.errors import InvalidArgument
from samebits.formats import NAMES, format_index
from samebits.recipes import RULES, SCALE_RULES, Recipe, recipe_of, recipes
from samebits.safetensors import read_safetensors, write_safetensors

if TYPE_CHECKING:
    from typing import Literal

    from samebits.typing import (
        Format,
        FormatLike,
        NanPolicy,
        Nonfinite,
        Overflow,
        RecipeName,
        ScaleOverflow,
        ScaleRule,
    )

__all__ = ["QuantizedTensor", "Statistics", "dequantize", "load_quantized", "quantize"]


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
        Codes of the shape of the input, one a byte.
    scales : array [tile rows, tile columns]
        Dequantization scales: code * scale is close to the input, with two levels
        code * scale * the tensor's scale or its reciprocal.
    recipe : Recipe
        The rules that made codes and scales.
    format : str
        Format of the codes.
    codes_transposed, scales_transposed : array or None
        Codes and scales of the transposed matrix, if ``transposed=True``.
    tensor_scale : array [1, 1] or None
        The tensor's scale of a scale rule with two levels: for nvfp4_torchao amax / 2688, for
        nvfp4_vllm 2688 / amax or the one that was given, for all others the amax.
    statistics : Statistics or None
        Statistics, if ``statistics=True``.
    """

    codes: Any
    scales: Any
    recipe: Recipe
    format: Format
    codes_transposed: Any = None
    scales_transposed: Any = None
    statistics: Statistics | None = None
    tensor_scale: Any = None

    def dequantize(self, to: FormatLike = "fp32", *, out: Any = None, threads: int | None = None,
                   backend: str | None = None, stream: Any = None) -> Any:
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
        >>> x = np.array([[1.0, -2.0, 3.5, 0.0]], np.float32)
        >>> sb.quantize(x, "TE_CURRENT").dequantize()
        array([[ 1. , -2. ,  3.5,  0. ]], dtype=float32)
        """
        return dequantize(self.codes, self.scales, to, tile=self.recipe.tile, format=self.format,
                          scale_format=self.recipe.scale_format, scale=self.recipe.scale,
                          tensor_scale=self.tensor_scale, out=out, threads=threads,
                          backend=backend, stream=stream)

    @property
    def transposed(self) -> QuantizedTensor:
        """The transposed tensor, if ``quantize(..., transposed=True)`` made it."""
        if self.codes_transposed is None:
            raise InvalidArgument("transposed: pass transposed=True to quantize()")
        rows, cols = self.recipe.tile
        return QuantizedTensor(self.codes_transposed, self.scales_transposed,
                               replace(self.recipe, name="", tile=(cols, rows)), self.format,
                               self.codes, self.scales, self.statistics, self.tensor_scale)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write codes, scales and rules into a .safetensors file. Supports NumPy arrays only."""
        r = self.recipe
        rules = {
            "samebits.recipe": r.name, "samebits.tile": f"{r.tile[0]} {r.tile[1]}",
            "samebits.scale": r.scale, "samebits.eps": float(r.eps).hex(),
            "samebits.upper_bound": float(r.upper_bound).hex(),
            "samebits.nonfinite": r.nonfinite, "samebits.scale_overflow": r.scale_overflow,
            "samebits.overflow": r.overflow, "samebits.source": r.source,
            "samebits.code_format": r.code_format,
        }
        tensors = {"scales": (self.scales, r.scale_format), "codes": (self.codes, self.format)}
        if self.tensor_scale is not None:
            tensors["tensor_scale"] = (self.tensor_scale, "fp32")
        if self.codes_transposed is not None:
            tensors["scales_transposed"] = (self.scales_transposed, r.scale_format)
            tensors["codes_transposed"] = (self.codes_transposed, self.format)
        write_safetensors(path, {k: v for k, v in tensors.items() if v[0] is not None}, rules)


def load_quantized(path: str | os.PathLike[str]) -> QuantizedTensor:
    """Read a file that `QuantizedTensor.save` wrote.

    Parameters
    ----------
    path : str or path

    Raises
    ------
    InvalidArgument
        The file is no .safetensors file, or holds no quantized tensor.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "q.safetensors")
    ...     sb.quantize(np.ones((2, 128), np.float32), "TE_CURRENT").save(path)
    ...     sb.load_quantized(path).recipe.name
    'TE_CURRENT'
    """
    tensors, rules = read_safetensors(path)
    for name in ("codes", "scales"):
        if name not in tensors:
            raise InvalidArgument(f"{os.fspath(path)}: no tensor {name!r}; found "
                                  f"{', '.join(tensors) or 'none'}")
    try:
        rows, cols = rules["samebits.tile"].split()
        given: dict[str, Any] = {name: rules[f"samebits.{name}"] for name in (
            "scale", "nonfinite", "scale_overflow", "overflow", "source")}
        given["scale_format"] = tensors["scales"][1]
        given["code_format"] = rules.get("samebits.code_format", "e4m3")
        recipe = Recipe(
            tile=(int(rows), int(cols)), eps=float.fromhex(rules["samebits.eps"]),
            upper_bound=float.fromhex(rules["samebits.upper_bound"]),
            **given,
        )
    except (KeyError, ValueError) as error:
        raise InvalidArgument(f"{os.fspath(path)}: no rules of samebits: {error}") from None
    name = rules.get("samebits.recipe", "")
    if name in recipes:  # not one of a later version
        recipe = replace(recipe_of(name), **{
            field: getattr(recipe, field) for field in RULES})
    transposed = tensors.get("codes_transposed", (None, ""))[0]
    return QuantizedTensor(tensors["codes"][0], tensors["scales"][0], recipe, tensors["codes"][1],
                           transposed, tensors.get("scales_transposed", (None, ""))[0],
                           tensor_scale=tensors.get("tensor_scale", (None, ""))[0])


def quantize(
    x: Any,
    recipe: Recipe | RecipeName | None = None,
    *,
    to: FormatLike | None = None,
    tile: tuple[int, int] | None = None,
    scale: ScaleRule | None = None,
    eps: float | None = None,
    upper_bound: float | None = None,
    nonfinite: Nonfinite | None = None,
    scale_overflow: ScaleOverflow | None = None,
    scale_format: FormatLike | None = None,
    rounding: Literal["nearest_even", "stochastic"] = "nearest_even",
    overflow: Overflow | None = None,
    nan: NanPolicy = "canonical",
    inverse_scales: Any = None,
    tensor_scale: Any = None,
    transposed: bool = False,
    statistics: bool = False,
    seed: int | None = None,
    random_stream: int = 0,
    offset: int = 0,
    pitch: int | None = None,
    random_bits: int = 32,
    format: FormatLike | None = None,
    out: QuantizedTensor | None = None,
    threads: int | None = None,
    backend: str | None = None,
    stream: Any = None,
) -> QuantizedTensor:
    """Quantize a matrix tile by tile into codes of 8, 6 or 4 bits with one scale per tile.

    Parameters
    ----------
    x : array [..., cols]
        In fp32, fp16 or bf16. All leading axes together are the rows of the matrix.
    recipe : str or Recipe, optional
        Name of one of `recipes`, or a `Recipe`. Default: ``Recipe()``. Each of the options tile,
        scale, ... replaces the rule of the recipe.
    to : str or dtype, optional
        Format of the codes: e4m3, e5m2, e2m1, e2m3 or e3m2. Default: that of the recipe.
    tile, scale, eps, upper_bound, nonfinite, scale_overflow, scale_format, overflow
        Rules; see `Recipe`.
    rounding : str
        nearest_even or stochastic.
    nan : str
        canonical or preserve_sign.
    inverse_scales : array [tile rows, tile columns] of fp32, optional
        Inverse scales to use, such as those of `DelayedScaling`: a code is x * inverse scale,
        rounded.
    tensor_scale : array [1, 1] of fp32, or float, optional
        The tensor's scale to use with a scale rule with two levels. Default: computed from `x`.
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
    >>> x = np.linspace(-4, 4, 512, dtype=np.float32).reshape(2, 256)
    >>> q = sb.quantize(x, tile=(1, 128), scale="te")
    >>> q.codes.shape, q.scales.shape
    ((2, 256), (2, 2))

    NVFP4: a scale of the tensor beside the scales of the blocks.

    >>> q = sb.quantize(x, "NVFP4_TE")
    >>> q.format, q.recipe.scale_format, q.scales.shape, q.tensor_scale
    ('e2m1', 'e4m3', (2, 16), array([[4.]], dtype=float32))
    """
    if out is not None and not isinstance(out, QuantizedTensor):
        raise TypeError(f"out: a QuantizedTensor is expected; got a {type(out).__name__}")
    if out is not None and transposed and out.codes_transposed is None:
        raise InvalidArgument("transposed: `out` was made without transposed=True")
    rules, core_rules = _rules(
        recipe, tuple(tile) if isinstance(tile, list) else tile, scale, eps, upper_bound,
        nonfinite, scale_overflow, overflow, scale_format)
    if rules.source == "delayed" and inverse_scales is None:
        raise InvalidArgument(f"recipe: {rules.name} needs inverse_scales=, from earlier steps")
    earlier = None
    if out is not None:
        earlier = (out.codes, out.scales, out.codes_transposed, out.scales_transposed,
                   out.tensor_scale)
        mark_written(list(earlier))
    name: Any
    codes, scales, codes_t, scales_t, of_tensor, found, name = _core.quantize(
        x, format, earlier, transposed, rules.code_format if to is None else to, rules.scale_format, core_rules,
        (rounding, rules.overflow, nan, seed, random_stream, offset, pitch, random_bits),
        inverse_scales, None if tensor_scale is None else _one_number(tensor_scale), statistics,
        (threads, backend, stream))
    result = QuantizedTensor(codes, scales, rules, name, codes_t, scales_t,
                             tensor_scale=of_tensor)
    if out is not None:
        result = out
        result.recipe, result.format = rules, name
    result.statistics = Statistics(*found) if found is not None else None
    return result


def _one_number(scale: Any) -> Any:
    """Return a Python number as an array [1, 1]; all else unchanged."""
    return np.full((1, 1), scale, np.float32) if isinstance(scale, (int, float)) else scale


def _rules(*given: Any) -> tuple[Recipe, tuple[Any, ...]]:
    """Return the rules of a call, and what the core computes scales by."""
    try:
        return _known_rules(*given)
    except TypeError:  # a value that is no key
        return _known_rules.__wrapped__(*given)


@functools.lru_cache(maxsize=256)
def _known_rules(recipe: Recipe | str | None, *given: Any) -> tuple[Recipe, tuple[Any, ...]]:
    rules = rules_of(recipe, **dict(zip(RULES, given, strict=False)))
    return rules, attrgetter(*SCALE_RULES)(rules)


def rules_of(recipe: Recipe | str | None, **given: Any) -> Recipe:
    """Return the rules of a recipe, with those replaced that are given and not None."""
    rules = Recipe() if recipe is None else recipe_of(recipe)
    changed = {name: value for name, value in given.items() if value is not None}
    if "scale_format" in changed:
        changed["scale_format"] = NAMES[format_index(changed["scale_format"], "scale_format")]
    return replace(rules, **changed) if changed else rules


def dequantize(
    codes: Any,
    scales: Any,
    to: FormatLike = "fp32",
    *,
    tile: tuple[int, int] = (1, 128),
    format: FormatLike | None = None,
    scale_format: FormatLike | None = None,
    scale: ScaleRule = "te",
    tensor_scale: Any = None,
    out: Any = None,
    threads: int | None = None,
    backend: str | None = None,
    stream: Any = None,
) -> Any:
    """Dequantize codes: code * scale, rounded to fp32 and then to `to`.

    Parameters
    ----------
    codes : array [..., cols]
        Codes of `quantize`.
    scales : array [tile rows, tile columns]
        Dequantization scales in fp32, e8m0 or e4m3.
    to : str or dtype
        fp32, fp16 or bf16.
    tile : (int, int)
        The tile of `quantize`.
    format, scale_format : str or dtype, optional
        The formats of `codes` and `scales` if their dtypes do not say them.
    scale, tensor_scale : str; array [1, 1] of fp32, or float
        The scale rule and the tensor's scale, if the rule has two levels.
    out : array [..., cols], optional
        Receives the values.
    threads, backend, stream
        As in `convert`.

    Returns
    -------
    array [..., cols]
        `out`, or a new array of the same library and device as `codes`.

    Examples
    --------
    >>> q = sb.quantize(np.float32([[1, -2, 3.5, 0]]), tile=(0, 0))
    >>> sb.dequantize(q.codes, q.scales, "fp16", tile=(0, 0))
    array([[ 1. , -2. ,  3.5,  0. ]], dtype=float16)
    """
    if isinstance(tile, list):
        tile = tuple(tile)
    return _core.dequantize(codes, format, scales, scale_format, tile, scale,
                            _one_number(tensor_scale), out, to,
                            (threads, backend, stream))
