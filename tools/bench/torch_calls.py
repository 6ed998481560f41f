"""Times samebits.torch beside PyTorch in one process: small calls on the host, and whole gradients.

usage: torch_calls.py [--calls | --gradients]      (needs torch; --gradients needs a GPU)

--calls      host time of a call on 1000 elements, beside tensor.to() of the same dtypes
--gradients  unscale + check + clip of 1.3e9 parameters in 289 tensors, beside GradScaler.unscale_ and
             clip_grad_norm_ of torch, and the bytes' share of a device copy
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

import samebits
import samebits.torch as sbt


def host_times(work: dict[str, Callable[[], object]], rounds: int = 200) -> dict[str, float]:
    """Return the median time of a call in microseconds; the calls take turns."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, call in work.items():
            begin = time.perf_counter()
            for _ in range(20):
                call()
            times[name].append((time.perf_counter() - begin) / 20e-6)
            if torch.cuda.is_available():
                torch.cuda.synchronize()
    return {name: statistics.median(t) for name, t in times.items()}


def calls(device: str) -> None:
    """Print the host times of small calls."""
    x = torch.randn(1000, device=device)
    p = torch.nn.Parameter(torch.randn(4, 256, device=device))
    m = p.detach()
    grown = samebits.quantize(m, "TE_CURRENT")
    found = host_times({
        "t.to(bfloat16)": lambda: x.to(torch.bfloat16),
        "samebits.convert(t, 'bf16')": lambda: samebits.convert(x, "bf16"),
        "samebits.torch.convert(t, 'bf16')": lambda: sbt.convert(x, "bf16"),
        "samebits.torch.convert(parameter, 'bf16')": lambda: sbt.convert(p, "bf16"),
        "samebits.quantize(t, 'TE_CURRENT')": lambda: samebits.quantize(m, "TE_CURRENT"),
        "samebits.quantize(..., out=)": lambda: samebits.quantize(m, "TE_CURRENT", out=grown),
        "samebits.torch.quantize(parameter)": lambda: sbt.quantize(p, "TE_CURRENT"),
        "samebits.dequantize": lambda: grown.dequantize("bf16"),
        "torch.empty": lambda: torch.empty(1000, dtype=torch.bfloat16, device=device),
    })
    base = found["t.to(bfloat16)"]
    for name, microseconds in found.items():
        print(f"{device}  {name:44s} {microseconds:7.2f} us   {microseconds / base:5.2f} x to()")


def gpt_shapes(parameters: float) -> list[tuple[int, ...]]:
    """Return the shapes of a GPT-2 model of 24 layers with about this many parameters."""
    width = 64 * round((parameters / (12 * 24)) ** 0.5 / 64)
    shapes: list[tuple[int, ...]] = [(50257, width // 4)]
    for _ in range(24):
        shapes += [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,),
                   (width,), (width,), (4 * width, width), (4 * width,), (width, 4 * width),
                   (width,)]
    return shapes


def device_time(call: Callable[[], object], before: Callable[[], object], rounds: int = 7) -> float:
    """Return the median time of a call in milliseconds on the device."""
    times = []
    for _ in range(rounds):
        before()
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(3):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 3)
    return statistics.median(times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    chosen = parser.parse_args()
    if chosen.calls or not chosen.gradients:
        for name in ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]:
            calls(name)
