"""convert, quantize and dequantize of samebits.torch: gradients, torch.compile, opcheck."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import samebits as sb
import samebits.torch as sbt
from samebits.torch.quantize import _text_of
from tensors import numbers, on_cpu, same

CONVERT = (None, "nearest_even", "ieee", "canonical", 0, 0, 0, None, 32)
QUANTIZE = (None, "nearest_even", "canonical", 0, 0, 0, None, 32)


def test_the_gradient_passes_straight_through(device: str) -> None:
    x = numbers("bf16", (8, 128), device).requires_grad_()
    weight = numbers("fp32", (8, 128), device, seed=1)
    for call in (lambda: sbt.convert(x, "fp32"), lambda: sbt.quantize(x, "TE_CURRENT").dequantize("fp32"),
                 lambda: sbt.quantize(x, "TE_CURRENT").dequantize("fp32", threads=1),
                 lambda: sbt.convert(sbt.fake_quantize(x, "TE_CURRENT"), "fp32")):
        x.grad = None
        (call() * weight).sum().backward()
        assert x.grad is not None and same(x.grad, on_cpu(weight, "bf16"))


def test_the_gradient_of_codes_in_fp8_is_rounded_by_torch_into_fp8(device: str) -> None:
    x = torch.ones(4, device=device, requires_grad=True)
    (sbt.convert(sbt.convert(x, "e5m2"), "fp32") * 1.1).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0] * 4  # 1.1 in e5m2


def test_a_result_is_written_where_the_caller_wants_it(device: str) -> None:
    q, out = sbt.quantize(numbers("fp32", (4, 128), device), "TE_CURRENT"), torch.empty(4, 128)
    out = out.to(device)
    assert sbt.dequantize(q.codes, q.scales, tile=(0, 0), out=out, threads=1) is out
    assert same(out, q.dequantize())


def test_nothing_is_recorded_without_grad_mode(device: str) -> None:
    x = torch.ones(4, device=device, requires_grad=True)
    with torch.no_grad():
        assert not sbt.convert(x, "bf16").requires_grad
        assert sbt.quantize(x.view(1, 4), "TE_CURRENT").source is None
    assert not sb.convert(x, "bf16").requires_grad
    assert not sbt.convert(x, "e3m2").requires_grad  # codes in unsigned integers


def test_a_quantized_tensor_keeps_no_copy_of_its_source(device: str) -> None:
    q = sbt.quantize(torch.ones(64, 128, device=device, requires_grad=True), "TE_CURRENT")
    assert q.source is not None and q.source.untyped_storage().nbytes() == 4


OPERATORS: dict[str, Callable[[str], tuple[Any, tuple[Any, ...]]]] = {
    "convert": lambda d: (torch.ops.samebits.convert_v1, (numbers("fp32", (5, 7), d), "bf16", *CONVERT)),
    "convert, gradient": lambda d: (torch.ops.samebits.convert_v1, (
        numbers("fp32", (5, 7), d).requires_grad_(), "bf16", *CONVERT)),
    "convert, strided": lambda d: (torch.ops.samebits.convert_v1, (
        numbers("bf16", (6, 8), d).T[::2], "e4m3", None, "stochastic", "saturate",
        "preserve_sign", 1, 2, 3, None, 16)),
    "quantize": lambda d: (torch.ops.samebits.quantize_v1, (
        numbers("fp32", (32, 256), d), None, _text_of(sb.recipes["TE_CURRENT"]), "e4m3",
        *QUANTIZE)),
    "quantize, both": lambda d: (torch.ops.samebits.quantize_both_v1, (
        numbers("bf16", (32, 256), d), None, _text_of(sb.recipes["DSV3_IEEE"]), "e4m3",
        *QUANTIZE)),
    "dequantize": lambda d: (torch.ops.samebits.dequantize_v1, (
        # torch's schema check multiplies its inputs, which it cannot do with FP8 dtypes
        torch.full((4, 256), 0x38, dtype=torch.uint8, device=d), torch.ones(4, 2, device=d),
        "bf16", 1, 128, "e4m3", None)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_opcheck(device: str, name: str) -> None:
    operator, arguments = OPERATORS[name](device)
    torch.library.opcheck(operator.default, arguments)


def chain(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A function of every operator."""
    y = sbt.convert(x * 2, torch.bfloat16)
    r = sbt.convert(x, "e5m2", overflow="saturate", rounding="stochastic", seed=3)
    q = sbt.quantize(y, "DSV3_IEEE", transposed=True)
    s = sbt.quantize(x, tile=(1, 128), scale="pow2", to="e5m2")
    return (y, r, q.codes, q.scales, q.codes_transposed, q.scales_transposed,
            q.dequantize("bf16") + 1, s.dequantize(), sbt.fake_quantize(y, "TE_CURRENT"))


@pytest.mark.parametrize("options", [{"mode": "default"}, {"mode": "reduce-overhead"}, {"dynamic": True}], ids=str)
def test_compiled_calls_give_the_bits_of_eager_calls(device: str, options: dict[str, Any]) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(chain, fullgraph=True, **options)
    for rows in (64, 32, 96, 7) if "dynamic" in options else (64, 64):
        x = numbers("fp32", (rows, 256), device, rows)
        for got, expected in zip(compiled(x), chain(x), strict=True):
            assert same(got, expected)


def test_compiled_gradients(device: str) -> None:
    torch._dynamo.reset()

    def loss(x: torch.Tensor) -> torch.Tensor:
        return (sbt.quantize(sbt.convert(x, "bf16"), "TE_CURRENT").dequantize() * x).sum()

    x = numbers("fp32", (16, 128), device).requires_grad_()
    loss(x).backward()
    eager, x.grad = x.grad, None
    torch.compile(loss, fullgraph=True)(x).backward()
    assert eager is not None and x.grad is not None and same(x.grad, eager)


def test_what_compiled_calls_refuse(device: str) -> None:
    with torch._subclasses.FakeTensorMode():
        x = torch.empty(3, 4, device=device)
        q = sbt.quantize(x, "TE_CURRENT", statistics=False)
        assert sbt.convert(x, "bf16").dtype == torch.bfloat16 and q.scales.shape == (1, 1)
        stochastic: dict[str, Any] = {"rounding": "stochastic"}
        for call, kind, message in (
                (lambda: sbt.convert(x, "bf16", threads=2), sb.InvalidArgument, "threads: not supported by compiled calls"),
                (lambda: sbt.convert(x, "bf16", roundin="stochastic"), TypeError, "unexpected keyword argument 'roundin'"),
                (lambda: sbt.quantize(x, "TE_CURRENT", statistics=True), sb.InvalidArgument,
                 "statistics: not supported by compiled"),
                (lambda: q.dequantize(threads=2), sb.InvalidArgument, "threads: not supported by compiled calls"),
                (lambda: sbt.dequantize(q.codes, q.scales, til=(0, 0)), TypeError,
                 "dequantize.. got an unexpected keyword argument 'til'"),
                (lambda: sbt.convert(x, "bf16", **stochastic), sb.InvalidArgument, "seed: stochastic rounding needs a seed"),
                (lambda: sbt.quantize(x, "TE_CURRENT", **stochastic), sb.InvalidArgument, "seed: stochastic rounding needs")):
            with pytest.raises(kind, match=message):
                call()
        sbt.convert(x, "bf16", seed=0, **stochastic), sbt.quantize(x, "TE_CURRENT", seed=0, **stochastic)


def test_a_distributed_tensor_is_converted_shard_by_shard(one_rank: str) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    x = distribute_tensor(numbers("fp32", (8, 16), one_rank), init_device_mesh(one_rank, (1,)), [Shard(0)])
    y = sbt.convert(x, "bf16")
    assert y.placements == x.placements and same(y.to_local(), on_cpu(x.to_local(), "bf16"))
    with pytest.raises(sb.InvalidArgument, match=r"DTensor .*pass x.to_local\(\)"):
        sb.convert(x, "bf16")
    with pytest.raises(sb.InvalidArgument, match="without stochastic rounding"):
        sbt.convert(x, "bf16", rounding="stochastic")


def test_stochastic_rounding_needs_a_seed(device: str) -> None:
    for gradient in (False, True):
        x = torch.ones(3, 4, device=device, requires_grad=gradient)
        for call in (sbt.convert, sbt.fake_quantize, sbt.quantize):
            to = "bf16" if call is sbt.convert else "TE_CURRENT"
            with pytest.raises(sb.InvalidArgument, match="seed: stochastic rounding needs a seed"):
                call(x, to, rounding="stochastic")  # type: ignore[operator]
