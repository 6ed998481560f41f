"""samebits.torch.optim: 16-bit parameters that other code writes between steps."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from cuda_graphs import no_waits
from optimizers import all_bits

from samebits.torch import optim

MASTERS = [("master32", torch.bfloat16), ("master32", torch.float16),
           ("master16_scaled", torch.bfloat16), ("master16_scaled", torch.float16)]
LOW_PARTS = [("split16", torch.bfloat16), ("kahan", torch.bfloat16)]
COUNT = 1000  # eight blocks; the last one is shorter


def numbers(seed: int, dtype: torch.dtype, device: str, wide: bool = False) -> torch.Tensor:
    """Return random numbers; wide ones have exponents from -30 to 9."""
    make = torch.Generator().manual_seed(seed)
    values = torch.randn(COUNT, generator=make)
    if wide:
        values *= 2.0 ** torch.randint(-30, 10, (COUNT,), generator=make)
    return values.to(dtype).to(device)


def step(p: torch.nn.Parameter, optimizer: Any, seed: int, wide: bool = False) -> None:
    p.grad = numbers(seed, p.dtype, str(p.device), wide)
    optimizer.step()


def trained(weights: str, dtype: torch.dtype, device: str = "cpu", steps: int = 3,
            **options: Any) -> tuple[torch.nn.Parameter, Any]:
    """Return a parameter and its optimizer after some steps."""
    p = torch.nn.Parameter(numbers(0, dtype, device))
    optimizer = optim.AdamW([p], lr=0.003, weight_decay=0, weights=weights, **options)
    for seed in range(1, 1 + steps):
        step(p, optimizer, seed)
    return p, optimizer


def step_without_effect(p: torch.nn.Parameter, optimizer: Any) -> None:
    """Take a step with learning rate 0: it stores the optimizer's weights, but -0 may become +0."""
    rate = optimizer.param_groups[0]["lr"]
    optimizer.param_groups[0]["lr"] = 0.0
    step(p, optimizer, 99)
    optimizer.param_groups[0]["lr"] = rate


def bits(t: torch.Tensor) -> torch.Tensor:
    return t.detach().reshape(-1).view({1: torch.uint8, 2: torch.int16, 4: torch.int32,
                                        8: torch.int64}[t.itemsize]).clone()


def assert_same(p: torch.nn.Parameter, optimizer: Any, q: torch.nn.Parameter, expected: Any) -> None:
    assert all_bits([p], optimizer) == all_bits([q], expected)


def masked(p: torch.nn.Parameter) -> None:
    p.mul_(torch.arange(COUNT, device=p.device) % 3 != 0)


def loaded(p: torch.nn.Parameter) -> None:
    model = torch.nn.Module()
    model.register_parameter("weight", p)
    model.load_state_dict({"weight": numbers(7, p.dtype, str(p.device))})


def with_odd_values(p: torch.nn.Parameter) -> None:
    p[:4] = torch.tensor([float("inf"), -float("inf"), float("nan"), -0.0])
    p[500] = 60000.0


def moved(p: torch.nn.Parameter) -> None:
    p.data = numbers(8, p.dtype, str(p.device))


WRITES: list[Callable[[torch.nn.Parameter], Any]] = [
    lambda p: p.mul_(0), lambda p: p.neg_(), lambda p: p.clamp_(-0.5, 0.5), masked, loaded, moved,
    with_odd_values, lambda p: p.detach().fill_(3)]
IDS = ["zeros", "neg", "clamp", "mask", "load_state_dict", "memory", "odd values", "detach"]


@pytest.mark.parametrize("write", WRITES, ids=IDS)
@pytest.mark.parametrize("weights,dtype", MASTERS)
def test_a_step_begins_from_written_values(device: str, weights: str, dtype: torch.dtype,
                                           write: Callable[[torch.nn.Parameter], Any]) -> None:
    p, optimizer = trained(weights, dtype, device)
    before, master = bits(p), optimizer.state[p]["master"].clone()
    with torch.no_grad():
        write(p)
    written, values = bits(p), p.detach().clone()
    step_without_effect(p, optimizer)
    changed = written != before
    assert bool(changed.any())
    if weights == "master32":  # every value of the parameter is a master
        assert torch.allclose(p, values, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(bits(optimizer.state[p]["master"])[~changed], bits(master)[~changed])
        return
    if not bool(values.isfinite().all()):  # the first block has no finite numbers any more
        assert bool(p.isnan()[2])
        changed[:128] = False
    scales = optimizer.state[p]["master_scale"].repeat_interleave(128)[:COUNT]
    assert bool(((p - values).abs() <= scales * 2.0**-25)[changed].all())


@pytest.mark.parametrize("weights,dtype", [*MASTERS, *LOW_PARTS])
def test_a_swap_and_back_changes_nothing(device: str, weights: str, dtype: torch.dtype) -> None:
    p, optimizer = trained(weights, dtype, device)
    q, expected = trained(weights, dtype, device)
    for seed in range(4, 7):
        kept = p.detach().clone()
        with torch.no_grad():
            p.copy_(numbers(50, dtype, device))  # an average of weights, for an evaluation
            p.copy_(kept)
        step(p, optimizer, seed)
        step(q, expected, seed)
        assert_same(p, optimizer, q, expected)


@pytest.mark.parametrize("weights,dtype", [*MASTERS, *LOW_PARTS])
def test_writes_of_the_same_values_change_nothing(device: str, weights: str, dtype: torch.dtype) -> None:
    """Masters and low parts of all kinds of numbers agree with the parameter after each step."""
    p, q = (torch.nn.Parameter(numbers(0, dtype, device, wide=True)) for _ in range(2))
    with torch.no_grad():
        for t in (p, q):
            t[:5] = torch.tensor([float("inf"), float("nan"), -0.0, 2.0**-130, 3e38])
            t[200:328] *= 2.0**-110  # a block without normal numbers of fp32
    optimizer, expected = (optim.SGD([t], lr=0.4, momentum=0.5, weights=weights) for t in (p, q))
    for seed in range(1, 40):
        step(p, optimizer, seed, wide=True)
        step(q, expected, seed, wide=True)
        torch.autograd.graph.increment_version(p)
        assert_same(p, optimizer, q, expected)
    master = optimizer.state[p].get("master", torch.zeros(COUNT, device=device))
    assert weights != "master32" or not torch.equal(master, p)


@pytest.mark.parametrize("weights,dtype", [*MASTERS, *LOW_PARTS])
@pytest.mark.parametrize("model_first", [True, False])
def test_model_and_optimizer_are_loaded_in_any_order(device: str, weights: str, dtype: torch.dtype,
                                                     model_first: bool) -> None:
    p, optimizer = trained(weights, dtype, device)
    model, saved = p.detach().clone(), copy.deepcopy(optimizer.state_dict())
    q, resumed = trained(weights, dtype, device, steps=1)

    def load_model() -> None:
        with torch.no_grad():
            q.copy_(model)

    if model_first:
        load_model()
    resumed.load_state_dict(saved)
    if not model_first:
        load_model()
    for seed in (10, 11):
        step(p, optimizer, seed)
        step(q, resumed, seed)
        assert_same(p, optimizer, q, resumed)


@pytest.mark.parametrize("weights,dtype", MASTERS)
def test_masters_that_are_written_win(device: str, weights: str, dtype: torch.dtype) -> None:
    """Nothing has written the parameter since the masters were loaded or replaced."""
    p, optimizer = trained(weights, dtype, device)
    q, expected = trained(weights, dtype, device)
    for t, o in ((p, optimizer), (q, expected)):
        o.state[t]["master"].mul_(-1)
    optimizer.state[p] = {key: value.clone() for key, value in optimizer.state[p].items()}
    for t, o in ((p, optimizer), (q, expected)):
        before = t.detach().clone()
        step_without_effect(t, o)
        assert not torch.equal(t, before)
    assert_same(p, optimizer, q, expected)
    other, loads = trained(weights, dtype, device, steps=1)
    loads.load_state_dict(optimizer.state_dict())
    step_without_effect(other, loads)
    assert torch.equal(other, p)


@pytest.mark.parametrize("between", ["nothing", "group", "copy", "gradient", "dict"])
def test_a_write_is_seen_whatever_comes_before_the_step(device: str, between: str) -> None:
    p, optimizer = trained("master32", torch.bfloat16, device)
    q = torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16, device=device))
    optimizer.add_param_group({"params": [q]})
    q.grad = torch.ones_like(q)
    optimizer.step()
    with torch.no_grad():
        p.fill_(4)
    if between == "group":
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(3, device=device))]})
    if between == "copy":
        p, optimizer = copy.deepcopy((p, optimizer))
    if between == "gradient":
        p.grad = None
        optimizer.step()
        optimizer.step()
    if between == "dict":
        optimizer.state[p] = dict(optimizer.state[p])
    optimizer.param_groups[1]["lr"] = 0.0
    step_without_effect(p, optimizer)
    assert bool((p == 4).all()) and bool((optimizer.state[p]["master"] == 4).all())


def test_a_write_to_one_parameter_leaves_the_others(device: str) -> None:
    dtype = torch.bfloat16
    params = [torch.nn.Parameter(numbers(seed, dtype, device)) for seed in range(3)]
    optimizer = optim.AdamW(params, lr=0.01)
    for p in params:
        p.grad = torch.ones_like(p)
    optimizer.step()
    with torch.no_grad():
        params[1].fill_(2)
        # This master is not the parameter's: the next step writes it.
        optimizer.state[params[2]]["master"].fill_(5)
    optimizer.param_groups[0]["lr"] = 0.0
    optimizer.step()
    assert bool((params[1] == 2).all()) and bool((params[2] == 5).all())


def test_a_skipped_step_keeps_written_values(device: str) -> None:
    p, optimizer = trained("master32", torch.bfloat16, device)
    with torch.no_grad():
        p.fill_(2)
    optimizer.found_inf = torch.ones((), device=device)
    step(p, optimizer, 5)
    assert bool((p == 2).all())
    del optimizer.found_inf
    step_without_effect(p, optimizer)
    assert bool((p == 2).all())


def test_a_write_through_data_needs_a_new_version(device: str) -> None:
    p, optimizer = trained("master32", torch.bfloat16, device)
    p.data.fill_(2)
    torch.autograd.graph.increment_version(p)
    step_without_effect(p, optimizer)
    assert bool((p == 2).all())


@pytest.mark.parametrize("value", [0.0, -0.0, float("inf"), -float("inf")])
def test_stale_low_parts_of_split16_join_to_no_nan(device: str, value: float) -> None:
    p, optimizer = trained("split16", torch.bfloat16, device)
    low = optimizer.state[p]["low"]
    assert bool((low < 0).any()) and bool((low > 0).any())
    with torch.no_grad():
        p.fill_(value)
    step_without_effect(p, optimizer)
    assert bool((p == value).all())


@pytest.mark.parametrize("write", [lambda p: p.zero_(), lambda p: p.mul_(2.0**-20), masked])
def test_kahan_drops_errors_of_other_values(device: str, write: Callable[[torch.nn.Parameter], Any]) -> None:
    p, optimizer = trained("kahan", torch.bfloat16, device)
    assert bool(optimizer.state[p]["low"].any())
    with torch.no_grad():
        write(p)
    written = p.detach().clone()
    step_without_effect(p, optimizer)
    assert torch.equal(p, written)


def test_blocks_without_written_weights_keep_their_bits(device: str) -> None:
    p, optimizer = trained("master16_scaled", torch.bfloat16, device)
    state = {key: value.clone() for key, value in optimizer.state[p].items()}
    with torch.no_grad():
        p[300] = 1000.0  # in the third block
    step_without_effect(p, optimizer)
    master, scale = optimizer.state[p]["master"], optimizer.state[p]["master_scale"]
    other = torch.arange(COUNT, device=device) // 128 != 2
    assert torch.equal(bits(master)[other], bits(state["master"])[other])
    assert (scale != state["master_scale"]).tolist() == [False, False, True] + 5 * [False]
    assert float(p.detach()[300]) == 1000.0 == float(master[300]) * float(scale[2])


@pytest.mark.parametrize("weights,dtype", [*MASTERS, *LOW_PARTS])
def test_a_step_after_a_write_waits_for_nothing(device: str, weights: str, dtype: torch.dtype) -> None:
    p, optimizer = trained(weights, dtype, device)
    p.grad = torch.ones_like(p)
    with no_waits(device), torch.no_grad():
        p.mul_(2)
        optimizer.step()
        p.mul_(0)
        optimizer.step()
    assert bool(p.isfinite().all())


def test_parameters_of_inference_mode_are_stepped() -> None:
    with torch.inference_mode():
        p = torch.nn.Parameter(torch.ones(300, dtype=torch.bfloat16), requires_grad=False)
    q = torch.nn.Parameter(torch.ones(300, dtype=torch.bfloat16))
    for t in (p, q):
        optimizer = optim.SGD([t], lr=2.0**-9)
        for _ in range(3):
            t.grad = torch.ones_like(q)
            optimizer.step()
    assert torch.equal(bits(p), bits(q))
