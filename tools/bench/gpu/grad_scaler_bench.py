"""grad_scaler_bench: samebits.torch.GradScaler beside torch's, on the gradients of a 1.3 B GPT.

usage: grad_scaler_bench.py [--device cpu] [--divide N] [--rounds N]
Unscales, checks and clips 289 fp32 gradients, all works in turn; prints medians, and how many times as
fast as torch's work of the same kind. "folded" only reads the gradients: the optimizer divides by
scale / clip factor. The second column is the time until the host may go on. --divide makes every
tensor smaller, for a trial on a CPU.
"""

import argparse
import statistics

import torch
from torch_bench import model_sizes, timed

import samebits.torch as sbt


class Work:
    """A scaler and what is timed with it."""

    def __init__(self, name, peer, scaler, optimizer, run):
        self.name, self.peer, self.scaler, self.optimizer, self.run = (
            name, peer, scaler, optimizer, run)
        self.device_ms, self.host_ms = [], []
        scaler.scale(torch.ones((), device=optimizer.param_groups[0]["params"][0].device))

    def time(self, device):
        self.scaler._per_optimizer_states.clear()
        if isinstance(self.scaler, sbt.GradScaler):
            self.scaler._resident.begin()
        timed(lambda: self.run(self.scaler, self.optimizer), device, self.device_ms, self.host_ms)


def parameters_of(optimizer):
    return optimizer.param_groups[0]["params"]


def works(device, divide):
    parameters = []
    for n in model_sizes():
        p = torch.nn.Parameter(torch.empty(0, device=device))
        p.data = torch.full((max(1, n // divide),), 0.5, device=device)
        p.grad = torch.full_like(p, 0.5)
        parameters.append(p)
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    theirs = torch.amp.GradScaler(device, init_scale=1024.0)
    ours = sbt.GradScaler(device, init_scale=1024.0)
    clipping = sbt.GradScaler(device, init_scale=1024.0, max_norm=1.0)

    def unscale(scaler, o):
        scaler.unscale_(o)

    def unscale_and_clip(scaler, o):
        scaler.unscale_(o)
        torch.nn.utils.clip_grad_norm_(parameters_of(o), 1.0)

    return [
        Work("unscale and check, torch", None, theirs, optimizer, unscale),
        Work("unscale and check", 0, ours, optimizer, unscale),
        Work("unscale, check and clip, torch", None, theirs, optimizer, unscale_and_clip),
        Work("unscale, check and clip", 2, clipping, optimizer, unscale),
        Work("unscale, check and clip, folded", 2, clipping, optimizer,
             lambda scaler, o: scaler._check_inf_per_device(o)),
        Work("clip, torch", None, theirs, optimizer,
             lambda scaler, o: torch.nn.utils.clip_grad_norm_(parameters_of(o), 1.0)),
        Work("clip", 5, ours, optimizer,
             lambda scaler, o: sbt.clip_grad_norm_(parameters_of(o), 1.0)),
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--divide", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=21)
    arguments = parser.parse_args()
    all_works = works(arguments.device, arguments.divide)
    for number in range(arguments.rounds + 2):
        for work in all_works:
            # Unscaling makes gradients smaller and clipping changes them: begin alike.
            torch._foreach_zero_([p.grad for p in parameters_of(work.optimizer)])
            torch._foreach_add_([p.grad for p in parameters_of(work.optimizer)], 0.5)
            work.time(arguments.device)
            if number < 2:
                work.device_ms.clear()
                work.host_ms.clear()
    print("| work | ms | host ms | times as fast |\n|---|---|---|---|")
    for work in all_works:
        ms = statistics.median(work.device_ms)
        ratio = "" if work.peer is None else "{:.2f}".format(statistics.median(
            theirs / ours for theirs, ours in zip(all_works[work.peer].device_ms, work.device_ms)))
        print(f"| {work.name} | {ms:.3f} | {statistics.median(work.host_ms):.3f} | {ratio} |")


if __name__ == "__main__":
    main()
