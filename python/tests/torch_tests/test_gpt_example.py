"""examples/gpt: every configuration trains, and equal runs have equal bits on any number of ranks."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
import torch.distributed as dist
from pages import ROOT, blocks, printed, text_of

import samebits.torch as sbt
from processes import Processes
from samebits.testing import simulate_ranks

sys.path.insert(0, str(ROOT / "examples" / "gpt"))
import parallel
from plot import Curve, chart
from precision import PRECISIONS
from train import Training


def run(precision: str = "fp32", steps: int = 12, **given: Any) -> dict[str, Any]:
    return Training("tiny", precision, steps=steps, device="cpu", **given).run()


@pytest.mark.parametrize("precision", sorted(set(PRECISIONS) - {"fp16_weights"}))
def test_every_configuration_trains(precision: str) -> None:
    result = run(precision)
    # Of 64 sequences: the loss of one batch moves with the text, which is that of the pages.
    assert result["validation"] < result["losses"][0] - 0.4
    assert abs(result["validation"] - run()["validation"]) < 0.02
    assert result["skipped"] == 0


def test_a_model_in_fp16_alone_fails() -> None:
    """AdamW's eps of 1e-8 is 0 in fp16, and 0 / 0 is NaN."""
    assert math.isnan(run("fp16_weights", steps=4)["losses"][-1])


@pytest.mark.parametrize("precision", ["fp16_torch", "fp16_apex", "fp16_native"])
def test_a_step_whose_gradients_overflow_is_skipped(precision: str) -> None:
    training = Training("tiny", precision, device="cpu")
    before = training.digest()
    training.scaler.scale(torch.ones(()))  # PyTorch's scaler has no scale before
    training.scaler.update(2.0**24)
    training.step()
    assert training.skipped == 1
    assert training.digest() == before


def test_equal_runs_have_equal_bits() -> None:
    plain = run(micro_batches=2)
    assert run(micro_batches=2)["digest"] == plain["digest"]
    assert run(micro_batches=2, checkpointed=True)["digest"] == plain["digest"]
    assert run(micro_batches=2, seed=1)["digest"] != plain["digest"]
    assert run(micro_batches=4)["digest"] != plain["digest"]


CASES = [("fp32", "fp32"), ("fp16_native", "fp16"), ("bf16_stochastic", "bf16"), ("fp32", "e4m3")]


def digests(store: str) -> list[list[str]]:
    """Train as one of 4 ranks, as one of 2, and alone."""
    number, found = dist.get_rank(), []
    for ranks in (4, 2, 1):
        dist.destroy_process_group()
        group, place = divmod(number, ranks)
        dist.init_process_group("gloo", init_method=f"file://{store}-{ranks}-{group}", rank=place, world_size=ranks)
        found.append([parallel.ParallelTraining(
            communication, size="tiny", precision=precision, steps=3, micro_batches=4,
            device="cpu").run()["digest"] for precision, communication in CASES])
    return found


def test_the_number_of_ranks_changes_no_bit(tmp_path: Path) -> None:
    with Processes("gloo", 4, str(tmp_path / "store")) as processes:
        found = processes.results(digests, str(tmp_path / "stores"))
    alone = found[0][-1]
    assert found == 4 * [3 * [alone]]
    assert len(set(alone)) == len(CASES)
    assert alone[0] == run(steps=3, micro_batches=4)["digest"]


@pytest.mark.parametrize("device", ["cpu"])
@pytest.mark.parametrize("communication", parallel.FORMATS)
def test_sums_are_those_of_reduce_gradients(communication: str, one_rank: str) -> None:
    make = torch.Generator().manual_seed(1)
    cuts = [[torch.randn(shape, generator=make) * 10.0**-k for k, shape in enumerate([(5, 7), (3,)])] for _ in range(4)]
    cuts[1][0][2, 3] = math.inf

    def one(ranks: Any) -> list[torch.Tensor]:
        parameters = [torch.nn.Parameter(torch.zeros_like(g)) for g in cuts[ranks.rank]]
        for p, g in zip(parameters, cuts[ranks.rank], strict=True):
            p.grad = g.clone()
        sbt.reduce_gradients(parameters, ranks, communication=communication, factor=1.0)
        return [p.grad for p in parameters if p.grad is not None]

    expected = simulate_ranks(4, one)[0]
    for ours, theirs in zip(parallel.sum_over_cuts(cuts, communication), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)


def test_a_chart_has_all_curves(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    chart([Curve("a & b", [(1, 1.0), (2, math.nan), (10, 3.0)], [0.1, 0.1, 0.1]),
           Curve("c", [(5, 100.0)])], str(path), title="t", x="x", y="y", log_x=True, log_y=True)
    texts = [t.text for t in ElementTree.parse(path).iter() if t.tag.endswith("text")]
    assert {"a & b", "c", "t", "x", "y"} <= set(texts)
    assert "nan" not in path.read_text(encoding="utf-8")


def test_the_page_measures_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = blocks("docs/training.md", "python")[0]
    block = block.replace("steps=50", "steps=5").replace("precision.json", str(tmp_path / "map.json"))
    monkeypatch.chdir(ROOT)
    shown = printed(block)
    layers = [name for name, m in Training(device="cpu").model.named_modules() if isinstance(m, torch.nn.Linear)]
    assert list(sbt.load_precision_map(tmp_path / "map.json").layers) == layers
    assert all(shown.count(f"\n{name} ") == 4 for name in layers)


def test_the_page_has_results_of_every_precision() -> None:
    sections = text_of("docs/training.md").split("\n## ")
    for name in PRECISIONS:
        assert sum(f"| `{name}` |" in section for section in sections) >= 2, name
