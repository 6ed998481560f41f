"""Operations on lists of tensors: inspect, unscale, scale, clip, accumulate, cast."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from samebits import _core
from samebits.list_arguments import named, paired, results_of
from samebits.losses import ConversionLoss, conversion_loss
from samebits.rules import options_of

if TYPE_CHECKING:
    from samebits.typing import FormatLike, NanPolicy, Overflow, Rounding

__all__ = [
    "ClipReport",
    "InspectReport",
    "TensorStatistics",
    "UnscaleReport",
    "accumulate",
    "axpby",
    "cast",
    "clip",
    "inspect",
    "l2norm",
    "scale",
    "unscale",
]


def _value_of_bits(bits: int) -> float:
    """Return the value of binary32 bits."""
    exponent, mantissa = bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 255:
        return math.nan if mantissa else math.inf
    if exponent == 0:  # converting a float would flush it where the process flushes subnormals
        return math.ldexp(mantissa, -149)
    return math.ldexp(mantissa | 1 << 23, exponent - 150)


@dataclass(frozen=True)
class TensorStatistics:
    """Statistics of one tensor, or of all tensors of a list.

    Attributes
    ----------
    elements, nan, inf : int
    zeros, subnormals : int
        0 if ``distribution=False``.
    amax : float
        Largest magnitude; NaN if any element is NaN.
    amax_bits : int
        `amax` as binary32 bits.
    squares, norm : float
        Sum of the squares in binary64, in the order of `sum`; its square root, the L2 norm.
    """

    elements: int
    nan: int
    inf: int
    zeros: int
    subnormals: int
    amax_bits: int
    squares: float
    norm: float

    @property
    def amax(self) -> float:
        """Largest magnitude."""
        return _value_of_bits(self.amax_bits)


@dataclass(frozen=True)
class InspectReport:
    """Statistics that `inspect` returns.

    Attributes
    ----------
    total : TensorStatistics
        Statistics of all tensors together.
    tensors : dict of str to TensorStatistics
        Statistics of each tensor. Tensors of a sequence have their positions as names.
    first_bad : str or None
        Name of the first tensor with NaN or Inf.
    exponents : list of int
        exponents[f] is the number of elements whose fp32 value has the exponent field f, 0 .. 255;
        all 0 if ``distribution=False``.
    """

    total: TensorStatistics
    tensors: dict[str, TensorStatistics]
    first_bad: str | None
    exponents: list[int]
    _arrays: list[Any] = field(repr=False, compare=False)
    _format: object = field(repr=False, compare=False)

    def to(self, format: FormatLike, *, rounding: Rounding = "nearest_even",
           overflow: Overflow = "saturate") -> ConversionLoss:
        """Return what a conversion of the inspected arrays to a format would lose.

        Reads the arrays again, as they are now.

        Examples
        --------
        >>> print(sb.inspect(np.float32([1, 1e-9, 1e9])).to("e4m3"))
        to e4m3: 3 elements, 1 underflow to 0, 1 overflow, SQNR 0.0 dB
        """
        return conversion_loss(self._arrays, format, self._format, rounding, overflow)

    def __str__(self) -> str:
        t = self.total
        count = len(self.tensors)
        return (f"{t.elements} elements in {count} tensor{'s' * (count != 1)}: {t.nan} NaN, {t.inf} Inf, "
                f"{t.zeros} zeros, {t.subnormals} subnormal, amax {t.amax:.6g}, "
                f"norm {t.norm:.6g}")


@dataclass(frozen=True)
class UnscaleReport:
    """Report of `unscale`.

    Attributes
    ----------
    elements : int
    nonfinite : int
        NaN or Inf before unscaling.
    overflowed : int
        Finite before unscaling, not finite after.
    first_bad : str or None
        Name of the first tensor with nonfinite or overflowed elements.
    amax_bits : int
        Largest magnitude before unscaling, as binary32 bits.
    """

    elements: int
    nonfinite: int
    overflowed: int
    first_bad: str | None
    amax_bits: int

    @property
    def amax(self) -> float:
        """Largest magnitude before unscaling."""
        return _value_of_bits(self.amax_bits)


@dataclass(frozen=True)
class ClipReport:
    """Norm of all tensors together before `clip`, and the factor that multiplied the tensors."""

    norm: float
    factor: float


def inspect(tensors: Any, *, format: FormatLike | None = None, distribution: bool = True,
            threads: int | None = None, backend: str | None = None,
            stream: Any = None) -> InspectReport:
    """Read every element once: count NaN, Inf, zeros and subnormals; find amax and norm.

    Waits for the device.

    Parameters
    ----------
    tensors : array, list of arrays, or dict of str to array
        In fp32, fp16 or bf16.
    format : str or dtype, optional
        The format of arrays whose dtype does not say it.
    distribution : bool
        Whether to count zeros, subnormals and exponents besides NaN and Inf.
    threads, backend, stream
        As in `convert`.

    Returns
    -------
    InspectReport

    Examples
    --------
    >>> report = sb.inspect({"w": np.float32([3, 4]), "b": np.float32([0, np.inf])})
    >>> report.total.inf, report.first_bad, report.tensors["w"].norm
    (1, 'b', 5.0)
    """
    arrays, names = named(tensors)
    total, each, first_bad, exponents = _core.inspect(
        arrays, names, format, distribution, (threads, backend, stream))
    return InspectReport(
        TensorStatistics(*total),
        {name: TensorStatistics(*row) for name, row in zip(names, each, strict=True)},
        first_bad, exponents, arrays, format)


@options_of(inspect)
def l2norm(tensors: Any, *, format: FormatLike | None = None, threads: int | None = None,
           backend: str | None = None, stream: Any = None) -> tuple[float, dict[str, float]]:
    """Return the L2 norm of all tensors together, and of each by name.

    Waits for the device.

    Examples
    --------
    >>> sb.l2norm([np.float32([3]), np.float32([4])])
    (5.0, {'0': 3.0, '1': 4.0})
    """
    arrays, names = named(tensors)
    total, each = _core.l2norm(arrays, names, format, (threads, backend, stream))
    return total, dict(zip(names, each, strict=True))


@options_of(inspect)
def unscale(tensors: Any, inverse_scale: float, *, format: FormatLike | None = None,
            threads: int | None = None, backend: str | None = None,
            stream: Any = None) -> UnscaleReport:
    """Multiply tensors by `inverse_scale` in place, and report NaN, Inf and amax from before.

    Waits for the device.

    Parameters
    ----------
    tensors : array, list of arrays, or dict of str to array
        In fp32, fp16 or bf16; written.
    inverse_scale : float
        Factor, rounded to fp32; not negative, not NaN.

    Raises
    ------
    InvalidArgument
        An argument was refused; nothing was written.

    Examples
    --------
    >>> g = np.float32([1024, np.inf])
    >>> sb.unscale({"w": g}, 1 / 1024).first_bad, g.tolist()
    ('w', [1.0, inf])
    """
    arrays, names = named(tensors)
    return UnscaleReport(*_core.unscale(arrays, names, format, inverse_scale,
                                        (threads, backend, stream)))


@options_of(unscale)
def scale(tensors: Any, factor: float, *, format: FormatLike | None = None,
          threads: int | None = None, backend: str | None = None, stream: Any = None) -> None:
    """Multiply tensors by `factor`, rounded to fp32, in place; no report.

    Examples
    --------
    >>> g = np.float32([3, 4])
    >>> sb.scale(g, 0.5)
    >>> g.tolist()
    [1.5, 2.0]
    """
    arrays, names = named(tensors)
    _core.scale(arrays, names, format, factor, (threads, backend, stream))


@options_of(unscale)
def clip(tensors: Any, max_norm: float, *, format: FormatLike | None = None, threads: int | None = None,
         backend: str | None = None, stream: Any = None) -> ClipReport:
    """Scale tensors in place so that their common L2 norm is at most `max_norm`.

    Writes no element if the factor is 1 or the norm is not finite. Waits for the device.

    Parameters
    ----------
    max_norm : float

    Examples
    --------
    >>> g = np.float32([3, 4])
    >>> sb.clip(g, 1.0).norm
    5.0
    """
    arrays, names = named(tensors)
    norm, factor = _core.clip(arrays, names, format, max_norm,
                              (threads, backend, stream))
    return ClipReport(norm, factor)


@options_of(inspect)
def accumulate(acc: Any, gradients: Any, *, scales: Any = None, format: FormatLike | None = None,
               threads: int | None = None, backend: str | None = None,
               stream: Any = None) -> None:
    """Add gradients to sums in place: acc = acc + gradient * scale, tensor by tensor.

    Parameters
    ----------
    acc : array, list of arrays, or dict of str to array
        Sums in fp32, fp16 or bf16; written.
    gradients : as `acc`
        In fp32, fp16, bf16, e4m3 or e5m2, of the shapes of `acc`.
    scales : array [tensors] of fp32, optional
        One factor for each tensor.
    format : str or dtype, optional
        The format of gradients whose dtype does not say it.

    Examples
    --------
    >>> total = np.float32([1, 1])
    >>> sb.accumulate(total, np.float16([2, 3]), scales=np.float32([0.5]))
    >>> total.tolist()
    [2.0, 2.5]
    """
    sums, terms, names = paired(acc, gradients, "acc", "gradients")
    _core.accumulate(sums, terms, names, format, scales, (threads, backend, stream))


@options_of(inspect)
def axpby(a: float, x: Any, b: float, y: Any, out: Any, *, threads: int | None = None,
          backend: str | None = None, stream: Any = None) -> None:
    """Write a * x + b * y into `out`, tensor by tensor; products and sum are rounded to fp32.

    Parameters
    ----------
    a, b : float
        Factors, rounded to fp32.
    x, y, out : array, list of arrays, or dict of str to array
        In fp32, fp16 or bf16, of the same shapes. `out` may be `x` or `y`.

    Examples
    --------
    >>> x = np.float32([1, 2])
    >>> sb.axpby(2.0, x, 0.5, np.float32([4, 8]), out=x)
    >>> x.tolist()
    [4.0, 8.0]
    """
    left, right, names = paired(x, y, "x", "y")
    _, into, _ = paired(x, out, "x", "out")
    _core.axpby(a, left, b, right, into, names, (threads, backend, stream))


def cast(tensors: Any, to: FormatLike, *, format: FormatLike | None = None,
         rounding: Rounding = "nearest_even", overflow: Overflow = "ieee",
         nan: NanPolicy = "canonical", seed: int | None = None, random_stream: int = 0,
         random_bits: int = 32, out: Any = None, threads: int | None = None,
         backend: str | None = None, stream: Any = None) -> Any:
    """Convert a list of tensors in one call; tensor i uses the random stream random_stream + i.

    Parameters
    ----------
    tensors : array, list of arrays, or dict of str to array
        In fp32, fp16, bf16, e4m3 or e5m2.
    to : str or dtype
        Format of the results: fp32, fp16, bf16, e4m3 or e5m2.
    out : as `tensors`, optional
        Receives the results.
    format, rounding, overflow, nan, seed, random_stream, random_bits, threads, backend, stream
        As in `convert`.

    Returns
    -------
    list of arrays, or dict of str to array

    Examples
    --------
    >>> sb.cast({"w": np.float32([1, 1.3])}, "fp16")
    {'w': array([1. , 1.3], dtype=float16)}
    """
    arrays, names = named(tensors)
    results = results_of("tensors", tensors, out, format, to)
    _core.cast(arrays, format, results, to, names,
               (rounding, overflow, nan, seed, random_stream, 0, None, random_bits),
               (threads, backend, stream))
    if isinstance(tensors, Mapping):
        return dict(zip(names, results, strict=True))
    return results
