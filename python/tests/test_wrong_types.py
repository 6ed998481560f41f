"""Every public function with values of wrong types, argument by argument: each is refused in our words."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samebits as sb
from samebits import ranks

X = np.arange(32, dtype=np.float32).reshape(2, 16)
HEAD = np.ones((1, 1, 2, 64), np.float16)
F16 = X.astype(np.float16)
#: Values that few arguments take. An argument may take some of them.
WRONG: list[Any] = [
    object(), "no_such_name", b"bytes", 1.5, -1, 2**70, True, None, [], (1, 2, 3), {}, {"k": object()},
    np.datetime64("2020-01-01"), np.array(["text"]), float("nan"), 1j, print, int,
]
#: Words of nanobind, of a C conversion or of Python's own operators: no caller can act on them.
FOREIGN = ("incompatible function arguments", "invoked with types", "too large to convert",
           "cannot be interpreted", "object has no attribute", "not supported between",
           "unsupported operand", "object is not iterable", "is not subscriptable", "bad cast",
           "has no len()", "must be real number", "unhashable", "could not convert")


def scaler() -> sb.LossScaler:
    return sb.LossScaler("torch")


def observed() -> sb.LossScaler:
    s = scaler()
    s.observe()
    return s


def adam() -> sb.optim.AdamW:
    return sb.optim.AdamW({"w": X.copy()})


#: The arguments of a call that is right, for what needs more than one array.
ARGUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    **{name: lambda: {"x": X} for name in ("amax", "sum", "sum_of_squares", "counts")},
    "convert": lambda: {"x": X, "to": "bf16", "rounding": "stochastic", "seed": 1},
    "format_name": lambda: {"name": "bf16"}, "dtype_of": lambda: {"name": "bf16"},
    "finfo": lambda: {"name": "bf16"}, "autocast_rule": lambda: {"operation": "matmul"},
    "autocast_formats": lambda: {"operation": "matmul", "precision": "mixed_bf16", "widest": "fp32"},
    "set_num_threads": lambda: {"threads": None}, "self_test": lambda: {"backend": "reference"},
    "initialize": lambda: {"backend": "reference"},
    "dequantize": lambda: {"codes": sb.quantize(X).codes, "scales": sb.quantize(X).scales},
    "pack_codes": lambda: {"codes": sb.convert(X, "e2m1")},
    "unpack_codes": lambda: {"packed": np.zeros(6, np.uint8), "format": "e2m3"},
    "arrange_scales": lambda: {"scales": X, "layout": "row_major"},
    "restore_scales": lambda: {"arranged": np.zeros(512, np.uint8), "layout": "swizzled_128x4",
                               "shape": (3, 4), "format": "e4m3"},
    "quantize_blocks": lambda: {"x": X}, "quantize_int8": lambda: {"x": X},
    "QuantizedBlocks.dequantize": lambda: {"self": sb.quantize_blocks(X)},
    "QuantizedBlocks.absmaxes": lambda: {"self": sb.quantize_blocks(X)},
    "Int8Rows.dequantize": lambda: {"self": sb.quantize_int8(X)},
    "random_hadamard": lambda: {"x": sb.convert(np.ones((2, 16), np.float32), "bf16")},
    "load_quantized": lambda: {"path": "no file"}, "dot": lambda: {"x": X, "y": X},
    "rotary_table": lambda: {"positions": 3, "dim": 4}, "matmul": lambda: {"a": X, "b": X.T},
    "find_rule": lambda: {"a": F16, "b": F16.T, "d": sb.matmul(F16, F16.T)},
    "predict": lambda: {"a": F16, "b": F16.T, "unit": "hopper_wgmma"},
    "unscale": lambda: {"tensors": [X.copy()], "inverse_scale": 0.5},
    "scale": lambda: {"tensors": [X.copy()], "factor": 0.5},
    "clip": lambda: {"tensors": [X.copy()], "max_norm": 1.0},
    "accumulate": lambda: {"acc": [X.copy()], "gradients": [X]},
    "axpby": lambda: {"a": 1.0, "x": [X], "b": 1.0, "y": [X], "out": [X.copy()]},
    "cast": lambda: {"tensors": [X], "to": "bf16", "rounding": "stochastic", "seed": 1},
    "inspect": lambda: {"tensors": [X]}, "l2norm": lambda: {"tensors": [X]},
    "quantize": lambda: {"x": X, "rounding": "stochastic", "seed": 1},
    "evaluate": lambda: {"function": "exp", "x": X},
    "gradient": lambda: {"function": "silu", "grad": X, "x": X},
    "elu": lambda: {"x": X, "rule": "torch_2_11"},
    "leaky_relu": lambda: {"x": X, "rule": "torch_2_11"},
    "pow": lambda: {"x": X, "exponent": 2.0, "rule": "torch_2_11"},
    "softmax": lambda: {"x": X, "rule": "torch_2_11"},
    "log_softmax": lambda: {"x": X, "rule": "torch_2_11"},
    "softmax_gradient": lambda: {"grad": X, "result": X, "rule": "torch_2_11"},
    "log_softmax_gradient": lambda: {"grad": X, "result": X, "rule": "torch_2_11"},
    **{name: lambda: {"x": X, "axis": 0, "rule": "torch_2_11"} for name in ("functions.sum", "mean", "norm")},
    "attention": lambda: {"q": HEAD, "k": HEAD, "v": HEAD, "kernel": "flash"},
    "attention_backward": lambda: {
        "grad": HEAD, "q": HEAD, "k": HEAD, "v": HEAD, "out": HEAD, "lse": HEAD[..., 0].astype("f4"),
        "kernel": "flash"},
    "layer_norm": lambda: {"x": X, "rule": "torch_2_11"},
    "layer_norm_gradient": lambda: {"grad": X, "x": X, "mean": X[:, :1], "rstd": X[:, :1], "rule": "torch_2_11"},
    "rms_norm": lambda: {"x": X, "rule": "torch_2_11"},
    "rms_norm_gradient": lambda: {"grad": X, "x": X, "rstd": X[:, :1], "rule": "torch_2_11"},
    "norm_parameter_gradients": lambda: {"grad": X, "x": X, "rstd": X[:, :1], "mean": X[:, :1], "rule": "torch_2_11"},
    "embedding_gradient": lambda: {"grad": X, "indices": [0] * len(X), "words": 3, "rule": "torch_2_11"},
    "cross_entropy": lambda: {"x": X, "targets": [0] * len(X), "rule": "torch_2_11"},
    "cross_entropy_gradient": lambda: {"grad": np.float32(1), "x": X, "targets": [0] * len(X), "rule": "torch_2_11"},
    "cross_entropy_and_gradient": lambda: {
        "grad": np.float32(1), "x": X, "targets": [0] * len(X), "rule": "torch_2_11"},
    "foreach_norm": lambda: {"tensors": [X], "rule": "torch_2_11"},
    "clip_grad_norm": lambda: {"gradients": [X.copy()], "max_norm": 1.0, "rule": "torch_2_11"},
    "random_stream": lambda: {"purpose": "dropout", "tensor": 1, "step": 1},
    "reduce_gradients": lambda: {"ranks": ranks.SingleRank(), "gradients": [X.copy()],
                                 "rounding": "stochastic", "seed": 1},
    "norm_of_shards": lambda: {"ranks": ranks.SingleRank(), "shards": [X], "first": [0]},
    "LossScaler": lambda: {"policy": "torch", "init_scale": 1024, "growth_interval": 9},
    "LossScaler.load": lambda: {"text": scaler().save()},
    "LossScaler.scale": lambda: {"self": scaler(), "loss": 1.0},
    "LossScaler.unscale": lambda: {"self": scaler(), "gradients": [X.copy()]},
    "LossScaler.observe": lambda: {"self": scaler()},
    "LossScaler.agree": lambda: {"self": observed(), "ranks": ranks.SingleRank()},
    "LossScaler.discard": lambda: {"self": scaler()},
    "LossScaler.step": lambda: {"self": observed()},
    "LossScaler.applied_steps": lambda: {"self": scaler()},
    "LossScaler.state_dict": lambda: {"self": scaler()},
    "LossScaler.load_state_dict": lambda: {"self": scaler(), "state": scaler().state_dict()},
    "DelayedScaling.observe": lambda: {"self": sb.DelayedScaling(2), "amax": 1.0},
    "InspectReport.to": lambda: {"self": sb.inspect([X]), "format": "bf16"},
    "QuantizedTensor.dequantize": lambda: {"self": sb.quantize(X)},
    "AdamW.step": lambda: {"self": adam(), "gradients": {"w": X}},
    "AdamW.load": lambda: {"self": adam(), "path": "no file"},
    **{name: lambda: {"params": {"w": X.copy()}} for name in ("Adam", "AdamW", "LAMB", "Lion", "SGD")},
    **{name: lambda: {"a": X, "b": X} for name in (
        "add", "subtract", "multiply", "divide", "remainder", "minimum", "maximum", "fmin", "fmax")},
    "fma": lambda: {"a": X, "b": X, "c": X}, "sqrt": lambda: {"a": X}, "rint": lambda: {"a": X},
    "DelayedScaling": dict, "backends": dict, "formats": dict, "get_num_threads": dict,
}
#: Not called: `verify` takes minutes; `save` writes a file named by the value; `Recipe` and other
#: dataclasses hold what they are given until a call reads it.
FILES = {"load_quantized", "AdamW.load"}  # they read files
LEFT_OUT = {"verify", "QuantizedTensor.save", "AdamW.save"}


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions, constructors and methods, by the name in ARGUMENTS."""
    for module in (sb, sb.functions, sb.optim, ranks):
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, types.FunctionType):
                both = module is sb.functions and name in sb.__all__
                yield f"functions.{name}" if both else name, value
            elif name in ARGUMENTS:
                yield name, value
                for method, member in inspect.getmembers(value, inspect.isroutine):
                    if f"{name}.{method}" in ARGUMENTS:
                        yield f"{name}.{method}", member
    yield "InspectReport.to", sb.InspectReport.to
    yield "QuantizedTensor.dequantize", sb.QuantizedTensor.dequantize


CALLS = [pair for pair in dict(callables()).items() if pair[0] not in LEFT_OUT]


def right_arguments(name: str) -> dict[str, Any]:
    if name in ARGUMENTS:
        return ARGUMENTS[name]()
    rule = next(rule for row, _, rule in sb._core.unary_functions() if row == name)
    return {"x": X, "rule": rule}


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_wrong_types(name: str, call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    signature = inspect.signature(call)
    assert all(p.kind != p.VAR_KEYWORD for p in signature.parameters.values())
    call(**right_arguments(name)) if name not in FILES else None
    wrong = []
    names = [*signature.parameters, *right_arguments(name)]
    for argument in dict.fromkeys(n for n in names if n not in ("self", "settings")):
        for value in WRONG:
            given = {**right_arguments(name), argument: value}
            bound = [given.pop("self")] if "self" in given else []
            try:
                call(*bound, **given)
            except FileNotFoundError:  # a name of no file
                pass
            except (sb.Error, TypeError) as error:
                text = str(error)
                if any(words in text for words in FOREIGN) or not any(n in text for n in names):
                    wrong.append(f"{argument}={value!r}: {type(error).__name__}: {text}")
            except Exception as error:  # noqa: BLE001
                wrong.append(f"{argument}={value!r}: {type(error).__name__}: {error}")
    assert wrong == []

