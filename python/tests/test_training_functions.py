"""Losses, gradients of parameters, and norms of lists, against what PyTorch 2.11 returned on an H200."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import samebits
from recorded import FORMATS, differing, elements, recording, sha
from samebits import functions

#: A row a call: function, format, seed of the operands, arguments, and for each recorded result the first
#: half of its SHA-256.
RECORDED = recording("training_functions")


def integers(seed: int, count: int, limit: int) -> Any:
    return np.random.Generator(np.random.PCG64(seed)).integers(0, limit, count, dtype=np.int64)


def norms(form: str, seed: int, rows: int, cols: int, rms: bool, **options: Any) -> list[Any]:
    """Return what was recorded of LayerNorm or RMSNorm."""
    x, grad = (elements(seed + i, (rows, cols), form) for i in (0, 1))
    weight = elements(seed + 2, (cols,), form)
    k = 4
    if rms:
        y = functions.rms_norm(x, weight, **options)
        dx = functions.rms_norm_gradient(grad[:k], x[:k], y.rstd[:k], weight, **options)
        of = functions.norm_parameter_gradients(grad, x, y.rstd, **options)
        return [y.out[:k], dx, of.weight]
    n = functions.layer_norm(x, weight, weight, **options)
    of = functions.norm_parameter_gradients(grad, x, n.rstd, n.mean, **options)
    return [of.weight, of.bias]


def cross_entropy(form: str, seed: int, rows: int, classes: int, reduction: str, smoothing: float,
                  ignored: int, apart: bool = False, **options: Any) -> list[Any]:
    """Return a loss and a part of the gradient. apart: by log_softmax and the loss of its results."""
    x, targets = elements(seed, (rows, classes), form), integers(seed + 1, rows, classes)
    if ignored:
        targets[::ignored] = -100
    how: Any = {"reduction": reduction, "label_smoothing": smoothing, **options}
    if apart:
        x = functions.log_softmax(x, **options)
        how["log_probabilities"] = True
    loss = functions.cross_entropy(x, targets, **how)
    gradient = functions.cross_entropy_gradient(np.ones_like(loss), x, targets, **how)
    if apart:
        gradient = functions.log_softmax_gradient(gradient, x, **options)
    return [loss, gradient[:3, :2048]]


def embedding(form: str, seed: int, rows: int, words: int, cols: int, deterministic: bool, **options: Any) -> list[Any]:
    grad, indices = elements(seed, (rows, cols), form), integers(seed + 1, rows, words)
    y = functions.embedding_gradient(grad, indices, words, deterministic=deterministic, **options)
    return [y[np.unique(indices)[:64]]]


def lists(form: str, seed: int, sizes: list[int], clip: bool, **options: Any) -> list[Any]:
    """Return the norms of a list, or the norm of all and parts of the clipped arrays."""
    tensors = [elements(seed + i, (n,), form) for i, n in enumerate(sizes)]
    if not clip:
        return [functions.foreach_norm(tensors, **options)]
    norm = functions.clip_grad_norm(tensors, 1.0, **options)
    places = [np.linspace(0, x.size - 1, min(x.size, 64)).astype(np.int64) for x in tensors]
    return [FORMATS[form](norm), *(x[p] for x, p in zip(tensors, places, strict=True))]


CALLS: dict[str, Callable[..., list[Any]]] = {
    "norms": norms, "cross_entropy": cross_entropy, "embedding": embedding, "lists": lists}


def hashes(name: str, form: str, seed: int, arguments: Any, **options: Any) -> list[str]:
    return [sha(y) for y in CALLS[name](form, seed, *arguments, **({"rule": "torch_2_11"} | options))]


differing = partial(differing, hashes)


@pytest.mark.parametrize("name", CALLS)
def test_recorded_on_a_gpu(name: str) -> None:
    rows = [row for row in RECORDED if row[0] == name]
    assert len(rows) >= 20
    assert not differing(rows)
    assert not differing(rows[::9], backend="reference")  # slow: it computes in integers


def test_log_probabilities() -> None:
    rows = [row for row in RECORDED if row[0] == "cross_entropy" and row[3][3] == 0]
    assert len(rows) >= 20
    assert not differing(rows, apart=True)


def test_empty_arrays() -> None:
    none: Any = {"rule": "torch_2_11"}
    x = np.zeros((0, 3), np.float32)
    weight, bias = functions.norm_parameter_gradients(x, x, x[:, :1], x[:, :1], **none)
    assert weight.tolist() == bias.tolist() == [0, 0, 0]
    assert functions.embedding_gradient(x, [], 2, **none).tolist() == [[0, 0, 0]] * 2
    assert np.isnan(functions.cross_entropy(x, [], **none))
    assert functions.cross_entropy(x, [], reduction="sum", **none) == 0
    assert functions.foreach_norm([x], **none).tolist() == [0]
    assert functions.clip_grad_norm([], 1, **none) == 0


def test_rows_without_a_loss() -> None:
    x, rule = np.float32([[1, 2], [3, 5]]), "torch_2_11"
    assert np.isnan(functions.cross_entropy(x, [-1, -1], ignore_index=-1, rule=rule))
    losses = functions.cross_entropy(x, [-1, 1], ignore_index=-1, reduction="none", rule=rule)
    assert losses[0] == 0 < losses[1]
    gradient = functions.cross_entropy_gradient(np.float32(1), x, [-1, 1], ignore_index=-1, rule=rule)
    assert gradient[0].tolist() == [0, 0] and gradient[1, 0] > 0 > gradient[1, 1]


def test_words_without_an_order() -> None:
    grad = np.ones((4000, 2), np.float32)
    few, many = np.arange(4000) // 20, np.arange(4000) // 21
    assert functions.embedding_gradient(grad, few, 300, rule="torch_2_11")[0, 0] == 20
    with pytest.raises(samebits.Unsupported, match="index 0 occurs more than 20 times"):
        functions.embedding_gradient(grad, many, 300, rule="torch_2_11")
    y = functions.embedding_gradient(grad, many, 300, deterministic=True, rule="torch_2_11")
    assert y[0, 0] == 21


X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize("call, message", [
    (lambda o: functions.cross_entropy(X, [0, 3], **o),
     "targets: must be from 0 to 2 or ignore_index, got 3 at position 1"),
    (lambda o: functions.cross_entropy(X, [0], **o), "targets: must be 2, one for each row, got 1"),
    (lambda o: functions.cross_entropy(X, [0.5, 1], **o), "targets: an array of integers"),
    (lambda o: functions.cross_entropy(X, [0, 1], label_smoothing=2, **o), "label_smoothing: must be from 0 to 1"),
    (lambda o: functions.cross_entropy(X, [0, 1], log_probabilities=True, label_smoothing=0.5, **o),
     "label_smoothing: must be 0 with log_probabilities"),
    (lambda o: functions.cross_entropy(X, [0, 1], reduction="max", **o), "reduction: .*max"),
    (lambda o: functions.cross_entropy_gradient(X[0], X, [0, 1], **o), r"grad: shape must be \[1, 1\], got \[1, 3\]"),
    (lambda o: functions.norm_parameter_gradients(X, X[:1], X[:, :1], **o), r"x: shape must be \[2, 3\], got \[1, 3\]"),
    (lambda o: functions.norm_parameter_gradients(X, X, X, **o), r"rstd: shape must be \[2, 1\], got \[2, 3\]"),
    (lambda o: functions.norm_parameter_gradients(X, X, X[:, :1], multiprocessors=1, **o),
     "multiprocessors: must be at least 2, got 1"),
    (lambda o: functions.embedding_gradient(X, [0, 5], 5, **o), "indices: must be from 0 to 4, got 5 at position 1"),
    (lambda o: functions.embedding_gradient(X, [0], 5, **o), r"grad: shape must be \[1, 3\]"),
    (lambda o: functions.foreach_norm([X, X.astype(np.float16)], **o), r"tensors\[1\].*fp16"),
    (lambda o: functions.clip_grad_norm([X.copy()], -1.0, **o), "max_norm: must be a number >= 0"),
])
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(samebits.Error, match=message):
        call({"rule": "torch_2_11"})
    with pytest.raises(samebits.Error, match="rule cuda_13_0 has no|" + message):
        call({"rule": "cuda_13_0"})
