"""Delayed scaling: the scale of a tensor is computed from the amaxes of earlier steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from samebits import _core

if TYPE_CHECKING:
    from samebits.typing import FormatLike, HistoryChoice, ZeroStep

__all__ = ["DelayedScaling"]


class DelayedScaling:
    """Scales of one tensor, from the amaxes of its earlier steps.

    Parameters
    ----------
    length : int
        Steps in the history.
    to : str or dtype
        Format of the codes: e4m3 or e5m2.
    margin : int
        Number of binades between the scaled amax and the largest code, -64 .. 64.
    choice : str
        maximum or most_recent: the amax of the history that determines the next scale.
    zero_step : str
        skip: a step of zeros leaves history and scales unchanged. roll: it updates them.

    Attributes
    ----------
    history : array [length] of float32
        Amaxes; history[0] is the amax of this step. With several processes, first replace
        history[0] on each by the maximum over all of them, then call `update`.
    inverse_scale, scale : float
        Inverse scale, for ``quantize(..., inverse_scales=)``; dequantization scale, which is its
        reciprocal rounded to fp32.

    Examples
    --------
    >>> state = sb.DelayedScaling(4)
    >>> q = sb.quantize(np.float32([[3.5]]), "TE_DELAYED", inverse_scales=state.inverse_scales,
    ...                 statistics=True)
    >>> state.observe(q.statistics.amax)
    >>> state.update()
    >>> state.inverse_scale
    128.0
    """

    def __init__(self, length: int = 1024, *, to: FormatLike = "e4m3", margin: int = 0,
                 choice: HistoryChoice = "maximum", zero_step: ZeroStep = "skip") -> None:
        size = _core.integer(length, "length", 1, 2**48 - 1)
        self._settings = to, margin, choice, zero_step
        _core.check_delayed_settings(self._settings)
        self.history: npt.NDArray[np.float32] = np.zeros(size, np.float32)
        self.inverse_scale = 1.0
        self.scale = 1.0

    @property
    def inverse_scales(self) -> npt.NDArray[np.float32]:
        """The inverse scale as an array [1, 1]."""
        return np.full((1, 1), self.inverse_scale, np.float32)

    def observe(self, amax: float) -> None:
        """Record an amax of this step; a NaN is larger than all numbers.

        Parameters
        ----------
        amax : float
        """
        _core.delayed_observe(self.history, amax)

    def update(self) -> None:
        """End the step: compute the scales of the next one and advance the history."""
        self.inverse_scale, self.scale = _core.delayed_update(
            self.inverse_scale, self.scale, self.history, self._settings)
