"""Numbers returned and taken while the process flushes subnormals to zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import samebits as sb
from samebits import _core

FLUSHES = 0x8040  # FTZ and DAZ of the SSE control register
TINY = np.float32([2.0**-130, 0.0, -(2.0**-140)])


@pytest.fixture
def flushed() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """A function that makes a call while subnormals are flushed."""
    before = _core.get_mxcsr()
    if before == 0:
        pytest.skip("the processor has no SSE control register")

    def call(function: Callable[[], Any]) -> Any:
        _core.set_mxcsr(before | FLUSHES)
        try:
            return function()
        finally:
            _core.set_mxcsr(before)

    yield call
    _core.set_mxcsr(before)


def _axpby() -> bytes:
    out = np.zeros(3, np.float32)
    sb.axpby(2.0**-130, [np.ones(3, np.float32)], 0.0, [TINY], [out])
    return out.tobytes()


def _scaled() -> bytes:
    out = np.ones(3, np.float32)
    sb.scale(out, 2.0**-130)
    return out.tobytes()


def _unscaled() -> bytes:
    out = np.ones(3, np.float32)
    sb.unscale(out, 2.0**-130)
    return out.tobytes()


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
    "axpby": _axpby,
    "scale": _scaled,
    "unscale": _unscaled,
    "observe": _observed,
}


@pytest.mark.parametrize("name", CALLS)
def test_results_do_not_depend_on_flushing(name: str, flushed: Any) -> None:
    expected = CALLS[name]()
    assert flushed(CALLS[name]) == expected
