"""Matrix products with an exactly specified accumulation, including those of tensor cores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.formats import choose
from samebits.quantize import QuantizedTensor, dequantize
from samebits.rules import options_of

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from typing_extensions import Unpack

    from samebits.option_types import ProductOptions
    from samebits.typing import (
        AccumulatorKind,
        Addend,
        FormatLike,
        Fp32Order,
        ScaleOrder,
        SliceOrder,
        SliceRounding,
        SliceSum,
        TensorUnit,
    )

    Unit: TypeAlias = TensorUnit | Literal["hopper_fp8", "hopper_fp8_fast"]

__all__ = ["Prediction", "ProductError", "find_rule", "matmul", "predict"]

_UNITS: Final = [name.replace("-", "_") for name in _core.enumerations()["tensor_unit"]]
#: Common names of units, with the unit and the number of elements of K between promotions.
_NICKNAMES: Final[dict[str, tuple[str, int]]] = {
    "hopper_fp8": ("hopper_wgmma", 128),
    "hopper_fp8_fast": ("hopper_wgmma", 0),
}
#: The accumulation of a call that names none, and its c_enters.
_UNSTATED: Final = (None, None, "ascending", None, "fp32", 0, False, 1, "contiguous", 1, "ascending",
                    "none", 0, "last")


@dataclass(frozen=True)
class ProductError:
    """Errors of a product against the exact product, in binary64.

    Attributes
    ----------
    count, nonfinite, unequal : int
        Number of elements; of elements whose result or exact value is not finite, which no other
        field counts; of elements that differ.
    mean, max : float
        Mean and maximum of abs(error).
    signal, noise : float
        Sums of exact^2 and of error^2.
    rounding_noise, accumulation_noise : float
        The part of the noise that rounding to the result's format explains; the noise of the
        accumulation.
    octaves : list of int
        octaves[i] counts 2^-(i+1) <= abs(error / exact) < 2^-i.
    """

    count: int
    nonfinite: int
    unequal: int
    mean: float
    max: float
    signal: float
    noise: float
    rounding_noise: float
    accumulation_noise: float
    octaves: list[int]


@dataclass(frozen=True, eq=False)
class Prediction:
    """A product as a tensor core computes it.

    Attributes
    ----------
    value : array [M, N]
    evidence : str
        hardware: the model reproduces results that samebits measured on a GPU. published: it
        reproduces results of GPUs that others published. literature: others describe it. none: no
        tensor core computes by this rule.
    error : ProductError
        Error of `value` against the exact product.
    """

    value: Any
    evidence: str
    error: ProductError


def _accumulator(sum: object, unit: object, order: object, promotion: int | None, result: object,
                 products: int) -> tuple[Any, ...]:
    """Return an accumulator without slices as samebits._core expects it: (kind, order, unit, ...)."""
    if unit is None:
        if isinstance(sum, str) and sum.lower().replace("-", "_") == "tensor_core":
            raise InvalidArgument("sum: a tensor core is chosen by unit=")
        return ("exact" if sum is None else sum, order, ..., 0 if promotion is None else promotion,
                "fp32", 0)
    if sum is not None:
        raise InvalidArgument("sum: pass sum= or unit=, not both")
    name = choose("unit", unit, [*_UNITS, *_NICKNAMES])
    name, every = _NICKNAMES.get(name, (name, 0))
    return ("tensor_core", order, name.replace("_", "-"),
            every if promotion is None else promotion, result, products)


def _scales_of(x: QuantizedTensor) -> tuple[Any, str]:
    """Return scales and their format; with two levels, by what the values of codes are multiplied."""
    rules = x.recipe
    if x.tensor_scale is None:
        return x.scales, rules.scale_format
    ones = np.full((x.scales.shape[0], 16 * x.scales.shape[1]), 2, np.uint8)
    full = dequantize(ones, x.scales, tile=(1, 16), format="e2m1", scale_format=rules.scale_format,
                      scale=rules.scale, tensor_scale=x.tensor_scale)
    return full[:, ::16], "fp32"


def _operand(x: Any, tile: object, scales: Any, format: object, name: str) -> tuple[tuple[Any, ...], Any]:
    """Return an operand as samebits._core takes it, and its tile."""
    if isinstance(x, QuantizedTensor):
        if scales is not None or tile is not None:
            raise InvalidArgument(f"{name}_scales, {name}_tile: a QuantizedTensor has its own; "
                                  "pass neither")
        return (x.codes, x.format, *_scales_of(x)), x.recipe.tile
    return (x, format, scales, None), (0, 0) if tile is None else tile


def _product(
    call: Any,
    a: Any,
    b: Any,
    out: object,
    sum: object,
    unit: object,
    order: object,
    *,
    rule: str | None = None,
    promotion: int | None = None,
    unit_result: FormatLike = "fp32",
    products: int = 0,
    fp32_as_tf32: bool = False,
    slices: int = 1,
    slice_order: SliceOrder = "contiguous",
    slice_tile: int = 1,
    slice_sum: SliceSum = "ascending",
    slice_rounding: SliceRounding = "none",
    residue_tile: int = 0,
    a_scales: Any = None,
    a_tile: tuple[int, int] | None = None,
    b_scales: Any = None,
    b_tile: tuple[int, int] | None = None,
    scale_order: ScaleOrder | None = None,
    c: Any = None,
    c_enters: Addend = "last",
    a_format: FormatLike | None = None,
    b_format: FormatLike | None = None,
    threads: int | None = None,
    backend: str | None = None,
) -> Any:
    """Return the result of _core.matmul or _core.predict.

    Parameters
    ----------
    rule : str, optional
        A rule that `find_rule` returned, instead of sum, unit, order, c_enters and the options below
        up to residue_tile.
    promotion, unit_result, products
        Elements of K between promotions to fp32 (0: none), of a unit, or of ieee_fp32 in each slice;
        for a unit, the format of its sums and products per instruction (0: the widest instruction).
    fp32_as_tf32 : bool
        For a unit: operands in fp32 are rounded to tf32, to nearest even, as cuBLAS does.
    slices, slice_order, slice_tile, slice_sum, slice_rounding, residue_tile
        Slices of K that are summed by themselves, as in split K: their number; contiguous or cyclic;
        elements of K that stay together; the order of their additions, ascending or halves;
        roundings to the result's format before the last, none, each or running; the K of a kernel's
        tile if its slices begin with the residue (0: they do not).
    a_scales, a_tile, b_scales, b_tile
        Dequantization scales in fp32 or e8m0, for exact also e4m3; and the tile of one scale in each
        operand. Tiles of 16, 32, 64 and 256 along K are for exact alone.
    scale_order : str, optional
        Order in which scales are applied; by default cuBLASLt's.
    c : array [M, N], optional
        Matrix that is added, in fp32, fp16 or bf16.
    c_enters : str
        last: `c` is added after the scales. first: the sum starts from `c`. after_first_slice: `c`
        is added to the sum of the first slice.
    a_format, b_format : str or dtype, optional
        Formats of operands whose dtypes do not say them.
    threads, backend
        As in `convert`.

    Raises
    ------
    InvalidArgument, Unsupported
        An argument was refused, or no model has this product; nothing was written.
    """
    slicing = (fp32_as_tf32, slices, slice_order, slice_tile, slice_sum, slice_rounding, residue_tile)
    if rule is None:
        accumulator = (*_accumulator(sum, unit, order, promotion, unit_result, products), *slicing)
    elif (sum, unit, order, promotion, unit_result, products, *slicing, c_enters) != _UNSTATED:
        raise InvalidArgument("rule: pass no other option of the accumulation, and no c_enters")
    else:
        *members, c_enters = _core.parse_rule(rule)
        accumulator = tuple(members)
    left, left_tile = _operand(a, a_tile, a_scales, a_format, "a")
    right, right_tile = _operand(b, b_tile, b_scales, b_format, "b")
    how = left_tile, right_tile, scale_order, c_enters
    return call(left, right, c, out, accumulator, how, (threads, backend, None))


@options_of(_product)
def matmul(
    a: Any,
    b: Any,
    *,
    sum: AccumulatorKind | None = None,
    unit: Unit | None = None,
    out: Any = "fp32",
    order: Fp32Order = "ascending",
    **options: Unpack[ProductOptions],
) -> Any:
    """Return the matrix product a [M, K] * b [K, N] + c, on the CPU.

    Parameters
    ----------
    a, b : array [M, K] and [K, N], or QuantizedTensor
        Any format but fp64 and e8m0. Pass weights [N, K] as ``w.T``, which copies nothing.
    sum : str, optional
        exact (default: each element is rounded once), ieee_fp32 or fp32_per_128.
    unit : str, optional
        A tensor core: hopper_fp8 (cuBLASLt's FP8 products on Hopper), hopper_fp8_fast (with fast
        accumulation), volta_mma, turing_mma, ampere_mma, ada_mma, hopper_mma_sync, hopper_wgmma,
        blackwell_mma_sync, blackwell_tcgen05, blackwell_rtx_mma.
    out : str, dtype or array [M, N]
        fp32, fp16, bf16, and fp64 for exact; or an array in one of them, which receives the result.
    order : str
        Order of the sums of ieee_fp32: ascending, ascending_fused or tree.

    Returns
    -------
    array [M, N]

    Examples
    --------
    >>> a = np.float16([[1, 2], [3, 4]])
    >>> sb.matmul(a, a.T, out="fp32")
    array([[ 5., 11.],
           [11., 25.]], dtype=float32)
    """
    return _product(_core.matmul, a, b, out, sum, unit, order, **options)


@options_of(_product, matmul)
def predict(a: Any, b: Any, unit: Unit | None = None, *, out: Any = "fp32",
            **options: Unpack[ProductOptions]) -> Prediction:
    """Return the product as a tensor core computes it, its evidence and its error.

    Pass `unit` or `rule`.

    Examples
    --------
    >>> p = sb.predict(np.ones((2, 64), np.float16), np.ones((64, 2), np.float16), "hopper_wgmma")
    >>> p.evidence, p.error.unequal
    ('hardware', 0)
    """
    if unit is None and options.get("rule") is None:
        raise TypeError(f"unit: a tensor core is expected, one of {', '.join(_UNITS)}")
    value, evidence, error = _product(_core.predict, a, b, out, None, unit, "ascending", **options)
    return Prediction(value, evidence, ProductError(*error))


@options_of(_product, matmul)
def find_rule(
    a: Any,
    b: Any,
    d: Any,
    *,
    c: Any = None,
    units: Iterable[TensorUnit] = ("hopper_wgmma", "hopper_mma_sync"),
    max_slices: int = 64,
    sample: int = 16,
    a_scales: Any = None,
    a_tile: tuple[int, int] | None = None,
    b_scales: Any = None,
    b_tile: tuple[int, int] | None = None,
    scale_order: ScaleOrder | None = None,
    a_format: FormatLike | None = None,
    b_format: FormatLike | None = None,
    threads: int | None = None,
    backend: str | None = None,
) -> list[str]:
    """Return the rules by which a * b + c has the bits of `d`, simplest first.

    Rules are searched by their number of slices, contiguous slices before cyclic ones. All rules of
    the first division of K with a rule that fits are returned; of rules that compute alike for this
    K, one.

    Parameters
    ----------
    d : array [M, N]
        The product, in fp32, fp16 or bf16, as a GPU returned it.
    c : array [M, N], optional
        Matrix that was added, such as ``np.broadcast_to(bias, d.shape)``.
    units : names
        Tensor cores that the product may have used.
    max_slices : int
        Largest number of slices that is tried.
    sample : int
        At most this many rows and columns of `d` are compared, evenly spaced; 0: all.

    Returns
    -------
    list of str
        Rules for the argument `rule` of `matmul` and `predict`; empty if no rule fits. Also the
        options of samebits_matmul() in C.

    Raises
    ------
    InvalidArgument
        An argument was refused.

    Examples
    --------
    >>> a = np.random.default_rng(1).standard_normal((16, 256)).astype(np.float16)
    >>> d = sb.matmul(a, a.T, unit="hopper_wgmma", slices=4, slice_tile=64)
    >>> rules = sb.find_rule(a, a.T, d)
    >>> rules
    ['sum=tensor_core unit=hopper-wgmma slices=4 slice_tile=64']
    >>> bool((sb.matmul(a, a.T, rule=rules[0]) == d).all())
    True
    """
    if not hasattr(d, "dtype") or isinstance(d, type):
        raise TypeError("d: an array is expected")
    if isinstance(units, (str, bytes)) or not isinstance(units, Iterable):
        raise TypeError(f"units: names of tensor cores are expected, got {units!r}")
    names = [choose("units", unit, _UNITS).replace("_", "-") for unit in units]

    def search(left: Any, right: Any, c: Any, d: Any, _sum: Any, how: Any, where: Any) -> Any:
        return _core.find_rule(left, right, c, d, how, (names, max_slices, sample), where)

    found: list[str] = _product(
        search, a, b, d, None, None, "ascending", c=c, a_scales=a_scales, a_tile=a_tile,
        b_scales=b_scales, b_tile=b_tile, scale_order=scale_order, a_format=a_format,
        b_format=b_format, threads=threads, backend=backend)
    return found


_product.__qualname__ = "matmul"  # Python's messages about keyword arguments name the function
