"""numpy_calls: time of samebits on NumPy arrays, beside ml_dtypes and beside the C functions.

usage: numpy_calls.py [LIBSAMEBITS_C] [ELEMENTS]
Converts 1000 elements beside ndarray.astype. With the shared library of the C interface, from the
same build as the package, also times convert, quantize and inspect of ELEMENTS (default 10^8)
beside the C functions, on one thread. The calls take turns in one process; prints medians.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import samebits


def times(work: dict[str, Callable[[], object]], rounds: int, calls: int) -> dict[str, float]:
    """Return the median time of a call in seconds; the calls take turns."""
    found: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, call in work.items():
            begin = time.perf_counter()
            for _ in range(calls):
                call()
            found[name].append((time.perf_counter() - begin) / calls)
    return {name: statistics.median(t) for name, t in found.items()}


def small() -> None:
    """Print the time of convert() for 1000 elements beside astype()."""
    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    b = x.astype(ml_dtypes.bfloat16)
    found = times({
        "astype to bf16": lambda: x.astype(ml_dtypes.bfloat16),
        "convert to bf16": lambda: samebits.convert(x, "bf16"),
        "astype to fp32": lambda: b.astype(np.float32),
        "convert to fp32": lambda: samebits.convert(b, "fp32"),
    }, rounds=400, calls=50)
    for to in ["bf16", "fp32"]:
        base, ours = found[f"astype to {to}"], found[f"convert to {to}"]
        print(f"| to {to}, 1000 elements | {1e6 * ours:.2f} us | {ours / base:.2f} x astype |")


class Array(ctypes.Structure):
    """samebits_array of include/samebits/c/samebits.h."""

    _fields_ = [("data", ctypes.c_void_p), ("rows", ctypes.c_int64), ("cols", ctypes.c_int64),
                ("row_stride", ctypes.c_int64), ("col_stride", ctypes.c_int64),
                ("format", ctypes.c_char_p), ("on_device", ctypes.c_int32)]


def large(library: str, elements: int) -> None:
    """Print the time of calls on many elements beside the C functions."""
    c = ctypes.CDLL(library)
    cols = 4096
    x = np.random.default_rng(1).standard_normal((elements // cols, cols), np.float32)
    out = np.ones(x.shape, ml_dtypes.bfloat16)
    quantized = samebits.quantize(x, threads=1)

    def array(a: Any, format: bytes) -> Any:
        return ctypes.pointer(Array(a.ctypes.data, *a.shape, a.shape[1], 1, format, 0))

    c_x, c_out = array(x, b"fp32"), array(out, b"bf16")
    codes = array(quantized.codes.view(np.uint8), b"e4m3")
    scales = array(quantized.scales, b"fp32")
    scaler = ctypes.c_void_p()
    check(c.samebits_scaler_create(b"native", None, ctypes.byref(scaler)))

    def inspect() -> None:
        check(c.samebits_scaler_inspect(scaler, c_x, ctypes.c_size_t(1), None, None, None))
        check(c.samebits_scaler_step(scaler, None, None, None))

    found = times({
        "C convert": lambda: check(c.samebits_convert(c_x, c_out, None, None)),
        "convert": lambda: samebits.convert(x, "bf16", out=out, threads=1),
        "C quantize": lambda: check(c.samebits_quantize(c_x, codes, scales, None, None)),
        "quantize": lambda: samebits.quantize(x, out=quantized, threads=1),
        "C inspect": inspect,
        "inspect": lambda: samebits.inspect(x, threads=1, distribution=False),
    }, rounds=15, calls=1)
    for name in ["convert", "quantize", "inspect"]:
        base, ours = found[f"C {name}"], found[name]
        print(f"| {name}, {x.size} elements | {1e3 * ours:.1f} ms | {ours / base:.3f} x C |")


def check(status: int) -> None:
    """Stop if a C function reports an error."""
    if status != 0:
        raise SystemExit(f"the C function returned status {status}")


if __name__ == "__main__":
    small()
    if len(sys.argv) > 1:
        large(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10**8)
