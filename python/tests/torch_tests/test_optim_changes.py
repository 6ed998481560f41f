"""samebits.torch.optim: parameters, states and groups that change after the first step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import samebits as sb
from samebits.torch import optim


def stepped(shape: tuple[int, ...], kind: Any = optim.AdamW, device: str = "cpu",
            **options: Any) -> tuple[torch.nn.Parameter, Any]:
    """Return a parameter and its optimizer after one step."""
    p = torch.nn.Parameter(torch.ones(shape, device=device))
    optimizer = kind([p], lr=0.5, **options)
    p.grad = torch.ones_like(p)
    optimizer.step()
    return p, optimizer


@pytest.mark.parametrize("change", [
    lambda t: t.bfloat16(), lambda t: t[:1], lambda t: t.reshape(8, 4), lambda t: t.t(),
    lambda t: torch.ones(5, 8)], ids=["dtype", "shorter", "reshaped", "transposed", "longer"])
def test_a_changed_parameter_is_refused(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    p, optimizer = stepped((4, 8))
    p.data = change(p.data)
    p.grad = torch.ones_like(p)
    with pytest.raises(sb.InvalidArgument, match="parameter 0: device, dtype, shape or memory order"):
        optimizer.step()


def test_a_parameter_with_another_order_of_memory_is_refused() -> None:
    p, optimizer = stepped((4, 8, 2, 2))
    p.data = p.data.contiguous(memory_format=torch.channels_last)
    p.grad = torch.ones_like(p)
    with pytest.raises(sb.InvalidArgument, match="parameter 0: device, dtype, shape or memory order"):
        optimizer.step()


def test_a_parameter_on_another_device_is_refused(cuda: str) -> None:
    p, optimizer = stepped((4, 8))
    p.data = p.data.to(cuda)
    p.grad = torch.ones_like(p)
    with pytest.raises(sb.InvalidArgument, match="parameter 0: device, dtype, shape or memory order"):
        optimizer.step()


def test_a_parameter_may_move(device: str) -> None:
    p, optimizer = stepped((4, 8), optim.SGD, device)
    old, p.data = p.data, p.data.clone()
    optimizer.step()
    assert bool((old == 0.5).all()) and bool((p == 0).all())


@pytest.mark.parametrize("key", ["exp_avg", "exp_avg_scale"])
def test_a_replaced_state_is_the_one_that_is_updated(device: str, key: str) -> None:
    p, optimizer = stepped((300,), device=device, states="e4m3")
    q, expected = stepped((300,), device=device, states="e4m3")
    old = optimizer.state[p][key]
    optimizer.state[p][key] = old.clone()
    kept = old.clone()
    for parameter, o in ((p, optimizer), (q, expected)):
        parameter.grad = torch.full_like(parameter, 3.0)
        o.step()
    assert torch.equal(old.view(torch.uint8), kept.view(torch.uint8))
    assert torch.equal(p, q)
    for name in ("exp_avg", "exp_avg_scale", "exp_avg_sq", "exp_avg_sq_scale"):
        ours, theirs = optimizer.state[p][name], expected.state[q][name]
        assert torch.equal(ours.view(torch.uint8), theirs.view(torch.uint8)), name


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


def test_groups_with_different_seeds_are_refused() -> None:
    p, q = (torch.nn.Parameter(torch.ones(4)) for _ in range(2))
    with pytest.raises(sb.InvalidArgument, match="seed: must be the same for all"):
        optim.SGD([{"params": [p], "seed": 1}, {"params": [q]}])
    optimizer = optim.SGD([p])
    optimizer.add_param_group({"params": [q], "seed": 1})
    with pytest.raises(sb.InvalidArgument, match="seed: must be the same for all"):
        optimizer.step()
    with pytest.raises(sb.InvalidArgument, match="block: 128 or 256"):
        optim.AdamW([p], states="e4m3", block=0)
