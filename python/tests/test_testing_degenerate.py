"""Degenerate kernels, such as one that returns zeros: each check must find each of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import samebits
from planted import SEEDS, failure_of, results_per_error
from planted_loss_scalers import Scaler, nonfinite, planted
from planted_quantizers import OPTIONS, quantizer
from samebits import functions
from samebits.testing import (check_conversion, check_function, check_loss_scaler, check_quantize, check_reduction)

Result = Callable[[Any, Any], Any]


def _at(*indices: Any) -> Result:
    """Return a kernel that leaves out elements; an index is a slice, or a function of x."""
    def kernel(x: Any, y: Any) -> Any:
        for i in indices:
            y[i(x) if callable(i) else i] = y.dtype.type(0)
        return y
    return kernel


def _one(x: Any) -> slice:
    """Return one element, another one for other contents."""
    i = zlib.crc32(x.tobytes()) % max(x.size, 1)
    return slice(i, i + 1)


def _repeated(x: Any, y: Any) -> Any:
    y[8:16] = y[:8][:max(y.size - 8, 0)]
    return y


#: From an input and its right results, both of one axis, the results of a degenerate kernel.
ELEMENTS: dict[str, Result] = {
    "zeros": _at(slice(None)),
    "a constant": lambda x, y: np.full_like(y, y[0]) if y.size else y,
    "the input": lambda x, y: x.view(y.dtype)[:y.size],
    "the first element is left out": _at(slice(1)),
    "the last element is left out": _at(slice(-1, None)),
    "one element is left out": _at(_one),
    "element 100 is left out": _at(slice(100, 101)),
    "the tail of 4 is left out": _at(lambda x: slice(x.size // 4 * 4, None)),
    "the last tile of 256 is left out": _at(lambda x: slice(max(x.size - 1, 0) // 256 * 256, None)
                                            if x.size > 256 else slice(0)),
    "eight elements are repeated": _repeated,
    "the scale is 2": lambda x, y: (y + y).astype(y.dtype),
}


def bf16(x: Any) -> Any:
    return x.astype(ml_dtypes.bfloat16)


def sigmoid(x: Any) -> Any:
    return np.asarray(functions.sigmoid(x, rule="exact"))


def found(check: Callable[..., None], kernel: Any, *args: Any, record: Any, **options: Any) -> None:
    """Expect a failure of the check, with three seeds."""
    for seed in SEEDS[:3]:
        text = failure_of(check, kernel, *args, examples_seed=seed, **options)
        if " seen, " in text:
            record("cases", results_per_error(text))


@pytest.mark.parametrize("name", ELEMENTS)
def test_conversion(name: str, record_property: Any) -> None:
    for source in ("fp32", "fp16"):
        found(check_conversion, lambda x: ELEMENTS[name](x, bf16(x)), source, "bf16", examples=2,
              record=record_property)


@pytest.mark.parametrize("name", ELEMENTS)
def test_function(name: str, record_property: Any) -> None:
    found(check_function, lambda x: ELEMENTS[name](x, sigmoid(x)), "sigmoid", rule="exact",
          examples=1, record=record_property)


#: Quiet and signalling NaN, the smallest normal number, the largest subnormal one.
@pytest.mark.parametrize("code", [0x7FC00000, 0x7F800002, 0x80800000, 0x807FFFFF], ids=hex)
def test_function_of_one_code(code: int, record_property: Any) -> None:
    def kernel(x: Any) -> Any:
        return np.where(x.view(np.uint32) == code, np.float32(2), sigmoid(x))
    found(check_function, kernel, "sigmoid", rule="exact", examples=0, record=record_property)


#: What a kernel leaves as it was of an output that it must fill.
UNWRITTEN: dict[str, Result] = {
    "nothing is written": lambda x, y: np.zeros(y.size, bool),
    "the first element is not written": lambda x, y: np.arange(y.size) > 0,
    "the last element is not written": lambda x, y: np.arange(y.size) < y.size - 1,
    "one element is not written": lambda x, y: np.arange(y.size) != _one(x).start,
    "codes 0xA5A5 are not written": lambda x, y: y.view(np.uint16) != 0xA5A5,
    "codes 0x5A5A are not written": lambda x, y: y.view(np.uint16) != 0x5A5A,
}


def unwritten(name: str) -> Callable[[Any, Any], None]:
    """Return a kernel from bf16 to bf16 that leaves elements as they were."""
    def kernel(x: Any, out: Any) -> None:
        written = UNWRITTEN[name](x, x)
        out[written] = x[written]
    return kernel


@pytest.mark.parametrize("name", UNWRITTEN)
def test_conversion_output(name: str, record_property: Any) -> None:
    found(check_conversion, unwritten(name), "bf16", "bf16", examples=2, fills_out=True, record=record_property)


@pytest.mark.parametrize("name", UNWRITTEN)
def test_function_output(name: str, record_property: Any) -> None:
    found(check_function, unwritten(name), "leaky_relu", "bf16", rule="torch_2_11", parameter=1.0,
          examples=1, fills_out=True, record=record_property)


QUANTIZERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "zeros": lambda x, q, s: (np.zeros_like(q), np.zeros_like(s)),
    "codes are zeros": lambda x, q, s: (np.zeros_like(q), s),
    "the scale is a constant": lambda x, q, s: (x.astype(q.dtype), np.ones_like(s)),
    "the scale of the first tile": lambda x, q, s: (q, np.full_like(s, s[0, 0])),
    "codes of the input": lambda x, q, s: (x.astype(q.dtype), s),
    "the first row is repeated": lambda x, q, s: (np.repeat(q[:1], len(q), 0), s),
    "the last row is left out": lambda x, q, s: (_zero(q, np.s_[-1:]), s),
    "the last column is left out": lambda x, q, s: (_zero(q, np.s_[:, -1:]), s),
    "the first code is left out": lambda x, q, s: (_zero(q, np.s_[:1, :1]), s),
    "the last code is left out": lambda x, q, s: (_zero(q, np.s_[-1:, -1:]), s),
    "one code is left out": lambda x, q, s: (_zero(q.reshape(-1), _one(x)).reshape(q.shape), s),
    "the last tile is left out": lambda x, q, s: (_zero(q, np.s_[:, (x.shape[1] - 1) // 128 * 128:]), s),
    "the last scale is left out": lambda x, q, s: (q, _zero(s, np.s_[-1:, -1:])),
    "one scale is left out": lambda x, q, s: (q, _zero(s.reshape(-1), _one(s)).reshape(s.shape)),
}


def _zero(a: Any, part: Any) -> Any:
    a[part] = a.dtype.type(0)
    return a


@pytest.mark.parametrize("name", QUANTIZERS)
def test_quantize(name: str, record_property: Any) -> None:
    def kernel(x: Any) -> Any:
        codes, scales = quantizer()(x)
        return QUANTIZERS[name](x, codes.copy(), scales.copy())
    found(check_quantize, kernel, record=record_property, shapes=[(1, 1), (2, 128), (3, 300)], examples=12, **OPTIONS)


def _limited(size: int, x: Any) -> Any:
    limited = np.clip(x, np.float32(-2.0**100), np.float32(2.0**100))
    return np.where(np.isfinite(x), limited, x) if x.size == size else x


#: What a kernel sees of its elements.
SEEN: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda x: x[:0],
    "the first element alone": lambda x: x[:1],
    "the last element alone": lambda x: x[-1:],
    "the first element is left out": lambda x: x[1:],
    "the last element is left out": lambda x: x[:-1],
    "one element is left out": lambda x: np.delete(x, _one(x)) if x.size else x,
    "element 100 is left out": lambda x: np.delete(x, slice(100, 101)),
    "the tail of 4 is left out": lambda x: x[:x.size // 4 * 4],
    "the last chunk of 4096 is left out": lambda x: x[:x.size // 4096 * 4096] if x.size > 4096
    else x,
    "the first half is repeated": lambda x: np.concatenate([x[:x.size // 2]] * 2),
    "the scale is 2": lambda x: x * 2,
    "a constant": lambda x: np.ones(1, np.float32),
    **{f"above 2^100 as 2^100 at size {n}": partial(_limited, n) for n in (1, 4, 64, 4096)},
}

SUMS: dict[str, Callable[[Any], Any]] = {
    "+0 is added at the end": lambda x: np.append(x, np.float32(0)) if x.size else x,
    "-0 alone is +0": lambda x: x + 0.0 if x.size == 1 else x,
}


@pytest.mark.parametrize(("name", "reduction"), [
    *((name, reduction) for name in SEEN for reduction in ("sum", "amax")),
    *((name, "sum") for name in SUMS), *((name, "sum_of_squares") for name in list(SEEN)[:6])])
def test_reduction(name: str, reduction: str, record_property: Any) -> None:
    def kernel(x: Any) -> Any:
        return getattr(samebits, reduction)({**SEEN, **SUMS}[name](x))
    found(check_reduction, kernel, reduction, examples=0, record=record_property)


#: ±1, 1.5, quiet NaN, a NaN of one payload bit, a subnormal power of two.
@pytest.mark.parametrize(("source", "code"), [
    ("fp32", 0x3F800000), ("fp32", 0xBF800000), ("bf16", 0x3FC0), ("fp16", 0x7E00),
    ("fp32", 0x7F800010), ("fp16", 0x8020)], ids=lambda p: p if isinstance(p, str) else hex(p))
def test_reduction_of_one_code(source: str, code: int, record_property: Any) -> None:
    def kernel(x: Any) -> Any:
        alone = x.view(f"u{x.itemsize}").tolist() == [code]
        return np.float32(2) if alone else samebits.amax(x)
    found(check_reduction, kernel, "amax", source, examples=0, record=record_property)


def _only(which: Callable[[Any, int], Any]) -> Callable[..., Any]:
    """Return an unscaled() that leaves out elements, by which(gradient, number)."""
    def unscaled(self: Any, g: Any, number: int) -> Any:
        y = g * (np.float32(1) / self.scale)
        left_out = which(g, number)
        y[left_out] = g[left_out]
        return y
    return unscaled


SCALERS: dict[str, Callable[..., Scaler]] = {
    "zeros": planted(unscaled=lambda s, g, n: g * 0),
    "nothing is written": planted(unscaled=lambda s, g, n: g, update=lambda s, bad: None),
    "the scale is a constant": planted(update=lambda s, bad: None),
    "every step is skipped": planted(applies=lambda s, bad: False),
    "every step counts as bad": planted(is_bad=lambda s, g: True),
    "no step counts as bad": planted(is_bad=lambda s, g: False),
    "the first element is left out": planted(unscaled=_only(lambda g, n: np.s_[:1])),
    "the last element is left out": planted(unscaled=_only(lambda g, n: np.s_[-1:])),
    "one element is left out": planted(unscaled=_only(lambda g, n: _one(g))),
    "element 100 is left out": planted(unscaled=_only(lambda g, n: np.s_[100:101])),
    "the tail of 4 is left out": planted(unscaled=_only(lambda g, n: np.s_[g.size // 4 * 4:])),
    "the first tensor is left out": planted(unscaled=_only(lambda g, n: np.s_[:0 if n else None])),
    "a later tensor is left out": planted(unscaled=_only(lambda g, n: np.s_[:None if n else 0])),
    "the second element is not seen": planted(is_bad=lambda s, g: nonfinite([np.delete(t, np.s_[1:2]) for t in g])),
    "one element is not seen": planted(is_bad=lambda s, g: nonfinite([np.delete(t, _one(t)) for t in g])),
    "the tail of 4 is not seen": planted(is_bad=lambda s, g: nonfinite([t[:t.size // 4 * 4] for t in g])),
    "elements after 1024 are not seen": planted(is_bad=lambda s, g: nonfinite([t[:1024] for t in g])),
    "the second tensor is not seen": planted(is_bad=lambda s, g: nonfinite([*g[:1], *g[2:]])),
    "gradients are repeated": planted(unscaled=lambda s, g, n: np.resize(g[:2] * (np.float32(1) / s.scale), g.shape)),
}


@pytest.mark.parametrize("name", SCALERS)
def test_loss_scaler(name: str, record_property: Any) -> None:
    found(check_loss_scaler, SCALERS[name], examples=64, record=record_property)
