"""samebits.functions: known results, layouts of arrays, parameters and refusals."""

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


def test_results_are_those_of_the_gpu() -> None:
    x = np.float32([0.5, 1.0, -np.inf, np.nan])
    assert codes(functions.exp(x, rule=CUDA)) == ["3FD3094C", "402DF854", "00000000", "7FFFFFFF"]
    assert codes(functions.tanh(x, rule=TORCH)) == ["3EEC9AA0", "3F42F7D6", "BF800000", "7FFFFFFF"]
    assert codes(functions.pow(np.float32([-2]), 3, rule=CUDA)) == ["C1000000"]


def test_every_function_of_the_library_has_a_python_function() -> None:
    x = np.float32([0.25])
    for name in samebits._core.names("function"):
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


def test_the_default_is_correctly_rounded() -> None:
    x = np.float32([0.5, 1.0, -np.inf, np.nan, 0.1])
    assert codes(functions.exp(x)) == ["3FD3094C", "402DF854", "00000000", "7FFFFFFF", "3F8D763E"]
    hard = np.float32([float.fromhex("0x1.827a74p-7")])  # next to a tie
    assert codes(functions.log(hard)) == ["C08E158F"]
    half = functions.exp(x, to="fp16")
    assert half.view(np.uint16).tolist() == [0x3E98, 0x4170, 0x0000, 0x7FFF, 0x3C6C]
    np.testing.assert_array_equal(functions.exp(x, rule="exact"), functions.exp(x))
    grad = functions.gradient("silu", np.float32([2.0]), np.float32([0.0]))
    assert grad.tolist() == [1.0]


def test_stochastic_rounding_of_a_part_is_that_of_the_whole() -> None:
    x = np.linspace(-4, 4, 4096, dtype=np.float32)
    whole = functions.sigmoid(x, to="bf16", rounding="stochastic", seed=3)
    part = functions.sigmoid(x[1000:], to="bf16", rounding="stochastic", seed=3, offset=1000)
    np.testing.assert_array_equal(np.asarray(whole)[1000:], np.asarray(part))
    nearest = functions.sigmoid(x, to="bf16")
    assert (np.asarray(whole).view(np.uint16) != np.asarray(nearest).view(np.uint16)).any()
    with pytest.raises(samebits.InvalidArgument, match="must be in 1..16"):
        functions.sigmoid(x, to="bf16", rounding="stochastic", seed=3, random_bits=17)
    with pytest.raises(samebits.Unsupported, match="into fp32 to nearest even"):
        functions.sigmoid(x, rounding="stochastic", seed=3)


def test_strides_do_not_change_a_bit() -> None:
    x = np.linspace(-8, 8, 24 * 36, dtype=np.float32).reshape(24, 36)
    expected = functions.gelu(x.copy(), rule=TORCH)
    np.testing.assert_array_equal(functions.gelu(x.T, rule=TORCH), expected.T)
    np.testing.assert_array_equal(functions.gelu(x[::-3, ::2], rule=TORCH), expected[::-3, ::2])
    cube = x.reshape(6, 4, 36).transpose(2, 0, 1)
    np.testing.assert_array_equal(
        functions.gelu(cube, rule=TORCH), expected.reshape(6, 4, 36).transpose(2, 0, 1))
    for backend in ("reference", None):
        np.testing.assert_array_equal(functions.gelu(x, rule=TORCH, backend=backend), expected)


def test_out_is_written_and_may_be_the_argument() -> None:
    x = np.float32([0.5, 1.0])
    expected = functions.silu(x, rule=TORCH)
    out = np.zeros_like(x)
    assert functions.silu(x, rule=TORCH, out=out) is out
    np.testing.assert_array_equal(out, expected)
    functions.silu(x, rule=TORCH, out=x)
    np.testing.assert_array_equal(x, expected)


def test_sixteen_bits_are_rounded_once() -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = functions.sigmoid(x.astype(np.float32), rule=TORCH)
    with np.errstate(all="ignore"):
        expected = wide.astype(np.float16)
    np.testing.assert_array_equal(functions.sigmoid(x, rule=TORCH), expected)
    bf16 = np.uint16([0x3F00, 0x3F80])
    result = functions.exp(bf16, rule=TORCH, format="bf16")
    assert np.asarray(result).view(np.uint16).tolist() == [0x3FD3, 0x402E]


def test_gradients() -> None:
    x = np.float32([-1, 0, 2])
    grad = np.float32([1, 2, 3])
    np.testing.assert_array_equal(functions.gradient("relu", grad, x, rule=TORCH), [0, 0, 3])
    np.testing.assert_array_equal(
        functions.gradient("leaky_relu", grad, x, 0.25, rule=TORCH), [0.25, 0.5, 3])
    np.testing.assert_array_equal(functions.gradient("pow", grad, x, 2, rule=TORCH), [-2, 0, 12])
    np.testing.assert_array_equal(functions.elu(x, 0, rule=TORCH), [0, 0, 2])
    np.testing.assert_array_equal(functions.leaky_relu(x, 0.5, rule=TORCH), [-0.5, 0, 2])


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


def test_lists_round_each_array_by_a_stream_of_its_own() -> None:
    x = np.linspace(-4, 4, 4096, dtype=np.float32)
    options: Any = {"to": "bf16", "rounding": "stochastic", "seed": 3}
    results = functions.sigmoid([x, x.copy()], random_stream=8, **options)
    for stream, result in zip((8, 9), results, strict=True):
        expected = functions.sigmoid(x, random_stream=stream, **options)
        assert np.asarray(result).tobytes() == np.asarray(expected).tobytes()


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


def test_refused_lists() -> None:
    a = np.float32([0.5, 1.0, 2.0])
    with pytest.raises(samebits.InvalidArgument, match=r"out\[1\] '1': overlaps in\[0\]"):
        functions.exp([a[:1], a[1:2]], out=[a[2:], a[:1]])
    with pytest.raises(samebits.InvalidArgument, match="out: 2 tensors are expected; got 1"):
        functions.exp([a[:1], a[1:]], out=[a[:1]])
    with pytest.raises(samebits.InvalidArgument, match="grad: its names"):
        functions.gradient("silu", {"b": a}, {"a": a})
    with pytest.raises(TypeError, match=r"x\[0\]"):
        functions.exp([0.5, 1.0])


def test_refusals() -> None:
    x = np.float32([0.5])
    with pytest.raises(samebits.Unsupported, match="rule cuda_13_0 has no gelu of fp32"):
        functions.gelu(x, rule=CUDA)
    with pytest.raises(samebits.Unsupported, match="rule exact has no sin"):
        functions.sin(x)
    with pytest.raises(samebits.Unsupported, match="gradient of exp"):
        functions.gradient("exp", x, x)
    with pytest.raises(samebits.Unsupported, match="gradient of exp"):
        functions.gradient("exp", x, x, rule=CUDA)
    with pytest.raises(samebits.InvalidArgument, match="rule"):
        functions.exp(x, rule="torch")
    with pytest.raises(samebits.InvalidArgument, match="function"):
        functions.gradient("cosh", x, x, rule=TORCH)
    with pytest.raises(samebits.InvalidArgument, match="pow needs its exponent"):
        functions.gradient("pow", x, x, rule=TORCH)
    with pytest.raises(samebits.InvalidArgument, match="grad"):
        functions.gradient("exp", np.float32([1, 2]), x, rule=TORCH)
    with pytest.raises(TypeError, match="exponent: a number is expected"):
        functions.pow(x, "2", rule=TORCH)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="rule"):
        functions.softmax(x)  # type: ignore[call-arg]
