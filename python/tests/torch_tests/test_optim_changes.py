"""samebits.torch.optim: parameters, states and groups that change after the first step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from optimizers import all_bits, ones, steps
from tensors import bits

import samebits as sb
from samebits.torch import optim


def stepped(shape: tuple[int, ...], kind: Any = optim.AdamW, device: str = "cpu",
            **options: Any) -> tuple[torch.nn.Parameter, Any]:
    """Return a parameter and its optimizer after one step."""
    p = ones(*shape, device=device)
    optimizer = kind([p], lr=0.5, **options)
    p.grad = torch.ones_like(p)
    optimizer.step()
    return p, optimizer


def check_refused(change: Any, shape: tuple[int, ...] = (4, 8)) -> None:
    p, optimizer = stepped(shape)
    p.data = change(p.data)
    p.grad = torch.ones_like(p)
    with pytest.raises(sb.InvalidArgument, match="parameter 0: device, dtype, shape or memory order|changed since"):
        optimizer.step()


@pytest.mark.parametrize("change", [
    lambda t: t.bfloat16(), lambda t: t[:1], lambda t: t.reshape(8, 4), lambda t: t.t(), lambda t: torch.ones(5, 8),
    lambda t: torch._neg_view(-t)], ids=["dtype", "shorter", "reshaped", "transposed", "longer", "negative bit"])
def test_a_changed_parameter_is_refused(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    check_refused(change)


def test_a_parameter_with_another_order_of_memory_is_refused() -> None:
    check_refused(lambda t: t.contiguous(memory_format=torch.channels_last), (4, 8, 2, 2))


def test_a_parameter_on_another_device_is_refused(cuda: str) -> None:
    check_refused(lambda t: t.to(cuda))


def test_a_parameter_may_move(device: str) -> None:
    p, optimizer = stepped((4, 8), optim.SGD, device)
    old, p.data = p.data, p.data.clone()
    optimizer.step()
    assert bool((old == 0.5).all()) and bool((p == 0).all())


@pytest.mark.parametrize("change", [lambda t: t.bfloat16(), lambda t: t[:1], lambda t: t.t()],
                         ids=["dtype", "shorter", "transposed"])
def test_a_state_whose_memory_does_not_fit_is_refused(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    p, optimizer = stepped((4, 8))
    state = optimizer.state[p]["exp_avg_sq"]  # the tensor object stays
    state.data = change(state.data)
    with pytest.raises(sb.InvalidArgument, match="parameter 0: state exp_avg_sq"):
        optimizer.step()


def test_a_state_whose_memory_moved_is_updated_there(device: str) -> None:
    p, optimizer = stepped((4, 8), device=device)
    state = optimizer.state[p]["exp_avg"]
    old, state.data = state.data, state.data.clone()
    kept = old.clone()
    optimizer.step()
    assert torch.equal(old, kept) and not torch.equal(state, kept)


def with_gaps(gradient: torch.Tensor) -> torch.Tensor:
    """Return a gradient [rows, columns] with other numbers between its elements."""
    wide = torch.full((gradient.shape[0], 2 * gradient.shape[1]), 7.0, device=gradient.device)
    wide[:, ::2] = gradient
    return wide[:, ::2]


# Views and copies of a gradient [4, 6]. A step must notice that the next one differs.
VIEWS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda g: g, torch._neg_view, lambda g: g, torch.clone, with_gaps, lambda g: g[:1].expand(4, 6),
    lambda g: g.t().contiguous().t(), torch.Tensor.reciprocal]


def test_gradients_that_change_from_step_to_step(device: str) -> None:
    p, q = ones(4, 6, device=device), ones(4, 6, device=device)
    changing, plain = optim.AdamW([p], lr=0.5), optim.AdamW([q], lr=0.5)
    gradient = torch.arange(1.0, 25.0, device=device).reshape(4, 6)
    for view in [*VIEWS, *reversed(VIEWS), *VIEWS[::2]]:
        p.grad = view(gradient)
        q.grad = p.grad.clone(memory_format=torch.contiguous_format).resolve_neg()
        changing.step()
        plain.step()
        assert torch.equal(p, q)


@pytest.mark.parametrize("replaced", [
    {"exp_avg": torch.zeros(300, dtype=torch.bfloat16)}, {"exp_avg": torch.zeros(299)},
    {"exp_avg": torch.zeros(600)[::2]}, {"exp_avg_sq_scale": torch.ones(2)},
    {"exp_avg_sq_scale": torch.ones(3, dtype=torch.float64)}, {"exp_avg": None}])
def test_a_replaced_state_that_does_not_fit_is_refused(replaced: dict[str, Any]) -> None:
    p, optimizer = stepped((300,), states=("fp32", "e4m3"))
    optimizer.state[p].update(replaced)
    with pytest.raises(sb.InvalidArgument, match="parameter 0: state exp_avg"):
        optimizer.step()
    del optimizer.state[p]["exp_avg"]
    with pytest.raises(sb.InvalidArgument, match="parameter 0: state exp_avg"):
        optimizer.step()


def test_batches_of_graphs_are_kept() -> None:
    p, optimizer = stepped((4,), optim.SGD)
    q = torch.nn.Parameter(torch.ones(4))
    batches = [optimizer._batches[0]]
    batches[0]._lists._made_by_graphs.append(None)  # as a capture does
    optimizer.add_param_group({"params": [q]})
    q.grad = torch.ones(4)
    optimizer.step()
    batches.append(next(b for b in optimizer._batches if b.parameters[0] is p))
    batches[1]._lists._made_by_graphs.append(None)
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.step()
    assert len(optimizer._batches[0].parameters) == 1  # of p: q was stepped once less
    batches.append(optimizer._batches[0])
    assert [b for b in optimizer._in_graphs if isinstance(b, type(batches[0]))] == batches[:2]


def test_a_split_batch_of_a_graph_is_kept() -> None:
    p, q = (torch.nn.Parameter(torch.ones(4)) for _ in range(2))
    optimizer = optim.SGD([p, q])
    p.grad, q.grad = torch.ones(4), torch.ones(4)
    optimizer.step()
    batch = optimizer._batches[0]  # type: ignore[index]
    batch._lists._made_by_graphs.append(None)  # type: ignore[arg-type]  # as a capture does
    q.grad = None
    optimizer.step()
    assert optimizer._in_graphs == [batch]


def test_a_first_step_that_was_refused_leaves_nothing() -> None:
    good, shared = (torch.nn.Parameter(torch.ones(4, 4)) for _ in range(2))
    shared.data = shared.data[:, :1].expand(4, 4)
    optimizer = optim.AdamW([good, shared], lr=0.5)
    for p in (good, shared):
        p.grad = torch.ones(4, 4)
    for _ in range(2):
        with pytest.raises(sb.InvalidArgument, match="a parameter whose elements do not share"):
            optimizer.step()
    assert not any(optimizer.state.values()) and bool((good == 1).all())
    shared.data = shared.data.contiguous()
    optimizer.step()
    assert [int(state["step"]) for state in optimizer.state.values()] == [1, 1]


@pytest.mark.parametrize("fault", ["state", "rate", "scaled rate"])
def test_a_refused_step_updates_nothing(fault: str) -> None:
    a, b = (torch.nn.Parameter(torch.ones(8)) for _ in range(2))
    optimizer = optim.AdamW([a, b], lr=0.5)
    a.grad = torch.ones(8)
    optimizer.step()  # so that a and b have different counts of steps
    b.grad = torch.ones(8)
    optimizer.step()
    expected = [a.detach().clone(), b.detach().clone()]
    moments = [optimizer.state[p]["exp_avg"].clone() for p in (a, b)]
    exp_avg = optimizer.state[b]["exp_avg"]
    if fault == "state":
        optimizer.state[b]["exp_avg"] = torch.zeros(3)
    else:
        optimizer.param_groups[0]["lr"] = -1.0
    if fault == "scaled rate":
        optimizer.found_inf = torch.zeros(())
        optimizer.grad_scale = torch.ones(())
    with pytest.raises(sb.InvalidArgument):
        optimizer.step()
    optimizer.state[b]["exp_avg"] = exp_avg
    optimizer.param_groups[0]["lr"] = 0.5
    for p, before, moment, steps in zip((a, b), expected, moments, (2, 1), strict=True):
        assert torch.equal(p, before) and int(optimizer.state[p]["step"]) == steps
        assert torch.equal(optimizer.state[p]["exp_avg"], moment)
    optimizer.step()
    assert [int(optimizer.state[p]["step"]) for p in (a, b)] == [3, 2]


def test_groups_with_different_seeds_are_refused() -> None:
    p, q = (torch.nn.Parameter(torch.ones(4)) for _ in range(2))
    with pytest.raises(sb.InvalidArgument, match="seed: must be the same for all"):
        optim.SGD([{"params": [p], "seed": 1}, {"params": [q]}])
    with pytest.raises(sb.InvalidArgument, match="the same for all"):
        o = optim.SGD([{"params": [p], "maximize": True}, {"params": [q]}])
        steps([0], ([p, q], o))
    optimizer = optim.SGD([p])
    optimizer.add_param_group({"params": [q], "seed": 1})
    with pytest.raises(sb.InvalidArgument, match="seed: must be the same for all"):
        optimizer.step()
    with pytest.raises(sb.InvalidArgument, match="block: 128 or 256"):
        optim.AdamW([p], states="e4m3", block=0)


def both(device: str, **options: Any) -> tuple[torch.nn.Parameter, Any, torch.nn.Parameter, Any]:
    """Return two parameters with optimizers after the same step, and another gradient."""
    p, optimizer = stepped((300,), device=device, **options)
    q, expected = stepped((300,), device=device, **options)
    p.grad, q.grad = torch.full_like(p, 3.0), torch.full_like(q, 3.0)
    return p, optimizer, q, expected


def assert_same_steps(p: Any, optimizer: Any, q: Any, expected: Any, count: int = 1) -> None:
    for _ in range(count):
        optimizer.step()
        expected.step()
    assert all_bits([p], optimizer) == all_bits([q], expected)


@pytest.mark.parametrize("states, key", [("fp32", None), ("e4m3", None), ("e4m3", "exp_avg"), ("e4m3", "exp_avg_scale")])
def test_replaced_states_are_those_that_are_updated(device: str, states: str, key: str | None) -> None:
    p, optimizer, q, expected = both(device, states=states)
    old = dict(optimizer.state[p])
    kept = {name: bits(value).clone() for name, value in old.items() if key in (None, name)}
    copies = {name: old[name].clone() for name in kept}
    if key is None:
        optimizer.state[p] = copies
    else:
        optimizer.state[p].update(copies)
    assert_same_steps(p, optimizer, q, expected)
    assert all(torch.equal(bits(old[name]), value) for name, value in kept.items())


@pytest.mark.parametrize("replaced", [{"step": torch.tensor(100.0)}, {
    "exp_avg": torch.full((300,), 7.0), "exp_avg_sq": torch.full((300,), 2.0), "step": torch.tensor(100)}])
def test_the_values_of_a_replaced_dict_are_used(device: str, replaced: dict[str, torch.Tensor]) -> None:
    p, optimizer, q, expected = both(device)
    saved = expected.state_dict()
    expected.load_state_dict({**saved, "state": {0: {**saved["state"][0], **replaced}}})
    optimizer.state[p] = {**optimizer.state[p], **{key: value.to(device) for key, value in replaced.items()}}
    assert_same_steps(p, optimizer, q, expected, 2)
    assert int(optimizer.state[p]["step"]) == 102


@pytest.mark.parametrize("remove", [
    lambda o, p: o.state.clear(), lambda o, p: o.state.pop(p), lambda o, p: o.state[p].clear(),
    lambda o, p: o.state.update({p: {}}), lambda o, p: setattr(o, "state", defaultdict(dict))])
def test_a_removed_state_begins_again(device: str, remove: Callable[[Any, Any], None]) -> None:
    p, optimizer, q, _ = both(device)
    remove(optimizer, p)
    assert_same_steps(p, optimizer, q, optim.AdamW([q], lr=0.5))


@pytest.mark.parametrize("steps", [None, torch.tensor(-1), 2.5, torch.tensor(float("nan")), "3",
                                   torch.zeros(2), float("inf")])
def test_a_count_that_is_no_whole_number_is_refused(steps: Any) -> None:
    p, optimizer, _, _ = both("cpu")
    before = p.detach().clone()
    optimizer.state[p] = {**optimizer.state[p], "step": steps}
    for _ in range(2):
        with pytest.raises(sb.InvalidArgument, match="parameter 0: state step: the number of steps"):
            optimizer.step()
    assert torch.equal(p, before)
    optimizer.state[p]["step"] = 1
    optimizer.step()
    assert not torch.equal(p, before)


def test_a_replaced_dict_of_one_of_two_parameters(device: str) -> None:
    params, alone = ([ones(n, device=device) for n in (5, 300)] for _ in range(2))
    optimizer, expected = optim.AdamW(params, lr=0.5), [optim.AdamW([p], lr=0.5) for p in alone]
    for step in range(4):
        for ps in (params, alone):
            for p in ps:
                p.grad = torch.full_like(p, 1.0 + step)
        if step == 2:
            optimizer.state[params[1]] = {}
            expected[1] = optim.AdamW([alone[1]], lr=0.5)
        for o in (optimizer, *expected):
            o.step()
    assert [int(optimizer.state[p]["step"]) for p in params] == [4, 2]
    assert all(torch.equal(p, q) for p, q in zip(params, alone, strict=True))


def test_states_of_nothing_are_left_alone() -> None:
    p, optimizer, q, expected = both("cpu")
    optimizer.state["of the caller"] = 5
    batches = None
    for _ in range(3):
        assert_same_steps(p, optimizer, q, expected)
        assert batches is None or optimizer._batches is batches
        batches = optimizer._batches
    assert optimizer.state.pop("of the caller") == 5


@pytest.mark.parametrize("option,value", [("weights", "direct"), ("states", "bf16"), ("block", 256),
                                          ("states", ("fp32", "bf16"))])
def test_options_of_the_arrays_stay_after_the_first_step(option: str, value: Any) -> None:
    p, optimizer = stepped((300,))
    optimizer.param_groups[0][option] = value
    before = p.detach().clone()
    with pytest.raises(sb.InvalidArgument, match="group 0: weights, states and block must stay"):
        optimizer.step()
    assert torch.equal(p, before)
    fresh = torch.nn.Parameter(torch.ones(300))
    before_a_step = optim.AdamW([fresh])
    before_a_step.param_groups[0][option] = value
    fresh.grad = torch.ones(300)
    before_a_step.step()


def test_momentum_may_end_but_not_begin_later() -> None:
    p, optimizer = stepped((300,), optim.SGD, momentum=0.9)
    optimizer.param_groups[0]["momentum"] = 0.0
    optimizer.step()
    assert bool((p == 0).all())
    p, optimizer = stepped((300,), optim.SGD)
    optimizer.param_groups[0]["momentum"] = 0.9
    with pytest.raises(sb.InvalidArgument, match="momentum cannot begin later"):
        optimizer.step()
