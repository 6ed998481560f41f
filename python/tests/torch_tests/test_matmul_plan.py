"""Planned products on a GPU, against `samebits.matmul` on the CPU; what is refused needs no GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import samebits as sb
import samebits.torch as sbt

gpu = pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] != 9,
                         reason="needs a Hopper GPU")


def operands(dtype: torch.dtype, m: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(k)
    a, w = torch.randn(m, k, generator=draw), torch.randn(n, k, generator=draw)
    return a.to(dtype).cuda(), w.to(dtype).cuda().t()


@gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn])
def test_the_cpu_returns_the_same_bits(dtype: torch.dtype) -> None:
    a, b = operands(dtype, 96, 256, 1040)
    plan = sbt.MatmulPlan(a, b)
    y = plan(a, b)
    wanted = sb.matmul(a.cpu(), b.cpu(), rule=plan.rule, out=torch.empty(y.shape, dtype=y.dtype))
    assert torch.equal(y.cpu().view(torch.int16), wanted.view(torch.int16))
    assert "cuBLASLt" in plan.algorithm
    assert torch.equal(plan(a, b, out=torch.empty_like(y)), y)


@gpu
def test_a_recipes_scales_are_those_of_a_linear_layer() -> None:
    """Codes and scales of 1 x 128 and 128 x 128, which scaled_mm multiplies too."""
    draw = torch.Generator().manual_seed(1)
    x, w = torch.randn(256, 512, generator=draw), torch.randn(384, 512, generator=draw)
    a = sb.quantize(x.numpy(), tile=(1, 128))
    b = sb.quantize(w.numpy(), tile=(128, 128))
    a_codes, b_codes = (torch.from_numpy(q.codes.view("uint8")).view(torch.float8_e4m3fn).cuda() for q in (a, b))
    a_scales = torch.from_numpy(a.scales).cuda().t().contiguous().t()
    b_scales = torch.from_numpy(b.scales).cuda()
    given: Any = {"a_scales": a_scales, "b_scales": b_scales.t()}
    plan = sbt.MatmulPlan(a_codes, b_codes.t(), a_tile=(1, 128), b_tile=(128, 128), **given)
    y = plan(a_codes, b_codes.t(), **given)
    wanted = sb.matmul(a_codes.cpu(), b_codes.t().cpu(), rule=plan.rule, a_scales=a.scales, a_tile=(1, 128),
                       b_scales=b.scales.T, b_tile=(128, 128), out=torch.empty(y.shape, dtype=y.dtype))
    assert torch.equal(y.cpu().view(torch.int16), wanted.view(torch.int16))


@gpu
def test_a_graph_replays_a_plan_that_was_made_before() -> None:
    a, b = operands(torch.bfloat16, 64, 128, 512)
    plan = sbt.MatmulPlan(a, b)
    wanted, graph = plan(a, b), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = plan(a, b)
        with pytest.raises(sb.InvalidArgument, match="captured"):
            sbt.MatmulPlan(a, b)
    graph.replay()
    assert torch.equal(y, wanted)


@gpu
def test_other_shapes_than_the_plans_are_refused() -> None:
    a, b = operands(torch.bfloat16, 64, 128, 512)
    with pytest.raises(sb.InvalidArgument, match="^a: "):
        sbt.MatmulPlan(a, b)(a[1:], b)


def test_a_cpu_has_no_plans() -> None:
    a = torch.zeros(8, 16, dtype=torch.bfloat16)
    with pytest.raises(sb.InvalidArgument, match="^a: must lie in device memory"):
        sbt.MatmulPlan(a, a.t())


@pytest.mark.parametrize("given, message", [
    ({"fast_accumulation": True}, "^fast_accumulation: needs FP8"),
    ({"a_scales": torch.ones(1, 1)}, "a_scales, b_scales: must be given"),
    ({"out_dtype": torch.float16}, "^out_dtype: format must be fp32")])
def test_what_has_no_product_is_refused(given: dict[str, Any], message: str) -> None:
    a = torch.zeros(8, 16, dtype=torch.bfloat16)
    with pytest.raises(sb.InvalidArgument, match=message):
        sbt.MatmulPlan(a, a.t(), **given)
