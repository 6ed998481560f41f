"""Parameters, gradients and comparisons of the tests of samebits.torch.optim."""

from __future__ import annotations

from typing import Any

import torch
from tensors import bits

from samebits.torch import optim

CLASSES = [optim.AdamW, optim.Adam, optim.SGD, optim.Lion, optim.LAMB]


def normal(shape: Any, seed: int, dtype: torch.dtype = torch.float32, device: Any = "cpu") -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype).to(device)


def ones(*shape: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.ones(shape, dtype=dtype, device=device))


def parameters(device: str, dtype: torch.dtype = torch.float32, *, sizes: Any = (300, 7, 4099)) -> list[Any]:
    make = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(n, generator=make).to(dtype).to(device)) for n in sizes]


def set_gradients(params: Any, step: int, scale: float = 1.0) -> None:
    make = torch.Generator().manual_seed(100 + step)
    for p in params:
        p.grad = (torch.randn(p.shape, generator=make) * scale).to(p.dtype).to(p.device)


def steps(numbers: Any, *pairs: Any) -> None:
    """Take steps of parameters and their optimizers, with the same gradients."""
    for number in numbers:
        for params, optimizer in pairs:
            set_gradients(params, number)
            optimizer.step()


def all_bits(params: Any, optimizer: Any) -> list[tuple[str, Any]]:
    """Return the bits of parameters and states."""
    named = [(f"{i}.{key}", value) for i, p in enumerate(params) for key, value in sorted(optimizer.state[p].items())]
    return [(name, bits(t).reshape(-1).tolist()) for name, t in [*((str(i), p) for i, p in enumerate(params)), *named]]


def made(kind: Any, params: Any, weights: str = "master32", states: Any = "fp32", **options: Any) -> Any:
    if kind is optim.SGD:
        options.setdefault("momentum", 0.9)
    return kind(params, lr=0.01, weights=weights, states=states, **options)
