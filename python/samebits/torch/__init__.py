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

from samebits.rules import public_names
from samebits.torch import optim
from samebits.torch.convert import convert
from samebits.torch.convert_linears import convert_linears, float8_layers
from samebits.torch.evaluate import evaluate
from samebits.torch.float8_linear import Float8Conv1D, Float8Linear
from samebits.torch.grad_scaler import GradScaler, GradStep
from samebits.torch.gradients import clip_grad_norm_, inspect_gradients
from samebits.torch.linear_recipe import LinearRecipe, linear_recipe, linear_recipe_names
from samebits.torch.precision_map import PrecisionMap, load_precision_map
from samebits.torch.quantize import QuantizedTensor, dequantize, fake_quantize, quantize
from samebits.torch.quantized_operand import (
    QuantizedOperand,
    quantize_activations,
    quantize_gradients,
    quantize_weights,
)
from samebits.torch.ranks import ProcessGroup, clip_shards_, norm_of_shards, reduce_gradients
from samebits.torch.tensors import from_numpy, to_numpy

__all__ = [
    "Float8Conv1D",
    "Float8Linear",
    "GradScaler",
    "GradStep",
    "LinearRecipe",
    "PrecisionMap",
    "ProcessGroup",
    "QuantizedOperand",
    "QuantizedTensor",
    "clip_grad_norm_",
    "clip_shards_",
    "convert",
    "convert_linears",
    "dequantize",
    "evaluate",
    "fake_quantize",
    "float8_layers",
    "from_numpy",
    "inspect_gradients",
    "linear_recipe",
    "linear_recipe_names",
    "load_precision_map",
    "norm_of_shards",
    "optim",
    "quantize",
    "quantize_activations",
    "quantize_gradients",
    "quantize_weights",
    "reduce_gradients",
    "to_numpy",
]


def __dir__() -> list[str]:
    return public_names(__name__)
