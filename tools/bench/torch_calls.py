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
from typing import Any

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


def gpt_gradients(device: str) -> list[torch.nn.Parameter]:
    """Return 289 parameters of a GPT of 24 layers, 1.31e9 elements, with fp32 gradients."""
    width, shapes = 2048, [(50257, 2048)]
    for _ in range(24):
        shapes += [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,),
                   (width,), (width,), (4 * width, width), (4 * width,), (width, 4 * width),
                   (width,)]
    parameters = []
    for shape in shapes:
        p = torch.nn.Parameter(torch.empty(0, device=device))
        p.data = torch.empty(shape, device=device)
        p.grad = torch.randn(shape, device=device) * 1e-3
        parameters.append(p)
    return parameters


def device_time(call: Callable[[], object], rounds: int = 9, calls_each: int = 3) -> float:
    """Return the median time of a call in milliseconds, of several calls between two events."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls_each):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / calls_each)
    return statistics.median(times)


def gradients() -> None:
    """Print the times of unscale, check and clip of all gradients of a model."""
    parameters = gpt_gradients("cuda")
    elements = sum(p.numel() for p in parameters)
    source = torch.empty(1 << 30, device="cuda")
    target = torch.empty_like(source)
    bandwidth = 2 * source.nbytes / device_time(lambda: target.copy_(source))  # bytes each ms
    del source, target
    optimizer = torch.optim.SGD(parameters, lr=0.0)

    def step(scaler: torch.amp.GradScaler, clip: Callable[[], object] | None) -> None:
        scaler.unscale_(optimizer)
        if clip is not None:
            clip()
        scaler._per_optimizer_states.clear()  # the next call may unscale again, without a step

    def fresh(kind: Any, **settings: Any) -> Any:
        scaler = kind("cuda", init_scale=1.0, **settings)
        scaler.scale(torch.ones((), device="cuda"))
        return scaler

    theirs, ours = fresh(torch.amp.GradScaler), fresh(sbt.GradScaler, max_norm=1.0)
    plain, reading = fresh(sbt.GradScaler), fresh(sbt.GradScaler, max_norm=1.0)
    work: dict[str, tuple[float, Callable[[], object]]] = {
        "torch: unscale_, clip_grad_norm_": (5 * 4, lambda: step(
            theirs, lambda: torch.nn.utils.clip_grad_norm_(parameters, 1.0))),
        "torch: unscale_": (2 * 4, lambda: step(theirs, None)),
        "samebits: unscale_ with max_norm": (3 * 4, lambda: step(ours, None)),
        "samebits: unscale_": (2 * 4, lambda: step(plain, None)),
        "samebits: unscale_, clip_grad_norm_": (5 * 4, lambda: step(
            plain, lambda: sbt.clip_grad_norm_(parameters, 1.0))),
        "samebits: decision and factor alone, folded into the optimizer": (4, lambda: (
            reading._check_inf_per_device(optimizer), reading._per_optimizer_states.clear())),
    }
    found = {name: device_time(call) for name, (_, call) in work.items()}
    base = found["torch: unscale_, clip_grad_norm_"]
    for name, milliseconds in found.items():
        floor = work[name][0] * elements / bandwidth
        print(f"| {name} | {milliseconds:.3f} ms | {milliseconds / floor:.2f} x its bytes' copy "
              f"| torch / this = {base / milliseconds:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    chosen = parser.parse_args()
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    if chosen.calls or not chosen.gradients:
        for device_name in devices:
            calls(device_name)
    if "cuda" in devices and (chosen.gradients or not chosen.calls):
        gradients()
