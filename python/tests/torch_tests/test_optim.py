"""samebits.torch.optim: GradScaler, checkpoints, other layouts, groups, gradients of all kinds."""

from __future__ import annotations

import copy
import math
import pickle
from collections import UserList
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from optimizers import CLASSES, all_bits, made, parameters, set_gradients, steps
from pages import EXAMPLES, printed
from tensors import same

import samebits as sb
import samebits.torch as sbt
from samebits import optim as numpy_optim
from samebits.torch import optim

MODES = ["master32", "direct", "stochastic", "split16", "kahan", "master16_scaled", "fp8_copy"]


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("weights", MODES)
@pytest.mark.parametrize("states", ["fp32", "bf16_stochastic", "e4m3"])
def test_cpu_and_gpu_have_the_bits_of_the_numpy_form(device: str, kind: Any, weights: str, states: str) -> None:
    dtype = torch.float32 if weights == "fp8_copy" else torch.bfloat16
    params = parameters(device, dtype)
    optimizer = made(kind, params, weights, states, seed=5)
    options = {"momentum": 0.9} if kind is optim.SGD else {}
    arrays = [sbt.to_numpy(p.detach().cpu().clone()) for p in params]
    expected = getattr(numpy_optim, kind.__name__)(arrays, lr=0.01, weights=weights, states=states, seed=5, **options)
    for step in range(3):
        set_gradients(params, step)
        optimizer.step()
        expected.step([sbt.to_numpy(p.grad.cpu()) for p in params])
    for i, p in enumerate(params):
        assert same(p, sbt.from_numpy(arrays[i])), i
        for key, array in expected.state[str(i)].items():
            state = optimizer.state[p][key]
            assert same(state, sbt.from_numpy(array)), (i, key)


@pytest.mark.parametrize("scaler_kind", [torch.amp.GradScaler, sbt.GradScaler])
@pytest.mark.parametrize("profile", ["strict", "torch_fused", "torch_foreach"])
@pytest.mark.parametrize("unscale", [False, True])
def test_grad_scalers(device: str, scaler_kind: Any, profile: str, unscale: bool) -> None:
    params, plain = parameters(device), parameters(device)
    optimizer = optim.AdamW(params, profile=profile)
    expected = optim.AdamW(plain, profile=profile)
    scaler = scaler_kind(device, init_scale=1024.0, growth_interval=2)
    for step, bad in enumerate((True, False, False, True, False)):
        scale = float(scaler.scale(torch.ones((), device=device)))
        set_gradients(params, step, scale)
        if bad:
            params[1].grad[3] = math.inf  # type: ignore[index]
        else:
            set_gradients(plain, step)
            expected.step()
        if unscale:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    assert all_bits(params, optimizer) == all_bits(plain, expected)
    assert int(optimizer.state[params[0]]["step"]) == 3


def test_clipping_in_the_scaler(device: str) -> None:
    params, plain = parameters(device), parameters(device)
    optimizer, expected = optim.SGD(params, lr=0.1), optim.SGD(plain, lr=0.1)
    scaler = sbt.GradScaler(device, init_scale=4.0, max_norm=0.5)
    scaler.scale(torch.ones((), device=device))
    set_gradients(params, 0, 4.0)
    set_gradients(plain, 0)
    before = [p.grad.clone() for p in params]
    scaler.step(optimizer)
    scaler.update()
    assert all(torch.equal(p.grad, g) for p, g in zip(params, before, strict=True))
    sbt.clip_grad_norm_(plain, 0.5)
    expected.step()
    for p, q in zip(params, plain, strict=True):
        torch.testing.assert_close(p, q)
    del params[0].grad
    assert not hasattr(optimizer, "grad_mul") and not hasattr(optimizer, "found_inf")


@pytest.mark.parametrize("weights", MODES)
@pytest.mark.parametrize("states", ["fp32", "bf16", "fp16_scaled", "e5m2", "dynamic8"])
def test_resumed_is_uninterrupted(device: str, weights: str, states: str, tmp_path: Any) -> None:
    dtype = torch.float32 if weights == "fp8_copy" else torch.bfloat16
    params = parameters(device, dtype)
    optimizer = made(optim.AdamW, params, weights, states, seed=3)
    steps(range(2), (params, optimizer))
    torch.save({"o": optimizer.state_dict(), "p": [p.detach() for p in params]}, tmp_path / "c")
    saved = torch.load(tmp_path / "c", map_location="cpu")
    resumed_params = [torch.nn.Parameter(p.to(device)) for p in saved["p"]]
    resumed = made(optim.AdamW, resumed_params, weights, states)
    resumed.load_state_dict(saved["o"])
    assert all_bits(params, optimizer) == all_bits(resumed_params, resumed)
    steps(range(2, 4), (params, optimizer), (resumed_params, resumed))
    assert all_bits(params, optimizer) == all_bits(resumed_params, resumed)


def test_copies_and_pickles_continue() -> None:
    params = parameters("cpu", torch.bfloat16)
    optimizer = optim.AdamW(params, weights="kahan", states="bf16")  # torch pickles no FP8 tensors
    steps([0], (params, optimizer))
    copies = [copy.deepcopy((params, optimizer)), pickle.loads(pickle.dumps((params, optimizer))), (params, optimizer)]
    for pair in copies:
        steps([1], pair)
    assert len({str(all_bits(*pair)) for pair in copies}) == 1


GROUP = {"params": [0], "lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-6, "weight_decay": 0.0}


@pytest.mark.parametrize("states", ["dynamic8", "e4m3"])
def test_states_of_8_bit_optimizers(device: str, states: str) -> None:
    p = parameters(device, torch.bfloat16, sizes=(512,))
    codes = [torch.randint(0, 126, (512,), dtype=torch.uint8) for _ in range(2)]
    scales = torch.tensor([0.5, 2.0])
    if states == "e4m3":
        codes = [c.view(torch.float8_e4m3fn) for c in codes]
        values = codes[0].float()
    else:
        unit = sb.QuantizedBlocks(codes[0].numpy(), np.ones(2, np.float32), (512,), "dynamic8", 256)
        values = torch.from_numpy(unit.dequantize())
    arrays = {"state1": codes[0], "absmax1": scales, "qmap1": torch.zeros(256),
              "state2": codes[1], "absmax2": scales * 2, "qmap2": torch.zeros(256)}
    torchao = {"step": torch.tensor(4.0), "exp_avg": SimpleNamespace(codes=codes[0], scale=scales),
               "exp_avg_sq": SimpleNamespace(codes=codes[1], scale=scales * 2)}
    # As in bitsandbytes' optimizer.state, and in its state_dict.
    of_bitsandbytes = [{"step": 4, **arrays}, {"step": 4, "__bnb_optimizer_quant_state__": arrays}]
    for saved in (torchao, *(of_bitsandbytes if states == "dynamic8" else ())):
        given = {"state": {0: saved}, "param_groups": [GROUP]}
        ours = optim.AdamW(p, weights="stochastic", states=states, block=256)
        ours.load_state_dict(given)
        state = ours.state[p[0]]
        assert same(state["exp_avg"], codes[0]) and same(state["exp_avg_sq"], codes[1]) and int(state["step"]) == 4
        assert (state["exp_avg_scale"].tolist(), state["exp_avg_sq_scale"].tolist()) == ([0.5, 2.0], [1.0, 4.0])
        wide = optim.AdamW(p, weights="stochastic", states="fp32")
        wide.load_state_dict(given)
        expected = values * scales.repeat_interleave(256)
        assert same(wide.state[p[0]]["exp_avg"], expected)
        assert same(ours.torch_state_dict()["state"][0]["exp_avg"], expected)
        with pytest.raises(sb.InvalidArgument, match="exp_avg: block must be 128.*block of 256"):
            optim.AdamW(p, weights="stochastic", states=states, block=128).load_state_dict(given)


def test_parameters_whose_gradients_begin_later_have_their_own_count(device: str) -> None:
    params, alone = parameters(device), parameters(device)
    optimizer = optim.AdamW(params)
    for step in range(4):
        set_gradients(params, step)
        if step < 2:
            params[0].grad = None
        if step == 3:
            params[1].grad = None
        optimizer.step()
    assert [int(optimizer.state[p]["step"]) for p in params] == [2, 3, 4]
    for at, steps in ((0, (2, 3)), (1, (0, 1, 2)), (2, (0, 1, 2, 3))):
        expected = optim.AdamW([alone[at]])
        for step in steps:
            set_gradients(alone, step)
            expected.step()
        assert same(alone[at], params[at])


def test_groups_closures_and_layouts(device: str) -> None:
    params = [torch.nn.Parameter(torch.ones(2, 3, 4, 5, device=device)) for _ in range(2)]
    params[1].data = params[1].data.contiguous(memory_format=torch.channels_last)
    optimizer = optim.SGD([{"params": params[:1], "lr": 1.0}, {"params": params[1:]}], lr=0.5)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        weights = torch.arange(120.0, device=device).reshape(2, 3, 4, 5)
        loss = sum((p * weights).sum() for p in params)
        loss.backward()
        return loss

    assert float(optimizer.step(closure).detach()) == 2 * 119 * 60
    ramp = torch.arange(120.0, device=device).reshape(2, 3, 4, 5)
    assert torch.equal(params[0], 1 - ramp) and torch.equal(params[1], 1 - 0.5 * ramp)
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(3, device=device))]})
    last = optimizer.param_groups[2]["params"][0]
    last.grad = torch.ones_like(last)
    optimizer.step()
    assert last.tolist() == [0.5] * 3


def test_maximize_with_a_scaler(device: str) -> None:
    params, plain, opposite = (parameters(device) for _ in range(3))
    optimizer, expected = optim.AdamW(params, maximize=True), optim.AdamW(plain, maximize=True)
    scaler = sbt.GradScaler(device, init_scale=4.0)
    scaler.scale(torch.ones((), device=device))
    set_gradients(params, 0, 4.0)
    scaler.step(optimizer)
    steps([0], (plain, expected))
    assert all_bits(params, optimizer) == all_bits(plain, expected)
    set_gradients(opposite, 0, -1.0)
    optim.AdamW(opposite).step()
    assert all(same(p, q) for p, q in zip(params, opposite, strict=True))


def test_autograd_notices_the_step() -> None:
    p = torch.nn.Parameter(torch.ones(3))
    loss = (p * torch.nn.Parameter(torch.ones(3))).sum()
    p.grad = torch.ones(3)
    optim.SGD([p], lr=1.0).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def with_other(optimizer: Any, **attributes: Any) -> Any:
    vars(optimizer).update(attributes)
    return optimizer


def one_cycle(params: Any) -> Any:
    optimizer = optim.AdamW(params, lr=0.1)
    return with_other(optimizer, schedule=torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=8))


def follow(optimizer: Any, expected: Any) -> None:
    optimizer.schedule.step()
    expected.param_groups[0].update({key: optimizer.param_groups[0][key] for key in ("lr", "betas")})


def halve(optimizer: Any, expected: Any) -> None:
    optimizer.param_groups[0]["lr"].mul_(0.5)
    expected.param_groups[0]["lr"] *= 0.5


#: An optimizer, a plain one with the same steps, and what happens to both after a step.
TWINS: dict[str, tuple[Any, Any, Any]] = {
    "torch.compile": (lambda p: with_other(o := optim.AdamW(p), step=torch.compile(o.step, backend="eager")),
                      optim.AdamW, None),
    "a rate in a tensor": (lambda p: optim.SGD(p, lr=torch.tensor(0.25, device=p[0].device)),
                           lambda p: optim.SGD(p, lr=0.25), halve),
    "a schedule of rates and betas": (one_cycle, lambda p: optim.AdamW(p, lr=0.004, betas=(0.95, 0.999)), follow),
    "a list of betas": (lambda p: optim.AdamW(p, betas=[0.5, 0.75]), lambda p: optim.AdamW(p, betas=(0.5, 0.75)), None),
    "a tensor of betas": (lambda p: optim.AdamW(p, betas=torch.tensor([0.5, 0.75])),
                          lambda p: optim.AdamW(p, betas=UserList([0.5, 0.75])), None),
}


@pytest.mark.parametrize("name", TWINS)
def test_steps_are_those_of_a_plain_optimizer(device: str, name: str) -> None:
    make, make_plain, after = TWINS[name]
    params, plain = parameters(device), parameters(device)
    optimizer, expected = make(params), make_plain(plain)
    for step in range(3):
        steps([step], (params, optimizer), (plain, expected))
        assert all_bits(params, optimizer) == all_bits(plain, expected)
        if after is not None:
            after(optimizer, expected)


@pytest.mark.parametrize("kind", [{"foreach": True}, {"fused": True}, {"foreach": False}],
                         ids=["foreach", "fused", "for_loop"])
@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9, "weight_decay": 0.1}, {"momentum": 0.9, "nesterov": True}])
def test_sgd_of_torch_on_the_cpu(kind: Any, settings: dict[str, Any]) -> None:
    params, plain = parameters("cpu"), parameters("cpu")
    steps(range(20), (params, optim.SGD(params, lr=0.01, profile="torch_foreach", **settings)),
          (plain, torch.optim.SGD(plain, lr=0.01, **settings, **kind)))
    # With momentum, PyTorch's fused kernel rounds elements behind the last whole vector otherwise.
    whole = 16 if "fused" in kind and settings else 1
    for p, q in zip(params, plain, strict=True):
        end = p.numel() // whole * whole
        assert same(p[:end], q[:end])


def test_the_example_of_offload() -> None:
    assert printed(EXAMPLES / "torch_optimizer_offload.py").endswith(": 0 of 15010 weights differ\n")
