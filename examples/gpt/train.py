"""Trains a GPT in one precision.

    python examples/gpt/train.py --size tiny --device cpu --svg loss.svg      # under 3 minutes
    python examples/gpt/train.py --size small --precision fp8_tile --steps 1000
    python examples/gpt/train.py --help
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import time
from collections.abc import Callable
from typing import Any

import torch

from data import Text
from model import GPT, SIZES
from plot import Curve, chart
from precision import NORM, PRECISIONS, Precision

WARM_UP = 20  # steps


def deterministic() -> None:
    """Let equal programs give equal bits; call it before CUDA is used."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)


class Clock:
    """Times of the parts of steps: on a GPU by events, without a wait."""

    def __init__(self, device: str) -> None:
        self.cuda = device.startswith("cuda")
        self.marks: list[tuple[str, Any]] = []

    def mark(self, part: str) -> None:
        """End a part."""
        now: Any = time.perf_counter()
        if self.cuda:
            now = torch.cuda.Event(enable_timing=True)
            now.record()
        self.marks.append((part, now))

    def milliseconds(self) -> dict[str, list[float]]:
        """Return the times of each part; waits for the GPU."""
        if self.cuda:
            torch.cuda.synchronize()
        times: dict[str, list[float]] = {}
        for (_, begin), (part, end) in zip(self.marks, self.marks[1:]):
            if part != "begin":
                taken = begin.elapsed_time(end) if self.cuda else 1e3 * (end - begin)
                times.setdefault(part, []).append(taken)
        return times


class Training:
    """A model, its optimizer and its data. `step` trains once."""

    def __init__(self, size: str = "tiny", precision: str | Precision = "fp32", *, seed: int = 0,
                 device: str = "cuda" if torch.cuda.is_available() else "cpu", steps: int = 300,
                 rate: float | None = None, micro_batches: int = 1, fused_attention: bool = False,
                 checkpointed: bool = False, **options: Any) -> None:
        self.size, self.seed = SIZES[size], seed
        self.precision = PRECISIONS[precision] if isinstance(precision, str) else precision
        self.device, self.steps, self.micro_batches = device, steps, micro_batches
        self.rate = self.size.rate if rate is None else rate
        model = GPT(self.size, seed, fused=fused_attention, checkpointed=checkpointed)
        self.model = self.precision.prepare(model, device)
        self.optimizer = self.precision.optimizer(self.model.parameters(), self.rate, **options)
        self.scaler = self.precision.grad_scaler(device)
        self.skipped = 0
        self.text = Text(self.size.context, self.size.words)
        self.clock = Clock(device)
        self.losses: list[torch.Tensor] = []

    def rate_of(self, step: int) -> float:
        """The learning rate rises for some steps, then falls along a cosine to a tenth."""
        progress = step / max(1, self.steps)
        falling = 0.55 + 0.45 * math.cos(math.pi * progress)
        return self.rate * falling * min(1.0, (step + 1) / WARM_UP)

    def step(self) -> torch.Tensor:
        """Train on one batch; return its loss, on the device."""
        step = len(self.losses)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate_of(step)
        tokens = self.text.batch(step, self.size.batch, self.seed).to(self.device)
        self.clock.mark("begin")
        loss = self.accumulate(tokens.chunk(self.micro_batches))
        if not hasattr(self.scaler, "reports"):  # samebits' scaler clips as it unscales
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), NORM)
            self.clock.mark("clip")
        self.scaler.step(self.optimizer)
        self.clock.mark("optimizer")
        self.update_scale()
        self.optimizer.zero_grad()
        self.losses.append(loss)
        return loss

    def update_scale(self) -> None:
        """End a step of the loss scaler, and count skipped steps."""
        if hasattr(self.scaler, "reports"):
            self.scaler.update()
            self.read_reports()
        elif self.scaler.is_enabled():
            before = self.scaler.get_scale()  # waits: PyTorch has no other sign of a skipped step
            self.scaler.update()
            self.skipped += self.scaler.get_scale() < before

    def read_reports(self) -> None:
        """Count skipped steps by those reports of samebits' scaler that have arrived."""
        self.skipped += sum(not report.applied for report in self.scaler.reports())

    def accumulate(self, micro_batches: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Add up the gradients of micro-batches in the parameters; return the mean loss."""
        total = torch.zeros((), device=self.device)
        for tokens in micro_batches:
            with self.precision.region(self.device):
                loss = self.model.loss(tokens) / len(micro_batches)
            self.clock.mark("forward")
            self.scaler.scale(loss).backward()
            self.clock.mark("backward")
            total += loss.detach()
        return total

    @torch.no_grad()
    def validation(self) -> float:
        """Return the loss on text that no batch contains."""
        with self.precision.region(self.device):
            parts = [self.model.loss(tokens.to(self.device)).double()
                     for tokens in self.text.validation.split(self.size.batch)]
        return float(torch.stack(parts).mean())

    def bytes_a_parameter(self) -> float:
        """Return the bytes of weights, gradients of the same dtype, and optimizer states."""
        parameters = list(self.model.parameters())
        states = [t for state in self.optimizer.state.values() for t in state.values()
                  if isinstance(t, torch.Tensor) and t.dim()]
        total = sum(t.nbytes for t in [*parameters, *parameters, *states])
        return total / sum(p.numel() for p in parameters)

    def digest(self) -> str:
        """Return the SHA-256 of all weights."""
        found = hashlib.sha256()
        for p in self.model.parameters():
            found.update(p.detach().float().cpu().numpy().tobytes())
        return found.hexdigest()

    def run(self, report: Callable[[int, float], None] | None = None) -> dict[str, Any]:
        """Train for all steps; return what was measured."""
        begin = time.perf_counter()
        for step in range(self.steps):
            loss = self.step()
            if report and step % 100 == 0:
                report(step, float(loss))
        losses = torch.stack(self.losses).tolist()  # waits for the GPU
        if hasattr(self.scaler, "reports"):
            self.read_reports()
        seconds = time.perf_counter() - begin
        cuda = self.device.startswith("cuda")
        return {
            "losses": losses, "validation": self.validation(), "seconds": seconds,
            "milliseconds": self.clock.milliseconds(), "skipped": self.skipped,
            "bytes_a_parameter": self.bytes_a_parameter(),
            "peak_bytes": torch.cuda.max_memory_allocated() if cuda else None,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "text": self.text.sha256, "digest": self.digest(),
        }


def arguments() -> argparse.ArgumentParser:
    """Return the options of the program, which are arguments of Training unless popped."""
    parser = argparse.ArgumentParser(description="Trains a GPT in one precision.")
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, help="largest learning rate")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--micro-batches", type=int, default=1, help="parts of each batch")
    parser.add_argument("--fused-attention", action="store_true", help="FlashAttention")
    parser.add_argument("--checkpointed", action="store_true", help="keep no activations")
    parser.add_argument("--deterministic", action="store_true", help="equal runs, equal bits")
    parser.add_argument("--threads", type=int, default=1,
                        help="of the CPU; another number gives other bits")
    parser.add_argument("--svg", help="file for a picture of the losses")
    parser.add_argument("--json", help="file for all results")
    return parser


def prepared(given: dict[str, Any]) -> dict[str, Any]:
    """Set up PyTorch; return the arguments of Training."""
    torch.set_num_threads(given.pop("threads"))
    if given.pop("deterministic"):
        deterministic()
    return given


def show(training: Training, name: str, svg: str | None, file: str | None) -> None:
    """Train, and write what was measured."""
    result = training.run(lambda step, loss: print(f"step {step:5}  loss {loss:.4f}", flush=True))
    print(f"{name}: validation loss {result['validation']:.4f} after {training.steps} steps in "
          f"{result['seconds']:.1f} s, SHA-256 of the weights {result['digest'][:16]}")
    if svg:
        curve = Curve(name, list(enumerate(result["losses"])))
        chart([curve], svg, title="Training loss", x="step", y="loss (nats a byte)")
    if file:
        with open(file, "w", encoding="utf-8") as out:
            json.dump(result, out)


if __name__ == "__main__":
    given = vars(arguments().parse_args())
    svg, file = given.pop("svg"), given.pop("json")
    show(Training(**prepared(given)), given["precision"], svg, file)
