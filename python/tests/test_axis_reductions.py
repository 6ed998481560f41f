"""Sums, means and norms over axes, against what PyTorch 2.11 returned on an H200."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import samebits

FORMATS = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}
#: A row a call: operation, format, shape, order of the axes in memory, reduced axes, elements before the
#: tensor, seed of the elements, and the first half of the SHA-256 of at most 4096 results.
RECORDED = json.loads((Path(__file__).parent / "torch_axis_reductions.json").read_text())


def elements(seed: int, count: int) -> Any:
    """Return numbers of magnitude 2^-7 to 2, the same on every machine."""
    words = np.random.Generator(np.random.PCG64(seed)).integers(0, 1 << 32, count, dtype=np.uint32)
    exponent = ((words >> np.uint32(23)) & np.uint32(7)) + np.uint32(120)
    return ((words & np.uint32(0x807FFFFF)) | (exponent << np.uint32(23))).view(np.float32)


def differing(rows: list[Any], **options: Any) -> list[Any]:
    """Return the rows whose results have other bits than the GPU's."""
    differ = []
    for row in rows:
        name, form, shape, order, axes, offset, seed, expected = row
        flat = elements(seed, int(np.prod(shape)) + offset).astype(FORMATS[form])[offset:]
        places = [order.index(axis) for axis in range(len(order))]
        x = flat.reshape([shape[axis] for axis in order]).transpose(places)
        function = getattr(samebits.functions, name)
        y = function(x, axes, **{"rule": "torch_2_11", "offset": offset} | options)
        y = np.asarray(y).reshape(-1)
        if y.size > 4096:
            y = y[np.linspace(0, y.size - 1, 4096).astype(np.int64)]
        if hashlib.sha256(y.tobytes()).hexdigest()[:16] != expected:
            differ.append(row)
    return differ


def test_recorded_on_a_gpu() -> None:
    assert not differing(RECORDED)
    assert not differing(RECORDED[::9], backend="reference")  # slow: it computes in integers


def test_address_and_gpu_change_bits() -> None:
    aligned = [row for row in RECORDED if row[1] == "fp32" and row[5] == 0]
    assert differing(aligned, offset=1)
    assert differing(aligned, multiprocessors=4)


def test_shapes_and_axes() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    functions = samebits.functions
    assert functions.sum(x, (0, -1), rule="torch_2_11").tolist() == x.sum((0, 2)).tolist()
    assert functions.sum(x, rule="torch_2_11").shape == ()
    assert functions.mean(x, 1, rule="torch_2_11").tolist() == x.mean(1).tolist()
    assert functions.norm(np.array([[3, 4]], np.float32), 1, rule="torch_2_11").tolist() == [5]
    # of one element the norm is its magnitude, whose square would overflow
    large = np.array([[-1e30]], np.float32)
    assert functions.norm(large, 1, rule="torch_2_11").tolist() == np.abs(large[0]).tolist()
    assert functions.sum(x[:0], 0, rule="torch_2_11").tolist() == [[0] * 4] * 3
    assert np.isnan(functions.mean(x[:0], rule="torch_2_11"))
    out = np.empty(3, np.float32)
    assert functions.sum(x, (0, 2), rule="torch_2_11", out=out) is out


@pytest.mark.parametrize("change, message", [
    ({"axis": 3}, "axis: must be from 0 to 2, got 3"),
    ({"axis": -4}, "axis: must be from 0 to 2, got -4"),
    ({"axis": (0, -3)}, "axis: 0 is given twice"),
    ({"offset": -1}, "offset: must be at least 0, got -1"),
    ({"multiprocessors": 0}, "multiprocessors: must be at least 1, got 0"),
    ({"rule": "cuda_13_0"}, "rule cuda_13_0 has no sum over axes of fp32 numbers"),
])
def test_refusals(change: dict[str, Any], message: str) -> None:
    arguments: Any = {"axis": 0, "rule": "torch_2_11"} | change
    with pytest.raises(samebits.Error, match=message):
        samebits.functions.sum(np.ones((2, 3, 4), np.float32), **arguments)


def test_negative_strides_are_refused() -> None:
    with pytest.raises(samebits.InvalidArgument, match="sizes and strides must be at least 0"):
        samebits.functions.sum(np.ones(4, np.float32)[::-1], rule="torch_2_11")
