"""GradScaler beside torch's: the same scales, skipped steps and parameters, bit for bit."""

from __future__ import annotations

import copy
import math
import os
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import samebits as sb
import samebits.torch as sbt

TRACES = int(os.environ.get("SAMEBITS_TRACES", "200"))

Scaler = torch.amp.GradScaler


def bits(t: torch.Tensor) -> torch.Tensor:
    """The bits of a tensor, all NaN alike."""
    t = t.detach().cpu().contiguous()
    kinds = {8: torch.int64, 4: torch.int32, 2: torch.int16}
    return torch.where(t.isnan(), torch.full_like(t, math.nan), t).view(kinds[t.element_size()])


class Run:
    """A tiny model with a scaler; each step is made from the numbers of a plan."""

    def __init__(self, scaler: Scaler, device: str, seed: int, optimizers: int = 1,
                 kind: str = "sgd", dtype: torch.dtype = torch.float32) -> None:
        make = torch.Generator().manual_seed(seed)
        self.scaler = scaler
        self.parameters = [
            torch.nn.Parameter(torch.randn(shape, generator=make).to(device=device, dtype=dtype))
            for shape in ((3, 5), (7,), (), (2, 2, 3))]
        groups = [self.parameters[i::optimizers] for i in range(optimizers)]
        classes: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
            "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
            "adam": lambda p: torch.optim.Adam(p, lr=0.1),
            "fused": lambda p: torch.optim.Adam(p, lr=0.1, fused=True),
            # With momentum, torch 2.11 reads unwritten memory if the first step is skipped.
            "fused_sgd": lambda p: torch.optim.SGD(p, lr=0.1, fused=True),
        }
        self.optimizers = [classes[kind](g) for g in groups]

    def step(self, plan: dict[str, Any]) -> None:
        if plan["zero"]:
            for optimizer in self.optimizers:
                optimizer.zero_grad()
        loss = sum(((p * c.to(p.device, p.dtype)).sum() for p, c in zip(
            self.parameters, plan["slopes"], strict=True)), torch.zeros(()))
        self.scaler.scale(loss).backward()
        for i, optimizer in enumerate(self.optimizers):
            if plan["unscale"] >> i & 1:
                self.scaler.unscale_(optimizer)
                if plan["clip"]:
                    torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)
            if plan["skip"] != i:
                self.scaler.step(optimizer)
            elif not plan["unscale"] >> i & 1:
                self.scaler.unscale_(optimizer)
        self.scaler.update(plan["new_scale"])

    def state(self) -> list[torch.Tensor]:
        values: list[torch.Tensor] = [p for p in self.parameters]
        values += [p.grad for p in self.parameters if p.grad is not None]
        for optimizer in self.optimizers:
            for state in optimizer.state.values():
                values += [v for v in state.values() if isinstance(v, torch.Tensor)]
        return [bits(v) for v in values]


def a_plan(chance: random.Random, optimizers: int) -> dict[str, Any]:
    make = torch.Generator().manual_seed(chance.getrandbits(60))
    slopes = [torch.randn(shape, generator=make) * 2.0 ** chance.randint(-30, 10)
              for shape in ((3, 5), (7,), (), (2, 2, 3))]
    if chance.random() < 0.3:
        bad = chance.choice(slopes)
        bad.view(-1)[chance.randrange(bad.numel())] = chance.choice([math.inf, -math.inf, math.nan])
    return {"slopes": slopes, "zero": chance.random() < 0.9, "clip": chance.random() < 0.5,
            "unscale": chance.randrange(2**optimizers) if chance.random() < 0.5 else 0,
            "skip": chance.randrange(optimizers) if chance.random() < 0.1 else None,
            "new_scale": 2.0 ** chance.randint(-3, 20) if chance.random() < 0.05 else None}


def settings(chance: random.Random) -> dict[str, Any]:
    return {"init_scale": chance.choice([2.0**16, 1000.0, 3.0, 2.0**100, 1e-3, 2.0**127]),
            "growth_factor": chance.choice([2.0, 1.5, 1.0001, 16.0, 1.1]),
            "backoff_factor": chance.choice([0.5, 0.25, 0.1, 0.99]),
            "growth_interval": chance.choice([1, 2, 3, 5])}


def same(ours: Run, theirs: Run) -> bool:
    a, b = ours.scaler, theirs.scaler
    assert a._scale is not None and b._scale is not None
    return (torch.equal(bits(a._scale), bits(b._scale))
            and a._get_growth_tracker() == b._get_growth_tracker()
            and all(torch.equal(x, y) for x, y in zip(ours.state(), theirs.state(), strict=True)))


@pytest.mark.parametrize("kind", ["sgd", "adam", "fused", "fused_sgd"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_traces_of_torch(device: str, kind: str, dtype: torch.dtype) -> None:
    if device == "cuda" and dtype == torch.bfloat16:
        pytest.skip("torch's GradScaler refuses bf16 gradients on CUDA")
    share = max(1, TRACES // 12)
    for seed in range(share):
        chance = random.Random(f"{seed} {kind} {dtype}")
        given = settings(chance)
        optimizers = chance.choice([1, 1, 2, 3])
        ours, theirs = (Run(scaler(device, **given), device, seed, optimizers, kind, dtype)
                        for scaler in (sbt.GradScaler, Scaler))
        for step in range(12):
            plan = a_plan(chance, optimizers)
            ours.step(plan)
            theirs.step(plan)
            assert same(ours, theirs), f"trace {seed}, step {step}, {given}"


def resumed_by_state(scaler: Scaler, into: Callable[..., Scaler], device: str) -> Scaler:
    other = into(device)
    other.load_state_dict(scaler.state_dict())
    return other


@pytest.mark.parametrize("way", ["ours to torch", "torch to ours", "ours to ours", "pickle",
                                 "deepcopy", "load into a used scaler"])
def test_resume(device: str, way: str) -> None:
    for seed in range(max(1, TRACES // 20)):
        chance = random.Random(f"{seed} {way}")
        given = settings(chance)
        runs = [Run(scaler(device, **given), device, seed)
                for scaler in (sbt.GradScaler, Scaler)]
        plans = [a_plan(chance, 1) for _ in range(16)]
        for plan in plans[:8]:
            for run in runs:
                run.step(plan)
        ours, theirs = runs
        kept = theirs.scaler
        if way == "ours to torch":
            ours.scaler = resumed_by_state(ours.scaler, Scaler, device)
        elif way == "torch to ours":
            ours.scaler = resumed_by_state(kept, sbt.GradScaler, device)
        elif way == "ours to ours":
            ours.scaler = resumed_by_state(ours.scaler, sbt.GradScaler, device)
        elif way == "pickle":
            ours.scaler = pickle.loads(pickle.dumps(ours.scaler))
        elif way == "deepcopy":
            ours.scaler = copy.deepcopy(ours.scaler)
        else:
            ours.scaler.load_state_dict(kept.state_dict())
        for step, plan in enumerate(plans[8:]):
            ours.step(plan)
            theirs.step(plan)
            assert same(ours, theirs), f"trace {seed}, step {step} after the resume, {given}"


POLICIES: list[tuple[str, dict[str, Any]]] = [
    ("torch", {"init_scale": 2.0**12, "growth_interval": 3}),
    ("native", {"init_exponent": 12, "growth_interval": 5, "recovery_interval": 2, "proof": 4}),
    ("native", {"init_exponent": 20, "growth_headroom": "off", "hysteresis": 1}),
    ("apex", {"init_scale": 2.0**12, "growth_interval": 3, "hysteresis": 2}),
    ("apex_amp", {"init_scale": 2.0**12, "scale_window": 3}),
    ("megatron", {"initial_scale": 2.0**12, "hysteresis": 2, "growth_interval": 3}),
    ("deepspeed", {"init_scale": 2.0**12, "scale_window": 3, "scale_factor": 1.5,
                   "raise_error_at_min_scale": False}),
]


@pytest.mark.parametrize("policy, given", POLICIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_policies_against_the_loss_scaler(device: str, policy: str, given: dict[str, Any],
                                          dtype: torch.dtype) -> None:
    """Every policy: scales, decisions and unscaled gradients of samebits.LossScaler."""
    chance = np.random.default_rng(1)
    scaler = sbt.GradScaler(device, policy=policy, **given)
    reference = sb.LossScaler(policy, **given)
    p = torch.nn.Parameter(torch.zeros(64, device=device, dtype=dtype))
    optimizer = torch.optim.SGD([p], lr=0.0)
    for step in range(60):
        loss = math.nan if chance.random() < 0.05 else 1.0
        scaled = scaler.scale(torch.tensor(loss, device=device))
        assert math.isnan(loss) or float(scaled) == np.float32(reference.scale(loss))
        if math.isnan(loss) and policy == "native":  # the others do not look at losses
            reference.scale(loss)
        values = chance.standard_normal(64) * 2.0 ** chance.integers(-20, 8)
        if math.isnan(loss) or chance.random() < 0.2:
            values[chance.integers(64)] = chance.choice([np.inf, np.nan])
        p.grad = torch.tensor(values, device=device).to(dtype)
        expected = p.grad.clone().cpu()
        report = reference.unscale(expected)
        scaler.unscale_(optimizer)
        assert torch.equal(bits(p.grad), bits(expected)), f"step {step}"
        stepped = reference.step()
        scaler.step(optimizer)
        found = scaler._found_inf_per_device(optimizer)[torch.device(p.device)]
        assert bool(found) != stepped
        scaler.update()
        decision = reference.update()
        (seen,) = _wait_for_reports(scaler, 1)
        assert (seen.applied, seen.cause, seen.change, seen.stop) == (
            decision.applied, decision.cause, decision.change, decision.stop)
        assert (seen.first_bad is not None) == (report.first_bad is not None)
        assert scaler.get_scale() == np.float32(reference.get_scale()), f"step {step}"
    assert scaler._synchronized().scaler.save() == reference.save()


def _wait_for_reports(scaler: sbt.GradScaler, count: int) -> list[sbt.GradStep]:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    reports = list(scaler.reports())
    assert len(reports) == count
    return reports


def _model(device: str, dtype: torch.dtype = torch.float32) -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)).to(device, dtype)


def _set_gradients(model: torch.nn.Module, value: float = 1.0) -> None:
    for p in model.parameters():
        p.grad = torch.full_like(p, value)


def test_errors_are_torchs(device: str) -> None:
    def uses(scaler: Scaler) -> list[str]:
        model = _model(device)
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
        _set_gradients(model)
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


def test_wrong_arguments() -> None:
    with pytest.raises(sb.InvalidArgument, match="policy: 'tensorflow'"):
        sbt.GradScaler("cpu", policy="tensorflow")
    with pytest.raises(sb.InvalidArgument, match="hysterisis"):
        sbt.GradScaler("cpu", policy="apex", hysterisis=2)
    with pytest.raises(sb.InvalidArgument, match="init_scale: policy native needs a power of two"):
        sbt.GradScaler("cpu", 3.0, policy="native")
    with pytest.raises(sb.InvalidArgument, match="max_norm: a number >= 0"):
        sbt.GradScaler("cpu", max_norm=math.nan)
    with pytest.raises(sb.InvalidArgument, match="reports: 1 or more"):
        sbt.GradScaler("cpu", reports=0)


@pytest.mark.parametrize("policy, scale, interval", [
    ("torch", 2.0**16, 2000), ("native", 2.0**16, 2000), ("apex", 2.0**16, 2000),
    ("megatron", 2.0**32, 1000), ("deepspeed", 2.0**16, 1000), ("apex_amp", 2.0**16, 2000)])
def test_each_policy_has_its_own_defaults(policy: str, scale: float, interval: int) -> None:
    scaler = sbt.GradScaler("cpu", policy=policy)
    assert (scaler.get_scale(), scaler.get_growth_interval()) == (scale, interval)
    given = sbt.GradScaler("cpu", 256.0, growth_interval=7, policy=policy)
    assert (given.get_scale(), given.get_growth_interval()) == (256.0, 7)
    given.scale(torch.ones(()))
    assert given.get_scale() == 256.0


def test_setters(device: str) -> None:
    model = _model(device)
    runs = []
    for kind in (sbt.GradScaler, Scaler):
        scaler = kind(device, 1024.0, growth_interval=1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        scales = []
        for step in range(6):
            scaler.scale(torch.ones((), device=device))
            _set_gradients(model, math.inf if step in (2, 4) else 1.0)
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
            if step == 1:
                scaler.set_growth_factor(3.0)
                scaler.set_backoff_factor(0.125)
            if step == 3:
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
    model = _model(device)
    scaler = sbt.GradScaler(device, enabled=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    loss = torch.ones((), device=device)
    assert scaler.scale(loss) is loss
    _set_gradients(model, math.inf)
    before = [p.detach().clone() for p in model.parameters()]
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert all(p.isinf().all() for p in model.parameters()) and before
    assert scaler.state_dict() == {} and scaler.get_scale() == 1.0 and not scaler.is_enabled()
    assert list(scaler.reports()) == []
    scaler.load_state_dict({})
    assert not pickle.loads(pickle.dumps(scaler)).is_enabled()


def test_reports_by_name(device: str) -> None:
    model = _model(device)
    first, second = (torch.optim.SGD(part.parameters(), lr=0.1) for part in model)
    named = torch.optim.SGD(model.named_parameters(), lr=0.1)
    scaler = sbt.GradScaler(device, reports=4)

    def step(bad: int, *optimizers: torch.optim.Optimizer) -> None:
        scaler.scale(torch.ones((), device=device))
        _set_gradients(model)
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
    reports = _wait_for_reports(scaler, 3)
    assert [r.first_bad for r in reports] == [None, "group 0, parameter 1", "1.weight"]
    assert [r.applied for r in reports] == [True, False, False]
    assert [r.step for r in reports] == [0, 1, 2] and reports[2].applied_steps == 1
    assert reports[1].cause == "nan" and reports[1].scale == 2.0**16
    assert reports[2].scale == 2.0**15
    scaler.name_parameters(model)
    step(3, first, second)
    assert _wait_for_reports(scaler, 1)[0].first_bad == "1.bias"
    for _ in range(6):
        step(-1, first, second)
    reports = _wait_for_reports(scaler, 4)
    assert [r.step for r in reports] == [6, 7, 8, 9] and scaler.lost_reports() == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("max_norm", [1.0, 0.001, 1e9, 0.0])
def test_clipping(device: str, dtype: torch.dtype, max_norm: float) -> None:
    """Unscaled and clipped gradients have the bits of the library's functions on the host."""
    model = _model(device, dtype)
    make = torch.Generator().manual_seed(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    scaler = sbt.GradScaler(device, 1000.0, max_norm=max_norm, growth_interval=1)
    scaler.scale(torch.ones((), device=device))
    for p in model.parameters():
        p.grad = (torch.randn(p.shape, generator=make) * 500).to(device, dtype)
    copies = [p.grad.clone().cpu() for p in model.parameters() if p.grad is not None]
    inverse = np.float32(1 / 1000)
    norm = sb.l2norm(copies)[0] * float(inverse)
    clip = np.float32(min(1.0, max_norm / (norm + 1e-6)))
    sb.scale(copies, float(inverse * clip))
    scaler.unscale_(optimizer)
    for p, expected in zip(model.parameters(), copies, strict=True):
        assert p.grad is not None and torch.equal(bits(p.grad), bits(expected))
    scaler.step(optimizer)
    scaler.update()
    assert _wait_for_reports(scaler, 1)[0].norm == norm
    _set_gradients(model, math.inf)  # a step that is not finite is not clipped, only unscaled
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    (report,) = _wait_for_reports(scaler, 1)
    assert not report.applied and report.norm == math.inf


@pytest.mark.parametrize("max_norm", [math.inf, 1.0, 1e9])
def test_fused_optimizer_gets_scale_and_clip_factor(device: str, max_norm: float) -> None:
    """The gradients are only read: the optimizer divides by scale / clip factor itself."""
    model = _model(device)
    seen: list[tuple[float, float]] = []

    class Recording(torch.optim.Adam):
        def step(self, closure: Any = None) -> Any:
            given: Any = self
            seen.append((float(given.grad_scale), float(given.found_inf)))
            return super().step(closure)

    optimizer = Recording(model.parameters(), lr=0.1, fused=True)
    scaler = sbt.GradScaler(device, 1000.0, max_norm=max_norm)
    scaler.scale(torch.ones((), device=device))
    _set_gradients(model, 1e6)
    copies = [p.grad.clone().cpu() for p in model.parameters() if p.grad is not None]
    norm = sb.l2norm(copies)[0] * float(np.float32(1 / 1000))
    clip = np.float32(min(1.0, max_norm / (norm + 1e-6)))
    scaler.step(optimizer)
    assert seen == [(float(np.float32(1000.0) / clip), 0.0)]
    assert not hasattr(optimizer, "grad_scale") and not hasattr(optimizer, "found_inf")
    scaler.update()
    before = [p.detach().clone() for p in model.parameters()]
    _set_gradients(model, math.inf)
    scaler.step(optimizer)
    scaler.update()
    assert seen[1][1] == 1.0
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))
    reports = _wait_for_reports(scaler, 2)
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
    p.grad = torch.ones_like(p)
    scaler = sbt.GradScaler(device, max_norm=1.0)
    scaler.scale(torch.ones((), device=device))
    with pytest.raises(sb.InvalidArgument, match="max_norm: gradients in torch.float64"):
        scaler.unscale_(torch.optim.SGD([p], lr=0.1))


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
            scaler.scale(torch.ones((), device=device))
            p.grad = torch.full_like(p, value)
            with pytest.warns(FutureWarning):
                scaler.step(optimizer)
            scaler.update()
        results.append((p.tolist(), scaler.get_scale()))
    assert results[0] == results[1] == ([-2.0] * 3, 2.0)
    clipping = sbt.GradScaler(device, 4.0, max_norm=1.0)
    clipping.scale(torch.ones((), device=device))
    with pytest.raises(sb.InvalidArgument, match="max_norm: this optimizer asks the scaler"):
        clipping.step(optimizer)


def test_found_inf_that_the_caller_combines(device: str) -> None:
    """Frameworks reduce found_inf over ranks in place; the scale follows."""
    model = _model(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = sbt.GradScaler(device, 1024.0)
    scaler.scale(torch.ones((), device=device))
    _set_gradients(model)
    before = [p.detach().clone() for p in model.parameters()]
    scaler.unscale_(optimizer)
    for found in scaler._found_inf_per_device(optimizer).values():
        found.fill_(1.0)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 512.0
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))


def test_gradients_on_the_cpu_and_the_gpu(cuda: str) -> None:
    places = [torch.nn.Parameter(torch.zeros(3, device=d)) for d in ("cpu", cuda)]
    scaler, optimizer = sbt.GradScaler(cuda, 4.0), torch.optim.SGD(places, lr=1.0)
    for bad in (None, 0, 1):
        scaler.scale(torch.ones((), device=cuda))
        for p in places:
            p.grad = torch.full_like(p, 8.0)
        if bad is not None:
            places[bad].grad[1] = math.inf  # type: ignore[index]
        scaler.step(optimizer)
        scaler.update()
    assert [p.tolist() for p in places] == [[-2.0] * 3] * 2 and scaler.get_scale() == 1.0
    reports = _wait_for_reports(scaler, 3)
    assert [r.first_bad for r in reports] == [None, "group 0, parameter 0", "group 0, parameter 1"]
    scaler = sbt.GradScaler(cuda, max_norm=1.0)
    scaler.scale(torch.ones((), device=cuda))
    with pytest.raises(sb.InvalidArgument, match="one norm needs one device"):
        scaler.unscale_(optimizer)


def test_policy_that_ends_the_run(device: str) -> None:
    scaler = sbt.GradScaler(device, policy="deepspeed", init_scale=2.0, delayed_shift=1)
    model = _model(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(sb.ScaleExhausted, match="policy deepspeed ends the run"):
        for _ in range(4):
            scaler.scale(torch.ones((), device=device))
            _set_gradients(model, math.nan)
            scaler.step(optimizer)
            if device == "cuda":
                torch.cuda.synchronize()
            scaler.update()


@pytest.mark.parametrize("policy", ["torch", "native", "apex", "apex_amp", "megatron", "deepspeed"])
def test_state_of_every_policy(device: str, policy: str) -> None:
    """Policies keep all of their state in "samebits"; torch reads the five keys."""
    def run(scaler: sbt.GradScaler, steps: range) -> None:
        model = _model(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for i in steps:
            scaler.scale(torch.ones((), device=device))
            _set_gradients(model, math.inf if i % 5 == 3 else 1.0)
            scaler.step(optimizer)
            scaler.update()

    scaler = sbt.GradScaler(device, policy=policy, growth_interval=2)
    run(scaler, range(10))
    state = scaler.state_dict()
    assert list(state)[:5] == list(Scaler(device).state_dict())
    assert sb.LossScaler.load(state["samebits"]).get_scale() == state["scale"]
    again = sbt.GradScaler(device, policy=policy)
    again.load_state_dict(state)
    assert again.state_dict() == state
    of_torch = Scaler(device)
    of_torch.load_state_dict(state)
    assert of_torch.get_scale() == state["scale"]
    run(scaler, range(10, 20))
    run(again, range(10, 20))
    assert again.state_dict() == scaler.state_dict()
    from_torch = sbt.GradScaler(device, policy=policy)
    from_torch.load_state_dict({**Scaler(device, 512.0).state_dict(), "_growth_tracker": 1})
    assert from_torch.get_scale() == 512.0


@pytest.mark.parametrize("policy", ["torch", "native"])
def test_autograd_sees_what_is_written(device: str, policy: str) -> None:
    """As with torch: a backward pass after scale() works, after update() it is refused."""
    model = _model(device)
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
    scaler = sbt.GradScaler(device, 4.0, policy="native")
    ones = [torch.ones((), device=device), (torch.full((2,), 3.0, device=device),)]
    assert [float(ones[0] * 4), [12.0, 12.0]] == [
        float(scaler.scale(ones)[0]), scaler.scale(ones)[1][0].tolist()]


def test_dtensor_gradients_by_local_shard(device: str) -> None:
    dist = pytest.importorskip("torch.distributed")
    tensors = pytest.importorskip("torch.distributed.tensor")
    if dist.is_initialized():
        pytest.skip("a process group is in use")
    dist.init_process_group("gloo" if device == "cpu" else "nccl", store=dist.HashStore(), rank=0,
                            world_size=1)
    try:
        mesh = dist.device_mesh.init_device_mesh(device, (1,))
        p = torch.nn.Parameter(tensors.distribute_tensor(
            torch.zeros(8, 4, device=device), mesh, [tensors.Shard(0)]))
        scaler = sbt.GradScaler(device, 8.0)
        optimizer = torch.optim.SGD([p], lr=1.0)
        for value in (8.0, math.inf):
            scaler.scale(torch.ones((), device=device))
            p.grad = tensors.distribute_tensor(
                torch.full((8, 4), value, device=device), mesh, [tensors.Shard(0)])
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 4.0
        assert torch.equal(p.detach().to_local().cpu(), torch.full((8, 4), -1.0))
        scaler = sbt.GradScaler(device, max_norm=1.0)
        scaler.scale(torch.ones((), device=device))
        with pytest.raises(sb.InvalidArgument, match="DTensor"):
            scaler.unscale_(optimizer)
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("max_norm", [math.inf, 1.0])
@pytest.mark.parametrize("policy", ["torch", "native"])
def test_nothing_waits_for_the_gpu(cuda: str, policy: str, max_norm: float) -> None:
    model = _model(cuda)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)
    scaler = sbt.GradScaler(cuda, policy=policy, max_norm=max_norm)

    def step(x: torch.Tensor) -> None:
        optimizer.zero_grad()
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        list(scaler.reports())

    x = torch.ones(3, 4, device=cuda)
    step(x)
    kept: list[Any] = []
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(10):
            step(x)
            kept.append([p.grad for p in model.parameters()])  # gradients move in every step
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert scaler.state_dict()["samebits"].count("updates 11\n") == 1


@pytest.mark.parametrize("max_norm", [math.inf, 1.0])
def test_graph_replays_are_eager_steps(cuda: str, max_norm: float) -> None:
    def parts() -> tuple[Any, Any, Any]:
        torch.manual_seed(0)
        model = _model(cuda)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=True, capturable=True)
        scaler = sbt.GradScaler(cuda, 1024.0, max_norm=max_norm, growth_interval=3)
        return model, optimizer, scaler

    def step(model: Any, optimizer: Any, scaler: Any, x: torch.Tensor) -> None:
        optimizer.zero_grad()
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    make = torch.Generator().manual_seed(1)
    inputs = torch.randn(12, 3, 4, generator=make)
    inputs[7, 0, 0] = math.inf
    inputs = inputs.to(cuda)
    eager = parts()
    for x in inputs:
        step(*eager, x)
    captured = parts()
    x = torch.zeros(3, 4, device=cuda)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for i in range(3):
            x.copy_(inputs[i])
            step(*captured, x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    captured[1].zero_grad()
    with torch.cuda.graph(graph):
        step(*captured, x)
    for i in range(3, 12):
        x.copy_(inputs[i])
        graph.replay()
    torch.cuda.synchronize()
    for a, b in zip(eager[0].parameters(), captured[0].parameters(), strict=True):
        assert torch.equal(bits(a), bits(b))
    assert eager[2].state_dict() == captured[2].state_dict()
    assert repr(list(eager[2].reports())) == repr(list(captured[2].reports()))
