"""Runs of loss scalers with the interface of torch.amp.GradScaler."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from samebits.errors import Unsupported
from samebits.testing.loss_scaler_model import LOSS, tensor_codes
from samebits.testing.loss_scaler_runs import load_state
from samebits.testing.loss_scaler_traces import Group, Step
from samebits.testing.memory import Memory, memory_on
from samebits.testing.number_formats import Format
from samebits.testing.torch_tensors import dtype_of


def _optimizer_type() -> Any:
    class Recorder(torch.optim.Optimizer):  # type: ignore[misc, unused-ignore]
        """An optimizer whose step records the gradients that it is given."""

        def __init__(self, parameters: list[Any]) -> None:
            super().__init__(parameters, {"lr": 0.0})
            self.recorded: list[Any] | None = None

        def step(self, closure: Any = None) -> None:  # type: ignore[override, unused-ignore]
            self.recorded = [p.grad.detach().clone() for p in self.param_groups[0]["params"]]

    return Recorder


class TorchInterface:
    """scale(loss), unscale_(optimizer), step(optimizer), update() and get_scale()."""

    max_optimizers = 2

    def __init__(self, scaler: Any, f: Format, memory: Memory) -> None:
        if memory.device is None:
            memory = memory_on("cpu")
        self.scaler, self.f, self.memory = scaler, f, memory
        self.recorder = _optimizer_type()
        self.optimizers: list[Any] = []

    def get_scale(self) -> float:
        return float(self.scaler.get_scale())

    def step(self, step: Step, unscale_first: bool,
             ) -> tuple[float | None, list[tuple[bool, Group]]]:
        loss = torch.tensor(LOSS, device=self.memory.device)
        scaled = float(self.scaler.scale(loss))
        if not self.optimizers:
            self.optimizers = [self._optimizer(group) for group in step]
        for optimizer, group in zip(self.optimizers, step):
            optimizer.recorded = None
            for p, tensor in zip(optimizer.param_groups[0]["params"], group):
                p.grad = self.memory.place(np.array(tensor, np.uint64), self.f)
        if unscale_first:
            for optimizer in self.optimizers:
                self.scaler.unscale_(optimizer)
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)
        self.scaler.update()
        return scaled, [self._result(optimizer) for optimizer in self.optimizers]

    def _optimizer(self, group: Group) -> Any:
        if self.f.name not in ("fp64", "fp32", "fp16", "bf16"):
            raise Unsupported(f"source: torch has no gradients in {self.f.name}")
        parameters = [torch.zeros(len(tensor), dtype=dtype_of(self.f), device=self.memory.device)
                      for tensor in group]
        return self.recorder([p.requires_grad_() for p in parameters])

    def _result(self, optimizer: Any) -> tuple[bool, Group]:
        if optimizer.recorded is None:
            return False, ()
        return True, tuple(tensor_codes(self.memory.codes(g, self.f), self.f)
                           for g in optimizer.recorded)

    def resumed(self, other: Any) -> None:
        self.scaler = load_state(self.scaler, other)
