"""Comparison of arrays bit for bit: `assert_same_bits`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from samebits.errors import InvalidArgument
from samebits.testing.number_formats import codes_of, format_named, values
from samebits.testing.report import code_text

_SHOWN = 5  # wrong elements in a text


def assert_same_bits(got: npt.ArrayLike, expected: npt.ArrayLike, format: object = None, *,
                     nan: str = "canonical") -> None:
    """Compare two arrays of codes bit for bit: −0 differs from +0, and NaNs by their payloads.

    Parameters
    ----------
    got, expected : array [...]
        Arrays of the same shape: NumPy or ml_dtypes arrays of a format, or unsigned integers of its
        codes.
    format : str or dtype, optional
        The format, if the dtypes of the arrays do not say it.
    nan : str
        "any": all NaN codes count as the same. "canonical": they do not.

    Raises
    ------
    AssertionError
        The arrays differ. The text shows the first differences with their values.
    InvalidArgument
        The format is unknown, or needed and absent.
    TypeError
        An array is in another dtype than the format's.

    Examples
    --------
    >>> assert_same_bits(np.float32([1, 2]), np.float32([1, 2]))
    >>> assert_same_bits(np.float32([0.0]), np.float32([-0.0]))
    Traceback (most recent call last):
    ...
    AssertionError: fp32: 1 of 1 elements is wrong
      [0]   got 0x00000000 = 0   expected 0x80000000 = -0
    """
    got_array, expected_array = np.asarray(got), np.asarray(expected)
    f = format_named(_format_of(got_array, expected_array) if format is None else format)
    if got_array.shape != expected_array.shape:
        raise AssertionError(f"{f.name}: got shape {got_array.shape}, expected "
                             f"{expected_array.shape}")
    got_codes, expected_codes = (codes_of(np.ascontiguousarray(a), f).reshape(got_array.shape)
                                 for a in (got_array, expected_array))
    wrong = got_codes != expected_codes
    if nan == "any":
        wrong &= ~(np.isnan(values(got_codes, f)) & np.isnan(values(expected_codes, f)))
    if not wrong.any():
        return
    count = int(wrong.sum())
    lines = [f"{f.name}: {count} of {wrong.size} elements {'is' if count == 1 else 'are'} wrong"]
    for at in np.argwhere(wrong)[:_SHOWN].tolist():
        place = tuple(at)
        lines.append(f"  {at}   got {code_text(int(got_codes[place]), f)}   "
                     f"expected {code_text(int(expected_codes[place]), f)}")
    if count > _SHOWN:
        lines.append(f"  and {count - _SHOWN} more")
    raise AssertionError("\n".join(lines))


def _format_of(*arrays: npt.NDArray[np.generic]) -> object:
    """Return the first dtype that is a format; unsigned integers are not."""
    for array in arrays:
        if array.dtype.kind != "u":
            return array.dtype
    raise InvalidArgument(
        'format: the arrays hold codes; pass their format, for example format="bf16"')
