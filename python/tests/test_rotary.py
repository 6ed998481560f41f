"""samebits.rotary_table: recorded results, positions, frequencies, formats and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samebits as sb


def codes(x: Any, dtype: Any = np.uint32) -> list[str]:
    return [f"{code:X}" for code in np.asarray(x).view(dtype).ravel()]


def test_recorded_results() -> None:
    cos, sin = sb.rotary_table([1, 131071], 128)  # results of MPFR
    assert cos.dtype == sin.dtype == np.float32
    assert cos.shape == sin.shape == (2, 64)
    assert codes(cos[0, [0, 1, 63]]) == ["3F0A5140", "3F25DD29", "3F800000"]
    assert codes(sin[0, [0, 1, 63]]) == ["3F576AA4", "3F43001C", "38F22CE3"]
    assert codes(cos[1, 63:]) == ["BF573BB6"] and codes(sin[1, 63:]) == ["3F0A9A3C"]
    cos, sin = sb.rotary_table(np.int64([-8191]), 128, base=5e5, to="bf16")
    assert codes(cos[:, 17:18].copy(), np.uint16) == ["3F6C"]
    assert codes(sin[:, 17:18].copy(), np.uint16) == ["3EC7"]
    cos, sin = sb.rotary_table([131071], 128, to="fp16")
    assert codes(sin[:, 63:].copy(), np.uint16) == ["3855"]


def test_positions() -> None:
    cos, sin = sb.rotary_table(100, 16)
    for positions in (range(100), list(range(100)), np.arange(100, dtype=np.int32)):
        for part, whole in zip(sb.rotary_table(positions, 16), (cos, sin), strict=True):
            np.testing.assert_array_equal(part, whole)
    assert (cos[0] == 1).all() and (sin[0] == 0).all()
    back = sb.rotary_table(-np.arange(100), 16)
    np.testing.assert_array_equal(back[0], cos)
    np.testing.assert_array_equal(back[1][1:], -sin[1:])
    assert sb.rotary_table([], 16)[0].shape == (0, 8)
    assert sb.rotary_table(0, 0)[1].shape == (0, 0)
    few = sb.rotary_table(4096, 32, threads=1)
    for one, several in zip(few, sb.rotary_table(4096, 32, threads=3), strict=True):
        np.testing.assert_array_equal(one, several)


def test_frequencies() -> None:
    powers = sb.rotary_table(50, 20, base=1024)  # of two
    given = sb.rotary_table(50, 20, frequencies=0.5 ** np.arange(10), base=0)
    for one, other in zip(powers, given, strict=True):
        np.testing.assert_array_equal(one, other)


def test_angles_in_binary32() -> None:
    positions = np.array([3, 1000, 2**24 + 1, 2**40 + 12345])
    frequency = 0.1
    cos, sin = sb.rotary_table(positions, 2, frequencies=[frequency], angle="binary32")
    angles = positions.astype(np.float32) * np.float32(frequency)
    assert angles.dtype == np.float32
    for i, angle in enumerate(angles):
        expected = sb.rotary_table([1], 2, frequencies=[float(angle)])
        assert (cos[i], sin[i]) == (expected[0][0], expected[1][0])
    exact = sb.rotary_table(positions, 2, frequencies=[frequency])
    assert (exact[1] != sin).any()


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    from samebits.torch import from_numpy
    for to, dtype in (("fp32", torch.float32), ("fp16", torch.float16), ("bf16", torch.bfloat16)):
        cos, _ = sb.rotary_table(8, 4, to=to)
        if to == "bf16" and cos.dtype == np.uint16:  # no ml_dtypes
            continue
        assert from_numpy(cos).dtype == dtype
    inv_freq = torch.tensor([1.0, 0.01])
    sb.rotary_table(8, 4, frequencies=inv_freq, angle="binary32")


def test_integers_of_numpy() -> None:
    expected = sb.rotary_table(3, 4)
    for positions, dim in ((np.int64(3), 4), (3, np.int32(4)), (np.uint8([0, 1, 2]), np.uint16(4))):
        for table, other in zip(sb.rotary_table(positions, dim), expected, strict=True):
            assert np.array_equal(table, other)
    with pytest.raises(TypeError, match="dim: an integer is expected"):
        sb.rotary_table(3, 4.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(("arguments", "options", "message"), [
    ((3, 5), {}, "dim: an even number"),
    ((-1, 4), {}, "positions: an integer of 0 .. 2.48 - 1 is expected; got -1"),
    (([[1]], 4), {}, "positions: an int or a one-dimensional array"),
    (([0.5], 4), {}, "positions: an int or a one-dimensional array"),
    ((np.uint64([2**63]), 4), {}, "positions: must be below"),
    ((3, 4), {"frequencies": [1.0]}, "frequencies: shape"),
    ((3, 4), {"frequencies": [1.0, np.inf]}, "frequencies"),
    ((3, 4), {"base": 0.5}, "base: must be at least 1"),
    ((3, 4), {"base": float("nan")}, "base"),
    ((3, 4), {"to": "e4m3"}, "to: fp32, fp16 or bf16 is expected; got e4m3"),
    ((3, 4), {"angle": "fp32"}, "angle"),
])
def test_refusals(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(sb.InvalidArgument, match=message):
        sb.rotary_table(*arguments, **options)
