"""Tests of samebits.torch run on the CPU, and on a GPU where there is one.

They need torch. Without torch or a GPU they are skipped, with the reason. SAMEBITS_REQUIRE_TORCH=1
and SAMEBITS_REQUIRE_GPU=1 make that a failure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

try:
    import torch
except ImportError:
    if os.environ.get("SAMEBITS_REQUIRE_TORCH") == "1":
        raise
    collect_ignore_glob = ["test_*.py"]
else:
    # Operators are small: beside other tests, threads wait for one another most of the time. And the bits of
    # PyTorch's sums on a CPU depend on the number of threads.
    torch.set_num_threads(1)

sys.path.append(str(Path(__file__).parents[1]))  # for `planted`


def _require_gpu() -> None:
    if torch.cuda.is_available():
        return
    if os.environ.get("SAMEBITS_REQUIRE_GPU") == "1":
        pytest.fail("SAMEBITS_REQUIRE_GPU=1, but torch finds no GPU")
    pytest.skip("torch finds no GPU")


@pytest.fixture(params=["cpu", "cuda"])
def device(request: Any) -> str:
    """The device of a test's tensors."""
    if request.param == "cuda":
        _require_gpu()
    return str(request.param)


@pytest.fixture
def cuda() -> str:
    """The device of tests that need a GPU."""
    _require_gpu()
    return "cuda"


@pytest.fixture
def cublas_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment without which PyTorch refuses deterministic products on a GPU."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


@pytest.fixture
def one_rank(device: str) -> Iterator[str]:
    """The device of a test's tensors, in a process group of this process alone."""
    dist = pytest.importorskip("torch.distributed")
    if not dist.is_available():
        pytest.skip("this torch has no process groups")
    backend = "nccl" if device == "cuda" else "gloo"
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    yield device
    dist.destroy_process_group()
