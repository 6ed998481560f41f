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
    y = functions.softmax(x, rule=TORCH)
    for row, expected in zip(x.reshape(-1, 50), y.reshape(-1, 50), strict=True):
        np.testing.assert_array_equal(functions.softmax(row, rule=TORCH), expected)
    columns = np.asfortranarray(x[0])
    np.testing.assert_array_equal(functions.softmax(columns, rule=TORCH), y[0])
    out = np.zeros_like(x)
    assert functions.softmax(x, rule=TORCH, out=out) is out
    np.testing.assert_array_equal(out, y)
    for backend in ("reference", None):
        np.testing.assert_array_equal(
            functions.softmax(x, rule=TORCH, backend=backend, threads=3), y)


def test_the_offset_changes_sums_of_wide_rows_alone() -> None:
    x = np.random.default_rng(2).standard_normal((1, 10000)).astype(np.float32)
    results = {functions.softmax(x, rule=TORCH, offset=i).tobytes() for i in range(8)}
    assert len(results) > 1
    assert functions.softmax(x, rule=TORCH, offset=4).tobytes() == functions.softmax(
        x, rule=TORCH).tobytes()
    narrow = {functions.softmax(x[:, :100], rule=TORCH, offset=i).tobytes() for i in range(4)}
    assert len(narrow) == 1


def test_gradients_of_a_row() -> None:
    y = functions.softmax(np.float32([1, 2, 3]), rule=TORCH)
    grad = np.float32([1, 0, -1])
    dx = functions.softmax_gradient(grad, y, rule=TORCH)
    np.testing.assert_allclose(dx, y * (grad - (grad * y).sum()), rtol=1e-5)
    z = np.log(y)
    dz = functions.log_softmax_gradient(grad, z, rule=TORCH)
    np.testing.assert_allclose(dz, grad - y * grad.sum(), rtol=1e-5)


@pytest.mark.parametrize("call, words", [
    (lambda x: functions.softmax(x, rule="cuda_13_0"), "rule cuda_13_0 has no softmax"),
    (lambda x: functions.log_softmax(x, rule="triton_3_6"), "has no log_softmax"),
    (lambda x: functions.softmax(x.astype(np.float64), rule=TORCH), "of fp64 numbers"),
])
def test_what_a_rule_lacks(call: Any, words: str) -> None:
    with pytest.raises(samebits.Unsupported, match=words):
        call(np.ones((2, 3), np.float32))


def test_wrong_arguments() -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(samebits.InvalidArgument, match="offset: must be at least 0"):
        functions.softmax(x, rule=TORCH, offset=-1)
    with pytest.raises(samebits.InvalidArgument, match="num_warps"):
        functions.softmax(x, rule="triton_3_6", num_warps=3)
    with pytest.raises(samebits.InvalidArgument, match=r"result: shape \[2, 3\] is expected"):
        functions.softmax_gradient(x, x[0], rule=TORCH)
    with pytest.raises(samebits.InvalidArgument, match=r"weight: shape \[3\] is expected"):
        functions.layer_norm(x, x, rule=TORCH)
    with pytest.raises(samebits.InvalidArgument, match=r"mean: shape \[2, 1\] is expected"):
        functions.layer_norm_gradient(x, x, x, x, rule=TORCH)
    with pytest.raises(samebits.InvalidArgument, match="rule"):
        functions.softmax(x, rule="torch_1_0")
    with pytest.raises(TypeError, match="rule"):
        functions.softmax(x)  # type: ignore[call-arg]
    with pytest.raises(samebits.InvalidArgument, match="^x: "):
        functions.softmax(np.ones((4, 6, 5), np.float32)[:, :4], rule=TORCH)
