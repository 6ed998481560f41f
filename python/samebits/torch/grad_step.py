"""The report of one iteration of a GradScaler."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["GradStep", "grad_step"]


@dataclass(frozen=True)
class GradStep:
    """What became of one iteration: one `update` of a `GradScaler`.

    Attributes
    ----------
    step : int
        Number of iterations before this one.
    applied : bool
        Whether all optimizers stepped. If False, at least one was skipped; others may have stepped.
    cause : str
        none, or the cause of the skipped step: nonfinite, overflow, nan, loss or unscaled.
    change : str
        Effect on the scale: kept, grown, backed_off or at_minimum.
    norm : float or None
        Norm of the unscaled gradients of all optimizers together, before clipping; None if it was
        not computed. Without ``max_norm=``, NaN is None too. Each optimizer is clipped by the norm
        of its own gradients.
    scale : float
        Scale of the iteration.
    first_bad : str or None
        Name of the first parameter whose gradient is not finite.
    applied_steps : int
        Number of applied iterations so far, this one included.
    stop : bool
        Whether the policy ends the run.
    """

    step: int
    applied: bool
    cause: str
    change: str
    norm: float | None
    scale: float
    first_bad: str | None
    applied_steps: int
    stop: bool


def grad_step(row: Sequence[Any], name: Callable[[int], str | None],
              clips: bool) -> GradStep:
    """Return a report from the row of samebits._core, whose parameters have numbers.

    `clips` says that the norm was computed. If not, the row has NaN, or the norm nevertheless: a
    pass that only reads the gradients computes it.
    """
    step, applied, cause, change, stop, norm, scale, applied_steps, first_bad = row[:9]
    return GradStep(step, applied, cause, change, None if math.isnan(norm) and not clips else norm,
                    scale, name(first_bad), applied_steps, stop)
