"""What a conversion loses: underflow, overflow, signal-to-noise ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from samebits import _core
from samebits.convert import convert
from samebits.formats import NAMES, finfo, format_index

if TYPE_CHECKING:
    from samebits.typing import Overflow, Rounding

__all__ = ["ConversionLoss"]

_CHUNK = 1 << 20


@dataclass(frozen=True)
class ConversionLoss:
    """What a conversion loses.

    Attributes
    ----------
    format : str
        The format converted to.
    elements, nonfinite : int
        Number of elements; number of NaN and Inf among them. No other field counts NaN and Inf.
    underflowed : int
        Finite elements other than zero that become zero.
    overflowed : int
        Finite elements beyond the format's largest finite value; they become this value, Inf or
        NaN.
    inexact : int
        Finite elements whose value changes.
    signal, noise : float
        Sums of x^2 and of (x - converted)^2 over the elements that stay finite.
    """

    format: str
    elements: int
    nonfinite: int
    underflowed: int
    overflowed: int
    inexact: int
    signal: float
    noise: float

    @property
    def sqnr(self) -> float:
        """Signal-to-quantization-noise ratio in decibels."""
        if self.noise == 0:
            return math.inf
        return 10 * math.log10(self.signal / self.noise) if self.signal > 0 else -math.inf

    def __str__(self) -> str:
        return (f"to {self.format}: {self.elements} elements, {self.underflowed} underflow to 0, "
                f"{self.overflowed} overflow, SQNR {self.sqnr:.1f} dB")


def conversion_loss(arrays: list[Any], to: object, format: Any, rounding: Rounding,
                    overflow: Overflow) -> ConversionLoss:
    """Return what the conversion of all arrays together loses. The arrays are in host memory."""
    name = NAMES[format_index(to, "format")]
    largest = finfo(name).max
    elements = nonfinite = underflowed = overflowed = inexact = 0
    signal = noise = 0.0
    for array in arrays:
        shape = _core.describe(array, "tensors", format)[0]
        wide = convert(array, "fp64", format=format, out=np.empty(shape)).reshape(-1)
        for first in range(0, wide.size, _CHUNK):
            x = wide[first : first + _CHUNK]
            y = convert(convert(x, name, rounding=rounding, overflow=overflow), "fp64",
                        format=name)
            finite, kept = np.isfinite(x), np.isfinite(x) & np.isfinite(y)
            x, y = np.where(finite, x, 0.0), np.where(kept, y, 0.0)
            beyond = finite & (np.abs(x) > largest) & (~kept | (np.abs(y) == largest))
            elements += x.size
            nonfinite += x.size - int(np.count_nonzero(finite))
            underflowed += int(np.count_nonzero(kept & (x != 0) & (y == 0)))
            overflowed += int(np.count_nonzero(beyond))
            inexact += int(np.count_nonzero(finite & (x != y)))
            signal += float(np.sum(np.where(kept, x * x, 0.0)))
            noise += float(np.sum(np.where(kept, (x - y) ** 2, 0.0)))
    return ConversionLoss(name, elements, nonfinite, underflowed, overflowed, inexact, signal,
                          noise)
