"""Trains for docs/training.md: losses, failures and lost gradients, a JSON file for each part.

    python examples/gpt/experiments.py --out results              # about 4 minutes on an H200
    python examples/gpt/experiments.py --out results --size tiny  # on a CPU, half an hour
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as mp

from precision import PRECISIONS
from train import Training

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LONG = ("fp32", "bf16_autocast", "bf16_master", "fp8_tile")  # 1,000 steps, eight seeds
RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)


def runs(quick: bool, size: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the trainings: parts of the results, and arguments of Training."""
    small, tiny = {"size": size}, {"size": "tiny"}
    long, short, seeds = (4, 3, 2) if quick else (1000, 300, 50)
    found = [("losses", {**small, "precision": p, "steps": long, "seed": seed})
             for p in LONG for seed in range(8)]
    found += [("losses", {**small, "precision": p, "steps": short})
              for p in ("fp32", *sorted(set(PRECISIONS) - set(LONG)))]
    found += [("rates", {**small, "precision": p, "steps": short, "rate": rate, "seed": seed}) for rate in RATES
              for p in ("bf16_autocast", "fp8_tensor", "fp8_tile") for seed in range(3)]
    found += [("frozen", {**small, "precision": p, "steps": short, "rate": rate})
              for rate in (1e-5, 1e-4, 1e-3)
              for p in ("fp32", "bf16_direct", "bf16_stochastic", "bf16_kahan", "bf16_master")]
    found += [("failures", {**tiny, "precision": p, "steps": short // 3, "seed": seed})
              for p in ("fp32", "bf16_autocast", "fp16", "fp16_weights", "fp16_native")
              for seed in range(seeds)]
    return found


def train(job: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Run one training; several processes share the GPU, so times mean nothing."""
    torch.set_num_threads(1)
    part, given = job
    training = Training(device=DEVICE, **given)
    first = [p.detach().clone() for p in training.model.parameters()]
    found = training.run()
    kept = sum(int((p == w).sum()) for p, w in zip(training.model.parameters(), first))
    found["unchanged"] = kept / found["parameters"]
    tens = torch.tensor(found["losses"]).split(10)
    found["losses"] = [float(ten.mean()) for ten in tens]
    del found["milliseconds"]
    return part, {"seed": 0, **given, **found}


def lost_gradients(size: str) -> list[dict[str, Any]]:
    """Count the gradients of outputs and weights that fp16 makes 0 or Inf, by loss scale."""
    training = Training(size, "fp32", steps=100, device=DEVICE)
    for _ in range(100):
        training.step()
    outputs: list[torch.Tensor] = []
    for module in training.model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_full_backward_hook(lambda m, i, o: outputs.append(o[0].detach()))
    tokens = training.text.batch(100, training.size.batch, 0).to(DEVICE)
    training.model.loss(tokens).backward()
    weights = [p.grad for p in training.model.parameters() if p.grad is not None]
    rows = []
    for exponent in range(0, 31, 2):
        for name, gradients in (("outputs", outputs), ("weights", weights)):
            halves = [((g * 2.0**exponent).half(), g != 0) for g in gradients]
            nonzero = sum(int(seen.sum()) for _, seen in halves)
            rows.append({"exponent": exponent, "of": name,
                         "zero": sum(int(((h == 0) & s).sum()) for h, s in halves) / nonzero,
                         "inf": sum(int(h.isinf().sum()) for h, _ in halves) / nonzero})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains for docs/training.md.")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--size", default="small", help="of the model; tiny for a CPU")
    parser.add_argument("--quick", action="store_true", help="a few steps")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, list[dict[str, Any]]] = {}

    def keep(part: str, rows: list[dict[str, Any]]) -> None:
        results.setdefault(part, []).extend(rows)
        (given.out / f"{part}.json").write_text(json.dumps(results[part]), encoding="utf-8")

    jobs = sorted(runs(given.quick, given.size), key=lambda job: -job[1]["steps"])
    with mp.get_context("spawn").Pool(given.processes) as pool:
        for part, row in pool.imap(train, jobs):
            keep(part, [row])
    keep("lost_gradients", lost_gradients(given.size))
    print(f"{len(jobs)} trainings: {given.out}")


if __name__ == "__main__":
    main()
