"""Rows of lists of tensors, of a model with 289 tensors: operations, loss scalers and optimizer steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from array_rows import FORMATS, library_of, text
from timing import Call, Machine, Row

import samebits
import samebits.torch as sbt
from samebits.torch import optim


def model_shapes(elements: int) -> list[tuple[int, int]]:
    """Return the shapes of a GPT's tensors, as matrices: 24 layers of width 2048 with 1.31 billion elements, or fewer
    rows of each."""
    d, words = 2048, 50304
    layer = [(3 * d, d), (d, d), (4 * d, d), (d, 4 * d), *((1, n) for n in (3 * d, d, 4 * d, d, d, d, d, d))]
    shapes = [(words, d), *(24 * layer)]
    share = min(1.0, elements / 1_312_000_000)
    return [(max(1, round(rows * share)), cols) for rows, cols in shapes]


def lists(m: Machine) -> Iterator[list[Row]]:
    """Operations on lists, by C++: Python makes the list again in each call."""
    library = library_of(m)
    if library is None:
        return
    many = min(10_000, m.elements >> 10)
    sizes = {"289 tensors": [rows * cols for rows, cols in model_shapes(m.elements)],
             f"{many} small tensors": many * [1000]}
    one, found = torch.ones(1, device=m.device), torch.zeros(1, device=m.device)
    for which, counts in sizes.items():
        tensors = {f: [m.normal(n).to(FORMATS[f]) for n in counts] for f in ("fp32", "fp16", "bf16", "e4m3")}
        made = {f: library.tensors(f, each) for f, each in tensors.items()}
        sums = [torch.empty(n, device=m.device) for n in counts]
        sums_made = library.tensors("fp32", sums)
        elements = sum(counts)
        rows = []

        def add(name: str, bytes_each: float, what: str, f: str, other: Any, peer: Call | None,
                rounding: str = "nearest_even", rows: Any = rows, of: Any = (which, made, elements)) -> None:
            which, made, elements = of
            rows.append(Row(f"{name}, {which}", bytes_each * elements, library("list", what, made[f], other, rounding),
                            {} if peer is None else {"torch": peer}))

        for f in ("fp32", "fp16", "bf16"):
            t, size = tensors[f], FORMATS[f].itemsize
            add(f"inspect {f}", size, "inspect", f, made[f], lambda t=t: torch._foreach_norm(t))
            add(f"unscale {f}", 2 * size, "unscale", f, made[f], None if f == "bf16" else  # torch's scaler refuses bf16
                lambda t=t: torch._amp_foreach_non_finite_check_and_unscale_(t, found, one))
            add(f"scale {f}", 2 * size, "scale", f, made[f], lambda t=t: torch._foreach_mul_(t, 1.0))
            add(f"accumulate {f} into fp32", size + 8, "accumulate", f, sums_made, None)
        for of, to in (("fp32", "bf16"), ("fp32", "fp16"), ("bf16", "fp32"), ("fp16", "fp32"), ("fp32", "e4m3")):
            add(f"cast {of} to {to}", FORMATS[of].itemsize + FORMATS[to].itemsize, "cast", of, made[to],
                lambda of=of, to=to, t=tensors: torch._foreach_copy_(t[to], t[of]))
        add("cast fp32 to bf16, stochastic, K=16", 6, "cast", "fp32", made["bf16"], None, "stochastic")
        yield rows
    for f in ("bf16", "fp32"):
        matrices = [m.normal(*shape).to(FORMATS[f]) for shape in model_shapes(m.elements)]
        rows = []
        for tile, rule in (((1, 128), "te"), ((128, 128), "te"), ((128, 1), "te"), ((1, 0), "te"), ((0, 0), "te"),
                           ((1, 128), "div"), ((1, 32), "mx_rceil")):
            call, moved = library.matrices(f, matrices, tile, rule)
            rows.append(Row(f"quantize {f}{text({'tile': tile})}, {rule}, 289 tensors", moved, call))
        yield rows


def parameters(m: Machine, dtype: torch.dtype, sizes: list[int]) -> list[torch.nn.Parameter]:
    """Return parameters with gradients."""
    made = []
    for n in sizes:
        made.append(torch.nn.Parameter(m.normal(n).to(dtype)))
        made[-1].grad = m.normal(n).to(dtype)
    return made


def scalers(m: Machine) -> Iterator[list[Row]]:
    """What loss scalers do with the gradients of a model, beside torch's scaler and clipping."""
    given = parameters(m, torch.float32, [rows * cols for rows, cols in model_shapes(m.elements)])
    optimizer = torch.optim.SGD(given, lr=0.1)
    gradients = [p.grad for p in given]
    size = 4 * sum(p.numel() for p in given)
    theirs = torch.amp.GradScaler(m.device, init_scale=1024.0)
    ours, clipping = (sbt.GradScaler(m.device, init_scale=1024.0, **o) for o in ({}, {"max_norm": 1.0}))
    for scaler in (theirs, ours, clipping):
        scaler.scale(torch.ones((), device=m.device))

    def prepare() -> None:
        """Begin alike: unscaling and clipping change gradients."""
        torch._foreach_zero_(gradients)
        torch._foreach_add_(gradients, 0.5)
        for scaler in (theirs, ours, clipping):
            scaler._per_optimizer_states.clear()
        for scaler in (ours, clipping):
            scaler._resident.begin()

    def unscale_and_clip() -> None:
        theirs.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(given, 1.0)

    yield [Row(name, moved * size, call, {"torch": peer}, prepare=prepare) for name, moved, call, peer in (
        ("unscale and check", 2, lambda: ours.unscale_(optimizer), lambda: theirs.unscale_(optimizer)),
        ("unscale, check and clip", 3, lambda: clipping.unscale_(optimizer), unscale_and_clip),
        ("check, factor folded into the optimizer", 1, lambda: clipping._check_inf_per_device(optimizer),
         unscale_and_clip),
        ("clip", 3, lambda: sbt.clip_grad_norm_(given, 1.0), lambda: torch.nn.utils.clip_grad_norm_(given, 1.0)))]


def step_bytes(optimizer: Any) -> int:
    """Return the bytes that a step reads and writes: gradients once, weights with masters once, all else twice."""
    moved = 0
    for p, state in optimizer.state.items():
        moved += p.grad.nbytes + p.nbytes * (1 if "master" in state else 2)
        moved += sum(2 * t.nbytes for key, t in state.items() if key != "step")
    return moved


def optimizers(m: Machine) -> Iterator[list[Row]]:
    """Optimizer steps beside torch's fused AdamW, a set for each row."""
    model = [rows * cols for rows, cols in model_shapes(m.elements)]
    fp32, bf16 = torch.float32, torch.bfloat16
    cases: list[tuple[str, Any, torch.dtype, dict[str, Any]]] = [
        *((f"AdamW {p}, fp32", optim.AdamW, fp32, {"profile": p})
          for p in ("strict", "fma", "torch_foreach", "torch_fused", "apex_te", "lightseq")),
        *((f"AdamW {p}, bf16 {weights}, {states} states", optim.AdamW, bf16,
           {"profile": p, "weights": weights, "states": states, "block": 256}) for p in ("strict", "fma")
          for weights, states in (("master32", "fp32"), ("master32", "fp16_scaled"), ("direct", "bf16"),
                                  ("stochastic", "bf16"), ("stochastic", "bf16_stochastic"), ("direct", "e4m3"),
                                  ("direct", "dynamic8"), ("split16", "fp32"), ("kahan", "bf16"))),
        ("SGD, fp32", optim.SGD, fp32, {"profile": "fma", "momentum": 0.9}),
        ("Lion, fp32", optim.Lion, fp32, {"profile": "fma"}), ("LAMB, fp32", optim.LAMB, fp32, {"profile": "fma"})]
    for name, kind, dtype, options in cases:
        for sizes, which in ((model, "289 tensors"), (min(10_000, m.elements >> 10) * [1000], "small tensors")):
            if not m.wants(f"{name}, {which}") or (which == "small tensors" and "strict" not in name):
                continue
            ours = kind(parameters(m, dtype, sizes), lr=1e-5, **options)
            theirs = torch.optim.AdamW(parameters(m, dtype, sizes), lr=1e-5, fused=True)
            ours.step()
            yield [Row(f"{name}, {which}", step_bytes(ours), ours.step, {"torch AdamW": theirs.step},
                       "device" if sizes is model else "whole")]
    for row in whole_step(m, model):
        yield [row]


def whole_step(m: Machine, sizes: list[int]) -> Iterator[Row]:
    """Unscale, check, clip and update, with a loss scaler."""
    if not m.wants("whole step with clipping, fp32"):
        return
    given, others = (parameters(m, torch.float32, sizes) for _ in range(2))
    ours, theirs = optim.AdamW(given), torch.optim.AdamW(others, fused=True)
    our_scaler = sbt.GradScaler(m.device, init_scale=1.0, max_norm=1.0)
    their_scaler = torch.amp.GradScaler(m.device, init_scale=1.0)
    for scaler in (our_scaler, their_scaler):
        scaler.scale(torch.ones((), device=m.device))

    def our_step() -> None:
        our_scaler.step(ours)
        our_scaler.update()

    def their_step() -> None:
        their_scaler.unscale_(theirs)
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        their_scaler.step(theirs)
        their_scaler.update()

    yield Row("whole step with clipping, fp32", 32 * sum(sizes), our_step, {"torch": their_step})
