"""`math_attention` against the operators of PyTorch that it stands for: bits, and memory on a GPU.

As `test_functional`: on a CPU operators return what `recompute` does.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from test_functional import FORMATS, assert_same, gpu, ours, results
from torch.utils.checkpoint import checkpoint

import samebits.torch as sbt
from samebits.errors import InvalidArgument, Unsupported


def eager(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None, causal: bool = False,
          scale: float | None = None) -> torch.Tensor:
    scores = q @ k.transpose(-2, -1)
    scores = scores / math.sqrt(q.shape[-1]) if scale is None else scores * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    return scores.softmax(-1) @ v


def heads_of(x: torch.Tensor, heads: int) -> list[torch.Tensor]:
    """Queries, keys and values of a projection [batch, length, 3 * width]."""
    return [t.view(*t.shape[:2], heads, -1).transpose(1, 2) for t in x.chunk(3, -1)]


def mine(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None, causal: bool = False,
         scale: float | None = None) -> torch.Tensor:
    result: torch.Tensor = ours.math_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale)
    return result


def compare(of: Any, grad: torch.Tensor, *tensors: torch.Tensor) -> None:
    """Compare the two attentions within a function of a call of one of them."""
    with gpu(grad.device.type):
        got, expected = (results(of(call), grad, *tensors) for call in (mine, eager))
    for a, b in zip(got, expected, strict=True):
        assert_same(a, b)


@pytest.mark.parametrize("dtype", FORMATS)
def test_bits(device: str, dtype: torch.dtype) -> None:
    """Heads of a projection and tensors of their own, masks, other lengths of keys and of values."""
    batch, heads, length = 2, 3, 24
    for width in (16, 40):
        x, grad = torch.randn(batch, length, 3 * heads * width), torch.randn(batch, length, heads * width)
        x, grad = x.to(device, dtype), grad.to(device, dtype)
        hidden = torch.rand(batch, 1, 1, length, device=device) < 0.7
        hidden[..., 0] = True
        bias = torch.randn(heads, length, length, device=device).to(dtype)
        for options in ({}, {"causal": True}, {"mask": hidden}, {"mask": bias, "scale": 0.3, "causal": True}):
            compare(lambda call, o=options: lambda x: call(*heads_of(x, heads), **o).transpose(1, 2).reshape(
                batch, length, -1), grad, x)
    q, k, v = (torch.randn(batch, heads, *shape, device=device).to(dtype) for shape in ((8, 16), (24, 16), (24, 8)))
    none = torch.zeros(8, 24, dtype=torch.bool, device=device)
    none[1:] = True
    for mask in (None, none):
        compare(lambda call, m=mask: lambda *t: call(*t, m), torch.randn(batch, heads, 8, 8, device=device), q, k, v)


def test_compiled_recorded_and_checkpointed(device: str) -> None:
    x, grad = torch.randn(2, 9, 96, device=device, requires_grad=True), torch.randn(2, 2, 9, 16, device=device)

    def run(x: torch.Tensor) -> torch.Tensor:
        return mine(*heads_of(x, 2), causal=True)

    def gradient(y: Any) -> torch.Tensor:
        return torch.autograd.grad(y, x, grad)[0]

    y = run(x)
    expected, = torch.autograd.grad(y, x, grad, retain_graph=True)
    with pytest.raises(InvalidArgument, match="can run once"):  # the probabilities are overwritten
        gradient(y)
    assert_same(gradient(torch.compile(run, backend="aot_eager", fullgraph=True)(x)), expected)
    assert_same(gradient(checkpoint(run, x, use_reentrant=False)), expected)
    with sbt.record() as recorder:
        recorded = gradient(run(x))
    assert_same(recorded, expected)
    if device == "cpu":
        replay = sbt.replay(recorder.trace)
        uncovered = {step.operator for step in replay.steps if step.state == "not covered"}
        assert replay.equal or uncovered == {"aten.bmm.default"}, str(replay)  # some processors' products have no rule
        assert all(step.differ == 0 for step in replay.steps), str(replay)
    query, key, value = (t.detach().requires_grad_() for t in heads_of(x, 2))
    assert torch.autograd.grad(mine(query, key.detach(), value.detach()).sum(), query)[0].shape == query.shape


def test_memory(cuda: str) -> None:
    """The peaks that the docstring names, in elements; the operators take two and one more matrix of scores."""
    batch, heads, length, width = 2, 4, 1024, 64
    scores, of_width = batch * heads * length**2, batch * length * heads * width
    tensors = [torch.randn(batch, heads, length, width, device=cuda).bfloat16().requires_grad_() for _ in range(3)]
    grad = torch.randn(batch, heads, length, width, device=cuda).bfloat16()

    def peaks(call: Any) -> list[float]:
        """The peak of the forward pass, what is kept, and the peak of the backward pass beyond that, in elements."""
        for _ in range(2):  # the first call has cuBLAS's workspace
            start = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            y = call(*tensors, causal=True)
            forward, kept = torch.cuda.max_memory_allocated() - start, torch.cuda.memory_allocated() - start
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            torch.autograd.grad(y, tensors, grad)
            seen = [forward / 2, kept / 2, (torch.cuda.max_memory_allocated() - before) / 2]
            del y
        return seen

    little = 2**17  # rounding of blocks
    forward, kept, backward = peaks(mine)
    assert kept <= scores + of_width + little  # and the result
    assert forward <= scores + of_width + little
    assert backward <= of_width + max(scores, 2 * of_width) + little
    theirs = peaks(eager)
    assert theirs[0] >= forward + 0.9 * scores and theirs[2] >= backward + 0.9 * scores, theirs


def test_refusals(device: str) -> None:
    q = torch.randn(1, 2, 3, 4, device=device)
    for call in (lambda: mine(q[0, 0], q[0, 0], q[0, 0]), lambda: mine(q, q[:, :1], q), lambda: mine(q, q[..., :3], q),
                 lambda: mine(q, q, q[:, :, :2]), lambda: mine(q, q, q, q[:, :, :, :2]), lambda: mine(q, q, q, q.half()),
                 lambda: mine(q, q, q, torch.zeros(3, 3, device=device, requires_grad=True))):
        with pytest.raises((InvalidArgument, Unsupported)):
            call()
