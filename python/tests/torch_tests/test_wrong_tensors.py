"""What is said of arguments of samebits.torch that are no tensors, or of no format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import samebits as sb
import samebits.torch as sbt


@pytest.mark.parametrize("x", [1.5, [1.5], np.ones(3, np.float32), None])
@pytest.mark.parametrize("call", [lambda x: sbt.convert(x, "e4m3"), lambda x: sbt.quantize(x, "TE_CURRENT")])
def test_arguments_that_are_no_tensors(call: Any, x: object) -> None:
    text = f"x: a torch.Tensor is expected; got a {type(x).__name__}; pass torch.as_tensor"
    with pytest.raises(TypeError, match=text):
        call(x)


def test_complex_tensors_keep_their_imaginary_part() -> None:
    x = torch.ones(4, dtype=torch.complex64)
    with pytest.raises(sb.InvalidArgument, match=r"pass torch.view_as_real\(x\), or codes"):
        sbt.convert(x, "bf16")
    assert sbt.convert(torch.view_as_real(x), "bf16").shape == (4, 2)
    with pytest.raises(sb.InvalidArgument, match=r"pass x.real and x.imag, or codes"):
        sb.convert(np.ones(4, np.complex64), "bf16")


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_functions_of_rows_name_themselves(name: str) -> None:
    for given, text in (({"rule": "torch_2_11", "dim": 0}, "got an unexpected keyword argument 'dim'; it computes over "
                         "the last axis"), ({}, "missing 1 required")):
        with pytest.raises(TypeError, match=rf"^{name}\(\) {text}"):
            getattr(sb.functions, name)(torch.ones(4), **given)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("recipe", ["TE_CURRENT", "DEEPGEMM_FP32_CUDA"])
def test_quantized_tensors_are_saved(device: str, tmp_path: Path, recipe: str, transposed: bool) -> None:
    x = torch.arange(32 * 256, dtype=torch.float32).reshape(32, 256).to(device)
    q = sbt.quantize(x.requires_grad_(), recipe, transposed=transposed)
    q.save(tmp_path / "q.safetensors")
    loaded = sb.load_quantized(tmp_path / "q.safetensors")
    assert loaded.recipe == q.recipe and loaded.format == q.format
    for name in ("codes", "scales", "codes_transposed", "scales_transposed"):
        saved, found = getattr(q, name), getattr(loaded, name)
        assert found is None if saved is None else sbt.to_numpy(saved.cpu()).tobytes() == found.tobytes()


@pytest.mark.parametrize(("call", "kind", "begin"), [
    (lambda: sbt.GradScaler("cpu", "65536"), TypeError, "init_scale: a number is expected; got '65536"),
    (lambda: sbt.GradScaler("cpu", growth_interval=2.5), TypeError, "growth_interval: an integer is expected; got 2.5"),
    (lambda: sbt.GradScaler("cpu", max_norm="1"), TypeError, "max_norm: a number is expected"),
    (lambda: sbt.GradScaler("cpu", enabled="no"), TypeError, "enabled: True or False is expected"),
    (lambda: sbt.GradScaler("cpu", reports=None), TypeError, "reports: an integer is expected"),
    (lambda: sbt.Float8Linear("32", 32), TypeError, "in_features: an integer is expected; got '32'"),
    (lambda: sbt.Float8Linear(32, 32.0), TypeError, "out_features: an integer is expected; got 32.0"),
    (lambda: sbt.Float8Linear(32, 32, use_fast_accum="no"), TypeError,
     "use_fast_accum: True or False is expected; got 'no'"),
    (lambda: sbt.Float8Conv1D(32, 32, bias=None), TypeError, "bias: True or False is expected"),
    (lambda: sbt.Float8Linear(32, 32, recipe=3), TypeError, "recipe: a name, a Recipe or a Linear"),
    (lambda: sbt.LinearRecipe("TE_CURRENT", None, None), TypeError, "activations: a Recipe is expected; got a str"),
])
def test_constructors_refuse_wrong_types(call: Any, kind: type[Exception], begin: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(begin)
