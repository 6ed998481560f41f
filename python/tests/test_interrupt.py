"""Ctrl-C during long calls."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

#: Calls that take several seconds on one thread.
CALLS = {
    "rotary_table": 'sb.rotary_table(400_000, 256, base=1.0001, to="fp32", threads=1)',
    "matmul": 'sb.matmul(x, x, sum="exact", threads=1)',
    "matmul_of_a_unit": 'sb.matmul(codes, codes, unit="hopper_fp8", threads=1)',
    "convert": 'sb.convert(wide, "e4m3", backend="reference", threads=1)',
    "verify": "sb.verify(threads=1)",
}
PROGRAM = """
import signal
import numpy as np
import samebits as sb

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore SIGINT
x = np.broadcast_to(np.float32(1.5), (8000, 8000))
wide = np.broadcast_to(np.float32(1.5), (8000, 100000))
codes = sb.convert(x, "e4m3")
print("begins", flush=True)
try:
    {call}
    print("completed", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_a_long_call(name: str) -> None:
    program = PROGRAM.format(call=CALLS[name])
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        limit = threading.Timer(60, process.kill)
        limit.start()
        assert process.stdout.readline() == "begins\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - sent < 2
        limit.cancel()
    assert process.returncode == 0


def test_a_handler_that_returns_ends_no_call() -> None:
    """The call goes on, with the bits of a call without signals."""
    program = """
import signal
import numpy as np
import samebits as sb

calls = []
signal.signal(signal.SIGALRM, lambda *_: calls.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
x = np.broadcast_to(np.float32(1.03), (8000, 20000))
y = sb.convert(x, "e5m2", format="fp32", backend="reference", threads=1)
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(calls) > 1, y.min() == y.max() == 1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"
