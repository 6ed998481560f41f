"""The package in a process: imports, threads, floating-point environment, command line, types."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samebits as sb
from samebits import _core

PACKAGE = Path(sb.__file__).parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a new process."""
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)}, check=False)


def test_import_needs_neither_torch_nor_ml_dtypes() -> None:
    done = run("-c", """
import sys
sys.modules["ml_dtypes"] = sys.modules["torch"] = None  # importing them fails
import numpy as np
import samebits as sb
y = sb.convert(np.float32([1, 2]), "bf16")
assert y.dtype == np.uint16 and y.tolist() == [0x3F80, 0x4000], y
assert sb.convert(y, "fp32", format="bf16").tolist() == [1, 2]
q = sb.quantize(np.ones((2, 256), np.float32), "TE_CURRENT")
assert q.codes.dtype == np.uint8 and (q.dequantize() == 1).all()
q.save("/dev/null")
try:
    sb.convert(y, "fp32")
except sb.InvalidArgument as error:
    assert "format=" in str(error)
else:
    raise AssertionError
""")
    assert done.returncode == 0, done.stderr


def test_import_makes_no_cuda_call() -> None:
    done = run("-c", "import samebits; print([l for l in open('/proc/self/maps') if 'libcuda' in l])")
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_the_stub_and_the_marker_of_types_are_installed() -> None:
    assert (PACKAGE / "py.typed").exists()
    assert "def convert_default" in (PACKAGE / "_core.pyi").read_text()


def test_version() -> None:
    assert sb.__version__ == _core.version
    assert all(hasattr(sb, name) for name in sb.__all__)


def test_command_line() -> None:
    done = run("-m", "samebits")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"samebits {sb.__version__}")
    assert "reference" in done.stdout and "self-test: every check passed" in done.stdout
    assert "ml_dtypes" in done.stdout


def test_threads() -> None:
    """Also on small arrays, for which calls keep the GIL where there is one."""
    x = np.random.default_rng(0).standard_normal(50_000, dtype=np.float32)
    scaler = sb.LossScaler("torch")

    def results() -> list[Any]:
        found: list[Any] = [sb.convert(x, "e4m3", rounding="stochastic", seed=5).tobytes(),
                            sb.quantize(x.reshape(-1, 100), tile=(1, 0)).scales.tobytes()]
        for _ in range(20):
            found += [sb.convert(x[:100], "bf16").tobytes(), sb.sum(x[:100]), scaler.scale(1.0), scaler.save()]
        with pytest.raises(sb.InvalidArgument, match="'nothing'"):
            sb.convert(x, "nothing")
        return found

    want, wrong = results(), []

    def work(threads: int) -> None:
        for _ in range(20):
            sb.set_num_threads(threads)
            wrong.extend(i for i, (a, b) in enumerate(zip(results(), want, strict=True)) if a != b)

    workers = [threading.Thread(target=work, args=(1 + i % 2,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sb.set_num_threads(None)
    assert wrong == []


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="needs a free-threaded Python")
def test_import_leaves_the_gil_off() -> None:
    assert run("-c", "import sys, samebits; sys.exit(sys._is_gil_enabled())").returncode == 0


def test_the_gil_is_released() -> None:
    x = np.zeros(20_000_000, np.float32)
    out = np.empty(x.size, np.float16)
    done = threading.Event()
    turns = 0

    def convert() -> None:
        for _ in range(5):
            sb.convert(x, "fp16", out=out, threads=1, backend="reference")
        done.set()

    worker = threading.Thread(target=convert)
    worker.start()
    while not done.wait(0.0001):
        turns += 1
    worker.join()
    assert turns > 10  # this thread ran during the calls: with the GIL held, at most once after each


def test_num_threads() -> None:
    sb.set_num_threads(2)
    assert sb.get_num_threads() == 2
    sb.set_num_threads(None)
    assert sb.get_num_threads() is None


SAMPLE = '''
import ml_dtypes
import numpy as np
import samebits as sb
from samebits import ranks
from samebits.optim import AdamW, SGD

x = np.zeros((4, 128), np.float32)
y = sb.convert(x, "e4m3", overflow="saturate")
sb.convert(x, "bfloat16"), sb.convert(x, np.float16), sb.convert(x, x.dtype)
sb.convert(x, ml_dtypes.bfloat16, rounding="stochastic", seed=1)
q: sb.QuantizedTensor = sb.quantize(x, "TE_CURRENT")
q = sb.quantize(x, sb.Recipe(scale="mx_rceil", scale_format="e8m0", tile=(1, 32)))
largest: float = sb.finfo("e4m3").max
report: sb.InspectReport = sb.inspect({"w": x})
flag: bool = sb.add(x, x, to="bf16").flags.inexact
scaler = sb.LossScaler("torch", init_scale=1024)
applied: bool = scaler.step(lambda: None)
sb.matmul(x, x.T, unit="hopper_fp8", promotion=0), sb.matmul(x, x.T, sum="ieee_fp32", order="tree")
sb.functions.exp(x, rule="torch_2_11"), sb.functions.evaluate("gelu", x, to="fp16")
AdamW(x, 1e-3, weights="fp8_copy", states=("bf16", "fp16_scaled"), profile="torch_fused")
SGD(x, momentum=0.9, nesterov=True, seed=3)
ranks.reduce_gradients(ranks.SingleRank(), x, rounding="stochastic", seed=1)

wrong: int = sb.finfo("e4m3").name  # type: ignore[assignment]
sb.convert(x, "e4m4")  # type: ignore[arg-type]
sb.convert(x, "e4m3", roundng="to_odd")  # type: ignore[call-arg]
sb.convert(x, "e4m3", rounding="nearest")  # type: ignore[arg-type]
sb.add(x, x, overflow="clip")  # type: ignore[arg-type]
sb.quantize(x, "TE_CURENT")  # type: ignore[arg-type]
sb.quantize(x, scale="tee")  # type: ignore[arg-type]
sb.quantize(x, rounding="upward")  # type: ignore[arg-type]
sb.Recipe(nonfinite="skip")  # type: ignore[arg-type]
sb.LossScaler("tensorflow")  # type: ignore[arg-type]
sb.matmul(x, x.T, unit="hoper")  # type: ignore[arg-type]
sb.dot(x, x, order="random")  # type: ignore[arg-type]
sb.functions.exp(x, rule="torch")  # type: ignore[arg-type]
sb.functions.evaluate("expp", x)  # type: ignore[arg-type]
AdamW(x, weights="master")  # type: ignore[arg-type]
AdamW(x, profile="torch", seed="1")  # type: ignore[arg-type]
AdamW(x, momentum=0.9)  # type: ignore[call-arg]
sb.autocast_formats("matmul", "fp8", "fp32")  # type: ignore[arg-type]
'''


def test_types(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(SAMPLE)
    config = Path(__file__).resolve().parents[2] / "pyproject.toml"
    installed = "site-packages" in PACKAGE.parts  # where mypy looks by itself
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir",
         str(tmp_path / "cache"), "-m", "sample", "-p", "samebits"],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": "" if installed else str(PACKAGE.parent)},
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
