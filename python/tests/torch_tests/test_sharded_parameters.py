"""samebits.torch.optim and GradScaler on parameters that two processes shard: bits of whole ones, one decision."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from processes import Processes

import samebits as sb
import samebits.torch as sbt
from samebits.torch import optim

distributed: Any = pytest.importorskip("torch.distributed")
tensors: Any = pytest.importorskip("torch.distributed.tensor")

# 7 rows on two ranks: shards of 4 and 3 rows. A row of 256 elements has whole blocks.
SHAPES = [(7, 256), (7,), (64, 3)]
MODES = [("stochastic", "bf16_stochastic"), ("master32", "fp32"), ("split16", "bf16")]


def values(step: int) -> list[torch.Tensor]:
    make = torch.Generator().manual_seed(step)
    return [torch.randn(shape, generator=make).bfloat16() for shape in SHAPES]


def stepped(of: Any, weights: str, states: str) -> list[Any]:
    """Return parameters after three steps, or those of their shards."""
    params = [torch.nn.Parameter(t) for t in of(values(0))]
    optimizer = optim.AdamW(params, lr=0.1, weights=weights, states=states, seed=3)
    for step in range(1, 4):
        for p, g in zip(params, of(values(step)), strict=True):
            p.grad = g
        optimizer.step()
    return params


def same(results: list[list[Any]], expected: list[list[Any]]) -> bool:
    return all(torch.equal(p.detach().view(torch.int16), q.detach().view(torch.int16))
               for ps, qs in zip(results, expected, strict=True) for p, q in zip(ps, qs, strict=True))


def of_rank() -> Any:
    mesh = distributed.device_mesh.init_device_mesh("cpu", (2,))

    def shards(whole: list[torch.Tensor], dim: int = 0) -> list[Any]:
        return [tensors.distribute_tensor(t, mesh, [tensors.Shard(dim)]) for t in whole]

    results = [[p.full_tensor().detach() for p in stepped(shards, *mode)] for mode in MODES]
    refusals = []
    for make, dim in ((lambda p: optim.LAMB(p), 0), (lambda p: optim.AdamW(p, weights="stochastic"), 1)):
        params = [torch.nn.Parameter(shards(values(0)[:1], dim)[0])]
        params[0].grad = shards(values(1)[:1], dim)[0]
        try:
            make(params).step()
        except sb.InvalidArgument as error:
            refusals.append(str(error))
    return results, refusals


def test_shards_have_the_bits_of_the_whole(tmp_path: Path) -> None:
    whole = [stepped(lambda whole: whole, *mode) for mode in MODES]
    with Processes("gloo", 2, str(tmp_path / "store")) as processes:
        for results, refusals in processes.results(of_rank):
            assert same(results, whole)
            assert "LAMB needs whole parameters" in refusals[0]
            assert "sharded along its first dimension" in refusals[1]


def _model() -> torch.nn.Module:
    torch.manual_seed(5)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 7)).bfloat16()


def _train_and_write(model: torch.nn.Module, weights: str, mesh: Any) -> list[torch.Tensor]:
    """Take steps between which all parameters are written in several ways; return the parameters."""
    first = {key: value.clone() for key, value in _model().state_dict().items()}

    def steps(count: int) -> None:
        for seed in range(count):
            optimizer.zero_grad()
            make = torch.Generator().manual_seed(seed)
            model(torch.randn(4, 8, generator=make).bfloat16()).float().square().mean().backward()
            optimizer.step()

    optimizer = optim.AdamW(model.parameters(), lr=0.003, weights=weights)
    steps(3)
    kept = [p.detach().clone() for p in model.parameters()]
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()  # DTensor counts this write, and the shard does not
        for p, k in zip(model.parameters(), kept, strict=True):
            p.copy_(k)
    steps(2)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(0.5)
    steps(2)
    with torch.no_grad():
        for p in model.parameters():
            shard: Any = p.to_local() if mesh is not None else p  # type: ignore[operator]
            shard.mul_(-1)
    steps(2)
    if mesh is not None:
        first = {key: tensors.distribute_tensor(value, mesh, [tensors.Shard(0)]) for key, value in first.items()}
    model.load_state_dict(first)
    steps(1)
    return [p.full_tensor().detach() if mesh is not None else p.detach()  # type: ignore[operator]
            for p in model.parameters()]


def of_fsdp_rank() -> list[list[torch.Tensor]]:
    from torch.distributed.fsdp import fully_shard

    mesh = distributed.device_mesh.init_device_mesh("cpu", (2,))
    results = []
    for weights in ("master32", "kahan"):
        model: Any = _model()
        for layer in model:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        results.append(_train_and_write(model, weights, mesh))
    return results


def test_written_parameters_of_fsdp2_have_the_bits_of_whole_ones(tmp_path: Path) -> None:
    whole = [_train_and_write(_model(), weights, None) for weights in ("master32", "kahan")]
    with Processes("gloo", 2, str(tmp_path / "store")) as processes:
        assert all(same(results, whole) for results in processes.results(of_fsdp_rank))


def of_scaler_rank(device: str, policy: str) -> Any:
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
        first, second = processes.results(of_scaler_rank, device, policy)
    assert first[0] == second[0] and first[1] == second[1]
    assert [applied for applied, _ in first[1]] == [True, True, False, False, True, True]
    assert [cause for _, cause in first[1]][2:4] == ["overflow", "nan"]
    assert torch.equal(first[2], torch.full((4, 4), first[2][0, 0].item()))
    assert torch.equal(second[2], 2 * first[2])
