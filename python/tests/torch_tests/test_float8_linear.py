"""Float8Linear: forward and backward have the bits of samebits.quantize and samebits.matmul."""

from __future__ import annotations

import copy
import io
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.utils.checkpoint import checkpoint

import samebits as sb
import samebits.torch as sbt
from samebits.quantize import QuantizedTensor
from samebits.torch.float8_linear import column_sums
from tensors import same

#: docs/torch_float8.md has a table of their tiles and formats, which test_torch_page compares.
NAMES = sbt.linear_recipe_names()
COVERED = [name for name in NAMES if sbt.linear_recipe(name).activations.tile != (1, 32)]
FAST = [name for name in NAMES if sbt.linear_recipe(name).activations.tile in ((0, 0), (1, 0))]
#: Tokens, in, out. K / 128 is a multiple of four and not; tiles are whole and not.
SHAPES = [(64, 512, 256), (77, 272, 144), (16, 128, 64), (131, 640, 400), (1, 96, 80)]
DTYPES = [torch.bfloat16, torch.float16, torch.float32]


def assert_same_results(got: dict[str, Any], expected: dict[str, Any]) -> None:
    for what, result in got.items():
        assert same(result, expected[what]), what


def numbers(shape: tuple[int, ...], seed: int, dtype: torch.dtype) -> torch.Tensor:
    """Normal numbers on the CPU, some of them large, small and zero."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator)
    rare = torch.rand(shape, generator=generator)
    x = torch.where(rare < 0.01, x * 64, x)
    x = torch.where(rare > 0.99, x * 2.0**-12, x)
    return torch.where(rare.sub(0.5).abs() < 0.005, torch.zeros(()), x).to(dtype)


class Case:
    """Inputs of a layer, on the CPU."""

    def __init__(self, shape: tuple[int, int, int] = (24, 96, 80), dtype: torch.dtype = torch.bfloat16,
                 bias: bool = True) -> None:
        tokens, k, n = shape
        self.x = numbers((tokens, k), 1, dtype)
        self.w = numbers((n, k), 2, dtype) / 8
        self.bias = numbers((n,), 3, dtype) if bias else None
        self.dy = numbers((tokens, n), 4, dtype) * 2.0**-6

    def layer(self, recipe: Any, device: str, **options: Any) -> sbt.Float8Linear:
        n, k = self.w.shape
        layer = sbt.Float8Linear(k, n, self.bias is not None, recipe=recipe, device=device,
                                 dtype=self.w.dtype, **options)
        with torch.no_grad():
            layer.weight.copy_(self.w)
            if self.bias is not None:
                layer.bias.copy_(self.bias)
        return layer

    def run(self, recipe: Any, device: str, wrapped: Any = lambda layer: layer, **options: Any) -> dict[str, Any]:
        """y and all gradients of a layer, or of what a function makes of it."""
        layer = self.layer(recipe, device, **options)
        x = self.x.to(device).requires_grad_()
        y = wrapped(layer)(x)
        y.backward(self.dy.to(device))
        of = {"y": y, "dx": x.grad, "dw": layer.weight.grad, "dbias": None if layer.bias is None else layer.bias.grad}
        return {name: t.full_tensor() if isinstance(t, DTensor) else t for name, t in of.items() if t is not None}


def product(a: QuantizedTensor, b: QuantizedTensor, dtype: torch.dtype, fast: bool) -> torch.Tensor:
    """a [M, K] times b [N, K] transposed, by samebits.matmul."""
    out = torch.empty((a.codes.shape[0], b.codes.shape[0]), dtype=dtype)
    if a.recipe.tile == (1, 32):
        return sb.matmul(a.dequantize(), b.dequantize().t(), sum="exact", out=out)
    rows, cols = b.recipe.tile
    return sb.matmul(a.codes, b.codes.t(), a_scales=a.scales, a_tile=a.recipe.tile,
                     b_scales=b.scales.t(), b_tile=(cols, rows), out=out,
                     unit="hopper_wgmma", promotion=0 if fast else 128)


def reference(case: Case, name: str, fast: bool = False) -> dict[str, torch.Tensor]:
    """The results of a layer, composed of samebits.quantize and samebits.matmul."""
    rules = sbt.linear_recipe(name)
    line, square, gradient = rules.activations.tile, rules.weights.tile, rules.gradient_format

    def rows(x: torch.Tensor, tile: tuple[int, int], to: str = "e4m3") -> QuantizedTensor:
        return sb.quantize(x.contiguous(), name, tile=tile, to=to)

    x, w, dy = case.x, case.w, case.dy
    y = product(rows(x, line), rows(w, square), x.dtype, fast)
    results = {
        "y": y if case.bias is None else y + case.bias,
        "dx": product(rows(dy, line, gradient), rows(w.t(), square), x.dtype, False),
        "dw": product(rows(dy.t(), line, gradient), rows(x.t(), line), w.dtype, False),
    }
    return results if case.bias is None else {**results, "dbias": pairwise(dy).to(w.dtype)}


def pairwise(x: torch.Tensor) -> torch.Tensor:
    """Sums of columns, in plain loops over rows."""
    rows = [np.asarray(row, np.float32) for row in x.float().numpy()]
    while len(rows) > 1:
        last = rows[-1:] if len(rows) % 2 else []
        rows = [a + b for a, b in zip(rows[0::2], rows[1::2])] + last
    return torch.from_numpy(rows[0])


# --- bits ---------------------------------------------------------------------------------------


def test_layers_have_no_recipes_of_four_bits() -> None:
    with pytest.raises(sb.InvalidArgument, match="NVFP4_TE has e2m1"):
        sbt.linear_recipe("NVFP4_TE")
    assert sbt.linear_recipe("te_current") == sbt.linear_recipe("TE_CURRENT")


@pytest.mark.parametrize("name, shape, dtype", [
    *((name, shape, torch.bfloat16) for name in NAMES for shape in SHAPES),
    *((name, (40, 272, 144), dtype) for name in ("TE_CURRENT", "TORCHAO_ROW", "DEEPGEMM_FP32_CUDA", "MXFP8_TE")
      for dtype in (torch.float16, torch.float32))], ids=str)
def test_cpu_results_are_those_of_quantize_and_matmul(name: str, shape: Any, dtype: torch.dtype) -> None:
    case = Case(shape, dtype)
    assert_same_results(case.run(name, "cpu"), reference(case, name))


@pytest.mark.parametrize("name", FAST)
def test_fast_accumulation_is_for_y_only(name: str) -> None:
    case = Case((64, 1024, 144), torch.float32, bias=False)
    fast = reference(case, name, fast=True)
    assert not torch.equal(fast["y"], reference(case, name)["y"])  # the choice can be seen here
    assert_same_results(case.run(name, "cpu", use_fast_accum=True), fast)


@pytest.mark.parametrize("name, shape, dtype, fast", [
    *((name, shape, dtype, False) for name in COVERED for shape in [*SHAPES, (200, 2304, 384), (512, 768, 1024)]
      for dtype in DTYPES), *((name, (512, 1024, 768), torch.bfloat16, True) for name in FAST)], ids=str)
def test_gpu_results_are_those_of_the_cpu(cuda: str, name: str, shape: Any, dtype: torch.dtype, fast: bool) -> None:
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("not covered: the model is of Hopper's tensor cores")
    assert set(sbt.linear_recipe(name).coverage.values()) == {"covered"}
    case = Case(shape, dtype)
    assert_same_results(*(case.run(name, device, use_fast_accum=fast) for device in (cuda, "cpu")))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in COVERED])
def test_recipes_that_are_not_covered_say_so(cuda: str, name: str) -> None:
    assert all(text.startswith("not covered: ") for text in sbt.linear_recipe(name).coverage.values())
    case = Case((128, 256, 128), torch.bfloat16)
    if torch.cuda.get_device_capability() < (10, 0):
        with pytest.raises(sb.Unsupported, match="recipe: scaled_mm multiplies tiles of 1x32 on "
                                                 "GPUs of compute capability 10.0 or higher"):
            case.run(name, cuda)
        return
    expected = case.run(name, "cpu")
    for what, got in case.run(name, cuda).items():  # not the same bits, but the same numbers
        torch.testing.assert_close(got.cpu(), expected[what], rtol=2e-2, atol=2e-2)


def test_column_sums(device: str) -> None:
    for rows in (1, 2, 3, 7, 64, 101):
        x = numbers((rows, 5), rows, torch.float32)
        assert same(column_sums(x.to(device)), pairwise(x)), rows
    assert column_sums(torch.empty((0, 5), device=device)).tolist() == [0.0] * 5


# --- operands -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_quantized_operands_are_those_of_quantize(device: str, name: str) -> None:
    rules = sbt.linear_recipe(name)
    line, square, gradient = rules.activations.tile, rules.weights.tile, rules.gradient_format
    x = numbers((3, 16, 272), 5, torch.bfloat16)
    flat = x.reshape(48, 272)
    makers = ((sbt.quantize_activations, line, "e4m3"), (sbt.quantize_weights, square, "e4m3"),
              (sbt.quantize_gradients, line, gradient))
    for make, tile, to in makers:
        got = make(x.to(device), name, transposed=True)
        for operand, matrix in ((got.direct, flat), (got.transposed, flat.t().contiguous())):
            expected = sb.quantize(matrix, name, tile=tile, to=to)
            assert operand.recipe.tile == tile and operand.format == to
            assert operand.codes.device.type == device and operand.codes.is_contiguous()
            assert same(operand.codes, expected.codes)
            assert same(operand.scales, expected.scales)


def test_operands_that_were_not_made_are_refused() -> None:
    x = torch.ones(2, 32)
    with pytest.raises(sb.InvalidArgument, match="transposed: .*without transposed=True"):
        sbt.quantize_activations(x, "TE_CURRENT").transposed
    for make in (sbt.quantize_weights, sbt.quantize_gradients):
        with pytest.raises(sb.InvalidArgument, match="direct: .*pass True"):
            make(x, "TE_CURRENT", direct=False, transposed=True).direct


# --- the layer ----------------------------------------------------------------------------------


def test_leading_axes_and_strides(device: str) -> None:
    case = Case()
    layer = case.layer("TE_BLOCK_1D", device)
    x = case.x.to(device)
    expected = layer(x)
    assert same(layer(x.reshape(2, 3, 4, 96)), expected.reshape(2, 3, 4, 80))
    assert same(layer(x.t().contiguous().t()), expected)
    wide = torch.empty((24, 200), dtype=x.dtype, device=device)
    wide[:, :96] = x
    assert same(layer(wide[:, :96]), expected)
    one = case.layer("TORCHAO_ROW", device)  # a row has a scale of its own
    assert same(one(x[3]), one(x)[3])


def test_gradients_with_strides(device: str) -> None:
    ones = Case(dtype=torch.float32)
    ones.dy = torch.ones(1, 1).expand(24, 80)
    assert_same_results(ones.run("TE_CURRENT", device), reference(ones, "TE_CURRENT"))


def test_no_tokens(device: str) -> None:
    layer = sbt.Float8Linear(64, 32, recipe="TE_BLOCK_1D", device=device)
    x = torch.empty((0, 5, 64), device=device, requires_grad=True)
    y = layer(x)
    assert y.shape == (0, 5, 32)
    y.sum().backward()
    assert x.grad is not None and x.grad.shape == x.shape
    assert layer.weight.grad is not None and not layer.weight.grad.any()
    assert layer.bias.grad is not None and not layer.bias.grad.any()


def test_results_of_inference_mode_and_in_place(device: str) -> None:
    case = Case()
    layer, x = case.layer("TE_BLOCK_1D", device), case.x.to(device).requires_grad_()
    with torch.inference_mode():
        y = layer(x)
    assert same(y, layer(x))
    torch.relu_(layer(x)).sum().backward()
    assert x.grad is not None


def test_only_what_is_needed_is_kept_and_computed(device: str) -> None:
    x = torch.ones((16, 64), device=device)
    layer = sbt.Float8Linear(64, 32, device=device)
    kept: list[torch.Size] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.shape) or t, lambda t: t):
        with torch.no_grad():
            layer(x)
        assert kept == []
        layer(x)  # codes and scale of x for dw; none of w
        assert kept == [(64, 16), (1, 1)]
        kept.clear()
        layer.requires_grad_(False)
        y = layer(x.requires_grad_())  # codes and scale of w for dx; none of x
        assert kept == [(64, 32), (1, 1)]
    y.sum().backward()
    assert x.grad is not None and layer.weight.grad is None and layer.bias.grad is None


def test_one_gradient_alone(device: str) -> None:
    case = Case()
    layer, x = case.layer("TE_BLOCK_1D", device), case.x.to(device).requires_grad_()
    y, dy = layer(x), case.dy.to(device)
    assert_same_results({what: torch.autograd.grad(y, [of], dy, retain_graph=True)[0] for what, of in (
        ("dw", layer.weight), ("dx", x), ("dbias", layer.bias))}, case.run("TE_BLOCK_1D", device))


def test_autocast_casts_the_input_and_not_the_weight(device: str) -> None:
    case = Case(dtype=torch.float32)
    layer, x = case.layer("TE_CURRENT", device), case.x.to(device).requires_grad_()
    with torch.autocast(device, torch.bfloat16):
        y = layer(x)
    y.backward(case.dy.to(device).bfloat16())
    case.x, case.dy, case.bias = case.x.bfloat16(), case.dy.bfloat16(), numbers((80,), 3, torch.bfloat16)
    expected = reference(case, "TE_CURRENT")
    assert_same_results({"y": y, "dx": x.grad, "dw": layer.weight.grad}, {**expected, "dx": expected["dx"].float()})


def test_compile_runs_the_layer_outside_its_graphs(device: str) -> None:
    case = Case()
    expected = case.run("TE_CURRENT", device)
    assert_same_results(case.run("TE_CURRENT", device, lambda layer: torch.compile(
        torch.nn.Sequential(layer, torch.nn.Identity()), backend="aot_eager")), expected)
    torch.compiler.reset()
    with pytest.raises(Exception, match="marked as skipped|disable"):
        case.run("TE_CURRENT", device, lambda layer: torch.compile(layer, backend="aot_eager", fullgraph=True))
    torch.compiler.reset()


def test_copies_and_pickles(device: str) -> None:
    case = Case()
    layer = case.layer("TORCHAO_ROW", device, use_fast_accum=True)
    x = case.x.to(device)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), loaded):
        assert other.weight is not layer.weight and other.recipe == layer.recipe
        assert same(other(x), layer(x))


def by_fsdp(layer: torch.nn.Module) -> torch.nn.Module:
    from torch.distributed.fsdp import fully_shard

    return fully_shard(layer, mesh=dist.device_mesh.init_device_mesh(next(layer.parameters()).device.type, (1,)))


def by_checkpointing(layer: torch.nn.Module) -> Any:
    return lambda x: checkpoint(layer, x, use_reentrant=False)


@pytest.mark.parametrize("wrapped", [by_fsdp, by_checkpointing])
def test_wrapped_layers_have_the_same_bits(one_rank: str, wrapped: Any) -> None:
    case = Case()
    assert_same_results(case.run("TE_BLOCK_1D", one_rank, wrapped), case.run("TE_BLOCK_1D", one_rank))


def test_layers_that_tensor_parallelism_splits_are_refused(one_rank: str) -> None:
    from torch.distributed.tensor import distribute_tensor

    mesh = dist.device_mesh.init_device_mesh(one_rank, (1,))
    layer = sbt.Float8Linear(64, 32, device=one_rank)
    x = torch.ones(3, 64, device=one_rank)
    with pytest.raises(sb.InvalidArgument, match="input: a DTensor; a layer that tensor paral"):
        layer(distribute_tensor(x, mesh))
    layer.weight = torch.nn.Parameter(distribute_tensor(layer.weight, mesh))
    with pytest.raises(sb.InvalidArgument, match="weight: a DTensor; .* leave it out by filter="):
        layer(x)


def test_nan_and_inf_pass_through() -> None:
    layer = sbt.Float8Linear(32, 16, bias=False, recipe="TORCHAO_ROW")
    x = torch.ones(3, 32)
    x[1, 5] = torch.nan
    y = layer(x)
    assert y[0].isfinite().all() and y[1].isnan().all() and y[2].isfinite().all()


@pytest.mark.parametrize(("call", "message"), [
    (lambda: sbt.Float8Linear(100, 64), "in_features: 100 is no positive multiple of 16, which "
     "scaled_mm needs; leave the layer out by filter=, or give it 112"),
    (lambda: sbt.Float8Linear(64, 64, recipe="TE_DELAYED"), "recipe: TE_DELAYED takes its scales "
     "from earlier steps, which no layer here keeps; pass 'TE_CURRENT'"),
    (lambda: sbt.Float8Linear(64, 64)(torch.ones(3, 32)), r"input: a tensor \[..., 64\] is "
     r"expected; got \[3, 32\]"),
    (lambda: sbt.Float8Linear(64, 64)(torch.tensor(1.0)), r"input: a tensor \[..., 64\]"),
    (lambda: sbt.quantize_activations(torch.ones(32), "TE_CURRENT"),
     r"x: a tensor with two or more axes is expected; got \[32\]; pass x.unsq"),
    (lambda: sbt.Float8Linear(64, 64, dtype=torch.float64)(torch.ones(3, 64)), "w: torch.float64 cannot be quantized"),
    (lambda: sbt.linear_recipe(sb.Recipe(tile=(1, 64))), "scaled_mm has no product for tiles of "
     "1x64, 1x64, 1x64; pass one of these: tensor, tensor, tensor; "),
    (lambda: sbt.linear_recipe(sb.Recipe(tile=(1, 32), scale="mx_rceil")),
     r"activations: scales in fp32; scaled_mm reads e8m0 .*scale_format='e8m0'"),
    (lambda: sbt.LinearRecipe(*3 * [sb.recipes["TE_DELAYED"]]), "activations: TE_DELAYED takes"),
    (lambda: sbt.LinearRecipe(*3 * [sb.recipes["TORCHAO_ROW"]], "e5m2"),
     "gradient_format: 'e5m2' is not one of e4m3, which scaled_mm multiplies with scales per row"),
])
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(sb.InvalidArgument, match=message):
        call()


@pytest.mark.parametrize("wanted", ["x", "weight"])
@pytest.mark.parametrize("loss", ["square", "sum"])
def test_second_derivatives_are_refused(loss: str, wanted: str, device: str) -> None:
    layer = sbt.Float8Linear(32, 16, device=device)
    x = torch.randn(4, 32, device=device, requires_grad=True)
    y = layer(x)
    value = y.square().sum() if loss == "square" else y.sum()
    gradients = torch.autograd.grad(value, [x, layer.weight], create_graph=True)
    assert all(bool(g.isfinite().all()) for g in gradients)  # first derivatives may have a graph
    penalty = sum(g.square().sum() for g in gradients) + x.square().sum()
    penalty = penalty + layer.weight.square().sum()
    with pytest.raises(sb.Unsupported, match="Float8Linear has no second derivative"):
        torch.autograd.grad(penalty, x if wanted == "x" else layer.weight)


def test_second_derivatives_of_the_other_layers_only() -> None:
    """The penalty of a frozen layer's input gradient reaches the layer in front of it."""
    first, second = torch.nn.Linear(32, 32), sbt.Float8Linear(32, 16).requires_grad_(False)
    x = torch.randn(4, 32, requires_grad=True)
    gradient, = torch.autograd.grad(second(first(x)).sum(), x, create_graph=True)
    with pytest.raises(sb.Unsupported, match="Float8Linear has no second derivative"):
        gradient.square().sum().backward()


def test_the_input_is_not_kept_for_second_derivatives() -> None:
    layer = sbt.Float8Linear(32, 16)
    x = torch.randn(4, 32, requires_grad=True) * 1
    data = weakref.ref(x)
    y = layer(x)
    del x
    assert data() is None
    y.sum().backward()
