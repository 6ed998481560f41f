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


def to_bf16(x: Any) -> Any:
    return x.astype(BF16)


def saturating_e4m3(x: Any) -> Any:
    clipped = np.clip(x, -448, 448)  # keeps NaN
    return clipped.astype(E4M3)


def ties_away(x: Any) -> Any:
    word = x.view(np.uint32)
    up = ((word + np.uint32(0x8000)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), up)


def ties_toward_zero(x: Any) -> Any:
    word = x.view(np.uint32)
    up = ((word + np.uint32(0x7FFF)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), up)


def truncation(x: Any) -> Any:
    return np.where(np.isnan(x), np.uint16(0x7FFF), (x.view(np.uint32) >> 16).astype(np.uint16))


def nan_as_number(x: Any) -> Any:
    word = x.view(np.uint32)
    return ((word + np.uint32(0x7FFF) + ((word >> 16) & 1)) >> 16).astype(np.uint16)


def nan_lost(x: Any) -> Any:
    return np.where(np.isnan(x), np.float32(0), x).astype(BF16)


def inputs_flushed(x: Any) -> Any:
    return np.where(np.abs(x) < SMALLEST_FP32, np.copysign(np.float32(0), x), x).astype(BF16)


def results_flushed(x: Any) -> Any:
    y = saturating_e4m3(x)
    small = np.abs(y.astype(np.float32)) < SMALLEST_E4M3
    return np.where(small, np.copysign(np.float32(0), x), y.astype(np.float32)).astype(E4M3)


def through_fp16(x: Any) -> Any:
    return saturating_e4m3(x.astype(np.float16).astype(np.float32))


def through_bf16(x: Any) -> Any:
    return saturating_e4m3(x.astype(BF16).astype(np.float32))


def not_saturated(x: Any) -> Any:
    return x.astype(E4M3)


def saturated_bf16(x: Any) -> Any:
    largest = np.float32(ml_dtypes.finfo(BF16).max)
    return np.clip(x, -largest, largest).astype(BF16)


def inf_kept(x: Any) -> Any:
    return np.where(np.isinf(x), x.astype(E4M3), saturating_e4m3(x))


def negative_zero_lost(x: Any) -> Any:
    return (x + np.float32(0)).astype(BF16)


def sign_lost(x: Any) -> Any:
    return np.abs(x).astype(BF16)


def next_element(x: Any) -> Any:
    return np.roll(x, -1).astype(BF16)


def tail_of_8(x: Any) -> Any:
    y = np.full(x.shape, 0xA5A5, np.uint16)
    whole = x.size // 8 * 8
    y[:whole] = x[:whole].astype(BF16).view(np.uint16)
    return y


def first_1024(x: Any) -> Any:
    y = np.full(x.shape, 0xA5A5, np.uint16)
    y[:1024] = x[:1024].astype(BF16).view(np.uint16)
    return y


def stochastic(*, bits: int = 16, index: int = 0, seed: int = 7) -> Kernel:
    """Return a kernel fp32 -> bf16 with K = `bits` and every index too large by `index`."""
    def kernel(x: Any) -> Any:
        return sb.convert(x, "bf16", rounding="stochastic", seed=seed, offset=index,
                          random_bits=bits)
    return kernel


def nan_as_in_ml_dtypes(x: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return x.astype(ml_dtypes.float4_e2m1fn)


SATURATE = {"overflow": "saturate"}
PLANTED = [
    Planted("ties_away", ties_away, "bf16", "ties away from zero instead of to even"),
    Planted("ties_toward_zero", ties_toward_zero, "bf16", "ties toward zero instead of to even"),
    Planted("truncation", truncation, "bf16",
            "rounded toward zero (truncated) instead of to nearest even"),
    Planted("nan_as_number", nan_as_number, "bf16", "a NaN is rounded like a number"),
    Planted("nan_lost", nan_lost, "bf16", "a NaN becomes 0"),
    Planted("nan_as_in_ml_dtypes", nan_as_in_ml_dtypes, "e2m1",
            "a NaN becomes 0 of the opposite sign"),
    Planted("other_nan", to_bf16, "bf16", "another NaN code", {"nan": "canonical"}),
    Planted("inputs_flushed", inputs_flushed, "bf16", "subnormal inputs flushed to zero"),
    Planted("results_flushed", results_flushed, "e4m3", "subnormal results flushed to zero",
            SATURATE),
    Planted("through_fp16", through_fp16, "e4m3", "rounded twice: to fp16, then to e4m3", SATURATE),
    Planted("through_bf16", through_bf16, "e4m3", "rounded twice: to bf16, then to e4m3", SATURATE),
    Planted("not_saturated", not_saturated, "e4m3", "NaN on overflow instead of: saturated",
            SATURATE),
    Planted("saturated", saturated_bf16, "bf16",
            "saturated to the largest finite number on overflow instead of: Inf on overflow"),
    Planted("inf_kept", inf_kept, "e4m3", "finite numbers saturated and Inf kept", SATURATE),
    Planted("negative_zero_lost", negative_zero_lost, "bf16", "-0 lost: an input of -0 becomes +0"),
    Planted("sign_lost", sign_lost, "bf16", "the sign is lost"),
    Planted("next_element", next_element, "bf16", "out[i] comes from in[i + 1]"),
    Planted("tail_of_8", tail_of_8, "bf16", "tail not written: the last n mod 8 of a call"),
    Planted("first_1024", first_1024, "bf16",
            "tail not written: the elements after the first 1024"),
    Planted("K_15", stochastic(bits=15), "bf16", "K = 15 random bits instead of 16", STOCHASTIC),
    Planted("K_17", stochastic(bits=17), "bf16", "K = 17 random bits instead of 16", STOCHASTIC),
    Planted("index_plus_1", stochastic(index=1), "bf16", "random index too large by one",
            STOCHASTIC),
    Planted("nearest_even", to_bf16, "bf16", "rounded to nearest even instead of stochastically",
            STOCHASTIC),
]
