"""The pages about Python: their programs run, and their outputs are real."""

from __future__ import annotations

import contextlib
import io
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"


def blocks(language: str, page: Path = PAGE) -> list[str]:
    """Return the code blocks of a page in a language."""
    found = page.read_text().split(f"```{language}\n")[1:]
    return [block.split("```")[0] for block in found]


def test_tour_prints_what_the_page_shows() -> None:
    pytest.importorskip("ml_dtypes")
    shown = blocks("console")[-1].split("\n", 1)[1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(ROOT / "examples" / "python" / "tour.py"))
    assert printed.getvalue() == shown


def test_the_first_lines_run() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(blocks("python")[0], str(PAGE), "exec"), {})
    assert printed.getvalue().startswith("448.0 to e5m2: 4096 elements")


def test_the_lines_of_the_readme_run() -> None:
    names: dict[str, Any] = {}
    exec(compile(blocks("python", ROOT / "README.md")[0], "README.md", "exec"), names)
    assert names["c"].shape == (4, 4)


def test_every_public_name_is_on_the_page() -> None:
    import samebits as sb

    text = PAGE.read_text()
    functions = [n for n in sb.__all__ if n[0].islower()]
    assert [n for n in functions if n not in text and n not in ("dequantize", "initialize",
                                                               "get_num_threads")] == []


@pytest.mark.parametrize("page", ["docs/install.md", "README.md"])
def test_the_way_to_install_without_cuda_stands_beside_the_command(page: str) -> None:
    """--config-settings is also known to the pip of Debian 12, which lacks its short form -C."""
    commands = [line for line in (ROOT / page).read_text().splitlines() if "pip install ." in line]
    assert len(commands) == 2
    assert sum(" --config-settings cmake.define.SAMEBITS_CUDA=OFF" in line for line in commands) == 1
