"""docs/torch_float8.md: its programs run, its output is real, its table is the code's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import samebits.torch as sbt

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "torch_float8.md").read_text()


def block(language: str, number: int = 0) -> str:
    """A code block of the page in a language."""
    return TEXT.split(f"```{language}\n")[number + 1].split("```")[0]


def test_the_first_lines_run() -> None:
    names: dict[str, object] = {}
    exec(compile(block("python"), "torch_float8.md", "exec"), names)
    assert isinstance(names["model"][0], sbt.Float8Linear)  # type: ignore[index]


def test_the_example_prints_what_the_page_shows() -> None:
    shown = block("console").split("\n", 1)[1]
    printed = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "python" / "torch_float8.py")], check=True,
        capture_output=True, text=True, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""}).stdout
    assert printed == shown


def test_the_example_has_no_difference_on_a_gpu(cuda: str) -> None:
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("a GPU of another compute capability than 9.0")
    printed = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "python" / "torch_float8.py")], check=True,
        capture_output=True, text=True).stdout
    assert printed.count("\n0 of ") == 2


def test_the_map_is_read(tmp_path: Path) -> None:
    file = tmp_path / "precision.json"
    file.write_text(block("json"))
    precision = sbt.load_precision_map(file)
    assert precision.recipe_of("transformer.h.0.mlp.c_fc") is None
    found = precision.recipe_of("transformer.h.7.mlp.c_fc")
    assert found is not None and found.name == "TE_BLOCK_1D"


def test_the_errors_of_layers_are_those_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python", 2), "torch_float8.md", "exec"), {})
    assert capsys.readouterr().out == block("text", 1)
    assert sbt.load_precision_map("precision.json").layers == {"0": "TE_CURRENT", "2": "bf16"}


def test_the_table_of_recipes() -> None:
    rows = [line.strip("| ").split(" | ") for line in TEXT.splitlines() if line.startswith("| `")]
    table = {name.strip("`"): row[1:] for row in rows if len(row) == 8
             for name in row[0].split(", ")}
    assert set(table) == set(sbt.linear_recipe_names())
    for name, (line, square, gradient, y, dx, dw, fast) in table.items():
        rules = sbt.linear_recipe(name)
        tiles = {"tensor": (0, 0), "row": (1, 0), "1x128": (1, 128), "128x128": (128, 128),
                 "1x32": (1, 32)}
        assert rules.activations.tile == rules.gradients.tile == tiles[line]
        assert rules.weights.tile == tiles[square] and rules.gradient_format == gradient
        assert [text.partition(":")[0] for text in rules.coverage.values()] == [y, dx, dw]
        assert rules.allows_fast_accumulation == (fast == "yes")
