"""`samebits.torch.record` in programs of unusual kinds, and `replay` and `explain` of what it cannot compare."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import samebits
import samebits.torch as sbt


def replayed(program: Callable[[], Any], **options: Any) -> list[tuple[str, str, str]]:
    """Return operator, state and detail of each step of a program."""
    with sbt.record(**options) as recorder:
        program()
    return [(s.operator.split(".")[1], s.state, s.detail) for s in sbt.replay(recorder.trace).steps]


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
