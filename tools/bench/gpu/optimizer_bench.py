"""optimizer_bench: samebits.torch.optim.AdamW beside torch's fused AdamW, on a 1.3 B GPT.

usage: optimizer_bench.py [--device cpu] [--divide N] [--rounds N] [--only TEXT]
Each row runs both in turn and prints medians: milliseconds on the device, the share of a copy of as
many bytes in the same run, milliseconds until the host may go on, and our time as a share of torch's.
The last row is timed from the call to the end of the work. --divide makes every tensor smaller, for a
trial on a CPU.
"""

import argparse
import gc
import statistics

import torch
from torch_bench import model_sizes, timed

import samebits.torch as sbt
from samebits.torch import optim


def parameters(sizes, dtype, device):
    made = []
    for n in sizes:
        p = torch.nn.Parameter(torch.randn(n, device=device).to(dtype))
        p.grad = torch.randn(n, device=device).to(dtype)
        made.append(p)
    return made


class Work:
    """A function that is timed."""

    def __init__(self, run, bytes_each):
        self.run, self.bytes_each = run, bytes_each
        self.device_ms, self.host_ms = [], []

    def time(self, device, whole):
        timed(self.run, device, self.device_ms, self.host_ms, whole)


def plain(sizes, device):
    ours = optim.AdamW(parameters(sizes, torch.float32, device))
    theirs = torch.optim.AdamW(parameters(sizes, torch.float32, device), fused=True)
    return Work(ours.step, 28), Work(theirs.step, 28)


def masters(sizes, device):
    """Torch has no such step: gradients are widened, and the weights are copied back."""
    ours = optim.AdamW(parameters(sizes, torch.bfloat16, device))
    low = parameters(sizes, torch.bfloat16, device)
    high = parameters(sizes, torch.float32, device)
    theirs = torch.optim.AdamW(high, fused=True)

    @torch.no_grad()
    def step():
        torch._foreach_copy_([p.grad for p in high], [p.grad for p in low])
        theirs.step()
        torch._foreach_copy_(low, high)

    return Work(ours.step, 28), Work(step, 28)


def sixteen_bits(weights, states, bytes_each):
    def row(sizes, device):
        ours = optim.AdamW(parameters(sizes, torch.bfloat16, device), weights=weights,
                           states=states)
        theirs = torch.optim.AdamW(parameters(sizes, torch.bfloat16, device), fused=True)
        return Work(ours.step, bytes_each), Work(theirs.step, 14)
    return row


def whole_step(sizes, device):
    """Unscale, check, clip and update, with a loss scaler."""
    ours_params = parameters(sizes, torch.float32, device)
    theirs_params = parameters(sizes, torch.float32, device)
    ours = optim.AdamW(ours_params)
    theirs = torch.optim.AdamW(theirs_params, fused=True)
    our_scaler = sbt.GradScaler(device, init_scale=1.0, max_norm=1.0)
    their_scaler = torch.amp.GradScaler(device, init_scale=1.0)
    for scaler in (our_scaler, their_scaler):
        scaler.scale(torch.ones((), device=device))

    def our_step():
        our_scaler.step(ours)
        our_scaler.update()

    def their_step():
        their_scaler.unscale_(theirs)
        torch.nn.utils.clip_grad_norm_(theirs_params, 1.0)
        their_scaler.step(theirs)
        their_scaler.update()

    return Work(our_step, 32), Work(their_step, 32)


ROWS = {
    "AdamW fp32": plain,
    "bf16 gradients, fp32 masters, bf16 copy": masters,
    "bf16 stochastic, bf16 states": sixteen_bits("stochastic", "bf16", 14),
    "bf16 stochastic, stochastic states": sixteen_bits("stochastic", "bf16_stochastic", 14),
    "bf16 direct, e4m3 states": sixteen_bits("direct", "e4m3", 10.125),
    "whole step with clipping": whole_step,
    "10,000 tensors of 1,000": plain,
}


def copied(elements, device):
    """A copy of some memory, and its bytes."""
    source = torch.empty(elements, device=device).normal_()
    target = torch.empty_like(source)
    return Work(lambda: target.copy_(source), 8), elements


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--divide", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    print("| step | ms | of copy | torch ms | of copy | host ms | torch host ms | share of torch |")
    print("|---|---|---|---|---|---|---|---|")
    for name, row in ROWS.items():
        if arguments.only not in name:
            continue
        many = name.startswith("10,000")
        sizes = [1000] * 10000 if many else [max(1, n // arguments.divide) for n in model_sizes()]
        ours, theirs = row(sizes, arguments.device)
        copy, copy_elements = copied(min(2**29, 8 * sum(sizes)), arguments.device)
        for number in range(arguments.rounds + 3):
            for work in (copy, ours, theirs):
                work.time(arguments.device, many)
                if number < 3:
                    work.device_ms.clear()
                    work.host_ms.clear()
        rate = 8 * copy_elements / statistics.median(copy.device_ms)
        texts = [name]
        for work in (ours, theirs):
            ms = statistics.median(work.device_ms)
            texts += [f"{ms:.3f}", f"{work.bytes_each * sum(sizes) / ms / rate:.2f}"]
        texts += [f"{statistics.median(work.host_ms):.3f}" for work in (ours, theirs)]
        share = statistics.median(a / b for a, b in zip(ours.device_ms, theirs.device_ms))
        print("| " + " | ".join(texts) + f" | {share:.2f} |", flush=True)
        del ours, theirs, copy
        gc.collect()
        if arguments.device != "cpu":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
