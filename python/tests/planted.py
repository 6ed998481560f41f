"""What the tests of planted errors share: how many seeds they draw with, and how rare an error is."""

from __future__ import annotations

import os
import re

#: Seeds with which each planted error must be found. tests/power/count.py draws with one.
SEEDS = range(int(os.environ.get("SAMEBITS_TEST_SEEDS", "10")))


def results_per_error(text: str) -> int:
    """Return how many of the results that a failed check has seen one wrong result comes in."""
    found = re.search(r"(\d+) \w+ seen, (\d+) wrong", text)
    assert found, text
    return -(-int(found[1]) // int(found[2]))
