"""samebits.torch.optim: states of other optimizers, formats, orders of memory and settings."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from optimizers import normal

import samebits as sb
from samebits.torch import optim


def made(shape: tuple[int, ...] = (300,), dtype: torch.dtype = torch.bfloat16,
         memory: torch.memory_format = torch.contiguous_format, kind: Any = optim.AdamW,
         **options: Any) -> tuple[torch.nn.Parameter, Any]:
    p = torch.nn.Parameter(normal(shape, 0).to(dtype).contiguous(memory_format=memory))
    return p, kind([p], lr=0.01, **options)


def step(p: torch.nn.Parameter, optimizer: Any, seed: int) -> None:
    p.grad = normal(tuple(p.shape), seed).to(p.dtype)
    optimizer.step()


@pytest.mark.parametrize("states", ["e4m3", "fp16_scaled"])
def test_block_scales_into_another_order_of_memory(states: str) -> None:
    p, saved = made((4, 16, 8, 8), torch.float32, states=states)
    for seed in (1, 2):
        step(p, saved, seed)
    q, loaded = made((4, 16, 8, 8), torch.float32, torch.channels_last, states=states)
    loaded.load_state_dict(saved.state_dict())
    expected, values = (o.torch_state_dict()["state"][0]["exp_avg"] for o in (saved, loaded))
    bound = expected.abs().max() * (2.0**-4 if states == "e4m3" else 2.0**-11)
    assert float((values - expected).abs().max()) <= float(bound)


@pytest.mark.parametrize("into", ["fp32", "fp16"])
def test_block_scales_into_formats_without(into: str) -> None:
    p, saved = made(states="fp16_scaled")
    step(p, saved, 1)
    q, loaded = made(states=(into, "fp32"))
    loaded.load_state_dict({**saved.state_dict(), "param_groups": [{"params": [0]}]})
    expected = saved.torch_state_dict()["state"][0]["exp_avg"]
    values = loaded.torch_state_dict()["state"][0]["exp_avg"]
    assert torch.allclose(values, expected, rtol=2.0**-11, atol=2.0**-24)


def test_a_refused_state_changes_nothing() -> None:
    def check(saved: Any, text: str, **options: Any) -> None:
        (q, loaded), (r, other) = (made(**options) for _ in range(2))
        if "weights" in options:
            q.data.mul_(2)
        with pytest.raises(sb.InvalidArgument, match=text):
            loaded.load_state_dict(saved)
        assert not loaded.state[q]
        if "weights" not in options:
            step(q, loaded, 1)
            step(r, other, 1)
            assert torch.equal(q, r)

    p = torch.nn.Parameter(normal((300,), 0))
    theirs = torch.optim.AdamW([p], amsgrad=True)
    step(p, theirs, 1)
    check(theirs.state_dict(), "state_dict: amsgrad is not supported", dtype=torch.float32)
    p, saved = made(kind=optim.Lion)
    step(p, saved, 1)
    check(saved.state_dict(), "state_dict: exp_avg_sq: is missing")
    p, saved = made(weights="master32")
    step(p, saved, 1)
    check(as_split16(saved), "load the state of the model first", weights="split16")
    p, saved = made((1000,), states="e4m3", block=256)
    step(p, saved, 1)
    given = {**made((1000,), states="e4m3")[1].state_dict(), "state": saved.state_dict()["state"]}
    check(given, "block must be 128, .*each block of 256", shape=(1000,), states="e4m3")


def as_split16(optimizer: Any) -> Any:
    """Return a state whose weights are to be split."""
    state = optimizer.state_dict()
    state["param_groups"][0]["weights"] = "split16"
    return state


def test_masters_without_small_weights_and_with_nans() -> None:
    values = torch.full((256,), 2.0**-60).bfloat16()
    values[0] = 1.0
    p, q = (torch.nn.Parameter(values.clone()) for _ in range(2))
    saved, loaded = optim.SGD([p], lr=0.0, weights="master16_scaled"), optim.SGD([q], lr=0.0, weights="split16")
    step(p, saved, 1)  # its scaled master has lost the small weights
    loaded.load_state_dict(as_split16(saved))
    step(q, loaded, 1)
    assert torch.allclose(q, values, rtol=2.0**-7)
    p, saved = made(weights="master32")
    step(p, saved, 1)
    p.grad = torch.full_like(p, float("nan"))
    saved.step()
    q, loaded = made(weights="split16")
    q.data.copy_(p)
    state = as_split16(saved)
    state["state"]["of the caller"] = [1, 2]
    loaded.load_state_dict(state)
    assert not loaded.state[q]["low"].any()  # a NaN has no low part
    step(q, loaded, 2)
    assert loaded.state["of the caller"] == [1, 2]


def test_options_that_a_state_lacks_stay() -> None:
    first, second = (torch.nn.Parameter(normal((300,), 0).bfloat16()) for _ in range(2))
    ours = optim.AdamW([{"params": [first], "weights": "stochastic", "states": "e4m3"},
                        {"params": [second], "block": 256}], weights="split16", seed=7)
    plain = [torch.nn.Parameter(normal((300,), 0).bfloat16()) for _ in range(2)]
    theirs = torch.optim.AdamW([{"params": [p]} for p in plain], lr=0.125)
    for p in plain:
        p.grad = torch.ones_like(p)
    theirs.step()
    ours.load_state_dict(theirs.state_dict())
    assert [[g[k] for k in ("lr", "weights", "states", "block", "seed")]
            for g in ours.param_groups] == [[0.125, "stochastic", "e4m3", 128, 7],
                                            [0.125, "split16", "fp32", 256, 7]]
    assert ours.state[first]["exp_avg"].dtype is torch.float8_e4m3fn
    assert ours.state[second]["low"].dtype is torch.int16


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_state_of_sgd(momentum: float) -> None:
    p = torch.nn.Parameter(normal((300,), 0))
    theirs = torch.optim.SGD([p], lr=0.01, momentum=momentum)
    step(p, theirs, 1)
    q, ours = made((300,), torch.float32, kind=optim.SGD, profile="torch_foreach")
    q.data.copy_(p)
    ours.load_state_dict(theirs.state_dict())
    for seed in (2, 3):
        step(p, theirs, seed)
        step(q, ours, seed)
    assert torch.equal(p, q)


MODES = ["master32", "split16", "kahan", "master16_scaled", "stochastic"]


@pytest.mark.parametrize("before,after", list(product(MODES, MODES)))
def test_weights_between_modes(before: str, after: str) -> None:
    p, saved = made(weights=before)
    for seed in range(1, 6):
        step(p, saved, seed)
    q, loaded = made(weights=after)
    q.data.copy_(p)
    state = saved.state_dict()
    state["param_groups"][0]["weights"] = after
    loaded.load_state_dict(state)

    def weights(parameter: torch.nn.Parameter, optimizer: Any) -> torch.Tensor:
        state, mode = optimizer.state[parameter], optimizer.param_groups[0]["weights"]
        bits = parameter.detach().view(torch.int16).int() << 16
        values = {"split16": lambda: (bits + state["low"]).view(torch.float32),
                  "kahan": lambda: parameter.detach().float() + state["low"],
                  "stochastic": lambda: parameter.detach().float(),
                  "master32": lambda: state["master"],
                  "master16_scaled": lambda: state["master"].float().reshape(-1)
                  * state["master_scale"].repeat_interleave(128)[:300]}
        return values[mode]()

    expected, found = weights(p, saved), weights(q, loaded)
    error = {"master32": 0.0, "split16": 2.0**-23, "kahan": 2.0**-16, "master16_scaled": 2.0**-11,
             "stochastic": 2.0**-7}[after]
    least = 2.0**-9 if after == "master16_scaled" else 0.0  # fp16 with the scale of a block
    assert bool(((found - expected).abs() <= expected.abs() * error + least * error).all())
    if before == after:
        assert torch.equal(found, expected)


def test_hooks_of_a_load_see_what_is_loaded() -> None:
    p, optimizer = made()
    step(p, optimizer, 1)
    master = optimizer.state[p]["master"].clone()
    seen = []

    def later(_: Any, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "state": {0: {**state["state"][0], "step": torch.tensor(77)}}}

    optimizer.register_load_state_dict_pre_hook(later)
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append({k: v.clone() for k, v in o.state[p].items()}))
    for _ in range(2):
        optimizer.load_state_dict(optimizer.state_dict())
    assert len(seen) == 2 and all(int(state["step"]) == 77 for state in seen)
    assert all(torch.equal(state["master"], master) for state in seen)  # torch casts it to bf16


@pytest.mark.parametrize("steps", [-5, 2.5, torch.tensor(-1), torch.tensor(float("inf")), "3"])
def test_a_number_of_steps_that_is_none_is_refused(steps: Any) -> None:
    p, optimizer = made()
    step(p, optimizer, 1)
    state = optimizer.state_dict()
    saved = {**state, "state": {0: {**state["state"][0], "step": steps}}}
    with pytest.raises(sb.InvalidArgument, match="state_dict: step: the number of steps"):
        optimizer.load_state_dict(saved)
    assert int(optimizer.state[p]["step"]) == 1


@pytest.mark.parametrize("options,text", [
    ({"amsgrad": True}, "state_dict: amsgrad is not supported"),
    ({"decoupled_weight_decay": False}, "state_dict: decoupled_weight_decay is False; use Adam"),
    ({"lr": -1.0}, "state_dict: lr: must")])
def test_groups_that_no_step_could_update_are_refused(options: dict[str, Any], text: str) -> None:
    p, optimizer = made()
    groups = [{**optimizer.state_dict()["param_groups"][0], **options}]
    with pytest.raises(sb.InvalidArgument, match=text):
        optimizer.load_state_dict({"state": {}, "param_groups": groups})
    assert not optimizer.param_groups[0].keys() & {"amsgrad", "bias_correction"}
    step(p, optimizer, 1)


def test_weight_decay_tells_adam_from_adamw() -> None:
    p = torch.nn.Parameter(normal((30,), 0))
    theirs = torch.optim.AdamW([p], weight_decay=0.1)
    step(p, theirs, 1)
    q, ours = made((30,), torch.float32, kind=optim.Adam)
    with pytest.raises(sb.InvalidArgument, match="decoupled_weight_decay is True; use AdamW"):
        ours.load_state_dict(theirs.state_dict())
    theirs.param_groups[0]["weight_decay"] = 0.0  # the two rules are the same
    ours.load_state_dict(theirs.state_dict())
    assert torch.equal(ours.state[q]["exp_avg"], theirs.state[p]["exp_avg"])


@pytest.mark.parametrize("dtype,states", [(torch.float32, "fp32"), (torch.bfloat16, "bf16"),
                                          (torch.float16, "fp16"), (torch.bfloat16, "fp32")])
@pytest.mark.parametrize("name", ["AdamW", "Adam", "SGD"])
def test_states_of_torch_in_every_format_both_ways(name: str, dtype: torch.dtype, states: Any) -> None:
    if states == "fp16" and name != "SGD":
        states = ("fp16", "fp32")  # second moments in fp16 are refused
    options: dict[str, Any] = {"momentum": 0.9} if name == "SGD" else {"weight_decay": 0.0}
    p = torch.nn.Parameter(normal((300,), 0).to(dtype))
    theirs = getattr(torch.optim, name)([p], lr=0.01, **options)
    for seed in (1, 2):
        step(p, theirs, seed)
    q, ours = made((300,), dtype, kind=getattr(optim, name), weights="direct", states=states)
    ours.load_state_dict(theirs.state_dict())
    keys = ("momentum_buffer",) if name == "SGD" else ("exp_avg", "exp_avg_sq")
    for key in keys:
        value = ours.state[q][key]
        is_fp32 = states == "fp32" or states == ("fp16", "fp32") and key == "exp_avg_sq"
        assert value.dtype is (torch.float32 if is_fp32 else dtype)
        assert torch.equal(value, theirs.state[p][key].to(value.dtype))
    r = torch.nn.Parameter(p.detach().clone())
    again = getattr(torch.optim, name)([r], lr=0.5)
    again.load_state_dict(ours.torch_state_dict())
    for parameter, optimizer in ((p, theirs), (r, again)):
        step(parameter, optimizer, 3)
    assert torch.equal(p, r)
    for key in keys:
        assert torch.equal(theirs.state[p][key], again.state[r][key])


@pytest.mark.parametrize("weights", ["master32", "split16", "master16_scaled"])
@pytest.mark.parametrize("states", ["fp32", "e4m3"])
@pytest.mark.parametrize("to_cuda", [False, True])
def test_a_state_of_another_device(cuda: str, weights: str, states: str, to_cuda: bool) -> None:
    p, saved = made(weights=weights, states=states)
    if not to_cuda:
        p = torch.nn.Parameter(p.detach().to(cuda))
        saved = optim.AdamW([p], lr=0.01, weights=weights, states=states)
    for seed in (1, 2):
        p.grad = normal((300,), seed).bfloat16().to(p.device)
        saved.step()
    q = torch.nn.Parameter(p.detach().to(cuda if to_cuda else "cpu", copy=True))
    loaded = optim.AdamW([q], lr=0.01, weights=weights, states=states)
    loaded.load_state_dict(saved.state_dict())
    for parameter, optimizer in ((p, saved), (q, loaded)):
        parameter.grad = normal((300,), 3).bfloat16().to(parameter.device)
        optimizer.step()
    assert q.device != p.device and torch.equal(q.cpu(), p.cpu())
    for key, value in saved.state[p].items():
        found = loaded.state[q][key]
        assert found.device.type == q.device.type
        assert torch.equal(found.cpu().reshape(-1).view(torch.uint8), value.cpu().reshape(-1).view(torch.uint8)), key


def test_states_of_bitsandbytes_without_blocks_are_refused() -> None:
    parameter = torch.nn.Parameter(torch.ones(1000))
    optimizer = optim.AdamW([parameter], states="dynamic8", block=256)
    codes = torch.zeros(1000, dtype=torch.uint8)
    state = {"step": 1, "state1": codes, "state2": codes, "max1": torch.ones(1), "max2": torch.ones(1)}
    with pytest.raises(sb.InvalidArgument, match="max1: .*block_wise=False"):
        optimizer.load_state_dict({**optimizer.state_dict(), "state": {0: state}})
