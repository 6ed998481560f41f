"""Conversion kernels in NumPy with one planted error each, and what the kit must say of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import samebits as sb

Kernel = Callable[[Any], Any]
BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
SMALLEST_FP32, SMALLEST_E4M3 = np.float32(2.0**-126), np.float32(2.0**-6)
STOCHASTIC = {"rounding": "stochastic", "seed": 7, "random_bits": 16}


@dataclass(frozen=True)
class Planted:
    """A kernel, the arguments of its check, and a part of the explanation."""

    name: str
    kernel: Kernel
    target: str
    says: str
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kernel.__name__ == "<lambda>":  # the name in the line that repeats a failure
            self.kernel.__name__ = self.name


def to_bf16(x: Any) -> Any:
    return x.astype(BF16)


def saturating_e4m3(x: Any) -> Any:
    return np.clip(x, -448, 448).astype(E4M3)  # keeps NaN


def rounded(added: Callable[[Any], Any]) -> Kernel:
    """Return a kernel fp32 -> bf16 that adds a number to the code and cuts it."""
    return lambda x: np.where(np.isnan(x), np.uint16(0x7FFF), (x.view(np.uint32) + added(x) >> 16).astype(np.uint16))


def nan_as_number(x: Any) -> Any:
    word = x.view(np.uint32)
    return ((word + np.uint32(0x7FFF) + ((word >> 16) & 1)) >> 16).astype(np.uint16)


def flushed(x: Any, y: Any, smallest: Any) -> Any:
    return np.where(np.abs(y) < smallest, np.copysign(np.float32(0), x), y)


def written(part: Callable[[Any], int]) -> Kernel:
    """Return a kernel fp32 -> bf16 that writes the first elements."""
    def kernel(x: Any) -> Any:
        y = np.full(x.shape, 0xA5A5, np.uint16)
        y[:part(x)] = x[:part(x)].astype(BF16).view(np.uint16)
        return y
    return kernel


def stochastic(*, bits: int = 16, index: int = 0, seed: int = 7) -> Kernel:
    """Return a kernel fp32 -> bf16 with K = `bits` and every index too large by `index`."""
    def kernel(x: Any) -> Any:
        return sb.convert(x, "bf16", rounding="stochastic", seed=seed, offset=index, random_bits=bits)
    return kernel


def nan_as_in_ml_dtypes(x: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return x.astype(ml_dtypes.float4_e2m1fn)


SATURATE = {"overflow": "saturate"}
LARGEST = np.float32(ml_dtypes.finfo(BF16).max)
PLANTED = [
    Planted("ties_away", rounded(lambda x: np.uint32(0x8000)), "bf16", "ties away from zero instead of to even"),
    Planted("ties_toward_zero", rounded(lambda x: np.uint32(0x7FFF)), "bf16", "ties toward zero instead of to even"),
    Planted("truncation", rounded(lambda x: np.uint32(0)), "bf16",
            "rounded toward zero (truncated) instead of to nearest even"),
    Planted("nan_as_number", nan_as_number, "bf16", "a NaN is rounded like a number"),
    Planted("nan_lost", lambda x: np.where(np.isnan(x), np.float32(0), x).astype(BF16), "bf16", "a NaN becomes 0"),
    Planted("nan_as_in_ml_dtypes", nan_as_in_ml_dtypes, "e2m1", "a NaN becomes 0 of the opposite sign"),
    Planted("other_nan", to_bf16, "bf16", "another NaN code", {"nan": "canonical"}),
    Planted("inputs_flushed", lambda x: flushed(x, x, SMALLEST_FP32).astype(BF16), "bf16",
            "subnormal inputs flushed to zero"),
    Planted("results_flushed", lambda x: flushed(x, saturating_e4m3(x).astype(np.float32), SMALLEST_E4M3).astype(E4M3),
            "e4m3", "subnormal results flushed to zero", SATURATE),
    Planted("through_fp16", lambda x: saturating_e4m3(x.astype(np.float16).astype(np.float32)), "e4m3",
            "rounded twice: to fp16, then to e4m3", SATURATE),
    Planted("through_bf16", lambda x: saturating_e4m3(x.astype(BF16).astype(np.float32)), "e4m3",
            "rounded twice: to bf16, then to e4m3", SATURATE),
    Planted("not_saturated", lambda x: x.astype(E4M3), "e4m3", "NaN on overflow instead of: saturated", SATURATE),
    Planted("saturated", lambda x: np.clip(x, -LARGEST, LARGEST).astype(BF16), "bf16",
            "saturated to the largest finite number on overflow instead of: Inf on overflow"),
    Planted("inf_kept", lambda x: np.where(np.isinf(x), x.astype(E4M3), saturating_e4m3(x)), "e4m3",
            "finite numbers saturated and Inf kept", SATURATE),
    Planted("negative_zero_lost", lambda x: (x + np.float32(0)).astype(BF16), "bf16",
            "-0 lost: an input of -0 becomes +0"),
    Planted("sign_lost", lambda x: np.abs(x).astype(BF16), "bf16", "the sign is lost"),
    Planted("next_element", lambda x: np.roll(x, -1).astype(BF16), "bf16", "out[i] comes from in[i + 1]"),
    Planted("tail_of_8", written(lambda x: x.size // 8 * 8), "bf16", "tail not written: the last n mod 8 of a call"),
    Planted("first_1024", written(lambda x: 1024), "bf16", "tail not written: the elements after the first 1024"),
    Planted("K_15", stochastic(bits=15), "bf16", "K = 15 random bits instead of 16", STOCHASTIC),
    Planted("K_17", stochastic(bits=17), "bf16", "K = 17 random bits instead of 16", STOCHASTIC),
    Planted("index_plus_1", stochastic(index=1), "bf16", "random index too large by one", STOCHASTIC),
    Planted("nearest_even", to_bf16, "bf16", "rounded to nearest even instead of stochastically", STOCHASTIC),
]
