"""The CUDA kernels that operators launch, as PyTorch's profiler sees them."""

from __future__ import annotations

import json
import math
import tempfile
from bisect import bisect_right
from pathlib import Path
from typing import Any

import torch

from samebits.errors import InvalidArgument

_LABEL = "samebits operator "


class Launches:
    """Notes which kernels each operator launches: name, grid and block."""

    def __init__(self) -> None:
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        self._profiler = torch.profiler.profile(activities=activities, acc_events=True)

    def start(self) -> None:
        if torch._C._autograd._profiler_enabled():
            raise InvalidArgument("kernels: PyTorch's profiler runs already")
        self._profiler.start()

    def of(self, number: int) -> Any:
        """Return a context for the call of operator `number`."""
        return torch.profiler.record_function(f"{_LABEL}{number}")

    def stop(self) -> dict[int, list[dict[str, Any]]]:
        """Return by operator its kernels in their order."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self._profiler.stop()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            self._profiler.export_chrome_trace(str(path))
            return kernels_of(json.loads(path.read_text())["traceEvents"])


def kernels_of(events: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """Return by operator its kernels, of the events of a Chrome trace.

    A launch lies in the time of its operator, on the operator's thread, and has its kernel's correlation.
    """
    spans = sorted((e["tid"], e["ts"], e["ts"] + e["dur"], int(e["name"].removeprefix(_LABEL))) for e in events
                   if e.get("cat") == "user_annotation" and e["name"].startswith(_LABEL))
    kernels = {e["args"]["correlation"]: e for e in events if e.get("cat") == "kernel"}
    launches = sorted((e["ts"], e["tid"], e["args"]["correlation"]) for e in events
                      if e.get("cat") in ("cuda_runtime", "cuda_driver") and e.get("args", {}).get("correlation") in kernels)
    found: dict[int, list[dict[str, Any]]] = {}
    for time, thread, correlation in launches:
        at = bisect_right(spans, (thread, time, math.inf, 0)) - 1  # the last that has begun
        if at >= 0 and spans[at][0] == thread and time <= spans[at][2]:
            kernel = kernels[correlation]
            found.setdefault(spans[at][3], []).append({
                "name": kernel["name"], "grid": kernel["args"]["grid"], "block": kernel["args"]["block"]})
    return found
