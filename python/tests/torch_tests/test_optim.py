"""samebits.torch.optim: GradScaler, checkpoints, other layouts, groups, gradients of all kinds."""

from __future__ import annotations

import copy
import math
import pickle
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import samebits as sb
import samebits.torch as sbt
from samebits import optim as numpy_optim
from samebits.torch import optim

CLASSES = [optim.AdamW, optim.Adam, optim.SGD, optim.Lion, optim.LAMB]
MODES = ["master32", "direct", "stochastic", "split16", "kahan", "master16_scaled", "fp8_copy"]


def bits(t: torch.Tensor) -> torch.Tensor:
    t = t.detach()
    return t.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[t.itemsize])


def parameters(device: str, dtype: torch.dtype = torch.float32, *,
               sizes: tuple[int, ...] = (300, 7, 4099)) -> list[torch.nn.Parameter]:
    make = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(n, generator=make).to(dtype).to(device))
            for n in sizes]


def set_gradients(params: list[torch.nn.Parameter], step: int, scale: float = 1.0) -> None:
    make = torch.Generator().manual_seed(100 + step)
    for p in params:
        p.grad = (torch.randn(p.shape, generator=make) * scale).to(p.dtype).to(p.device)


def all_bits(params: list[torch.nn.Parameter], optimizer: Any) -> list[list[int]]:
    tensors = [p for p in params] + [value for p in params
                                     for value in optimizer.state[p].values()]
    return [bits(t).reshape(-1).tolist() for t in tensors]


def made(kind: Any, params: Any, weights: str = "master32", states: str = "fp32",
         **options: Any) -> Any:
    if kind is optim.SGD:
        options.setdefault("momentum", 0.9)
    return kind(params, lr=0.01, weights=weights, states=states, **options)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("weights", MODES)
@pytest.mark.parametrize("states", ["fp32", "bf16_stochastic", "e4m3"])
def test_cpu_and_gpu_have_the_bits_of_the_numpy_form(device: str, kind: Any, weights: str,
                                                     states: str) -> None:
    dtype = torch.float32 if weights == "fp8_copy" else torch.bfloat16
    params = parameters(device, dtype)
    optimizer = made(kind, params, weights, states, seed=5)
    options = {"momentum": 0.9} if kind is optim.SGD else {}
    arrays = [sbt.to_numpy(p.detach().cpu().clone()) for p in params]
    expected = getattr(numpy_optim, kind.__name__)(arrays, lr=0.01, weights=weights, states=states,
                                                   seed=5, **options)
    for step in range(3):
        set_gradients(params, step)
        optimizer.step()
        expected.step([sbt.to_numpy(p.grad.cpu()) for p in params])
    for i, p in enumerate(params):
        assert torch.equal(bits(p).cpu(), bits(sbt.from_numpy(arrays[i]))), i
        for key, array in expected.state[str(i)].items():
            state = optimizer.state[p][key]
            assert torch.equal(bits(state).cpu(), bits(sbt.from_numpy(array))), (i, key)


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
    for step in range(2):
        set_gradients(params, step)
        optimizer.step()
    torch.save({"o": optimizer.state_dict(), "p": [p.detach() for p in params]}, tmp_path / "c")
    saved = torch.load(tmp_path / "c", map_location="cpu")
    resumed_params = [torch.nn.Parameter(p.to(device)) for p in saved["p"]]
    resumed = made(optim.AdamW, resumed_params, weights, states)
    resumed.load_state_dict(saved["o"])
    assert all_bits(params, optimizer) == all_bits(resumed_params, resumed)
    for step in range(2, 4):
        for ps, o in ((params, optimizer), (resumed_params, resumed)):
            set_gradients(ps, step)
            o.step()
    assert all_bits(params, optimizer) == all_bits(resumed_params, resumed)


def test_copies_and_pickles_continue() -> None:
    params = parameters("cpu", torch.bfloat16)
    optimizer = optim.AdamW(params, weights="kahan", states="bf16")  # torch pickles no FP8 tensors
    set_gradients(params, 0)
    optimizer.step()
    results = []
    for copied_params, copied in (copy.deepcopy((params, optimizer)),
                                  pickle.loads(pickle.dumps((params, optimizer))),
                                  (params, optimizer)):
        set_gradients(copied_params, 1)
        copied.step()
        results.append(all_bits(copied_params, copied))
    assert results[0] == results[1] == results[2]


def test_a_state_of_torch_is_continued_and_given_back(device: str) -> None:
    params, plain = parameters(device), parameters(device)
    theirs = torch.optim.AdamW(plain, lr=0.01, foreach=True)
    for step in range(3):
        set_gradients(plain, step)
        theirs.step()
    for p, q in zip(params, plain, strict=True):
        p.data.copy_(q)
    ours = optim.AdamW(params, lr=0.5)
    ours.load_state_dict(theirs.state_dict())
    assert ours.param_groups[0]["lr"] == 0.01
    for p, q in zip(params, plain, strict=True):
        assert int(ours.state[p]["step"]) == 3
        for key in ("exp_avg", "exp_avg_sq"):
            assert torch.equal(ours.state[p][key], theirs.state[q][key])
    exported = ours.torch_state_dict()
    again = torch.optim.AdamW(parameters(device), lr=0.1)
    again.load_state_dict(exported)
    for q, r in zip(plain, again.param_groups[0]["params"], strict=True):
        assert all(torch.equal(theirs.state[q][k].cpu(), again.state[r][k].cpu())
                   for k in ("step", "exp_avg", "exp_avg_sq"))
    set_gradients(again.param_groups[0]["params"], 3)
    again.step()


def test_states_of_torchao(device: str) -> None:
    p = parameters(device, torch.bfloat16, sizes=(512,))
    codes = torch.randint(0, 126, (512,), dtype=torch.uint8).view(torch.float8_e4m3fn)
    fp8 = SimpleNamespace(codes=codes, scale=torch.tensor([0.5, 2.0]))
    ao = {"state": {0: {"exp_avg": fp8, "exp_avg_sq": fp8, "step": torch.tensor(4.0)}},
          "param_groups": [{"params": [0], "lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-6,
                            "weight_decay": 0.0}]}
    ours = optim.AdamW(p, weights="stochastic", states="e4m3", block=256)
    ours.load_state_dict(ao)
    state = ours.state[p[0]]
    assert torch.equal(bits(state["exp_avg"]).cpu(), bits(codes))
    assert state["exp_avg_scale"].tolist() == [0.5, 2.0]
    with pytest.raises(sb.InvalidArgument, match="exp_avg: block must be 128.*block of 256"):
        optim.AdamW(p, weights="stochastic", states="e4m3", block=128).load_state_dict(ao)


def dynamic_values(signed: bool) -> Any:
    """The numbers of bitsandbytes' 8-bit codes, as recorded."""
    maps = Path(__file__).resolve().parents[3] / "tests/golden/optimizer/bitsandbytes_dynamic_maps.csv"
    rows = [line.split(",") for line in maps.read_text().splitlines()[1:]]
    return np.array([int(row[1 if signed else 2], 16) for row in rows], np.uint32).view(np.float32)


def test_states_of_8_bit_optimizers(device: str) -> None:
    p = parameters(device, torch.bfloat16, sizes=(512,))
    group = {"params": [0], "lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-6, "weight_decay": 0.0}
    first, second = (torch.randint(0, 256, (512,), dtype=torch.uint8) for _ in range(2))
    scales = torch.tensor([0.5, 2.0])
    arrays = {"state1": first, "absmax1": scales, "qmap1": torch.zeros(256),
              "state2": second, "absmax2": scales * 2, "qmap2": torch.zeros(256)}
    live = {"step": 4, **arrays}  # as in bitsandbytes' optimizer.state
    bitsandbytes = {"step": 4, "__bnb_optimizer_quant_state__": arrays}
    torchao = {"step": torch.tensor(4.0), "exp_avg": SimpleNamespace(codes=first, scale=scales),
               "exp_avg_sq": SimpleNamespace(codes=second, scale=scales * 2)}
    values = torch.from_numpy(dynamic_values(signed=True))[first.int()]
    for saved in (live, bitsandbytes, torchao):
        ours = optim.AdamW(p, weights="stochastic", states="dynamic8", block=256)
        ours.load_state_dict({"state": {0: saved}, "param_groups": [group]})
        state = ours.state[p[0]]
        assert torch.equal(state["exp_avg"].cpu(), first) and int(state["step"]) == 4
        assert torch.equal(state["exp_avg_sq"].cpu(), second)
        assert state["exp_avg_scale"].tolist() == [0.5, 2.0]
        assert state["exp_avg_sq_scale"].tolist() == [1.0, 4.0]
        wide = optim.AdamW(p, weights="stochastic", states="fp32")
        wide.load_state_dict({"state": {0: saved}, "param_groups": [group]})
        expected = values * scales.repeat_interleave(256)
        assert torch.equal(wide.state[p[0]]["exp_avg"].cpu(), expected)
        assert float(wide.state[p[0]]["exp_avg_sq"].min()) >= 0
        exported = ours.torch_state_dict()["state"][0]["exp_avg"]
        assert torch.equal(exported.cpu(), expected)


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
        assert torch.equal(bits(alone[at]), bits(params[at]))


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


def test_a_gradient_in_another_order_of_memory(device: str) -> None:
    ramp = torch.arange(24.0, device=device).reshape(1, 2, 3, 4)
    p = torch.nn.Parameter(torch.zeros_like(ramp).contiguous(memory_format=torch.channels_last))
    p.grad = ramp.clone()
    optim.SGD([p], lr=1.0).step()
    assert torch.equal(p.detach(), -ramp)


def test_maximize_with_a_scaler(device: str) -> None:
    params, plain = parameters(device), parameters(device)
    optimizer, expected = optim.AdamW(params, maximize=True), optim.AdamW(plain, maximize=True)
    scaler = sbt.GradScaler(device, init_scale=4.0)
    scaler.scale(torch.ones((), device=device))
    set_gradients(params, 0, 4.0)
    set_gradients(plain, 0)
    scaler.step(optimizer)
    expected.step()
    assert all_bits(params, optimizer) == all_bits(plain, expected)
    opposite = parameters(device)
    set_gradients(opposite, 0, -1.0)
    optim.AdamW(opposite).step()
    assert all(torch.equal(bits(p), bits(q)) for p, q in zip(params, opposite, strict=True))


def test_autograd_notices_the_step() -> None:
    p = torch.nn.Parameter(torch.ones(3))
    q = torch.nn.Parameter(torch.ones(3))
    loss = (p * q).sum()
    p.grad = torch.ones(3)
    optim.SGD([p], lr=1.0).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_torch_compile_calls_the_step(device: str) -> None:
    params, plain = parameters(device), parameters(device)
    optimizer, expected = optim.AdamW(params), optim.AdamW(plain)
    compiled = torch.compile(optimizer.step, backend="eager")
    for step in range(2):
        set_gradients(params, step)
        set_gradients(plain, step)
        compiled()
        expected.step()
    assert all_bits(params, optimizer) == all_bits(plain, expected)


def test_schedulers_of_the_learning_rate() -> None:
    params, plain = parameters("cpu"), parameters("cpu")
    optimizer, expected = optim.SGD(params, lr=1.0), optim.SGD(plain, lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    for step in range(3):
        set_gradients(params, step)
        set_gradients(plain, step)
        optimizer.step()
        scheduler.step()
        expected.param_groups[0]["lr"] = 0.5**step
        expected.step()
    assert all_bits(params, optimizer) == all_bits(plain, expected)


def test_a_learning_rate_tensor(device: str) -> None:
    params, plain = parameters(device), parameters(device)
    rate = torch.tensor(0.25, device=device)
    optimizer, expected = optim.SGD(params, lr=rate), optim.SGD(plain, lr=0.25)
    for step in range(2):
        set_gradients(params, step)
        set_gradients(plain, step)
        optimizer.step()
        expected.step()
        rate.fill_(0.125)
        expected.param_groups[0]["lr"] = 0.125
    assert all_bits(params, optimizer) == all_bits(plain, expected)


@pytest.mark.parametrize("kind", [{"foreach": True}, {"fused": True}, {"foreach": False}],
                         ids=["foreach", "fused", "for_loop"])
@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9, "weight_decay": 0.1},
                                      {"momentum": 0.9, "nesterov": True}])
def test_sgd_of_torch_on_the_cpu(kind: Any, settings: dict[str, Any]) -> None:
    params, plain = parameters("cpu"), parameters("cpu")
    ours = optim.SGD(params, lr=0.01, profile="torch_foreach", **settings)
    theirs = torch.optim.SGD(plain, lr=0.01, **settings, **kind)
    for step in range(20):
        set_gradients(params, step)
        set_gradients(plain, step)
        ours.step()
        theirs.step()
    # With momentum, PyTorch's fused kernel rounds elements behind the last whole vector otherwise.
    whole = 16 if "fused" in kind and settings else 1
    for p, q in zip(params, plain, strict=True):
        end = p.numel() // whole * whole
        assert torch.equal(bits(p)[:end], bits(q)[:end])


def test_the_example_of_offload(capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[3] / "examples" / "python" / "torch_optimizer_offload.py"
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.endswith(": 0 of 15010 weights differ\n")


def test_refusals() -> None:
    p = parameters("cpu", torch.float64)
    with pytest.raises(sb.InvalidArgument, match="float32, bfloat16 or float16 is expected"):
        optim.AdamW(p)
    p = parameters("cpu")
    with pytest.raises(sb.InvalidArgument, match="weights: 'master' is not one of"):
        optim.AdamW(p, weights="master")
    with pytest.raises(sb.InvalidArgument, match="the same for all"):
        o = optim.SGD([{"params": p[:1], "maximize": True}, {"params": p[1:]}])
        set_gradients(p, 0)
        o.step()
    o = optim.SGD(p)
    p[0].grad = torch.sparse_coo_tensor([[1]], [1.0], p[0].shape)
    with pytest.raises(sb.InvalidArgument, match="sparse"):
        o.step()
