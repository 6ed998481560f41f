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
from samebits.formats import INDEX


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


class View(ctypes.Structure):
    """samebits_view of include/samebits/c/base.h."""

    _fields_ = [("data", ctypes.c_void_p), ("rows", ctypes.c_int64), ("cols", ctypes.c_int64),
                ("row_stride", ctypes.c_int64), ("col_stride", ctypes.c_int64),
                ("format", ctypes.c_int32), ("memory", ctypes.c_int32)]


class ListTensor(ctypes.Structure):
    """samebits_list_tensor of include/samebits/c/tensor_list.h."""

    _fields_ = [("view", View), ("name", ctypes.c_char_p), ("group", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]


class QuantizeOutputs(ctypes.Structure):
    """samebits_quantize_outputs of include/samebits/c/quantize.h."""

    _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("codes", ctypes.c_void_p), ("scales", ctypes.c_void_p),
                ("codes_transposed", ctypes.c_void_p), ("scales_transposed", ctypes.c_void_p),
                ("statistics", ctypes.c_void_p)]


def large(library: str, elements: int) -> None:
    """Print the time of calls on many elements beside the C functions."""
    c = ctypes.CDLL(library)
    cols = 4096
    x = np.random.default_rng(1).standard_normal((elements // cols, cols), np.float32)
    out = np.ones(x.shape, ml_dtypes.bfloat16)
    quantized = samebits.quantize(x, threads=1)

    def view(a: Any, format: str) -> View:
        return View(a.ctypes.data, *a.shape, a.shape[1], 1, INDEX[format], 0)

    views = {"x": view(x, "fp32"), "out": view(out, "bf16"),
             "codes": view(quantized.codes.view(np.uint8), "e4m3"),
             "scales": view(quantized.scales, "fp32")}
    at = {name: ctypes.pointer(v) for name, v in views.items()}
    tensor = ListTensor(views["x"], None, 0, 0)
    tensors = ctypes.c_void_p()
    check(c.samebits_tensor_list_create(ctypes.byref(tensor), ctypes.c_size_t(1),
                                        ctypes.byref(tensors)))
    report = ctypes.create_string_buffer(4096)
    outputs = QuantizeOutputs(ctypes.sizeof(QuantizeOutputs), 0,
                              ctypes.cast(at["codes"], ctypes.c_void_p),
                              ctypes.cast(at["scales"], ctypes.c_void_p), None, None, None)
    found = times({
        "C convert": lambda: check(c.samebits_convert(at["x"], at["out"], None, None)),
        "convert": lambda: samebits.convert(x, "bf16", out=out, threads=1),
        "C quantize": lambda: check(c.samebits_quantize(at["x"], ctypes.byref(outputs), None,
                                                        None)),
        "quantize": lambda: samebits.quantize(x, out=quantized, threads=1),
        "C inspect": lambda: check(c.samebits_tensor_list_inspect(
            tensors, 1, report, None, ctypes.c_size_t(0), None)),
        "inspect": lambda: samebits.inspect(x, threads=1),
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
