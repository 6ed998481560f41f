"""Hypothesis strategies of codes and arrays that low-precision code gets wrong.

This is the only module of samebits that imports Hypothesis.

    from hypothesis import given
    from samebits.testing.strategies import arrays

    @given(arrays("fp32", to="e4m3"))
    def test_my_scale(x):
        ...
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from samebits.testing.number_formats import (Codes, array_of, drawn_codes, format_named,
                                             special_codes)

__all__ = ["arrays", "codes"]


def codes(format: object, to: object = None) -> st.SearchStrategy[int]:
    """Return a strategy of codes of a format, as integers.

    Parameters
    ----------
    format : str or dtype
        The format of the codes.
    to : str or dtype, optional
        A target: its numbers, ties, overflow thresholds and their neighbours are generated too.

    Returns
    -------
    SearchStrategy of int
        Codes shrink to 1.0; where that does not fail, most of them toward smaller integers.

    Examples
    --------
    >>> from hypothesis import find
    >>> hex(find(codes("fp32", to="bf16"), lambda code: code > 0x3F000000))
    '0x3f800000'
    """
    source = format_named(format)
    target = source if to is None else format_named(to)
    all_bits = (1 << source.bits) - 1
    uniform = st.integers(0, all_bits)
    used = all_bits << source.unused_low_bits
    drawn = st.integers(0, 2**32 - 1).map(
        lambda seed: int(drawn_codes(source, target, 1, seed)[0]) & used)
    return (st.just(source.one) | uniform.map(lambda code: code << source.unused_low_bits)
            | st.sampled_from(special_codes(source).tolist()) | drawn)


@st.composite
def arrays(
    draw: st.DrawFn,
    format: object,
    to: object = None,
    *,
    max_size: int = 257,
    max_dims: int = 2,
    contiguous: bool = False,
) -> npt.NDArray[Any]:
    """Return a strategy of arrays of a format, in its NumPy or ml_dtypes dtype.

    Parameters
    ----------
    format : str or dtype
        The format of the elements; without ml_dtypes narrow formats are unsigned integers.
    to : str or dtype, optional
        A target whose ties and edges are generated, as in `codes`.
    max_size : int
        Largest number of elements. Sizes around powers of two, and 0, are likely.
    max_dims : int
        1 or 2.
    contiguous : bool
        Only C-contiguous arrays. Otherwise rows and columns may have steps, negative ones too, and
        the first element may lie anywhere.

    Returns
    -------
    SearchStrategy of array
        Arrays shrink toward few contiguous elements of 1.0.
    """
    source = format_named(format)
    borders = [n + d for n in (2, 4, 8, 16, 32, 64, 128, 256) for d in (-1, 0, 1)]
    likely = st.sampled_from([1, *(n for n in borders if n <= max_size), 0])
    size = draw(st.integers(0, min(8, max_size)) | likely | st.integers(0, max_size))
    pool = draw(st.lists(codes(source, to), min_size=1, max_size=min(max(size, 1), 16)))
    shape = (size,)
    if max_dims > 1 and size and draw(st.booleans()):
        rows = draw(st.integers(1, min(size, 9)))
        shape = (rows, size // rows)  # type: ignore[assignment]
    count = int(np.prod(shape))
    which = np.resize(np.arange(len(pool)), count)
    if draw(st.booleans()):
        seed = draw(st.integers(0, 2**32 - 1))
        which = np.random.default_rng(seed).integers(0, len(pool), count)
    elements: Codes = np.array(pool, np.uint64)[which].reshape(shape)
    array = array_of(elements, source)
    return array if contiguous else _strided(draw, array)


def _strided(draw: st.DrawFn, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array of the same elements with random strides and offset, amid other bytes."""
    steps = [draw(st.sampled_from([1, 1, 2, 3, -1, -2])) for _ in array.shape]
    offset = draw(st.integers(0, 3))
    if offset == 0 and all(step == 1 for step in steps):
        return array
    room = [n * abs(step) for n, step in zip(array.shape, steps)]
    memory = np.full((int(np.prod(room)) + offset) * array.itemsize, 0xA5, np.uint8)
    whole = memory[offset * array.itemsize:].view(array.dtype).reshape(room)
    placed = whole[tuple(slice(None, None, step) for step in steps)]
    placed[...] = array
    return placed
