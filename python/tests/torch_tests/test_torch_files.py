"""fpinspect reads what torch.save writes: the names, shapes and elements of all tensors."""

from __future__ import annotations

import collections
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.skipif("FPINSPECT" not in os.environ, reason="fpinspect is not built")

SAVES: dict[str, dict[str, Any]] = {
    "zip": {}, "old": {"_use_new_zipfile_serialization": False}, "zip4": {"pickle_protocol": 4},
    "zip5": {"pickle_protocol": 5},
    "old4": {"_use_new_zipfile_serialization": False, "pickle_protocol": 4}}
NUMBERS = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64",
           torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
           torch.float8_e4m3fnuz: "F8_E4M3FNUZ", torch.float8_e5m2fnuz: "F8_E5M2FNUZ",
           torch.int8: "I8", torch.uint8: "U8", torch.int16: "I16", torch.uint16: "U16",
           torch.int32: "I32", torch.uint32: "U32", torch.int64: "I64", torch.uint64: "U64"}
OTHERS = {torch.bool: "BOOL", torch.complex64: "C64", torch.complex128: "C128"}


def walk(obj: Any, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(obj, torch.Tensor):
        yield path, obj
    elif isinstance(obj, (dict, list, tuple)):
        for key, value in obj.items() if isinstance(obj, dict) else enumerate(obj):
            yield from walk(value, f"{path}.{key}" if path else str(key))


def fpinspect(*arguments: str) -> str:
    return subprocess.run([os.environ["FPINSPECT"], *arguments], check=True, capture_output=True,
                          encoding="utf-8").stdout


def check(folder: Path, obj: Any) -> None:
    for save, options in SAVES.items():
        file = str(folder / f"{save}.pt")
        torch.save(obj, file, **options)
        expected = dict(walk(obj))  # torch.load refuses float8 in old files
        tensors = {t["name"]: t for t in json.loads(fpinspect("tensor", file, "--json"))["tensors"]}
        assert list(tensors) == list(expected)
        for name, tensor in expected.items():
            assert tensors[name]["dtype"] == {**NUMBERS, **OTHERS}[tensor.dtype]
            assert tensors[name]["shape"] == list(tensor.shape)
            if tensor.dtype in OTHERS:
                continue
            out = str(folder / "out.npy")
            fpinspect("convert", f"{file}#{name}" if name else file, out, "--to", "fp32")
            values = tensor.detach().to(torch.float32).numpy()
            found = np.load(out)
            assert found.shape == values.shape and found.tobytes() == values.tobytes(), (save, name)


@pytest.mark.parametrize("dtype", [*NUMBERS, *OTHERS], ids=str)
def test_element_types(tmp_path: Path, dtype: torch.dtype) -> None:
    numbers = torch.arange(24).reshape(2, 3, 4).to(dtype)
    check(tmp_path, {"whole": numbers, "turned": numbers.permute(2, 0, 1), "scalar": numbers[1, 2, 3],
                     "part": numbers[:, 1:, ::2], "same": numbers, "empty": numbers[:, 3:],
                     "row": numbers[0, :, :1].expand(3, 5)})


def test_a_training_checkpoint(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model.register_buffer("tied", model.linear1.weight.detach())
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for _ in range(2):
        model(torch.randn(2, 3, 16)).square().sum().backward()
        optimizer.step()
        schedule.step()
    check(tmp_path, {"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                     "schedule": schedule.state_dict(), "epoch": 2, "rng": torch.get_rng_state()})
    check(tmp_path, collections.OrderedDict(model.named_parameters()))


def test_containers(tmp_path: Path) -> None:
    x = torch.randn(3)
    check(tmp_path, x)
    check(tmp_path, [x, (x, {"a": {1: x, "b.c": [x[1:]]}}), torch.nn.Parameter(x), 3, "text", None])
    check(tmp_path, {})


def test_archives_without_crc(tmp_path: Path) -> None:
    torch.serialization.set_crc32_options(False)
    try:
        check(tmp_path, {"w": torch.randn(5)})
    finally:
        torch.serialization.set_crc32_options(True)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_tensors_that_are_not_read(tmp_path: Path) -> None:
    x = torch.randn(3, 3)
    unread = {"sparse": x.to_sparse(), "csr": x.to_sparse_csr(), "meta": x.to("meta"),
              "negated": torch._neg_view(x), "conjugate": x.to(torch.complex64).conj(),
              "quantized": torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)}
    for save, options in SAVES.items():
        file = str(tmp_path / f"{save}.pt")
        torch.save({**unread, "w": x}, file, **options)
        tensors = {t["name"]: t for t in json.loads(fpinspect("tensor", file, "--json"))["tensors"]}
        assert [name for name, tensor in tensors.items() if tensor["dtype"] is None] == list(unread)


def test_whole_modules_are_refused(tmp_path: Path) -> None:
    for save, options in SAVES.items():
        file = str(tmp_path / f"{save}.pt")
        torch.save(torch.nn.Linear(2, 2), file, **options)
        done = subprocess.run([os.environ["FPINSPECT"], "tensor", file], capture_output=True, encoding="utf-8")
        assert (done.returncode, done.stdout) == (3, "")
        assert "the pickle calls torch.nn.modules.linear.Linear, which was not run" in done.stderr
