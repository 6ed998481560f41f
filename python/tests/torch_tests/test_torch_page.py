"""docs/torch.md: its program runs, and it names what samebits.torch has."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import samebits.torch as sbt

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_first_lines_run() -> None:
    program = (DOCS / "torch.md").read_text().split("```python\n")[1].split("```")[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "torch.md", "exec"), {})
    assert re.findall(r"^\d True none None", printed.getvalue(), re.M) == [
        f"{step} True none None" for step in range(3)]


def test_names_on_the_page_exist() -> None:
    names = set(re.findall(r"sbt\.(\w+)", (DOCS / "torch.md").read_text()))
    assert len(names) > 10 and names <= set(sbt.__all__)


def test_every_public_function_is_on_a_page() -> None:
    pages = "".join(page.read_text() for page in DOCS.glob("*.md"))
    named = set(re.findall(r"(?:sbt|samebits\.torch)\.(\w+)|`(\w+)[`(]", pages))
    found = {a or b for a, b in named}
    assert [name for name in sbt.__all__ if name[0].islower() and name not in found] == []
