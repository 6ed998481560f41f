"""GradScaler on gradients that two processes shard: both skip a step, or none."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from processes import Processes

import samebits.torch as sbt

distributed: Any = pytest.importorskip("torch.distributed")
tensors: Any = pytest.importorskip("torch.distributed.tensor")


def of_rank(device: str, policy: str) -> Any:
    """One of two processes; rank 1 alone has gradients that are not finite."""
    rank = distributed.get_rank()
    mesh = distributed.device_mesh.init_device_mesh(device, (2,))
    whole = torch.zeros(8, 4, device=device)
    p = torch.nn.Parameter(tensors.distribute_tensor(whole, mesh, [tensors.Shard(0)]))
    optimizer = torch.optim.SGD([p], lr=1.0)
    scaler = sbt.GradScaler(device, 8.0, policy=policy)
    scales = []
    for step in range(6):
        scaler.scale(torch.ones((), device=device))
        local = torch.full((4, 4), 8.0 * (rank + 1), device=device)
        if rank == 1 and step in (2, 3):
            local[3, 3] = math.inf if step == 2 else math.nan
        p.grad = tensors.DTensor.from_local(local, mesh, [tensors.Shard(0)])
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    if device == "cuda":
        torch.cuda.synchronize()
    return scales, [(r.applied, r.cause) for r in scaler.reports()], p.detach().to_local().cpu()


@pytest.mark.parametrize("policy", ["torch", "native"])
def test_both_ranks_decide_alike(device: str, policy: str, tmp_path: Path) -> None:
    if device == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    with Processes("gloo" if device == "cpu" else "nccl", 2, str(tmp_path / "store")) as processes:
        first, second = processes.results(of_rank, device, policy)
    assert first[0] == second[0] and first[1] == second[1]
    assert [applied for applied, _ in first[1]] == [True, True, False, False, True, True]
    assert [cause for _, cause in first[1]][2:4] == ["overflow", "nan"]
    assert torch.equal(first[2], torch.full((4, 4), first[2][0, 0].item()))
    assert torch.equal(second[2], 2 * first[2])
