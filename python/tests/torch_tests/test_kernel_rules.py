"""The recorder of PyTorch's kernels, and the comparison of two recordings."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from emulated_gpu import EmulatedGpu

import samebits.torch as sbt
from samebits.torch import card, kernel_rules


@pytest.fixture(scope="module")
def recording() -> dict[str, dict[str, dict[str, object]]]:
    return kernel_rules.record("cpu", ["elementwise", "reductions"])


def test_exact_operators_follow_their_rule_anywhere(recording: dict[str, dict[str, dict[str, object]]]) -> None:
    for form in kernel_rules.FORMATS:
        for name in ("add", "mul", "div", "where", "masked_fill"):
            entry = recording["cases"][f"elementwise {form}: {name}"]
            assert entry["differ"] == 0 < entry["results"], (form, name)  # type: ignore[operator]


def test_sums_of_a_cpu_follow_no_rule(recording: dict[str, dict[str, dict[str, object]]]) -> None:
    assert recording["cases"]["reductions fp32: sum [70001] over [0]"]["differ"] == 1


def test_operands_are_the_same_everywhere() -> None:
    x = kernel_rules.operand(7, (3,), torch.float32)
    assert x.view(torch.int32).tolist() == [-1109046645, -1140440663, -1088001387]


def test_what_moved(recording: dict[str, dict[str, dict[str, object]]]) -> None:
    assert kernel_rules.check_upgrade(recording, recording) == []
    new = copy.deepcopy(recording)
    cases = new["cases"]
    cases["elementwise fp32: add"]["differ"] = 3
    cases["elementwise fp32: mul"]["hash"] = "other"
    cases["elementwise fp32: div"] = {"refused": "no kernel"}
    cases["elementwise fp32: where"] = {"results": 1, "hash": "x", "not covered": "dropout"}
    del cases["elementwise bf16: add"]
    assert kernel_rules.check_upgrade(recording, new) == [
        "elementwise bf16: add: only in the old recording",
        "elementwise fp32: add: follows the rule -> 3 of 3003 results differ from the rule",
        "elementwise fp32: div: follows the rule -> refused by torch (no kernel)",
        "elementwise fp32: mul: other bits; follows the rule",
        "elementwise fp32: where: follows the rule -> no rule",
    ]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = str(tmp_path / "old.json"), str(tmp_path / "new.json")
    for file in (old, new):
        assert kernel_rules.main(["record", file, "--device", "cpu", "--groups", "functions"]) == 0
    assert "functions bf16       10 calls    655360 results" in capsys.readouterr().out
    assert kernel_rules.main(["check-upgrade", old, new]) == 0
    assert capsys.readouterr().out == "nothing moved in 30 calls\n"
    changed = json.loads(Path(new).read_text())
    changed["machine"]["torch"] = "3.0"
    changed["cases"]["functions bf16: exp"]["hash"] = "other"
    Path(new).write_text(json.dumps(changed))
    assert kernel_rules.main(["check-upgrade", old, new]) == 1
    printed = capsys.readouterr().out
    assert "-> 3.0\n" in printed and "functions bf16: exp: other bits; " in printed


GROUPS = ["elementwise", "functions", "rows", "reductions", "losses"]


def by_rule(case: kernel_rules.Case) -> Any:
    """Return what a call returns on a GPU of the rules."""
    if not case.name.startswith("rms_norm"):
        with EmulatedGpu():
            return case.run(*case.operands)
    # PyTorch's CPU makes this operator of others.
    x, grad, weight = case.operands
    shape = [x.shape[1]]
    y, rstd = sbt.recompute("aten._fused_rms_norm.default", (x, shape, weight, 1e-5))
    return y, rstd, *sbt.recompute("aten._fused_rms_norm_backward.default",
                                   (grad, x, shape, rstd, weight, [True, True]))


@pytest.mark.parametrize("group", GROUPS)
def test_calls_have_the_hashes_of_a_gpu(group: str) -> None:
    """What `record` found on an H200, with PyTorch 2.11: all but products and attention."""
    recorded = json.loads(card.SUMS.read_text())["hashes"]
    found = {f"{group} {form}: {case.name}": kernel_rules.hash_of_results(by_rule(case))
             for form, dtype in kernel_rules.FORMATS.items() for case in kernel_rules.GROUPS[group](dtype)}
    assert found == {name: value for name, value in recorded.items() if name.startswith(group)}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.skipif(not torch.__version__.startswith("2.11."), reason="the rules are PyTorch 2.11's")
def test_every_call_on_a_gpu_follows_its_rule() -> None:
    recording = kernel_rules.record()
    print(kernel_rules.summary(recording))
    without = {name for name, entry in recording["cases"].items() if "not covered" in entry}
    assert all("cudnn" in name and ", 640, " in name for name in without)  # gradients of more than 256 keys
    assert not [name for name, entry in recording["cases"].items() if name not in without and entry["differ"] != 0]
    assert all(recording["kernels"].values())
