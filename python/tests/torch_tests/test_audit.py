"""`samebits.torch.audit` on a GPU that computes by the rules, with planted faults."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from emulated_gpu import FP32_PRODUCT, TENSOR_CORE_PRODUCT, EmulatedGpu, Kernels, Training, run_by_rule

import samebits
import samebits.torch as sbt
from samebits.torch.audit import random_word
from samebits.torch.copies import HostCopy, copied, restored
from samebits.torch.operators import Operator
from samebits.torch.tiles import tile_of
from samebits.torch.trace import hash_of

SEEDS = range(25)
DTYPES = [torch.float32, torch.bfloat16]


def audited(training: Training, steps: int = 1, gpu: EmulatedGpu | None = None, **options: Any) -> sbt.AuditReport:
    with gpu or EmulatedGpu(), sbt.audit(**{"share": 1.0, "every": 1, **options}) as audit:
        for _ in range(steps):
            training.step()
    return audit.report()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("optimizer", [{"foreach": True}, {"fused": True}, {"foreach": False}], ids=str)
@pytest.mark.parametrize("tile", [8, 64])
def test_no_false_alarms(dtype: torch.dtype, optimizer: dict[str, bool], tile: int) -> None:
    report = audited(Training(dtype=dtype, **optimizer), 6, tile=tile)
    assert report.steps == 6 and report.tiles > 500
    assert (report.equal, report.findings, report.not_covered, report.dropped) == (report.tiles, [], {}, 0), report


def codes(x: torch.Tensor) -> torch.Tensor:
    return x.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])


class Fault:
    """Exchanges results of one operator's n-th call by wrong ones."""

    def __init__(self, seed: int, kind: str, dtype: torch.dtype) -> None:
        self.random, self.kind, self.dtype = random.Random(seed), kind, dtype
        self.operator = self.random.choice(["mm", "addmm", "gelu", "native_layer_norm", "_softmax", "add"])
        self.left = 1 if self.operator in ("gelu", "_softmax") else self.random.randint(1, 3)
        self.planted: tuple[list[int], list[int], int, int | None] | None = None

    def kernel(self, func: Any, args: Any, kwargs: Any) -> Any:
        result = func(*args, **kwargs) if args[0].is_cuda else run_by_rule(func, args, kwargs)
        self.left -= 1
        if self.left == 0:
            self.plant(result[0] if isinstance(result, tuple) else result)
        return result

    def plant(self, y: torch.Tensor) -> None:
        right, bit = y.clone(), None
        part = y.flatten(0, -2)  # a view: y is contiguous
        row, col = (self.random.randrange(n - 8) for n in part.shape)
        if self.kind == "bit":
            bit = self.random.randrange(8 * y.element_size() - 1)
            codes(part)[row, col] ^= 1 << bit
        elif self.kind == "block":
            part[row : row + 8, col : col + 8] += 1.0
        elif self.kind == "tile":
            part[:8] = part[8:16].clone()
        else:
            y.mul_(2.0)
        changed = (codes(y) != codes(right)).nonzero()
        self.planted = changed[0].tolist(), changed[-1].tolist(), len(changed), bit


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["bit", "block", "tile", "scale"])
def test_faults_are_found_and_placed(kind: str, seed: int, device: str) -> None:
    dtype = DTYPES[seed % 2]
    training, fault = Training(seed, dtype=dtype, device=device), Fault(seed, kind, dtype)
    with (EmulatedGpu() if device == "cpu" else Kernels()) as gpu, sbt.audit(share=1.0, every=1, tile=128) as audit:
        training.step()
        gpu._kernels[fault.operator] = fault.kernel  # the second step computes wrongly, once
        training.step()
    report = audit.report()
    assert fault.planted is not None and len(report.findings) == 1, report
    found = report.findings[0]
    first, last, count, bit = fault.planted
    assert found.operator.split(".")[1] == fault.operator and found.step == 1 and not found.follows
    where = found.where
    assert where is not None and (where.first, where.last, where.count) == (first, last, count), found
    assert where.bit == bit and found.module.startswith("Gpt") and "suspect this device" in str(found)
    assert report.suspect == [found] and report.equal == report.tiles - 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fault_in_a_tile_of_a_large_product(seed: int) -> None:
    """The first product of its shape: its rule follows from the intact part, and is sure after a second product."""
    g = torch.Generator().manual_seed(seed)
    dtype = DTYPES[seed % 2]
    a, b = torch.randn(200, 96, generator=g).to(dtype), torch.randn(96, 150, generator=g).to(dtype)
    word = random_word(random_word(seed, 0, 0), 0, 1)
    tile = tile_of(Operator.of(torch.ops.aten.mm.default), [a, b], {}, word, 64)
    row, col = (at + int(torch.randint(64 - 8, (1,), generator=g)) for at in tile.place.origin)

    def wrong(_func: Any, args: Any, _kwargs: Any) -> torch.Tensor:
        rule = FP32_PRODUCT if dtype == torch.float32 else TENSOR_CORE_PRODUCT
        y: torch.Tensor = samebits.matmul(*args, rule=rule, out=dtype)
        if healthy:
            return y
        if seed % 3:
            y[row : row + 8, col : col + 8] *= -1
        else:
            codes(y)[row, col] ^= 1 << 9
        return y

    healthy = False
    with EmulatedGpu({"mm": wrong}), sbt.audit(share=1.0, every=1, seed=seed) as audit:
        torch.mm(a, b)
        (unsure,) = audit.report().findings
        assert not unsure.sure and audit.report().suspect == [] and "no known rule yet" in str(unsure)
        healthy = True
        torch.mm(a, b)
    report = audit.report()
    (found,) = report.suspect
    assert report.findings == [found] == [replace(unsure, sure=True)] and (report.tiles, report.equal) == (2, 1)
    assert found.tile == tile.place.origin and found.where is not None
    assert found.where.first == [row, col], found
    assert (found.where.count, found.where.bit) == ((64, None) if seed % 3 else (1, 9))


def test_the_sample_is_repeatable_and_of_the_share() -> None:
    def chosen(**options: Any) -> tuple[int, int]:
        report = audited(Training(), 4, **options)
        return report.chosen, report.bytes

    assert chosen(share=0.2) == chosen(share=0.2) != chosen(share=0.2, seed=1) != chosen(share=0.2, first_step=4)
    words = [random_word(3, step, number) < 0.01 * 2**64 for step in range(1000) for number in range(100)]
    assert 850 < sum(words) < 1150  # 1000 are expected, with a standard deviation of 31
    assert audited(Training(), share=0.0).chosen == 0


def test_steps_between_the_audited_ones_are_not_seen() -> None:
    whole = audited(Training(), 7)
    some = audited(Training(), 7, every=3, first_step=2)  # steps 3 and 6 of 2 to 8
    assert (some.steps, some.equal, some.findings) == (7, some.tiles, [])
    assert 0 < some.operators < whole.operators / 3
    training = Training()
    with EmulatedGpu(), sbt.audit(every=2), sbt.record() as recorder:  # a mode upon it stays where it is
        training.step()
        training.step()
    assert len(recorder.trace.operators) > 200 and sbt.replay(recorder.trace).equal


def test_memory_is_bounded() -> None:
    report = audited(Training(), max_bytes=4000)
    assert report.dropped > 20 and report.tiles + report.dropped == report.chosen and report.tiles > 0
    assert f"  {report.dropped} dropped: too many bytes were waiting" in str(report).splitlines()
    for option, wrong in (("share", 2.0), ("every", 0), ("tile", 0), ("max_bytes", 0), ("threads", 0)):
        with pytest.raises(samebits.InvalidArgument, match=option):
            sbt.audit(**{option: wrong})  # type: ignore[arg-type]


def test_a_product_of_a_kernel_without_a_rule_is_not_suspected() -> None:
    a, b = torch.randn(40, 64), torch.randn(64, 40)
    with EmulatedGpu({"mm": lambda f, a, k: (a[0].double() @ a[1].double()).float() * (1 + 2.0**-20)}), \
            sbt.audit(share=1.0, every=1) as audit:
        for _ in range(3):
            torch.mm(a, b)
    report = audit.report()
    assert len(report.findings) == 3 and not any(finding.sure for finding in report.findings)
    assert report.suspect == [] and report.equal == 0


def test_another_known_rule_is_named() -> None:
    """Nothing computes wrongly: a sum in another order."""
    def by_pairs(_func: Any, args: Any, _kwargs: Any) -> Any:
        x = args[0]
        return torch.tensor([samebits.dot(row, torch.ones_like(row), precision="fp32", order="tree") for row in x])

    x = torch.randn(8, 500, generator=torch.Generator().manual_seed(1))
    with EmulatedGpu({"sum": by_pairs}), sbt.audit(share=1.0, every=1) as audit:
        x.sum(1)
    report = audit.report()
    assert [finding.follows for finding in report.findings] == ["a sum by pairs"] and report.suspect == []
    assert "; follows a sum by pairs" in str(report)


def test_what_has_no_rule_is_named() -> None:
    kernels = {"cos": lambda f, a, k: a[0] * 0.5, "dot": lambda f, a, k: a[0][0] * 3}
    with EmulatedGpu(kernels), sbt.audit(share=1.0, every=1) as audit:
        torch.cos(torch.ones(3))
        torch.ones(3).double() @ torch.ones(3).double()
        torch.ones(2).sum().item()
    report = audit.report()
    assert report.not_covered.keys() == {"aten.cos", "aten.dot"} and report.findings == []
    assert "  1 not covered: aten.cos" in str(report)


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a compiler")
def test_a_compiled_program_is_named() -> None:
    program = torch.compile(lambda x: (x * 2 + 1).sum())
    with sbt.audit(share=1.0, every=1) as audit:
        for _ in range(2):
            program(torch.ones(8))
    assert audit.report().not_covered["higher_order.inductor_compiled_code"] == 2


def test_programs_go_on() -> None:
    """Whatever tensors they use, and where their operators raise errors."""
    with sbt.audit(share=1.0, every=1) as audit:
        torch.ones(3, 3).to_sparse() * 2
        torch.ones(3, dtype=torch.complex64) * 2
        for _ in range(3):
            with pytest.raises(RuntimeError):
                torch.ones(3) @ torch.ones(4)
        torch.zeros(0, 4).sum(0)
    report = audit.report()
    assert "aten.mul.Tensor of sparse or complex tensors" in report.not_covered and audit._waiting == 0
    assert report.chosen == report.tiles + sum(report.not_covered.values())


def test_own_kernels_run_whatever_happens_to_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients are clipped although copies fail; a refused step leaves no memory reserved."""
    from samebits.torch.optim import AdamW

    def failing(*_: Any) -> Any:
        raise RuntimeError("no pinned memory")

    w = torch.nn.Parameter(torch.ones(4))
    w.grad = torch.full((4,), 2.0)
    optimizer = AdamW([w], lr=1e-3)
    with sbt.audit(share=1.0, every=1) as audit:
        with monkeypatch.context() as broken:
            broken.setattr(sys.modules["samebits.torch.audit"], "copied", failing)
            sbt.clip_grad_norm_([w], 1.0)
        assert w.grad.norm() < 1.1 and audit.report().not_covered["samebits.unscale: no pinned memory"] == 1
        chosen = audit.report().chosen
        monkeypatch.setattr(optimizer, "_step", failing)
        with pytest.raises(RuntimeError, match="no pinned memory"):
            optimizer.step()
        assert audit.report().chosen == chosen
    assert audit._waiting == 0


def test_findings_are_told_at_once_and_errors_arrive() -> None:
    seen: list[sbt.Finding] = []

    def run(on_finding: Callable[[sbt.Finding], None]) -> None:
        wrong = {"tanh": lambda f, a, k: sbt.recompute(f, a, k) * 2}
        with EmulatedGpu(wrong), sbt.audit(share=1.0, every=1, on_finding=on_finding, threads=2) as audit:
            x = torch.ones(2, 4)
            torch.tanh(x)
            torch.tanh(x)
            assert audit.report().tiles == 3
        assert audit.report().suspect == seen and [*{f.operator for f in seen}] == ["aten.tanh.default"]

    run(seen.append)
    assert sorted(finding.number for finding in seen) == [1, 2]

    def stop(_: sbt.Finding) -> None:
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        run(stop)
    with pytest.raises(KeyError, match="stop"), EmulatedGpu({"tanh": lambda f, a, k: a[0] * 2}), \
            sbt.audit(share=1.0, every=1, on_finding=stop):
        torch.tanh(torch.ones(2, 4))


@pytest.mark.parametrize("options", [{}, {"weights": "kahan"}, {"states": "dynamic8", "block": 256}])
def test_steps_of_own_optimizers(options: dict[str, Any]) -> None:
    from samebits.torch.optim import AdamW

    training = Training(dtype=torch.bfloat16)
    if "weights" in options:
        training.model.bfloat16()
    training.optimizer = AdamW(training.model.parameters(), lr=1e-3, **options)
    report = audited(training, 3)
    assert report.steps == 3 and report.equal == report.tiles > 200 and not report.not_covered, report


def test_an_audited_program_computes_the_same() -> None:
    trainings = Training(), Training()
    with EmulatedGpu():
        trainings[0].step()
    audited(trainings[1], share=1.0)
    assert torch.equal(*(training.model.head.weight for training in trainings))


def test_copies_keep_strides_and_alignment() -> None:
    x = torch.arange(1000.0)
    for y in (x[3:903].view(30, 30).T, x[:10].expand(5, 10), x[5], x[:0], x.view(10, 100)[:, 7:9], x[::3]):
        z = HostCopy(y).tensor()
        assert torch.equal(z, y) and z.stride() == y.stride()
        assert z.storage_offset() % 256 == y.storage_offset() % 256 and (z.data_ptr() != y.data_ptr() or not y.numel())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("cols", [96, 1001, 1024, 4096, 12289])
def test_rows_of_a_tile_are_those_of_the_whole(cols: int, dtype: torch.dtype) -> None:
    """Their alignment counts in the order of sums."""
    g = torch.Generator().manual_seed(cols)
    x, y = (torch.randn(24 * cols + 5, generator=g).to(dtype)[5:].view(24, cols) for _ in range(2))
    weight = torch.randn(cols, generator=g).to(dtype)
    aten = torch.ops.aten
    calls: list[tuple[Any, list[Any]]] = [
        (aten._softmax.default, [x, -1, False]), (aten._log_softmax.default, [x, 1, False]),
        (aten._softmax_backward_data.default, [x, y, 1, dtype]),
        (aten._log_softmax_backward_data.default, [x, y, 1, dtype]),
        (aten.native_layer_norm.default, [x, [cols], weight, weight, 1e-5]),
        (aten._fused_rms_norm.default, [x, [cols], weight, 1e-5]), (aten.gelu.default, [x]), (aten.add.Tensor, [x, y]),
        (aten.mul.Tensor, [x, weight]), (aten.div.Tensor, [x.T, y.T])]
    for func, args in calls:
        whole = sbt.recompute(func, args)
        for word in range(0, 24, 5):
            tile = tile_of(Operator.of(func), args, {}, word * 7919, 8)
            found = sbt.recompute(func, restored(copied(tile.args)))
            expected = tile.of_result(whole if isinstance(whole, torch.Tensor) else [*whole])
            pairs = zip([found], [expected], strict=True) if isinstance(found, torch.Tensor) else zip(found, expected)
            for one, other in pairs:
                assert one.numel() < 24 * cols and one.shape == other.shape and hash_of(one) == hash_of(other), func
    for args in ([x, [24, cols], x, x, 1e-5], [x.T, [24], x[:, 0], x[:, 0], 1e-5]):  # over all axes: taken whole
        tile = tile_of(Operator.of(aten.native_layer_norm.default), args, {}, 12345, 8)
        assert (tile.place.origin, tile.args[0].shape) == ([], args[0].shape)  # type: ignore[union-attr]


def test_faults_in_lists_and_batches_are_placed() -> None:
    """One tensor of a foreach operator, and one product of a batch, are recomputed."""
    g = torch.Generator().manual_seed(0)
    a, b = torch.randn(5, 20, 30, generator=g), torch.randn(5, 30, 40, generator=g)
    lists = [torch.randn(n, 3, generator=g) for n in (7, 2000, 50)]

    def wrong(func: Any, args: Any, kwargs: Any) -> Any:
        results = sbt.recompute(func, args, kwargs, sbt.Conditions(product=FP32_PRODUCT))
        for y in results:
            codes(y)[5, 2] ^= 1 << 4
        return results

    items, batches = set(), set()
    for seed in range(12):
        with EmulatedGpu({"bmm": wrong, "_foreach_mul": wrong}), sbt.audit(share=1.0, every=1, seed=seed) as audit:
            torch.bmm(a, b)
            torch._foreach_mul(lists, 0.3)
        for finding in audit.report().findings:
            assert finding.where is not None and finding.where.bit == 4, finding
            assert finding.where.first[-2:] == [5, 2]
            if finding.item is None:
                batches.add(finding.where.first[0])
            else:
                items.add(finding.item)
                assert f", tensor {finding.item}, " in str(finding)
    assert {0, 2} <= items and len(batches) > 2


def test_a_training_on_a_gpu(cuda: str) -> None:
    """Copies from a GPU's memory arrive, whatever runs on its stream meanwhile."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.LayerNorm(1024),
                                torch.nn.Linear(1024, 256)).to(cuda)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(512, 256, device=cuda)
    with sbt.audit(share=1.0, every=1) as audit:
        for _ in range(20):
            with torch.autocast("cuda", torch.bfloat16):
                loss = (model(x) - x).square().mean()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
    report = audit.report()
    print(report)
    assert report.suspect == [] and report.tiles > 300 and report.equal == report.tiles
