"""Pages of samebits.torch: their programs run and print what the pages show, and pages name what it has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pages import EXAMPLES, ROOT, blocks, printed, text_of

import samebits.torch as sbt

FLOAT8 = "docs/torch_float8.md"


def test_the_programs_run_one_after_another() -> None:
    names: dict[str, object] = {}
    text = "".join(printed(program, names) for program in blocks("docs/torch.md", "python"))
    assert "\n7.75\n" in text
    assert re.findall(r"^\d True none None", text, re.M) == [f"{step} True none None" for step in range(3)]


def test_programs_of_other_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed(blocks("docs/operators.md", "python")[0], names)
    assert (names["swapped"], names["left"]) == ({"1": "LayerNorm"}, {})
    assert printed(blocks("docs/replay.md", "python")[0]).endswith(blocks("docs/replay.md", "text")[0])
    programs = blocks("docs/audit.md", "python")
    text = "".join(printed(program) for program in programs)
    assert len(programs) == 3 and "torch.set_deterministic_debug_mode = 2" in text and text.endswith("ready\n")
    printed(blocks(FLOAT8, "python")[0], names)
    assert isinstance(names["model"][0], sbt.Float8Linear)  # type: ignore[index]
    leading = [re.sub(r"\.\d(?=e)", "", text) for text in (printed(blocks(FLOAT8, "python")[2]), blocks(FLOAT8, "text")[1])]
    assert leading[0] == leading[1]  # processors' fp32 products differ, and with them the second digit
    assert sbt.load_precision_map("precision.json").layers == {"0": "TE_CURRENT", "2": "bf16"}
    (tmp_path / "map.json").write_text(blocks(FLOAT8, "json")[0])
    precision = sbt.load_precision_map(tmp_path / "map.json")
    found = [precision.recipe_of(f"transformer.h.{i}.mlp.c_fc") for i in (0, 7)]
    assert found[0] is None and found[1] is not None and found[1].name == "TE_BLOCK_1D"


def test_the_example_of_float8(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "cpu":
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    elif torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("a GPU of another compute capability than 9.0")
    text = subprocess.run([sys.executable, str(EXAMPLES / "torch_float8.py")], check=True, capture_output=True,
                          text=True).stdout
    if device == "cpu":
        assert text == blocks(FLOAT8, "console")[0].split("\n", 1)[1]
    else:
        assert text.count("\n0 of ") == 2


def test_the_table_of_recipes() -> None:
    rows = [line.strip("| ").split(" | ") for line in text_of(FLOAT8).splitlines() if line.startswith("| `")]
    table = {name.strip("`"): row[1:] for row in rows if len(row) == 8 for name in row[0].split(", ")}
    assert set(table) == set(sbt.linear_recipe_names())
    tiles = {"tensor": (0, 0), "row": (1, 0), "1x128": (1, 128), "128x128": (128, 128), "1x32": (1, 32)}
    for name, (line, square, gradient, y, dx, dw, fast) in table.items():
        rules = sbt.linear_recipe(name)
        assert rules.name == name and rules.activations.tile == rules.gradients.tile == tiles[line]
        assert rules.weights.tile == tiles[square] and rules.gradient_format == gradient
        assert [text.partition(":")[0] for text in rules.coverage.values()] == [y, dx, dw]
        assert rules.allows_fast_accumulation == (fast == "yes")


def test_modules_need_no_import_of_their_own() -> None:
    for module, name in (("samebits.torch", "optim.AdamW"), ("samebits", "testing.check_function"),
                         ("samebits", "optim.AdamW")):
        subprocess.run([sys.executable, "-c", f"import {module}; {module}.{name}"], check=True)


def test_names_on_pages_exist_and_every_public_function_is_on_one() -> None:
    names = set(re.findall(r"sbt\.(\w+)", text_of("docs/torch.md")))
    assert len(names) > 10 and names <= set(sbt.__all__)
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    found = {a or b for a, b in re.findall(r"(?:sbt|samebits\.torch)\.(\w+)|`(\w+)[`(]", pages)}
    assert [name for name in sbt.__all__ if name[0].islower() and name not in found] == []
