"""Inputs of `check_function`: codes that kernels of functions get wrong."""

from __future__ import annotations

import numpy as np

from samebits.testing.inputs import every_code, special_codes
from samebits.testing.number_formats import Codes, Format

# Numbers where the formulas of functions change: poles, ends of ranges, zeros of the derivative,
# thresholds of PyTorch and CUDA.
_BORDERS = (0.5, 1.0, 2.0, 3.0, 6.0, 20.0, 0.001, 0.41, 0.6, 0.7071068, 1.0029764, 1.5707964,
            3.1415927, 3.92, 5.5, 9.010913, 10.055, 13.8, 16.635532, 17.328680, 25.0, 87.33655,
            88.72284, 103.97208, 104.0, 105615.0, 126.0, 127.0, 128.0, 149.0, 150.0, 152.0)
_ULPS = (-2, -1, 0, 1, 2)
_RANDOM = 1 << 16


def function_codes(f: Format, rng: np.random.Generator) -> Codes:
    """Return every code of a format of 16 bits; of fp32 special codes, neighbours of borders,
    numbers from 2^-30 to 2^8 and random codes."""
    if f.storage_bits <= 16:
        return every_code(f)
    borders = np.array(_BORDERS, np.float32).view(np.uint32).astype(np.int64)
    near = np.concatenate([borders + ulps for ulps in _ULPS]).astype(np.uint64)
    field = rng.integers(127 - 30, 127 + 8, _RANDOM, np.uint64, endpoint=True)
    fraction = rng.integers(0, (1 << 23) - 1, _RANDOM, np.uint64, endpoint=True)
    signs = rng.integers(0, 1, _RANDOM, np.uint64, endpoint=True) << np.uint64(31)
    numbers = field << np.uint64(23) | fraction | signs
    uniform = rng.integers(0, (1 << 32) - 1, _RANDOM // 4, np.uint64, endpoint=True)
    found: Codes = np.concatenate(
        [special_codes(f), near, near | np.uint64(f.sign), numbers, uniform])
    return found
