"""`samebits.torch.recompute`: the rules that a recorder compared with a GPU, found by operator."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import samebits
import samebits.torch as sbt
from samebits import functions
from samebits.torch import optim

RULE: Any = {"rule": "torch_2_11"}
aten = torch.ops.aten


def test_norms_over_several_axes_take_and_give_parameters_in_their_shape() -> None:
    x, grad, (weight, bias) = torch.randn(5, 6, 8), torch.randn(5, 6, 8), torch.randn(2, 6, 8)
    rows, grads = x.reshape(5, 48), grad.reshape(5, 48)
    y, mean, rstd = sbt.recompute("aten.native_layer_norm.default", (x, [6, 8], weight, bias, 1e-5))
    assert torch.equal(y.reshape(5, 48), functions.layer_norm(rows, weight.reshape(48), bias.reshape(48), **RULE).out)
    got = sbt.recompute("aten.native_layer_norm_backward.default",
                        (grad, x, [6, 8], mean, rstd, weight, bias, [True, True, True]))
    expected = functions.norm_parameter_gradients(grads, rows, rstd.reshape(5, 1), mean.reshape(5, 1), **RULE)
    assert torch.equal(got[1], expected.weight.reshape(6, 8)) and torch.equal(got[2], expected.bias.reshape(6, 8))


def test_parameters_that_are_not_aligned_choose_the_kernel_of_layer_norm() -> None:
    x, parameters = torch.randn(5, 96), torch.randn(97)
    for weight, offset in ((parameters[:96], 0), (parameters[1:], 1)):
        y, *_ = sbt.recompute("aten.native_layer_norm.default", (x, [96], weight, None, 1e-5))
        assert torch.equal(y, functions.layer_norm(x, weight, offset=offset, **RULE).out)
        assert not torch.equal(y, functions.layer_norm(x, weight, offset=1 - offset, **RULE).out)


def test_log_softmax_of_a_gradient_that_begins_anywhere() -> None:
    """The gradient's offset decides the order of the sums of wide rows."""
    y, numbers = torch.randn(3, 2050).log_softmax(-1), torch.randn(6154)
    for offset in (1, 3):
        grad = numbers[offset: offset + 6150].view(3, 2050)
        dx = sbt.recompute("aten._log_softmax_backward_data.default", (grad, y, 1, torch.float32))
        assert torch.equal(dx, functions.log_softmax_gradient(grad, y, offset=offset, **RULE))
        assert not torch.equal(dx, functions.log_softmax_gradient(grad, y, **RULE))


def test_log_softmax_of_fp16_with_a_result_in_fp32() -> None:
    x, grad = torch.randn(3, 1000).half(), torch.randn(3, 1000)
    y = sbt.recompute("aten._log_softmax.default", (x, 1, True))
    assert torch.equal(y, functions.log_softmax(x.float(), **RULE))
    dx = sbt.recompute("aten._log_softmax_backward_data.default", (grad, y, 1, torch.float16))
    assert torch.equal(dx, functions.log_softmax_gradient(grad, y, **RULE).half())
    with pytest.raises(samebits.Unsupported, match="of more than 1024"):
        sbt.recompute("aten._log_softmax.default", (torch.zeros(1, 1025).half(), 1, True))


@pytest.mark.parametrize("kernel", ["flash", "cudnn"])
def test_attention(kernel: Any) -> None:
    q, k, v, grad = (torch.randn(1, 2, 65, 64).to(torch.bfloat16) for _ in range(4))
    name = f"aten._scaled_dot_product_{kernel}_attention"
    how = sbt.Conditions(deterministic=True)
    options: Any = {"kernel": kernel, "causal": True}
    expected = functions.attention(q, k, v, **options)
    if kernel == "flash":
        out, lse = sbt.recompute(f"{name}.default", (q, k, v, 0.0, True), {}, how)
        rest: tuple[Any, ...] = (None, None, 65, 65, 0.0, True, None, None)
    else:
        out, lse = sbt.recompute(f"{name}.default", (q, k, v, None, True, 0.0, True), {}, how)
        rest = (None, None, None, None, None, 65, 65, 0.0, True)
    assert torch.equal(out, expected.out) and torch.equal(lse.reshape(1, 2, 65), expected.lse)
    got = sbt.recompute(f"{name}_backward.default", (grad, q, k, v, out, lse, *rest), {}, how)
    for a, b in zip(got, functions.attention_backward(grad, q, k, v, *expected, **options), strict=True):
        assert torch.equal(a, b)


def test_loss_scale_as_pytorch_computes_it() -> None:
    """PyTorch's CPU kernels of these operators round as its CUDA kernels do."""
    for found, tracker, scale in ((0.0, 0, 65536.0), (0.0, 1, 65536.0), (1.0, 1, 3.0), (0.0, 1, 2.0**127)):
        args = [torch.tensor(scale), torch.tensor(tracker, dtype=torch.int32), torch.tensor(found)]
        ours, theirs = [x.clone() for x in args], [x.clone() for x in args]
        sbt.recompute("aten._amp_update_scale_.default", (*ours, 2.1, 0.3, 2))
        aten._amp_update_scale_(*theirs, 2.1, 0.3, 2)
        assert [x.item() for x in ours] == [x.item() for x in theirs]
    for value in (1.0, torch.inf, torch.nan):
        grads = [torch.tensor([0.1, value, 3e-40]), torch.randn(7)]
        ours, theirs = [x.clone() for x in grads], [x.clone() for x in grads]
        found_ours, found_theirs, inverse = torch.zeros(()), torch.zeros(()), torch.tensor(1 / 3)
        sbt.recompute("aten._amp_foreach_non_finite_check_and_unscale_.default", (ours, found_ours, inverse))
        aten._amp_foreach_non_finite_check_and_unscale_(theirs, found_theirs, inverse)
        assert found_ours.item() == found_theirs.item()
        for a, b in zip(ours, theirs, strict=True):
            assert torch.equal(a.nan_to_num(), b.nan_to_num())


def adam(name: str, params: Any, grads: Any, moments: Any, step: float, **given: Any) -> None:
    sbt.recompute(f"aten._fused_{name}_.default", (params, grads, *moments, [], [torch.tensor(step)] * len(params)), {
        "lr": 0.01, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": False, "maximize": False,
        **given})


@pytest.mark.parametrize("name, kind", [("adamw", optim.AdamW), ("adam", optim.Adam)])
def test_fused_adam_is_the_optimizer_of_the_library(name: str, kind: Any) -> None:
    w, g = torch.randn(1000), torch.randn(3, 1000)
    ours, theirs, moments = torch.nn.Parameter(w.clone()), w.clone(), ([torch.zeros(1000)], [torch.zeros(1000)])
    library = kind([ours], lr=0.01, weight_decay=0.1, profile="torch_fused")
    for step in range(3):
        ours.grad = g[step].clone()
        library.step()
        adam(name, [theirs], [g[step] * 4], moments, step + 1.0, grad_scale=torch.tensor(4.0), found_inf=torch.tensor(0.0))
        assert torch.equal(ours.detach(), theirs)
    adam(name, [theirs], [g[0]], moments, 4.0, found_inf=torch.tensor(1.0))
    half = w.to(torch.bfloat16)
    with pytest.raises(samebits.Unsupported, match="contiguous ones in fp32"):
        adam(name, [theirs, half], [g[0], half], ([*moments[0], half], [*moments[1], half]), 4.0)
    assert torch.equal(ours.detach(), theirs)  # nothing was written


def test_scalars_of_lists_and_large_weights() -> None:
    x, y, z = (torch.tensor([n, 1.0]) for n in (1.0, 2.0, 4.0))
    got = sbt.recompute("aten._foreach_addcdiv.Tensor", ([x, x], [y, y], [z, z], torch.tensor([2.0, 6.0])))
    assert [t.tolist() for t in got] == [[2.0, 3.0], [4.0, 7.0]]
    got = sbt.recompute("aten.lerp.Scalar", (x, y, -1.25))
    assert got.tolist() == [-0.25, 1.0]  # y - (y - x) * 2.25
    odd, end = torch.rand(100), torch.rand(100)
    weight = torch.tensor(-1.3)
    expected = samebits.fma(-(end - odd), 1 - weight, end, to="fp32").value
    assert torch.equal(sbt.recompute("aten.lerp.Scalar", (odd, end, -1.3)), expected)


def test_types_and_lists() -> None:
    half, single = torch.tensor([0.1, 3.0]).to(torch.bfloat16), torch.tensor([1.0, 1e-3])
    assert sbt.recompute("aten.add.Tensor", (half, single)).dtype == torch.float32
    assert sbt.recompute("aten.mul.Tensor", (half, torch.tensor(0.3))).dtype == torch.bfloat16
    y = single.clone()
    assert sbt.recompute("aten.add_.Tensor", (y, half), {"alpha": 2}) is y
    assert torch.equal(y, samebits.fma(torch.tensor([2.0, 2.0]), half.float(), single, to="fp32").value)
    numbers = torch.arange(1.0, 100.0)
    lists = [numbers.clone(), half.clone()]
    assert sbt.recompute("aten._foreach_div_.ScalarList", (lists, [3.0, 3.0])) is None
    assert torch.equal(lists[0], numbers / torch.tensor(3.0))  # a quotient, no product by 1/3
    assert torch.equal(sbt.recompute("aten.sum.default", (torch.arange(5),)), torch.tensor(10))
    assert sbt.recompute("aten.reciprocal.default", (torch.tensor(3.0, dtype=torch.float64),)).item() == 1 / 3


@pytest.mark.parametrize("operator, args, kwargs, says", [
    ("aten.native_dropout.default", (torch.ones(2), 0.1, True), {}, "aten.native_dropout"),
    ("aten.mm.default", (torch.ones(2, 2), torch.ones(2, 2)), {}, "a product without its rule"),
    ("aten.addmm.default", (torch.ones(2), torch.ones(2, 2), torch.ones(2, 2)), {"beta": 2}, "addmm with beta"),
    ("aten.pow.Tensor_Scalar", (torch.ones(2), 3), {}, "pow with another exponent"),
    ("aten.sum.default", (torch.ones(2),), {"dtype": torch.float64}, "with dtype torch.float64"),
    ("aten._softmax.default", (torch.ones(2, 2), 0, False), {}, "softmax over axis 0"),
    ("aten.linalg_vector_norm.default", (torch.ones(2), 1), {}, "a norm of order 1"),
    ("aten._foreach_exp.default", ([torch.ones(2)],), {}, "aten._foreach_exp"),
    ("aten.add.out", (torch.ones(2), torch.ones(2)), {"out": torch.ones(2)}, "aten.add with out="),
    ("aten.exp.default", (torch.arange(3),), {}, "not covered: aten.exp.default: x: dtype torch.int64"),
    ("aten.mul.Tensor", (torch.ones(2, dtype=torch.complex64), 2), {}, "mul in torch.complex64"),
    ("aten.pow.Tensor_Tensor", (torch.ones(2), torch.ones(2)), {}, "pow with another exponent"),
    ("aten.div.Tensor_mode", (torch.ones(2), 2), {"rounding_mode": "floor"}, "rounding_mode"),
    ("aten.softplus.default", (torch.ones(2), 2.0), {}, "aten.softplus"),
    ("aten.sum.default", (torch.arange(3),), {"dtype": torch.float32}, "with dtype torch.float32"),
    ("aten.arange.start_step", (0, 1, 0.001), {}, "aten.arange"),
    ("aten.div.Tensor", (torch.ones(2, dtype=torch.float64), 3), {}, "div in torch.float64"),
    ("aten.relu.default", (torch.tensor([-0.0]),), {}, "relu of -0"),
    ("aten._to_copy.default", (torch.tensor([1e20]),), {"dtype": torch.int32}, "beyond torch.int32"),
    ("aten._foreach_norm.Scalar", ([torch.ones(2, 3).t()],), {}, "not contiguous"),
    ("aten.nothing.default", (), {}, "does not know"),
    ("aten.sin.default", (torch.ones(2, dtype=torch.float64),), {}, "aten.sin"),
])
def test_what_has_no_rule_is_refused(operator: str, args: Any, kwargs: Any, says: str) -> None:
    with pytest.raises(samebits.Unsupported, match=says):
        sbt.recompute(operator, args, kwargs)
