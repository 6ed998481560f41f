"""What the tests of planted errors share: seeds, texts of failures."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from samebits.testing import Layout, Trace

#: Seeds with which each planted error must be found. tests/power/count.py draws with one.
SEEDS = range(int(os.environ.get("SAMEBITS_TEST_SEEDS", "10")))


def results_per_error(text: str) -> int:
    """Return how many of the results that a failed check has seen one wrong result comes in."""
    found = re.search(r"(\d+) \w+ seen, (\d+) wrong", text)
    assert found, text
    return -(-int(found[1]) // int(found[2]))


def failure_of(check: Callable[..., Any], *args: Any, **options: Any) -> str:
    """Return the text of a check that must fail."""
    with pytest.raises(AssertionError) as caught:
        check(*args, **options)
    return str(caught.value)


def repeated(text: str, check: Callable[..., None], kernel: Any) -> list[str]:
    """Return the lines of the failure that the last line of a failure repeats."""
    name = getattr(kernel, "__name__", "kernel")
    scope = {check.__name__: check, name: kernel, "np": np, "Layout": Layout, "Trace": Trace}
    return failure_of(eval, text.splitlines()[-1].replace("  repeat:   ", ""), scope).splitlines()
