"""Runs of a loss scaler under test on traces, through the interface that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from samebits.testing.loss_scaler_model import LOSS, StepResult, tensor_codes
from samebits.testing.loss_scaler_traces import Group, Step, Trace
from samebits.testing.memory import Memory
from samebits.testing.number_formats import Format
from samebits.testing.runs import CallFailed, called, name_of


class Interface(Protocol):
    """How the check talks to one scaler.

    Attributes
    ----------
    max_optimizers : int
        Number of optimizers that one scaler supports.
    """

    max_optimizers: int

    def get_scale(self) -> float:
        """Return the current scale."""

    def step(self, step: Step, unscale_first: bool,
             ) -> tuple[float | None, list[tuple[bool, Group]]]:
        """Do one step; return the scaled loss, and for each optimizer (applied, gradients)."""

    def resumed(self, other: Any) -> None:
        """Continue with another scaler object, which loads the state of this one."""


def interface_of(scaler: Any, name: str, f: Format, memory: Memory) -> Interface:
    """Return the interface that a scaler has.

    Raises
    ------
    CallFailed
        It has none of them.
    """
    if all(hasattr(scaler, n) for n in ("scale", "unscale_", "step", "update", "get_scale")):
        from samebits.testing.torch_loss_scalers import TorchInterface

        return TorchInterface(scaler, f, memory)
    if all(hasattr(scaler, n) for n in ("unscale", "step", "update", "get_scale")):
        return LibraryInterface(scaler, f, memory)
    if callable(scaler) and (hasattr(scaler, "get_scale") or hasattr(scaler, "scale")):
        return PlainInterface(scaler, f, memory)
    raise CallFailed(f"{name} returned {type(scaler).__name__}; expected a scaler with torch's "
                     "scale, unscale_, step, update and get_scale, or a callable "
                     "scaler(gradients) with an attribute scale")


def _placed(group: Group, f: Format, memory: Memory) -> list[Any]:
    return [memory.place(np.array(tensor, np.uint64), f) for tensor in group]


def _read(arrays: list[Any], f: Format, memory: Memory) -> Group:
    return tuple(tensor_codes(memory.codes(a, f), f) for a in arrays)


def load_state(scaler: Any, other: Any) -> Any:
    """Return `other` with the state of `scaler`; `scaler` itself if it has no state_dict."""
    if not hasattr(scaler, "state_dict") or not hasattr(other, "load_state_dict"):
        return scaler
    other.load_state_dict(scaler.state_dict())
    return other


class PlainInterface:
    """A callable: ``scaler(gradients)`` unscales in place, updates the scale, returns applied."""

    max_optimizers = 1

    def __init__(self, scaler: Any, f: Format, memory: Memory) -> None:
        self.scaler, self.f, self.memory = scaler, f, memory

    def get_scale(self) -> float:
        has_method = hasattr(self.scaler, "get_scale")
        return float(self.scaler.get_scale() if has_method else self.scaler.scale)

    def step(self, step: Step, unscale_first: bool,
             ) -> tuple[float | None, list[tuple[bool, Group]]]:
        arrays = _placed(step[0], self.f, self.memory)
        applied = bool(self.scaler(arrays))
        return None, [(applied, _read(arrays, self.f, self.memory) if applied else ())]

    def resumed(self, other: Any) -> None:
        self.scaler = load_state(self.scaler, other)


class LibraryInterface:
    """The interface of samebits.LossScaler: unscale(gradients, name), step(None, name), update."""

    max_optimizers = 2

    def __init__(self, scaler: Any, f: Format, memory: Memory) -> None:
        self.scaler, self.f, self.memory = scaler, f, memory

    def get_scale(self) -> float:
        return float(self.scaler.get_scale())

    def step(self, step: Step, unscale_first: bool,
             ) -> tuple[float | None, list[tuple[bool, Group]]]:
        loss = float(self.scaler.scale(LOSS))
        done = []
        for number, group in enumerate(step):
            arrays = _placed(group, self.f, self.memory)
            self.scaler.unscale(arrays, str(number))
            applied = bool(self.scaler.step(None, str(number)))
            done.append((applied, _read(arrays, self.f, self.memory) if applied else ()))
        self.scaler.update()
        return loss, done

    def resumed(self, other: Any) -> None:
        if hasattr(self.scaler, "save") and hasattr(other, "load"):
            self.scaler = other.load(self.scaler.save())
        else:
            self.scaler = load_state(self.scaler, other)


def run_trace(make_scaler: Callable[..., Any], trace: Trace, f: Format,
              memory: Memory) -> list[StepResult]:
    """Return what a scaler does on a trace.

    Raises
    ------
    CallFailed
        The scaler raised, or has no known interface.
    """
    name = name_of(make_scaler)

    def run() -> list[StepResult]:
        scaler = interface_of(make_scaler(**trace.settings), name, f, memory)
        found = []
        for number, step in enumerate(trace.steps):
            if number == trace.resume:
                scaler.resumed(make_scaler(**trace.settings))
            scale = scaler.get_scale()
            loss, done = scaler.step(step, trace.unscale_first)
            found.append(StepResult(scale, scaler.get_scale(), loss, tuple(a for a, _ in done),
                                    tuple(g for _, g in done)))
        return found
    count = len(trace.steps)
    return called(name, "1 step" if count == 1 else f"{count} steps", run)
