"""The state of a loss scaler in the memory of a device, where a step updates it without waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from samebits import _core
from samebits.loss_scaler import LossScaler
from samebits.torch.gradient_list import GradientReport, moved, stream_of

__all__ = ["ResidentScaler"]

_ROWS: Final = 8


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
        state, words = _on_host(scaler)
        self.device = device
        self.words = words.to(device)
        # Autograd saves the scale for the backward pass; writing another word must not change the
        # version of what it saved.
        self.scale = self.words.data[0]
        self._version = self.scale._version
        self._state = state.to(device)
        self._capacity = capacity
        self._ring = torch.zeros(capacity * _core.report_slot_bytes, dtype=torch.uint8,
                                 pin_memory=device.type == "cuda")
        self._next = scaler.updates()
        self._used = 0
        self._make_rows(_ROWS)
        self.lost = 0

    def fetch(self, scaler: LossScaler) -> None:
        """Write the present state into `scaler`; waits for the device."""
        state = self._state.cpu()
        _core.resident_load(scaler._core, state.data_ptr())

    def store(self, scaler: LossScaler) -> None:
        """Continue from the state of `scaler`. Requires a `fetch` before, which waits."""
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
        """Note that the scale changed, for autograd and for `is_own`."""
        torch.autograd.graph.increment_version(self.scale)
        self._version = self.scale._version

    def is_own(self, scale: torch.Tensor | None) -> bool:
        """Whether `scale` is the scale of this object, which nobody else has written."""
        return scale is self.scale and scale._version == self._version

    def poll(self) -> list[Any]:
        """Return the rows of step reports that have arrived; does not wait."""
        rows: list[Any] = []
        while True:
            self._next, self.lost, row = _core.poll_report(
                self._ring.data_ptr(), self._capacity, self._next, self.lost)
            if row is None:
                return rows
            rows.append(row)


def _on_host(scaler: LossScaler) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the state and the words of a scaler."""
    state = torch.zeros(_core.resident_size(scaler._core), dtype=torch.uint8)
    words = torch.zeros(4, dtype=torch.float32)
    _core.resident_store(scaler._core, state.data_ptr(), words.data_ptr())
    return state, words
