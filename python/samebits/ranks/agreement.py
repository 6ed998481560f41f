"""What all ranks observed together in one step."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RankObservation"]


@dataclass(frozen=True)
class RankObservation:
    """What all ranks observed together in one step; the same on every rank.

    Attributes
    ----------
    nonfinite, loss_nonfinite, unscaled_nonfinite : bool
        Whether a scaled gradient, a loss before scaling, or an unscaled gradient was NaN or Inf.
    amax_bits : int
        Largest magnitude as binary32 bits; FFFFFFFF if a rank did not measure it.
    first_bad : int or None
        Position of the first tensor with NaN or Inf.
    bad_rank : int or None
        First rank whose loss was not finite, else first rank with another NaN or Inf.
    """

    nonfinite: bool
    loss_nonfinite: bool
    unscaled_nonfinite: bool
    amax_bits: int
    first_bad: int | None
    bad_rank: int | None
