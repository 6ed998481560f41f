"""`samebits.torch.functional` and `convert_model` against PyTorch's functions, bit for bit.

On a CPU PyTorch's functions run under `EmulatedGpu`, whose operators return what `recompute` does; on a GPU in
eager mode. All NaN count as equal. PyTorch's CPU path of RMSNorm has other operators: `recompute` computes it.
"""

from __future__ import annotations

import contextlib
import copy
import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from cuda_graphs import captured
from emulated_gpu import EmulatedGpu, Training
from gpu_rules import require

import samebits.torch as sbt
from samebits.errors import InvalidArgument, Unsupported

ours: Any = sbt.functional
FORMATS = [torch.float32, torch.bfloat16, torch.float16]
WIDTHS = [1, 2, 31, 33, 130, 1023, 1025, 4096]
ROWS = 13
EXHAUSTIVE = os.environ.get("SAMEBITS_EXHAUSTIVE") == "1"
SHARD, SHARDS = (int(n) for n in os.environ.get("SAMEBITS_SHARD", "0/1").split("/"))
#: Near most of these widths the kernels change.
BORDERS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 9216, 12256, 12272, 24512, 24544, 32000, 50257, 50304)


def gpu(device: str) -> Any:
    return EmulatedGpu() if device == "cpu" else contextlib.nullcontext()


def rows(n: int, dtype: torch.dtype, device: str, seed: int = 0) -> torch.Tensor:
    """Rows of 13 kinds: usual numbers in the first and in the seventh, -Inf, Inf, NaN, equal numbers and others."""
    generator = torch.Generator().manual_seed(seed + n)
    x = torch.randn(ROWS, n, generator=generator) * 3
    x[1] *= 30
    for row, value in ((2, -torch.inf), (3, torch.inf), (4, torch.nan), (8, 60000.0)):
        x[row, n // 2] = value
    x[5] = -torch.inf
    x[7] = x[7, 0].clone()
    x[9] = x[9] / 64 + 1000
    x[10] *= 2.0**-20
    x[11] = torch.copysign(torch.zeros(()), x[11])
    x[12] *= torch.exp2(torch.randint(-30, 16, (n,), generator=generator))
    return x.to(device, dtype)


def assert_same(a: torch.Tensor, b: torch.Tensor) -> None:
    """Bits are equal, signs of zeros included."""
    assert a.dtype == b.dtype and a.shape == b.shape
    nan = a.isnan() & b.isnan()
    assert torch.equal(a.masked_fill(nan, 0), b.masked_fill(nan, 0))
    assert torch.equal(a.signbit() | nan, b.signbit() | nan)


def results(function: Callable[..., torch.Tensor], grad: Any, *tensors: torch.Tensor) -> list[torch.Tensor]:
    """The result of a function, and the gradients of its tensors."""
    leaves = [x.detach().requires_grad_() for x in tensors]
    y = function(*leaves)
    given = grad if isinstance(grad, torch.Tensor) else torch.full_like(y, grad)
    return [y.detach(), *torch.autograd.grad(y, leaves, given.to(y.dtype))]


def compare(theirs: Callable[..., torch.Tensor], mine: Callable[..., torch.Tensor], grad: Any,
            *tensors: torch.Tensor) -> None:
    with gpu(tensors[0].device.type):
        expected = results(theirs, grad, *tensors)
    for a, b in zip(results(mine, grad, *tensors), expected, strict=True):
        assert_same(a, b)


def test_rows_of_several_axes_that_begin_anywhere(device: str) -> None:
    numbers = torch.randn(4 * 6 * 10 + 4, device=device)
    weight, bias = torch.randn(2, 6, 10, device=device)
    for offset in (0, 1, 2):
        x = numbers[offset: offset + 240].view(4, 6, 10)
        with gpu(device):
            expected = F.layer_norm(x, (6, 10), weight, bias)
        assert_same(ours.layer_norm(x, (6, 10), weight, bias), expected)
    compare(lambda *t: F.layer_norm(t[0], (6, 10), *t[1:]), lambda *t: ours.layer_norm(t[0], (6, 10), *t[1:]),
            torch.randn(4, 6, 10, device=device), x, weight, bias)
    compare(lambda x: F.softmax(x.transpose(0, 1), -1), lambda x: ours.softmax(x.transpose(0, 1)), 1, x)


def compare_every_function(x: torch.Tensor, grad: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
                           targets: torch.Tensor) -> None:
    shape = x.shape[1:]
    of = F if x.is_cuda else ours  # a CPU's losses of upcast logits are those of fp32 logits
    compare(lambda x: F.softmax(x, -1), ours.softmax, grad, x)
    compare(lambda x: F.log_softmax(x, -1), ours.log_softmax, grad, x)
    for m in (1, 2, 3):
        compare(lambda *t: F.layer_norm(t[0], shape, *t[1:], eps=1e-3),
                lambda *t: ours.layer_norm(t[0], shape, *t[1:], eps=1e-3), grad, *(x, weight, bias)[:m])
    compare(lambda x, b: F.layer_norm(x, shape, None, b), lambda x, b: ours.layer_norm(x, shape, None, b), grad,
            x, bias)
    compare_rms_norm(x, grad, weight)
    compare(lambda x: F.cross_entropy(x, targets), lambda x: ours.cross_entropy(x, targets), 1.0, x)
    compare(lambda x: of.cross_entropy(x.float(), targets), lambda x: ours.cross_entropy(x, targets, upcast=True), 1.0, x)


@pytest.mark.parametrize("n", [*WIDTHS, 9216, 12288, 16384])
@pytest.mark.parametrize("dtype", FORMATS)
def test_rows_of_any_width(device: str, dtype: torch.dtype, n: int) -> None:
    """Of 4096 and more: rows that kernels keep in more registers, and enough for sums of eight rows at a time."""
    x, grad, affine = (rows(n, dtype, device, seed) for seed in range(3))
    if n <= 4096:
        compare_every_function(x, grad, affine[0], affine[6], torch.arange(ROWS, device=device) % n)
    if n >= 4096:
        x, grad = (torch.randn(21, n, generator=torch.Generator().manual_seed(n + i)).to(device, dtype) for i in (0, 1))
        compare_every_function(x, grad, affine[0], affine[6], torch.arange(21, device=device) * 100)


def widths() -> list[int]:
    """Widths up to 128,256: 376, with SAMEBITS_EXHAUSTIVE=1 all up to 4,096 and 257 wider ones."""
    near = {b + d for b in BORDERS for d in (-8, -4, -1, 0, 1, 4, 8) if b < 20000 or d in (-8, 0, 1)}
    dense, step, wider = (4096, 1, 218) if EXHAUSTIVE else (200, 41, 12)
    random_widths = random.Random(7).sample(range(4097, 128_256), wider)
    return sorted({*near, *range(1, dense + 1), *range(dense, 4097, step), 128_256,
                   *(n // (1, 8)[i % 2] * (1, 8)[i % 2] for i, n in enumerate(random_widths))})


@pytest.mark.parametrize("dtype", FORMATS)
def test_every_width(cuda: str, dtype: torch.dtype) -> None:
    """Rows off a 16-byte boundary, too; SAMEBITS_SHARD=3/16 takes every 16th width from the fourth on."""
    require(torch="2.11.")
    for n in widths()[SHARD::SHARDS]:
        for offset in (0, 1, 3) if EXHAUSTIVE or n % 5 == 0 or n > 1024 else (0,):
            x, grad = rows(n, dtype, cuda), rows(n, dtype, cuda, seed=1)
            x, grad = (torch.cat([t.new_zeros(offset), t.flatten()])[offset:].view(ROWS, n) for t in (x, grad))
            weight, bias = rows(n, dtype, cuda, seed=2)[[0, 6]]
            targets = torch.arange(ROWS, device=cuda) % n
            targets[2] = -100
            compare_every_function(x, grad, weight, bias, targets)


def test_more_elements_than_32_bits_count(cuda: str) -> None:
    if torch.cuda.mem_get_info()[0] < 64 << 30:
        pytest.skip("needs 64 GiB of free memory")
    x, grad = (torch.randn(2**18 + 3, 8192, device=cuda, dtype=torch.bfloat16) for _ in range(2))
    weight, bias = torch.randn(2, 8192, device=cuda, dtype=torch.bfloat16)
    compare_every_function(x, grad, weight, bias, torch.arange(len(x), device=cuda) % 8192)


def compare_rms_norm(x: torch.Tensor, grad: torch.Tensor, weight: torch.Tensor) -> None:
    n = x.shape[-1]
    got = results(lambda x, w: ours.rms_norm(x, n, w), grad, x, weight)
    if x.is_cuda:
        expected = results(lambda x, w: F.rms_norm(x, (n,), w), grad, x, weight)
    else:
        y, rstd = sbt.recompute("aten._fused_rms_norm.default", (x, [n], weight, None))
        expected = [y, *sbt.recompute("aten._fused_rms_norm_backward.default",
                                      (grad, x, [n], rstd, weight, [True, True]))]
    for a, b in zip(got, expected, strict=True):
        assert_same(a, b)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", FORMATS)
def test_cross_entropy(device: str, dtype: torch.dtype, reduction: Any) -> None:
    def check(x: torch.Tensor, targets: torch.Tensor, grad: float, ignored: int, expected: Any) -> None:
        options: dict[str, Any] = {"reduction": reduction, "ignore_index": ignored}
        compare(lambda x: F.cross_entropy(x, targets, **options),
                lambda x: ours.cross_entropy(x, targets, expected_gradient=expected, **options), grad, x)

    for n in WIDTHS:
        targets = torch.arange(ROWS, device=device) % n
        targets[[1, 4]] = -100
        for grad in (1.0, 0.3, 32768.0):  # as expected; neither expected nor a power of two; a loss scale
            for expected in (1.0, grad, torch.tensor(grad, device=device), None):
                check(rows(n, dtype, device), targets, grad, -100, expected)
                check(torch.randn(ROWS, n, device=device).to(dtype), targets, grad, -100, expected)
    x = torch.randn(7, 4, device=device).to(dtype)
    check(x, torch.full((7,), 3, device=device), 1.0, 3, 1.0)
    check(x, torch.arange(7, device=device) % 4, 1.0, 3, 1.0)


def test_a_finished_gradient_cannot_be_scaled(device: str) -> None:
    """Why the backward pass computes another gradient of the loss anew."""
    x, targets = torch.randn(7, 100, device=device, requires_grad=True), torch.arange(7, device=device)
    loss = ours.cross_entropy(x, targets)
    one, = torch.autograd.grad(loss, x, retain_graph=True)
    third, = torch.autograd.grad(loss, x, torch.tensor(0.3, device=device), retain_graph=True)
    assert not torch.equal(third, one * 0.3)
    loss.backward(retain_graph=True)
    x.grad.zero_()  # of the parameter, not of what the loss keeps
    loss.backward()
    assert torch.equal(x.grad, one)


def test_a_graph_compares_gradients_of_the_loss(cuda: str) -> None:
    """With the expected gradient the backward pass leaves what the forward pass computed; else it replaces it."""
    x, targets = torch.randn(7, 4096, device=cuda, requires_grad=True), torch.arange(7, device=cuda)
    grad = torch.ones((), device=cuda)

    def gradient(f: Any) -> torch.Tensor:
        return torch.autograd.grad(f.cross_entropy(x, targets), x, grad)[0]

    graph, of_graph = captured(lambda: gradient(ours), lambda: gradient(ours))
    for number in (1.0, 0.3, 1.0):
        grad.fill_(number)
        graph.replay()
        assert torch.equal(of_graph, gradient(F))


def test_smoothed_labels_on_a_cpu() -> None:
    targets = torch.tensor([0, 4, -100])
    compare(lambda x: F.cross_entropy(x, targets, label_smoothing=0.1),
            lambda x: ours.cross_entropy(x, targets, label_smoothing=0.1), 1, torch.randn(3, 33))


@pytest.mark.parametrize("dtype", FORMATS[1:])
def test_autocast(device: str, dtype: torch.dtype) -> None:
    """Operands and results have the formats of torch.nn.functional's."""
    x, weight = torch.randn(5, 96, device=device).to(dtype), torch.randn(96, device=device).to(dtype)
    targets = torch.arange(5, device=device)
    pairs = [(lambda f, x: f.softmax(x, -1)), (lambda f, x: f.log_softmax(x, -1)),
             (lambda f, x: f.layer_norm(x, (96,), weight)), (lambda f, x: f.cross_entropy(x, targets)),
             (lambda f, x: f.softmax(x, -1, dtype=torch.float32))]
    with torch.autocast(device, dtype):
        for call in pairs:
            compare(lambda x, call=call: call(F, x), lambda x, call=call: call(ours, x), 1, x)


def compare_losses(device: str, dtype: torch.dtype, theirs: Any, mine: Any) -> None:
    """Compare losses of rows of all widths, two of them ignored, with expected gradients and others."""
    for n in WIDTHS:
        x, targets = 4 * rows(n, dtype, device), torch.arange(ROWS, device=device) % n
        targets[[1, 4]] = -100
        for grad, expected in ((1.0, 1.0), (0.3, 1.0), (32768.0, 32768.0), (1.7, None)):
            compare(lambda x: theirs(x, targets), lambda x: mine(x, targets, expected_gradient=expected), grad, x)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", FORMATS[1:])
def test_losses_of_autocast_on_a_gpu(cuda: str, dtype: torch.dtype, reduction: Any) -> None:
    """Log-probabilities are rounded to 16 bits, and losses are not."""
    with torch.autocast(cuda, dtype):
        compare_losses(cuda, dtype, *(partial(of.cross_entropy, reduction=reduction) for of in (F, ours)))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", FORMATS)
def test_losses_of_upcast_logits(device: str, dtype: torch.dtype, reduction: Any) -> None:
    """As of logits.float(): a CPU's results are those of fp32 logits, a GPU's those of PyTorch."""
    of = F if device == "cuda" else ours
    compare_losses(device, dtype, lambda x, targets: of.cross_entropy(x.float(), targets, reduction=reduction),
                   partial(ours.cross_entropy, reduction=reduction, upcast=True))


def test_refusals(device: str) -> None:
    x, targets = torch.randn(3, 5, device=device), torch.zeros(3, dtype=torch.int64, device=device)
    refused: list[Callable[[], Any]] = [
        lambda: ours.softmax(x, 0), lambda: ours.log_softmax(x[0, 0]), lambda: ours.softmax(x.double()),
        lambda: ours.softmax(torch.zeros(1, 1025, dtype=torch.float16, device=device), dtype=torch.float32),
        lambda: ours.layer_norm(x, 5, torch.ones(5, dtype=torch.bfloat16, device=device)),
        lambda: ours.cross_entropy(x, x.softmax(-1)), lambda: ours.cross_entropy(x[None], targets[None]),
        lambda: sbt.CrossEntropyLoss(torch.ones(5, device=device))(x, targets), lambda: sbt.Softmax(None)(x),
        lambda: ours.layer_norm(x, 4), lambda: ours.cross_entropy(x, targets[:2])]
    if device == "cuda":
        refused.append(lambda: ours.cross_entropy(x, targets, label_smoothing=0.1))
    for call in refused:
        with pytest.raises((Unsupported, InvalidArgument)):
            call()
    y = ours.softmax(x.requires_grad_())
    dx, = torch.autograd.grad(y, x, torch.randn_like(y).requires_grad_(), create_graph=True)
    with pytest.raises(Unsupported, match="second derivative"):
        dx.sum().backward()


@pytest.mark.parametrize("dtype", FORMATS[:2])
def test_a_converted_gpt_trains_and_replays_alike(dtype: torch.dtype) -> None:
    theirs, mine = Training(dtype=dtype), Training(dtype=dtype)
    converted = sbt.convert_model(mine.model)
    assert [*converted.swapped.values()] == ["LayerNorm"] * 3 and not converted.left
    with EmulatedGpu():
        losses = [(mine.step(), theirs.step()) for _ in range(3)]
    for a, b in losses:
        assert_same(a, b)
    for a, b in zip(mine.model.parameters(), theirs.model.parameters(), strict=True):
        assert_same(a.detach(), b.detach())
    trace = mine.recorded()
    assert sum(entry["op"].startswith("samebits.native_layer_norm") for entry in trace.operators) == 6
    replay = sbt.replay(trace)
    assert replay.equal, str(replay)


def model_of(device: str) -> torch.nn.Module:
    nn = torch.nn
    return nn.Sequential(nn.LayerNorm(48), nn.RMSNorm(48), nn.LogSoftmax(-1), nn.Softmax(-1)).to(device)


def test_compiled_and_recorded_modules(device: str) -> None:
    model = model_of(device)
    reference = copy.deepcopy(model)
    sbt.convert_model(model)
    assert [*model.state_dict()] == [*reference.state_dict()]
    x, targets = torch.randn(4, 48, device=device), torch.arange(4, device=device)
    loss_of = sbt.CrossEntropyLoss()
    compiled = torch.compile(lambda x: loss_of(model(x), targets), backend="aot_eager", fullgraph=True)
    compiled(x).backward()
    expected = [p.grad for p in model.parameters()]
    model.zero_grad()
    with sbt.record() as recorder:
        loss_of(model(x), targets).backward()
    for p, q in zip(model.parameters(), expected, strict=True):
        assert_same(p.grad, q)
    operators = {entry["op"] for entry in recorder.trace.operators}
    assert "samebits.cross_entropy_and_gradient.default" in operators
    assert "samebits.cross_entropy_backward.default" not in operators  # the expected gradient came
    replay = sbt.replay(recorder.trace)
    assert replay.equal, str(replay)
    for name in ("_softmax", "native_layer_norm"):
        arguments = (x, 1, False) if name == "_softmax" else (x, [48], None, None, 1e-5)
        torch.library.opcheck(getattr(torch.ops.samebits, name).default, arguments)


def test_what_convert_model_swaps_and_leaves() -> None:
    nn = torch.nn
    subclass = type("Own", (nn.LayerNorm,), {})
    model = nn.Module()
    model.norm, model.same = nn.LayerNorm(4), nn.RMSNorm(4)
    model.again, model.own, model.wide = model.norm, subclass(4), nn.LayerNorm(4, dtype=torch.float64)
    model.columns, model.loss = nn.Softmax(dim=1), nn.CrossEntropyLoss(label_smoothing=0.1)
    model.layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)
    found = sbt.convert_model(model)
    names = ["norm", "same", "again", "layer.norm1", "layer.norm2"]
    assert [*found.swapped] == names and [*found.left] == ["own", "wide", "columns", "loss"]
    assert type(model.norm) is sbt.LayerNorm and model.again is model.norm and type(model.own) is subclass
    assert sbt.convert_model(model) == sbt.SwappedModules({}, found.left)
    with torch.inference_mode(), sbt.record() as recorder:  # PyTorch's fused path for inference calls no module
        model.layer.eval()(torch.randn(1, 3, 8))
    assert [entry["op"] for entry in recorder.trace.operators].count("samebits.native_layer_norm.default") == 2
