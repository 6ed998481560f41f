"""The examples of every docstring."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest

import samebits
import samebits.ranks

#: What the examples assume to be imported.
IMPORTED: dict[str, Any] = {"np": np, "samebits": samebits, "sb": samebits, "sbr": samebits.ranks}
MODULES = sorted(m.name for m in pkgutil.walk_packages(samebits.__path__, "samebits.")
                 if not m.name.endswith(("__main__", "_core")))


@pytest.mark.parametrize("name", ["samebits", *MODULES])
def test_examples(name: str) -> None:
    names = dict(IMPORTED)
    if ".torch" in name:  # samebits.torch, samebits.testing.torch_tensors, ...
        names |= {"torch": pytest.importorskip("torch"), "sbt": importlib.import_module("samebits.torch")}
    failed, _ = doctest.testmod(importlib.import_module(name), extraglobs=names)
    assert failed == 0
