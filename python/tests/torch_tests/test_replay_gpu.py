"""`samebits.torch.record`, `replay` and `explain` on a GPU: steps of examples/gpt.

The rules are those of PyTorch 2.11 on Hopper.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from emulated_gpu import Kernels
from torch.nn.attention import SDPBackend, sdpa_kernel

import samebits.torch as sbt

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "gpt"))
from model import SIZES
from train import Training

pytestmark = [pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
              pytest.mark.skipif(not torch.__version__.startswith("2.11."), reason="the rules are PyTorch 2.11's")]

#: Configurations of examples/gpt, and the kernels of attention that they have rules for.
PRECISIONS = {"fp32": "fp32", "bf16": "bf16_autocast", "fp16": "fp16_torch"}
ATTENTION = {"math": SDPBackend.MATH, "flash": SDPBackend.FLASH_ATTENTION, "default": None}


@pytest.fixture(autouse=True)
def _deterministic(cublas_workspace: None) -> Iterator[None]:
    SIZES["replayed"] = replace(SIZES["small"], layers=2, batch=4)
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.backends.cuda.matmul.allow_tf32 = False
    del SIZES["replayed"]


def training(precision: str = "fp32", seed: int = 0, **options: Any) -> Training:
    return Training("replayed", PRECISIONS.get(precision, precision), device="cuda", steps=100, seed=seed,
                    **{"fused_attention": True, **options})


def step_of(trained: Training, kind: Any = SDPBackend.MATH, kernels: Any = None, **record: Any) -> sbt.Trace:
    """Return the recording of one step."""
    attention = sdpa_kernel(kind) if kind else contextlib.nullcontext()
    exchanged = Kernels(kernels) if kernels else contextlib.nullcontext()  # torch.compile sees no such mode
    with exchanged, sbt.record(names=trained.model, **record) as recorder, attention:
        trained.step()
    return recorder.trace


@pytest.mark.parametrize("optimizer", ["foreach", "fused"])
@pytest.mark.parametrize("precision, attention", [("fp32", "math"), *(
    (precision, attention) for precision in ("bf16", "fp16") for attention in ATTENTION)])
def test_steps_are_equal(precision: str, attention: str, optimizer: str) -> None:
    if attention == "default":  # cuDNN's, which deterministic algorithms would exclude
        torch.use_deterministic_algorithms(True, warn_only=True)
    trained = training(precision, **{optimizer: True})
    for step in range(2):
        trace = step_of(trained, ATTENTION[attention])
        replay = sbt.replay(trace)
        assert replay.equal, f"step {step}: {replay}"


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_checkpointed_layers_and_micro_batches(precision: str) -> None:
    trained = training(precision, fused_attention=False, checkpointed=True, micro_batches=2, foreach=True)
    replay = sbt.replay(step_of(trained))
    assert replay.equal, str(replay)


@pytest.mark.parametrize("precision", ["bf16_master", "bf16_stochastic", "states8", "fp16_native"])
def test_steps_of_own_optimizers_and_scalers(precision: str) -> None:
    trained = training(precision)
    for _ in range(2):
        replay = sbt.replay(step_of(trained))
        assert replay.equal, str(replay)
    own = "samebits.unscale" if precision == "fp16_native" else "samebits.optimizer_step"
    assert any(step.operator == own for step in replay.steps)


def test_kernels_are_noted() -> None:
    trained = training("bf16", fused=True)
    with sbt.record(kernels=True) as recorder:
        trained.step()
    products = [entry for entry in recorder.trace.operators if entry["op"] == "aten.mm.default"]
    assert products and all(len(entry["kernels"]) >= 1 for entry in products)


def test_a_recorded_program_computes_the_same() -> None:
    digests = []
    for recorded in (False, True):
        trained = training("bf16", fused=True)
        for _ in range(3):
            with sbt.record(keep="hashes") if recorded else contextlib.nullcontext():
                trained.step()
        digests.append(trained.digest())
    assert digests[0] == digests[1]


@pytest.mark.parametrize("optimizer", ["foreach", "fused"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_pinned_steps_have_rules_and_repeat(precision: str, optimizer: str) -> None:
    """The attention is what pin() leaves PyTorch to choose."""
    digests = []
    with sbt.pin():
        for _ in range(2):
            trained = training(precision, **{optimizer: True})
            trace = step_of(trained, None)
            trained.step()
            digests.append(trained.digest())
        replay = sbt.replay(trace)
    assert replay.equal, str(replay)  # every operator is covered
    assert digests[0] == digests[1]


# --- explain ------------------------------------------------------------------------------------------


def _halves_of_k(_func: Any, args: Any, _kwargs: Any) -> Any:
    bias, a, b = args
    if a.dtype != torch.float32 or a.shape[1] != 256:
        return None
    return bias + (a[:, :128] @ b[:128] + a[:, 128:] @ b[128:])


def _rising(func: Any, args: Any, _kwargs: Any) -> Any:
    x = args[0]
    if func._overloadname != "dim_IntList" or x.dim() != 2 or x.dtype != torch.float32 or x.numel() > 1 << 20:
        return None
    total = torch.zeros_like(x[0])
    for row in x:
        total = total + row
    return total.unsqueeze(0)


def _one_bit(func: Any, args: Any, kwargs: Any) -> Any:
    y = func(*args, **kwargs)
    y.view(torch.int32).view(-1)[3737] ^= 1 << 4
    return y


def _flushed(_func: Any, args: Any, _kwargs: Any) -> Any:
    x = args[0]
    source = """extern "C" __global__ void scale(const float* x, float* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = x[i] * 1.5f;
    }"""
    kernel = torch.cuda._compile_kernel(source, "scale", nvcc_options=["--ftz=true"])
    y = torch.empty_like(x)
    kernel(grid=((x.numel() + 255) // 256, 1, 1), block=(256, 1, 1), args=[x, y, x.numel()])
    return y


def _small_numbers(seed: int, kernels: Any = None) -> sbt.Trace:
    x = (torch.randn(4096, generator=torch.Generator().manual_seed(seed)) * 2.0**-127).cuda()
    with Kernels(kernels or {}), sbt.record() as recorder:
        x * 1.5
    return recorder.trace


def _compiled(seed: int) -> Training:
    trained = training(seed=seed)
    trained.model.loss = torch.compile(trained.model.loss)  # type: ignore[method-assign]
    return trained


def _changed(seed: int) -> Training:
    trained = training(seed=seed)
    with torch.no_grad():
        trained.model.h[1].mlp[0].weight[3, 4] *= 1.5  # type: ignore[union-attr, index]
    return trained


FLASH = SDPBackend.FLASH_ATTENTION
#: By cause: two runs of a seed, and what is said.
CAUSES: dict[str, tuple[Callable[[int], tuple[sbt.Trace, sbt.Trace]], list[str]]] = {
    "split K": (lambda s: (step_of(training(seed=s)), step_of(training(seed=s), kernels={"addmm": _halves_of_k})),
                ["the library splits K: 1 and 2 slices"]),
    "tf32": (lambda s: (step_of(training(seed=s)), step_of(training("tf32", s))), ["TF32 is allowed on one side"]),
    "attention": (lambda s: (step_of(training("bf16", s), FLASH), step_of(training("bf16", s))),
                  ["FlashAttention", "math path"]),
    "optimizer": (lambda s: (step_of(training(seed=s, foreach=True)), step_of(training(seed=s, fused=True))),
                  ["a foreach optimizer", "a fused optimizer"]),
    "seed": (lambda s: (step_of(training(seed=s)), step_of(training(seed=s + 10))), ["another seed"]),
    "ftz": (lambda s: (_small_numbers(s), _small_numbers(s, {"mul": _flushed})), ["compiled with -ftz=true"]),
    "one bit": (lambda s: (step_of(training(seed=s), keep="all"),
                           step_of(training(seed=s), keep="all", kernels={"gelu": _one_bit})),
                ["one bit: bit 4 of element [0, 3, 665]"]),
    "a weight": (lambda s: (step_of(training(seed=s)), step_of(_changed(s))),
                 ["the source h.1.mlp.0.weight has other values"]),
    "order of a sum": (lambda s: (step_of(training(seed=s)), step_of(training(seed=s), kernels={"sum": _rising})),
                       ["b: a sum in rising order"]),
    "torch.compile": (lambda s: (step_of(training(seed=s)), step_of(_compiled(s))), ["a program of torch.compile"]),
    "equal": (lambda s: (step_of(training("bf16", s)), step_of(training("bf16", s))), ["equal, bit for bit"]),
    "no rule": (lambda s: (step_of(training(seed=s)), step_of(training(seed=s), kernels={
        "gelu": lambda func, args, kwargs: func(*args, **kwargs) * (1 + 2.0**-20)})), ["b: no known rule"]),
}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("cause", CAUSES)
def test_causes_are_named(cause: str, seed: int) -> None:
    runs, says = CAUSES[cause]
    found = sbt.explain(*runs(seed))
    assert all(text in str(found) for text in says), found
