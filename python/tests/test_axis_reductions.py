"""Sums, means and norms over axes, against what PyTorch 2.11 returned on an H200."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import samebits
from recorded import differing, elements, recording, sha

#: A row a call: operation, format, shape, order of the axes in memory, reduced axes, elements before the
#: tensor, seed of the elements, and the first half of the SHA-256 of at most 4096 results.
RECORDED = recording("axis_reductions")


def hash_of(name: str, form: str, shape: Any, order: Any, axes: Any, before: int, seed: int, **options: Any) -> str:
    flat = elements(seed, int(np.prod(shape)) + before, form)[before:]
    x = flat.reshape([shape[axis] for axis in order]).transpose([order.index(axis) for axis in range(len(order))])
    y = getattr(samebits.functions, name)(x, axes, **{"rule": "torch_2_11", "offset": before} | options)
    y = np.asarray(y).reshape(-1)
    return sha(y if y.size <= 4096 else y[np.linspace(0, y.size - 1, 4096).astype(np.int64)])


differing = partial(differing, hash_of)


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
    ({"x": np.ones(4, np.float32)[::-1]}, "sizes and strides must be at least 0"),
    ({"offset": -1}, "offset: must be at least 0, got -1"),
    ({"multiprocessors": 0}, "multiprocessors: must be at least 1, got 0"),
    ({"rule": "cuda_13_0"}, "rule cuda_13_0 has no sum over axes of fp32 numbers"),
])
def test_refusals(change: dict[str, Any], message: str) -> None:
    arguments: Any = {"x": np.ones((2, 3, 4), np.float32), "axis": 0, "rule": "torch_2_11"} | change
    with pytest.raises(samebits.Error, match=message):
        samebits.functions.sum(**arguments)
