"""The configurations, as a table: what a program changes to train in each precision."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

HALF, BRAIN = torch.float16, torch.bfloat16
BETAS, DECAY, NORM = (0.9, 0.95), 0.1, 1.0  # of AdamW; gradients are clipped to this norm


@dataclass(frozen=True)
class Precision:
    """One configuration."""

    what: str
    weights: torch.dtype = torch.float32  # dtype of the parameters
    autocast: torch.dtype | None = None
    tf32: bool = False
    #: Loss scaling: "amp" is PyTorch's scaler; other names are policies of samebits.torch.
    scaler: str | None = None
    #: Options of samebits.torch.optim.AdamW; None: PyTorch's AdamW.
    adamw: dict[str, Any] | None = None
    fp8: str | None = None  # recipe of the linear layers

    def prepare(self, model: torch.nn.Module, device: str) -> torch.nn.Module:
        """Move a model to a device, in this precision."""
        torch.set_float32_matmul_precision("high" if self.tf32 else "highest")
        model.to(device, self.weights)
        if self.fp8:
            import samebits.torch as sbt
            sbt.convert_linears(model, self.fp8, verbose=False)  # all but the tied head
        return model

    def region(self, device: str) -> AbstractContextManager[Any]:
        """Return the context of a forward pass."""
        return torch.autocast(device, self.autocast) if self.autocast else nullcontext()

    def optimizer(self, parameters: Iterable[torch.nn.Parameter], rate: float,
                  **options: Any) -> torch.optim.Optimizer:
        """Return AdamW; `options` are further ones, such as fused=True."""
        parameters = list(parameters)
        groups = [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": DECAY},
                  {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}]
        if self.adamw is None:
            return torch.optim.AdamW(groups, lr=rate, betas=BETAS, **options)
        from samebits.torch.optim import AdamW
        return AdamW(groups, lr=rate, betas=BETAS, **self.adamw, **options)

    def grad_scaler(self, device: str) -> torch.amp.GradScaler:
        """Return the loss scaler; without loss scaling, one that does nothing."""
        if self.scaler in (None, "amp"):
            return torch.amp.GradScaler(device, enabled=self.scaler is not None)
        import samebits.torch as sbt
        return sbt.GradScaler(device, policy=self.scaler, max_norm=NORM)  # clips, too


def _bf16(what: str, weights: str, **options: Any) -> Precision:
    return Precision(what, weights=BRAIN, adamw={"weights": weights, **options})


PRECISIONS = {
    "fp32": Precision("everything in fp32"),
    "tf32": Precision("fp32, products in TF32", tf32=True),
    "fp16": Precision("fp16 autocast, no loss scaling", autocast=HALF),
    "fp16_weights": Precision("model.half(): fp16 weights and states, no scaling", weights=HALF),
    "fp16_torch": Precision("fp16 autocast, PyTorch's GradScaler", autocast=HALF, scaler="amp"),
    "fp16_apex": Precision("fp16 autocast, the policy of Apex", autocast=HALF, scaler="apex"),
    "fp16_native": Precision("fp16 autocast, the native policy", autocast=HALF, scaler="native"),
    "bf16_autocast": Precision("fp32 weights, bf16 autocast", autocast=BRAIN),
    "bf16_direct": _bf16("bf16 weights, rounded to nearest", "direct"),
    "bf16_kahan": _bf16("bf16 weights with their rounding error", "kahan"),
    "bf16_stochastic": _bf16("bf16 weights, rounded stochastically", "stochastic"),
    "bf16_split16": _bf16("bf16 weights with the lower half of fp32", "split16"),
    "bf16_master": _bf16("bf16 weights with fp32 master weights", "master32"),
    "fp8_tensor": Precision("bf16 autocast, linear layers in FP8 with a scale per tensor",
                            autocast=BRAIN, fp8="TE_CURRENT"),
    "fp8_tile": Precision("bf16 autocast, linear layers in FP8 with a scale per tile",
                          autocast=BRAIN, fp8="TE_BLOCK_1D"),
    "states8": Precision("bf16 autocast, optimizer states in 8 bits", autocast=BRAIN,
                         adamw={"states": "dynamic8", "block": 256}),
}
