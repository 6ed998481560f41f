"""Matrix products with an exactly specified accumulation, including those of tensor cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.formats import INDEX, choose, format_index
from samebits.quantize import QuantizedTensor
from samebits.rules import optional_format

__all__ = ["Prediction", "ProductError", "matmul", "predict"]

_KINDS: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("accumulator_kind"))}
_FP32_ORDERS: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("fp32_order"))}
_SCALE_ORDERS: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("scale_order"))}
_ADDENDS: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("addend"))}
_UNITS: Final[dict[str, int]] = {
    n.replace("-", "_"): i for i, n in enumerate(_core.names("tensor_unit"))
}
#: Common names of units, with the unit and the number of elements of K between promotions.
_NICKNAMES: Final[dict[str, tuple[str, int]]] = {
    "hopper_fp8": ("hopper_wgmma", 128),
    "hopper_fp8_fast": ("hopper_wgmma", 0),
}


@dataclass(frozen=True)
class ProductError:
    """Errors of a product against the exact product, in binary64.

    Attributes
    ----------
    count, nonfinite, unequal : int
        Number of elements; of elements whose result or exact value is not finite, which no other
        field counts; of elements that differ.
    mean, max : float
        Mean and maximum of |error|.
    signal, noise : float
        Sums of exact^2 and of error^2.
    rounding_noise, accumulation_noise : float
        The part of the noise that rounding to the result's format explains; the noise of the
        accumulation.
    octaves : list of int
        octaves[i] counts 2^-(i+1) <= \\|error\\| / \\|exact\\| < 2^-i.
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
        reproduces results of GPUs that others published. literature: others describe it.
    error : ProductError
        Error of `value` against the exact product.
    """

    value: Any
    evidence: str
    error: ProductError


def _accumulator(sum: str | None, unit: str | None, order: str, promotion: int | None,
                 result: object, products: int) -> tuple[int, int, int, int, int, int]:
    """Return the accumulator as samebits._core expects it: (kind, order, unit, promotion, ...)."""
    if unit is not None:
        if sum is not None:
            raise InvalidArgument("sum: pass sum= or unit=, not both")
        name = unit.lower().replace("-", "_") if isinstance(unit, str) else unit
        name, every = _NICKNAMES.get(name, (name, 0))
        number = choose("unit", name, _UNITS | dict.fromkeys(_NICKNAMES, -1))
        return (_KINDS["tensor_core"], 0, number, every if promotion is None else promotion,
                format_index(result, "unit_result"), products)
    kind = choose("sum", sum or "exact", {k: v for k, v in _KINDS.items() if k != "tensor_core"})
    return kind, choose("order", order, _FP32_ORDERS), 0, 0, INDEX["fp32"], 0


def _operand(x: Any, tile: tuple[int, int] | None, scales: Any, format: object, name: str,
             ) -> tuple[Any, int, Any, tuple[int, int], int]:
    """Return an operand's array, format, scales, tile, and format of the scales."""
    if isinstance(x, QuantizedTensor):
        if scales is not None or tile is not None:
            raise InvalidArgument(f"{name}_scales, {name}_tile: a QuantizedTensor has its own; "
                                  "pass neither")
        return (x.codes, INDEX[x.format], x.scales, x.recipe.tile, INDEX[x.recipe.scale_format])
    number = optional_format(format)
    return x, number, scales, tile or (0, 0), -1


def _prepare(a: Any, b: Any, out: object, options: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of _core.matmul and _core.predict; item 4 is the result's array."""
    a, a_format, a_scales, a_tile, a_scale_format = _operand(
        a, options["a_tile"], options["a_scales"], options["a_format"], "a")
    b, b_format, b_scales, b_tile, b_scale_format = _operand(
        b, options["b_tile"], options["b_scales"], options["b_format"], "b")
    shape_a, _ = _core.describe(a, "a", a_format)
    shape_b, _ = _core.describe(b, "b", b_format)
    if len(shape_a) != 2 or len(shape_b) != 2:
        raise InvalidArgument(f"a, b: arrays with two axes are expected; got {shape_a}, {shape_b}")
    if isinstance(out, str) or not hasattr(out, "dtype") or isinstance(out, type):
        to = format_index(out, "out")
        value = _core.empty_like(a, (shape_a[0], shape_b[1]), to)
    else:
        value, to = out, _core.describe(out, "out", -1)[1]
    order = options["scale_order"]
    scales = (a_scales, a_tile, b_scales, b_tile, options["c"],
              choose("c_enters", options["c_enters"], _ADDENDS), a_scale_format, b_scale_format,
              -1 if order is None else choose("scale_order", order, _SCALE_ORDERS))
    accumulator = _accumulator(options["sum"], options["unit"], options["order"],
                               options["promotion"], options["unit_result"], options["products"])
    return (a, a_format, b, b_format, value, to, accumulator, scales, options["threads"],
            options["backend"])


def matmul(
    a: Any,
    b: Any,
    *,
    sum: str | None = None,
    unit: str | None = None,
    out: Any = "fp32",
    order: str = "ascending",
    promotion: int | None = None,
    unit_result: object = "fp32",
    products: int = 0,
    a_scales: Any = None,
    a_tile: tuple[int, int] | None = None,
    b_scales: Any = None,
    b_tile: tuple[int, int] | None = None,
    scale_order: str | None = None,
    c: Any = None,
    c_enters: str = "last",
    a_format: object = None,
    b_format: object = None,
    threads: int | None = None,
    backend: str | None = None,
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
    promotion, unit_result, products
        For a unit: elements of K between promotions to fp32 (0: none); format of the unit's sums;
        products per instruction (0: the widest instruction).
    a_scales, a_tile, b_scales, b_tile
        Dequantization scales in fp32 or e8m0, and the tile of one scale in each operand.
    scale_order : str, optional
        Order in which scales are applied; by default cuBLASLt's.
    c : array [M, N], optional
        Matrix that is added, in fp32, fp16 or bf16.
    c_enters : str
        last: `c` is added after the scales. first: the sum starts from `c`.
    a_format, b_format : str or dtype, optional
        Formats of operands whose dtypes do not say them.
    threads, backend
        As in `convert`.

    Returns
    -------
    array [M, N]

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> a = np.float16([[1, 2], [3, 4]])
    >>> sb.matmul(a, a.T, out="fp32")
    array([[ 5., 11.],
           [11., 25.]], dtype=float32)
    """
    arguments = _prepare(a, b, out, dict(locals()))
    _core.matmul(*arguments)
    return arguments[4]


def predict(a: Any, b: Any, unit: str, *, out: Any = "fp32", **options: Any) -> Prediction:
    """Return the product as a tensor core computes it, its evidence and its error.

    Parameters
    ----------
    a, b, unit, out
        As in `matmul`.
    **options
        promotion, unit_result, products, a_scales, a_tile, b_scales, b_tile, scale_order, c,
        c_enters, a_format, b_format, threads, backend, as in `matmul`.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> p = sb.predict(np.ones((2, 64), np.float16), np.ones((64, 2), np.float16), "hopper_wgmma")
    >>> p.evidence, p.error.unequal
    ('hardware', 0)
    """
    defaults: dict[str, Any] = {
        "sum": None, "unit": unit, "order": "ascending", "promotion": None, "unit_result": "fp32",
        "products": 0, "a_scales": None, "a_tile": None, "b_scales": None, "b_tile": None,
        "scale_order": None, "c": None, "c_enters": "last", "a_format": None, "b_format": None,
        "threads": None, "backend": None,
    }
    unknown = set(options) - set(defaults)
    if unknown:
        raise TypeError(f"predict() has no argument {sorted(unknown)[0]!r}")
    if unit is None:
        raise TypeError(f"unit: a tensor core is expected, one of {', '.join(_UNITS)}")
    arguments = _prepare(a, b, out, defaults | options)
    evidence, error = _core.predict(*arguments)
    return Prediction(arguments[4], evidence, ProductError(*error))
