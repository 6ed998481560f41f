"""Quantizers in NumPy with one planted error each, and what the test kit must say of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import samebits as sb

E4M3 = ml_dtypes.float8_e4m3fn
OPTIONS: dict[str, Any] = {"tile": (1, 128), "scale": "div", "eps": 1e-4, "nonfinite": "propagate", "overflow": "ieee"}


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


def changed(codes: Any, where: Any, become: Any) -> Any:
    return np.where(where, become, codes.view(np.uint8))


def magnitude(codes: Any) -> Any:
    return np.abs(codes.astype(np.float32))


def truncated(y: Any) -> Any:
    """Round toward zero: the nearest code, moved down if it is above."""
    codes = y.astype(E4M3)
    return changed(codes, magnitude(codes) > np.abs(y), codes.view(np.uint8) - 1)


def flushed(y: Any) -> Any:
    codes = y.astype(E4M3)
    return changed(codes, magnitude(codes) < np.float32(2.0**-6), codes.view(np.uint8) & 0x80)


def with_scales(change: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Return a quantizer with other scales: those of a function of the matrix and the right scales."""
    def kernel(x: Any) -> Any:
        codes, scales = quantizer()(x)
        return codes, change(x, scales)
    return kernel


def by_inverse_scale(x: Any) -> Any:
    tiles = tiles_of(x, 128)
    inverse = np.float32(448) / np.maximum(np.max(np.abs(tiles), axis=2), np.float32(1e-4))
    codes = (tiles * inverse[:, :, None]).astype(E4M3)
    return codes.reshape(x.shape[0], -1)[:, :x.shape[1]], ONE / inverse


ONE = np.float32(1)
PLANTED = {
    "scale rule dg_cuda instead of div": quantizer(scale=lambda a, m: a * (ONE / m), scaled=lambda t, s: t * (ONE / s)),
    "scale rule rcp instead of div": quantizer(scaled=lambda t, s: t * (ONE / s)),
    "scale rule te instead of div": by_inverse_scale,
    "scales stored as their inverse (S instead of s)": quantizer(stored=lambda s: ONE / s),
    "rounded up to a power of two": quantizer(
        stored=lambda s: np.exp2(np.ceil(np.log2(s.astype(np.float64)))).astype(np.float32)),
    "eps missing": quantizer(eps=0),
    "eps is 1e-12 instead of 0.0001": quantizer(eps=1e-12),
    "the maximum of the elements instead of their magnitudes": quantizer(amax=lambda t: np.max(t, axis=2)),
    "the scale is made for 240": quantizer(largest=240),
    "only tiles cut off at the edge of the matrix are wrong": with_scales(
        lambda x, s: np.where(np.arange(s.shape[1]) < x.shape[1] // 128, s, np.float32(-7))),
    "scales of the next tile": with_scales(lambda x, s: np.roll(s.ravel(), -1).reshape(s.shape)),
    "only tiles of zeros are wrong": with_scales(
        lambda x, s: np.where(np.abs(tiles_of(x, 128)).max(axis=2) == 0, ONE, s)),
    "codes rounded toward zero": quantizer(cast=truncated),
    "subnormal codes flushed to zero": quantizer(cast=flushed),
    "the scaled element is rounded to bf16 before the cast": quantizer(
        cast=lambda y: y.astype(ml_dtypes.bfloat16).astype(E4M3)),
    "the scaled element is not rounded to fp32": quantizer(  # ml_dtypes would round fp64 to fp32 first
        scaled=lambda t, s: t.astype(np.float64) / s, cast=lambda y: sb.convert(y.astype(np.float64), "e4m3")),
}

#: What the check says of an error, if it says it in other words.
SAYS = {
    "codes rounded toward zero": "right scales; codes: rounded toward zero (truncated)",
    "subnormal codes flushed to zero": "right scales; codes: subnormal results flushed to zero",
    "the scaled element is rounded to bf16 before the cast":
        "right scales; codes: rounded twice: to bf16, then to e4m3",
}
