"""torch_functions: functions of rule torch_2_11 on one CPU thread, beside glibc and PyTorch on the CPU.

usage: torch_functions.py [ELEMENTS]
Computes exp, tanh and gelu_tanh of fp32 numbers (default: 2^24, from memory to memory) with each
backend of the processor, with the C library's scalar function (a loop that the script compiles with
cc) and with PyTorch. All take turns in one process. Prints million elements a second of CPU time, the
best of nine rounds, and the share of PyTorch's CPU results with other bits than the rule's. Then the
same times of softmax, log_softmax and layer_norm of rows.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

import samebits

RULE = "torch_2_11"
LOOP = """#include <math.h>
void expf_loop(const float* x, float* y, long n) { for (long i = 0; i < n; ++i) y[i] = expf(x[i]); }
void tanhf_loop(const float* x, float* y, long n) { for (long i = 0; i < n; ++i) y[i] = tanhf(x[i]); }
"""
BACKENDS = [b for b in ("avx2", "avx512", "reference")
            if any(b == each.name and each.supported for each in samebits.backends())]


def rates(work: dict[str, Callable[[], object]], elements: int) -> None:
    """Print million elements a second; the calls take turns."""
    best = dict.fromkeys(work, float("inf"))
    for _ in range(9):
        for name, call in work.items():
            if name.endswith("reference") and best[name] < 1e9:
                continue  # slow: once
            begin = time.thread_time()
            call()
            best[name] = min(best[name], time.thread_time() - begin)
    for name, seconds in best.items():
        print(f"  {name:28} {elements / seconds / 1e6:9.1f} M/s")


def library(folder: str) -> ctypes.CDLL:
    """Loops over the C library's scalar functions. Without -ffast-math compilers do not vectorise
    them."""
    source = Path(folder, "loop.c")
    source.write_text(LOOP)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", f"{folder}/loop.so", "-lm"],
                   check=True)
    return ctypes.CDLL(f"{folder}/loop.so")


def differing(result: torch.Tensor, expected: torch.Tensor) -> str:
    """The share of results with other bits."""
    other = result.view(torch.int32) != expected.view(torch.int32)
    return f"{100 * other.double().mean().item():.1f} %"


def functions(count: int, loops: ctypes.CDLL) -> None:
    """Functions of elements."""
    x = torch.randn(count) * 3
    y = torch.empty_like(x)
    n = ctypes.c_long(count)
    pointers = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr())
    of_torch: dict[str, Callable[[], torch.Tensor]] = {
        "exp": lambda: torch.exp(x, out=y), "tanh": lambda: torch.tanh(x, out=y),
        "gelu_tanh": lambda: torch.nn.functional.gelu(x, approximate="tanh")}
    for name, by_torch in of_torch.items():
        ours = getattr(samebits.functions, name)
        work: dict[str, Callable[[], object]] = {
            f"samebits, {b}": lambda b=b, f=ours: f(x, rule=RULE, out=y, threads=1, backend=b)
            for b in BACKENDS}
        if name in ("exp", "tanh"):
            loop = getattr(loops, f"{name}f_loop")
            work[f"glibc, scalar {name}f"] = lambda f=loop: f(*pointers, n)
        work["PyTorch"] = by_torch
        print(f"{name}, {count} elements, one thread")
        rates(work, count)
        share = differing(by_torch().clone(), ours(x, rule=RULE, threads=1))
        print(f"  PyTorch's CPU results with other bits than its GPU results: {share}")


def rows(count: int) -> None:
    """Functions of rows."""
    x = torch.randn(count // 1024, 1024)
    y = torch.empty_like(x)
    options = {"rule": RULE, "threads": 1}
    work: dict[str, Callable[[], object]] = {}
    for b in BACKENDS:
        work[f"softmax, {b}"] = lambda b=b: samebits.functions.softmax(
            x, out=y, backend=b, **options)
        work[f"log_softmax, {b}"] = lambda b=b: samebits.functions.log_softmax(
            x, out=y, backend=b, **options)
        work[f"layer_norm, {b}"] = lambda b=b: samebits.functions.layer_norm(
            x, out=y, backend=b, **options)
    work["softmax, PyTorch"] = lambda: torch.softmax(x, -1)
    work["log_softmax, PyTorch"] = lambda: torch.log_softmax(x, -1)
    work["layer_norm, PyTorch"] = lambda: torch.nn.functional.layer_norm(x, (1024,))
    print(f"rows of 1024, {count} elements, one thread")
    rates(work, count)


if __name__ == "__main__":
    torch.set_num_threads(1)
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 24
    with tempfile.TemporaryDirectory() as temporary:
        functions(size, library(temporary))
    rows(size // 4)
