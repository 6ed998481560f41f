"""Quantization of the operands of a linear layer: activations, weights and gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from samebits.errors import InvalidArgument
from samebits.quantize import QuantizedTensor, quantize
from samebits.recipes import Recipe
from samebits.rules import options_of
from samebits.torch.linear_recipe import (
    LINE_OF_128,
    SQUARE_OF_128,
    LinearRecipe,
    linear_recipe,
)
from samebits.torch.tensors import FORMATS, torch_dtype

__all__ = [
    "QuantizedOperand",
    "quantize_activations",
    "quantize_gradients",
    "quantize_weights",
]


class QuantizedOperand:
    """Codes and scales of a matrix [rows, cols] for the products that it is an operand of.

    Attributes
    ----------
    direct, transposed : QuantizedTensor or None
        The matrix and its transpose, each quantized along its rows; None if not asked for.

    Examples
    --------
    >>> operand: sbt.QuantizedOperand = sbt.quantize_weights(torch.ones(32, 16), "TE_CURRENT",
    ...                                                    transposed=True)
    >>> operand.direct.codes.shape, operand.transposed.codes.shape
    (torch.Size([32, 16]), torch.Size([16, 32]))
    """

    def __init__(self, direct: QuantizedTensor | None, transposed: QuantizedTensor | None) -> None:
        self._direct = direct
        self._transposed = transposed

    @property
    def direct(self) -> QuantizedTensor:
        """Codes [rows, cols], with tiles along cols: for a product that sums over cols."""
        if self._direct is None:
            raise InvalidArgument("direct: the operand was made with direct=False; pass True")
        return self._direct

    @property
    def transposed(self) -> QuantizedTensor:
        """Codes [cols, rows], with tiles along rows: for a product that sums over rows.

        With one scale per tensor, or square tiles, these are the transposed codes of `direct`.
        Otherwise the matrix is quantized a second time, along the other axis.
        """
        if self._transposed is None:
            raise InvalidArgument("transposed: the operand was made without transposed=True")
        return self._transposed


def quantize_activations(x: torch.Tensor, recipe: LinearRecipe | Recipe | str, *,
                         direct: bool = True, transposed: bool = False) -> QuantizedOperand:
    """Quantize the input of a linear layer.

    Parameters
    ----------
    x : tensor [..., in]
        In float32, bfloat16 or float16, on any device. Leading axes together are the rows.
    recipe : str, Recipe or LinearRecipe
        As in `linear_recipe`.
    direct : bool
        Whether to make the operand of y = x w^T: codes [rows, in].
    transposed : bool
        Whether to make the operand of dw = dy^T x: codes [in, rows].

    Returns
    -------
    QuantizedOperand
        Its scales have the strides that scaled_mm reads, so they need not be contiguous.

    Raises
    ------
    InvalidArgument
        The dtype or the recipe was refused.

    Examples
    --------
    >>> q = sbt.quantize_activations(torch.ones(4, 256), "TE_BLOCK_1D", transposed=True)
    >>> q.direct.codes.shape, q.direct.scales.shape
    (torch.Size([4, 256]), torch.Size([4, 2]))
    >>> q.transposed.codes.shape, q.transposed.scales.shape
    (torch.Size([256, 4]), torch.Size([256, 1]))
    """
    return _operand(x, "x", linear_recipe(recipe).activations, "e4m3", direct, transposed)


@options_of(quantize_activations)
def quantize_weights(w: torch.Tensor, recipe: LinearRecipe | Recipe | str, *,
                     direct: bool = True, transposed: bool = False) -> QuantizedOperand:
    """Quantize the weights of a linear layer.

    Parameters
    ----------
    w : tensor [out, in]
        In float32, bfloat16 or float16, on any device.
    direct : bool
        Whether to make the operand of y = x w^T: codes [out, in].
    transposed : bool
        Whether to make the operand of dx = dy w: codes [in, out].

    Examples
    --------
    >>> q = sbt.quantize_weights(torch.ones(256, 384), "TE_BLOCK_1D", transposed=True)
    >>> q.direct.scales.shape, q.transposed.scales.shape
    (torch.Size([2, 3]), torch.Size([3, 2]))
    """
    return _operand(w, "w", linear_recipe(recipe).weights, "e4m3", direct, transposed)


@options_of(quantize_activations)
def quantize_gradients(dy: torch.Tensor, recipe: LinearRecipe | Recipe | str, *,
                       direct: bool = True, transposed: bool = False) -> QuantizedOperand:
    """Quantize the gradient of the output of a linear layer.

    Parameters
    ----------
    dy : tensor [..., out]
        In float32, bfloat16 or float16, on any device. Leading axes together are the rows.
    direct : bool
        Whether to make the operand of dx = dy w: codes [rows, out].
    transposed : bool
        Whether to make the operand of dw = dy^T x: codes [out, rows].

    Examples
    --------
    >>> sbt.quantize_gradients(torch.ones(4, 32), "TE_CURRENT").direct.codes.dtype
    torch.float8_e5m2
    """
    rules = linear_recipe(recipe)
    return _operand(dy, "dy", rules.gradients, rules.gradient_format, direct, transposed)


def _operand(x: torch.Tensor, name: str, rules: Recipe, to: Any, direct: bool,
             transposed: bool) -> QuantizedOperand:
    """Quantize the rows of a tensor, its columns, or both."""
    if x.dtype not in FORMATS:
        raise InvalidArgument(f"{name}: {x.dtype} cannot be quantized; pass "
                              f"{name}.to(torch.float32), torch.bfloat16 or torch.float16")
    if x.dim() < 2:
        raise InvalidArgument(f"{name}: a tensor with two or more axes is expected; got "
                              f"{list(x.shape)}; pass {name}.unsqueeze(0)")
    matrix = x.detach().reshape(-1, x.shape[-1])
    rows, cols = matrix.shape
    along = _empty(matrix, (rows, cols), rules, to) if direct else None
    across = _empty(matrix, (cols, rows), rules, to) if transposed else None
    if rules.tile[0] == rules.tile[1]:  # both in one pass
        _quantize(matrix, rules, to, along, across)
    else:
        turned = replace(rules, tile=(rules.tile[1], rules.tile[0]))
        _quantize(matrix, rules, to, along, None)
        _quantize(matrix, turned, to, None, across)
    return QuantizedOperand(along, across)


def _quantize(matrix: torch.Tensor, rules: Recipe, to: Any, along: QuantizedTensor | None,
              across: QuantizedTensor | None) -> None:
    """Write the codes and scales of a matrix, their transposes, or both."""
    if along or across:
        quantize(matrix, rules, to=to, out=QuantizedTensor(
            along.codes if along else None, along.scales if along else None, rules, to,
            across.codes if across else None, across.scales if across else None))


def _empty(matrix: torch.Tensor, shape: tuple[int, int], rules: Recipe,
           to: Any) -> QuantizedTensor:
    """Return uninitialized codes [shape], and scales with the strides that scaled_mm reads."""
    codes = torch.empty(shape, dtype=torch_dtype(to), device=matrix.device)
    return QuantizedTensor(codes, _empty_scales(matrix, shape, rules), rules, to)


def _empty_scales(matrix: torch.Tensor, shape: tuple[int, int], rules: Recipe) -> torch.Tensor:
    """Return uninitialized scales.

    Scales of 1 x 128 tiles lie column by column. Scales of 128 x 128 tiles lie in rows padded with
    zeros to a multiple of four: cuBLASLt reads these rows, whatever strides a tensor has.
    """
    dtype = torch_dtype(rules.scale_format)
    rows, cols = (-(-size // tile) if tile else 1 for size, tile in zip(shape, rules.tile))
    if rules.tile == LINE_OF_128:
        return torch.empty((cols, rows), dtype=dtype, device=matrix.device).t()
    if rules.tile == SQUARE_OF_128:
        return torch.zeros((rows, -(-cols // 4) * 4), dtype=dtype,
                           device=matrix.device)[:, :cols]
    return torch.empty((rows, cols), dtype=dtype, device=matrix.device)
