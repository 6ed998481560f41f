"""What the comparisons of a GPU's results with rules share: operands, versions, differences."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

STRIDE = 1 if os.environ.get("SAMEBITS_EXHAUSTIVE") == "1" else 61
CHUNK = 1 << 24
FORMATS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def require(**versions: str) -> None:
    """Skip a test of rules of Hopper and of versions of packages, such as torch="2.11."."""
    for name, version in versions.items():
        found = str(getattr(pytest.importorskip(name), "__version__"))
        if not found.startswith(version):
            pytest.skip(f"the rule is that of {name} {version}, not {found}")
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("the rule is that of GPUs of compute capability 9.0")


def codes(format: str, device: str) -> Iterator[torch.Tensor]:
    """The operands as tensors of at most CHUNK elements, multiples of 1024."""
    if format != "fp32":
        yield torch.arange(1 << 16, device=device).to(torch.int16).repeat(16).view(FORMATS[format])
        return
    for first in range(0, 1 << 32, CHUNK * STRIDE):
        numbers = first + STRIDE * torch.arange(CHUNK, device=device, dtype=torch.int64)
        yield (numbers & 0xFFFFFFFF).to(torch.int32).view(torch.float32)


def bits(t: torch.Tensor) -> Any:
    """The codes of a tensor, all NaN alike."""
    t = t.detach().contiguous()
    integer, nan = (torch.int32, 0x7FFFFFFF) if t.dtype == torch.float32 else (torch.int16, 0x7FFF)
    return t.view(integer).masked_fill(t.isnan(), nan).cpu().numpy()


def different(result: torch.Tensor, model: torch.Tensor, x: torch.Tensor) -> str:
    """The number of results that differ and the first one, or an empty text."""
    got, expected = bits(result), bits(model)
    wrong = np.argwhere(got != expected)
    if len(wrong) == 0:
        return ""
    at = tuple(int(i) for i in wrong[0])
    mask = 0xFFFFFFFF if got.itemsize == 4 else 0xFFFF
    return (f"{len(wrong)} of {got.size} at {at}, x = {x[at].item()!r}: GPU {int(got[at]) & mask:X}, "
            f"model {int(expected[at]) & mask:X}")
