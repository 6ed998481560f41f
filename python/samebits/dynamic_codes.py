"""Numbers of the dynamic 8-bit codes of optimizer states."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["dynamic_values"]


def _borders(parts: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the borders of equal parts of [0.1, 1]: one fma each from the nearer end.

    The fp64 numbers are exact.
    """
    step = np.float64((np.float32(1) - np.float32(0.1)) / np.float32(parts))
    j = np.arange(parts + 1)
    lower = np.float64(np.float32(0.1)) + step * j
    return np.where(j < (parts + 1) // 2, lower, 1 - step * (parts - j)).astype(np.float32)


def dynamic_values(signed: bool) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the 256 numbers of the codes (docs/contract.md, "Dynamic codes")."""
    decades = []
    for k in range(7):
        borders = _borders(2**k if signed else 2 ** (k + 1))
        means = (borders[:-1] + borders[1:]) / np.float32(2)
        decades.append(np.float32(10.0 ** (k - 6)) * means)
    positive = np.concatenate(decades)
    zero, one = np.zeros(1, np.float32), np.ones(1, np.float32)
    negative = [-positive[::-1]] if signed else []
    return np.concatenate([*negative, zero, positive, one])
