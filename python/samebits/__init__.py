"""Low-precision floating point with the same bits on CPU and GPU.

Examples in docstrings assume these imports: ``numpy as np``, ``samebits as sb``,
``samebits.ranks as sbr``, and in `samebits.torch` ``torch`` and ``samebits.torch as sbt``.

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
from samebits.array_operations import *
from samebits.autocast import *
from samebits.backends import *
from samebits.codebook import *
from samebits.convert import *
from samebits.delayed_scaling import *
from samebits.errors import *
from samebits.formats import *
from samebits.hadamard import *
from samebits.loss_scaler import *
from samebits.losses import *
from samebits.matmul import *
from samebits.packing import *
from samebits.quantize import *
from samebits.recipes import *
from samebits.reductions import *
from samebits.rotary import *
from samebits.rules import dir_of, names_in
from samebits.tensors import *
from samebits.verify import *

__all__ = ["__version__", "functions", "optim"]
__all__ += names_in(__name__, (
    "arithmetic", "array_operations", "autocast", "backends", "codebook", "convert",
    "delayed_scaling", "errors", "formats", "hadamard", "loss_scaler", "losses", "matmul", "packing",
    "quantize", "recipes", "reductions", "rotary", "tensors", "verify"))
__dir__ = dir_of(__name__)


def __getattr__(name: str) -> Any:
    """Import `samebits.testing` at its first use: most programs never need it."""
    if name == "testing":
        return importlib.import_module("samebits.testing")
    raise AttributeError(f"module 'samebits' has no attribute {name!r}")
