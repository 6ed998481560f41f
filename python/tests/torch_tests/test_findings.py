"""docs/findings.md: its programs repeat the findings, and its texts are what they print.

A test that fails after an update of torch may mean that torch has changed: then correct the page.
"""

from __future__ import annotations

import math
import os
import runpy
import subprocess
import sys
from typing import Any

import pages
import pytest
import torch

from samebits.testing import check_conversion

PROGRAMS = pages.EXAMPLES / "findings"
PAGE = pages.text_of("docs/findings.md")


def program(name: str) -> dict[str, Any]:
    return runpy.run_path(str(PROGRAMS / f"{name}.py"))


def shown(name: str) -> str:
    """Return what the page shows of a program's output."""
    command = f"$ python examples/python/findings/{name}.py\n"
    return next(b.removeprefix(command) for b in pages.blocks("docs/findings.md", "console") if b.startswith(command))


def printed(name: str) -> str:
    return pages.printed(PROGRAMS / f"{name}.py")


def test_every_program_is_on_the_page() -> None:
    for path in PROGRAMS.glob("*.py"):
        assert f"findings/{path.name}" in PAGE


@pytest.mark.parametrize("name", ["cuda_function_errors", "negative_bit", "scale_zero",
                                  "load_state_dict_casts", "recipes_on_extremes", "nvfp4_definitions", "nvfp4_kernels",
                                  "fused_sgd_on_cpu", "fused_formulas", "linspace_by_processor"])
def test_the_page_shows_what_the_program_prints(name: str) -> None:
    if name == "linspace_by_processor" and torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("needs a processor with AVX2")
    assert printed(name) == shown(name)


def test_bitsandbytes_on_cpu() -> None:
    pytest.importorskip("bitsandbytes")
    assert shown("bitsandbytes_on_cpu") in printed("bitsandbytes_on_cpu")


def test_compiled_casts_saturate(device: str) -> None:
    for _, number, eager, compiled in program("compiled_fp8_casts")["casts"](device):
        assert not math.isfinite(eager)
        assert math.isfinite(compiled) == (device == "cuda"), (device, number)


def test_fused_sgd_starts_with_unwritten_momentum() -> None:
    shown_on_cpu = shown("fused_sgd_momentum")
    assert printed("fused_sgd_momentum").startswith(shown_on_cpu)  # a GPU adds two lines


def test_fused_adam_rounds_by_place(cuda: str) -> None:
    step, places = (program("fused_adam_places")[name] for name in ("step", "places"))
    aligned = places(step(4096))
    assert len(aligned) == 1024 and bool((aligned % 4 == 0).all())
    other = places(step(4095))
    assert bool((other // 512 % 4 == 0).all()) and len(other) > 500
    assert len(places(step(4096, 0, True))) == 0


def test_fused_sgd_rounds_by_place_with_grad_scale(cuda: str) -> None:
    step, rounded_twice = (program("fused_sgd_places")[n] for n in ("step", "rounded_twice"))
    places = rounded_twice(step(4096, 0, True))
    assert len(places) == 3072 and bool((places % 4 != 3).all())
    for arguments in ((4096,), (4095, 0, True), (4096, 1, True), (4096, 1)):
        assert len(rounded_twice(step(*arguments))) == 0, arguments


def test_nan_of_cpu_casts() -> None:
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": "avx2"}
    text = subprocess.run([sys.executable, str(PROGRAMS / "cpu_cast_nan.py")], check=True,
                          capture_output=True, text=True, env=environment).stdout
    if "AVX2" not in text:
        pytest.skip("a processor without AVX2")
    assert text.split("\n", 1)[1] == shown("cpu_cast_nan").split("\n", 1)[1]


@pytest.mark.parametrize("target", ["fp16", "bf16", "e4m3"])
def test_fp64_is_rounded_twice_on_the_cpu(target: str) -> None:
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn}[target]
    with pytest.raises(AssertionError, match=f"rounded twice: to fp32, then to {target} "):
        check_conversion(lambda x: x.to(dtype), "fp64", target, device="cpu", examples=2)


def test_the_text_about_fp64_is_real() -> None:
    judging = runpy.run_path(str(pages.EXAMPLES / "judge_torch_casts.py"))
    verdict = judging["judge"](judging["torch_cast"]("fp16"), "fp64", "fp16", "cpu", smallest=True)
    lines = verdict.splitlines()
    assert lines[0] == "DIFFERENT: rounded twice: to fp32, then to fp16"
    assert pages.blocks("docs/findings.md", "text")[0].rstrip("\n") == "\n".join(lines[1:-1])


def test_scales_are_read_in_padded_rows() -> None:
    found = program("scaled_mm_scales")
    generator = __import__("numpy").random.default_rng(0)
    hopper = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
    for depth, multiple_of_four in ((512, True), (640, False)):
        tiles = depth // 128
        a, w, a_scales, memory = found["problem"](depth, generator)
        passed, read = (found["predicted"](a, w, a_scales, found[name](memory, tiles))
                        for name in ("passed_scales", "read_scales"))
        assert (found["share"](passed, read) == 0) == multiple_of_four
        if hopper and torch.__version__.startswith("2.11"):
            result = found["on_gpu"](a, w, a_scales, memory, tiles)
            assert found["share"](result, read) == 0
