"""The number formats as the test kit knows them: a table of its own, decoding, and values.

The table repeats contract §1, so that inputs and texts do not depend on the library's own. All
functions are pure and work on arrays of codes (``uint64``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from samebits.formats import format_name

Codes = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NanStyle = Literal["ieee", "top", "negative_zero", "none"]


@dataclass(frozen=True)
class Format:
    """A number format: one row of contract §1.

    `nan` says which codes are NaN: "ieee" exponent all ones and mantissa not 0, "top" the largest
    magnitude, "negative_zero" the code of −0 (fnuz), "none" no code.
    """

    name: Any
    sign_bits: int
    exponent_bits: int
    mantissa_bits: int
    bias: int
    nan: NanStyle
    storage_bits: int
    dtype: str  # of NumPy or ml_dtypes
    unused_low_bits: int = 0  # low bits of a code that are written as 0 and ignored when read

    @property
    def magnitude_bits(self) -> int:
        return self.exponent_bits + self.mantissa_bits

    @property
    def has_inf(self) -> bool:
        return self.nan == "ieee"

    @property
    def max_magnitude(self) -> int:
        """Magnitude of the largest finite number; a magnitude has no sign and no unused bits."""
        every_bit = (1 << self.magnitude_bits) - 1
        if self.nan == "ieee":
            return every_bit - (1 << self.mantissa_bits)
        return every_bit - 1 if self.nan == "top" else every_bit

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest subnormal; for e8m0, of its smallest number."""
        return (1 if self.sign_bits else 0) - self.bias - self.mantissa_bits

    @property
    def sign(self) -> int:
        """Code with only the sign bit set; 0 without sign."""
        return self.sign_bits << (self.magnitude_bits + self.unused_low_bits)

    @property
    def canonical_nan(self) -> int:
        """Code of the canonical NaN; of the largest finite number if there is no NaN."""
        if self.nan == "negative_zero":
            return self.sign
        return ((1 << self.magnitude_bits) - 1) << self.unused_low_bits

    @property
    def code_dtype(self) -> np.dtype[Any]:
        """Unsigned integer dtype that holds one code."""
        return np.dtype(f"u{self.storage_bits // 8}")


def _row(name: str, fields: tuple[int, int, int], bias: int, nan: NanStyle, bits: int,
         dtype: str, low: int = 0) -> Format:
    return Format(name, *fields, bias, nan, bits, dtype, low)


FORMATS: dict[str, Format] = {f.name: f for f in (
    _row("fp64", (1, 11, 52), 1023, "ieee", 64, "float64"),
    _row("fp32", (1, 8, 23), 127, "ieee", 32, "float32"),
    _row("tf32", (1, 8, 10), 127, "ieee", 32, "float32", 13),
    _row("fp16", (1, 5, 10), 15, "ieee", 16, "float16"),
    _row("bf16", (1, 8, 7), 127, "ieee", 16, "bfloat16"),
    _row("e4m3", (1, 4, 3), 7, "top", 8, "float8_e4m3fn"),
    _row("e5m2", (1, 5, 2), 15, "ieee", 8, "float8_e5m2"),
    _row("e3m2", (1, 3, 2), 3, "none", 8, "float6_e3m2fn"),
    _row("e2m3", (1, 2, 3), 1, "none", 8, "float6_e2m3fn"),
    _row("e2m1", (1, 2, 1), 1, "none", 8, "float4_e2m1fn"),
    _row("e4m3fnuz", (1, 4, 3), 8, "negative_zero", 8, "float8_e4m3fnuz"),
    _row("e5m2fnuz", (1, 5, 2), 16, "negative_zero", 8, "float8_e5m2fnuz"),
    _row("e8m0", (0, 8, 0), 127, "top", 8, "float8_e8m0fnu"),
)}


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
    return name if isinstance(name, Format) else FORMATS[format_name(name)]


def dtype_of(f: Format) -> np.dtype[Any]:
    """Return the NumPy dtype of a format's arrays; unsigned integers without ml_dtypes."""
    if f.storage_bits >= 16 and f.dtype != "bfloat16":
        return np.dtype(f.dtype)
    try:
        import ml_dtypes
    except ImportError:
        return f.code_dtype
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, f.dtype))
    return found


@dataclass(frozen=True)
class Decoded:
    """The numbers of an array of codes: (−1)^negative · significand · 2^exponent."""

    negative: Mask
    nan: Mask
    inf: Mask
    significand: Codes  # 0 for NaN, Inf and zeros
    exponent: Integers


def magnitudes(codes: Codes, f: Format) -> Codes:
    """Return the codes without sign and unused bits."""
    return (codes >> np.uint64(f.unused_low_bits)) & np.uint64((1 << f.magnitude_bits) - 1)


def is_nan(codes: Codes, f: Format) -> Mask:
    """Return which codes are NaN.

    Examples
    --------
    >>> is_nan(np.array([0x7E, 0x7F, 0xFF], np.uint64), FORMATS["e4m3"]).tolist()
    [False, True, True]
    """
    if f.nan == "none":
        return np.zeros(codes.shape, np.bool_)
    first_nan = f.max_magnitude + (2 if f.has_inf else 1)
    found: Mask = magnitudes(codes, f) >= np.uint64(first_nan)
    if f.nan == "negative_zero":
        found = (codes & np.uint64(0xFF)) == np.uint64(f.sign)
    return found


def is_inf(codes: Codes, f: Format) -> Mask:
    """Return which codes are infinite."""
    if not f.has_inf:
        return np.zeros(codes.shape, np.bool_)
    found: Mask = magnitudes(codes, f) == np.uint64(f.max_magnitude + 1)
    return found


def is_subnormal(codes: Codes, f: Format) -> Mask:
    """Return which codes are subnormal numbers."""
    if not f.sign_bits:
        return np.zeros(codes.shape, np.bool_)
    m = magnitudes(codes, f)
    found: Mask = (m != 0) & (m < np.uint64(1 << f.mantissa_bits))
    return found


def decode(codes: Codes, f: Format) -> Decoded:
    """Return the exact numbers of codes."""
    codes = np.asarray(codes, np.uint64)
    m = magnitudes(codes, f)
    nan, inf = is_nan(codes, f), is_inf(codes, f)
    field = (m >> np.uint64(f.mantissa_bits)).astype(np.int64)
    fraction = m & np.uint64((1 << f.mantissa_bits) - 1)
    if not f.sign_bits:
        significand, exponent = np.ones_like(m), field - f.bias
    else:
        hidden = np.where(field > 0, np.uint64(1 << f.mantissa_bits), np.uint64(0))
        significand, exponent = fraction | hidden, np.maximum(field, 1) - 1 + f.min_exponent
    significand = np.where(nan | inf, np.uint64(0), significand)
    negative = (codes & np.uint64(f.sign)) != 0
    if f.nan == "negative_zero":
        negative &= ~nan
    return Decoded(negative, nan, inf, significand, exponent)


def values(codes: Codes, f: Format) -> npt.NDArray[np.float64]:
    """Return the exact values of codes; binary64 holds the numbers of every format.

    Examples
    --------
    >>> values(np.array([0x38, 0xC0, 0x7F], np.uint64), FORMATS["e4m3"]).tolist()
    [1.0, -2.0, nan]
    """
    d = decode(codes, f)
    with np.errstate(all="ignore"):
        size = np.ldexp(d.significand.astype(np.float64), d.exponent.astype(np.int32))
    size = np.where(d.nan, np.nan, np.where(d.inf, np.inf, size))
    return np.where(d.negative, -size, size)


def codes_of(array: npt.NDArray[Any], f: Format) -> Codes:
    """Return the codes of an array of the format's dtype or of unsigned integers of its width.

    Raises
    ------
    TypeError
        If the array has another dtype.
    """
    dtype = array.dtype
    if dtype != f.code_dtype and dtype != np.dtype(dtype_of(f)):
        raise TypeError(f"expected an array of {dtype_of(f)} or of {f.code_dtype} codes for "
                        f"{f.name}, got {dtype}")
    return array.view(f.code_dtype).astype(np.uint64)


def array_of(codes: Codes, f: Format) -> npt.NDArray[Any]:
    """Return codes as an array of the format's dtype; a view of codes in `f.code_dtype`."""
    return codes.astype(f.code_dtype, copy=False).view(dtype_of(f))
