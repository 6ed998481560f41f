"""The library on PyTorch tensors: CPU and CUDA, on the current stream, without a copy.

Examples
--------
>>> import torch
>>> import samebits.torch as sbt
>>> x = torch.tensor([1.0, 1.06, 1000.0])
>>> sbt.convert(x, "e4m3", overflow="saturate")
tensor([  1.,   1., 448.], dtype=torch.float8_e4m3fn)
"""

from __future__ import annotations

from samebits.rules import dir_of, names_in
from samebits.torch import functional, optim
from samebits.torch.audit import *
from samebits.torch.card import *
from samebits.torch.convert import *
from samebits.torch.convert_linears import *
from samebits.torch.convert_model import *
from samebits.torch.evaluate import *
from samebits.torch.explain import *
from samebits.torch.float8_linear import *
from samebits.torch.grad_scaler import *
from samebits.torch.gradients import *
from samebits.torch.layer_errors import *
from samebits.torch.linear_recipe import *
from samebits.torch.matmul_plan import *
from samebits.torch.pin import *
from samebits.torch.precision_map import *
from samebits.torch.quantize import *
from samebits.torch.quantized_operand import *
from samebits.torch.ranks import *
from samebits.torch.recompute import *
from samebits.torch.record import *
from samebits.torch.replay import *
from samebits.torch.tensors import *
from samebits.torch.trace import *

__all__ = ["functional", "optim"]
__all__ += names_in(__name__, (
    "audit", "card", "convert", "convert_linears", "convert_model", "evaluate", "explain", "float8_linear",
    "grad_scaler", "gradients", "layer_errors", "linear_recipe", "matmul_plan", "pin", "precision_map", "quantize",
    "quantized_operand", "ranks", "recompute", "record", "replay", "tensors", "trace"))
__dir__ = dir_of(__name__)
