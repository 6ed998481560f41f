"""The state of a loss scaler in the memory of a device, where a step updates it without waiting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from samebits import _core
from samebits.loss_scaler import LossScaler
from samebits.torch import recorded_calls
from samebits.torch.gradient_list import GradientReport
from samebits.torch.operators import without_modes
from samebits.torch.tensors import moved, stream_of

_ROWS: Final = 8


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


class ResidentScaler:
    """Scale, policy's state, gradient reports and the ring of step reports.

    Parameters
    ----------
    scaler : LossScaler
        Settings and state to begin with.
    device : torch.device
    capacity : int
        Number of step reports that the ring keeps.

    Attributes
    ----------
    words : Tensor [4] of float32
        Scale, inverse scale, whether a loss was bad (0: none), and whether the policy ends the run.
    scale : Tensor [] of float32
    """

    def __init__(self, scaler: LossScaler, device: torch.device, capacity: int) -> None:
        self.device = device
        with without_modes():  # a recording cannot know what is written into host memory
            state, words = _on_host(scaler)
            self.words, self._state = words.to(device), state.to(device)
        # Autograd saves the scale for the backward pass; writing another word must not change the
        # version of what it saved.
        self.scale = self.words.data[0]
        self._written()
        self._capacity = capacity
        self._ring = torch.zeros(capacity * _core.report_slot_bytes, dtype=torch.uint8,
                                 pin_memory=device.type == "cuda")
        self._next = scaler.updates()
        self._used = 0
        self._make_rows(_ROWS)
        self.lost = 0

    def fetch(self, scaler: LossScaler) -> None:
        """Write the present state into `scaler`; waits for the device."""
        with without_modes():
            state = self._state.cpu()
        _core.resident_load(scaler._core, state.data_ptr())

    def store(self, scaler: LossScaler) -> None:
        """Continue from the state of `scaler`. Requires a `fetch` before, which waits."""
        with without_modes():
            state, words = _on_host(scaler)
            self._state.copy_(state)
            self.words.copy_(words)
        self._written()
        self._ring.zero_()
        self._next = scaler.updates()

    def _make_rows(self, count: int) -> None:
        self._data = torch.zeros((count, 6), dtype=torch.float64, device=self.device)
        self._rows = [GradientReport(row) for row in self._data]

    def report(self, device: torch.device) -> GradientReport:
        """Return memory for the report on the gradients of an optimizer on a device."""
        if device != self.device or self._used == len(self._rows):
            return GradientReport(torch.zeros(6, dtype=torch.float64, device=device))
        self._used += 1
        return self._rows[self._used - 1]

    def begin(self) -> None:
        """Begin an iteration: the memory of all reports is free again."""
        self._used = 0

    def update(self, rules: LossScaler, reports: Sequence[GradientReport]) -> None:
        """Set the scale of the next iteration by the settings of `rules`."""
        step = self._data.stride(0) * self._data.element_size()
        first = self._data.data_ptr()
        if any(r.data.data_ptr() != first + i * step for i, r in enumerate(reports)):
            # Reports of another device, or not in order: bring them together.
            gathered = torch.stack([moved(r.data, self.device) for r in reports])
            first = gathered.data_ptr()
        _core.resident_update(
            rules._core, self.device.type == "cuda", self._state.data_ptr(),
            self.words.data_ptr(), first, len(reports), self._ring.data_ptr(), self._capacity,
            stream_of(self.device))
        self._written()

    def _written(self) -> None:
        """Note that the scale changed, for autograd, recordings and `is_own`."""
        recorded_calls.written_unseen(self.words)
        torch.autograd.graph.increment_version(self.scale)
        self._version = self.scale._version

    def is_own(self, scale: torch.Tensor | None) -> bool:
        """Whether `scale` is the scale of this object, which nobody else has written."""
        return scale is self.scale and scale._version == self._version

    def poll(self, name: Callable[[int], str | None], clips: bool) -> list[GradStep]:
        """Return the step reports that have arrived; does not wait.

        `name` names a parameter by its number. `clips` says that norms were computed. If not, a row
        has NaN, or a norm nevertheless: a pass that only reads the gradients computes it.
        """
        reports: list[GradStep] = []
        while True:
            self._next, self.lost, row = _core.poll_report(
                self._ring.data_ptr(), self._capacity, self._next, self.lost)
            if row is None:
                return reports
            step, applied, cause, change, norm, scale, first_bad, applied_steps, stop = row
            reports.append(GradStep(
                step, applied, cause, change, None if math.isnan(norm) and not clips else norm,
                scale, name(first_bad), applied_steps, stop))


def _on_host(scaler: LossScaler) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the state and the words of a scaler."""
    state = torch.zeros(_core.resident_size(scaler._core), dtype=torch.uint8)
    words = torch.zeros(4, dtype=torch.float32)
    _core.resident_store(scaler._core, state.data_ptr(), words.data_ptr())
    return state, words
