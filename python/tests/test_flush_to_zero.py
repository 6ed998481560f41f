"""Numbers returned and taken while the process flushes subnormals to zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samebits as sb
from samebits import _core

TINY = np.float32([2.0**-130, 0.0, -(2.0**-140)])
BIG = np.random.default_rng(0).standard_normal((4, 128), dtype=np.float32)
SMALL = BIG * np.float32(1e-40)


def _written(call: Callable[[Any], Any], value: float = 1.0) -> Callable[[], bytes]:
    """Return a call that writes its argument, and returns the bits."""
    def run() -> bytes:
        out = np.full(3, value, np.float32)
        call(out)
        return out.tobytes()
    return run


def _observed() -> bytes:
    state = sb.DelayedScaling(2)
    state.observe(2.0**-130)
    return state.history.tobytes()


CALLS: dict[str, Callable[[], Any]] = {
    "amax": lambda: sb.amax(TINY),
    "sum": lambda: sb.sum(TINY),
    "inspect": lambda: sb.inspect(TINY).total.amax,
    "unscale_amax": lambda: sb.unscale(TINY.copy(), 1.0).amax,
    "statistics": lambda: sb.quantize(TINY.reshape(1, 3), statistics=True).statistics,
    "loss": lambda: sb.LossScaler("torch", init_scale=1.0).scale(2.0**-130),
    "scaled_loss": lambda: sb.LossScaler("torch", init_scale=2.0**-60).scale(2.0**-70),
    "inverse_scale": lambda: sb.LossScaler("torch", init_scale=2.0**127).inverse_scale(),
    "axpby": _written(lambda out: sb.axpby(2.0**-130, [np.ones(3, np.float32)], 0.0, [TINY], [out])),
    "scale": _written(lambda out: sb.scale(out, 2.0**-130)),
    "unscale": _written(lambda out: sb.unscale(out, 2.0**-130)),
    "convert": lambda: sb.convert(SMALL, "bf16").tobytes(),
    "quantize": lambda: sb.quantize(BIG, "TE_CURRENT").codes.tobytes(),
    "multiply": lambda: sb.multiply(SMALL, BIG).value.tobytes(),
    "dot": lambda: sb.dot(SMALL, BIG),
    "matmul": lambda: sb.matmul(SMALL, BIG.T, sum="ieee_fp32").tobytes(),
    "observe": _observed,
}


@pytest.mark.parametrize("mode", [0x8040, 0x6000], ids=["flushes", "toward zero"])  # of the SSE control register
@pytest.mark.parametrize("name", CALLS)
def test_results_do_not_depend_on_flushing(name: str, mode: int) -> None:
    before = _core.get_mxcsr()
    if before == 0:
        pytest.skip("the processor has no SSE control register")
    expected = CALLS[name]()
    _core.set_mxcsr(0x1F80 | mode)
    try:
        got, kept = CALLS[name](), _core.get_mxcsr() & 0xFFC0
    finally:
        _core.set_mxcsr(before)
    assert got == expected
    assert kept == (0x1F80 | mode) & 0xFFC0  # the caller's mode is put back
