"""Data-parallel training: gradients summed in bf16, and one decision on each step.

    python examples/python/torch_data_parallel.py           # two processes
    torchrun --nproc-per-node 8 examples/python/torch_data_parallel.py

Gloo on CPUs, NCCL with a GPU for each process. In one step one sample of rank 1 is corrupt: its
loss is NaN. All ranks skip this step, and the scale stays, because the loss is to blame and not the
scale. All ranks end with the same bits.
"""

from __future__ import annotations

import hashlib
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import samebits as sb
import samebits.torch as sbt

STEPS, BROKEN_STEP = 40, 20


def train() -> None:
    gpu = dist.get_backend() == "nccl"
    device = torch.device("cuda", torch.cuda.current_device()) if gpu else torch.device("cpu")
    torch.manual_seed(0)  # the same weights on every rank
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = sb.LossScaler("native")
    ranks = sbt.ProcessGroup()
    samples = torch.Generator().manual_seed(1 + ranks.rank)  # other samples on every rank
    first = last = 0.0
    for step in range(STEPS):
        x = torch.randn(32, 64, generator=samples).to(device)
        if step == BROKEN_STEP and ranks.rank == 1:
            x[3, 5] = float("nan")
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        scaler.scale(loss.item())  # remembers a loss that is not finite
        (loss * scaler.get_scale()).backward()

        sbt.reduce_gradients(model, ranks, communication="bf16")  # the mean over all ranks
        gradients = {name: p.grad for name, p in model.named_parameters()}
        scaler.unscale(gradients)
        everyone = scaler.agree(ranks)  # from here on all ranks have seen the same
        sb.clip(gradients, 1.0)
        scaler.step(optimizer.step)  # on all ranks, or on none
        decision = scaler.update()

        if not decision.applied and ranks.rank == 0:
            print(f"step {step} skipped on all ranks: {decision.cause} of rank "
                  f"{everyone.bad_rank}, scale {decision.change}")
        if decision.applied:
            first, last = first or loss.item(), loss.item()
    weights = torch.cat([p.detach().flatten() for p in model.parameters()]).cpu()
    digests: list[str | None] = [None] * ranks.size
    dist.all_gather_object(digests, hashlib.sha256(weights.numpy().tobytes()).hexdigest())
    if ranks.rank == 0:
        print(f"{ranks.size} ranks, loss of rank 0 from {first:.4g} to {last:.4g}, "
              f"the same bits on all ranks: {'yes' if len(set(digests)) == 1 else 'no'}")


def start(rank: int, size: int, store: str) -> None:
    """Run one of the processes that this program starts."""
    gpu = torch.cuda.device_count() >= size
    if gpu:
        torch.cuda.set_device(rank)
    dist.init_process_group("nccl" if gpu else "gloo", init_method=f"file://{store}", rank=rank,
                            world_size=size)
    train()
    dist.destroy_process_group()


def main() -> None:
    if "LOCAL_RANK" not in os.environ:  # not started by torchrun
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(start, (2, f"{folder}/store"), nprocs=2)
        return
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if gpu else "gloo")
    train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
