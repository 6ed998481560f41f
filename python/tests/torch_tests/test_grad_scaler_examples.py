"""The examples that train with GradScaler inside Lightning and transformers' Trainer."""

from __future__ import annotations

import re

import pytest
import torch
from pages import EXAMPLES, printed

import samebits.torch as sbt


def test_lightning() -> None:
    pytest.importorskip("lightning", reason="lightning is not installed")
    text = printed(EXAMPLES / "torch_lightning.py")
    assert "step 0: skipped" in text and " in layers." in text
    applied = re.search(r"(\d+) steps applied, scale", text)
    assert applied is not None and int(applied[1]) >= 10


def test_trainer() -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    text = printed(EXAMPLES / "torch_trainer.py")
    applied = re.search(r"(\d+) of 24 steps applied", text)
    assert applied is not None and int(applied[1]) >= 10


def test_a_report_of_several_optimizers() -> None:
    a, b = (torch.nn.Parameter(torch.zeros(1)) for _ in range(2))
    optimizers = [torch.optim.SGD([p], lr=1.0) for p in (a, b)]
    scaler = sbt.GradScaler("cpu", init_scale=1.0, max_norm=1.0)
    seen = []
    for x, y in ((3.0, 4.0), (3.0, float("inf"))):
        before = a.item(), b.item()
        for optimizer in optimizers:
            optimizer.zero_grad()
        scaler.scale((a * x + b * y).sum()).backward()
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()
        (report,) = scaler.reports()
        # max_norm / (norm + 1e-6) clips each gradient to almost 1: its own norm decides.
        moved = [round(old - p.item(), 5) for old, p in zip(before, (a, b), strict=True)]
        seen.append((report.applied, report.norm, moved))
    assert seen == [(True, 5.0, [1.0, 1.0]), (False, float("inf"), [1.0, 0.0])]
