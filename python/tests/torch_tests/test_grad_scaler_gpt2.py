"""GradScaler beside torch's on the parameter shapes of GPT-2: 148 tensors, 124 million elements."""

from __future__ import annotations

import math
import random
from typing import Any

import torch

import samebits.torch as sbt
from tensors import same

WIDTH, LAYERS, WORDS, POSITIONS = 768, 12, 50257, 1024
SHAPES = [(WORDS, WIDTH), (POSITIONS, WIDTH), (WIDTH,), (WIDTH,)] + LAYERS * [
    (WIDTH,), (WIDTH,), (WIDTH, 3 * WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,), (WIDTH,),
    (WIDTH,), (WIDTH, 4 * WIDTH), (4 * WIDTH,), (4 * WIDTH, WIDTH), (WIDTH,)]


def run(kind: type, device: str, steps: int, fused: bool) -> tuple[list[Any], list[torch.Tensor]]:
    """Train for some steps, every third of them with one bad gradient; return scales, parameters."""
    chance = random.Random(7)
    make = torch.Generator(device=device).manual_seed(7)
    parameters = [torch.nn.Parameter(torch.randn(shape, generator=make, device=device))
                  for shape in SHAPES]
    optimizer = torch.optim.Adam(parameters, lr=1e-3, fused=fused)
    scaler = kind(device, growth_interval=2)
    scales = []
    for _ in range(steps):
        scaler.scale(torch.ones((), device=device))
        for p in parameters:
            p.grad = torch.randn(p.shape, generator=make, device=device) * 100
        if chance.random() < 0.3:
            bad = chance.choice(parameters).grad
            assert bad is not None
            bad.view(-1)[chance.randrange(bad.numel())] = chance.choice([math.inf, math.nan])
        if chance.random() < 0.5:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales, parameters


def test_gpt2(cuda: str) -> None:
    for fused in (False, True):
        ours, theirs = (run(kind, cuda, 40, fused)
                        for kind in (sbt.GradScaler, torch.amp.GradScaler))
        assert ours[0] == theirs[0]
        assert all(same(a, b) for a, b in zip(ours[1], theirs[1], strict=True))
