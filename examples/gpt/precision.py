"""The configurations, as a table: what a program changes to train in each precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
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
    uses: tuple[str, ...] = field(default=(), compare=False)

    def prepare(self, model: torch.nn.Module, device: str) -> torch.nn.Module:
        """Move a model to a device, in this precision."""
        torch.backends.cuda.matmul.allow_tf32 = self.tf32
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

    def stepper(self, model: torch.nn.Module, device: str) -> Stepper:
        """Return what stands between the loss and the optimizer."""
        if self.scaler is None:
            return Stepper(model)
        if self.scaler == "amp":
            return AmpStepper(model, device)
        return SamebitsStepper(model, device, self.scaler)


class Stepper:
    """No loss scaling: a backward pass, clipping, a step."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.parameters = list(model.parameters())

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()

    def step(self, optimizer: torch.optim.Optimizer, mark: Callable[[str], None]) -> None:
        """Clip and update; `mark` is called between the two."""
        torch.nn.utils.clip_grad_norm_(self.parameters, NORM)
        mark("clip")
        optimizer.step()

    def skipped(self) -> int:
        """Return the number of steps that were skipped."""
        return 0


class AmpStepper(Stepper):
    """torch.amp.GradScaler."""

    def __init__(self, model: torch.nn.Module, device: str) -> None:
        super().__init__(model)
        self.scaler = torch.amp.GradScaler(device)
        self._skipped, self._scale = 0, self.scaler.get_scale()

    def backward(self, loss: torch.Tensor) -> None:
        self.scaler.scale(loss).backward()

    def step(self, optimizer: torch.optim.Optimizer, mark: Callable[[str], None]) -> None:
        self.scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(self.parameters, NORM)
        mark("clip")
        self.scaler.step(optimizer)
        self.scaler.update()
        scale = self.scaler.get_scale()  # waits; PyTorch has no other sign of a skipped step
        self._skipped += scale < self._scale
        self._scale = scale

    def skipped(self) -> int:
        return self._skipped


class SamebitsStepper(Stepper):
    """samebits.torch.GradScaler, which also clips."""

    def __init__(self, model: torch.nn.Module, device: str, policy: str) -> None:
        import samebits.torch as sbt
        super().__init__(model)
        self.scaler = sbt.GradScaler(device, policy=policy, max_norm=NORM)
        self.scaler.name_parameters(model)
        self._skipped = 0

    def backward(self, loss: torch.Tensor) -> None:
        self.scaler.scale(loss).backward()

    def step(self, optimizer: torch.optim.Optimizer, mark: Callable[[str], None]) -> None:
        self.scaler.step(optimizer)
        self.scaler.update()
        for report in self.scaler.reports():
            self._skipped += not report.applied

    def skipped(self) -> int:
        return self._skipped


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
