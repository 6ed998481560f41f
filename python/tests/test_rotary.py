"""samebits.rotary_table: recorded results, positions, frequencies, formats and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samebits as sb


def codes(x: Any, dtype: Any = np.uint32) -> list[str]:
    return [f"{code:X}" for code in np.asarray(x).view(dtype).ravel()]


def test_arguments_arrive() -> None:
    cos, sin = sb.rotary_table([1, 131071], 128)  # results of MPFR
    assert cos.dtype == sin.dtype == np.float32 and cos.shape == sin.shape == (2, 64)
    assert (codes(cos[1, 63:]), codes(sin[1, 63:])) == (["BF573BB6"], ["3F0A9A3C"])
    cos, sin = sb.rotary_table(np.int64([-8191]), 128, base=5e5, to="bf16")
    assert codes(cos[:, 17:18].copy(), np.uint16) == ["3F6C"] and codes(sin[:, 17:18].copy(), np.uint16) == ["3EC7"]
    assert codes(sb.rotary_table([131071], 128, to="fp16")[1][:, 63:].copy(), np.uint16) == ["3855"]


def test_positions() -> None:
    table = sb.rotary_table(100, 16)
    for positions in (range(100), list(range(100)), np.arange(100, dtype=np.int32)):
        np.testing.assert_array_equal(sb.rotary_table(positions, 16, threads=3), table)
    assert sb.rotary_table([], 16)[0].shape == (0, 8)
    assert sb.rotary_table(0, 0)[1].shape == (0, 0)


def test_frequencies_and_angles() -> None:
    powers = sb.rotary_table(50, 20, base=1024)  # of two
    np.testing.assert_array_equal(sb.rotary_table(50, 20, frequencies=0.5 ** np.arange(10), base=0), powers)
    given: dict[str, Any] = {"dim": 2, "frequencies": [0.1]}
    angle = float(np.float32(2**24 + 1) * np.float32(0.1))
    binary32 = sb.rotary_table([2**24 + 1], **given, angle="binary32")
    assert binary32 == sb.rotary_table([1], 2, frequencies=[angle]) != sb.rotary_table([2**24 + 1], **given)


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
        np.testing.assert_array_equal(sb.rotary_table(positions, dim), expected)
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
