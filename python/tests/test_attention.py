"""Attention against what PyTorch 2.11 returned on an H200."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import samebits
from recorded import FORMATS, differing, recording, sha

#: A row a call of two heads: kernel (with _bwd its backward), format, head dimension, length, causal, seed
#: of q (then k, v and the gradient), and a part of the SHA-256 of each result, at most 192 rows of it.
#: Results: out and lse; dq, dk and dv (of cudnn above 256 keys dq is not reproducible); of math out, dq,
#: dk and dv.
RECORDED = recording("attention")
attention = samebits.functions.attention
attention_backward = samebits.functions.attention_backward


def operands(seed: int, length: int, dimension: int, form: str) -> list[Any]:
    """Return q, k, v and a gradient, roughly normal, the same on every machine."""
    def one(seed: int) -> Any:
        count = 2 * length * dimension
        words = np.random.Generator(np.random.PCG64(seed)).integers(0, 1 << 16, 4 * count, dtype=np.uint16)
        sums = words.astype(np.float32).reshape(-1, 4).sum(1)
        numbers = (sums - np.float32(131070)) / np.float32(32768)
        return numbers.reshape(1, 2, length, dimension).astype(FORMATS[form])
    return [one(seed + i) for i in range(4)]


def hashes(name: str, form: str, dimension: int, length: int, causal: bool, seed: int, **options: Any) -> list[str]:
    q, k, v, grad = operands(seed, length, dimension, form)
    kernel = name.removesuffix("_bwd")
    how = {"kernel": kernel, "causal": causal} | options
    results = list(attention(q, k, v, **how))
    if kernel == "math":
        results[1:] = attention_backward(grad, q, k, v, **how)
    elif name != kernel:
        results = list(attention_backward(grad, q, k, v, *results, **how))
    rows = np.linspace(0, length - 1, min(192, length)).astype(np.int64)
    return [sha(x[:, :, rows], 12) for x in results]


differing = partial(differing, hashes)


@pytest.mark.parametrize("kernel", ["flash", "flash_bwd", "cudnn", "cudnn_bwd", "math"])
def test_recorded_on_a_gpu(kernel: str) -> None:
    rows = [row for row in RECORDED if row[0] == kernel]
    assert len(rows) > 10
    assert not differing(rows)
    short = [row for row in rows if row[3] <= 65]
    assert not differing(short[::3], backend="reference")  # slow: it computes in integers


def test_kernel_and_gpu_change_bits() -> None:
    rows = [row for row in RECORDED if row[0] == "flash" and row[3] == 640]
    assert differing(rows, multiprocessors=4)
    assert differing(rows, splits=1)
    assert differing(rows, kernel="cudnn")
    assert not differing([row for row in rows if row[2] == 64], splits=3)  # as PyTorch chooses


def test_results() -> None:
    q = np.ones((2, 3, 5, 64), np.float16)
    k = np.ones((2, 3, 7, 64), np.float16)
    y = attention(q, k, k, kernel="flash")
    assert y.out.shape == (2, 3, 5, 64) and y.lse.shape == (2, 3, 5)
    assert np.all(y.out == 1) and y.lse.dtype == np.float32
    out = np.empty_like(q)
    assert attention(q, k, k, kernel="cudnn", out=out).out is out
    assert attention(q, k, k, kernel="math").lse is None
    d = attention_backward(q, q, k, k, *y, kernel="flash", dq=False)
    assert d.dq is None and d.dk.shape == d.dv.shape == k.shape


@pytest.mark.parametrize("change, message", [
    ({"kernel": "flash_3"}, "attention of flash_3 has no rule"),
    ({"kernel": "fast"}, "kernel"),
    ({"dropout": 0.1}, "attention with dropout has no rule"),
    ({"q": np.ones((2, 4, 64), np.float16)}, "q: 4 axes are expected, got 3"),
    ({"scale": -1.0}, "scale: must be finite"),
])
def test_refusals(change: dict[str, Any], message: str) -> None:
    x = np.ones((1, 2, 4, 64), np.float16)
    arguments: Any = {"q": x, "k": x, "v": x, "kernel": "flash"} | change
    with pytest.raises(samebits.Error, match=message):
        attention(**arguments)


def test_dq_of_cudnn_above_256_keys_is_refused() -> None:
    x = np.ones((1, 1, 257, 64), np.float16)
    y = attention(x, x, x, kernel="cudnn")
    with pytest.raises(samebits.Unsupported, match="differs from run to run above 256 keys"):
        attention_backward(x, x, x, x, *y, kernel="cudnn")
    assert attention_backward(x, x, x, x, *y, kernel="cudnn", dq=False).dk.shape == x.shape
