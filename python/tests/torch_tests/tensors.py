"""Inputs and comparisons of the tests of samebits.torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import samebits as sb
import samebits.torch as sbt

#: Formats that have a torch dtype.
DTYPES = {
    "fp64": torch.float64, "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16,
    "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e4m3fnuz": torch.float8_e4m3fnuz,
    "e5m2fnuz": torch.float8_e5m2fnuz, "e8m0": torch.float8_e8m0fnu,
}


def numbers(format: str, shape: tuple[int, ...], device: str, seed: int = 0) -> torch.Tensor:
    """Return normally distributed numbers of many magnitudes."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 12, shape)
    return torch.from_numpy(x).to(DTYPES[format]).to(device)


def bits(x: Any) -> torch.Tensor:
    """Return the codes of a tensor on the CPU."""
    unsigned = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}
    return x.detach().cpu().contiguous().view(unsigned[x.dtype.itemsize])


def same(got: Any, expected: Any) -> bool:
    """Return whether two tensors have the same shape, dtype and bits."""
    return (got.shape == expected.shape and got.dtype == expected.dtype and torch.equal(bits(got), bits(expected)))


def on_cpu(x: torch.Tensor, to: str, **options: Any) -> torch.Tensor:
    """Return what samebits.convert gives for the NumPy array of a tensor, in C order."""
    y = sb.convert(sbt.to_numpy(x.detach().cpu().contiguous()), to, **options)
    return sbt.from_numpy(y) if DTYPES.get(to) is not None else torch.from_numpy(y.view(np.uint8))
