"""A GPU of the rules: operators on CPU tensors return what `samebits.torch.recompute` returns.

It stands in for a GPU in tests of recordings, and its kernels can be exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import samebits.torch as sbt

#: Products of fp32 and of 16-bit formats.
FP32_PRODUCT = "sum=ieee_fp32 order=ascending_fused"
TENSOR_CORE_PRODUCT = "sum=tensor_core unit=hopper-wgmma"
PRODUCTS = ("mm", "bmm", "addmm")

Kernel = Callable[..., Any]


class EmulatedGpu(TorchDispatchMode):
    """Runs operators by their rules.

    `kernels` replaces those of an operator: functions of (func, args, kwargs, result by the rule).
    `product` is another rule of products, of the call with number `at`.
    """

    def __init__(self, kernels: Mapping[str, Kernel] | None = None, product: str | None = None, at: int = 5) -> None:
        super().__init__()
        self._kernels, self._product, self._at = dict(kernels or {}), product, at
        self._products = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.is_view or func.namespace != "aten":
            return func(*args, **kwargs)
        name = func._schema.name.removeprefix("aten::")
        product = None
        if name in PRODUCTS:
            self._products += 1
            product = self._product if self._products == self._at else None
        if name in self._kernels:
            result = self._kernels[name](func, args, kwargs)
            if result is not None:
                return result
        return run_by_rule(func, args, kwargs, product)


def run_by_rule(func: Any, args: Any, kwargs: Any, product: str | None = None) -> Any:
    """Return what a GPU of the rules returns; `product` is another rule of a product."""
    if product is None and func._schema.name.removeprefix("aten::") in PRODUCTS:
        product = FP32_PRODUCT if args[0].dtype == torch.float32 else TENSOR_CORE_PRODUCT
    return sbt.recompute(func, args, kwargs, sbt.Conditions(product=product, deterministic=True))


def half(_func: Any, args: Any, _kwargs: Any) -> Any:
    """A kernel that no rule describes."""
    return args[0] * 0.5


def recorded(program: Callable[[], Any], kernels: Mapping[str, Kernel] | None = None, **options: Any) -> sbt.Trace:
    """Return the recording of a program on a GPU of the rules."""
    with EmulatedGpu(kernels), sbt.record(**options) as recorder:
        program()
    return recorder.trace


class Kernels(TorchDispatchMode):
    """A GPU, or a CPU, whose kernels are exchanged: functions of (func, args, kwargs), which may return None."""

    def __init__(self, kernels: Mapping[str, Kernel] | None = None) -> None:
        super().__init__()
        self._kernels = dict(kernels or {})

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kernel = self._kernels.get(func._schema.name.removeprefix("aten::")) if hasattr(func, "_schema") else None
        result = kernel(func, args, kwargs or {}) if kernel else None
        return func(*args, **(kwargs or {})) if result is None else result


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(self.norm1(x)).split(width, 2))
        scores = (q @ k.transpose(-1, -2)) * (width // self.heads) ** -0.5
        scores = scores.masked_fill(x.new_ones(length, length, dtype=torch.bool).triu(1), -torch.inf)
        y = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.proj(y)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """A GPT of 64 words, length 16, width 32."""

    def __init__(self, blocks: int = 1) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(64, 32), nn.Embedding(16, 32)
        self.blocks = nn.ModuleList(Block(32, 2) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 64, bias=False)

    def forward(self, words: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.words(words) + self.places(torch.arange(words.shape[1], device=words.device))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class Training:
    """A GPT, a batch and an optimizer."""

    def __init__(self, seed: int = 0, batch: int = 1, dtype: torch.dtype = torch.float32, device: str = "cpu",
                 **optimizer: Any) -> None:
        torch.manual_seed(seed)
        self.model, self.dtype = Gpt().to(device), dtype
        g = torch.Generator().manual_seed(batch)
        self.words, self.targets = (torch.randint(0, 64, (2, 16), generator=g).to(device) for _ in range(2))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, **(optimizer or {"foreach": True}))

    def step(self) -> torch.Tensor:
        with torch.autocast(self.words.device.type, self.dtype, enabled=self.dtype != torch.float32):
            loss: torch.Tensor = self.model(self.words, self.targets)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def scaled_step(self, scaler: Any, factor: float = 1.0, clip: bool = False) -> None:
        """Take a step in bf16 with a loss scaler; clip gradients by sbt.clip_grad_norm_."""
        with torch.autocast("cpu", torch.bfloat16):
            loss = self.model(self.words, self.targets)
        scaler.scale(loss * factor).backward()
        if clip:
            sbt.clip_grad_norm_(self.model.parameters(), 0.01)
        scaler.step(self.optimizer)
        scaler.update()
        self.optimizer.zero_grad()

    def recorded(self, path: Any = None, *, keep: Any = "sources", gpu: EmulatedGpu | None = None) -> sbt.Trace:
        """Return the recording of one step."""
        with gpu or EmulatedGpu(), sbt.record(path, keep=keep, names=self.model) as recorder:
            self.step()
        return recorder.trace
