"""torch_bench: PyTorch's casts on a GPU beside a plain device copy, timed as gpu_bench does.

usage: torch_bench.py [--log2-elements N]
Prints the same table, to be read next to gpu_bench's of the same machine and hour.
"""

import argparse
import statistics

import torch


def stochastic_bf16(x):
    """Stochastic rounding with 16 random bits, as torch users write it; not reproducible elsewhere."""
    bits = x.view(torch.int32)
    noise = torch.randint_like(bits, 0, 1 << 16)
    return ((bits + noise) & -65536).view(torch.float32).to(torch.bfloat16)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log2-elements", type=int, default=30)
    count = 1 << parser.parse_args().log2_elements
    source = torch.randn(count, device="cuda")
    other = torch.empty_like(source)
    half, brain = source.to(torch.float16), source.to(torch.bfloat16)
    targets = {"fp16": torch.float16, "bf16": torch.bfloat16,
               "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
    results = {name: torch.empty(count, device="cuda", dtype=t) for name, t in targets.items()}
    work = [("copy", 8, lambda: other.copy_(source))]
    for name in targets:
        work.append((f"fp32 to {name}, torch", 4 + results[name].element_size(),
                     lambda n=name: results[n].copy_(source)))
    for label, tensor in (("bf16", brain), ("fp16", half)):
        for name in ("e4m3", "e5m2"):
            work.append((f"{label} to {name}, torch", 3, lambda n=name, t=tensor: results[n].copy_(t)))
    compiled = torch.compile(stochastic_bf16)
    work.append(("fp32 to bf16, stochastic K=16, torch.compile", 6, lambda: compiled(source)))

    times = {name: [] for name, _, _ in work}
    for round_number in range(10):
        for name, _, run in work:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            if round_number > 0:
                times[name].append(begin.elapsed_time(end))
    copy = 8 * count / statistics.median(times["copy"])
    print("| work | ms | GB/s | share of copy |\n|---|---|---|---|")
    for name, per_element, _ in work:
        ms = statistics.median(times[name])
        rate = per_element * count / ms
        print(f"| {name} | {ms:.3f} | {rate / 1e6:.0f} | {rate / copy:.3f} |")


if __name__ == "__main__":
    main()
