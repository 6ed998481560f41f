"""samebits.torch.optim: arguments of torch.optim, settings, groups, and odd parameters."""

from __future__ import annotations

import inspect
import io
from typing import Any

import numpy as np
import pytest
import torch
from optimizers import CLASSES, made, ones

import samebits as sb
from samebits.torch import optim

@pytest.mark.parametrize("kind", CLASSES)
def test_options_of_torch(kind: Any) -> None:
    optimizer = kind([ones(3)], amsgrad=False, foreach=None, fused=False, differentiable=False, capturable=True)
    assert "amsgrad" not in optimizer.param_groups[0]
    for option, text in (("amsgrad", "amsgrad: is not supported"), ("differentiable", "differentiable: is not supp"),
                         ("foreach", "foreach: is no option here; profile='torch_foreach'"),
                         ("fused", "fused: is no option here; profile='torch_fused'")):
        with pytest.raises(sb.InvalidArgument, match=text):
            kind([ones(3)], **{option: True})
    with pytest.raises(TypeError, match=kind.__name__ + r"\(\) got an unexpected .* 'wieghts'"):
        kind([ones(3)], wieghts="direct")
    assert {"weights", "states", "profile", "block", "seed", "maximize"} < set(inspect.signature(kind).parameters)


@pytest.mark.parametrize("kind,settings,text", [
    (optim.AdamW, {"lr": -1.0}, "params: lr: must be a finite number >= 0"),
    (optim.AdamW, {"lr": torch.tensor(-1.0)}, "lr: must be"),
    (optim.AdamW, {"states": "bf16", "profile": "torch_foreach"}, "^params: with a torch profile"),
    (optim.Adam, {"betas": (1.5, 0.9)}, r"betas\[0\]: must be in"),
    (optim.LAMB, {"betas": (0.9, 1.0)}, r"betas\[1\]: must be in"),
    (optim.SGD, {"momentum": -1.0}, "momentum: must be 0 or in"),
    (optim.SGD, {"nesterov": True}, "nesterov: needs momentum > 0"),
    (optim.AdamW, {"betas": (0.3, 0.9), "profile": "torch_foreach"}, r"betas\[0\]: must be above 0.5"),
    (optim.Lion, {"profile": "torch_fused"}, "profile: the rule has no such profile"),
    (optim.AdamW, {"amsgrad": True}, "amsgrad is not supported"),
    (optim.AdamW, {"bias_correction": False}, "bias_correction=False is not supported"),
    (optim.AdamW, {"decoupled_weight_decay": False}, "decoupled_weight_decay is False; use Adam"),
])
def test_a_group_that_no_step_could_update_is_refused_at_once(kind: Any, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(sb.InvalidArgument, match=text):
        kind([{"params": [ones(3)], **settings}])
    first = ones(3)
    optimizer = kind([first])
    with pytest.raises(sb.InvalidArgument, match=text):
        optimizer.add_param_group({"params": [ones(3)], **settings})
    assert len(optimizer.param_groups) == 1
    first.grad = torch.ones(3)
    optimizer.step()  # the refused group has left nothing


@pytest.mark.parametrize("kind", [optim.AdamW, optim.Adam, optim.LAMB])
@pytest.mark.parametrize("eps", [0, 0.0, -0.0, 1e-60])
def test_eps_of_zero_makes_nans_of_elements_without_gradients(device: str, kind: Any, eps: float) -> None:
    p = ones(5, device=device)
    optimizer = kind([p], lr=0.25, betas=(0.5, 0.75), eps=eps, weight_decay=0.0)
    p.grad = torch.tensor([1.0, 0.0, -2.0, 0.0, 2.0**-60], device=device)
    optimizer.step()
    assert [str(x) for x in p.tolist()] == ["0.75", "nan", "1.25", "nan", "0.75"]
    if kind is not optim.LAMB and str(device) == "cpu":
        q = ones(5)
        theirs = getattr(torch.optim, kind.__name__)([q], lr=0.25, betas=(0.5, 0.75), eps=eps, weight_decay=0.0)
        q.grad = p.grad
        theirs.step()
        assert str(q.tolist()) == str(p.tolist())


@pytest.mark.parametrize("kind,settings,text", [
    *((optim.AdamW, {"lr": rate}, "params: lr: a number is expected") for rate in (
        "1e-3", 1j, np.complex64(1), np.array([0.1, 0.2]), torch.tensor([0.1, 0.2]))),
    (optim.SGD, {"dampening": [0]}, r"params: dampening: a number is expected; got \[0\]"),
    (optim.LAMB, {"betas": ("0.9", 0.9)}, r"params: betas\[0\]: a number is expected; got '0.9'"),
])
def test_settings_that_are_no_numbers(kind: Any, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match="^" + text):
        kind([ones(3)], **settings)


@pytest.mark.filterwarnings("ignore:optimizer contains a parameter group with duplicate")
def test_a_parameter_that_a_group_lists_twice_is_refused_at_once() -> None:
    p, q = ones(3), ones(3)
    text = "^params: parameters 0 and 2 of the group are the same tensor; pass each parameter once"
    with pytest.raises(sb.InvalidArgument, match=text):
        optim.AdamW([p, q, p])
    optimizer = optim.AdamW([ones(3)])
    with pytest.raises(sb.InvalidArgument, match=text):
        optimizer.add_param_group({"params": [p, q, p]})
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64, torch.float8_e4m3fn])
def test_parameters_of_another_dtype_are_refused_at_once(dtype: torch.dtype) -> None:
    optimizer, p = optim.AdamW([ones(3)]), torch.nn.Parameter(torch.ones(3).to(dtype))
    for add in (lambda: optim.AdamW([p]), lambda: optimizer.add_param_group({"params": [p]})):
        with pytest.raises(sb.InvalidArgument, match="float32, bfloat16 or float16 is expected"):
            add()
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("weights", ["master32", "direct", "stochastic", "split16", "kahan",
                                     "master16_scaled", "fp8_copy"])
@pytest.mark.parametrize("states", ["fp32", "e4m3", "fp16_scaled", "bf16_stochastic"])
def test_parameters_without_elements(device: str, kind: Any, weights: str, states: str) -> None:
    dtype = torch.float32 if weights == "fp8_copy" else torch.bfloat16
    results = []
    for shapes in (((5,),), ((0, 3), (5,), (0,))):
        params = [ones(*shape, dtype=dtype, device=device) for shape in shapes]
        optimizer = made(kind, params, weights, states)
        for _ in range(2):
            for p in params:
                p.grad = torch.ones_like(p)
            optimizer.step()
        file = io.BytesIO()
        torch.save(optimizer.state_dict(), file)
        file.seek(0)
        optimizer.load_state_dict(torch.load(file))
        optimizer.step()
        optimizer.torch_state_dict()
        results.append(next(p for p in params if p.numel() == 5))
    if "stochastic" not in weights + states:  # parameters' numbers choose their random bits
        assert torch.equal(results[0], results[1])
    assert bool(results[1].isfinite().all()) and not bool((results[1] == 1).any())


@pytest.mark.parametrize("states", ["fp32", "e4m3"])
def test_parameters_of_no_dimension_and_gradients_that_share_elements(device: str, states: str) -> None:
    params = [torch.nn.Parameter(torch.tensor(v, device=device)) for v in (1.0, [1.0], [1.0, 1.0])]
    for p in params:
        optimizer = optim.AdamW([p], lr=0.5, states=states)
        for _ in range(2):
            p.grad = torch.ones(1, device=device).expand(2) if p.numel() == 2 else torch.ones_like(p)
            optimizer.step()
            optimizer.load_state_dict(optimizer.state_dict())
    assert {x for p in params for x in p.reshape(-1).tolist()} == {float(params[0].detach())} != {1.0}


def test_a_sparse_gradient_changes_no_parameter() -> None:
    p, q = ones(3), ones(4, 3)
    optimizer = optim.SGD([p, q], lr=1.0)
    p.grad = torch.ones(3)
    q.grad = torch.sparse_coo_tensor([[1]], torch.ones(1, 3), (4, 3), check_invariants=True)
    with pytest.raises(sb.InvalidArgument, match="sparse gradients are not supported"):
        optimizer.step()
    assert bool((p == 1).all()) and bool((q == 1).all())
    q.grad = torch.ones(4, 3)
    optimizer.step()
    assert not p.any() and not q.any()
    assert int(optimizer.state[p]["step"]) == int(optimizer.state[q]["step"]) == 1


@pytest.mark.parametrize("kind", [optim.AdamW, optim.Adam, optim.LAMB])
@pytest.mark.parametrize("states,named", [
    ("fp16", "fp16"), ("fp16_stochastic", "fp16_stochastic"), (("fp32", "fp16"), "fp16"),
    (["fp16", "fp16_stochastic"], "fp16_stochastic")])
def test_second_moments_in_fp16_are_refused(kind: Any, states: Any, named: str) -> None:
    first = states if isinstance(states, str) else states[0]
    text = (fr"states: {named} has no numbers between 0 and 2\^-24, so steps of small exp_avg_sq would be "
            fr"divided by eps alone; use fp16_scaled or bf16, .* states=\('{first}', 'fp16_scaled'\)")
    with pytest.raises(sb.InvalidArgument, match=text):
        kind([ones(3)], states=states)
    kind([ones(3)], states=("fp16", "fp16_scaled"))
    optim.Lion([ones(3)], states="fp16")


def test_parameters_without_memory_are_refused() -> None:
    p = torch.nn.Parameter(torch.ones(3, device="meta"))
    optimizer = optim.AdamW([p])
    p.grad = torch.ones(3, device="meta")
    with pytest.raises(sb.InvalidArgument, match="memory of the CPU or of CUDA .* on meta"):
        optimizer.step()
    materialized = torch.nn.Parameter(torch.ones(3))
    optimizer.param_groups[0]["params"][0] = materialized
    materialized.grad = torch.ones(3)
    optimizer.step()
    assert not bool((materialized == 1).any())


def test_gradients_that_move_are_checked_anew() -> None:
    p, q = ones(4), ones(4)
    optimizer = optim.SGD([p, q], lr=1.0)
    for gradient in (torch.ones(4), torch.full((4,), 2.0)):
        p.grad, q.grad = gradient, gradient.clone()
        optimizer.step()
    assert p.tolist() == q.tolist() == [-2.0] * 4
    p.grad = q.detach()
    with pytest.raises(sb.InvalidArgument,
                       match="'parameter 0': gradient.codes .* 'parameter 1': weights.codes overlap"):
        optimizer.step()
    assert p.tolist() == q.tolist() == [-2.0] * 4
    q.grad = None  # the step does not write it
    optimizer.step()
    assert (p.tolist(), q.tolist()) == ([0.0] * 4, [-2.0] * 4)


def test_groups_that_are_arranged_anew() -> None:
    params = [ones(3) for _ in range(3)]
    optimizer = optim.SGD([{"params": params[:1], "lr": 1.0}, {"params": params[1:], "lr": 0.25}])
    for p in params:
        p.grad = torch.ones(3)
    optimizer.step()
    first, second = optimizer.param_groups
    first["params"], second["params"] = params[:2], params[2:]  # the order is the same
    optimizer.step()
    assert [float(p[0]) for p in params] == [-1.0, -0.25, 0.5]
    optimizer.param_groups.append({**second, "params": []})
    optimizer.step()
    optimizer.param_groups.reverse()
    optimizer.step()
    assert [float(p[0]) for p in params] == [-3.0, -2.25, 0.0]
    assert all(int(optimizer.state[p]["step"]) == 4 for p in params)


def test_gradients_of_a_graph_and_with_a_negative_bit() -> None:
    p = torch.nn.Parameter(torch.full((3,), 2.0))
    optimizer = optim.SGD([p], lr=1.0)
    (p**2).sum().backward(create_graph=True)  # the gradient requires one itself
    optimizer.step()
    assert bool((p == -2).all())
    p.grad = torch.complex(torch.zeros(3), torch.ones(3)).conj().imag
    assert p.grad.is_neg()
    optimizer.step()
    assert bool((p == -1).all())


@pytest.mark.parametrize("found_inf", [0.0, 1.0, 2.0])
def test_scales_and_flags_of_other_shapes_and_dtypes(device: str, found_inf: float) -> None:
    """Flags of two devices may be summed, so 2 means a skipped step too."""
    p = ones(3, device=device)
    optimizer = optim.SGD([p], lr=1.0)
    optimizer.grad_scale = torch.tensor([4.0], dtype=torch.float64, device=device)
    optimizer.found_inf = torch.tensor([found_inf], device=device)
    p.grad = torch.full((3,), 2.0, device=device)
    optimizer.step()
    assert p.tolist() == ([0.5] * 3 if found_inf == 0 else [1.0] * 3)
    assert int(optimizer.state[p]["step"]) == int(found_inf == 0)


def test_named_parameters() -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = optim.AdamW(model.named_parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    saved = optimizer.state_dict()
    assert saved["param_groups"][0]["param_names"] == ["weight", "bias"]
    other = optim.AdamW(model.named_parameters())
    other.load_state_dict(saved)
    assert torch.equal(other.state[model.bias]["exp_avg"], optimizer.state[model.bias]["exp_avg"])


def test_a_gradient_whose_memory_was_freed_is_refused() -> None:
    p, q = ones(3), ones(3)
    optimizer = optim.SGD([p, q], lr=1.0)
    p.grad, q.grad = torch.ones(3), torch.ones(3)
    q.grad.untyped_storage().resize_(0)
    with pytest.raises(sb.InvalidArgument, match="memory of gradient 1 was freed"):
        optimizer.step()
    assert bool((p == 1).all())


GAPS = [lambda b: b[..., 0], lambda b: b[:, ::2], lambda b: b[3:9, 1:5].transpose(0, 2),
        lambda b: b.permute(2, 0, 1)[1], lambda b: b[:, :1, :1], lambda b: b[0, 0, ::3]]


@pytest.mark.parametrize("view", GAPS)
@pytest.mark.parametrize("kind,weights,states", [
    (optim.AdamW, "master32", "fp32"), (optim.AdamW, "stochastic", "bf16_stochastic"),
    (optim.LAMB, "split16", "e4m3"), (optim.Lion, "kahan", "dynamic8"),
    (optim.Adam, "master16_scaled", "fp16_scaled"), (optim.SGD, "direct", "fp32")])
def test_parameters_with_gaps_have_the_bits_of_others(device: str, kind: Any, weights: str,
                                                      states: str, view: Any) -> None:
    """The order of elements is that of memory, as in a copy without gaps."""
    make = torch.Generator().manual_seed(0)
    base = torch.randn(16, 8, 6, generator=make).bfloat16().to(device)
    before, others = base.clone(), torch.ones_like(base, dtype=torch.bool)
    view(others).fill_(False)
    p = torch.nn.Parameter(view(base))
    q = torch.nn.Parameter(torch.empty_like(view(base)).copy_(view(base)))
    assert p.data_ptr() == view(base).data_ptr() and p.stride() != q.stride()
    momentum = {"momentum": 0.9} if kind is optim.SGD else {}
    ours, theirs = (kind([t], lr=0.01, weights=weights, states=states, **momentum) for t in (p, q))
    for step in range(5):
        gradients = torch.randn(16, 8, 6, generator=make).bfloat16().to(device)
        p.grad = view(gradients) if step % 2 else view(gradients).contiguous()
        q.grad = view(gradients).clone()
        if step == 2:
            with torch.no_grad():
                p.mul_(0.5), q.mul_(0.5)
        if step == 3:
            ours.load_state_dict(ours.state_dict())
        for optimizer in (ours, theirs):
            optimizer.found_inf = torch.full((), float(step == 4), device=device)
            optimizer.step()
        assert torch.equal(p, q)
        for key, value in theirs.state[q].items():
            assert torch.equal(ours.state[p][key].reshape(-1).view(torch.uint8),
                               value.reshape(-1).view(torch.uint8)), key
    assert torch.equal(base[others], before[others]) and not torch.equal(base, before)


def test_parameters_between_each_other_in_memory(device: str) -> None:
    base = torch.zeros(300, 2, device=device)
    params = [torch.nn.Parameter(base[:, at]) for at in range(2)]
    optimizer = optim.SGD(params, lr=1.0)
    for at, p in enumerate(params):
        p.grad = torch.full((300,), 1.0 + at, device=device)
    optimizer.step()
    assert base.tolist() == 300 * [[-1.0, -2.0]]
    params[0].data = params[0].data.contiguous()
    with pytest.raises(sb.InvalidArgument, match="parameter 0: device, dtype, shape or memory order"):
        optimizer.step()
    assert base.tolist() == 300 * [[-1.0, -2.0]]


@pytest.mark.parametrize("shared", [lambda b: b[:1].expand(4), lambda b: b.as_strided((3, 3), (1, 1)),
                                    lambda b: b.as_strided((2, 4), (3, 1))])
def test_parameters_whose_elements_share_memory_are_refused(shared: Any) -> None:
    p = torch.nn.Parameter(shared(torch.ones(16)))
    p.grad = torch.ones(p.shape)
    with pytest.raises(sb.InvalidArgument, match="params: a parameter whose elements do not share"):
        optim.AdamW([p]).step()
