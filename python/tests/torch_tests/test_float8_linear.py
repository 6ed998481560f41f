"""Float8Linear: forward and backward have the bits of samebits.quantize and samebits.matmul."""

from __future__ import annotations

import copy
import io
import pickle
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

import samebits as sb
import samebits.torch as sbt
from samebits.quantize import QuantizedTensor
from samebits.torch.float8_linear import column_sums

#: The name of a recipe, the tiles of activations and gradients, of weights, the format of
#: gradients; written down here by hand.
RULES = {
    "TE_CURRENT": ((0, 0), (0, 0), "e5m2"),
    "MSAMP": ((0, 0), (0, 0), "e5m2"),
    "TORCHAO_ROW": ((1, 0), (1, 0), "e4m3"),
    "FBGEMM_ROW": ((1, 0), (1, 0), "e4m3"),
    "TE_BLOCK_1D": ((1, 128), (128, 128), "e4m3"),
    "TE_BLOCK_2D": ((1, 128), (128, 128), "e4m3"),
    "DEEPGEMM_UE8M0": ((1, 128), (128, 128), "e4m3"),
    "DEEPGEMM_FP32_CUDA": ((1, 128), (128, 128), "e4m3"),
    "DEEPGEMM_FP32_CPU": ((1, 128), (128, 128), "e4m3"),
    "DSV3_IEEE": ((1, 128), (128, 128), "e4m3"),
    "VLLM_GROUP": ((1, 128), (128, 128), "e4m3"),
    "TORCHAO_BLOCK": ((1, 128), (128, 128), "e4m3"),
    "MXFP8_TE": ((1, 32), (1, 32), "e4m3"),
    "MXFP8_TORCHAO": ((1, 32), (1, 32), "e4m3"),
    "MXFP8_FLOOR": ((1, 32), (1, 32), "e4m3"),
    "MXFP8_CEIL": ((1, 32), (1, 32), "e4m3"),
    "MXFP8_EVEN": ((1, 32), (1, 32), "e4m3"),
}
COVERED = [name for name, (tile, _, _) in RULES.items() if tile != (1, 32)]
FAST = [name for name, (tile, _, _) in RULES.items() if tile in ((0, 0), (1, 0))]
#: Tokens, in, out. K / 128 is a multiple of four and not; tiles are whole and not.
SHAPES = [(64, 512, 256), (77, 272, 144), (16, 128, 64), (131, 640, 400), (1, 96, 80)]
DTYPES = [torch.bfloat16, torch.float16, torch.float32]


def bits(t: torch.Tensor) -> Any:
    """The elements as integers, on the CPU."""
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
    return t.detach().contiguous().view(kinds[t.element_size()]).cpu().numpy()


def assert_same_bits(got: torch.Tensor, expected: torch.Tensor, what: str = "") -> None:
    assert got.dtype == expected.dtype and got.shape == expected.shape, what
    differ = int((bits(got) != bits(expected)).sum())
    assert differ == 0, f"{what}: {differ} of {got.numel()} elements differ"


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

    def __init__(self, shape: tuple[int, int, int], dtype: torch.dtype, bias: bool = True) -> None:
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

    def run(self, recipe: Any, device: str, **options: Any) -> dict[str, torch.Tensor]:
        """y and all gradients of a layer."""
        layer = self.layer(recipe, device, **options)
        x = self.x.to(device).requires_grad_()
        y = layer(x)
        y.backward(self.dy.to(device))
        results = {"y": y, "dx": x.grad, "dw": layer.weight.grad}
        if self.bias is not None:
            results["dbias"] = layer.bias.grad
        return {name: t for name, t in results.items() if t is not None}


def product(a: QuantizedTensor, b: QuantizedTensor, dtype: torch.dtype,
            fast: bool) -> torch.Tensor:
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
    line, square, gradient = RULES[name]

    def rows(x: torch.Tensor, tile: tuple[int, int], to: str = "e4m3") -> QuantizedTensor:
        return sb.quantize(x.contiguous(), name, tile=tile, to=to)

    x, w, dy = case.x, case.w, case.dy
    y = product(rows(x, line), rows(w, square), x.dtype, fast)
    results = {
        "y": y if case.bias is None else y + case.bias,
        "dx": product(rows(dy, line, gradient), rows(w.t(), square), x.dtype, False),
        "dw": product(rows(dy.t(), line, gradient), rows(x.t(), line), w.dtype, False),
    }
    if case.bias is not None:
        results["dbias"] = pairwise(dy).to(w.dtype)
    return results


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


def test_rules_of_every_recipe_are_those_written_here() -> None:
    assert set(sbt.linear_recipe_names()) == set(RULES)
    for name, (line, square, gradient) in RULES.items():
        rules = sbt.linear_recipe(name)
        assert rules.activations.tile == rules.gradients.tile == line
        assert rules.weights.tile == square and rules.gradient_format == gradient
        assert rules.name == name


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cpu_results_are_those_of_quantize_and_matmul(name: str,
                                                      shape: tuple[int, int, int]) -> None:
    case = Case(shape, torch.bfloat16)
    expected = reference(case, name)
    for what, got in case.run(name, "cpu").items():
        assert_same_bits(got, expected[what], what)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("name", ["TE_CURRENT", "TORCHAO_ROW", "DEEPGEMM_FP32_CUDA", "MXFP8_TE"])
def test_cpu_results_in_other_dtypes(name: str, dtype: torch.dtype) -> None:
    case = Case((40, 272, 144), dtype)
    expected = reference(case, name)
    for what, got in case.run(name, "cpu").items():
        assert_same_bits(got, expected[what], what)


@pytest.mark.parametrize("name", FAST)
def test_fast_accumulation_is_for_y_only(name: str) -> None:
    case = Case((64, 1024, 144), torch.float32, bias=False)
    got = case.run(name, "cpu", use_fast_accum=True)
    fast, slow = reference(case, name, fast=True), reference(case, name)
    assert not torch.equal(fast["y"], slow["y"])  # the choice can be seen here
    for what in ("y", "dx", "dw"):
        assert_same_bits(got[what], fast[what], what)


def gpu_is_hopper() -> bool:
    return bool(torch.cuda.get_device_capability() == (9, 0))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, (200, 2304, 384), (512, 768, 1024)], ids=str)
@pytest.mark.parametrize("name", COVERED)
def test_gpu_results_are_those_of_the_cpu(cuda: str, name: str, shape: tuple[int, int, int],
                                          dtype: torch.dtype) -> None:
    if not gpu_is_hopper():
        pytest.skip("not covered: the model is of Hopper's tensor cores")
    assert set(sbt.linear_recipe(name).coverage.values()) == {"covered"}
    case = Case(shape, dtype)
    expected = case.run(name, "cpu")
    for what, got in case.run(name, cuda).items():
        assert_same_bits(got, expected[what].to(cuda), what)


@pytest.mark.parametrize("name", FAST)
def test_gpu_results_with_fast_accumulation(cuda: str, name: str) -> None:
    if not gpu_is_hopper():
        pytest.skip("not covered: the model is of Hopper's tensor cores")
    case = Case((512, 1024, 768), torch.bfloat16)
    expected = case.run(name, "cpu", use_fast_accum=True)
    for what, got in case.run(name, cuda, use_fast_accum=True).items():
        assert_same_bits(got, expected[what].to(cuda), what)


@pytest.mark.parametrize("name", [name for name in RULES if name not in COVERED])
def test_recipes_that_are_not_covered_say_so(cuda: str, name: str) -> None:
    assert all(text.startswith("not covered: ")
               for text in sbt.linear_recipe(name).coverage.values())
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
        assert_same_bits(column_sums(x.to(device)).cpu(), pairwise(x), str(rows))
    assert column_sums(torch.empty((0, 5), device=device)).tolist() == [0.0] * 5


# --- operands -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULES)
def test_quantized_operands_are_those_of_quantize(device: str, name: str) -> None:
    line, square, gradient = RULES[name]
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
            assert_same_bits(operand.codes, expected.codes)
            assert_same_bits(operand.scales, expected.scales)


def test_operands_that_were_not_made_are_refused() -> None:
    q = sbt.quantize_activations(torch.ones(2, 32), "TE_CURRENT")
    with pytest.raises(sb.InvalidArgument, match="transposed: .*without transposed=True"):
        q.transposed
    q = sbt.quantize_weights(torch.ones(2, 32), "TE_CURRENT", direct=False, transposed=True)
    with pytest.raises(sb.InvalidArgument, match="direct: .*pass True"):
        q.direct
    q = sbt.quantize_gradients(torch.ones(2, 32), "TE_CURRENT", direct=False)
    with pytest.raises(sb.InvalidArgument):
        q.direct


@pytest.mark.parametrize(("x", "message"), [
    (torch.ones(2, 32, dtype=torch.float64), r"x: torch.float64 cannot be quantized; pass x.to"),
    (torch.ones(2, 32, dtype=torch.int32), r"x: torch.int32 cannot be quantized"),
    (torch.ones(32), r"x: a tensor with two or more axes is expected; got \[32\]; pass x.unsq"),
])
def test_inputs_that_cannot_be_quantized(x: torch.Tensor, message: str) -> None:
    with pytest.raises(sb.InvalidArgument, match=message):
        sbt.quantize_activations(x, "TE_CURRENT")


# --- the layer ----------------------------------------------------------------------------------


def test_leading_axes_and_strides(device: str) -> None:
    case = Case((24, 96, 80), torch.bfloat16)
    layer = case.layer("TE_BLOCK_1D", device)
    x = case.x.to(device)
    expected = layer(x)
    assert_same_bits(layer(x.reshape(2, 3, 4, 96)), expected.reshape(2, 3, 4, 80))
    assert_same_bits(layer(x.t().contiguous().t()), expected)
    wide = torch.empty((24, 200), dtype=x.dtype, device=device)
    wide[:, :96] = x
    assert_same_bits(layer(wide[:, :96]), expected)
    one = case.layer("TORCHAO_ROW", device)  # a row has a scale of its own
    assert_same_bits(one(x[3]), one(x)[3])


def test_gradients_with_strides(device: str) -> None:
    case = Case((24, 96, 80), torch.float32)
    layer = case.layer("TE_CURRENT", device)
    x = case.x.to(device).requires_grad_()
    layer(x).sum().backward()  # the gradient is expanded: its strides are zero
    ones, expected = Case((24, 96, 80), torch.float32), None
    ones.dy = torch.ones(24, 80)
    expected = reference(ones, "TE_CURRENT")
    assert_same_bits(x.grad.cpu(), expected["dx"])  # type: ignore[union-attr]
    assert_same_bits(layer.weight.grad.cpu(), expected["dw"])  # type: ignore[union-attr]


def test_no_tokens(device: str) -> None:
    layer = sbt.Float8Linear(64, 32, recipe="TE_BLOCK_1D", device=device)
    x = torch.empty((0, 5, 64), device=device, requires_grad=True)
    y = layer(x)
    assert y.shape == (0, 5, 32)
    y.sum().backward()
    assert x.grad is not None and x.grad.shape == x.shape
    assert layer.weight.grad is not None and not layer.weight.grad.any()
    assert layer.bias.grad is not None and not layer.bias.grad.any()


def test_inference_mode(device: str) -> None:
    case = Case((24, 96, 80), torch.bfloat16)
    layer = case.layer("TE_BLOCK_1D", device)
    expected = layer(case.x.to(device))
    with torch.inference_mode():
        assert_same_bits(layer(case.x.to(device)), expected)


def test_results_may_be_written_in_place(device: str) -> None:
    layer = sbt.Float8Linear(64, 32, device=device)
    x = torch.ones((3, 64), device=device, requires_grad=True)
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
    case = Case((24, 96, 80), torch.bfloat16)
    expected = case.run("TE_BLOCK_1D", device)
    layer = case.layer("TE_BLOCK_1D", device)
    x = case.x.to(device).requires_grad_()
    y, dy = layer(x), case.dy.to(device)
    for what, of in (("dw", layer.weight), ("dx", x), ("dbias", layer.bias)):
        got, = torch.autograd.grad(y, [of], dy, retain_graph=True)
        assert_same_bits(got, expected[what], what)
    with pytest.raises(sb.Unsupported, match="Float8Linear has no second derivative"):
        dx, = torch.autograd.grad(y, [x], dy.requires_grad_(), create_graph=True)
        dx.sum().backward()


def test_activation_checkpointing(device: str) -> None:
    from torch.utils.checkpoint import checkpoint

    case = Case((24, 96, 80), torch.bfloat16)
    expected = case.run("TE_BLOCK_1D", device)
    layer = case.layer("TE_BLOCK_1D", device)
    x = case.x.to(device).requires_grad_()
    checkpoint(layer, x, use_reentrant=False).backward(case.dy.to(device))
    assert_same_bits(x.grad, expected["dx"])  # type: ignore[arg-type]
    assert_same_bits(layer.weight.grad, expected["dw"])  # type: ignore[arg-type]


def test_autocast_casts_the_input_and_not_the_weight(device: str) -> None:
    case = Case((24, 96, 80), torch.float32)
    layer = case.layer("TE_CURRENT", device)
    x = case.x.to(device).requires_grad_()
    with torch.autocast(device, torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    y.backward(case.dy.to(device).bfloat16())
    assert x.grad is not None and x.grad.dtype == torch.float32
    assert layer.weight.grad is not None and layer.weight.grad.dtype == torch.float32
    mixed = copy.copy(case)
    mixed.x, mixed.dy = case.x.bfloat16(), case.dy.bfloat16()
    assert mixed.bias is not None
    mixed.bias = mixed.bias.bfloat16()
    expected = reference(mixed, "TE_CURRENT")
    assert_same_bits(y.cpu(), expected["y"])
    assert_same_bits(x.grad.cpu(), expected["dx"].float())
    assert_same_bits(layer.weight.grad.cpu(), expected["dw"])


def test_compile_runs_the_layer_outside_its_graphs(device: str) -> None:
    case = Case((24, 96, 80), torch.bfloat16)
    expected = case.run("TE_CURRENT", device)
    layer = case.layer("TE_CURRENT", device)
    compiled = torch.compile(torch.nn.Sequential(layer, torch.nn.Identity()), backend="aot_eager")
    x = case.x.to(device).requires_grad_()
    y = compiled(x)
    y.backward(case.dy.to(device))
    assert_same_bits(y, expected["y"])
    assert_same_bits(x.grad, expected["dx"])  # type: ignore[arg-type]
    assert_same_bits(layer.weight.grad, expected["dw"])  # type: ignore[arg-type]
    torch.compiler.reset()
    with pytest.raises(Exception, match="marked as skipped|disable"):
        torch.compile(layer, backend="aot_eager", fullgraph=True)(x)
    torch.compiler.reset()


def test_copies_and_pickles(device: str) -> None:
    case = Case((24, 96, 80), torch.bfloat16)
    layer = case.layer("TORCHAO_ROW", device, use_fast_accum=True)
    x = case.x.to(device)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), loaded):
        assert other.weight is not layer.weight and other.recipe == layer.recipe
        assert_same_bits(other(x), layer(x))


@pytest.fixture
def one_rank(device: str) -> Iterator[str]:
    """A process group of this process alone."""
    if not dist.is_available():
        pytest.skip("this torch has no torch.distributed")
    backend = "nccl" if device == "cuda" else "gloo"
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    yield device
    dist.destroy_process_group()


def test_fsdp_shards_converted_layers(one_rank: str) -> None:
    from torch.distributed.fsdp import fully_shard

    case = Case((24, 96, 80), torch.bfloat16)
    expected = case.run("TE_BLOCK_1D", one_rank)
    layer = fully_shard(case.layer("TE_BLOCK_1D", one_rank),
                        mesh=dist.device_mesh.init_device_mesh(one_rank, (1,)))
    x = case.x.to(one_rank).requires_grad_()
    y = layer(x)
    y.backward(case.dy.to(one_rank))
    assert_same_bits(y, expected["y"])
    assert_same_bits(x.grad, expected["dx"])  # type: ignore[arg-type]
    assert_same_bits(layer.weight.grad.full_tensor(), expected["dw"])


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


def test_training_reduces_the_loss(device: str) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 16))
    model = sbt.convert_linears(model.to(device), "TE_BLOCK_1D")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x = torch.randn(128, 32).to(device)
    target = torch.sin(x[:, :16])
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_nan_and_inf_pass_through() -> None:
    layer = sbt.Float8Linear(32, 16, bias=False, recipe="TORCHAO_ROW")
    x = torch.ones(3, 32)
    x[1, 5] = torch.nan
    y = layer(x)
    assert y[0].isfinite().all() and y[1].isnan().all() and y[2].isfinite().all()


@pytest.mark.parametrize(("call", "message"), [
    (lambda: sbt.Float8Linear(100, 64), "in_features: 100 is no positive multiple of 16, which "
     "scaled_mm needs; leave the layer out by filter=, or give it 112"),
    (lambda: sbt.Float8Linear(64, 10), "out_features: 10 is no positive multiple of 16"),
    (lambda: sbt.Float8Linear(64, 64, recipe="TE_CURENT"), "recipe: 'TE_CURENT' is not one of "
     "TE_CURRENT"),
    (lambda: sbt.Float8Linear(64, 64, recipe="TE_DELAYED"), "recipe: TE_DELAYED takes its scales "
     "from earlier steps, which no layer here keeps; pass 'TE_CURRENT'"),
    (lambda: sbt.Float8Linear(64, 64, recipe="TE_BLOCK_1D", use_fast_accum=True),
     "use_fast_accum: TE_BLOCK_1D has scales along the sum, where cuBLASLt has no fast"),
    (lambda: sbt.Float8Linear(64, 64)(torch.ones(3, 32)), r"input: a tensor \[..., 64\] is "
     r"expected; got \[3, 32\]"),
    (lambda: sbt.Float8Linear(64, 64)(torch.tensor(1.0)), r"input: a tensor \[..., 64\]"),
    (lambda: sbt.Float8Linear(64, 64, dtype=torch.float64)(torch.ones(3, 64)),
     "w: torch.float64 cannot be quantized"),
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


def test_a_recipe_of_a_wrong_type() -> None:
    with pytest.raises(TypeError, match="recipe: a name, a Recipe or a LinearRecipe is expected; "
                                        "got a int"):
        sbt.linear_recipe(3)  # type: ignore[arg-type]
    assert sbt.linear_recipe("te_current") == sbt.linear_recipe("TE_CURRENT")


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
