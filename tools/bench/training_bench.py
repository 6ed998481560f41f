"""training_bench: the times and the memory in docs/training.md.

usage: training_bench.py [--quick] [--only PART ...]
Prints each row as it is measured, in about 3 minutes on an H200. --quick is for a trial on a CPU. `swapped` needs
CUBLAS_WORKSPACE_CONFIG=:4096:8.
"""

import argparse
import gc
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "gpt"))
from model import GPT, SIZES
from precision import NORM, PRECISIONS
from train import Training
from samebits.torch import convert_model, functional, record
from samebits.torch.optim import AdamW

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def seconds(function, repeats, warm_up=3):
    """Return the time of one call, between waits for the GPU."""
    for _ in range(warm_up):
        function()
    wait = torch.cuda.synchronize if DEVICE == "cuda" else lambda: None
    wait()
    begin = time.perf_counter()
    for _ in range(repeats):
        function()
    wait()
    return (time.perf_counter() - begin) / repeats


def own_loss(model, tokens):
    """Return the loss of a GPT by this library, without the copy of the logits in fp32."""
    return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten(), upcast=True)


@contextmanager
def operators(training, own):
    """With `own`, the model's norms and its loss are this library's."""
    if not own:
        yield
        return
    convert_model(training.model)
    with mock.patch.object(GPT, "loss", own_loss):
        yield


def swapped(quick):
    """Compare 20 steps of GPT-2 by PyTorch's operators and by this library's."""
    torch.use_deterministic_algorithms(True)
    losses, weights = [], set()
    for own in (False, True):
        size = "tiny" if quick else "gpt2"
        training = Training(size, "bf16_autocast", device=DEVICE, fused_attention=True, fused=True)
        with operators(training, own):
            losses.append(torch.stack([training.step() for _ in range(20)]).tolist())
        weights.add(training.digest())
    torch.use_deterministic_algorithms(False)
    yield {"losses_differ": sum(a != b for a, b in zip(*losses, strict=True)), "weights_equal": len(weights) == 1}


def captured(training, own):
    """Return the seconds of a step in a CUDA graph, which takes no time of the host."""
    parameters = list(training.model.parameters())
    tokens = training.text.batch(0, training.size.batch, 0).to(DEVICE)
    training.clock.mark = lambda part: None

    def step():
        training.accumulate((tokens,))
        torch.nn.utils.clip_grad_norm_(parameters, NORM)
        training.optimizer.step()
        training.optimizer.zero_grad()

    with operators(training, own):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
    times = sorted(seconds(graph.replay, 1, 0) for _ in range(20))
    return times[len(times) // 2]


def graphs(quick):
    """Time steps of GPT-2 in CUDA graphs, by PyTorch's operators and by this library's."""
    if quick:
        return
    for own in (False, True):
        training = Training("gpt2", "bf16_autocast", device=DEVICE, fused_attention=True, fused=True, capturable=True)
        yield {"own": own, "seconds": captured(training, own)}
        del training
        gc.collect()


def steps(quick):
    """Time steps of GPT-2, and measure their memory."""
    size, repeats = ("tiny", 2) if quick else ("gpt2", 10)
    cases = [(name, name, {}) for name in PRECISIONS]
    cases += [("plain PyTorch, fused AdamW", "bf16_autocast", {"fused": True}),
              ("samebits' scaler and AdamW", replace(PRECISIONS["bf16_autocast"], adamw={}, scaler="native"), {}),
              ("plain PyTorch, samebits' operators", "bf16_autocast", {"fused": True, "own": True}),
              ("samebits' scaler, AdamW and operators", replace(PRECISIONS["bf16_autocast"], adamw={}, scaler="native"),
               {"own": True}),
              ("samebits' scaler and AdamW, bf16 weights", replace(PRECISIONS["bf16_master"], scaler="native"), {}),
              ("attention written out", "bf16_autocast", {"fused_attention": False}),
              ("activations checkpointed", "bf16_autocast", {"checkpointed": True}),
              ("four micro-batches", "bf16_autocast", {"micro_batches": 4})]
    for name, precision, given in cases:
        own = given.pop("own", False)
        training = Training(size, precision, device=DEVICE, **{"fused_attention": True, **given})
        with operators(training, own):
            seconds(training.step, 1)
            training.clock.marks.clear()
            if DEVICE == "cuda":
                torch.cuda.reset_peak_memory_stats()
            taken = seconds(training.step, repeats, 0)
        times = training.clock.milliseconds()
        yield {
            "name": name, "tokens_a_second": training.size.batch * training.size.context / taken,
            "seconds": taken, "bytes_a_parameter": training.bytes_a_parameter(),
            "peak_bytes": torch.cuda.max_memory_allocated() if DEVICE == "cuda" else 0,
            "milliseconds": {part: sum(t) / repeats for part, t in times.items()}}
        del training
        gc.collect()


def recordings(quick):
    """Time steps of GPT-2 without a recording of hashes, with one each, and five in one, in turn."""
    size = "tiny" if quick else "gpt2"
    for batch in (2,) if quick else (8, 32, 64):
        SIZES["recorded"] = replace(SIZES[size], batch=batch)
        training = Training("recorded", "bf16_autocast", device=DEVICE, fused_attention=True, fused=True)

        def recorded(steps, training=training):
            with record(keep="hashes"):
                for _ in range(steps):
                    training.step()

        seconds(training.step, 1)
        times = [(seconds(training.step, 1, 0), seconds(lambda: recorded(1), 1, 0),
                  seconds(lambda: recorded(5), 1, 0) / 5) for _ in range(3 if quick else 5)]
        yield {"batch": batch, "seconds": [sorted(t)[len(times) // 2] for t in zip(*times)]}
        del training, recorded
        gc.collect()


def optimizers(quick):
    """Time steps of AdamW on the parameters of GPT-2, and on many small ones."""
    shapes = {"gpt2": [p.shape for p in GPT(SIZES["tiny" if quick else "gpt2"]).parameters()],
              "1,000 tensors of 1,000": 1000 * [(1000,)]}
    cases = [
        (name, torch.optim.AdamW, options, torch.float32) for name, options in
        (("for-loop", {"foreach": False}), ("foreach", {"foreach": True}),
         ("fused", {"fused": True}))]
    cases += [("samebits", AdamW, {}, torch.float32)]
    cases += [(f"samebits, bf16 {mode}", AdamW, {"weights": mode}, torch.bfloat16)
              for mode in ("direct", "kahan", "stochastic", "split16", "master32")]
    cases += [("samebits, 8-bit states", AdamW, {"states": "dynamic8", "block": 256}, torch.float32),
              ("compiled", torch.optim.AdamW, {"foreach": True}, torch.float32)]
    for tensors, (name, kind, options, dtype) in ((s, c) for s in shapes for c in cases):
        parameters = [torch.nn.Parameter(torch.randn(shape, device=DEVICE).to(dtype))
                      for shape in shapes[tensors]]
        for p in parameters:
            p.grad = torch.randn_like(p)
        step = kind(parameters, lr=1e-3, **options).step
        if name == "compiled":
            if quick or tensors != "gpt2":  # compiling takes a minute
                continue
            step = torch.compile(step)
        yield {"tensors": tensors, "name": name, "seconds": seconds(step, 3 if quick else 20)}


def products(quick):
    """Time bf16 products [8192, n] x [n, 4 n], n a multiple of 16, of 8 or of less."""
    for n in (64, 65) if quick else (760, 762, 764, 765, 768, 776, 784):
        x = torch.randn(64 if quick else 8192, n, device=DEVICE, dtype=torch.bfloat16)
        w = torch.randn(4 * n, n, device=DEVICE, dtype=torch.bfloat16)
        taken = seconds(lambda: torch.nn.functional.linear(x, w), 50)
        yield {"n": n, "tflops": 8 * x.shape[0] * n * n / taken / 1e12}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parts = {f.__name__: f for f in (swapped, graphs, steps, products, recordings, optimizers)}
    parser.add_argument("--only", choices=parts, nargs="*", default=[*parts])
    given = parser.parse_args()
    print(torch.cuda.get_device_name() if DEVICE == "cuda" else "a CPU", "PyTorch", torch.__version__)
    for name in given.only:
        for row in parts[name](given.quick):
            print(name, row, flush=True)


if __name__ == "__main__":
    main()
