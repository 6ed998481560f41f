"""Kernels in NumPy and their tests: `pytest examples/python/prove_your_kernel.py`.

Each kernel can be given an error. docs/python_testing.md shows what the tests then report.
"""

import ml_dtypes
import numpy as np
from hypothesis import given

from samebits.testing import assert_same_bits, check_conversion, check_quantize, check_reduction
from samebits.testing.strategies import arrays


@np.errstate(all="ignore")
def to_e4m3(x, round=np.rint):
    """Convert fp32 to e4m3, saturating; `round` rounds to a whole number of steps."""
    size = np.minimum(np.abs(x.astype(np.float64)), 448)
    exponent = np.maximum(np.frexp(size)[1] - 1, -6)
    step = np.ldexp(1.0, exponent - 3)
    return np.copysign(round(size / step) * step, x).astype(ml_dtypes.float8_e4m3fn)


def my_cast(x):
    return to_e4m3(x, round=lambda steps: np.floor(steps + 0.5))  # the error: ties away from zero


def quantize_rows(x, divide=True):
    """Quantize rows in tiles of 128 elements: scale = max(amax, 1e-4) / 448, code = x / scale."""
    rows, cols = x.shape
    tiles = np.zeros((rows, -(-cols // 128), 128), np.float32)
    tiles.reshape(rows, -1)[:, :cols] = x
    amax = np.maximum(np.abs(tiles).max(axis=2), np.float32(1e-4))
    scales = amax / np.float32(448)
    by = scales[:, :, None]
    codes = to_e4m3(tiles / by if divide else tiles * (np.float32(1) / by))
    return codes.reshape(rows, -1)[:, :cols], scales


def my_quantizer(x):
    return quantize_rows(x, divide=False)  # the error: x * (1 / scale) is not x / scale


def test_cast():
    check_conversion(to_e4m3, "fp32", "e4m3", overflow="saturate")


def test_quantizer():
    check_quantize(quantize_rows, "DSV3_IEEE", where=np.isfinite)


def test_amax():
    check_reduction(lambda x: np.max(np.abs(x), initial=np.float32(0)), "amax")


@given(arrays("fp32", to="e4m3"))
def test_casting_twice_changes_nothing(x):
    once = to_e4m3(x)
    assert_same_bits(to_e4m3(once.astype(np.float32)), once, nan="any")
