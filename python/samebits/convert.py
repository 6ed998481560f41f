"""Conversion of arrays between formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits import _core
from samebits._core import convert_default
from samebits.rules import options_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from samebits.option_types import ConvertOptions
    from samebits.typing import FormatLike, NanPolicy, Overflow, Rounding

__all__ = ["convert"]


def _convert(
    x: Any,
    to: FormatLike,
    *,
    format: FormatLike | None = None,
    rounding: Rounding = "nearest_even",
    overflow: Overflow = "ieee",
    nan: NanPolicy = "canonical",
    seed: int | None = None,
    random_stream: int = 0,
    offset: int = 0,
    pitch: int | None = None,
    random_bits: int = 32,
    out: Any = None,
    threads: int | None = None,
    backend: str | None = None,
    stream: Any = None,
) -> Any:
    """Convert with options.

    `convert` itself has no keyword-only defaults: filling them in would take Python longer than a
    whole call without options.

    Parameters
    ----------
    format : str or dtype, optional
        The format of the argument if its dtype does not say it: codes in unsigned integers, or TF32
        numbers in float32.
    rounding : str
        nearest_even, nearest_away, toward_zero, upward, downward, to_odd or stochastic.
    overflow : str
        ieee, saturate or saturate_finite.
    nan : str
        canonical or preserve_sign.
    seed, random_stream, offset, pitch, random_bits : int
        Random bits of stochastic rounding, which needs a seed. Pass another seed or random_stream
        in each step of a training run: else an element uses the same random bits in every step.
        The element with index i in C order uses the random bits of index offset + i. With a pitch,
        element (r, c) of a matrix uses offset + r * pitch + c.
    out : array [...], optional
        Receives the result. It has the shape of the argument, and the dtype of `to` or unsigned
        integers of the same width. It may be the argument itself if the element sizes are equal.
    threads : int, optional
        CPU threads; 0: one per hardware thread. By default the number of `set_num_threads`.
    backend : str, optional
        Name of one of `backends`.
    stream : int or object with ``__cuda_stream__``, optional
        CUDA stream, for arrays in device memory.
    """
    return _core.convert(x, to, (rounding, overflow, nan, seed, random_stream, offset, pitch,
                                 random_bits), format, out, (threads, backend, stream))


_convert.__qualname__ = "convert"  # Python's messages about keyword arguments name the function


@options_of(_convert)
def convert(x: Any, to: FormatLike, **options: Unpack[ConvertOptions]) -> Any:
    """Convert every element of an array to a format; each element is rounded once.

    The result depends on the elements and the options alone: every backend, thread count, stride
    and alignment returns the same bits.

    Parameters
    ----------
    x : array [...]
        NumPy or ml_dtypes array, or an object with ``__dlpack__``, of any shape and strides.
    to : str or dtype
        The format of the result.

    Returns
    -------
    array [...]
        `out`, or a new C-contiguous array of the same library and device as `x`. If that library
        has no dtype for the format, the result holds codes in unsigned integers.

    Raises
    ------
    InvalidArgument
        An argument was refused; nothing was written.
    TypeError
        An argument has a wrong type.
    Unsupported
        This machine or build lacks the backend.

    Examples
    --------
    >>> x = np.array([1.0, 0.1, 500.0, 1e-9], np.float32)
    >>> sb.convert(x, "fp16")
    array([1.e+00, 1.e-01, 5.e+02, 0.e+00], dtype=float16)
    >>> y = sb.convert(x, "e4m3", overflow="saturate")
    >>> sb.convert(y, "fp32").tolist()
    [1.0, 0.1015625, 448.0, 0.0]
    """
    if options:
        return _convert(x, to, **options)
    return convert_default(x, to)
