"""The examples of samebits.testing for torch and Triton run, and say what the pages show."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from pages import EXAMPLES, blocks

from samebits.testing import check_conversion


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def run(*arguments: str, interpreter: bool) -> str:
    """Return what a program prints, with Triton's interpreter or without."""
    environment = {**os.environ, **({"TRITON_INTERPRET": "1"} if interpreter else {})}
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True,
                          env=environment).stdout


def test_planted_errors_in_triton_kernels_are_found() -> None:
    pytest.importorskip("triton")
    on_gpu = torch.cuda.is_available()
    text = run(str(EXAMPLES / "prove_your_triton_kernel.py"), interpreter=not on_gpu)
    shown = blocks("docs/python_testing.md", "text")[0]
    assert shown in text.replace('device="cpu"', 'device="cuda"') + "\n"
    for says in ("ties away from zero instead of to even", "subnormal inputs flushed to zero",
                 "rounded twice: to fp16, then to e4m3"):
        assert f"looks like: {says}" in text


def test_right_triton_kernels_pass() -> None:
    pytest.importorskip("triton")
    run("-m", "pytest", "-q", "-p", "no:cacheprovider",
        str(EXAMPLES / "prove_your_triton_kernel.py"), interpreter=not torch.cuda.is_available())


def test_casts_are_judged(device: str) -> None:
    found = example("judge_torch_casts")
    for source, target in (("fp32", "bf16"), ("fp16", "e5m2"), ("fp32", "fp16")):
        verdict = found["judge"](found["torch_cast"](target), source, target, device)
        assert verdict.startswith("the contract's default: nearest even, overflow by IEEE 754")
    through = found["judge"](lambda x: x.to(torch.bfloat16).to(torch.float16), "fp32", "fp16", device)
    assert through == "DIFFERENT: rounded twice: to bf16, then to fp16"


def test_elu_is_judged() -> None:
    found = example("judge_elu")
    x = found["inputs"](8)
    exact = [[found["exact_elu"](v) for v in row] for row in x]
    plain, right = (found["judge"](x, exact, found[name]) for name in ("elu", "elu_expm1"))
    assert plain[0][0] > 1e6 and plain[0][1] > 0.5  # most results below 2^-24 are 0
    assert all(error < 2 for error, _ in right)


def test_errors_of_exact_results_are_below_half_an_ulp() -> None:
    found = example("judge_elu")
    x = np.float32([[-1e-3, -0.5, -3.0]])
    exact = [[found["exact_elu"](v) for v in x[0]]]
    rounded = np.float32([[float(e) for e in exact[0]]])
    assert (found["errors"](rounded, exact) <= 0.5).all()


def test_triton_rounds_fp8_twice_on_ada() -> None:
    pytest.importorskip("triton")
    found = example("findings/triton_fp8_on_ada")
    for target in ("e4m3", "e5m2"):
        assert found["instructions"](target, 90) == [f"cvt.rn.satfinite.{target}x2.f32"]
        assert found["instructions"](target, 89) == ["cvt.rz.f16.f32", f"cvt.rn.satfinite.{target}x2.f16x2"]
        assert 0.001 < found["share"](target) < 0.01
        says = rf"looks like: .*rounded twice: to fp16 \(truncated\), then to {target}"
        with pytest.raises(AssertionError, match=says):
            check_conversion(lambda x: found["through_fp16"](x, target), "fp32", target,
                             overflow="saturate", examples=2)
