"""The examples of every docstring."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import samebits

MODULES = sorted(m.name for m in pkgutil.walk_packages(samebits.__path__, "samebits.")
                 if not m.name.endswith(("__main__", "_core")))


@pytest.mark.parametrize("name", ["samebits", *MODULES])
def test_examples(name: str) -> None:
    if ".torch" in name:  # samebits.torch, samebits.testing.torch_tensors, ...
        pytest.importorskip("torch")
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
