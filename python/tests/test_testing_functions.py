"""Tests of `samebits.testing.check_function`: planted errors, right kernels, texts, refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import samebits
from planted import SEEDS, failure_of, repeated, results_per_error
from samebits import functions
from samebits.testing import Layout, check_function

Array = npt.NDArray[Any]
CUDA = "cuda_13_0"
TORCH = "torch_2_11"


failure = partial(failure_of, check_function)


def cuda_exp(x: Array) -> Array:
    return np.asarray(functions.exp(x, rule=CUDA))


def in_fp64(x: Array) -> Array:
    return np.exp(x.astype(np.float64)).astype(np.float32)


def wrong_formula(x: Array) -> Array:
    return np.asarray(functions.gelu(x, rule=TORCH))


def flushed_results(x: Array) -> Array:
    y = cuda_exp(x)
    y[y < np.float32(2.0**-126)] = 0
    return y


def flushed_inputs(x: Array) -> Array:
    return np.asarray(functions.expm1(np.where(np.abs(x) < 2.0**-126, np.copysign(np.float32(0), x), x), rule=CUDA))


def one_result(x: Array) -> Array:
    y = cuda_exp(x)
    y[x == 0.5] += np.float32(1)
    return y


def last_of_odd_calls(x: Array) -> Array:
    y = cuda_exp(x)
    if x.size % 2 and x.size > 2:
        y[-1] = -1
    return y


@pytest.mark.parametrize("rule", [CUDA, TORCH])
@pytest.mark.parametrize("name", samebits._core.enumerations()["function"])
def test_the_librarys_own_functions_pass(name: str, rule: str) -> None:
    parameter = 1.5 if name == "pow" else None
    formats = ("fp32", "fp16", "bf16") if rule == TORCH else ("fp32",)
    for format in formats:
        def own(x: Array, format: str = format) -> Any:
            return functions.evaluate(name, x, parameter, rule=rule, format=format)
        try:
            check_function(own, name, format, rule=rule, parameter=parameter, nan="canonical",
                           examples=2, layouts=[Layout(), Layout(3, 2)])
        except samebits.Unsupported:
            assert name not in ("exp", "tanh")


@pytest.mark.parametrize("kernel, function, rule, says", [
    (in_fp64, "exp", CUDA, "computed in fp64 and rounded once (fits all "),
    (wrong_formula, "gelu_tanh", TORCH, "looks like: gelu by rule torch_2_11 (fits all "),
    (flushed_results, "exp", CUDA, "looks like: subnormal results flushed to zeros"),
    (flushed_inputs, "expm1", CUDA, "looks like: subnormal inputs read as zeros"),
    (one_result, "exp", CUDA, "looks like: none of the usual errors"),
], ids=lambda p: getattr(p, "__name__", ""))
def test_planted_errors_are_found_and_named(kernel: Any, function: str, rule: str, says: str,
                                            record_property: Any) -> None:
    for seed in SEEDS[:3]:
        text = failure(kernel, function, rule=rule, examples=1, examples_seed=seed)
        lines = text.splitlines()
        assert lines[0].startswith(f"{function} of fp32 by {rule}: 1 of 1 elements is wrong")
        assert says in text
        assert repeated(text, check_function, kernel)[1:3] == lines[1:3]
        record_property("cases", results_per_error(text))


def test_the_text_of_a_failure() -> None:
    text = failure(one_result, "exp", rule=CUDA, only=np.array([0.5, 1.0], np.float32))
    assert text.splitlines() == [
        "exp of fp32 by cuda_13_0: 1 of 2 elements is wrong (smallest case found)",
        "  element   0 of a call of 2 elements",
        "  input     0x3F000000 = 0.5",
        "  got       0x402984A6 = 2.648721218109131   expected 0x3FD3094C = 1.6487212181091309",
        "  distance  at most 5667674 codes from the right one; 1 of 2 elements is wrong",
        "  looks like: none of the usual errors (none fits all 2 results seen, 1 wrong)",
        '  repeat:   check_function(one_result, "exp", rule="cuda_13_0", '
        'only=np.array([0x3F000000, 0x3F800000], "u4"))',
    ]


def test_an_error_of_some_sizes_is_shrunk() -> None:
    text = failure(last_of_odd_calls, "exp", rule=CUDA, examples=1)
    assert "element   2 of a call of 3 elements" in text


def test_nan_codes() -> None:
    def another_nan(x: Array) -> Array:
        return np.where(np.isnan(x), np.uint32(0xFFC00001).view(np.float32), cuda_exp(x))
    check_function(another_nan, "exp", rule=CUDA, examples=1)
    text = failure(another_nan, "exp", rule=CUDA, examples=1, nan="canonical")
    assert 'nan="canonical"' in text and "expected 0x7FFFFFFF = nan" in text


def test_parameters_and_where() -> None:
    check_function(lambda x: np.asarray(functions.leaky_relu(x, 0.25, rule=TORCH)), "leaky_relu",
                   rule=TORCH, parameter=0.25, examples=1)
    text = failure(lambda x: np.where(x > 0, x, x / 2), "leaky_relu", rule=TORCH, parameter=0.25,
                   examples=1, where=np.isfinite)
    assert text.startswith("leaky_relu with 0.25 of fp32") and "parameter=0.25" in text
    check_function(lambda x: np.maximum(x, np.float32(0)), "relu", rule=TORCH, where=lambda x: x != 0)


@pytest.mark.parametrize("format", ["fp32", "fp16"])
def test_a_narrow_domain(format: str) -> None:
    def own(x: Array) -> Any:
        assert (x == 20).all()
        return functions.tanh(x, rule=TORCH, format=format)
    check_function(own, "tanh", format, rule=TORCH, where=lambda x: x == 20, examples=2)
    text = failure(lambda x: -x, "tanh", format, rule=TORCH, where=lambda x: x == 20)
    assert " = 20\n  got " in text


def test_results_of_another_kind() -> None:
    assert "returned shape (0,)" in failure(lambda x: x[:0], "exp", rule=CUDA)
    assert "raised ValueError" in failure(lambda x: x.reshape(3, 5), "exp", rule=CUDA)


@pytest.mark.parametrize(("function", "options", "kind", "message"), [
    ("gelu", {}, samebits.Unsupported, "rule cuda_13_0 has no gelu"),
    ("exp", {"rule": "torch"}, samebits.InvalidArgument, "rule"),
    ("exp", {"layouts": []}, samebits.InvalidArgument, "layouts"),
    ("exp", {"examples": -1}, samebits.InvalidArgument, "examples"),
    ("exp", {"where": lambda x: np.zeros(x.shape, np.bool_)}, samebits.InvalidArgument, "no input satisfies"),
    ("exp", {"where": lambda x: np.zeros(x.shape, bool), "only": np.ones(1, np.float32)}, samebits.InvalidArgument,
     "no input satisfies")])
def test_refusals(function: str, options: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        check_function(cuda_exp, function, **{"rule": CUDA, **options})
