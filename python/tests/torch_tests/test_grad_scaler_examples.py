"""The examples that train with GradScaler inside Lightning and transformers' Trainer."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples" / "python"


def run(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_lightning(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lightning", reason="lightning is not installed")
    text = run("torch_lightning.py", capsys)
    assert "step 0: skipped" in text and " in layers." in text
    applied = re.search(r"(\d+) steps applied, scale", text)
    assert applied is not None and int(applied[1]) >= 10


def test_trainer(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    text = run("torch_trainer.py", capsys)
    applied = re.search(r"(\d+) of 24 steps applied", text)
    assert applied is not None and int(applied[1]) >= 10
