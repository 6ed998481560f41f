"""PyTorch's softmax, log_softmax and LayerNorm on a GPU against samebits.functions with the rule
torch_2_11, on the CPU and on the GPU, bit for bit.

Widths: about 350 up to 51,000 by default; with SAMEBITS_EXHAUSTIVE=1 every width from 1 to 4096 and
200 wider ones. SAMEBITS_SHARD=3/16 compares every 16th of these widths, beginning with the fourth, so
that 16 processes can share the work. The rows of a tensor hold usual numbers, equal numbers, one large
number, Inf, NaN and others (`rows_of`). Tensors begin at a 16-byte boundary, or `offset` elements behind
one. All NaN count as equal. Every test prints one line per operation. The rule is that of PyTorch 2.11 on
Hopper; other versions and other GPUs are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
import torch
from gpu_rules import FORMATS, different, require

from samebits import functions

RULE = "torch_2_11"
EXHAUSTIVE = os.environ.get("SAMEBITS_EXHAUSTIVE") == "1"
SHARD, SHARDS = (int(n) for n in os.environ.get("SAMEBITS_SHARD", "0/1").split("/"))
EPSILON = 1e-5
BORDERS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 9216, 12256, 12272, 24512, 24544, 32000, 50257,
           50304)  # the kernels change near most of these widths


def widths() -> list[int]:
    near = {b + d for b in BORDERS for d in (-8, -4, -1, 0, 1, 4, 8) if b < 20000 or d in (-8, 0, 1)}
    dense, step, wider = (4096, 1, 200) if EXHAUSTIVE else (200, 41, 12)
    chosen = near | set(range(1, dense + 1)) | set(range(dense, 4097, step))
    random = np.random.default_rng(7)
    for i in range(wider):
        chosen.add(int(random.integers(4097, 51000)) // (1, 8)[i % 2] * (1, 8)[i % 2])
    return sorted(chosen)[SHARD::SHARDS]


def rows_of(n: int, seed: int) -> npt.NDArray[np.float32]:
    """Rows of different kinds, [12, n]."""
    random = np.random.default_rng([seed, n])
    x = random.standard_normal((12, n)).astype(np.float32) * 3
    x[1] *= 30
    x[2] = np.float32(random.standard_normal())
    x[3] = x[3] / 64 + np.float32(1000)
    x[4, random.integers(n)] = 60000
    x[5, random.integers(n)] = -np.inf
    x[6] *= np.float32(2.0**-20)
    x[7] = np.where(random.random(n) < 0.5, np.float32(0), np.float32(-0.0))
    x[8] *= np.exp2(random.integers(-30, 16, n)).astype(np.float32)
    x[9, random.integers(n)] = np.inf
    x[10, random.integers(n)] = np.nan
    x[11] = -np.inf
    return x


def tensor_at(numbers: npt.NDArray[np.float32], format: str, offset: int, device: str) -> torch.Tensor:
    """A tensor that begins `offset` elements behind a 16-byte boundary."""
    memory = torch.empty(numbers.size + offset, dtype=FORMATS[format], device=device)
    memory[offset:] = torch.from_numpy(numbers).reshape(-1).to(device)
    return memory[offset:].view(*numbers.shape)


@dataclass(frozen=True)
class Case:
    """The tensors of one width. `y`, `z`, `mean` and `rstd` are PyTorch's own results."""

    x: torch.Tensor
    grad: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor
    offset: int

    @property
    def n(self) -> int:
        return self.x.shape[-1]


def case_of(n: int, format: str, offset: int, device: str) -> Case:
    affine = np.random.default_rng(n).standard_normal((2, n)).astype(np.float32)
    return Case(tensor_at(rows_of(n, 1), format, offset, device),
                tensor_at(rows_of(n, 2)[:, ::-1].copy(), format, offset, device),
                tensor_at(affine[0], format, 0, device), tensor_at(affine[1], format, 0, device),
                offset)


Tensors = tuple[torch.Tensor, ...]
aten = torch.ops.aten


@dataclass(frozen=True)
class Operation:
    """PyTorch's results, and the model's from tensors on the CPU or the GPU."""

    name: str
    torch: Callable[[Case], tuple[Tensors, Tensors]]
    """Returns the results, and what the model gets beside the case."""
    model: Callable[[Case, Tensors], Tensors]
    offsets: tuple[int, ...] = (0, 1, 3)

    def __str__(self) -> str:
        return self.name


def rows_operation(name: str) -> Operation:
    return Operation(name, lambda c: ((getattr(aten, f"_{name}")(c.x, -1, False),), ()), lambda c, _: (
        getattr(functions, name)(c.x, offset=c.offset, rule=RULE, threads=1),))


def rows_gradient(name: str) -> Operation:
    def by_torch(c: Case) -> tuple[Tensors, Tensors]:
        y = getattr(aten, f"_{name}")(c.x, -1, False)
        return (getattr(aten, f"_{name}_backward_data")(c.grad, y, -1, c.x.dtype),), (y,)

    def by_model(c: Case, given: Tensors) -> Tensors:
        offset = {"offset": c.offset} if name == "log_softmax" else {}
        return (getattr(functions, f"{name}_gradient")(c.grad, *given, **offset, rule=RULE, threads=1),)

    return Operation(f"gradient of {name}", by_torch, by_model)


def affine_of(c: Case, kind: str) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    return c.weight if "weight" in kind else None, c.bias if "bias" in kind else None


def layer_norm(kind: str) -> Operation:
    def by_torch(c: Case) -> tuple[Tensors, Tensors]:
        return aten.native_layer_norm(c.x, (c.n,), *affine_of(c, kind), EPSILON), ()

    def by_model(c: Case, _: Tensors) -> Tensors:
        return tuple(functions.layer_norm(c.x, *affine_of(c, kind), epsilon=EPSILON,
                                          offset=c.offset, rule=RULE, threads=1))

    return Operation(f"layer_norm{kind}", by_torch, by_model, (0, 1))


def layer_norm_gradient(kind: str) -> Operation:
    def by_torch(c: Case) -> tuple[Tensors, Tensors]:
        weight, bias = affine_of(c, kind)
        _, mean, rstd = aten.native_layer_norm(c.x, (c.n,), weight, bias, EPSILON)
        dx, _, _ = aten.native_layer_norm_backward(c.grad, c.x, (c.n,), mean, rstd, weight, bias, (True, False, False))
        return (dx,), (mean, rstd)

    def by_model(c: Case, given: Tensors) -> Tensors:
        weight, _ = affine_of(c, kind)
        mean, rstd = given
        return (functions.layer_norm_gradient(c.grad, c.x, mean, rstd, weight, rule=RULE, threads=1),)

    return Operation(f"gradient of layer_norm{kind}", by_torch, by_model, (0, 1))


OPERATIONS = [
    *(rows_operation(name) for name in ("softmax", "log_softmax")),
    *(rows_gradient(name) for name in ("softmax", "log_softmax")),
    *(layer_norm(kind) for kind in ("", ", weight", ", bias", ", weight, bias")),
    *(layer_norm_gradient(kind) for kind in ("", ", weight, bias")),
]


def cases() -> Iterator[tuple[int, int]]:
    for n in widths():
        for offset in (0, 1, 3):
            if offset == 0 or EXHAUSTIVE or n % 5 == 0 or n > 1024:
                yield n, offset


def first_difference(results: Tensors, models: Tensors) -> str:
    """What differs in the results of one width, or an empty text."""
    texts = (different(result, model) for result, model in zip(results, models, strict=True))
    return next((f"result {number}: {text}" for number, text in enumerate(texts) if text), "")


def compare(n: int, format: str, offset: int, device: str) -> dict[str, str]:
    """What differs in the results of one width, by operation; an empty text if nothing differs."""
    case = case_of(n, format, offset, device)
    chosen = [operation for operation in OPERATIONS if offset in operation.offsets]
    by_torch = [operation.torch(case) for operation in chosen]
    on_cpu = Case(case.x.cpu(), case.grad.cpu(), case.weight.cpu(), case.bias.cpu(), offset)
    found = {}
    for operation, (results, given) in zip(chosen, by_torch, strict=True):
        model = operation.model(on_cpu, tuple(t.cpu() for t in given))
        found[operation.name] = first_difference(results, model)
        found[f"{operation.name} on the GPU"] = first_difference(results, operation.model(case, given))
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_the_gpu_returns_the_rules_bits(format: str, cuda: str) -> None:
    require(torch="2.11.")
    chosen = list(cases())
    compared: dict[str, list[int]] = {}
    report = []
    with ThreadPoolExecutor(max((os.cpu_count() or 1) // SHARDS, 1)) as pool:
        found = pool.map(lambda c: compare(c[0], format, c[1], cuda), chosen)
        for (n, offset), texts in zip(chosen, found, strict=True):
            for name, text in texts.items():
                compared.setdefault(name, []).append(n)
                report += [f"{name} {format}, width {n}, offset {offset}: {text}"] if text else []
    for name, of in compared.items():
        print(f"{name} {format}: {len(of)} comparisons of a width")
    assert not report, "\n".join([f"{len(report)} differ", *report[:40]])


def test_the_comparison_names_a_difference() -> None:
    """A model against itself does not differ; one changed bit is named. No GPU is needed."""
    case = case_of(40, "fp32", 1, "cpu")
    operation = OPERATIONS[0]
    model = operation.model(case, ())
    assert case.x.storage_offset() == 1
    assert first_difference(model, operation.model(case, ())) == ""
    changed = model[0].clone()
    changed.view(torch.int32)[6, 7] ^= 1
    assert "1 of 480 in rows [6]; first (6, 7)" in first_difference((changed,), model)
