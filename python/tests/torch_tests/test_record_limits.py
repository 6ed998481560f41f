"""`samebits.torch.record` in programs of unusual kinds, and `replay` and `explain` of what it cannot compare."""

from __future__ import annotations

import copy
import gc
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from emulated_gpu import EmulatedGpu, recorded
from safetensors.torch import save_file
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

import samebits
import samebits.torch as sbt


def replayed(program: Callable[[], Any], **options: Any) -> list[tuple[str, str, str]]:
    """Return operator, state and detail of each step of a program."""
    with sbt.record(**options) as recorder:
        program()
    return [(s.operator.split(".")[1], s.state, s.detail) for s in sbt.replay(recorder.trace).steps]


def test_inference_mode_hides_no_copy() -> None:
    """There casts and reshapes arrive as views, which may copy, and operators that are made of others."""
    x, layer = torch.randn(4, 4), torch.nn.Linear(4, 3)
    with torch.inference_mode():
        steps = replayed(lambda: (x.to(torch.bfloat16) + 1, x.t().reshape(16), x.t().contiguous()))
        assert [name for name, *_ in replayed(lambda: layer(x).relu(), names=layer)] == ["addmm", "relu"]
    assert [name for name, *_ in steps] == ["_to_copy", "add", "clone", "_unsafe_view", "clone"]
    assert {state for _, state, _ in steps} == {"equal"}


def test_other_shapes_and_memory_of_a_tensor() -> None:
    def turned() -> None:
        x = torch.ones(3, 4)
        x.t_().mul_(2)

    def other() -> None:
        x = torch.zeros(2)
        x.set_(torch.ones(5))  # type: ignore[call-overload]
        x.mul_(2)

    assert [state for _, state, _ in replayed(turned)] == ["equal"] * 3
    assert [state for _, state, _ in replayed(other)] == ["equal"] * 4
    steps = replayed(lambda: torch.zeros(2).resize_(1000) + 1)
    assert [state for _, state, _ in steps] == ["equal", "not covered", "follows"]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float8_e8m0fnu])
def test_what_is_not_compared_is_not_equal(dtype: torch.dtype) -> None:
    steps = replayed(lambda: torch.ones(3).to(dtype))
    assert steps[0][1] == "equal"
    assert steps[1] == ("_to_copy", "not covered", f"a result of {dtype}, torch.strided, cpu")


def test_operators_that_draw_and_compute_are_not_covered() -> None:
    x = torch.randn(8, 8)
    with sbt.record() as recorder:
        torch.ops.aten.native_dropout(x, 0.5, True)[0] + 1
        torch.randn(3) + 1
    replay = sbt.replay(recorder.trace)
    assert [step.state for step in replay.steps] == ["not covered", "equal", "random", "equal"]
    assert not replay.equal and "1 not covered: aten.native_dropout" in str(replay)


def test_numbers_are_compared() -> None:
    with sbt.record() as recorder:
        torch.ones(2)[0].item()
    assert sbt.replay(recorder.trace).equal
    recorder.trace.operators[-1]["out"] = 2.0
    seen = sbt.replay(recorder.trace)
    assert str(seen).endswith("differs: aten._local_scalar_dense.default #1: returned 2.0, and 1.0 here")
    recorder.trace.operators[-1]["out"] = {"float": "nan"}
    assert sbt.replay(recorder.trace).steps[-1].state == "differs"


class Named(torch.Tensor):
    """A subclass with methods of its own alone."""


def test_other_tensors_and_operators_run() -> None:
    x = torch.randn(3, 4)
    assert [s[1] for s in replayed(lambda: x.as_subclass(Named) + 1, names={"sparse": x.to_sparse()})] == ["equal"]
    library = torch.library.Library("samebits_test", "DEF")
    library.define("mm(Tensor a) -> Tensor")
    library.impl("mm", lambda a: a.sum(), "CPU")
    assert replayed(lambda: torch.ops.samebits_test.mm(x)) == [("mm", "not covered", "samebits_test.mm.default")]


def test_tensors_without_numbers_in_memory() -> None:
    """Fake tensors, the zeros of forward gradients, and numbers that are stored with the other sign."""
    def forward() -> None:
        with forward_ad.dual_level():
            forward_ad.unpack_dual(forward_ad.make_dual(torch.ones(3), torch.ones(3)) * 2)

    def fake() -> None:
        with FakeTensorMode():
            torch.ones(3) + 1

    z = torch.ones(3, dtype=torch.complex64)
    assert replayed(lambda: z.conj().imag + 1)[0][1] == "not covered"
    assert "not covered" in [state for _, state, _ in replayed(forward)]
    assert [(name, state) for name, state, _ in replayed(fake)] == [("ones", "not covered")]
    assert replayed(lambda: torch.ones(3, device="meta")) == [("ones", "not covered", "the device meta")]


def test_threads() -> None:
    """As of backward passes of several devices: each operator is recorded with its own values."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with sbt.record() as recorder:
            def work(value: float) -> None:
                TorchDispatchMode.__enter__(recorder)
                for i in range(100):
                    torch.full((3,), value) + i
                TorchDispatchMode.__exit__(recorder, None, None, None)

            threads = [threading.Thread(target=work, args=(value,)) for value in (1.0, 2.0)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(before)
    replay = sbt.replay(recorder.trace)
    assert replay.equal and len(replay.steps) == 400, replay


def test_what_a_program_has_set_stays() -> None:
    gc.freeze()
    count = gc.get_freeze_count()
    try:
        with sbt.record():
            torch.ones(2)
        assert gc.get_freeze_count() == count
    finally:
        gc.unfreeze()
    with sbt.record():
        with sbt.record():
            torch.ones(2)
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
    before = gc.get_threshold()
    try:
        for own in (0, 10**6):
            gc.set_threshold(own)
            with sbt.record():
                assert gc.get_threshold()[0] == own
        gc.set_threshold(700)
        with sbt.record():
            with sbt.record():
                assert gc.get_threshold()[0] > 700
        assert gc.get_threshold()[0] == 700
        with sbt.record():
            gc.set_threshold(5000)
        assert gc.get_threshold()[0] == 5000
    finally:
        gc.set_threshold(*before)
    with sbt.record(kernels=True) as recorder:
        with pytest.raises(samebits.InvalidArgument, match="^kernels: PyTorch's profiler runs already"):
            sbt.record(kernels=True).__enter__()
        torch.ones(2)
    assert len(recorder.trace.operators) == 1 and torch._C._len_torch_dispatch_stack() == 0


class Compiled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(self.linear(x))


@pytest.mark.parametrize("compile", [
    torch.compile, lambda model, **how: torch.compile(model.forward, **how),
    lambda model, **how: torch.compile(lambda x: model(x), **how), lambda model, **how: model.compile(**how) or model])
def test_compiled_modules_are_compiled(compile: Any) -> None:
    graphs: list[Any] = []

    def backend(graph: Any, _inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    compiled = compile(Compiled(), backend=backend)
    steps = replayed(lambda: compiled(torch.ones(3, 4)))
    assert len(graphs) == 1 and [name for name, *_ in steps] == ["ones", "addmm", "gelu"]


@pytest.mark.parametrize("how", ["foreach", "fused"])
def test_what_operators_write_in_lists_was_written_by_operators(how: str) -> None:
    """Below a dispatch mode, PyTorch does not count the writes of tensors in lists."""
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters(), **{how: True})
    with sbt.record(names=model) as recorder:
        for _ in range(3):
            model(torch.ones(2, 4)).sum().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
            optimizer.step()
            optimizer.zero_grad()
    assert not any("read" in entry for entry in recorder.trace.operators)
    assert sum(entry["op"].startswith(f"aten._{how}_") for entry in recorder.trace.operators) >= 3


# --- Files ----------------------------------------------------------------------------------------


def _recorded() -> sbt.Trace:
    x = torch.ones(3, 4)
    with sbt.record() as recorder:
        x * 2 + 1
    return recorder.trace


def _first(key: str, value: Any) -> Callable[[Any], None]:
    return lambda header: header["operators"][0].update({key: value})


def _place(at: int, value: Any) -> Callable[[Any], None]:
    def change(header: Any) -> None:
        header["operators"][0]["args"][0]["t"][at] = value
    return change


@pytest.mark.parametrize("change", [
    lambda h: h.pop("machine"), lambda h: h.pop("blocks"), lambda h: h.pop("operators"),
    lambda h: h.update(machine={"multiprocessors": "many"}), lambda h: h.update(operators=[[1]]),
    lambda h: h["blocks"][0].update(bytes=-1), lambda h: h["blocks"][0].update(bytes=49),
    lambda h: h["operators"][0].pop("args"), _first("op", 7), _first("kwargs", {"x": {"t": 1}}), _first("wrote", 1),
    _first("wrote", [[[0, 0, [3], [1], "float32"], 5]]), _first("read", [[1]]),
    _place(0, 9), _place(0, -1), _place(1, -1), _place(1, 1), _place(2, [3, -4]), _place(2, [3.0, 4]),
    _place(2, [1 << 40, 1 << 40]), _place(3, [1 << 40, 1]), _place(3, [-4, 1]), _place(3, [1]), _place(4, "load")])
def test_wrong_headers_are_refused(change: Callable[[Any], Any], tmp_path: Path) -> None:
    """Also tensors outside of their blocks, which would be read beyond what was recorded."""
    trace = _recorded()
    header = copy.deepcopy({"version": 2, "machine": trace.machine, "blocks": trace.blocks, "operators": trace.operators})
    save_file(trace.tensors, tmp_path / "right", {"samebits_trace": json.dumps(header)})
    assert sbt.replay(tmp_path / "right").equal
    change(header)
    save_file(trace.tensors, tmp_path / "wrong", {"samebits_trace": json.dumps(header)})
    with pytest.raises(samebits.InvalidArgument, match=r"wrong: samebits_trace is no recording: "):
        sbt.replay(tmp_path / "wrong")


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "[" * 10**5])
def test_texts_that_are_no_headers_are_refused(text: str, tmp_path: Path) -> None:
    save_file({}, tmp_path / "x", {"samebits_trace": text})
    with pytest.raises(samebits.InvalidArgument, match="x: samebits_trace is no recording: "):
        sbt.Trace.load(tmp_path / "x")


# --- explain --------------------------------------------------------------------------------------


def test_one_tensor_in_the_place_of_two() -> None:
    """Their values are equal, so results are; another step would write them apart."""
    def of(twice: bool) -> sbt.Trace:
        a, b = torch.ones(3), torch.ones(3)
        return recorded(lambda: a + (a if twice else b))

    for first in (True, False):
        found = sbt.explain(of(first), of(not first))
        assert found.cause == "program" and "reads or writes other tensors" in str(found), found


def test_a_write_by_no_operator_on_one_side() -> None:
    def of(written: bool) -> sbt.Trace:
        w = torch.nn.Parameter(torch.ones(20))
        with EmulatedGpu(), sbt.record(names={"w": w}) as recorder:
            w * 2
            if written:
                w.detach().numpy()[3] = 5.0
                torch.autograd.graph.increment_version(w)
            w * 3
        return recorder.trace

    found = sbt.explain(of(False), of(True))
    assert (found.cause, found.number) == ("source", 1)
    assert str(found).startswith("the source w was written on one side, by no operator\n  read first by operator 1 ")
