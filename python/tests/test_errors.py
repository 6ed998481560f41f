"""Refusals: the class, the argument's name, and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samebits as sb

X = np.ones((2, 128), np.float32)


def read_only() -> np.ndarray:
    a = np.zeros((2, 128), np.float16)
    a.flags.writeable = False
    return a


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: sb.convert(X, "fb16"), sb.InvalidArgument, r"to: 'fb16' is not one of fp16, bf16"),
        (lambda: sb.convert(X, "float8_e4m3"), sb.InvalidArgument, "float8_e4m3fn"),
        (lambda: sb.convert(X, 3), TypeError, "to: a name, a NumPy dtype"),
        (lambda: sb.convert(X, np.int32), sb.InvalidArgument, "dtype int32 is not a format"),
        (lambda: sb.convert(X, "bf16", rounding="nearest"), sb.InvalidArgument,
         "rounding: 'nearest' is not one of nearest_even"),
        (lambda: sb.convert(X, "bf16", overflow="clip"), sb.InvalidArgument, "overflow: 'clip'"),
        (lambda: sb.convert(X, "bf16", nan=3), TypeError, "nan: a string is expected"),
        (lambda: sb.convert(X, "bf16", roundng="to_odd"), TypeError, r"^convert\(\) got an unexpected .*roundng"),
        (lambda: sb.convert([1.0], "bf16"), TypeError, r"x: a list is no array; pass np.asarray"),
        (lambda: sb.convert(1.0, "bf16"), TypeError, r"x: a float is no array"),
        (lambda: sb.convert(object(), "bf16"), TypeError, "x: a NumPy or ml_dtypes array"),
        (lambda: sb.convert(X.astype(">f4"), "bf16"), sb.InvalidArgument, "byte order"),
        (lambda: sb.convert(X.view("u4"), "bf16"), sb.InvalidArgument, "say which by format="),
        (lambda: sb.convert(X, "bf16", format="fp16"), sb.InvalidArgument, "cannot hold fp16"),
        (lambda: sb.convert(X.astype("i4"), "bf16"), sb.InvalidArgument, r"x.astype\(np.float32\)"),
        (lambda: sb.convert(X > 0, "bf16"), sb.InvalidArgument, "dtype bool"),
        (lambda: sb.convert(X, "fp16", out=read_only()), sb.InvalidArgument, "out: .* read-only"),
        (lambda: sb.convert(X, "fp16", out=np.zeros(3, np.float16)), sb.InvalidArgument,
         r"out: shape \[2, 128\] is expected; got \[3\]"),
        (lambda: sb.convert(X, "fp16", out=X), sb.InvalidArgument, "out: dtype float32 cannot"),
        (lambda: sb.convert(X, "fp16", backend="gpu"), sb.InvalidArgument, "'gpu' is unknown"),
        (lambda: sb.convert(X, "bf16", rounding="stochastic", seed=1, random_bits=0),
         sb.InvalidArgument, "random_bits: an integer of 1 .. 32 is expected; got 0"),
        (lambda: sb.convert(X, "bf16", rounding="stochastic", seed=-1), sb.InvalidArgument, "seed: "),
        (lambda: sb.finfo("fp12"), sb.InvalidArgument, "name: 'fp12'"),
        (lambda: sb.quantize(X, "TE_CURENT"), sb.InvalidArgument, "one of TE_CURRENT"),
        (lambda: sb.quantize(X, "TE_DELAYED"), sb.InvalidArgument, "inverse_scales"),
        (lambda: sb.quantize(X).transposed, sb.InvalidArgument, "transposed=True"),
        (lambda: sb.matmul(X, X), sb.InvalidArgument, "."),
        (lambda: sb.matmul(X[0], X), sb.InvalidArgument, "two axes"),
        (lambda: sb.matmul(X, X.T, unit="hoper"), sb.InvalidArgument, "unit: 'hoper'"),
        (lambda: sb.matmul(X, X.T, unit="hopper_fp8"), sb.Unsupported, "."),
        (lambda: sb.inspect(3), TypeError, "tensors: an array, a list"),
        (lambda: sb.inspect([X, X[0].astype("i4")]), sb.InvalidArgument, r"tensors\[1\]"),
        (lambda: sb.accumulate([X], [X, X]), sb.InvalidArgument, "gradients: 1 tensors"),
        (lambda: sb.LossScaler("torhc"), sb.InvalidArgument, "policy: 'torhc' is not one of torch"),
        (lambda: sb.LossScaler("torch", grow=1), sb.InvalidArgument, "'grow' is not a setting"),
        (lambda: sb.LossScaler().step(), sb.CallOrderError, "."),
        (lambda: sb.add(X, X.astype(np.float16)), sb.InvalidArgument, "to: "),
    ],
)
def test_refusal(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_classes() -> None:
    assert issubclass(sb.InvalidArgument, ValueError)
    assert issubclass(sb.Unsupported, NotImplementedError)
    assert issubclass(sb.CudaError, RuntimeError)
    assert sb.CudaError("text", 2).code == 2


def test_fields_of_records_are_refused() -> None:
    records = np.zeros(4, np.dtype([("a", "u1"), ("b", "f4")]))
    with pytest.raises(sb.InvalidArgument, match="x: the strides .*ascontiguousarray"):
        sb.convert(records["b"], "bf16")


def test_dtypes_that_are_no_formats() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("float8_e4m3", "float8_e3m4", "float8_e4m3b11fnuz"):
        with pytest.raises(sb.InvalidArgument, match=f"x: {name} is"):
            sb.convert(np.zeros(3, getattr(ml_dtypes, name)), "fp32")


@pytest.mark.parametrize("bit, name", [("conj", "conjugate"), ("neg", "negative")])
def test_torch_tensors_with_lazy_bits(bit: str, name: str) -> None:
    tensor = type("Tensor", (), {"is_conj": lambda self: bit == "conj", "is_neg": lambda self: bit == "neg",
                                 "__dlpack__": lambda self, **options: 1 / 0, "__module__": "torch"})()
    with pytest.raises(sb.InvalidArgument, match=rf"x: .*{name} bit.* x\.resolve_{bit}\(\)"):
        sb.convert(tensor, "bf16")


@pytest.mark.parametrize("call", [
    lambda **seed: sb.convert(X, "bf16", rounding="stochastic", **seed),
    lambda **seed: sb.quantize(X, "TE_CURRENT", rounding="stochastic", **seed),
    lambda **seed: sb.cast([X], "bf16", rounding="stochastic", **seed)[0],
    lambda **seed: sb.add(X, X, to="bf16", rounding="stochastic", **seed),
    lambda **seed: sb.functions.exp(X, to="bf16", rounding="stochastic", **seed),
    lambda **seed: sb.functions.exp([X], to="bf16", rounding="stochastic", **seed),
    lambda **seed: sb.ranks.reduce_gradients(sb.ranks.SingleRank(), X.copy(), rounding="stochastic", **seed),
], ids=["convert", "quantize", "cast", "add", "exp", "exp_list", "reduce_gradients"])
def test_stochastic_rounding_needs_a_seed(call: Callable[..., Any]) -> None:
    with pytest.raises(sb.InvalidArgument, match="^seed: stochastic rounding needs a seed; pass "
                                                 "seed=, and another seed or random_stream= in"):
        call()
    call(seed=0)


def test_an_exception_of_on_result_reaches_the_caller() -> None:
    seen: list[str] = []

    def refuse(v: sb.Verification) -> None:
        seen.append(v.what)
        raise KeyError(v.backend)

    with pytest.raises(KeyError):
        sb.verify(on_result=refuse)
    assert len(seen) == 1
