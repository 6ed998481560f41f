"""Quantizers in NumPy with one planted error each, and what the test kit must say of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import samebits as sb

E4M3 = ml_dtypes.float8_e4m3fn
OPTIONS: dict[str, Any] = {"tile": (1, 128), "scale": "div", "eps": 1e-4, "nonfinite": "propagate",
                           "overflow": "ieee"}


def tiles_of(x: Any, width: int) -> Any:
    """Return the matrix [rows, tiles, width], filled up with zeros."""
    rows, cols = x.shape
    padded = np.zeros((rows, -(-cols // width) * width), np.float32)
    padded[:, :cols] = x
    return padded.reshape(rows, -1, width)


def quantizer(*, eps: float = 1e-4, largest: float = 448, width: int = 128,
              amax: Callable[[Any], Any] = lambda t: np.max(np.abs(t), axis=2),
              scale: Callable[[Any, Any], Any] = lambda a, m: a / m,
              scaled: Callable[[Any, Any], Any] = lambda t, s: t / s,
              stored: Callable[[Any], Any] = lambda s: s,
              cast: Callable[[Any], Any] = lambda y: y.astype(E4M3)) -> Callable[[Any], Any]:
    """Return a quantizer with tiles of 1 x 128 and the scale rule `div`; each step can be replaced.

    Every step is one operation of fp32: scale = max(amax, eps) / 448, code = x / scale.
    """
    def kernel(x: Any) -> Any:
        tiles = tiles_of(x, width)
        a = amax(tiles)
        s = scale(np.maximum(a, np.float32(eps)), np.float32(largest))
        codes = cast(scaled(tiles, s[:, :, None])).reshape(x.shape[0], -1)[:, :x.shape[1]]
        return codes, stored(s).astype(np.float32)
    return kernel


def by_bf16(y: Any) -> Any:
    return y.astype(ml_dtypes.bfloat16).astype(E4M3)


def truncated(y: Any) -> Any:
    """Round toward zero: the nearest code, moved down if it is above."""
    codes = y.astype(E4M3)
    above = np.abs(codes.astype(np.float32)) > np.abs(y)
    return np.where(above, codes.view(np.uint8) - 1, codes.view(np.uint8))


def pow2(a: Any, m: Any) -> Any:
    return np.exp2(np.ceil(np.log2((a / m).astype(np.float64)))).astype(np.float32)


def flushed(y: Any) -> Any:
    codes = y.astype(E4M3)
    small = np.abs(codes.astype(np.float32)) < np.float32(2.0**-6)
    return np.where(small, codes.view(np.uint8) & 0x80, codes.view(np.uint8))


def from_fp64(y: Any) -> Any:
    """Round fp64 numbers once; ml_dtypes would round them to fp32 first."""
    return sb.convert(y.astype(np.float64), "e4m3")


def last_tile_missing(x: Any) -> Any:
    codes, scales = quantizer()(x)
    whole = x.shape[1] // 128
    scales[:, whole:] = -7
    return codes, scales


def scales_of_next_tile(x: Any) -> Any:
    codes, scales = quantizer()(x)
    return codes, np.roll(scales.ravel(), -1).reshape(scales.shape)


def zeros_unscaled(x: Any) -> Any:
    codes, scales = quantizer()(x)
    zeros = np.abs(tiles_of(x, 128)).max(axis=2) == 0
    return codes, np.where(zeros, ONE, scales)


def by_inverse_scale(x: Any) -> Any:
    tiles = tiles_of(x, 128)
    amax = np.maximum(np.max(np.abs(tiles), axis=2), np.float32(1e-4))
    inverse = np.float32(448) / amax
    codes = (tiles * inverse[:, :, None]).astype(E4M3)
    return codes.reshape(x.shape[0], -1)[:, :x.shape[1]], ONE / inverse


ONE = np.float32(1)
PLANTED = {
    "scale rule dg_cuda instead of div": quantizer(
        scale=lambda a, m: a * (ONE / m), scaled=lambda t, s: t * (ONE / s)),
    "scale rule rcp instead of div": quantizer(scaled=lambda t, s: t * (ONE / s)),
    "scale rule te instead of div": by_inverse_scale,
    "scales stored as their inverse (S instead of s)": quantizer(stored=lambda s: ONE / s),
    "rounded up to a power of two": quantizer(stored=lambda s: pow2(s, ONE)),
    "eps missing": quantizer(eps=0),
    "eps is 1e-12 instead of 0.0001": quantizer(eps=1e-12),
    "the maximum of the elements instead of their magnitudes": quantizer(
        amax=lambda t: np.max(t, axis=2)),
    "the scale is made for 240": quantizer(largest=240),
    "only tiles cut off at the edge of the matrix are wrong": last_tile_missing,
    "scales of the next tile": scales_of_next_tile,
    "only tiles of zeros are wrong": zeros_unscaled,
    "codes rounded toward zero": quantizer(cast=truncated),
    "subnormal codes flushed to zero": quantizer(cast=flushed),
    "the scaled element is rounded to bf16 before the cast": quantizer(cast=by_bf16),
    "the scaled element is not rounded to fp32": quantizer(
        scaled=lambda t, s: t.astype(np.float64) / s, cast=from_fp64),
}

#: What the check says of an error, if it says it in other words.
SAYS = {
    "codes rounded toward zero": "right scales; codes: rounded toward zero (truncated)",
    "subnormal codes flushed to zero": "right scales; codes: subnormal results flushed to zero",
    "the scaled element is rounded to bf16 before the cast":
        "right scales; codes: rounded twice: to bf16, then to e4m3",
}
