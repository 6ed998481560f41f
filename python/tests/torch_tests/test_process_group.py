"""Ranks over torch.distributed: gloo on two processes, NCCL on one GPU and on two.

The bits are those of simulated ranks over NumPy arrays. Without enough GPUs the tests of NCCL are
skipped, with the reason; SAMEBITS_REQUIRE_GPUS=2 makes that a failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from processes import Failure, Processes
from tensors import bits

import samebits as sb
import samebits.ranks as sbr
import samebits.torch as sbt
from samebits.testing import simulate_ranks

SHAPES = {"w": (33, 130), "b": (130,), "scalar": ()}
DTYPES = {"w": torch.float32, "b": torch.bfloat16, "scalar": torch.float16}


def gradients(rank: int, device: str = "cpu", dtypes: Any = DTYPES) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(rank)
    return {name: torch.randn(shape, generator=generator).to(dtypes[name]).to(device) for name, shape in SHAPES.items()}


def _require_gpus(count: int) -> None:
    found = torch.cuda.device_count()
    if found >= count:
        return
    required = max(int(os.environ.get(name, "0")) for name in ("SAMEBITS_REQUIRE_GPU", "SAMEBITS_REQUIRE_GPUS"))
    if required >= count:
        pytest.fail(f"{required} GPUs are required, but torch finds {found}")
    pytest.skip(f"torch finds {found} GPUs, the test needs {count}")


@pytest.fixture(scope="module", params=["gloo-2", "nccl-1", "nccl-2"])
def processes(request: Any, tmp_path_factory: Any) -> Iterator[Processes]:
    backend, size = request.param.split("-")
    if backend == "nccl":
        _require_gpus(int(size))
    with Processes(backend, int(size), str(tmp_path_factory.mktemp("store") / "store")) as started:
        yield started


@pytest.fixture
def pair(processes: Processes) -> Processes:
    """Two processes."""
    if processes.size < 2:
        pytest.skip("the test needs two ranks")
    return processes


# --- operations ---------------------------------------------------------------------------------

def operations(device: str) -> Any:
    """Return the names of the operations that a sum makes, the sum, and a maximum of words."""
    ranks = sbt.ProcessGroup()
    assert ranks.memory == ("host" if device == "cpu" else "device")
    seen = []

    class Spy(sbr.Communicator):
        rank, size, memory, stream = (property(lambda self, name=name: getattr(ranks, name))  # type: ignore
                                      for name in ("rank", "size", "memory", "stream"))

        def all_reduce_max(self, words: Any) -> None:
            seen.append("max")
            ranks.all_reduce_max(words)

        def all_gather(self, sent: Any, received: Any) -> None:
            seen.append("gather")
            ranks.all_gather(sent, received)

        def all_to_all(self, sent: Any, received: Any) -> None:
            seen.append("all to all")
            ranks.all_to_all(sent, received)

    x = torch.arange(5.0, device=device)
    sbr.reduce_gradients(Spy(), x, communication="e4m3")
    words = np.array([0, 1 + ranks.rank, 0x7FFFFFFF + ranks.rank, 0xFFFFFFFF - ranks.rank], np.uint32)
    if device == "cpu":
        ranks.all_reduce_max(words)
        return seen, x.numpy(), words.tolist()
    on_device = torch.from_numpy(words.view(np.int32)).cuda()
    ranks.all_reduce_max(sbr.DeviceBuffer(on_device.data_ptr(), 16))
    return seen, x.cpu().numpy(), on_device.cpu().numpy().view(np.uint32).tolist()


def test_the_three_operations(processes: Processes) -> None:
    def on_numpy(ranks: sbr.Communicator) -> Any:
        x = np.arange(5, dtype=np.float32)
        sbr.reduce_gradients(ranks, x, communication="e4m3")
        return x

    expected, last = simulate_ranks(processes.size, on_numpy), processes.size - 1
    for rank, (seen, x, words) in enumerate(processes.results(operations, processes.device)):
        assert seen == ["max", "max", "all to all", "gather"]
        assert words == [0, 1 + last, 0x7FFFFFFF + last, 0xFFFFFFFF]
        np.testing.assert_array_equal(x, expected[rank])


# --- one sum of gradients -----------------------------------------------------------------------

def reduce(device: str, options: dict[str, Any], transposed: bool) -> dict[str, Any]:
    mine = gradients(dist.get_rank(), device)
    if transposed:
        mine["w"] = mine["w"].T.contiguous().T
    sbr.reduce_gradients(sbt.ProcessGroup(), mine, **options)
    return {name: bits(g).numpy() for name, g in mine.items()}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("options", [
    {"communication": "fp32"}, {"communication": torch.bfloat16, "factor": 0.5},
    {"communication": "fp16", "elements_at_once": 1000}, {"communication": "e4m3", "factor": 0.25},
    {"communication": "e5m2", "rounding": "stochastic", "seed": 3}], ids=str)
def test_gradients_have_the_bits_of_simulated_ranks(processes: Processes, options: dict[str, Any],
                                                    transposed: bool) -> None:
    def on_numpy(ranks: sbr.Communicator) -> dict[str, Any]:
        mine = {name: sbt.to_numpy(g) for name, g in gradients(ranks.rank).items()}
        sbr.reduce_gradients(ranks, mine, **options)
        return {name: g.view(f"u{g.dtype.itemsize}") for name, g in mine.items()}

    expected = simulate_ranks(processes.size, on_numpy)
    results = processes.results(reduce, processes.device, options, transposed)
    for result, right in zip(results, expected, strict=True):
        for name in SHAPES:
            np.testing.assert_array_equal(result[name], right[name])


def reduce_on_a_side_stream() -> Any:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    ranks = sbt.ProcessGroup()
    with torch.cuda.stream(stream):
        assert ranks.stream == stream.cuda_stream
        x = torch.full((1 << 20,), 1.0, device="cuda")
        for _ in range(3):
            x += ranks.rank
            sbr.reduce_gradients(ranks, x, communication="fp32")
    stream.synchronize()
    return x.unique().tolist()


def test_calls_run_on_the_current_stream(processes: Processes) -> None:
    if processes.device != "cuda":
        pytest.skip("the CPU has no streams")
    value = 1.0
    for _ in range(3):
        value = sum(value + rank for rank in range(processes.size))
    for found in processes.results(reduce_on_a_side_stream):
        assert found == [value]


def reduce_a_model(device: str) -> Any:
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 3).to(device)
    x = torch.arange(16.0, device=device).reshape(2, 8) * (dist.get_rank() + 1) / 16
    model(x).sum().backward()
    found = []
    for _ in range(2):
        found.append({n: p.grad.cpu().numpy().copy() for n, p in model.named_parameters() if p.grad is not None})
        sbt.reduce_gradients(model, communication="fp32")
    return found


def test_the_mean_of_a_models_gradients(processes: Processes) -> None:
    results = processes.results(reduce_a_model, processes.device)
    for name in ("weight", "bias"):
        total = results[0][0][name]
        for alone, _ in results[1:]:
            total = total + alone[name]
        mean = total * np.float32(1 / processes.size)
        for _, reduced in results:
            np.testing.assert_array_equal(reduced[name], mean)


# --- one decision -------------------------------------------------------------------------------

def train(device: str) -> Any:
    scaler = sb.LossScaler("torch", growth_interval=2)
    ranks = sbt.ProcessGroup()
    steps = []
    for step in range(4):
        scaler.scale(1.0)
        x = torch.full((5,), scaler.get_scale(), device=device)
        if step == 2 and ranks.rank == ranks.size - 1:
            x[3] = float("nan")
        scaler.unscale({"w": x})
        everyone = scaler.agree(ranks)
        steps.append((scaler.step(), everyone.bad_rank, everyone.first_bad))
        scaler.update()
    return steps, scaler.save()


def test_all_ranks_skip_the_same_step(processes: Processes) -> None:
    results = processes.results(train, processes.device)
    assert all(result == results[0] for result in results)
    assert [step[0] for step in results[0][0]] == [True, True, False, True]
    assert results[0][0][2][1:] == (processes.size - 1, 0)


def reduce_what_differs(device: str, what: str) -> None:
    rank = dist.get_rank()
    x = torch.ones(4 - (rank if what == "shape" else 0), device=device)
    x = x.int() if what == "dtype" and rank == 1 else x
    try:
        sbr.reduce_gradients(sbt.ProcessGroup(), x, factor=1.0 + (rank if what == "factor" else 0))
    finally:
        assert torch.equal(x, torch.ones_like(x))


def agree_on_other_scales(device: str) -> None:
    scaler = sb.LossScaler(init_exponent=10 + dist.get_rank())
    scaler.observe()
    scaler.agree(sbt.ProcessGroup())


# --- one norm -----------------------------------------------------------------------------------

def whole(i: int, n: int) -> torch.Tensor:
    x = torch.randn(n, generator=torch.Generator().manual_seed(i))
    return x.to([torch.float32, torch.bfloat16][i % 2])


def model(seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(97, 101), torch.nn.LayerNorm(101), torch.nn.Linear(101, 3))


def norm_of_fsdp(device: str) -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    sharded = model().to(device)
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    fully_shard(sharded, mesh=mesh)
    sharded(torch.randn(4, 97, generator=torch.Generator().manual_seed(1)).to(device)).sum().backward()
    result = sbt.norm_of_shards(sharded)
    gradients = {n: p.grad.full_tensor().cpu() for n, p in sharded.named_parameters()}
    clipped = sbt.clip_shards_(sharded.parameters(), 0.5)
    assert clipped.total == result.total
    after = {n: p.grad.full_tensor().cpu() for n, p in sharded.named_parameters()}
    return result.total, result.tensors, gradients, after


def test_norm_and_clipping_of_fsdp2_gradients(processes: Processes) -> None:
    for total, tensors, before, after in processes.results(norm_of_fsdp, processes.device):
        assert (total, tensors) == sb.l2norm(before)
        sb.clip(before, 0.5)
        for name, gradient in before.items():
            np.testing.assert_array_equal(bits(after[name]).numpy(), bits(gradient).numpy())


def norm_of_placements(device: str, what: str) -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    size = dist.get_world_size()
    x = whole(0, 24 * 1000).reshape(24, 1000).to(device)
    shape, placements = {"replicas of shards": ((size, 1), [Replicate(), Shard(0)]), "columns": ((size,), [Shard(1)]),
                         "replicas": ((size,), [Replicate()]), "rows": ((size,), [Shard(0)])}[what]
    mesh: Any = init_device_mesh(device, shape)
    p = torch.nn.Parameter(distribute_tensor(torch.zeros_like(x), mesh, placements))
    p.grad = distribute_tensor(x, mesh, placements)  # type: ignore[assignment]
    plain = torch.nn.Parameter(torch.zeros(3, device=device))
    plain.grad = torch.ones(3, device=device)
    if what == "rows":  # a group that lacks ranks with shards
        return sbt.norm_of_shards([p], sbr.SingleRank())
    return sbt.norm_of_shards({"p": p, "plain": plain}).tensors


@pytest.mark.parametrize("what", ["replicas", "replicas of shards"])
def test_copies_count_once(processes: Processes, what: str) -> None:
    expected = {"p": sb.l2norm(whole(0, 24000))[0], "plain": 3**0.5}
    for tensors in processes.results(norm_of_placements, processes.device, what):
        assert tensors == expected


@pytest.mark.parametrize("function, arguments, kinds, words", [
    (norm_of_placements, ["columns"], 2 * ["InvalidArgument"], ["parameters[p]", "redistribute"]),
    (norm_of_placements, ["rows"], 2 * ["RankError"], []),
    (reduce_what_differs, ["shape"], 2 * ["RankError"], ["differ"]),
    (reduce_what_differs, ["factor"], 2 * ["RankError"], ["differ"]),
    (reduce_what_differs, ["dtype"], ["RankError", "InvalidArgument"], []),
    (agree_on_other_scales, [], 2 * ["RankError"], ["the ranks' scalers differ"])])
def test_refusals_on_every_rank(pair: Processes, function: Any, arguments: Any, kinds: list[str],
                                words: list[str]) -> None:
    for outcome, kind in zip(pair.outcomes(function, pair.device, *arguments), kinds, strict=True):
        assert outcome.kind == kind and all(word in outcome.text for word in words)


# --- groups, and ranks that are gone ------------------------------------------------------------

def group_of_one(device: str) -> Any:
    mine = None
    for rank in range(dist.get_world_size()):
        group = dist.new_group([rank])
        if rank == dist.get_rank():
            mine = group
        else:
            try:
                sbt.ProcessGroup(group)
            except sb.InvalidArgument as error:
                assert "not in the group" in str(error)
            else:
                raise AssertionError("a foreign group was accepted")
    ranks = sbt.ProcessGroup(mine)
    x = torch.full((3,), 1.0 + dist.get_rank(), device=device)
    sbr.reduce_gradients(ranks, x)
    return ranks.rank, ranks.size, x.cpu().tolist()


def test_a_group_of_part_of_the_ranks(processes: Processes) -> None:
    for rank, result in enumerate(processes.results(group_of_one, processes.device)):
        assert result == (0, 1, [1.0 + rank] * 3)


def test_a_communicator_for_the_wrong_device(processes: Processes) -> None:
    for outcome in processes.outcomes(_other_device, processes.device):
        assert outcome == "refused"


def _other_device(device: str) -> str:
    try:
        sbt.ProcessGroup(device="xpu")
    except sb.InvalidArgument as error:
        assert "device" in str(error)
    if device == "cpu":
        return "refused"
    try:
        sbr.reduce_gradients(sbt.ProcessGroup(), torch.ones(3))  # in host memory
    except sb.InvalidArgument:
        return "refused"
    return "accepted"


def test_without_a_process_group() -> None:
    with pytest.raises(sb.InvalidArgument, match="init_process_group"):
        sbt.ProcessGroup()


def test_a_rank_that_ends_does_not_leave_the_other_waiting(tmp_path: Path) -> None:
    with Processes("gloo", 2, str(tmp_path / "store")) as pair:
        pair.send(0, reduce, "cpu", {}, False)
        pair.end(1)
        outcome = pair.answer(0)
        assert isinstance(outcome, Failure)
        assert outcome.kind in ("RuntimeError", "DistBackendError", "DistNetworkError")
