"""torch_calls: host time of small calls of samebits on torch tensors, beside tensor.to().

usage: torch_calls.py
Converts 1000 elements and quantizes 4 x 256 on the CPU and, where there is one, on a GPU. All calls
take turns in one process; prints medians, and how often tensor.to() fits into each.
"""

from __future__ import annotations

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
        "samebits.quantize(t, 'DSV3_IEEE')": lambda: samebits.quantize(m, "DSV3_IEEE"),
        "samebits.torch.quantize(parameter)": lambda: sbt.quantize(p, "TE_CURRENT"),
        "samebits.dequantize": lambda: grown.dequantize("bf16"),
        "torch.empty": lambda: torch.empty(1000, dtype=torch.bfloat16, device=device),
    })
    base = found["t.to(bfloat16)"]
    for name, microseconds in found.items():
        print(f"| {device} | {name} | {microseconds:.2f} us | {microseconds / base:.2f} x to() |")


if __name__ == "__main__":
    for name in ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]:
        calls(name)
