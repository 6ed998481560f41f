"""Rows of functions of rows, losses and fused operators, of bf16 matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from timing import Call, Machine, Row

import samebits.torch as sbt
from samebits import functions as ours

aten, fused_ops = torch.ops.aten, torch.ops.samebits
RULE: dict[str, Any] = {"rule": "torch_2_11"}


def matrices(m: Machine, count: int) -> list[torch.Tensor]:
    """Return matrices [elements / cols, cols] of bf16."""
    return [m.normal(m.elements // m.cols, m.cols).bfloat16() for _ in range(count)]


def rows(m: Machine) -> Iterator[list[Row]]:
    """Softmax and norms of rows, and their gradients, beside torch and torch.compile."""
    cols = m.cols
    x, grad, out = matrices(m, 3)
    weight, bias = (m.normal(cols).bfloat16() for _ in range(2))
    y, z = torch.softmax(x, -1), torch.log_softmax(x, -1)
    _, *theirs = aten.native_layer_norm(x, [cols], weight, bias, 1e-5)
    mean, rstd = (t.float() for t in theirs)  # on a CPU they are bf16
    root = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-5)
    forward: dict[str, tuple[Call, Any]] = {
        "softmax": (lambda: ours.softmax(x, out=out, **RULE), lambda x: torch.softmax(x, -1)),
        "log_softmax": (lambda: ours.log_softmax(x, out=out, **RULE), lambda x: torch.log_softmax(x, -1)),
        "layer_norm": (lambda: ours.layer_norm(x, weight, bias, out=out, **RULE),
                       lambda x: F.layer_norm(x, [cols], weight, bias)),
        "rms_norm": (lambda: ours.rms_norm(x, weight, out=out, **RULE), lambda x: F.rms_norm(x, [cols], weight)),
    }
    backward: dict[str, tuple[Call, Call]] = {
        "softmax": (lambda: ours.softmax_gradient(grad, y, out=out, **RULE),
                    lambda: aten._softmax_backward_data(grad, y, -1, x.dtype)),
        "log_softmax": (lambda: ours.log_softmax_gradient(grad, z, out=out, **RULE),
                        lambda: aten._log_softmax_backward_data(grad, z, -1, x.dtype)),
        "layer_norm": (lambda: ours.layer_norm_gradient(grad, x, mean, rstd, weight, out=out, **RULE),
                       lambda: aten.native_layer_norm_backward(grad, x, [cols], *theirs, weight, bias,
                                                               [True, False, False])),
        "layer_norm with parameters": (
            lambda: (ours.layer_norm_gradient(grad, x, mean, rstd, weight, out=out, **RULE),
                     ours.norm_parameter_gradients(grad, x, rstd, mean, **RULE)),
            lambda: aten.native_layer_norm_backward(grad, x, [cols], *theirs, weight, bias, [True] * 3)),
        "rms_norm": (lambda: ours.rms_norm_gradient(grad, x, root, weight, out=out, **RULE),
                     lambda: aten._fused_rms_norm_backward(grad, x, [cols], root, weight, [True, False])),
    }
    made = []
    for name, (call, eager) in forward.items():
        peers: dict[str, Call] = {"torch": lambda f=eager: f(x)}
        if m.device == "cuda" and m.wants(name):
            peers["torch.compile"] = lambda f=torch.compile(eager, dynamic=False): f(x)
        made.append(Row(name, 2 * x.nbytes, call, peers))
    if m.device == "cpu":  # torch has no such kernel
        backward.pop("rms_norm")
    made += [Row(f"gradient of {name}", 3 * x.nbytes, call, {"torch": peer}) for name, (call, peer) in backward.items()]
    yield made


def losses(m: Machine) -> Iterator[list[Row]]:
    """Cross entropy with its gradient."""
    x = matrices(m, 1)[0]
    leaf, one = x.clone().requires_grad_(), torch.ones((), device=m.device).bfloat16()
    targets = torch.randint(m.cols, (x.shape[0],), device=m.device)

    def trained(loss: Any) -> None:
        leaf.grad = None
        loss(leaf, targets).backward()

    peers: dict[str, Call] = {"torch": lambda: trained(F.cross_entropy)}
    if m.device == "cuda":
        compiled = torch.compile(F.cross_entropy, dynamic=False)
        peers["torch.compile"] = lambda: trained(compiled)
    yield [Row("cross entropy and gradient", 2 * x.nbytes,
               lambda: ours.cross_entropy_and_gradient(one, x, targets, **RULE), peers)]


def fused(m: Machine) -> Iterator[list[Row]]:
    """Fused operators in one pass, beside torch's operators one by one."""
    own, cols = sbt.functional, m.cols
    x, y, grad = matrices(m, 3)
    count, weight = x.shape[0], m.normal(cols).bfloat16()
    words = min(50304, 4 * count)
    table, chosen = m.normal(words, cols).bfloat16(), torch.randint(words, (count,), device=m.device)
    angles = m.normal(count, cols // 2).bfloat16()
    both = torch.cat((angles, angles), -1)
    _, *theirs = aten.native_layer_norm(x, [cols], weight, weight, 1e-5)
    mean, rstd = (t.float() for t in theirs)
    hidden = torch.rand(cols, device=m.device) < 0.3

    def rotated(x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, -1)
        return x * both + torch.cat((-second, first), -1) * both

    def gate_gradients() -> Any:
        inner, up = grad * y, grad * F.silu(x)
        return aten.silu_backward(inner, x), up

    def of_sum() -> torch.Tensor:
        dx, _, _ = aten.native_layer_norm_backward(grad, x, [cols], *theirs, weight, weight, [True, False, False])
        return dx + y

    compared: dict[str, tuple[float, Call, Call]] = {
        "swiglu": (3, lambda: own.swiglu(x, y), lambda: F.silu(x) * y),
        "gradient of swiglu": (5, lambda: fused_ops.gated_backward(grad, x, y, "silu"), gate_gradients),
        "bias and gelu_tanh": (2, lambda: own.bias_gelu(x, weight, "tanh"),
                               lambda: F.gelu(x + weight, approximate="tanh")),
        "gradient of bias and gelu_tanh": (3, lambda: fused_ops.biased_backward(grad, x, weight, "gelu_tanh"),
                                           lambda: aten.gelu_backward(grad, x + weight, approximate="tanh")),
        "rotary": (3, lambda: own.rotary(x, angles, angles), lambda: rotated(x)),
        "embedding times scale": (2, lambda: own.embedding(chosen, table, scale=3.0),
                                  lambda: F.embedding(chosen, table) * 3.0),
        "gradient of embedding": (1 + words / count, lambda: fused_ops.embed_backward(grad, chosen, words, 1.0),
                                  lambda: aten.embedding_dense_backward(grad, chosen, words, -1, False)),
        "sum and layer_norm": (4, lambda: own.add_layer_norm(x, y, cols, weight, weight),
                               lambda: F.layer_norm(x + y, [cols], weight, weight)),
        "gradient of sum and layer_norm": (
            4, lambda: fused_ops.add_norm_backward(grad, y, x, [cols], mean, rstd, weight), of_sum),
        "softmax of scores": (2, lambda: own.scaled_softmax(x, 0.125, hidden),
                              lambda: (x * 0.125).masked_fill(hidden, -torch.inf).softmax(-1)),
        "gradient of scores": (
            3, lambda: fused_ops.scaled_softmax_backward(grad, y, 0.125, hidden, False),
            lambda: aten._softmax_backward_data(grad, y, -1, y.dtype).masked_fill(hidden, 0) * 0.125),
        "dropout": (2, lambda: own.dropout(x, 0.1, seed=1), lambda: F.dropout(x, 0.1)),
    }
    yield [Row(name, moved * x.nbytes, call, {"torch": peer}) for name, (moved, call, peer) in compared.items()]
