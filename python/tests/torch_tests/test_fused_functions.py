"""The fused functions of `samebits.torch.functional` against PyTorch's operators one after another, bit for bit.

As `test_functional`: on a CPU PyTorch's operators return what `recompute` does, on a GPU they run in eager mode.
Dropout has a rule of its own: a CPU and a GPU drop the same elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tensors import same
from test_functional import FORMATS, ROWS, WIDTHS, assert_same, compare, ours, results, rows

import samebits
import samebits.torch as sbt
from samebits.errors import InvalidArgument, Unsupported

#: Widths that kernels compute in vectors, in vectors with a rest, and element by element.
SHAPES = [(3, 1), (5, 8), (2, 3, 64), (7, 33), (4, 1000), (1, 4099)]
APPROXIMATE: Any = ["none", "tanh"]


def numbers(shape: Any, dtype: torch.dtype, device: str, seed: int = 0) -> torch.Tensor:
    """Numbers of usual and of all sizes, zeros of both signs, Inf and NaN."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator) * 3
    flat = x.view(-1)
    size = torch.randint(-40, 20, flat.shape, generator=generator)
    flat[::5] *= torch.exp2(size)[::5]
    special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e-41, -100.0, 20.0])
    flat[3::17] = special[torch.arange(len(flat[3::17])) % len(special)]
    return x.to(device, dtype)


#: PyTorch's operators, the function that stands for them, and the number of its operands of the same shape.
ELEMENTWISE: dict[str, tuple[Any, Any, int]] = {
    "silu": (F.silu, ours.silu, 1), "swiglu": (lambda g, u: F.silu(g) * u, ours.swiglu, 2),
    **{f"gelu {kind}": (lambda x, kind=kind: F.gelu(x, approximate=kind), lambda x, kind=kind: ours.gelu(x, kind), 1)
       for kind in APPROXIMATE},
    **{f"geglu {kind}": (lambda g, u, kind=kind: F.gelu(g, approximate=kind) * u,
                         lambda g, u, kind=kind: ours.geglu(g, u, kind), 2) for kind in APPROXIMATE},
    **{f"bias_gelu {kind}": (lambda x, b, kind=kind: F.gelu(x + b, approximate=kind),
                             lambda x, b, kind=kind: ours.bias_gelu(x, b, kind), 0) for kind in APPROXIMATE}}


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_activations_and_gates(device: str, dtype: torch.dtype, name: str) -> None:
    theirs, mine, count = ELEMENTWISE[name]
    for shape in [*SHAPES, (700, 24)]:
        x, up, grad = (numbers(shape, dtype, device, seed) for seed in range(3))
        bias = numbers(shape[-1:], dtype, device, 1)
        compare(theirs, mine, grad, *((x, bias) if count == 0 else (x, up)[:count]))


@pytest.mark.parametrize("dtype", FORMATS)
def test_halves_of_one_tensor(device: str, dtype: torch.dtype) -> None:
    def theirs(x: torch.Tensor) -> torch.Tensor:
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up

    for n in (1, 8, 40, 333):
        x, grad = numbers((2, 5, 2 * n), dtype, device), numbers((2, 5, n), dtype, device, 1)
        compare(theirs, ours.swiglu, grad, x)
        compare(lambda x: theirs(x.transpose(0, 1)), lambda x: ours.swiglu(x.transpose(0, 1)), grad.transpose(0, 1), x)


@pytest.mark.parametrize("dtype", FORMATS)
def test_swiglu_into_codes(device: str, dtype: torch.dtype) -> None:
    """Codes and scales of the pair, and its gradient, by every recipe and several tiles."""
    cases: list[dict[str, Any]] = [{"recipe": name} for name in ("TE_CURRENT", "DSV3_IEEE", "DEEPGEMM_FP32_CUDA", "DEEPGEMM_UE8M0", "TE_BLOCK_1D",
                                                             "VLLM_GROUP", "MXFP8_TE", "MXFP8_FLOOR")] + [
        {"recipe": samebits.Recipe(tile=tile, scale=scale), "to": to} for tile in ((1, 128), (1, 32), (128, 128)) for scale in ("te", "div")
        for to in ("e4m3", "e5m2")]
    for shape in ((1, 8), (3, 128), (2, 5, 264), (130, 1000), (4, 4104)):
        gate, up = numbers(shape, dtype, device), numbers(shape, dtype, device, 1)
        finite = torch.randn(shape, device=device).to(dtype), torch.randn(shape, device=device).to(dtype)
        for options in cases:
            for g, u in ((gate, up), finite):
                q, pair = ours.swiglu_quantize(g, u, **options), sbt.quantize(ours.swiglu(g, u), **options)
                assert torch.equal(q.codes.view(torch.uint8), pair.codes.view(torch.uint8))
                assert torch.equal(q.scales.view(torch.uint8), pair.scales.view(torch.uint8))
        compare(lambda g, u: sbt.quantize(ours.swiglu(g, u), "TE_CURRENT").dequantize(g.dtype),
                lambda g, u: ours.swiglu_quantize(g, u, "TE_CURRENT").dequantize(g.dtype), finite[0], *finite)


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("dtype", FORMATS)
def test_quantized_norms(device: str, dtype: torch.dtype, rms: bool) -> None:
    """Codes, scales, sums and gradients of the norm that is quantized after it."""
    for shape in ((5, 128), (2, 3, 200), (3, 4096), (2, 16392), (4, 33)):
        n = shape[-1]
        x, added, grad = (numbers(shape, dtype, device, seed) for seed in range(3))
        weight, bias = torch.randn(2, n, device=device).to(dtype)

        def norm(x: torch.Tensor, *of: Any, n: int = n) -> torch.Tensor:
            return ours.rms_norm(x, n, of[0] if of else None) if rms else ours.layer_norm(x, n, *of)

        def quantized(x: torch.Tensor, *of: Any, **options: Any) -> Any:
            return ours.rms_norm_quantize(x, of[0], **options) if rms else ours.layer_norm_quantize(x, *of, **options)

        for recipe, to in (("DSV3_IEEE", "e4m3"), ("TE_BLOCK_1D", "e5m2"), ("TE_CURRENT", "e4m3")):
            for of in ((weight, bias), (None, None)):
                for residual in (None, added):
                    total = x if residual is None else x + residual
                    q, kept = quantized(x, *of, residual=residual, recipe=recipe, to=to)
                    pair = sbt.quantize(norm(total, *of), recipe, to=to)
                    assert torch.equal(q.codes.view(torch.uint8), pair.codes.view(torch.uint8))
                    assert torch.equal(q.scales.view(torch.uint8), pair.scales.view(torch.uint8))
                    assert_same(kept, total)

        def both(norm_of: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
            return torch.stack((norm_of.to(dtype), total))

        def apart(x: torch.Tensor, r: torch.Tensor, *of: Any) -> torch.Tensor:
            y, total = ours.add_rms_norm(x, r, n, *of) if rms else ours.add_layer_norm(x, r, n, *of)
            return both(sbt.quantize(y, "TE_CURRENT").dequantize(dtype), total)

        def at_once(x: torch.Tensor, r: torch.Tensor, *of: Any) -> torch.Tensor:
            q, total = quantized(x, *of, residual=r, recipe="TE_CURRENT")
            return both(q.dequantize(dtype), total)

        parameters = (weight,) if rms else (weight, bias)
        compare(apart, at_once, torch.stack((grad, added)), x, added, *parameters)
        compare(lambda x, *of: sbt.quantize(norm(x, *of), "TE_CURRENT").dequantize(dtype),
                lambda x, *of: quantized(x, *of, recipe="TE_CURRENT")[0].dequantize(dtype), grad, x, *parameters)


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    n = x.shape[-1] // 2
    return torch.cat((-x[..., n:], x[..., :n]), dim=-1)


@pytest.mark.parametrize("dtype", FORMATS)
def test_rotary(device: str, dtype: torch.dtype) -> None:
    for n in (1, 8, 12, 64):
        length, heads = 6, 3
        table = samebits.rotary_table(np.arange(length), 2 * n)
        cos, sin = (torch.from_numpy(np.asarray(t)).to(device, dtype) for t in table)
        x, grad = (numbers((2, heads, length, 2 * n), dtype, device, seed) for seed in range(2))

        def theirs(x: torch.Tensor, cos: torch.Tensor = cos, sin: torch.Tensor = sin) -> torch.Tensor:
            both = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
            return x * both[0] + rotate_half(x) * both[1]

        compare(theirs, lambda x, c=cos, s=sin: ours.rotary(x, c, s), grad, x)
        moved, moved_grad = x.transpose(1, 2).contiguous(), grad.transpose(1, 2).contiguous()
        compare(lambda x: theirs(x.transpose(1, 2)).transpose(1, 2),
                lambda x, c=cos, s=sin: ours.rotary(x, c, s, heads_last=True), moved_grad, moved)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("n", [1, 8, 100])
def test_embedding(device: str, dtype: torch.dtype, n: int) -> None:
    table, positions = numbers((50, n), dtype, device), numbers((7, n), dtype, device, 1)
    grad = torch.randn(4, 7, n, device=device).to(dtype)
    words = torch.randint(50, (4, 7), generator=torch.Generator().manual_seed(1)).to(device)
    for root in (1.0, 27.712812921102035):
        compare(lambda w: F.embedding(words, w) * root, lambda w: ours.embedding(words, w, scale=root), grad, table)
        compare(lambda w, p: F.embedding(words, w) * root + p,
                lambda w, p: ours.embedding(words, w, scale=root, positions=p), grad, table, positions)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("words", [3, 300, 70000])
def test_gradients_of_many_words(device: str, dtype: torch.dtype, words: int) -> None:
    """More than 3072 indices, which PyTorch adds by another kernel; some words occur often."""
    chosen = (torch.rand(5, 700, generator=torch.Generator().manual_seed(2)) ** 4 * words).long().to(device)
    table, grad = torch.randn(words, 24, device=device).to(dtype), torch.randn(5, 700, 24, device=device).to(dtype)
    torch.use_deterministic_algorithms(True)
    try:
        compare(lambda w: F.embedding(chosen, w), lambda w: ours.embedding(chosen, w), grad, table)
    finally:
        torch.use_deterministic_algorithms(False)


def both(pair: Any) -> torch.Tensor:
    """A norm and the sum, in one tensor: the gradients of both are given."""
    return torch.stack(tuple(pair))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("n", WIDTHS)
def test_norms_of_sums(device: str, dtype: torch.dtype, n: int) -> None:
    x, residual = rows(n, dtype, device), rows(n, dtype, device, seed=1)
    weight, bias = rows(n, dtype, device, seed=2)[[0, 6]]
    grad = torch.stack((rows(n, dtype, device, seed=3), torch.randn(ROWS, n, device=device).to(dtype)))

    def theirs(x: torch.Tensor, r: torch.Tensor, *rest: Any) -> Any:
        total = x + r
        return F.layer_norm(total, (n,), *rest), total

    for m in (2, 3, 4):
        compare(lambda *t: both(theirs(*t)), lambda *t: both(ours.add_layer_norm(t[0], t[1], n, *t[2:])), grad,
                *(x, residual, weight, bias)[:m])
    # The sum has no other user.
    compare(lambda *t: theirs(*t)[0], lambda *t: ours.add_layer_norm(t[0], t[1], n, *t[2:])[0], grad[0], x, residual,
            weight, bias)
    total = x + residual
    got = results(lambda x, r, w: both(ours.add_rms_norm(x, r, n, w)), grad, x, residual, weight)
    alone = results(lambda x, w: ours.rms_norm(x, n, w), grad[0], total, weight)
    of_sum = (alone[1].float() + grad[1].float()).to(dtype)
    for a, b in zip(got, (torch.stack((alone[0], total)), of_sum, of_sum, alone[2]), strict=True):
        assert_same(a, b)


def eager_scores(x: torch.Tensor, scale: float, mask: torch.Tensor | None, causal: bool) -> torch.Tensor:
    """The operators that `scaled_softmax` stands for."""
    y = x * scale
    if mask is not None:
        y = y.masked_fill(mask, -torch.inf) if mask.dtype == torch.bool else y + mask
    if causal:
        y = y.masked_fill(torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device).triu(1), -torch.inf)
    return F.softmax(y, -1)


#: Shapes of scores, and of masks.
SCORES: list[tuple[Any, list[Any]]] = [
    ((5, 1), [(1,), (5, 1)]), ((2, 3, 7, 33), [(33,), (7, 33), (2, 1, 1, 33), (2, 1, 7, 33), (1, 3, 1, 33), (2, 3, 7, 1)]),
    ((2, 2, 6, 64), [(6, 64), (2, 1, 6, 64)]), ((2, 1, 3, 2, 5, 130), [(2, 1, 3, 1, 5, 130), (3, 2, 1, 130), (2, 1, 1, 2, 5, 1)]),
    ((2, 4, 1024), [(2, 1, 1024)]), ((1, 3, 2048), [(3, 2048)]), ((5, 1025), [(5, 1025)]), ((3, 4096), [(3, 4096)]),
    ((2, 8200), [(8200,)]), ((2, 20001), [(2, 20001)])]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("shape, masks", SCORES)
def test_softmax_of_scores(device: str, dtype: torch.dtype, shape: Any, masks: Any) -> None:
    x, grad = numbers(shape, dtype, device), numbers(shape, dtype, device, 1)
    finite = torch.randn(x.numel() + 1, device=device).to(dtype)[1:].view(shape)  # not aligned
    for i, of in enumerate([None, *masks]):
        g = torch.Generator().manual_seed(i)
        hidden, added = None, None
        if of is not None:
            hidden = torch.rand(of, generator=g) < 0.4
            hidden.view(-1, of[-1])[0] = True  # a row that is hidden whole
            hidden, added = hidden.to(device), numbers(of, dtype, device, 7 + i)
        for mask, scale, causal in ((hidden, 0.125, False), (added, 0.3, len(shape) > 2), (hidden, 1.0, True)):
            for scores, of_result in ((x, grad), (finite, finite)):
                compare(lambda t, s=scale, m=mask, c=causal: eager_scores(t, s, m, c),
                        lambda t, s=scale, m=mask, c=causal: ours.scaled_softmax(t, s, m, c), of_result, scores)
    moved = finite.transpose(0, 1) if len(shape) > 2 else finite
    compare(lambda t: eager_scores(t, -2.0, None, True), lambda t: ours.scaled_softmax(t, -2.0, causal=True),
            moved, moved)


@pytest.mark.parametrize("dtype", FORMATS)
def test_dropout_by_index(device: str, dtype: torch.dtype) -> None:
    """The mask is that of the element's index, on every device and in every shard; the gradient has it too."""
    x, grad = torch.randn(33, 1001).to(dtype), torch.randn(33, 1001).to(dtype)
    for p in (0.0, 0.1, 0.5, 1.0):
        def drop(x: torch.Tensor, p: float = p, **options: Any) -> Any:
            return ours.dropout(x, p, seed=7, stream=3, **options)
        on_cpu = results(drop, grad, x)
        for a, b in zip(results(drop, grad.to(device), x.to(device)), on_cpu, strict=True):
            assert_same(a.cpu(), b)
        assert_same(drop(x[5:].to(device), offset=5 * 1001).cpu(), on_cpu[0][5:])
        kept = drop(torch.ones(33, 1001)) != 0
        assert abs(float(kept.float().mean()) - (1 - p)) < 0.01
        scale = float(np.float32(1) / (np.float32(1) - np.float32(p))) if p < 1 else 1.0
        assert_same(on_cpu[0], torch.where(kept, (x.float() * scale).to(dtype), torch.zeros((), dtype=dtype)))
    assert torch.equal(ours.dropout(x, 0.5, training=False, seed=1), x)
    other = ours.dropout(torch.ones(1000), seed=7, stream=4), ours.dropout(torch.ones(1000), seed=8, stream=3)
    assert not any(torch.equal(y, ours.dropout(torch.ones(1000), seed=7, stream=3)) for y in other)


@pytest.mark.parametrize("dtype", FORMATS)
def test_fake_quantization(device: str, dtype: torch.dtype) -> None:
    """In steps of PyTorch, which round correctly in fp32; the clip's gradient is torch.sum of the elements' ones."""
    for shape in SHAPES:
        x, grad = numbers(shape, dtype, device), torch.randn(shape, device=device).to(dtype)
        clip = torch.tensor(1.7, device=device).to(dtype)
        for bits in (2, 8):
            levels = float(2 ** (bits - 1) - 1)
            y, of_x, of_clip = results(lambda x, c, b=bits: ours.clip_fake_quantize(x, c, bits=b), grad, x, clip)
            part = (x.float() / clip.float()).clamp(-1, 1) * levels
            tensor = torch.tensor(levels, device=device)
            assert_same(y, (part.round() / tensor * clip.float()).to(dtype))
            outside = x.float().abs() > clip.float()
            assert_same(of_x, grad.masked_fill(outside, 0))
            moved = torch.where(outside, grad * x.sign().nan_to_num(), torch.zeros_like(grad))
            axes = [*range(moved.dim())]
            total = moved.sum(axes) if device == "cuda" else sbt.recompute("aten.sum.dim_IntList", (moved, axes))
            assert_same(of_clip, total)


def test_compiled_recorded_and_checked_operators(device: str) -> None:
    x, bias = torch.randn(4, 48, device=device), torch.randn(48, device=device, requires_grad=True)

    def run(x: torch.Tensor) -> Any:
        return ours.dropout(ours.silu(ours.swiglu(ours.bias_gelu(x, bias, "tanh"))), seed=5)

    grad = torch.randn(4, 24, device=device)
    torch.compile(run, backend="aot_eager", fullgraph=True)(x).backward(grad)
    compiled: Any = bias.grad
    bias.grad = None
    with sbt.record() as recorder:
        run(x).backward(grad)
    recorded: Any = bias.grad
    assert_same(recorded, compiled)
    replay = sbt.replay(recorder.trace)
    assert replay.equal, str(replay)
    cos = torch.randn(4, 24, device=device)
    operators: Any = torch.ops.samebits
    for operator, arguments in [
            (operators.gated, (x, x, "silu")), (operators.gated_halves, (x, "gelu")),
            (operators.biased, (x, bias.detach(), "gelu")), (operators.rotary, (x, cos, cos, 1)),
            (operators.dropout_by_index, (x, 0.5, 1, 2, 3)), (operators.gelu, (x,)), (operators.silu, (x,)),
            (operators.clip_fake_quantize, (x, torch.tensor(1.0, device=device), 8)),
            (operators.scaled_softmax, (x, 0.5, torch.arange(48, device=device) == 3, True)), (operators.scaled_softmax, (x, 2.0, None, False)),
            (operators.embed, (torch.tensor([1, 0], device=device), x, None, 2.0))]:
        torch.library.opcheck(operator.default, arguments)


def test_refusals(device: str) -> None:
    x = torch.randn(2, 4, device=device)
    half = x[0, :2]
    for call in (lambda: ours.swiglu(x[:, :3]), lambda: ours.swiglu(x, x[:1]), lambda: ours.swiglu(x, x.half()),
                 lambda: ours.silu(x.double()), lambda: ours.gelu(x, "other"), lambda: ours.bias_gelu(x, half),
                 lambda: ours.rotary(x, x, x), lambda: ours.rotary(x, x[:, :2].requires_grad_(), x[:, :2]),
                 lambda: ours.embedding(x.long()[0].int(), x), lambda: ours.dropout(x, 1.5, seed=1),
                 lambda: ours.swiglu_quantize(x, x, "TE_DELAYED"), lambda: ours.clip_fake_quantize(x, x),
                 lambda: ours.clip_fake_quantize(x, x[0, 0], bits=1), lambda: ours.bias_gelu(x[0, 0], x[0, :1]),
                 lambda: ours.rotary(x, x[:, :2], x[:1, :2]), lambda: ours.dropout(x, seed=-1),
                 lambda: ours.embedding(x.long(), x[None]), lambda: ours.swiglu_quantize(x, x, "DSV3_IEEE", to="e2m1"),
                 lambda: ours.swiglu_quantize(x, x, "NVFP4_TE"), lambda: ours.rms_norm_quantize(x, recipe="TE_DELAYED"),
                 lambda: ours.layer_norm_quantize(x, residual=x[:1]), lambda: ours.layer_norm_quantize(x, x),
                 lambda: ours.scaled_softmax(x[0], causal=True), lambda: ours.scaled_softmax(x, mask=x[:, :3] > 0),
                 lambda: ours.scaled_softmax(x, mask=x.half()), lambda: ours.scaled_softmax(x[0], mask=x > 0),
                 lambda: ours.scaled_softmax(x, mask=torch.zeros(4, device=device, requires_grad=True)),
                 lambda: ours.embedding(torch.zeros(3, dtype=torch.int64, device=device), x, positions=x)):
        with pytest.raises((Unsupported, InvalidArgument)):
            call()
    if device == "cpu":
        with pytest.raises(InvalidArgument, match="indices"):
            ours.embedding(torch.tensor([2]), x)
    else:
        assert ours.embedding(torch.tensor([2, -1], device=device), x).isnan().all()


@pytest.mark.parametrize("dtype", FORMATS[:2])
def test_large_tensors_on_a_gpu(cuda: str, dtype: torch.dtype) -> None:
    """Many blocks, unaligned tensors, and more than 2^31 elements."""
    memory = torch.randn(2 * 4096 * 1408 + 3, device=cuda).to(dtype)
    for first in (0, 1, 3):
        x = memory[first: first + 2 * 4096 * 1408].view(4096, 2816)
        gate, up = x.chunk(2, -1)
        assert same(ours.swiglu(x), F.silu(gate) * up)
        assert same(ours.bias_gelu(x, x[0], "tanh"), F.gelu(x + x[0], approximate="tanh"))
    if dtype == torch.bfloat16:
        x = torch.randn(65536, 32800, device=cuda, dtype=dtype)
        y = ours.swiglu(x, x)
        for part in (slice(0, 64), slice(32700, 32800), slice(65472, 65536)):
            assert same(y[part], F.silu(x[part]) * x[part])


class NoGradient(torch.autograd.Function):
    """Its argument has no gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> None:
        return None


CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softmax": ours.softmax, "silu": ours.silu, "swiglu": ours.swiglu, "layer_norm": lambda x: ours.layer_norm(x, (2, 4)),
    "dropout": lambda x: ours.dropout(x, seed=1), "embedding": lambda x: ours.embedding(torch.zeros(3, 2).long(), x[0])}


@pytest.mark.parametrize("name", CALLS)
def test_what_autograd_asks_of_operators(name: str) -> None:
    x = torch.randn(3, 2, 4, requires_grad=True)
    y = CALLS[name](x)
    assert y.grad_fn is not None and "Direct" not in type(y.grad_fn).__name__
    y.add_(1)  # no view of another tensor
    NoGradient.apply(CALLS[name](x)).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is None or not x.grad.any()
    if name != "embedding":
        assert CALLS[name](torch.empty(3, 2, 4, device="meta")).is_meta
