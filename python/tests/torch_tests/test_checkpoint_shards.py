"""examples/python/checkpoint_shards.py: the same numbers with any number of processes, also of Dask."""

from __future__ import annotations

import importlib.util
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samebits as sb
from processes import Processes
from samebits.safetensors import write_safetensors

PROGRAM = Path(__file__).resolve().parents[3] / "examples" / "python" / "checkpoint_shards.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("checkpoint_shards", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # processes of Dask look here
    spec.loader.exec_module(module)
    return module


program = load()


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Seven files; the rows of `split` lie in all of them."""
    folder = tmp_path_factory.mktemp("shards")
    make = np.random.default_rng(1)
    paths = []
    for i in range(7):
        tensors = {"split": (make.standard_normal((5 + i, 300), np.float32), "fp32"),
                   f"h.{i}.weight": (make.standard_normal((40, 50), np.float32) * np.float32(1e-3), "fp32"),
                   f"h.{i}.step": (np.float64([i]), "fp64")}
        if i == 3:
            wide = np.exp(make.standard_normal(999) * 6).astype(np.float32)
            tensors |= {"wide": (wide, "fp32"), "bad": (np.float32([1, np.nan]), "fp32")}
        paths.append(str(folder / f"model-{i}.safetensors"))
        write_safetensors(paths[-1], tensors, {})
    return paths


def test_numbers_are_those_of_the_whole_tensors(shards: list[str]) -> None:
    found = program.report(shards, program.by_one)
    assert len(found) == 7 + 3
    parts = [dict(program.arrays(path))["split"] for path in shards]
    whole = sb.inspect(np.concatenate(parts)).total
    split = found["split"]
    assert (split["elements"], split["amax_bits"]) == (whole.elements, whole.amax_bits)
    assert split["squares"] == math.fsum(sb.inspect(part).total.squares for part in parts)
    assert split["scale"] == program.power(whole.amax_bits)
    assert {name: t["verdict"] for name, t in found.items() if "weight" not in name} == {
        "split": "e4m3", "wide": "bf16", "bad": "1 NaN, 0 Inf"}


def test_the_order_of_merges_changes_no_bit(shards: list[str]) -> None:
    partials = [program.statistics(path) for path in shards]
    expected = program.total(program.by_one(program.statistics, shards))
    for seed in range(20):
        left = partials.copy()
        chance = random.Random(seed)
        while len(left) > 1:
            chance.shuffle(left)
            left.append(program.merge(left.pop(), left.pop()))
        assert repr(program.total(left[0])) == repr(expected)  # NaN is not equal to itself


def of_rank(paths: list[str]) -> Any:
    return program.report(paths, program.by_ranks)


def test_ranks_have_the_same_bits(shards: list[str], tmp_path: Path) -> None:
    alone = program.report(shards, program.by_one)
    with Processes("gloo", 4, str(tmp_path / "store")) as processes:
        found = processes.results(of_rank, shards)
    assert repr(found) == repr(4 * [alone])


def test_dask_has_the_same_bits(shards: list[str]) -> None:
    pytest.importorskip("dask.bag")

    def printed(*options: str) -> str:
        return subprocess.run([sys.executable, str(PROGRAM), *options, *shards], check=True,
                              capture_output=True, text=True, env=os.environ.copy()).stdout

    assert printed("--dask", "4") == printed()
