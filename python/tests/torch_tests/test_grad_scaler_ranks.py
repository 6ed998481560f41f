"""GradScaler on gradients that two processes shard: both skip a step, or none."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

import samebits.torch as sbt

distributed: Any = pytest.importorskip("torch.distributed")
tensors: Any = pytest.importorskip("torch.distributed.tensor")


def _rank(rank: int, folder: str, device: str, policy: str) -> None:
    """One of two processes; rank 1 alone has gradients that are not finite."""
    torch.set_num_threads(1)
    if device == "cuda":
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        "nccl" if device == "cuda" else "gloo", rank=rank, world_size=2,
        store=distributed.FileStore(f"{folder}/store", 2))
    try:
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
        torch.save((scales, [(r.applied, r.cause) for r in scaler.reports()],
                    p.detach().to_local().cpu()), f"{folder}/{rank}.pt")
        distributed.barrier()  # a rank that leaves first can abort the other one's connections
    finally:
        distributed.destroy_process_group()


@pytest.mark.parametrize("policy", ["torch", "native"])
def test_both_ranks_decide_alike(device: str, policy: str, tmp_path: Path) -> None:
    if device == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    torch.multiprocessing.spawn(_rank, (str(tmp_path), device, policy), nprocs=2)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert first[0] == second[0] and first[1] == second[1]
    assert [applied for applied, _ in first[1]] == [True, True, False, False, True, True]
    assert [cause for _, cause in first[1]][2:4] == ["overflow", "nan"]
    assert torch.equal(first[2], torch.full((4, 4), first[2][0, 0].item()))
    assert torch.equal(second[2], 2 * first[2])
