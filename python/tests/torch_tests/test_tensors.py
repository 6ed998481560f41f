"""Torch tensors as arguments and results: layouts, devices, streams, graphs and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import samebits as sb
import samebits.torch as sbt
from tensors import DTYPES, bits, numbers, on_cpu, same

FORMATS = [*DTYPES, "tf32", "e3m2", "e2m3", "e2m1"]


def codes_of(name: str, shape: tuple[int, ...]) -> Any:
    """Return random codes of a format, special values included, as unsigned integers."""
    codes = np.random.default_rng(11).integers(0, 1 << sb.finfo(name).bits, (3, *shape), np.uint64)
    return (codes << np.uint64(13 * (name == "tf32"))).astype(f"u{sb.dtype_of(name).itemsize}")


def holds(got: torch.Tensor, expected: Any) -> bool:
    """Return whether a tensor has the bits of a NumPy array."""
    return np.array_equal(bits(got).numpy(), np.asarray(expected).view(f"u{expected.dtype.itemsize}"))


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
def test_every_format(device: str, source: str, to: str) -> None:
    """Of typed tensors, and of codes in unsigned integers."""
    codes = codes_of(source, (37, 53))[0]
    expected, x = sb.convert(codes, to, format=source), torch.from_numpy(codes).to(device)
    for given in (x, x.view(DTYPES[source])) if source in DTYPES else (x,):
        got = sb.convert(given, to, format=source)
        assert got.device == x.device and holds(got, expected)
        assert got.dtype == DTYPES.get(to, got.dtype)


@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16", "e4m3", "e5m2"])
def test_arithmetic(device: str, name: str) -> None:
    operands = codes_of(name, (5000,))
    for count, operations in ((1, (sb.sqrt, sb.rint)), (3, (sb.fma,)), (2, (
            sb.add, sb.subtract, sb.multiply, sb.divide, sb.remainder, sb.minimum, sb.maximum, sb.fmin, sb.fmax))):
        for operation in operations:
            host = operation(*operands[:count], format=name)
            got = operation(*(torch.from_numpy(x).to(device) for x in operands[:count]), format=name)
            assert holds(got.value, host.value) and got.flags == host.flags, operation


@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16"])
def test_lists_and_reductions(device: str, name: str) -> None:
    given = [numbers(name, (5000,), device, seed) for seed in range(3)]
    host = [sbt.to_numpy(x.cpu()).copy() for x in given]
    assert repr(sb.inspect(given)) == repr(sb.inspect(host)) and sb.l2norm(given) == sb.l2norm(host)
    for x, y in zip(given, host, strict=True):
        for reduction in (sb.amax, sb.sum, sb.sum_of_squares, sb.counts):
            assert reduction(x) == reduction(y)
    assert repr(sb.unscale(given, 0.125)) == repr(sb.unscale(host, 0.125))
    sb.scale(given, 3.0)
    sb.scale(host, 3.0)
    assert repr(sb.clip(given, 1.0)) == repr(sb.clip(host, 1.0))
    assert all(holds(x, y) for x, y in zip(given, host, strict=True))


LAYOUTS = {
    "transposed": lambda x: x.T,
    "every second row": lambda x: x[::2],
    "every second column": lambda x: x[:, 1::2],
    "one column": lambda x: x[:, 3],
    "expanded": lambda x: x[:, :1].expand(-1, 9),
    "three axes": lambda x: x.view(4, 8, 16).permute(2, 0, 1),
    "scalar": lambda x: x[0, 0],
    "empty": lambda x: x[:0],
    "one row of many": lambda x: x[5:6],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rounding", ["nearest_even", "stochastic"])
def test_layouts(device: str, layout: str, rounding: str) -> None:
    x = LAYOUTS[layout](numbers("fp32", (32, 16), device))
    assert same(sb.convert(x, "bf16", rounding=rounding, seed=5), on_cpu(x, "bf16", rounding=rounding, seed=5))


@pytest.mark.parametrize("book", ["nf4", "fp4", "dynamic8"])
@pytest.mark.parametrize("double", [False, True])
def test_codebooks_are_those_of_arrays(device: str, book: str, double: bool) -> None:
    x = numbers("bf16", (67, 301), device)
    q = sb.quantize_blocks(x, book, double=double)
    expected = sb.quantize_blocks(sbt.to_numpy(x.cpu()), book, double=double)
    assert q.codes.device == x.device and q.offset == expected.offset
    assert np.array_equal(q.codes.cpu().numpy(), expected.codes)
    assert np.array_equal(q.absmaxes().cpu().numpy(), expected.absmaxes(), equal_nan=True)
    for to in ("fp32", "fp16", "bf16"):
        out = torch.empty_like(x, dtype=DTYPES[to])
        assert q.dequantize(to, out=out) is out
        assert same(out, torch.from_numpy(expected.dequantize().copy()).to(DTYPES[to]))
        assert same(q.dequantize(to), out)
    if double:
        with pytest.raises(sb.InvalidArgument, match="current stream"):
            sb.quantize_blocks(x, book, double=True, stream=0)


def test_parameters_and_inference_tensors(device: str) -> None:
    p = torch.nn.Parameter(numbers("fp32", (8, 8), device))
    assert same(sb.convert(p, torch.bfloat16), on_cpu(p, "bf16"))
    assert sb.format_name(torch.bfloat16) == "bf16"
    assert sb.inspect({"w": p}).tensors["w"].amax == float(p.detach().abs().max())
    with torch.inference_mode():
        y = torch.empty(8, 8, dtype=torch.bfloat16, device=device)
        sb.convert(p, "bf16", out=y)
        assert same(y, on_cpu(p, "bf16"))


def test_autograd_notices_what_a_call_overwrote(device: str) -> None:
    w = torch.ones(4, device=device, requires_grad=True)
    x = torch.ones(4, device=device)
    y = w * x
    sb.convert(torch.zeros(4, device=device), "fp32", out=x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = w * x
    sb.scale([x], 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_tensors_whose_memory_is_not_their_elements(device: str) -> None:
    z = torch.randn(4, dtype=torch.complex64, device=device)
    refused: list[tuple[Any, str]] = [
        (z.conj().imag, r"x: a torch tensor with the negative bit set; pass x.resolve_neg\(\)"),
        (torch.eye(3, device=device).to_sparse(), r"sparse torch tensor; pass x.to_dense\(\)"),
        (torch.empty(3, device="meta"), "on the device meta has no data"),
    ]
    for x, message in refused:
        with pytest.raises(sb.InvalidArgument, match=message):
            sb.convert(x, "bf16")
    with torch._subclasses.FakeTensorMode():
        fake = torch.empty(3)
    with pytest.raises(sb.InvalidArgument, match="a FakeTensor wraps other tensors"):
        sb.convert(fake, "bf16")


def test_numpy_and_back() -> None:
    for dtype in DTYPES.values():
        x = torch.arange(6, dtype=torch.float32).reshape(2, 3).to(dtype)
        a = sbt.to_numpy(x)
        assert a.shape == (2, 3) and a.__array_interface__["data"][0] == x.data_ptr()
        assert same(sbt.from_numpy(a), x)
    x = torch.ones(4, 6, dtype=torch.bfloat16).T[::2]
    assert sbt.to_numpy(x).strides == (4, 12)
    with pytest.raises(sb.InvalidArgument, match="torch has no dtype"):
        sbt.from_numpy(sb.convert(np.ones(3, np.float32), "e3m2"))
    with pytest.raises(TypeError, match="a NumPy array is expected; got a list"):
        sbt.from_numpy([1.0])  # type: ignore[arg-type]


def test_a_gpu_tensor_is_not_copied_silently(cuda: str) -> None:
    with pytest.raises(sb.InvalidArgument, match=r"pass x.cpu\(\)"):
        sbt.to_numpy(torch.ones(3, device=cuda))
    with pytest.raises(sb.InvalidArgument):
        sb.convert(torch.ones(3, device=cuda), "bf16", out=np.empty(3, np.uint16), format="fp32")
    with pytest.raises(sb.InvalidArgument, match="must lie in the same memory as out"):
        sb.add(torch.ones(4, device=cuda), np.ones(4, np.float32))


def test_side_stream(cuda: str) -> None:
    x = torch.zeros(1 << 20, device=cuda)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)  # clock cycles: a call on another stream would read zeros
        x.fill_(3.0)
        y, z = sb.convert(x, "bf16"), sb.convert(x, "bf16", stream=side)
        q = sb.quantize(x.view(1024, 1024), "TE_CURRENT")
        f = sb.functions.relu(x, rule="torch_2_11")
    side.synchronize()
    assert all(bool((result == 3.0).all()) for result in (y, z, q.dequantize(), f))


def test_graph_replay(cuda: str) -> None:
    sb.initialize("cuda-native")
    x = numbers("fp32", (256, 256), cuda)
    static = torch.zeros_like(x)
    sb.quantize(static, "TE_CURRENT", transposed=True)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = sbt.convert(static, "e4m3", overflow="saturate")
        q = sbt.quantize(static, "TE_CURRENT", transposed=True)
        back = q.dequantize("bf16")
    for seed in range(3):
        x = numbers("fp32", (256, 256), cuda, seed)
        static.copy_(x)
        graph.replay()
        eager = sb.quantize(x, "TE_CURRENT", transposed=True)
        assert same(y, on_cpu(x, "e4m3", overflow="saturate"))
        assert same(q.codes, eager.codes) and same(q.scales, eager.scales)
        assert same(q.codes_transposed, eager.codes_transposed)
        assert same(back, eager.dequantize("bf16"))


def test_second_device(cuda: str) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    x = numbers("fp32", (64, 128), "cuda:1")
    assert torch.cuda.current_device() == 0
    y = sb.convert(x, "bf16")
    q = sb.quantize(x, "TE_CURRENT")
    assert y.device == q.codes.device == x.device and torch.cuda.current_device() == 0
    assert same(y, on_cpu(x, "bf16"))
    assert same(q.codes, sb.quantize(x.cpu(), "TE_CURRENT").codes)
    with torch.cuda.device(1):
        assert same(sb.convert(x, "bf16"), y)
    with pytest.raises(sb.InvalidArgument, match="out: lies on device 0, arguments before it on"):
        sb.convert(x, "bf16", out=torch.empty(64, 128, dtype=torch.bfloat16, device="cuda:0"))


RECIPES = [name for name, r in sb.recipes.items() if r.source == "current"]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("source", ["fp32", "bf16"])
def test_quantize_by_every_recipe(device: str, recipe: str, source: str) -> None:
    x = numbers(source, (96, 320), device)
    got = sb.quantize(x, recipe, transposed=True)
    expected = sb.quantize(sbt.to_numpy(x.cpu()), recipe, transposed=True)
    narrow = got.recipe.code_format != "e4m3"  # torch has no dtype for one code a byte

    def tensor(a: Any, codes: bool) -> torch.Tensor:
        return torch.from_numpy(a.view(np.uint8)) if narrow and codes else sbt.from_numpy(a)

    for name in ("codes", "scales", "codes_transposed", "scales_transposed"):
        assert same(getattr(got, name), tensor(getattr(expected, name), "codes" in name)), name
    if expected.tensor_scale is not None:
        assert same(got.tensor_scale, sbt.from_numpy(expected.tensor_scale))
    for to in ("fp32", "fp16", "bf16"):
        assert same(got.dequantize(to), sbt.from_numpy(expected.dequantize(to)))
        assert same(got.transposed.dequantize(to), sbt.from_numpy(expected.transposed.dequantize(to)))
