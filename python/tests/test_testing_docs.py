"""The page docs/python_testing.md: its programs are those of the example, its texts are real."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from samebits.testing import (check_conversion, check_loss_scaler, check_quantize,
                              check_reduction)

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python_testing.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "examples" / "python"
EXAMPLE = EXAMPLES / "prove_your_kernel.py"
SCALER_EXAMPLE = EXAMPLES / "prove_your_loss_scaler.py"


def blocks(language: str) -> list[str]:
    """Return the blocks of the page in a language; "" for texts."""
    parts = PAGE.split("```")
    return [part.split("\n", 1)[1] for part in parts[1::2] if part.split("\n", 1)[0] == language]


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_programs_are_those_of_the_example() -> None:
    files = (EXAMPLE, EXAMPLES / "prove_your_triton_kernel.py", SCALER_EXAMPLE, EXAMPLE)
    assert len(blocks("python")) == len(files)
    for block, file in zip(blocks("python"), files):
        assert block in file.read_text(encoding="utf-8")


def test_example_passes(example: dict[str, Any]) -> None:
    tests = [name for name in example if name.startswith("test_")]
    assert len(tests) == 4
    for name in tests:
        example[name]()


def test_example_of_loss_scalers_passes() -> None:
    runpy.run_path(str(SCALER_EXAMPLE))["test_loss_scaler"]()


def test_texts_are_real(example: dict[str, Any]) -> None:
    scalers = runpy.run_path(str(SCALER_EXAMPLE))
    calls = (lambda: check_conversion(example["my_cast"], "fp32", "e4m3", overflow="saturate"),
             lambda: check_quantize(example["my_quantizer"], "DSV3_IEEE", where=np.isfinite),
             lambda: check_reduction(np.sum, "sum"),
             lambda: check_loss_scaler(scalers["ForgetfulScaler"], "torch"))
    assert len(blocks("")) == len(calls)
    for call, text in zip(calls, blocks("")):
        with pytest.raises(AssertionError) as caught:
            call()
        assert str(caught.value) == text.rstrip("\n")
