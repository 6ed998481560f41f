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
from samebits.arithmetic import *
from samebits.autocast import *
from samebits.backends import *
from samebits.convert import *
from samebits.delayed_scaling import *
from samebits.errors import *
from samebits.formats import *
from samebits.loss_scaler import *
from samebits.losses import *
from samebits.matmul import *
from samebits.quantize import *
from samebits.recipes import *
from samebits.reductions import *
from samebits.rotary import *
from samebits.rules import public_names
from samebits.tensors import *
from samebits.verify import *

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


def __dir__() -> list[str]:
    return public_names(__name__)


def __getattr__(name: str) -> Any:
    """Import `samebits.testing` at its first use: most programs never need it."""
    if name == "testing":
        return importlib.import_module("samebits.testing")
    raise AttributeError(f"module 'samebits' has no attribute {name!r}")
