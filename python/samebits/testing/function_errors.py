"""Usual errors of kernels that compute functions: which of them gives all results seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.errors import InvalidArgument, Unsupported
from samebits.testing.function_model import FunctionModel
from samebits.testing.function_runs import Runner, Seen
from samebits.testing.number_formats import Codes, array_of, codes_of, is_subnormal

Doubles = npt.NDArray[np.float64]

_RULES = tuple(_core.names("function_rule"))
_RELATED = {"gelu": ("gelu_tanh",), "gelu_tanh": ("gelu",), "exp": ("fast_exp",),
            "log": ("fast_log",), "fast_exp": ("exp",), "fast_log": ("log",)}
_IN_FP64: dict[str, Callable[[Doubles], Doubles]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "silu": lambda x: x / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, 0)}


def explain_function(seen: Seen, runner: Runner) -> str:
    """Return the line of the failure text that begins with "looks like: "."""
    evidence = f"all {seen.codes.size} results seen, {int(seen.wrong.sum())} wrong"
    found = [sentence for sentence, results in _candidates(seen, runner.model)
             if runner.same(results, seen.got).all()]
    if not found:
        return f"looks like: none of the usual errors (none fits {evidence})"
    return f"looks like: {'; or '.join(found[:2])} (fits {evidence})"


def _candidates(seen: Seen, model: FunctionModel) -> Iterator[tuple[str, Codes]]:
    """Yield usual errors, each with the results that it gives."""
    for rule in _RULES:
        for function in (model.function, *_RELATED.get(model.function, ())):
            if (function, rule) == (model.function, model.rule):
                continue
            try:
                results = model.but(function=function, rule=rule)(seen.codes)
            except (InvalidArgument, Unsupported):
                continue
            yield f"{function} by rule {rule}", results
    flushed = _flushed(seen.codes, model)
    yield "subnormal inputs read as zeros", model(flushed)
    yield "subnormal results flushed to zeros", _flushed(seen.expected, model)
    yield "subnormal inputs and results flushed to zeros", _flushed(model(flushed), model)
    if model.function in _IN_FP64:
        yield "computed in fp64 and rounded once", _in_fp64(seen.codes, model)


def _flushed(codes: Codes, model: FunctionModel) -> Codes:
    zeros = codes & np.uint64(model.f.sign)
    return np.where(is_subnormal(codes, model.f), zeros, codes)


def _in_fp64(codes: Codes, model: FunctionModel) -> Codes:
    with np.errstate(all="ignore"):
        x = array_of(codes, model.f)
        if x.dtype.kind == "u":  # bf16 without ml_dtypes
            x = (codes.astype(np.uint32) << 16).view(np.float32)
        wide = _IN_FP64[model.function](x.astype(np.float64))
        if model.f.name != "bf16":
            return codes_of(wide.astype(x.dtype), model.f)
        from samebits import convert

        return np.asarray(convert(wide, "bf16")).view(np.uint16).astype(np.uint64)
