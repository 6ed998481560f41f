"""Formats: their names, their NumPy dtypes and their properties."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from samebits import _core
from samebits.errors import InvalidArgument

if TYPE_CHECKING:
    from samebits.typing import Format, FormatLike

__all__ = ["FloatInfo", "dtype_of", "finfo", "format_name", "formats"]

#: The formats in the order of the C enum.
NAMES: Final[tuple[Format, ...]] = tuple(_core.enumerations()["format"])
INDEX: Final[dict[str, int]] = {name: i for i, name in enumerate(NAMES)}

#: The name of each format in NumPy, ml_dtypes and torch: float32, float8_e4m3fn, ...
_LIBRARY_NAMES: Final[dict[str, str]] = {"tf32": "float32", **{
    NAMES[_core.find_format(alias)]: alias for alias in _core.format_aliases()
    if re.match(r"b?float\d", alias)}}

#: Names that are no format of samebits, and what their users may have meant.
NOT_FORMATS: Final[dict[str, str]] = {
    "float8_e4m3": "the IEEE format with infinities; samebits has e4m3 (float8_e4m3fn)",
    "float8_e3m4": "no format of samebits",
    "f4": "float32 in NumPy, but FP4 in .safetensors; pass 'fp32' or 'e2m1'",
    "float8_e4m3b11fnuz": "bias 11; samebits has e4m3fnuz (float8_e4m3fnuz)",
}


def nearest_first(name: str, known: Iterable[str]) -> str:
    """Return the known names as one line, those most like `name` first."""
    names = list(known)
    folded = {n.lower(): n for n in names}
    close = [folded[n] for n in difflib.get_close_matches(name.lower(), folded, 3, 0.4)]
    return ", ".join(close + [n for n in names if n not in close])


def choose(argument: str, name: object, known: Iterable[str]) -> Any:
    """Return a name as it is known, also if it was written in another case or with other hyphens;
    refuse all other names with the list of the right ones."""
    if not isinstance(name, str):
        raise TypeError(f"{argument}: a string is expected, one of {', '.join(known)}; "
                        f"got {type(name).__name__}")
    for one in known:
        if one.lower().replace("-", "_") == name.lower().replace("-", "_"):
            return one
    raise InvalidArgument(f"{argument}: {name!r} is not one of {nearest_first(name, known)}")


def _dtypes() -> dict[str, np.dtype[Any]]:
    """Return the dtype of each format that this process has one for."""
    try:
        import ml_dtypes
    except ImportError:
        ml_dtypes = None  # type: ignore[assignment]
    scalars = {name: getattr(np, theirs, getattr(ml_dtypes, theirs, None))
               for name, theirs in _LIBRARY_NAMES.items()}
    return {name: np.dtype(scalar) for name, scalar in scalars.items() if scalar is not None}


_CODES: Final[dict[int, np.dtype[Any]]] = {
    size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)
}
_DTYPES: Final[dict[str, np.dtype[Any]]] = _dtypes()
_BY_DTYPE: Final[dict[np.dtype[Any], str]] = {
    dtype: name for name, dtype in _DTYPES.items() if name != "tf32"
}
#: The dtype of results in each format: its own, or that of codes.
_RESULTS: Final = [_DTYPES.get(name, _CODES[_core.format_bytes(index)])
                   for name, index in INDEX.items()]
_core.register_dtypes(_RESULTS, list(_CODES.values()))


def format_index(name: object, argument: str = "format") -> int:
    """Return the C number of a format given by name, dtype or scalar type."""
    if isinstance(name, str):
        index = INDEX.get(name)
        if index is not None:
            return index
        plain = name.rpartition(".")[2]
        if plain in NOT_FORMATS:
            raise InvalidArgument(f"{argument}: {name!r} is {NOT_FORMATS[plain]}")
        index = _core.find_format(name) if name.isascii() and name.isprintable() else -1
        if index >= 0:
            return index
        raise InvalidArgument(
            f"{argument}: {name!r} is not one of {nearest_first(plain, NAMES)}"
        )
    if type(name).__module__ == "torch":  # a torch.dtype: its name says the format
        return format_index(str(name), argument)
    try:
        if name is None:  # np.dtype(None) is float64
            raise TypeError
        dtype = np.dtype(name)  # type: ignore[call-overload]
    except TypeError:
        raise TypeError(
            f"{argument}: a name, a NumPy dtype or a torch dtype is expected; got {name!r}"
        ) from None
    known = _BY_DTYPE.get(dtype)
    if known is not None:
        return INDEX[known]
    if dtype.name in NOT_FORMATS:
        raise InvalidArgument(f"{argument}: {dtype.name} is {NOT_FORMATS[dtype.name]}")
    raise InvalidArgument(
        f"{argument}: dtype {dtype.name} is not a format; one of {', '.join(NAMES)}"
    )


def array_attribute(name: str) -> str:
    """Return the name of a format's dtype in array libraries such as torch."""
    return _LIBRARY_NAMES.get(name, name)


def format_name(name: FormatLike) -> str:
    """Return the format's name in samebits.

    Parameters
    ----------
    name : str, dtype or scalar type
        A name of samebits, NumPy, ml_dtypes, torch or safetensors; or a dtype of these libraries.

    Returns
    -------
    str
        One of `formats`.

    Examples
    --------
    >>> sb.format_name("bfloat16"), sb.format_name("torch.float8_e4m3fn"), sb.format_name("half")
    ('bf16', 'e4m3', 'fp16')
    """
    return NAMES[format_index(name, "name")]


def dtype_of(name: FormatLike) -> np.dtype[Any]:
    """Return the NumPy dtype of results in a format.

    Without ml_dtypes, and for formats that ml_dtypes lacks, this is the unsigned integer that holds
    a code.

    Parameters
    ----------
    name : str, dtype or scalar type
        The format.

    Examples
    --------
    >>> sb.dtype_of("fp16")
    dtype('float16')
    """
    return _RESULTS[format_index(name, "name")]


def formats() -> tuple[str, ...]:
    """Return the names of all formats.

    Examples
    --------
    >>> sb.formats()[:6]
    ('fp64', 'fp32', 'tf32', 'fp16', 'bf16', 'e4m3')
    """
    return NAMES


@dataclass(frozen=True)
class FloatInfo:
    """Properties of a format, in the words of `numpy.finfo`.

    Attributes
    ----------
    name : str
        The format.
    bits : int
        Width of the format: sign, exponent and mantissa bits, without padding.
    storage_bits : int
        Width of the integer that holds one code.
    exponent_bits, mantissa_bits, bias : int
        Fields of a code.
    max : float
        Largest finite value.
    smallest_normal, smallest_subnormal : float
        Smallest positive values; equal where the format has no subnormals.
    eps : float
        Distance from 1 to the next larger value.
    has_inf, has_nan : bool
        Whether the format has codes for Inf and NaN.
    """

    name: str
    bits: int
    storage_bits: int
    exponent_bits: int
    mantissa_bits: int
    bias: int
    max: float
    smallest_normal: float
    smallest_subnormal: float
    eps: float
    has_inf: bool
    has_nan: bool


def finfo(name: FormatLike) -> FloatInfo:
    """Return the properties of a format.

    Parameters
    ----------
    name : str, dtype or scalar type
        The format.

    Returns
    -------
    FloatInfo

    Raises
    ------
    InvalidArgument
        `name` is no format. The message lists the formats.

    Examples
    --------
    >>> sb.finfo("e4m3").max
    448.0
    >>> sb.finfo("bf16").eps
    0.0078125
    """
    index = format_index(name, "name")
    return FloatInfo(**_core.format_properties(index))
