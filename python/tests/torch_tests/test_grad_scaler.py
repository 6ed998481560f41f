"""GradScaler beside torch's: errors, settings, reports, clipping, gradients of every kind."""

from __future__ import annotations

import math
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import samebits as sb
import samebits.torch as sbt
from samebits import _core
from samebits.torch import resident_scaler
from scaler_models import bits, model_of, set_gradients, step, wait_for_reports

Scaler = torch.amp.GradScaler


def test_errors_are_torchs(device: str) -> None:
    def uses(scaler: Scaler) -> list[str]:
        model = model_of(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        said = []

        def attempt(call: Callable[[], object]) -> None:
            try:
                call()
                said.append("no error")
            except Exception as error:
                said.append(f"{type(error).__name__}: {error}")

        attempt(lambda: scaler.unscale_(optimizer))
        attempt(lambda: scaler.step(optimizer))
        attempt(scaler.update)
        scaler.scale(torch.ones((), device=device))
        attempt(scaler.update)
        attempt(lambda: scaler.step(optimizer))  # no gradients
        set_gradients(model)
        scaler.unscale_(optimizer) if said[-1] == "no error" else None
        attempt(lambda: scaler.step(optimizer, closure=lambda: 0.0))
        scaler._per_optimizer_states.clear()
        attempt(lambda: scaler.unscale_(optimizer))
        attempt(lambda: scaler.unscale_(optimizer))
        attempt(lambda: scaler.step(optimizer))
        attempt(lambda: scaler.step(optimizer))
        attempt(lambda: scaler.unscale_(optimizer))
        attempt(lambda: scaler.update(torch.ones(2, device=device)))
        attempt(scaler.update)
        attempt(lambda: scaler.load_state_dict({}))
        attempt(lambda: scaler.scale(3))  # type: ignore[call-overload]
        attempt(lambda: pickle.dumps(scaler))
        return said

    ours, theirs = uses(sbt.GradScaler(device)), uses(Scaler(device))
    assert ours == theirs
    assert sum(text == "no error" for text in ours) <= 5
    for bad in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises(AssertionError) as of_torch:
            Scaler(device, **bad)
        with pytest.raises(AssertionError) as of_ours:
            sbt.GradScaler(device, **bad)
        assert str(of_torch.value) == str(of_ours.value)


@pytest.mark.parametrize("given, message", [
    ({"policy": "tensorflow"}, "policy: 'tensorflow'"), ({"policy": "apex", "hysterisis": 2}, "hysterisis"),
    ({"init_scale": 3.0, "policy": "native"}, "init_scale: policy native needs a power of two"),
    ({"max_norm": math.nan}, "max_norm: a number >= 0"),
    ({"reports": 0}, "reports: an integer of 1 .. 2.32 - 1 is expected; got 0")])
def test_wrong_arguments(given: dict[str, Any], message: str) -> None:
    with pytest.raises(sb.InvalidArgument, match=message):
        sbt.GradScaler("cpu", **given)


def test_setters(device: str) -> None:
    runs = []
    for kind in (sbt.GradScaler, Scaler):
        scaler, optimizer = kind(device, 1024.0, growth_interval=1), torch.optim.SGD(model_of(device).parameters())
        scales = []
        for number in range(6):
            step(scaler, optimizer, math.inf if number in (2, 4) else 1.0)
            scales.append(scaler.get_scale())
            if number == 1:
                scaler.set_growth_factor(3.0)
                scaler.set_backoff_factor(0.125)
            if number == 3:
                scaler.set_growth_interval(2)
        state = scaler.state_dict()
        state.pop("samebits", None)
        runs.append((scales, state, scaler.get_growth_factor(), scaler.get_backoff_factor(),
                     scaler.get_growth_interval()))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("way", ["in place", "replaced"])
def test_scale_that_the_caller_writes(device: str, way: str) -> None:
    """Some programs keep the scale above a minimum by writing the attribute `_scale`."""
    runs = []
    for kind in (sbt.GradScaler, Scaler):
        p = torch.nn.Parameter(torch.zeros(3, device=device))
        scaler: Any = kind(device, 1024.0, growth_interval=2)
        optimizer = torch.optim.SGD([p], lr=1.0)
        scales = []
        for step in range(8):
            scaler.scale((p * 3).sum()).backward()
            if step in (2, 3):
                assert p.grad is not None
                p.grad[1] = math.inf
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            if scaler._scale < 700:
                if way == "in place":
                    scaler._scale.fill_(1000.0)
                else:
                    scaler._scale = torch.tensor(1000.0).to(scaler._scale)
            scales.append(scaler.get_scale())
        state = scaler.state_dict()
        state.pop("samebits", None)
        runs.append((scales, p.tolist(), state))
    assert runs[0] == runs[1] and 1000.0 in runs[0][0]


def test_disabled(device: str) -> None:
    model, loss = model_of(device), torch.ones((), device=device)
    scaler = sbt.GradScaler(device, enabled=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    assert scaler.scale(loss) is loss
    scaler.unscale_(optimizer)
    step(scaler, optimizer, math.inf)
    assert all(p.isinf().all() for p in model.parameters())
    assert scaler.state_dict() == {} and scaler.get_scale() == 1.0 and not scaler.is_enabled()
    assert list(scaler.reports()) == []
    scaler.load_state_dict({})
    assert not pickle.loads(pickle.dumps(scaler)).is_enabled()


def test_reports_by_name(device: str) -> None:
    model = model_of(device)
    first, second = (torch.optim.SGD(part.parameters(), lr=0.1) for part in model)
    named = torch.optim.SGD(model.named_parameters(), lr=0.1)
    scaler = sbt.GradScaler(device, reports=4)

    def step(bad: int, *optimizers: torch.optim.Optimizer) -> None:
        scaler.scale(torch.ones((), device=device))
        set_gradients(model)
        parameters = list(model.parameters())
        if bad >= 0:
            assert parameters[bad].grad is not None
            parameters[bad].grad.view(-1)[-1] = math.nan
        parameters[1].grad = None
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()

    step(-1, first, second)
    step(3, first, second)
    step(2, named)
    reports = wait_for_reports(scaler, 3)
    assert [r.first_bad for r in reports] == [None, "group 0, parameter 1", "1.weight"]
    assert [r.applied for r in reports] == [True, False, False]
    assert [r.step for r in reports] == [0, 1, 2] and reports[2].applied_steps == 1
    assert reports[1].cause == "nan" and reports[1].scale == 2.0**16
    assert reports[2].scale == 2.0**15
    scaler.name_parameters(model)
    step(3, first, second)
    assert wait_for_reports(scaler, 1)[0].first_bad == "1.bias"
    for _ in range(6):
        step(-1, first, second)
    reports = wait_for_reports(scaler, 4)
    assert [r.step for r in reports] == [6, 7, 8, 9] and scaler.lost_reports() == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("max_norm", [1.0, 0.001, 1e9, 0.0])
def test_clipping(device: str, dtype: torch.dtype, max_norm: float) -> None:
    """Unscaled and clipped gradients have the bits of the library's functions on the host."""
    model = model_of(device, dtype)
    make = torch.Generator().manual_seed(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    scaler = sbt.GradScaler(device, 1000.0, max_norm=max_norm, growth_interval=1)
    for p in model.parameters():
        p.grad = (torch.randn(p.shape, generator=make) * 500).to(device, dtype)
    copies, norm, clip = on_host(model, max_norm)
    sb.scale(copies, float(np.float32(1 / 1000) * clip))
    step(scaler, optimizer, None)
    for p, expected in zip(model.parameters(), copies, strict=True):
        assert p.grad is not None and torch.equal(bits(p.grad), bits(expected))
    step(scaler, optimizer, math.inf)  # a step that is not finite is not clipped, only unscaled
    first, second = wait_for_reports(scaler, 2)
    assert first.norm == norm and not second.applied and second.norm == math.inf


def on_host(model: torch.nn.Module, max_norm: float) -> tuple[list[torch.Tensor], float, Any]:
    """Return gradients, their norm without the scale 1000, and the clip factor."""
    copies = [p.grad.clone().cpu() for p in model.parameters() if p.grad is not None]
    norm = sb.l2norm(copies)[0] * float(np.float32(1 / 1000))
    return copies, norm, np.float32(min(1.0, max_norm / (norm + 1e-6)))


@pytest.mark.parametrize("max_norm", [math.inf, 1.0, 1e9])
def test_fused_optimizer_gets_scale_and_clip_factor(device: str, max_norm: float) -> None:
    """The gradients are only read: the optimizer divides by scale / clip factor itself."""
    model = model_of(device)
    seen: list[tuple[float, float]] = []

    class Recording(torch.optim.Adam):
        def step(self, closure: Any = None) -> Any:
            given: Any = self
            seen.append((float(given.grad_scale), float(given.found_inf)))
            return super().step(closure)

    optimizer = Recording(model.parameters(), lr=0.1, fused=True)
    scaler = sbt.GradScaler(device, 1000.0, max_norm=max_norm)
    set_gradients(model, 1e6)
    _, norm, clip = on_host(model, max_norm)
    step(scaler, optimizer, None)
    assert seen == [(float(np.float32(1000.0) / clip), 0.0)]
    assert not hasattr(optimizer, "grad_scale") and not hasattr(optimizer, "found_inf")
    before = [p.detach().clone() for p in model.parameters()]
    step(scaler, optimizer, math.inf)
    assert seen[1][1] == 1.0
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))
    reports = wait_for_reports(scaler, 2)
    assert reports[0].norm == norm and [r.applied for r in reports] == [True, False]


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_unusual_gradients(device: str) -> None:
    """Other dtypes, sparse tensors and other layouts: torch's bits, and found in any of them."""
    def gradients(bad: int | None) -> list[torch.Tensor]:
        make = torch.Generator().manual_seed(5)

        def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
            return torch.randn(shape, generator=make).to(device, dtype)

        dense = [
            normal(4, 3),
            normal(4, 3, dtype=torch.float64),
            normal(2, 3, 4, 5).to(memory_format=torch.channels_last),
            normal(6, 5).t(),
            normal(8, 6)[:, ::2],
            torch.zeros(0, device=device),
        ]
        if device == "cpu":  # torch's GradScaler refuses bf16 gradients on CUDA
            dense.append(normal(4, 3, dtype=torch.bfloat16))
        if bad is not None:
            dense[bad][(0,) * dense[bad].ndim] = math.inf
        at = torch.tensor([[0, 2, 0]])
        sparse = torch.sparse_coo_tensor(at, torch.ones(3, 2), (4, 2), check_invariants=True)
        return [*dense, sparse.to(device)]

    for bad in (None, 0, 1, 2, 3, 4, *([6] if device == "cpu" else [])):
        results = []
        for kind in (sbt.GradScaler, Scaler):
            scaler = kind(device, 1024.0)
            scaler.scale(torch.ones((), device=device))
            parameters = []
            for g in gradients(bad):
                p = torch.nn.Parameter(torch.zeros(g.shape, dtype=g.dtype, device=device))
                p.grad = g
                parameters.append(p)
            optimizer = torch.optim.SGD(parameters, lr=0.5)
            scaler.step(optimizer)
            scaler.update()
            results.append((scaler.get_scale(), [bits(p) for p in parameters]))
        assert results[0][0] == results[1][0] == (1024.0 if bad is None else 512.0)
        assert all(torch.equal(a, b) for a, b in zip(results[0][1], results[1][1], strict=True))


def test_clipping_refuses_what_it_cannot_clip(device: str) -> None:
    p = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64, device=device))
    with pytest.raises(sb.InvalidArgument, match="max_norm: gradients in torch.float64"):
        step(sbt.GradScaler(device, max_norm=1.0), torch.optim.SGD([p], lr=0.1))


def test_optimizer_that_asks_the_scaler(device: str) -> None:
    """Older optimizers take the scaler as an argument of step()."""
    class Asking(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure: Any = None, *, grad_scaler: Any = None) -> Any:
            found = grad_scaler._check_inf_per_device(self)
            if sum(v.item() for v in found.values()) == 0:
                scale = grad_scaler._get_scale_async()
                for p in self.param_groups[0]["params"]:
                    p.data.sub_(p.grad / scale)

    results = []
    for kind in (sbt.GradScaler, Scaler):
        p = torch.nn.Parameter(torch.zeros(3, device=device))
        scaler, optimizer = kind(device, 4.0), Asking([p], lr=1.0)
        for value in (8.0, math.inf):
            with pytest.warns(FutureWarning):
                step(scaler, optimizer, value)
        results.append((p.tolist(), scaler.get_scale()))
    assert results[0] == results[1] == ([-2.0] * 3, 2.0)
    clipping = sbt.GradScaler(device, 4.0, max_norm=1.0)
    clipping.scale(torch.ones((), device=device))
    with pytest.raises(sb.InvalidArgument, match="max_norm: this optimizer asks the scaler"):
        clipping.step(optimizer)


def test_found_inf_that_the_caller_combines(device: str) -> None:
    """Frameworks reduce found_inf over ranks in place; the scale follows."""
    model = model_of(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = sbt.GradScaler(device, 1024.0)
    scaler.scale(torch.ones((), device=device))
    set_gradients(model)
    before = [p.detach().clone() for p in model.parameters()]
    scaler.unscale_(optimizer)
    for found in scaler._found_inf_per_device(optimizer).values():
        found.fill_(1.0)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 512.0
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))


@pytest.mark.parametrize("policy", ["torch", "native"])
def test_autograd_sees_what_is_written(device: str, policy: str) -> None:
    """As with torch: a backward pass after scale() works, after update() it is refused."""
    model = model_of(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = sbt.GradScaler(device, policy=policy)
    for _ in range(3):
        optimizer.zero_grad()
        first = scaler.scale(model(torch.ones(3, 4, device=device)).sum())
        second = scaler.scale(model(torch.ones(3, 4, device=device)).sum())
        (first + second).backward(retain_graph=True)
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        versions = [g._version for g in gradients]
        scaler.step(optimizer)
        assert all(g._version > v for g, v in zip(gradients, versions, strict=True))
        scaler.update()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            first.backward()


def test_lists_of_losses(device: str) -> None:
    for last, cause in ((3.0, "none"), (math.nan, "loss")):
        scaler = sbt.GradScaler(device, 4.0, policy="native")
        p = torch.nn.Parameter(torch.zeros(2, device=device))
        optimizer = torch.optim.SGD([p], lr=0.1)
        losses = [torch.ones((), device=device), (torch.tensor([3.0, last], device=device),)]
        scaled = scaler.scale(losses)
        assert float(scaled[0]) == 4.0 and float(scaled[1][0][0]) == 12.0
        p.grad = torch.full_like(p, last)
        scaler.step(optimizer)
        scaler.update()
        (report,) = wait_for_reports(scaler, 1)
        assert report.cause == cause


def test_dtensor_gradients_by_local_shard(one_rank: str) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    whole = torch.zeros(8, 4, device=one_rank)
    p = torch.nn.Parameter(distribute_tensor(whole, init_device_mesh(one_rank, (1,)), [Shard(0)]))
    scaler, optimizer = sbt.GradScaler(one_rank, 8.0), torch.optim.SGD([p], lr=1.0)
    for value in (8.0, math.inf):
        step(scaler, optimizer, value)
    assert scaler.get_scale() == 4.0
    assert torch.equal(p.detach().to_local().cpu(), torch.full((8, 4), -1.0))
    with pytest.raises(sb.InvalidArgument, match="DTensor"):
        step(sbt.GradScaler(one_rank, max_norm=1.0), optimizer)


@pytest.mark.parametrize(("max_norm", "value", "norm"), [
    (math.inf, 1.0, None), (math.inf, math.nan, None), (1e9, math.nan, math.nan), (1e9, 0.0, 0.0)])
def test_a_norm_that_was_not_computed_is_none(device: str, max_norm: float, value: float, norm: float | None) -> None:
    scaler = sbt.GradScaler(device, max_norm=max_norm)
    step(scaler, torch.optim.SGD(model_of(device).parameters(), lr=0.1), value)
    (report,) = wait_for_reports(scaler, 1)
    assert repr(report.norm) == repr(norm)


def test_a_state_is_read_while_its_memory_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy of a GPU's state on the host must live until the library has read it."""
    scaler = sb.LossScaler("torch")
    resident = resident_scaler.ResidentScaler(scaler, torch.device("cpu"), 4)
    copies, state = [], resident._state

    class OnGpu:
        def cpu(self) -> torch.Tensor:
            copy = state.clone()
            copies.append(weakref.ref(copy))
            return copy

    class Core:
        def resident_load(self, core: Any, address: int) -> None:
            alive = [copy() for copy in copies]
            assert [copy.data_ptr() for copy in alive if copy is not None] == [address]
            _core.resident_load(core, address)

    monkeypatch.setattr(resident, "_state", OnGpu())
    monkeypatch.setattr(resident_scaler, "_core", Core())
    resident.fetch(scaler)
    assert scaler.get_scale() == 65536.0
