"""Tables of rotary position embeddings: cos and sin, correctly rounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.formats import NAMES, dtype_of, format_index

if TYPE_CHECKING:
    from samebits.typing import FormatLike, RotaryAngle

__all__ = ["rotary_table"]


def rotary_table(
    positions: int | npt.ArrayLike, dim: int, *, base: float = 10000.0,
    frequencies: npt.ArrayLike | None = None, angle: RotaryAngle = "exact", to: FormatLike = "fp32",
    threads: int | None = None,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return cos and sin of position * base^(-2i / dim) for every position and i < dim / 2.

    Each result is the exact cos or sin of the angle, rounded once to nearest even.

    Parameters
    ----------
    positions : int, or array [rows] of integers
        An int n stands for the positions 0 .. n - 1.
    dim : int
        Elements of a head that are rotated; even.
    base : float
        At least 1. Not read if there are frequencies.
    frequencies : array [dim / 2] of fp64, optional
        Radians per position in place of base^(-2i / dim), as models with scaled positions have.
    angle : str
        ``exact``: the real number position * frequency. ``binary32``: position and frequency
        rounded to fp32, and their product rounded to fp32, as PyTorch models compute it.
    to : str or dtype
        fp32, fp16 or bf16.
    threads : int, optional
        As in `convert`.

    Returns
    -------
    cos, sin : numpy.ndarray [rows, dim / 2]
        For torch: ``samebits.torch.from_numpy(cos)``.

    Examples
    --------
    >>> cos, sin = sb.rotary_table(3, 4, base=100)
    >>> sin
    array([[0.        , 0.        ],
           [0.84147096, 0.09983341],
           [0.9092974 , 0.19866933]], dtype=float32)
    """
    if isinstance(positions, (int, np.integer)):
        rows = np.arange(_core.integer(positions, "positions", 0, 2**48 - 1), dtype=np.int64)
    else:
        given = np.asarray(positions)
        if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size > 0):
            raise InvalidArgument("positions: an int or a one-dimensional array of integers is "
                                  f"expected; got shape {given.shape}, dtype {given.dtype}")
        rows = given.astype(np.int64)
        if given.dtype == np.uint64 and (rows < 0).any():
            raise InvalidArgument("positions: must be below 2^63")
    dim = _core.integer(dim, "dim", 0, 2**48 - 1)
    if dim % 2 != 0:
        raise InvalidArgument(f"dim: an even number >= 0 is expected; got {dim}")
    try:
        columns = np.empty(0) if frequencies is None else np.asarray(frequencies, np.float64)
    except (TypeError, ValueError):
        raise TypeError("frequencies: an array of numbers is expected; got a "
                        f"{type(frequencies).__name__}") from None
    if frequencies is not None and columns.shape != (dim // 2,):
        raise InvalidArgument(f"frequencies: shape {(dim // 2,)} is expected; got {columns.shape}")
    format = format_index(to, "to")
    if NAMES[format] not in ("fp32", "fp16", "bf16"):
        raise InvalidArgument(f"to: fp32, fp16 or bf16 is expected; got {NAMES[format]}")
    cos, sin = (np.empty((rows.size, dim // 2), dtype_of(to)) for _ in range(2))
    _core.rotary_table(rows.tobytes(), columns.tobytes(), (base, angle), cos, sin, to, threads)
    return cos, sin
