"""quantize() and dequantize() on torch tensors: operators for torch.compile, and gradients."""

from __future__ import annotations

import functools
import json
import math
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

import samebits
from samebits.errors import InvalidArgument
from samebits.quantize import rules_of
from samebits.recipes import RULES, Recipe
from samebits.rules import options_of
from samebits.torch.aten import registry
from samebits.torch.convert import DEFAULTS, convert, operator_values, refuse_options
from samebits.torch.row_operators import define, new, ops
from samebits.torch.tensors import (
    constant_format_name,
    needs_gradient,
    needs_operator,
    to_numpy,
    torch_dtype,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from samebits.option_types import DequantizeOptions, QuantizeOptions
    from samebits.typing import FormatLike, RecipeName

__all__ = ["QuantizedTensor", "dequantize", "fake_quantize", "quantize"]


_DEFAULTS = {name: value for name, value in DEFAULTS.items() if name != "overflow"}


def _text_of(rules: Recipe) -> str:
    """Return the rules of a recipe as one constant of a compiled call."""
    return json.dumps(asdict(rules))


@functools.lru_cache(maxsize=256)
def rules_of_text(text: str) -> Recipe:
    values = json.loads(text)
    return Recipe(**{**values, "tile": tuple(values["tile"])})


def _define(name: str, results: str, transposed: bool) -> None:
    """Define an operator that quantizes a matrix, and `transposed` also its transpose."""
    def run(_how: Any, x: torch.Tensor, inverse_scales: torch.Tensor | None, rules: str, to: Any,
            *options: Any) -> tuple[torch.Tensor, ...]:
        q = samebits.quantize(x, rules_of_text(rules), to=to, inverse_scales=inverse_scales,
                              transposed=transposed, **dict(zip(_DEFAULTS, options, strict=True)))
        direct = q.codes, q.scales
        return (*direct, q.codes_transposed, q.scales_transposed) if transposed else direct

    def shapes(x: torch.Tensor, inverse_scales: object, rules: str, to: str,
               *_options: object) -> tuple[torch.Tensor, ...]:
        recipe = rules_of_text(rules)
        rows, cols = math.prod(x.shape[:-1]), x.shape[-1] if x.dim() else 1
        codes = new(x, dtype=torch_dtype(to))
        scales = new(x, scales_shape(rows, cols, recipe.tile), torch_dtype(recipe.scale_format))
        if not transposed:
            return codes, scales
        return codes, scales, codes.new_empty(cols, rows), scales.new_empty(scales.shape[::-1])

    registry.RULES[name] = run
    define(name, "(Tensor x, Tensor? inverse_scales, str rules, str to, str? format, str rounding, str nan, int seed, "
           f"int random_stream, int offset, int? pitch, int random_bits) -> ({results})", shapes)


# The version is part of the name: torch.compile keeps compiled calls of an operator by its name.
_define("quantize_v1", "Tensor codes, Tensor scales", False)
_define("quantize_both_v1", "Tensor codes, Tensor scales, Tensor codes_transposed, Tensor scales_transposed", True)
registry.RULES["dequantize_v1"] = lambda _how, codes, scales, to, *options: samebits.dequantize(
    codes, scales, to, tile=options[:2], format=options[2], scale_format=options[3])
define("dequantize_v1", "(Tensor codes, Tensor scales, str to, int tile_rows, int tile_cols, str? format, "
       "str? scale_format) -> Tensor", lambda codes, _, to, *__: new(codes, dtype=torch_dtype(to)))


def scales_shape(rows: int, cols: int, tile: tuple[int, int]) -> tuple[int, int]:
    """Return the shape of the scales, also for sizes that torch.compile leaves open."""
    def tiles(size: int, tile_size: int) -> int:
        return 1 if tile_size == 0 else (size + tile_size - 1) // tile_size
    return tiles(rows, tile[0]), tiles(cols, tile[1])


@dataclass(eq=False)
class QuantizedTensor(samebits.QuantizedTensor):
    """A `samebits.QuantizedTensor` of torch tensors, whose `dequantize` passes gradients.

    Attributes
    ----------
    source : torch.Tensor [...] or None
        Stands for the quantized tensor in autograd: of its shape, with the memory of one element.
    """

    source: torch.Tensor | None = None

    @options_of(samebits.QuantizedTensor.dequantize)
    def dequantize(self, to: FormatLike = "fp32", *, out: Any = None, threads: int | None = None,
                   backend: str | None = None, stream: Any = None) -> Any:
        """Return the values, as `samebits.QuantizedTensor.dequantize` does.

        The gradient passes straight through quantization and dequantization, in the dtype of the
        tensor that was quantized. With `out=`, and for `transposed`, autograd records nothing.
        """
        values = dequantize(self.codes, self.scales, to, tile=self.recipe.tile, format=self.format,
                            scale_format=self.recipe.scale_format, scale=self.recipe.scale,
                            tensor_scale=self.tensor_scale, out=out, threads=threads,
                            backend=backend, stream=stream)
        if self.source is None or out is not None:
            return values
        return _Restored.apply(self.source, values)  # type: ignore[no-untyped-call]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write codes, scales and rules into a .safetensors file; waits for the GPU.

        `samebits.load_quantized` reads the file, as NumPy arrays.
        """
        arrays = [None if t is None else to_numpy(t.detach().cpu()) for t in (
            self.codes, self.scales, self.codes_transposed, self.scales_transposed,
            self.tensor_scale)]
        samebits.QuantizedTensor(arrays[0], arrays[1], self.recipe, self.format, arrays[2],
                                 arrays[3], tensor_scale=arrays[4]).save(path)


class _Source(torch.autograd.Function):
    """Returns a tensor of the shape of `x` with the memory of one element."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(()).expand_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0]


class _Restored(torch.autograd.Function):
    """Returns the dequantized values; the gradient goes to the quantized tensor's source."""

    @staticmethod
    def forward(ctx: Any, source: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        ctx.dtype = source.dtype
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return convert(gradients[0], ctx.dtype), None


@options_of(samebits.quantize)
def quantize(x: torch.Tensor, recipe: Recipe | RecipeName | None = None,
             **options: Unpack[QuantizeOptions]) -> QuantizedTensor:
    """Quantize a matrix tile by tile into codes of 8, 6 or 4 bits with one scale per tile.

    Codes and scales are those of `samebits.quantize`, on CPU and GPU, bit for bit.

    Parameters
    ----------
    x : torch.Tensor [..., cols]
        In fp32, fp16 or bf16. All leading axes together are the rows of the matrix.

    Returns
    -------
    QuantizedTensor
        Its tensors lie on the device of `x`. `dequantize()` passes the gradient straight through,
        to `x`; codes and scales have none.

    Examples
    --------
    >>> x = torch.tensor([[1.0, -2.0, 3.5, 0.0]], requires_grad=True)
    >>> q = sbt.quantize(x, "TE_CURRENT")
    >>> q.codes.dtype, q.scales.shape
    (torch.float8_e4m3fn, torch.Size([1, 1]))
    >>> q.dequantize().sum().backward()
    >>> x.grad.tolist()
    [[1.0, 1.0, 1.0, 1.0]]
    """
    if needs_operator(x):
        made = _call_operator(x, recipe, options)
    else:
        q = samebits.quantize(x, recipe, **options)
        made = QuantizedTensor(q.codes, q.scales, q.recipe, q.format, q.codes_transposed,
                               q.scales_transposed, q.statistics, q.tensor_scale)
    if needs_gradient(x):
        made.source = _Source.apply(x)  # type: ignore[no-untyped-call]
    return made


def _call_operator(x: torch.Tensor, recipe: Recipe | str | None,
                   options: Any) -> QuantizedTensor:
    left = dict(options)
    transposed = left.pop("transposed", False)
    inverse_scales = left.pop("inverse_scales", None)
    to = left.pop("to", None)
    values = operator_values(left, _DEFAULTS)
    given = {name: left.pop(name) for name in RULES if name in left}
    refuse_options("quantize", left)
    rules = rules_text(recipe, tuple(given.items()))
    chosen: Recipe = recipe_of_text(rules)
    if chosen.scale.startswith("nvfp4"):
        raise InvalidArgument("scale: compiled calls have no rules with two levels; got "
                              f"{chosen.scale}")
    to = chosen.code_format if to is None else constant_format_name(to)
    arguments = (x.detach(), inverse_scales, rules, to, *values)
    if transposed:
        codes, scales, codes_t, scales_t = ops.quantize_both_v1(*arguments)
    else:
        codes, scales = ops.quantize_v1(*arguments)
        codes_t = scales_t = None
    return QuantizedTensor(codes, scales, chosen, to, codes_t, scales_t)


@torch.compiler.assume_constant_result
def rules_text(recipe: Recipe | str | None, rules: tuple[tuple[str, Any], ...]) -> str:
    return _text_of(rules_of(recipe, **dict(rules)))


@torch.compiler.assume_constant_result
def recipe_of_text(text: str) -> Recipe:
    return rules_of_text(text)


@options_of(samebits.dequantize)
def dequantize(codes: torch.Tensor, scales: torch.Tensor, to: FormatLike = "fp32",
               **options: Unpack[DequantizeOptions]) -> torch.Tensor:
    """Dequantize codes: code * scale, rounded to fp32 and then to `to`.

    Examples
    --------
    >>> q = sbt.quantize(torch.tensor([[1.0, -2.0]]), tile=(1, 128), scale="te")
    >>> sbt.dequantize(q.codes, q.scales, torch.bfloat16)
    tensor([[ 1., -2.]], dtype=torch.bfloat16)
    """
    if not needs_operator(codes):
        return samebits.dequantize(codes, scales, to, **options)
    left: dict[str, Any] = {"tile": (1, 128), "format": None, "scale_format": None, **options}
    left.pop("scale", None)
    tile, *formats = (left.pop(name) for name in ("tile", "format", "scale_format"))
    refuse_options("dequantize", left)
    names = [None if given is None else constant_format_name(given, name)
             for given, name in zip(formats, ("format", "scale_format"), strict=True)]
    return ops.dequantize_v1(codes, scales, constant_format_name(to), *tile, *names)


@options_of(quantize)
def fake_quantize(x: torch.Tensor, recipe: Recipe | RecipeName | None = None,
                  **options: Unpack[QuantizeOptions]) -> torch.Tensor:
    """Quantize and dequantize: the values that training in FP8 sees, in the dtype of `x`.

    The gradient passes straight through.

    Returns
    -------
    torch.Tensor [..., cols]

    Examples
    --------
    >>> sbt.fake_quantize(torch.tensor([[1.0, 1.3, 448.0]]), "TE_CURRENT")
    tensor([[  1.0000,   1.2500, 448.0000]])
    """
    return quantize(x, recipe, **options).dequantize(x.dtype)
