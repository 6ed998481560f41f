"""Delayed scaling: the scale of a tensor is computed from the amaxes of earlier steps."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.formats import INDEX, NAMES, choose, format_index
from samebits.rules import integer, number

__all__ = ["DelayedScaling"]

_CHOICES: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("history_choice"))}
_ZERO_STEPS: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("zero_step"))}


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
    >>> import numpy as np
    >>> import samebits as sb
    >>> state = sb.DelayedScaling(4)
    >>> q = sb.quantize(np.float32([[3.5]]), "TE_DELAYED", inverse_scales=state.inverse_scales,
    ...                 statistics=True)
    >>> state.observe(q.statistics.amax)
    >>> state.update()
    >>> state.inverse_scale
    128.0
    """

    def __init__(self, length: int = 1024, *, to: object = "e4m3", margin: int = 0,
                 choice: str = "maximum", zero_step: str = "skip") -> None:
        if integer(length, "length") < 1:
            raise InvalidArgument(f"length: a positive number is expected; got {length}")
        if not -64 <= integer(margin, "margin") <= 64:
            raise InvalidArgument(f"margin: -64 .. 64 is expected; got {margin}")
        self.history: npt.NDArray[np.float32] = np.zeros(length, np.float32)
        self.inverse_scale = 1.0
        self.scale = 1.0
        if (format := format_index(to, "to")) not in (INDEX["e4m3"], INDEX["e5m2"]):
            raise InvalidArgument(f"to: e4m3 or e5m2 is expected; got {NAMES[format]}")
        self._settings = (format, margin, choose("choice", choice, _CHOICES),
                          choose("zero_step", zero_step, _ZERO_STEPS))

    @property
    def inverse_scales(self) -> npt.NDArray[np.float32]:
        """The inverse scale as an array [1, 1]."""
        return np.full((1, 1), self.inverse_scale, np.float32)

    def observe(self, amax: float) -> None:
        """Record an amax of this step; a NaN is larger than all numbers."""
        _core.delayed_observe(self.history, number(amax, "amax"))

    def update(self) -> None:
        """End the step: compute the scales of the next one and advance the history."""
        self.inverse_scale, self.scale = _core.delayed_update(
            self.inverse_scale, self.scale, self.history, *self._settings)
