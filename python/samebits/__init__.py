"""Low-precision floating point with the same bits on CPU and GPU.

Examples
--------
>>> import numpy as np
>>> import samebits as sb
>>> x = np.array([1.0, 1.06, 1000.0], np.float32)
>>> sb.convert(sb.convert(x, "e4m3", overflow="saturate"), "fp32")
array([  1.,   1., 448.], dtype=float32)
"""

from __future__ import annotations

import importlib
from typing import Any

import samebits.arrays  # registers NumPy's types and functions with samebits._core
from samebits import functions, optim
from samebits._core import version as __version__
from samebits.arithmetic import (
    Flags,
    Result,
    add,
    divide,
    fma,
    fmax,
    fmin,
    maximum,
    minimum,
    multiply,
    remainder,
    rint,
    sqrt,
    subtract,
)
from samebits.autocast import OperationFormats, autocast_formats, autocast_rule
from samebits.backends import (
    Backend,
    SelfTest,
    backends,
    get_num_threads,
    initialize,
    self_test,
    set_num_threads,
)
from samebits.convert import convert
from samebits.delayed_scaling import DelayedScaling
from samebits.errors import (
    CallOrderError,
    CudaError,
    EnvironmentCheckFailed,
    Error,
    IncompleteWrite,
    InternalError,
    InvalidArgument,
    RankError,
    ScaleExhausted,
    Unsupported,
)
from samebits.formats import FloatInfo, dtype_of, finfo, format_name, formats
from samebits.loss_scaler import LossScaler, StepDecision
from samebits.losses import ConversionLoss
from samebits.matmul import Prediction, ProductError, matmul, predict
from samebits.quantize import (
    QuantizedTensor,
    Statistics,
    dequantize,
    load_quantized,
    quantize,
)
from samebits.recipes import Recipe, recipes
from samebits.reductions import ElementCounts, amax, counts, dot, sum, sum_of_squares
from samebits.rotary import rotary_table
from samebits.tensors import (
    ClipReport,
    InspectReport,
    TensorStatistics,
    UnscaleReport,
    accumulate,
    axpby,
    cast,
    clip,
    inspect,
    l2norm,
    scale,
    unscale,
)
from samebits.verify import Verification, verify

__all__ = [
    "Backend",
    "CallOrderError",
    "ClipReport",
    "ConversionLoss",
    "CudaError",
    "DelayedScaling",
    "ElementCounts",
    "EnvironmentCheckFailed",
    "Error",
    "Flags",
    "FloatInfo",
    "IncompleteWrite",
    "InspectReport",
    "InternalError",
    "InvalidArgument",
    "LossScaler",
    "OperationFormats",
    "Prediction",
    "ProductError",
    "QuantizedTensor",
    "RankError",
    "Recipe",
    "Result",
    "ScaleExhausted",
    "SelfTest",
    "Statistics",
    "StepDecision",
    "TensorStatistics",
    "UnscaleReport",
    "Unsupported",
    "Verification",
    "__version__",
    "accumulate",
    "add",
    "amax",
    "autocast_formats",
    "autocast_rule",
    "axpby",
    "backends",
    "cast",
    "clip",
    "convert",
    "counts",
    "dequantize",
    "divide",
    "dot",
    "dtype_of",
    "finfo",
    "fma",
    "fmax",
    "fmin",
    "format_name",
    "formats",
    "functions",
    "get_num_threads",
    "initialize",
    "inspect",
    "l2norm",
    "load_quantized",
    "matmul",
    "maximum",
    "minimum",
    "multiply",
    "optim",
    "predict",
    "quantize",
    "recipes",
    "remainder",
    "rint",
    "rotary_table",
    "scale",
    "self_test",
    "set_num_threads",
    "sqrt",
    "subtract",
    "sum",
    "sum_of_squares",
    "unscale",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import `samebits.testing` at its first use: most programs never need it."""
    if name == "testing":
        return importlib.import_module("samebits.testing")
    raise AttributeError(f"module 'samebits' has no attribute {name!r}")
