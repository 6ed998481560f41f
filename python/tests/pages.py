"""Programs and outputs that stand on the pages of docs/."""

from __future__ import annotations

import contextlib
import io
import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page in a language; "" for texts."""
    parts = [part.split("\n", 1) for part in text_of(page).split("```")[1::2]]
    return [code for kind, code in parts if kind == language]


def printed(program: str | Path, names: dict[str, Any] | None = None) -> str:
    """Return what a block, or a program of a path, prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        if isinstance(program, Path):
            runpy.run_path(str(program), run_name="__main__")
        else:
            exec(compile(program, "page", "exec"), {} if names is None else names)
    return text.getvalue()
