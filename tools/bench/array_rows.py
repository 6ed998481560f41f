"""Rows of calls on arrays: conversion, quantization, arithmetic, functions, matrix products and small calls."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from library import Library
from timing import Call, Machine, Row

import samebits
import samebits.torch as sbt

FORMATS: dict[str, torch.dtype] = {
    "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2, "e2m1": torch.uint8}
WIDE = ("fp32", "fp16", "bf16")


def library_of(m: Machine) -> Library | None:
    """Return the calls of C++, if the command line names their library."""
    return Library(m) if m.library else None


def stochastic(bits: int) -> dict[str, Any]:
    """Return options of stochastic rounding."""
    return {"rounding": "stochastic", "seed": 1, "random_bits": bits}


def text(options: dict[str, Any]) -> str:
    """Return options as a part of a name."""
    shown: dict[str, Any] = {"random_bits": "K={}".format, "tile": "{0[0]}x{0[1]}".format,
                             "transposed": lambda _: "and transposed"}
    return "".join(f", {shown.get(key, str)(value)}" for key, value in options.items() if key != "seed")


def conversions(m: Machine) -> Iterator[list[Row]]:
    """Conversions of arrays."""
    sources = {f: m.normal().to(FORMATS[f]) for f in ("fp32", "bf16", "fp16", "e4m3")}
    results = {f: torch.empty(m.elements, dtype=dtype, device=m.device) for f, dtype in FORMATS.items()}
    cases: list[tuple[str, str, dict[str, Any]]] = [
        *(("fp32", to, {}) for to in ("bf16", "fp16", "e4m3", "e5m2", "e2m1")),
        *(("e4m3", to, {}) for to in ("fp32", "bf16")),
        *((f, "e4m3", {"overflow": "saturate"}) for f in WIDE), ("bf16", "e5m2", {"overflow": "saturate"}),
        ("fp32", "e4m3", {"rounding": "toward_zero"}),
        *((f, to, stochastic(k)) for f, to in (("fp32", "bf16"), ("fp32", "fp16"), ("fp32", "e4m3"), ("bf16", "e4m3"))
          for k in (8, 16, 32))]

    def row(of: str, to: str, options: dict[str, Any]) -> Row:
        x, y = sources[of], results[to]
        peers: dict[str, Call] = {}
        if "rounding" not in options and to != "e2m1":
            peers["torch"] = lambda: y.copy_(x)
            if m.device == "cpu":
                left, right = sbt.to_numpy(x), sbt.to_numpy(y)
                peers["ml_dtypes"] = lambda: np.copyto(right, left, casting="unsafe")
        return Row(f"{of} to {to}{text(options)}", x.nbytes + y.nbytes,
                   lambda: samebits.convert(x, to, out=y, **options), peers)

    yield [row(*case) for case in cases]


def quantization(m: Machine) -> Iterator[list[Row]]:
    """Quantization of matrices into codes with scales, and dequantization."""
    cols = 1 << (m.elements.bit_length() - 1) // 2
    x = {f: m.normal(m.elements // cols, cols).to(FORMATS[f]) for f in ("bf16", "fp32")}
    spread = torch.rand_like(x["fp32"]) * 24 - 16
    x["bf16 from 2^-16 to 2^8"] = spread.exp2_().mul_(x["fp32"].sign()).bfloat16()
    y = {f: torch.empty_like(x["bf16"], dtype=FORMATS[f]) for f in WIDE}
    tiles = ((1, 128), (128, 128), (128, 1), (1, 16), (1, 32), (32, 32), (1, 0), (0, 0))
    cases: list[tuple[str, dict[str, Any]]] = [
        *(("bf16", {"tile": tile, "scale": "te"}) for tile in tiles), ("fp32", {"tile": (1, 128), "scale": "te"}),
        *(("bf16", {"tile": (1, 128), "scale": rule}) for rule in ("div", "rcp", "pow2")),
        *((of, {"tile": (1, 128), **stochastic(k)}) for of in ("bf16", "bf16 from 2^-16 to 2^8") for k in (8, 16, 32)),
        *(("bf16", {"tile": tile, "transposed": True}) for tile in ((1, 128), (128, 128))),
        *(("bf16", {"recipe": name}) for name in (
            "MXFP8_TE", "MXFP8_FLOOR", "MXFP4_FLOOR", "MXFP4_RCEIL", "NVFP4_TE", "NVFP4_TE_2D", "NVFP4_TORCHAO",
            *(["NVFP4_TE_4OVER6"] if m.device == "cuda" else [])))]
    rows = []
    for of, options in cases:
        name = f"quantize {of}{text(options)}"
        if not m.wants(name):
            continue
        q = samebits.quantize(x[of], **options)
        written = sum(t.nbytes for t in (q.codes, q.scales, q.codes_transposed, q.scales_transposed) if t is not None)
        rows.append(Row(name, x[of].nbytes + written,
                        lambda x=x[of], q=q, o=options: samebits.quantize(x, out=q, **o)))
    for name in ("DSV3_IEEE", "MXFP8_FLOOR", "MXFP4_FLOOR", "NVFP4_TE", "NVFP4_TE_2D"):
        if m.wants(f"dequantize {name} to bf16"):
            q = samebits.quantize(x["bf16"], name)
            rows.append(Row(f"dequantize {name} to bf16", q.codes.nbytes + q.scales.nbytes + y["bf16"].nbytes,
                            lambda q=q: q.dequantize("bf16", out=y["bf16"])))
    yield [*rows, *statistics_rows(m, x), *codebook_rows(m, x["bf16"], y)]


def statistics_rows(m: Machine, x: dict[str, torch.Tensor]) -> Iterator[Row]:
    """Quantization with statistics in the same pass."""
    library = library_of(m)
    tiles = ((1, 128), (128, 128), (32, 32), (1, 32))
    for of, tile in (*(("bf16", tile) for tile in tiles), ("fp32", (1, 128))):
        name = f"quantize {of}{text({'tile': tile})}, te, with statistics"
        if not m.wants(name) or (m.device == "cuda" and library is None):
            continue
        q = samebits.quantize(x[of], tile=tile)
        moved = x[of].nbytes + q.codes.nbytes + q.scales.nbytes
        if m.device == "cpu":
            yield Row(name, moved, lambda x=x[of], t=tile, q=q: samebits.quantize(x, tile=t, statistics=True, out=q))
        else:
            found = torch.zeros(128, dtype=torch.uint8, device=m.device)
            yield Row(name, moved, library("statistics", of, x[of], *x[of].shape, *tile, q.codes, q.scales, found))


def codebook_rows(m: Machine, x: torch.Tensor, y: dict[str, torch.Tensor]) -> Iterator[Row]:
    """Codebooks in blocks of 64."""
    for book in ("nf4", "dynamic8"):
        names = [f"quantize {book}, blocks of 64", *(f"dequantize {book} to {to}, blocks of 64{double}"
                                                     for to in WIDE for double in ("", ", double"))]
        if not any(map(m.wants, names)):
            continue
        for double in (False, True):
            q = samebits.quantize_blocks(x, book, double=double, offset=0.0 if double else None)
            moved = q.codes.nbytes + (q.absmax.codes if double else q.absmax).nbytes
            if not double:
                yield Row(f"quantize {book}, blocks of 64", x.nbytes + moved,
                          lambda b=book: samebits.quantize_blocks(x, b))
            for to in WIDE:
                yield Row(f"dequantize {book} to {to}, blocks of 64{', double' * double}", moved + y[to].nbytes,
                          lambda q=q, to=to: q.dequantize(to, out=y[to]))


def arithmetic(m: Machine) -> Iterator[list[Row]]:
    """Arithmetic and reductions; on a GPU, and without flags, by C++."""
    library = library_of(m)
    operands = {"add": 2, "mul": 2, "fma": 3, "div": 2, "sqrt": 1, "max": 2}
    for f in ("fp32", "fp16", "bf16", "e4m3", "e5m2"):
        a, b, c = ((m.normal() if i else m.normal().abs()).to(FORMATS[f]) for i in range(3))
        out, size = torch.empty_like(a), a.nbytes
        theirs: dict[str, Call] = {
            "add": lambda a=a, b=b, o=out: torch.add(a, b, out=o),
            "mul": lambda a=a, b=b, o=out: torch.mul(a, b, out=o),
            "fma": lambda a=a, b=b, c=c, o=out: torch.addcmul(c, a, b, out=o),
            "div": lambda a=a, b=b, o=out: torch.div(a, b, out=o), "sqrt": lambda a=a, o=out: torch.sqrt(a, out=o),
            "max": lambda a=a, b=b, o=out: torch.maximum(a, b, out=o),
            "amax": lambda a=a: torch.linalg.vector_norm(a, ord=float("inf")),
            "sum": lambda a=a: torch.sum(a, dtype=torch.float32),
            "sum_of_squares": lambda a=a: torch.linalg.vector_norm(a, dtype=torch.float32),
            "dot": lambda a=a, b=b: torch.dot(a, b)} if f in WIDE else {}
        rows = [Row(f"{name} {f}, with flags", (count + 1) * size,
                    lambda n=name, x=(a, b, c)[:count], o=out: getattr(samebits, n)(*x, out=o))
                for name, count in (("add", 2), ("fma", 3))]
        for op, count in operands.items() if library else ():
            for rounding, overflow in (("nearest_even", "ieee"), ("nearest_even", "saturate"), ("stochastic", "ieee")):
                plain = (rounding, overflow) == ("nearest_even", "ieee")
                if plain or (op in ("add", "fma") and (overflow == "saturate" or f in ("bf16", "e4m3"))):
                    rows.append(Row(f"{op} {f}" + ("" if plain else f", {rounding}, {overflow}"), (count + 1) * size,
                                    library("compute", op, f, rounding, overflow, [a, b, c], out, m.elements),
                                    {"torch": theirs[op]} if plain and theirs else {}))
        found = torch.zeros(64, dtype=torch.uint8, device=m.device)
        for name in ("amax", "counts", "sum", "sum_of_squares", "dot", "fp32 dot"):
            if m.device == "cuda" and library:
                call = library("reduce", name, f, a, b, m.elements, found)
            elif "dot" in name:
                call = lambda a=a, b=b, p="fp64" if name == "dot" else "fp32": samebits.dot(a, b, precision=p)
            else:
                call = lambda a=a, n=name: getattr(samebits, n)(a)
            rows.append(Row(f"{name} of {f}", size * (1 + ("dot" in name)), call,
                            {"torch": theirs[name]} if name in theirs else {}))
        yield rows


def functions(m: Machine) -> Iterator[list[Row]]:
    """Functions of elements by the rules exact and torch_2_11, and gradients."""
    f, aten = torch.nn.functional, torch.ops.aten
    plain: dict[str, Any] = {
        "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "tanh": torch.tanh, "erf": torch.erf,
        "sigmoid": torch.sigmoid, "silu": f.silu, "gelu": f.gelu, "gelu_tanh": lambda x: f.gelu(x, approximate="tanh"),
        "softplus": f.softplus}
    of_magnitudes: dict[str, Any] = {"log": torch.log, "log2": torch.log2, "log1p": torch.log1p, "rsqrt": torch.rsqrt,
                                     "reciprocal": torch.reciprocal}
    gradients: dict[str, Any] = {"silu": aten.silu_backward, "gelu": aten.gelu_backward,
                                 "gelu_tanh": lambda g, x: aten.gelu_backward(g, x, approximate="tanh")}
    results = {to: torch.empty(m.elements, dtype=FORMATS[to], device=m.device) for to in WIDE}
    for of, to, rule in (("fp32", "fp32", "exact"), ("bf16", "bf16", "exact"), ("fp32", "bf16", "exact"),
                         ("fp16", "fp16", "exact"), *((each, each, "torch_2_11") for each in WIDE)):
        x, y = m.normal().to(FORMATS[of]), results[to]
        positive, options = x.abs(), {"rule": rule, "to": to, "out": y}
        rows = []
        for name, theirs in {**plain, **of_magnitudes}.items():
            operand = positive if name in of_magnitudes else x
            rows.append(Row(f"{name} {of} to {to}, {rule}", x.nbytes + y.nbytes,
                            lambda n=name, x=operand, o=options: samebits.functions.evaluate(n, x, **o),
                            {"torch": lambda t=theirs, x=operand: t(x)} if of == to else {}))
        for name, theirs in gradients.items() if of == to else ():
            rows.append(Row(f"gradient of {name} {of}, {rule}", 3 * x.nbytes,
                            lambda n=name, g=positive, x=x, o=options: samebits.functions.gradient(n, g, x, **o),
                            {"torch": lambda t=theirs, g=positive, x=x: t(g, x)}))
        yield rows


def products(m: Machine) -> Iterator[list[Row]]:
    """Matrix products as tensor cores compute them, on the CPU, beside an fp32 product by torch."""
    if m.device != "cpu":
        return
    n = max(64, min(768, math.isqrt(m.elements) // 8))
    cases: tuple[tuple[str, dict[str, Any]], ...] = (
        ("e4m3", {"unit": "hopper_wgmma"}), ("e4m3", {"unit": "hopper_wgmma", "promotion": 128}),
        ("e5m2", {"unit": "hopper_wgmma"}), ("e4m3", {"unit": "hopper_mma_sync"}), ("fp16", {"unit": "hopper_wgmma"}),
        ("bf16", {"unit": "hopper_wgmma"}), ("tf32", {"unit": "hopper_wgmma"}), ("fp16", {"unit": "ampere_mma"}),
        ("e4m3", {"sum": "exact"}), ("e4m3", {"sum": "fp32_per_128"}), ("bf16", {"sum": "ieee_fp32"}))
    a, b, d = m.normal(n, n), m.normal(n, n), torch.empty(n, n)
    rows = []
    for of, options in cases:
        x, y = (samebits.convert(t, of) if of == "tf32" else t.to(FORMATS[of]) for t in (a, b))
        given = {**options, "a_format": of, "b_format": of} if of == "tf32" else options
        rows.append(Row(f"{n}^3 {of}{text(options)}", 0, lambda x=x, y=y, g=given: samebits.matmul(x, y.T, out=d, **g),
                        {"torch fp32": lambda: torch.matmul(a, b, out=d)}, products=n**3))
    yield rows


def calls(m: Machine) -> Iterator[list[Row]]:
    """Host time of small calls, beside tensor.to() and ndarray.astype()."""
    x = m.normal(1000)
    y = x.to(torch.bfloat16)
    p = torch.nn.Parameter(m.normal(4, 256))
    q = samebits.quantize(p.detach(), "TE_CURRENT")
    work: dict[str, Call] = {
        "samebits.convert(t, 'bf16')": lambda: samebits.convert(x, "bf16"),
        "samebits.convert(t, 'bf16', out=)": lambda: samebits.convert(x, "bf16", out=y),
        "samebits.torch.convert(t, 'bf16')": lambda: sbt.convert(x, "bf16"),
        "samebits.torch.convert(parameter, 'bf16')": lambda: sbt.convert(p, "bf16"),
        "samebits.quantize(t, 'TE_CURRENT')": lambda: samebits.quantize(p.detach(), "TE_CURRENT"),
        "samebits.quantize(..., out=)": lambda: samebits.quantize(p.detach(), "TE_CURRENT", out=q),
        "samebits.quantize(t, 'DSV3_IEEE')": lambda: samebits.quantize(p.detach(), "DSV3_IEEE"),
        "samebits.torch.quantize(parameter)": lambda: sbt.quantize(p, "TE_CURRENT"),
        "QuantizedTensor.dequantize": lambda: q.dequantize("bf16")}
    library = library_of(m)
    if library:
        work["convert() of C++"] = library("convert", x, y, 1000)
    rows = [Row(name, 0, call, {"t.to(bfloat16)": lambda: x.to(torch.bfloat16)}, "host") for name, call in work.items()]
    if m.device == "cpu":
        import ml_dtypes

        array = np.ones(1000, np.float32)
        narrow = array.astype(ml_dtypes.bfloat16)
        rows += [Row("samebits.convert(ndarray, 'bf16')", 0, lambda: samebits.convert(array, "bf16"),
                     {"astype": lambda: array.astype(ml_dtypes.bfloat16)}, "host"),
                 Row("samebits.convert(ndarray, 'fp32')", 0, lambda: samebits.convert(narrow, "fp32"),
                     {"astype": lambda: narrow.astype(np.float32)}, "host")]
    yield rows
