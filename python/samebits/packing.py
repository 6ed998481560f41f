"""Codes of 4 and 6 bits packed into bytes, and scales in the layouts of other libraries."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.formats import NAMES, dtype_of, format_index

if TYPE_CHECKING:
    from samebits.typing import FormatLike, Packing, ScaleLayout, ScalePadding

__all__ = ["arrange_scales", "pack_codes", "restore_scales", "unpack_codes"]

Bytes = npt.NDArray[np.uint8]


def shape_of(x: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an array with an axis; TypeError for what is no array."""
    shape = getattr(x, "shape", None)
    if not isinstance(shape, tuple):
        raise TypeError(f"{name}: an array is expected; got a {type(x).__name__}")
    if not shape:
        raise InvalidArgument(f"{name}: an array with an axis is expected")
    return shape


def _bytes_of(x: Any, name: str) -> Bytes:
    """Return an array of bytes; TypeError for all else."""
    if not isinstance(x, np.ndarray) or x.dtype != np.uint8 or not x.shape:
        raise TypeError(f"{name}: a NumPy array of uint8 is expected; got a {type(x).__name__}")
    return x


def pack_codes(codes: Any, order: Packing = "low_first", *,
               format: FormatLike | None = None) -> Bytes:
    """Pack codes of 4 or 6 bits side by side into bytes; each row begins at a byte of its own.

    Parameters
    ----------
    codes : array [..., cols]
        In e2m1, e2m3 or e3m2, one code a byte, in host memory.
    order : str
        low_first: the first code in the low bits, as in TransformerEngine, torchao and vLLM.
        high_first: in the high bits, as in bitsandbytes.
    format : str or dtype, optional
        The format of `codes` if its dtype does not say it.

    Returns
    -------
    numpy.ndarray [..., bytes] of uint8
        Missing codes of a last byte are 0.

    Examples
    --------
    >>> codes = sb.convert(np.float32([[1, -6, 0.5, 2]]), "e2m1")
    >>> sb.pack_codes(codes), sb.pack_codes(codes, "high_first")
    (array([[242,  65]], dtype=uint8), array([[47, 20]], dtype=uint8))
    """
    shape_of(codes, "codes")
    name = NAMES[format_index(codes.dtype if format is None else format, "format")]
    *leading, cols = shape_of(codes, "codes")
    packed = np.zeros((*leading, _core.packed_row_bytes(name, cols)), np.uint8)
    _core.move_codes(codes, format, order, packed.reshape(-1), False)
    return packed


def unpack_codes(packed: Bytes, format: FormatLike, cols: int | None = None,
                 order: Packing = "low_first") -> Any:
    """Unpack codes; the inverse of `pack_codes`.

    Parameters
    ----------
    packed : array [..., bytes] of uint8
    format : str or dtype
        e2m1, e2m3 or e3m2.
    cols : int, optional
        Codes of a row. Default: as many as the bytes hold.
    order : str
        As in `pack_codes`.

    Returns
    -------
    numpy.ndarray [..., cols]
        One code a byte.

    Examples
    --------
    >>> sb.convert(sb.unpack_codes(np.uint8([[242, 65]]), "e2m1"), "fp32")
    array([[ 1. , -6. ,  0.5,  2. ]], dtype=float32)
    """
    name = NAMES[format_index(format, "format")]
    *leading, row_bytes = _bytes_of(packed, "packed").shape
    if cols is None:
        cols = row_bytes * 8 // (4 if name == "e2m1" else 6)
    cols = _core.integer(cols, "cols", 0, 2**48)
    codes = np.zeros((*leading, cols), dtype_of(name))
    _core.move_codes(codes, name, order, np.ascontiguousarray(packed).reshape(-1), True)
    return codes


def arrange_scales(scales: Any, layout: ScaleLayout, *, format: FormatLike | None = None,
                   padding: ScalePadding = "zero") -> Bytes:
    """Write scales, and padding, in the memory order that a matrix product expects.

    Parameters
    ----------
    scales : array [rows, cols]
        In fp32, e8m0 or e4m3, in host memory.
    layout : str
        row_major, column_major, row_padded, packed_ue8m0, padded_128x4, padded_4x128 or
        swizzled_128x4; the page on quantization says who uses which.
    format : str or dtype, optional
        The format of `scales` if its dtype does not say it.
    padding : str
        zero or one.

    Returns
    -------
    numpy.ndarray [bytes] of uint8

    Raises
    ------
    InvalidArgument
        A byte cannot hold a scale, or the layout has no scales in this format.

    Examples
    --------
    >>> q = sb.quantize(np.ones((2, 64), np.float32), "NVFP4_TE")
    >>> sb.arrange_scales(q.scales, "swizzled_128x4").nonzero()[0]
    array([ 0,  1,  2,  3, 16, 17, 18, 19])
    """
    *leading, cols = shape_of(scales, "scales")
    out = np.empty(_core.layout_bytes(layout, math.prod(leading), cols), np.uint8)
    _core.move_scales(scales, format, layout, out, padding, False)
    return out


def restore_scales(arranged: Bytes, layout: ScaleLayout, shape: tuple[int, int],
                   format: FormatLike) -> Any:
    """Read scales from a layout; the inverse of `arrange_scales`.

    Parameters
    ----------
    arranged : array [bytes] of uint8
    layout : str
        As in `arrange_scales`.
    shape : (int, int)
        Rows and columns of the scales, without padding.
    format : str or dtype
        fp32, e8m0 or e4m3.

    Returns
    -------
    numpy.ndarray [rows, cols]

    Examples
    --------
    >>> scales = np.float32([[1, 2], [0.5, 4]])
    >>> sb.restore_scales(sb.arrange_scales(scales, "packed_ue8m0"), "packed_ue8m0", (2, 2), "fp32")
    array([[1. , 2. ],
           [0.5, 4. ]], dtype=float32)
    """
    name = NAMES[format_index(format, "format")]
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise TypeError(f"shape: rows and columns are expected; got {shape!r}")
    rows, cols = (_core.integer(n, "shape", 0, 2**48) for n in shape)
    scales = np.empty((rows, cols), dtype_of(name))
    _core.move_scales(scales, name, layout, np.ascontiguousarray(_bytes_of(arranged, "arranged")).reshape(-1), "zero", True)
    return scales
