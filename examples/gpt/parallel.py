"""Data parallel training whose bits depend on how batches are cut, not on the number of ranks.

    python examples/gpt/parallel.py --ranks 2 --micro-batches 4 --communication bf16 --steps 100
    torchrun --nproc-per-node 4 examples/gpt/parallel.py --micro-batches 8

Each batch is cut into micro-batches, and each rank computes the gradients of some of them. Each of
these gradients is rounded once into the communication dtype. All ranks add up all of them in fp32, in
the order of the batch. With fp32, the bits are those of `train.py --micro-batches`.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import samebits.torch as sbt
from train import Training, arguments, prepared, show

FORMATS = ("fp32", "bf16", "fp16", "e4m3", "e5m2")


def gathered(mine: torch.Tensor) -> torch.Tensor:
    """Return the rows of all ranks, in the order of ranks. Gloo sends from host memory."""
    sent = mine.cpu().contiguous().view(torch.uint8)
    rows = sent.new_empty(dist.get_world_size() * sent.shape[0], sent.shape[1])
    dist.all_gather_into_tensor(rows, sent)
    return rows.view(mine.dtype).to(mine.device)


def shared_scales(gradients: list[list[torch.Tensor]], communication: str) -> torch.Tensor:
    """Return a power of two for each parameter: the scale of its FP8 codes on all ranks."""
    finite = [[torch.where(g.isfinite(), g, 0) for g in gs] for gs in gradients]
    amax = torch.stack([torch.stack([g.float().abs().max() for g in gs]) for gs in finite]).amax(0).cpu()
    dist.all_reduce(amax, dist.ReduceOp.MAX)
    return sbt.quantize(amax[:, None], to=communication, tile=(1, 0), scale="pow2").scales[:, 0]


def sum_over_cuts(gradients: list[list[torch.Tensor]], communication: str) -> list[torch.Tensor]:
    """Return the fp32 sums of gradients over all cuts of all ranks.

    `gradients` has the gradients of all parameters for each cut of this rank. The bits are those of
    `samebits.torch.reduce_gradients` on as many ranks as there are cuts.
    """
    shapes = [g.shape for g in gradients[0]]
    sizes = torch.tensor([shape.numel() for shape in shapes])
    mine = torch.stack([torch.cat([g.flatten().float() for g in gs]) for gs in gradients])
    scales = None
    if communication in ("e4m3", "e5m2"):
        scales = shared_scales(gradients, communication).repeat_interleave(sizes).to(mine.device)
        mine = mine / scales  # exact: scales are powers of two
    total = torch.zeros_like(mine[0])
    codes = gathered(sbt.convert(mine, communication))
    for number, row in enumerate(codes):
        total = row.float() if number == 0 else total + row.float()
    if scales is not None:
        total = total * scales
    return [part.view(shape) for part, shape in zip(total.split(sizes.tolist()), shapes)]


class ParallelTraining(Training):
    """One rank of a training; `micro_batches` are the cuts of a batch."""

    def __init__(self, communication: str = "bf16", **given: Any) -> None:
        super().__init__(**given)
        self.communication = communication
        if self.micro_batches % dist.get_world_size():
            raise ValueError(f"micro_batches: {self.micro_batches} is no multiple of the number of "
                             f"ranks, {dist.get_world_size()}")

    def accumulate(self, micro_batches: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Compute the gradients of this rank's cuts; leave the sum of all in the parameters."""
        each = len(micro_batches) // dist.get_world_size()
        first = dist.get_rank() * each
        parameters = list(self.model.parameters())
        losses, gradients = [], []
        for tokens in micro_batches[first:first + each]:
            with self.precision.region(self.device):
                loss = self.model.loss(tokens) / len(micro_batches)
            self.scaler.scale(loss).backward()
            losses.append(loss.detach().float().view(1))
            gradients.append([p.grad for p in parameters])
            self.optimizer.zero_grad()
        for p, total in zip(parameters, sum_over_cuts(gradients, self.communication)):
            p.grad = total.to(p.dtype, copy=True)  # in aligned memory
        return gathered(torch.stack(losses)).sum()


def rank(number: int, ranks: int, store: str, communication: str, given: dict[str, Any]) -> None:
    """Run one of the processes."""
    svg, file = given.pop("svg"), given.pop("json")
    dist.init_process_group("gloo", init_method=store, rank=number, world_size=ranks)
    training = ParallelTraining(communication, **prepared(given))
    if number == 0:
        show(training, f"{ranks} ranks, {communication}", svg, file)
    else:
        training.run()
    dist.destroy_process_group()


def main() -> None:
    parser = arguments()
    parser.add_argument("--ranks", type=int, default=2, help="processes; torchrun sets it itself")
    parser.set_defaults(micro_batches=4)
    parser.add_argument("--communication", choices=FORMATS, default="bf16")
    given = vars(parser.parse_args())
    ranks, communication = given.pop("ranks"), given.pop("communication")
    if "LOCAL_RANK" in os.environ:  # started by torchrun
        rank(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "env://", communication, given)
        return
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(rank, (ranks, f"file://{folder}/store", communication, given), nprocs=ranks)


if __name__ == "__main__":
    main()
