"""docs/torch.md and docs/operators.md: their programs run, and pages name what samebits.torch has."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import samebits.torch as sbt

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_programs_run_one_after_another() -> None:
    printed = io.StringIO()
    names: dict[str, object] = {}
    for part in (DOCS / "torch.md").read_text().split("```python\n")[1:]:
        with contextlib.redirect_stdout(printed):
            exec(compile(part.split("```")[0], "torch.md", "exec"), names)
    assert "\n7.75\n" in printed.getvalue()
    assert re.findall(r"^\d True none None", printed.getvalue(), re.M) == [
        f"{step} True none None" for step in range(3)]


def test_the_program_of_the_page_of_operators_runs() -> None:
    names: dict[str, object] = {}
    exec((DOCS / "operators.md").read_text().split("```python\n")[1].split("```")[0], names)
    assert (names["swapped"], names["left"]) == ({"1": "LayerNorm"}, {})


def test_modules_need_no_import_of_their_own() -> None:
    for module, name in (("samebits.torch", "optim.AdamW"), ("samebits", "testing.check_function"),
                         ("samebits", "optim.AdamW")):
        subprocess.run([sys.executable, "-c", f"import {module}; {module}.{name}"], check=True)


def test_names_on_the_page_exist() -> None:
    names = set(re.findall(r"sbt\.(\w+)", (DOCS / "torch.md").read_text()))
    assert len(names) > 10 and names <= set(sbt.__all__)


def test_every_public_function_is_on_a_page() -> None:
    pages = "".join(page.read_text() for page in DOCS.glob("*.md"))
    named = set(re.findall(r"(?:sbt|samebits\.torch)\.(\w+)|`(\w+)[`(]", pages))
    found = {a or b for a, b in named}
    assert [name for name in sbt.__all__ if name[0].islower() and name not in found] == []
