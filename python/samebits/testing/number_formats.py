"""The formats of the test kit: parts of codes, arrays of codes, codes that kernels get wrong.

Codes are arrays of uint64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.convert import convert
from samebits.formats import FloatInfo, dtype_of, finfo

Codes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Format(FloatInfo):
    """A number format. A magnitude is a code without its sign and without its unused bits."""

    name: Any

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of NumPy or ml_dtypes; unsigned integers without ml_dtypes."""
        return dtype_of(self.name)

    @cached_property
    def code_dtype(self) -> np.dtype[Any]:
        """Unsigned integer dtype that holds one code."""
        return np.dtype(f"u{self.storage_bits // 8}")

    @cached_property
    def unused_low_bits(self) -> int:
        """Number of low bits of a code that are written as 0 and ignored when read."""
        return self.storage_bits - self.bits if self.storage_bits > 8 else 0

    @cached_property
    def sign(self) -> int:
        """Code with only the sign bit set; 0 without sign."""
        has_sign = self.bits > self.exponent_bits + self.mantissa_bits
        return 1 << (self.bits - 1 + self.unused_low_bits) if has_sign else 0

    @cached_property
    def one(self) -> int:
        """Code of 1.0."""
        return self.bias << self.mantissa_bits << self.unused_low_bits

    @cached_property
    def max_magnitude(self) -> int:
        """Magnitude of the largest finite number."""
        return self.code_of(self.max) >> self.unused_low_bits

    @cached_property
    def canonical_nan(self) -> int:
        """Code of the canonical NaN; of the largest finite number if there is no NaN."""
        return self.code_of(np.nan)

    def code_of(self, x: float) -> int:
        """Return the code of a number, rounded to the format."""
        return int(np.asarray(convert(np.array([x]), self.name)).view(self.code_dtype)[0])


@cache
def format_named(name: Any) -> Format:
    """Return the format of a name or of a dtype.

    Raises
    ------
    InvalidArgument
        No format has this name. The message lists the names.

    Examples
    --------
    >>> format_named("bfloat16").mantissa_bits
    7
    >>> format_named(np.float32).name
    'fp32'
    """
    return Format(**vars(finfo(name)))


def values(codes: Codes, f: Format) -> npt.NDArray[np.float64]:
    """Return the exact values of codes; binary64 holds the numbers of every format.

    Examples
    --------
    >>> values(np.array([0x38, 0xC0, 0x7F], np.uint64), format_named("e4m3")).tolist()
    [1.0, -2.0, nan]
    """
    return np.asarray(convert(array_of(codes, f), "fp64", format=f.name))


def codes_of(array: npt.NDArray[Any], f: Format) -> Codes:
    """Return the codes of an array of the format's dtype or of unsigned integers of its width.

    Raises
    ------
    TypeError
        If the array has another dtype.
    """
    if array.dtype not in (f.code_dtype, f.dtype):
        raise TypeError(f"expected an array of {f.dtype} or of {f.code_dtype} codes for {f.name}, "
                        f"got {array.dtype}")
    return array.view(f.code_dtype).astype(np.uint64)


def array_of(codes: Codes, f: Format) -> npt.NDArray[Any]:
    """Return codes as an array of the format's dtype; a view of codes in `f.code_dtype`."""
    return codes.astype(f.code_dtype, copy=False).view(f.dtype)


def drawn_codes(source: Format, target: Format, count: int, seed: int) -> Codes:
    """Return codes that conversions get wrong: special ones, a target's numbers, ties and edges.

    Bits that are ignored when read may be set.
    """
    return np.frombuffer(_core.draw_codes(source.name, target.name, count, seed), np.uint64)


@cache
def special_codes(f: Format) -> Codes:
    """Return zeros, subnormals, numbers beside 1 and the extremes, Inf and NaNs, of both signs."""
    return np.array(_core.special_codes(f.name), np.uint64)
