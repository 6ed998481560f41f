"""The pages about Python: their programs run, and their outputs are real."""

from __future__ import annotations

import runpy
from typing import Any

import numpy as np
import pytest
from pages import EXAMPLES, blocks, printed, text_of

import samebits as sb
from samebits.testing import check_conversion, check_loss_scaler, check_quantize, check_reduction

PAGE, TESTING = "docs/python.md", "docs/python_testing.md"
KERNEL, SCALER = EXAMPLES / "prove_your_kernel.py", EXAMPLES / "prove_your_loss_scaler.py"


def test_programs_print_what_the_page_shows() -> None:
    pytest.importorskip("ml_dtypes")
    assert printed(EXAMPLES / "tour.py") == blocks(PAGE, "console")[-1].split("\n", 1)[1]
    assert printed(blocks(PAGE, "python")[0]).startswith("448.0 to e5m2: 4096 elements")
    names: dict[str, Any] = {}
    printed(blocks("README.md", "python")[0], names)
    assert names["c"].shape == (4, 4)


def test_every_public_name_is_on_the_page() -> None:
    left_out = ("dequantize", "initialize", "get_num_threads")
    assert [n for n in sb.__all__ if n[0].islower() and n not in text_of(PAGE) and n not in left_out] == []


@pytest.mark.parametrize("page", ["docs/install.md", "README.md"])
def test_the_way_to_install_without_cuda_stands_beside_the_command(page: str) -> None:
    """--config-settings is also known to the pip of Debian 12, which lacks its short form -C."""
    commands = [line for line in text_of(page).splitlines() if "pip install ." in line]
    assert len(commands) == 2
    assert sum(" --config-settings cmake.define.SAMEBITS_CUDA=OFF" in line for line in commands) == 1


# --- docs/python_testing.md ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(KERNEL))


def test_programs_of_the_kit_are_those_of_the_examples(example: dict[str, Any]) -> None:
    files = (KERNEL, EXAMPLES / "prove_your_triton_kernel.py", SCALER, KERNEL)
    for block, file in zip(blocks(TESTING, "python"), files, strict=True):
        assert block in file.read_text(encoding="utf-8")
    tests = [name for name in example if name.startswith("test_")]
    assert len(tests) == 4
    for name in tests:
        example[name]()
    runpy.run_path(str(SCALER))["test_loss_scaler"]()


def test_texts_of_the_kit_are_real(example: dict[str, Any]) -> None:
    calls = (lambda: check_conversion(example["my_cast"], "fp32", "e4m3", overflow="saturate"),
             lambda: check_quantize(example["my_quantizer"], "DSV3_IEEE", where=np.isfinite),
             lambda: check_reduction(np.sum, "sum"),
             lambda: check_loss_scaler(runpy.run_path(str(SCALER))["ForgetfulScaler"], "torch"))
    for call, text in zip(calls, blocks(TESTING, ""), strict=True):
        with pytest.raises(AssertionError) as caught:
            call()
        assert str(caught.value) == text.rstrip("\n")
