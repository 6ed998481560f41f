"""samebits.functions, of elements and of rows: known results, layouts of arrays, parameters and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samebits
from samebits import functions

TORCH = "torch_2_11"
CUDA = "cuda_13_0"


def codes(x: Any) -> list[str]:
    return [f"{code:08X}" for code in np.asarray(x, np.float32).view(np.uint32).ravel()]


def test_rules_have_results_of_their_own() -> None:
    x = np.float32([0.5, 1.0, -np.inf, np.nan])
    assert codes(functions.exp(x, rule=CUDA)) == ["3FD3094C", "402DF854", "00000000", "7FFFFFFF"]
    assert codes(functions.tanh(x, rule=TORCH)) == ["3EEC9AA0", "3F42F7D6", "BF800000", "7FFFFFFF"]
    assert codes(functions.pow(np.float32([-2]), 3, rule=CUDA)) == ["C1000000"]
    hard = np.float32([float.fromhex("0x1.827a74p-7")])  # next to a tie
    assert codes(functions.log(hard)) == codes(functions.log(hard, rule="exact")) == ["C08E158F"]
    assert functions.exp(x, to="fp16").view(np.uint16).tolist() == [0x3E98, 0x4170, 0x0000, 0x7FFF]
    bf16 = functions.exp(np.uint16([0x3F00, 0x3F80]), rule=TORCH, format="bf16")
    assert np.asarray(bf16).view(np.uint16).tolist() == [0x3FD3, 0x402E]


def test_every_function_of_the_library_has_a_python_function() -> None:
    x = np.float32([0.25])
    for name in samebits._core.enumerations()["function"]:
        call = getattr(functions, name)
        arguments = (x, 2.0) if name == "pow" else (x,)
        assert name in functions.__all__
        results = []
        for rule in (CUDA, TORCH):
            try:
                results.append(call(*arguments, rule=rule))
            except samebits.Unsupported:
                pass
        assert results


def test_random_bits_of_parts_and_lists() -> None:
    x = np.linspace(-4, 4, 4096, dtype=np.float32)

    def rounded(x: Any, **given: Any) -> bytes:
        result = functions.sigmoid(x, to="bf16", rounding="stochastic", seed=3, **given)
        return b"".join(np.asarray(y).tobytes() for y in (result if isinstance(x, list) else [result]))

    whole = rounded(x)
    assert whole[2000:] == rounded(x[1000:], offset=1000) != rounded(x[1000:])
    assert rounded([x, x.copy()], random_stream=8) == rounded(x, random_stream=8) + rounded(x, random_stream=9)
    assert len({whole, rounded(x, random_bits=8), np.asarray(functions.sigmoid(x, to="bf16")).tobytes()}) == 3


def test_strides_and_results_that_are_given() -> None:
    x = np.linspace(-8, 8, 24 * 36, dtype=np.float32).reshape(24, 36)
    expected = functions.gelu(x.copy(), rule=TORCH)
    for view in (lambda a: a.T, lambda a: a[::-3, ::2], lambda a: a.reshape(6, 4, 36).transpose(2, 0, 1)):
        np.testing.assert_array_equal(functions.gelu(view(x), rule=TORCH, backend="reference"), view(expected))
    out = np.zeros_like(x)
    assert functions.gelu(x, rule=TORCH, out=out) is out
    np.testing.assert_array_equal(functions.gelu(x, rule=TORCH, out=x), out)
    np.testing.assert_array_equal(x, expected)


def test_gradients() -> None:
    x, grad = np.float32([-1, 0, 2]), np.float32([1, 2, 3])
    for name, parameter, expected in (("relu", (), [0, 0, 3]), ("leaky_relu", (0.25,), [0.25, 0.5, 3]),
                                      ("pow", (2,), [-2, 0, 12])):
        np.testing.assert_array_equal(functions.gradient(name, grad, x, *parameter, rule=TORCH), expected)
    np.testing.assert_array_equal(functions.elu(x, 0, rule=TORCH), [0, 0, 2])
    np.testing.assert_array_equal(functions.leaky_relu(x, 0.5, rule=TORCH), [-0.5, 0, 2])
    assert functions.gradient("silu", np.float32([2.0]), np.float32([0.0])).tolist() == [1.0]


def test_lists_have_the_results_of_their_arrays() -> None:
    a = np.linspace(-4, 4, 600, dtype=np.float32).reshape(20, 30)
    b = np.linspace(-2, 2, 7, dtype=np.float16)
    none = np.zeros((0, 3), np.float32)
    for rule in ("exact", TORCH):
        results = functions.gelu([a.T, b, none], rule=rule)
        assert [r.dtype for r in results] == [np.float32, np.float16, np.float32]
        for result, x in zip(results, (a.T, b, none), strict=True):
            np.testing.assert_array_equal(result, functions.gelu(x, rule=rule))
    named = functions.exp({"w": a, "b": b}, to="bf16")
    np.testing.assert_array_equal(np.asarray(named["b"]).view(np.uint16),
                                  np.asarray(functions.exp(b, to="bf16")).view(np.uint16))
    grads = functions.gradient("silu", {"b": b, "w": a}, {"w": a, "b": b})
    np.testing.assert_array_equal(grads["w"], functions.gradient("silu", a, a))
    np.testing.assert_array_equal(grads["b"], functions.gradient("silu", b, b))
    assert functions.tanh([]) == []
    codes = [np.uint16([0x3F00, 0x3F80])]
    result, = functions.exp(codes, rule=TORCH, format="bf16")
    assert np.asarray(result).view(np.uint16).tolist() == [0x3FD3, 0x402E]


def test_lists_are_written_in_place_or_not_at_all() -> None:
    a, b = np.float32([0.5, 1.0]), np.float16([2.0])
    expected = functions.silu([a, b], rule=TORCH)
    out = [np.zeros_like(a), np.zeros_like(b)]
    assert functions.silu([a, b], rule=TORCH, out=out)[0] is out[0]
    np.testing.assert_array_equal(out[0], expected[0])
    with pytest.raises(samebits.Unsupported, match="has no exp of fp16"):
        functions.exp([a, b], rule=CUDA, out=out)
    np.testing.assert_array_equal(out[0], expected[0])
    functions.silu({"a": a, "b": b}, rule=TORCH, out={"b": b, "a": a})
    np.testing.assert_array_equal(a, expected[0])
    np.testing.assert_array_equal(b, expected[1])


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


X, A, M = np.float32([0.5]), np.float32([0.5, 1.0, 2.0]), np.ones((2, 3), np.float32)


@pytest.mark.parametrize("call, kind, words", [
    (lambda: functions.gelu(X, rule=CUDA), samebits.Unsupported, "rule cuda_13_0 has no gelu of fp32"),
    (lambda: functions.sin(X), samebits.Unsupported, "rule exact has no sin"),
    (lambda: functions.gradient("exp", X, X), samebits.Unsupported, "gradient of exp"),
    (lambda: functions.exp(X, rounding="stochastic", seed=3), samebits.Unsupported, "into fp32 to nearest even"),
    (lambda: functions.exp(X, to="bf16", rounding="stochastic", seed=3, random_bits=17), samebits.InvalidArgument,
     "must be in 1..16"),
    (lambda: functions.exp(X, rule="torch"), samebits.InvalidArgument, "rule"),
    (lambda: functions.gradient("cosh", X, X, rule=TORCH), samebits.InvalidArgument, "function"),
    (lambda: functions.gradient("pow", X, X, rule=TORCH), samebits.InvalidArgument, "pow needs its exponent"),
    (lambda: functions.gradient("exp", A, X, rule=TORCH), samebits.InvalidArgument, "grad"),
    (lambda: functions.pow(X, "2", rule=TORCH), TypeError, "exponent: a number is expected"),
    (lambda: functions.exp([A[:1], A[1:2]], out=[A[2:], A[:1]]), samebits.InvalidArgument,
     r"out\[1\] '1': overlaps in\[0\]"),
    (lambda: functions.exp([A[:1], A[1:]], out=[A[:1]]), samebits.InvalidArgument,
     "out: 2 tensors are expected; got 1"),
    (lambda: functions.gradient("silu", {"b": A}, {"a": A}), samebits.InvalidArgument, "grad: its names"),
    (lambda: functions.exp([0.5, 1.0]), TypeError, r"x\[0\]"),
    (lambda: functions.softmax(M.astype(np.float64), rule=TORCH), samebits.Unsupported, "of fp64 numbers"),
    (lambda: functions.softmax(M, rule=TORCH, offset=-1), samebits.InvalidArgument, "offset: must be at least 0"),
    (lambda: functions.softmax(M, rule="triton_3_6", num_warps=3), samebits.InvalidArgument, "num_warps"),
    (lambda: functions.softmax_gradient(M, M[0], rule=TORCH), samebits.InvalidArgument,
     r"result: shape \[2, 3\] is expected"),
    (lambda: functions.layer_norm(M, M, rule=TORCH), samebits.InvalidArgument, r"weight: shape \[3\] is expected"),
    (lambda: functions.layer_norm_gradient(M, M, M, M, rule=TORCH), samebits.InvalidArgument,
     r"mean: shape \[2, 1\] is expected"),
    (lambda: functions.softmax(M), TypeError, "rule"),
    (lambda: functions.softmax(np.ones((4, 6, 5), np.float32)[:, :4], rule=TORCH), samebits.InvalidArgument, "^x: "),
])
def test_refusals(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()
