"""samebits.functions.softmax, log_softmax and layer_norm: known results, layouts, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samebits
from samebits import functions

TORCH = "torch_2_11"


def codes(x: Any) -> list[str]:
    return [f"{code:08X}" for code in np.asarray(x, np.float32).view(np.uint32).ravel()]


def test_results_of_simple_rows() -> None:
    x = np.float32([[0, 0, 0, 0], [1, -np.inf, -np.inf, -np.inf], [0, np.inf, 0, 0]])
    y = functions.softmax(x, rule=TORCH)
    assert codes(y) == ["3E800000"] * 4 + ["3F800000"] + ["00000000"] * 3 + ["7FFFFFFF"] * 4
    z = functions.log_softmax(x[:2], rule=TORCH)
    assert codes(z) == ["BFB17218"] * 4 + ["00000000"] + ["FF800000"] * 3
    assert codes(functions.softmax(x[0], rule="triton_3_6")) == ["3E800000"] * 4


def test_layer_norm_returns_its_statistics() -> None:
    x = np.float32([[1, 3], [2, 2]]).reshape(2, 1, 2)
    out, mean, rstd = functions.layer_norm(x, epsilon=3.0, rule=TORCH)
    assert (out.shape, mean.shape, rstd.shape) == ((2, 1, 2), (2, 1, 1), (2, 1, 1))
    assert codes(mean) == ["40000000"] * 2
    assert codes(rstd)[0] == "3F000000"
    assert codes(out) == ["BF000000", "3F000000", "00000000", "00000000"]
    weight = np.float32([2, 4])
    scaled = functions.layer_norm(x, weight, np.float32([1, 1]), epsilon=3.0, rule=TORCH)
    assert codes(scaled.out[0]) == ["00000000", "40400000"]
    dx = functions.layer_norm_gradient(np.ones_like(x), x, mean, rstd, rule=TORCH)
    assert not dx.any()


def test_rows_of_any_layout_give_the_same_bits() -> None:
    x = np.random.default_rng(1).standard_normal((4, 6, 50)).astype(np.float32)
    out = np.zeros_like(x)
    y = functions.softmax(x, rule=TORCH, out=out, backend="reference", threads=3)
    assert y is out
    np.testing.assert_array_equal(functions.softmax(np.asfortranarray(x[0]), rule=TORCH), y[0])
    np.testing.assert_array_equal(functions.softmax(x[3, 4], rule=TORCH), y[3, 4])


def test_the_offset_changes_sums_of_wide_rows_alone() -> None:
    x = np.random.default_rng(2).standard_normal((1, 10000)).astype(np.float32)
    found = [{functions.softmax(x[:, :width], rule=TORCH, offset=i).tobytes() for i in range(4)}
             for width in (10000, 100)]
    assert len(found[0]) > 1 == len(found[1])


def test_gradients_of_a_row() -> None:
    y = np.float32([0.25, 0.25, 0.5])  # sums are exact
    grad = np.float32([1, 0, -1])
    assert functions.softmax_gradient(grad, y, rule=TORCH).tolist() == [0.3125, 0.0625, -0.375]
    even = np.log(np.float32([0.5, 0.5]))
    assert functions.log_softmax_gradient(np.float32([1, 3]), even, rule=TORCH).tolist() == [-1, 1]


X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize("call, kind, words", [
    (lambda: functions.softmax(X, rule="cuda_13_0"), samebits.Unsupported, "rule cuda_13_0 has no softmax"),
    (lambda: functions.log_softmax(X, rule="triton_3_6"), samebits.Unsupported, "has no log_softmax"),
    (lambda: functions.softmax(X.astype(np.float64), rule=TORCH), samebits.Unsupported, "of fp64 numbers"),
    (lambda: functions.softmax(X, rule=TORCH, offset=-1), samebits.InvalidArgument, "offset: must be at least 0"),
    (lambda: functions.softmax(X, rule="triton_3_6", num_warps=3), samebits.InvalidArgument, "num_warps"),
    (lambda: functions.softmax_gradient(X, X[0], rule=TORCH), samebits.InvalidArgument,
     r"result: shape \[2, 3\] is expected"),
    (lambda: functions.layer_norm(X, X, rule=TORCH), samebits.InvalidArgument, r"weight: shape \[3\] is expected"),
    (lambda: functions.layer_norm_gradient(X, X, X, X, rule=TORCH), samebits.InvalidArgument,
     r"mean: shape \[2, 1\] is expected"),
    (lambda: functions.softmax(X, rule="torch_1_0"), samebits.InvalidArgument, "rule"),
    (lambda: functions.softmax(X), TypeError, "rule"),
    (lambda: functions.softmax(np.ones((4, 6, 5), np.float32)[:, :4], rule=TORCH), samebits.InvalidArgument, "^x: ")])
def test_refusals(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()
