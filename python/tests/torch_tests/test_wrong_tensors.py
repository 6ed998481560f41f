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
@pytest.mark.parametrize("call", [lambda x: sbt.convert(x, "e4m3"),
                                  lambda x: sbt.quantize(x, "TE_CURRENT")])
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
    function = getattr(sb.functions, name)
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'dim'; "
                                        "it computes over the last axis"):
        function(torch.ones(4), rule="torch_2_11", dim=0)
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing 1 required"):
        function(torch.ones(4))


def test_one_tensor_is_singular() -> None:
    assert str(sb.inspect(torch.ones(24))).startswith("24 elements in 1 tensor: ")
    assert str(sb.inspect([torch.ones(2), torch.ones(2)])).startswith("4 elements in 2 tensors: ")


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("recipe", ["TE_CURRENT", "DEEPGEMM_FP32_CUDA"])
def test_quantized_tensors_are_saved(device: str, tmp_path: Path, recipe: str,
                                     transposed: bool) -> None:
    x = torch.arange(32 * 256, dtype=torch.float32).reshape(32, 256).to(device)
    q = sbt.quantize(x.requires_grad_(), recipe, transposed=transposed)
    q.save(tmp_path / "q.safetensors")
    loaded = sb.load_quantized(tmp_path / "q.safetensors")
    assert loaded.recipe == q.recipe and loaded.format == q.format
    for name in ("codes", "scales", "codes_transposed", "scales_transposed"):
        saved, found = getattr(q, name), getattr(loaded, name)
        assert (saved is None) == (found is None)
        if saved is not None:
            assert sbt.to_numpy(saved.cpu()).tobytes() == found.tobytes()
