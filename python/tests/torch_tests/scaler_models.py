"""Models and gradients for the tests of GradScaler."""

from __future__ import annotations

import math
from typing import Any

import torch

import samebits.torch as sbt


def bits(t: torch.Tensor) -> torch.Tensor:
    """The bits of a tensor, all NaN alike."""
    t = t.detach().cpu().contiguous()
    kinds = {8: torch.int64, 4: torch.int32, 2: torch.int16}
    return torch.where(t.isnan(), torch.full_like(t, math.nan), t).view(kinds[t.element_size()])


def wait_for_reports(scaler: sbt.GradScaler, count: int) -> list[sbt.GradStep]:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    reports = list(scaler.reports())
    assert len(reports) == count
    return reports


def model_of(device: str, dtype: torch.dtype = torch.float32) -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)).to(device, dtype)


def set_gradients(model: torch.nn.Module, value: float = 1.0) -> None:
    for p in model.parameters():
        p.grad = torch.full_like(p, value)


def step(scaler: Any, optimizer: Any, value: float | None = 1.0) -> None:
    """Take a step with gradients of one value, or with those that there are."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    scaler.scale(torch.ones((), device=params[0].device))
    if value is not None:
        for p in params:
            p.grad = torch.full_like(p, value)
    scaler.step(optimizer)
    scaler.update()
