"""Which of this library's rules PyTorch's kernels follow on this machine, and what an upgrade moved.

::

    python -m samebits.torch.kernel_rules record NEW.json
    python -m samebits.torch.kernel_rules check-upgrade OLD.json NEW.json

`record` runs calls of PyTorch on a GPU, recomputes their operators on the CPU (`samebits.torch.replay`),
and compares bits. `check_upgrade` compares two recordings: another torch, cuBLAS, cuDNN or card. Operands
follow from seeds and are the same everywhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
import torch

from samebits.torch.record import machine, record as recorded
from samebits.torch.operators import PRODUCTS, tensors_of
from samebits.torch.replay import replay
from samebits.torch.trace import hashes_of

__all__ = ["check_upgrade", "record"]

FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
F = torch.nn.functional
aten = torch.ops.aten


@dataclass(frozen=True)
class Case:
    """A call of PyTorch on tensors of a device."""

    name: str
    operands: tuple[torch.Tensor, ...]
    run: Callable[..., Any]


def operand(seed: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return numbers of magnitude 2^-7 to 2, the same on every machine."""
    count = int(np.prod(shape))
    words = np.random.Generator(np.random.PCG64(seed)).integers(0, 1 << 32, count, dtype=np.uint32)
    exponent = ((words >> np.uint32(23)) & np.uint32(7)) + np.uint32(120)
    codes = (words & np.uint32(0x807FFFFF)) | (exponent << np.uint32(23))
    return torch.from_numpy(codes.view(np.float32).reshape(shape)).to(dtype)


@contextmanager
def _during(get: Callable[[], Any], put: Callable[[Any], None], value: Any) -> Iterator[None]:
    """Have a setting of PyTorch for a block, or for the calls of a function."""
    before = get()
    put(value)
    try:
        yield
    finally:
        put(before)


def deterministic(on: bool = True) -> Any:
    """Set whether algorithms are deterministic."""
    return _during(torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, 2 if on else 0)


def tf32(allowed: bool) -> Any:
    """Set whether products of fp32 may be computed as TF32."""
    of = torch.backends.cuda.matmul, "allow_tf32"
    return _during(partial(getattr, *of), partial(setattr, *of), allowed)


def indices(seed: int, count: int, limit: int) -> torch.Tensor:
    return torch.from_numpy(np.random.Generator(np.random.PCG64(seed)).integers(0, limit, count))


def _elementwise(dtype: torch.dtype) -> Iterator[Case]:
    """Operators of a training step that are one binary32 expression, rounded to the format."""
    x, y, z = (operand(seed, (3, 1001), dtype) for seed in (1, 2, 3))
    mask = operand(4, (3, 1001), dtype) > 0
    #: The operator and its foreach form, by arguments (x, y, z, mask) and ([x], [y], [z]).
    calls: list[tuple[str, Callable[..., Any], Callable[..., Any] | None]] = [
        ("add", lambda x, y, z, m: x + y, None),
        ("add alpha=0.3", lambda x, y, z, m: torch.add(x, y, alpha=0.3),
         lambda x, y, z: torch._foreach_add(x, y, alpha=0.3)),
        ("sub", lambda x, y, z, m: x - y, lambda x, y, z: torch._foreach_sub(x, y)),
        ("mul", lambda x, y, z, m: x * y, None),
        ("mul by 0.3", lambda x, y, z, m: x * 0.3, None),
        ("square", lambda x, y, z, m: x**2, None),
        ("square root", lambda x, y, z, m: x.abs().sqrt(), lambda x, y, z: torch._foreach_sqrt(torch._foreach_abs(x))),
        ("div", lambda x, y, z, m: x / y, lambda x, y, z: torch._foreach_div(x, y)),
        ("div by 3", lambda x, y, z, m: x / 3, lambda x, y, z: torch._foreach_div(x, 3.0)),
        ("div by 1.1", lambda x, y, z, m: x / 1.1, lambda x, y, z: torch._foreach_div(x, 1.1)),
        ("addcmul 0.3", lambda x, y, z, m: torch.addcmul(x, y, z, value=0.3),
         lambda x, y, z: torch._foreach_addcmul(x, y, z, 0.3)),
        ("addcdiv 0.3", lambda x, y, z, m: torch.addcdiv(x, y, z, value=0.3),
         lambda x, y, z: torch._foreach_addcdiv(x, y, z, 0.3)),
        ("lerp 0.1", lambda x, y, z, m: torch.lerp(x, y, 0.1), lambda x, y, z: torch._foreach_lerp(x, y, 0.1)),
        ("lerp 0.9", lambda x, y, z, m: torch.lerp(x, y, 0.9), None),
        ("where", lambda x, y, z, m: torch.where(m, x, y), None),
        ("masked_fill", lambda x, y, z, m: x.masked_fill(m, -1e4), None),
    ]
    for name, run, foreach in calls:
        yield Case(name, (x, y, z, mask), run)
        if foreach is not None:
            yield Case("foreach_" + name, (x, y, z, mask), lambda x, y, z, m, f=foreach: f([x], [y], [z]))
    for to, other in FORMATS.items():
        if other == dtype:
            continue
        yield Case(f"cast to {to}", (x,), lambda x, d=other: x.to(d))


def _functions(dtype: torch.dtype) -> Iterator[Case]:
    """Functions of one number."""
    x = operand(5, (1 << 16,), dtype)
    calls: dict[str, Callable[[torch.Tensor], Any]] = {
        "exp": torch.exp, "log": torch.log, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
        "erf": torch.erf, "rsqrt": torch.rsqrt, "silu": F.silu, "gelu": F.gelu,
        "gelu_tanh": lambda t: F.gelu(t, approximate="tanh"), "softplus": F.softplus}
    for name, run in calls.items():
        yield Case(name, (x.abs() if name in ("log", "rsqrt") else x,), run)


def _rows(dtype: torch.dtype) -> Iterator[Case]:
    """softmax, LayerNorm, RMSNorm, and their gradients."""
    def layer_norm(x: Any, grad: Any, weight: Any) -> Any:
        cols = [x.shape[1]]
        y, mean, rstd = aten.native_layer_norm(x, cols, weight, weight, 1e-5)
        return (y, mean, rstd, *aten.native_layer_norm_backward(
            grad, x, cols, mean, rstd, weight, weight, [True, True, True]))

    def rms_norm(x: Any, grad: Any, weight: Any) -> Any:
        cols = [x.shape[1]]
        y, rstd = aten._fused_rms_norm(x, cols, weight, 1e-5)
        return (y, rstd, *aten._fused_rms_norm_backward(grad, x, cols, rstd, weight, [True, True]))

    for rows, cols in ((7, 96), (5, 1001), (65, 768), (3, 4096), (2, 12000), (300, 320)):
        x, grad, weight = (operand(10 + i, shape, dtype)
                           for i, shape in enumerate([(rows, cols), (rows, cols), (cols,)]))
        at = f"[{rows}, {cols}]"
        yield Case(f"softmax {at}", (x,), lambda x: torch.softmax(x, -1))
        yield Case(f"log_softmax {at}", (x,), lambda x: torch.log_softmax(x, -1))
        yield Case(f"softmax_gradient {at}", (grad, x.abs()),
                   lambda g, y: aten._softmax_backward_data(g, y, -1, y.dtype))
        yield Case(f"layer_norm {at}", (x, grad, weight), layer_norm)
        yield Case(f"rms_norm {at}", (x, grad, weight), rms_norm)


def _clip(*tensors: torch.Tensor) -> Any:
    parameters = [torch.nn.Parameter(t.clone()) for t in tensors]
    for p in parameters:
        p.grad = p.detach().clone()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
    return [p.grad for p in parameters]


def _reductions(dtype: torch.dtype) -> Iterator[Case]:
    """Sums, means and norms over axes, and norms of lists."""
    for shape, axes in (((1000,), (0,)), ((70001,), (0,)), ((33, 768), (0,)), ((33, 768), (1,)),
                        ((4, 129, 64), (0, 1)), ((2048, 512), (0,)), ((600, 3001), (0, 1))):
        x = operand(20, shape, dtype)
        for name in ("sum", "mean", "norm"):
            run = torch.linalg.vector_norm if name == "norm" else getattr(torch, name)
            yield Case(f"{name} {list(shape)} over {list(axes)}", (x,), lambda x, f=run, a=axes: f(x, dim=a))
    tensors = tuple(operand(21 + i, (n,), dtype) for i, n in enumerate((1, 513, 4096, 70001)))
    yield Case("foreach_norm", tensors, lambda *t: torch.stack(torch._foreach_norm(list(t))))
    yield Case("clip_grad_norm", tensors, _clip)


def _losses(dtype: torch.dtype) -> Iterator[Case]:
    """Cross entropy, and gradients of embeddings."""
    def loss(x: Any, t: Any, how: Any) -> Any:
        logits = x.detach().clone().requires_grad_()
        y = F.cross_entropy(logits, t, **how)
        y.backward()
        return y, logits.grad

    @deterministic()
    def embedding(grad: Any, t: Any, words: int) -> Any:
        return aten.embedding_dense_backward(grad, t, words, -1, False)

    for rows, classes in ((17, 100), (777, 3000), (64, 50257)):
        x, targets = operand(30, (rows, classes), dtype), indices(31, rows, classes)
        targets[::5] = -100
        for how in ({"reduction": r, "label_smoothing": s} for r in ("mean", "sum") for s in (0.0, 0.1)):
            yield Case(f"cross_entropy [{rows}, {classes}] {how}", (x, targets),
                       lambda x, t, h=how: loss(x, t, h))
    for count, words in ((200, 50), (3072, 500), (8192, 900)):
        yield Case(f"embedding_gradient {count} of {words}, deterministic",
                   (operand(32, (count, 96), dtype), indices(33, count, words)),
                   lambda g, t, w=words: embedding(g, t, w))


def _products(dtype: torch.dtype) -> Iterator[Case]:
    """Products of a linear layer with bias, of its gradients, and of attention; in fp32 also as TF32."""
    for allowed in (False, True) if dtype == torch.float32 else (False,):
        suffix = ", tf32" if allowed else ""
        for rows, cols, inner in ((128, 384, 384), (512, 1536, 384), (512, 384, 1536), (1024, 512, 512)):
            x, w = operand(40, (rows, inner), dtype), operand(41, (cols, inner), dtype)
            bias, dy = operand(42, (cols,), dtype), operand(43, (rows, cols), dtype)
            at = f"[{rows}, {inner}] to {cols}{suffix}"
            yield Case(f"linear {at}", (x, w, bias), tf32(allowed)(F.linear))
            yield Case(f"linear_dx {at}", (dy, w), tf32(allowed)(torch.mm))
            yield Case(f"linear_dw {at}", (dy, x), tf32(allowed)(lambda dy, x: dy.T @ x))
        q, k = operand(44, (12, 256, 64), dtype), operand(45, (12, 64, 256), dtype)
        yield Case(f"bmm [12, 256, 64] to 256{suffix}", (q, k), tf32(allowed)(torch.bmm))


@deterministic()
def _flash(q: Any, k: Any, v: Any, grad: Any, causal: bool) -> Any:
    """Return FlashAttention's result, log-sum-exp and deterministic gradients."""
    leaves = [t.detach().clone().requires_grad_() for t in (q, k, v)]
    out, lse, *_ = aten._scaled_dot_product_flash_attention(*leaves, 0.0, causal, False)
    out.backward(grad)
    return out, lse, *(t.grad for t in leaves)


def _cudnn(q: Any, k: Any, v: Any, grad: Any, causal: bool) -> Any:
    """Return the result, log-sum-exp and gradients of cuDNN's kernels; above 256 keys without dQ."""
    r = aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False)
    gradients = aten._scaled_dot_product_cudnn_attention_backward(
        grad, q, k, v, r[0], r[1], r[6], r[7], None, r[2], r[3], r[4], r[5], 0.0, causal)
    return r[0], r[1], *gradients[k.shape[2] > 256:]


def _attention(dtype: torch.dtype) -> Iterator[Case]:
    """FlashAttention 2 and cuDNN's attention, forward and backward; neither has fp32."""
    for head, length in ((64, 65), (64, 256), (128, 200), (64, 640)) if dtype != torch.float32 else ():
        tensors = tuple(operand(50 + i, (2, 3, length, head), dtype) for i in range(4))
        for causal in (False, True):
            at = f"[2, 3, {length}, {head}]{', causal' if causal else ''}"
            for kernel, run in (("flash", _flash), ("cudnn", _cudnn)):
                yield Case(f"{kernel} {at}", tensors,
                           lambda q, k, v, g, f=run, c=causal: f(q, k, v, g, c))


GROUPS: dict[str, Callable[[torch.dtype], Iterator[Case]]] = {
    "elementwise": _elementwise, "functions": _functions, "rows": _rows, "reductions": _reductions,
    "losses": _losses, "products": _products, "attention": _attention}


def hash_of_results(results: Any) -> str:
    """Return one hash of a tensor or of several; None among them is left out."""
    return hashlib.sha256("".join(hashes_of(tensors_of([results]))).encode()).hexdigest()[:16]


def judged(case: Case, device: str) -> dict[str, Any]:
    """Return what one case gives: a hash of its results, how many its operators have, and how many differ."""
    operands = [t.to(device) for t in case.operands]
    try:
        with recorded(keep="all") as recorder:
            results = case.run(*operands)
    except RuntimeError as error:
        return {"refused": str(error).splitlines()[0]}
    steps = replay(recorder.trace).steps
    entry: dict[str, Any] = {"results": sum(step.elements for step in steps), "hash": hash_of_results(results)}
    for step in steps:
        if step.state == "not covered":
            return {**entry, "not covered": step.detail}
    rules = [step.detail for step in steps if step.operator.split(".")[1] in PRODUCTS and step.state == "equal"]
    entry |= {"rule": ", ".join(rules)} if rules else {}
    return {**entry, "differ": sum(step.differ or 0 for step in steps)}


@contextmanager
def _launched(device: str) -> Iterator[list[str]]:
    """Return a list that gets the names of the kernels that the block launches."""
    names: list[str] = []
    if device == "cpu":
        yield names
        return
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
        yield names
        torch.cuda.synchronize()
    names += sorted({e.key[:160] for e in trace.key_averages()})


def _machine(device: str) -> dict[str, Any]:
    """Return versions, and the card."""
    found = {library.metadata["Name"] or "": library.version for library in distributions()}
    libraries = {name: found[name] for name in found if name.startswith(("nvidia-cublas", "nvidia-cudnn"))}
    of_torch = {key: value for key, value in machine(device).items() if key != "tf32"}
    return {**of_torch, "cuda": torch.version.cuda, **libraries}  # of CPUs, too: their recordings are compared


def record(device: str = "cuda", groups: list[str] | None = None) -> dict[str, Any]:
    """Return which rules PyTorch's kernels follow on a device, as a dict for JSON.

    Parameters
    ----------
    device : str
        A CUDA device. ``cpu`` compares PyTorch's CPU kernels, whose sums follow no rule.
    groups : list of str, optional
        Some of elementwise, functions, rows, reductions, losses, products, attention; default:
        all.

    Returns
    -------
    dict
        ``machine``: versions and card. ``cases``: for each group, format and call the number of results,
        how many of them differ from the rule, and a hash of their bits; of products the rule that
        `samebits.find_rule` found. ``kernels``: names by group and format.
    """
    cases: dict[str, Any] = {}
    kernels: dict[str, list[str]] = {}
    for group in groups or list(GROUPS):
        for form, dtype in FORMATS.items():
            with _launched(device) as kernels[f"{group} {form}"]:
                for case in GROUPS[group](dtype):
                    cases[f"{group} {form}: {case.name}"] = judged(case, device)
    return {"machine": _machine(device), "cases": cases, "kernels": kernels}


def _state(entry: dict[str, Any]) -> str:
    if "refused" in entry:
        return f"refused by torch ({entry['refused']})"
    if "not covered" in entry:
        return "no rule"
    if entry["differ"] == 0:
        return f"follows the rule {entry.get('rule', '')}".rstrip()
    return f"{entry['differ']} of {entry['results']} results differ from the rule"


def check_upgrade(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each call that moved between two recordings.

    A call moved if its results have other bits, if it followed its rule and no longer does, or if only
    one recording has it.
    """
    lines = []
    for name in sorted({*old["cases"], *new["cases"]}):
        before, after = old["cases"].get(name), new["cases"].get(name)
        if before is None or after is None:
            lines.append(f"{name}: only in the {'new' if before is None else 'old'} recording")
        elif _state(before) != _state(after):
            lines.append(f"{name}: {_state(before)} -> {_state(after)}")
        elif before != after:
            lines.append(f"{name}: other bits; {_state(after)}")
    return lines


def summary(recording: dict[str, Any]) -> str:
    """Return a table: for each group and format the calls, results, and what differs."""
    rows: dict[str, list[int]] = {}
    for name, entry in recording["cases"].items():
        row = rows.setdefault(name.partition(":")[0], [0, 0, 0, 0])
        row[0] += 1
        row[1] += entry.get("results", 0)
        row[2] += entry.get("differ", 0)
        row[3] += "differ" not in entry
    return "\n".join(f"{name:<18} {calls:4} calls {results:9} results {differ:7} differ"
                     + (f", {uncovered} calls without a rule" if uncovered else "")
                     for name, (calls, results, differ, uncovered) in rows.items())


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m samebits.torch.kernel_rules", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record", help="run PyTorch's operators and compare with the rules")
    recorder.add_argument("file", type=Path)
    recorder.add_argument("--device", default="cuda")
    recorder.add_argument("--groups", nargs="+", choices=list(GROUPS))
    upgrade = commands.add_parser("check-upgrade", help="exit 1 if bits or rules moved")
    upgrade.add_argument("old", type=Path)
    upgrade.add_argument("new", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "record":
        recording = record(given.device, given.groups)
        given.file.write_text(json.dumps(recording, indent=1) + "\n")
        print(summary(recording))
        return 0
    old, new = (json.loads(path.read_text()) for path in (given.old, given.new))
    for key in sorted({*old["machine"], *new["machine"]}):
        before, after = old["machine"].get(key), new["machine"].get(key)
        if before != after:
            print(f"{key}: {before} -> {after}")
    moved = check_upgrade(old, new)
    print("\n".join(moved) if moved else f"nothing moved in {len(new['cases'])} calls")
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())
