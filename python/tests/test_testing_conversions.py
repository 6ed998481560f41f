"""Tests of `samebits.testing.check_conversion`: planted errors, right kernels, texts, refusals."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import samebits as sb
from planted import SEEDS, failure_of, repeated, results_per_error
from planted_kernels import PLANTED, STOCHASTIC, Planted, saturating_e4m3, stochastic, to_bf16
from samebits.testing import Layout, check_conversion


failure = partial(failure_of, check_conversion)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: p.name)
def test_planted_error_is_found_shrunk_and_named(planted: Planted, record_property: Any) -> None:
    largest = {"next_element": 3, "first_1024": 1025, "K_15": 4, "K_17": 4}.get(planted.name, 1)
    for seed in SEEDS:
        text = failure(planted.kernel, "fp32", planted.target, examples=2, examples_seed=seed, **planted.options)
        lines = text.splitlines()
        assert "looks like: " in text and planted.says in text, text
        assert "(smallest case found)" in lines[0]
        assert int(lines[0].split(" of ")[1].split()[0]) <= largest, text
        record_property("cases", results_per_error(text))
    text = failure(planted.kernel, "fp32", planted.target, examples=1, **planted.options)
    assert repeated(text, check_conversion, planted.kernel)[-4:-2] == text.splitlines()[-4:-2]


@pytest.mark.parametrize("seed", SEEDS)
def test_one_random_bit_is_found_with_every_seed(seed: int) -> None:
    rule: dict[str, Any] = {"rounding": "stochastic", "seed": seed, "random_bits": 12}
    for bits in (11, 13):
        text = failure(stochastic(bits=bits, seed=seed), "fp32", "bf16", examples=1, **rule)
        assert f"looks like: K = {bits} random bits instead of 12" in text


@pytest.mark.parametrize("seed", SEEDS)
def test_right_kernels_pass(seed: int) -> None:
    check_conversion(to_bf16, "fp32", "bf16", examples=4, examples_seed=seed)
    check_conversion(saturating_e4m3, "fp32", "e4m3", overflow="saturate", examples=4, examples_seed=seed)
    check_conversion(stochastic(), "fp32", "bf16", examples=4, examples_seed=seed, **STOCHASTIC)


@pytest.mark.parametrize(("source", "target"), [
    ("fp64", "fp32"), ("fp32", "fp16"), ("fp16", "e5m2"), ("bf16", "e4m3"),
    ("bf16", "e4m3fnuz"), ("e4m3", "fp32"), ("fp32", "e5m2fnuz")])
def test_right_kernels_of_other_formats_pass(source: str, target: str) -> None:
    check_conversion(lambda x: x.astype(sb.dtype_of(target)), source, target, examples=2)


def test_codes_as_results_and_out_arguments() -> None:
    def fills(x: Any, out: Any) -> None:
        out[...] = to_bf16(x)

    def writes_beside(x: Any, out: Any) -> None:
        fills(x, out)
        np.lib.stride_tricks.as_strided(out, (out.size + 1,))[-1] = 0

    check_conversion(lambda x: to_bf16(x).view(np.uint16), "fp32", "bf16", examples=1)
    check_conversion(fills, "fp32", "bf16", examples=1, fills_out=True)
    text = failure(writes_beside, "fp32", "bf16", examples=1, fills_out=True)
    assert "writes_beside wrote beside its output in a call with 0 elements" in text


def test_unwritten_elements_are_named_where_the_output_was_filled() -> None:
    def skips(x: Any, out: Any) -> None:
        written = np.arange(x.size) % 5 != 4
        out[written] = to_bf16(x)[written]

    text = failure(skips, "fp32", "bf16", examples=1, fills_out=True)
    assert "looks like: some elements are not written" in text


def test_inputs_outside_the_domain_are_neither_generated_nor_compared() -> None:
    def no_nan(x: Any) -> Any:
        assert np.isfinite(x).all()
        return to_bf16(x)

    check_conversion(no_nan, "fp32", "bf16", where=np.isfinite, examples=2)



def test_one_call_of_a_matrix() -> None:
    matrix = np.array([[1, 2], [3, 4]], np.float32)
    check_conversion(to_bf16, "fp32", "bf16", only=matrix)
    text = failure(lambda x: -to_bf16(x), "fp32", "bf16", only=matrix.T)
    assert "only=np.array([0x3F800000, 0x40400000, 0x40000000, 0x40800000]" in text


def test_unknown_error_is_called_unknown() -> None:
    def one_is_two(x: Any) -> Any:
        y = to_bf16(x)
        y[y == 1] = 2
        return y

    text = failure(one_is_two, "fp32", "bf16", examples=2)
    assert "looks like: none of the usual errors (none fits all" in text
    assert "input    0x3F800000 = " in text and "expected 0x3F80 = " in text


def test_ml_dtypes_rounds_fp64_twice() -> None:
    text = failure(to_bf16, "fp64", "bf16", examples=2)
    assert "looks like: rounded twice: to fp32, then to bf16 (fits all" in text


def test_exceptions_and_wrong_results_are_reported() -> None:
    def refuses(x: Any) -> Any:
        if x.size % 8:
            raise ValueError("n must be a multiple of 8")
        return to_bf16(x)

    def writes_input(x: Any) -> Any:
        x[...] = 0
        return to_bf16(x)

    text = failure(refuses, "fp32", "bf16")
    assert "refuses raised ValueError: n must be a multiple of 8" in text
    assert "\n  in a call with 1 element\n" in text
    assert 'check_conversion(refuses, "fp32", "bf16", only=np.array([0x' in text
    assert "writes_input changed its input" in failure(writes_input, "fp32", "bf16")
    assert "returned shape ()" in failure(lambda x: np.float32(0), "fp32", "bf16")
    assert "returned list" in failure(lambda x: [0], "fp32", "bf16")
    assert "expected an array of bfloat16 or of uint16 codes for bf16, got float32" in failure(
        lambda x: x, "fp32", "bf16")


@pytest.mark.parametrize("calls", [1, 100, 12, 30])
def test_interruptions_pass_through(calls: int) -> None:
    made = 0

    def interrupted(x: Any) -> Any:
        nonlocal made
        made += 1
        if made == calls:
            raise KeyboardInterrupt
        return -to_bf16(x) if calls < 100 else to_bf16(x)  # a wrong result, then interrupted

    with pytest.raises(KeyboardInterrupt):
        check_conversion(interrupted, "fp32", "bf16")
    assert made == calls
    with pytest.raises(ZeroDivisionError):  # of a predicate
        check_conversion(to_bf16, "fp32", "bf16", where=lambda x: 1 / 0)


def test_layouts() -> None:
    def contiguous_only(x: Any) -> Any:
        y = np.lib.stride_tricks.as_strided(x, (x.size,), (4,)).astype(ml_dtypes.bfloat16)
        return y

    def aligned_only(x: Any) -> Any:
        y = to_bf16(x)
        return y if x.ctypes.data % 16 == 0 else np.zeros_like(y)

    check_conversion(contiguous_only, "fp32", "bf16", examples=1)
    text = failure(contiguous_only, "fp32", "bf16", examples=1, layouts=[Layout(step=2)])
    assert "layouts=[Layout(offset=0, step=2)]" in text
    text = failure(aligned_only, "fp32", "bf16", examples=1)
    assert "layouts=[Layout(offset=" in text
    check_conversion(aligned_only, "fp32", "bf16", examples=1, layouts=[Layout(), Layout(4)])


@pytest.mark.parametrize(("options", "kind", "message"), [
    ({"device": "cuda"}, NotImplementedError, "device: 'cuda' needs torch, which is not inst"),
    ({"target": "bf17"}, ValueError, "'bf17' is not one of bf16"),
    ({"rounding": "nearest"}, ValueError, "rounding: 'nearest' is not one of nearest_"),
    ({"layouts": []}, sb.InvalidArgument, "layouts: "), ({"examples": -1}, sb.InvalidArgument, "examples: "),
    ({"where": lambda x: np.zeros(x.shape, bool)}, ValueError, "where: no input satisfies"),
    ({"where": lambda x: np.zeros(x.shape, bool), "only": np.ones(1, np.float32)}, ValueError,
     "where: no input satisfies")])
def test_refusals(options: Any, kind: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(kind, match=message):
        check_conversion(to_bf16, "fp32", **{"target": "bf16", **options})


def test_without_ml_dtypes_narrow_formats_are_codes() -> None:
    program = """
import sys
sys.modules["ml_dtypes"] = None
import numpy as np
from samebits.testing import check_conversion
def to_bf16(x):
    word = x.view("u4")
    up = (word + 0x7FFF + (word >> 16 & 1) >> 16).astype("u2")
    return np.where(np.isnan(x), np.uint16(0x7FC0), up)
check_conversion(to_bf16, "fp32", "bf16", examples=1)
check_conversion(lambda x: (x.astype("u4") << 16).view("f4"), "bf16", "fp32", examples=1)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_inputs_depend_on_the_seed_alone() -> None:
    def recorded(seed: int) -> list[bytes]:
        found: list[bytes] = []

        def kernel(x: Any) -> Any:
            found.append(x.tobytes())
            return to_bf16(x)

        check_conversion(kernel, "fp32", "bf16", examples=2, examples_seed=seed)
        return found

    assert recorded(1) == recorded(1) != recorded(2)
