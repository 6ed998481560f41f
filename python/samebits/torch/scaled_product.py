"""Products of quantized matrices: scaled_mm on a GPU, the model of its tensor cores on the CPU."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import torch

from samebits.errors import InvalidArgument, Unsupported
from samebits.matmul import matmul
from samebits.quantize import QuantizedTensor
from samebits.torch.linear_recipe import (
    LINE_OF_32,
    LINE_OF_128,
    ROW,
    SQUARE_OF_128,
    TENSOR,
    text_of,
)

#: Of each kind of tile: scaled_mm's name, and the lowest and the highest compute capability at which
#: scaled_mm multiplies them.
_KINDS = {
    TENSOR: ("TensorWise", (8, 9), (99, 0)),
    ROW: ("RowWise", (8, 9), (99, 0)),
    LINE_OF_128: ("BlockWise1x128", (9, 0), (9, 0)),
    SQUARE_OF_128: ("BlockWise128x128", (9, 0), (9, 0)),
    LINE_OF_32: ("BlockWise1x32", (10, 0), (99, 0)),
}


def scaled_product(a: QuantizedTensor, b: QuantizedTensor, dtype: torch.dtype, *,
                   use_fast_accum: bool = False) -> torch.Tensor:
    """Return the product a b^T of two quantized matrices.

    Parameters
    ----------
    a, b : QuantizedTensor [M, K] and [N, K]
        Operands, one of a `QuantizedOperand` each, on the same device. N and K are multiples of 16.
    dtype : torch.dtype
        Type of the product: float32, bfloat16 or float16. The product is a float32 number, rounded
        to nearest even.
    use_fast_accum : bool
        Whether sums stay in the tensor core. Otherwise they are promoted to float32 after every 128
        elements of K.

    Returns
    -------
    tensor [M, N]

    Raises
    ------
    InvalidArgument
        Fast accumulation was asked for with scales along K.
    Unsupported
        The GPU has no product with these tiles.
    """
    if use_fast_accum and a.recipe.tile not in (TENSOR, ROW):
        raise InvalidArgument("use_fast_accum: cuBLASLt has no fast accumulation with scales per "
                              f"{text_of(a.recipe.tile)}; pass use_fast_accum=False")
    multiply = _on_gpu if a.codes.is_cuda else _on_cpu
    return multiply(a, b, dtype, use_fast_accum)


def _on_cpu(a: QuantizedTensor, b: QuantizedTensor, dtype: torch.dtype,
            use_fast_accum: bool) -> torch.Tensor:
    """Multiply as cuBLASLt does on Hopper; MXFP8 exactly, with one rounding."""
    out = torch.empty(a.codes.shape[0], b.codes.shape[0], dtype=dtype)
    if a.recipe.tile == LINE_OF_32:  # a code times a power of two is a float32 number
        matmul(a.dequantize(), b.dequantize().t(), sum="exact", out=out)
        return out
    rows, cols = b.recipe.tile
    turned = QuantizedTensor(b.codes.t(), b.scales.t(), replace(b.recipe, tile=(cols, rows)),
                             b.format)
    matmul(a, turned, unit="hopper_fp8_fast" if use_fast_accum else "hopper_fp8", out=out)
    return out


def _on_gpu(a: QuantizedTensor, b: QuantizedTensor, dtype: torch.dtype,
            use_fast_accum: bool) -> torch.Tensor:
    for operand in (a, b):
        _check_capability(operand.recipe.tile, operand.codes.device)
    product: torch.Tensor = torch.nn.functional.scaled_mm(
        a.codes, b.codes.t(), _scales_a(a), _kind(a), _scales_b(b), _kind(b),
        swizzle_a=_swizzle(a), swizzle_b=_swizzle(b), output_dtype=dtype,
        use_fast_accum=use_fast_accum)
    return product


@functools.lru_cache(maxsize=None)
def _check_capability(tile: tuple[int, int], device: torch.device) -> None:
    """Refuse tiles that the GPU has no product for."""
    found = torch.cuda.get_device_capability(device)
    _, lowest, highest = _KINDS[tile]
    if lowest <= found <= highest:
        return
    wanted = ".".join(map(str, lowest)) + ("" if lowest == highest else " or higher")
    raise Unsupported(
        f"recipe: scaled_mm multiplies tiles of {text_of(tile)} on GPUs of compute capability "
        f"{wanted}; {torch.cuda.get_device_name(device)} has {found[0]}.{found[1]}; pass "
        "'TE_CURRENT', or run the layer on the CPU")


def _kind(operand: QuantizedTensor) -> Any:
    """Return scaled_mm's name of a tile."""
    return getattr(torch.nn.functional.ScalingType, _KINDS[operand.recipe.tile][0])


def _swizzle(operand: QuantizedTensor) -> Any:
    kinds = torch.nn.functional.SwizzleType
    return kinds.SWIZZLE_32_4_4 if operand.recipe.tile == LINE_OF_32 else kinds.NO_SWIZZLE


def _scales_a(a: QuantizedTensor) -> torch.Tensor:
    """Return the scales of the first operand as scaled_mm takes them; only e8m0 is copied."""
    if a.recipe.tile == SQUARE_OF_128:
        return _padded(a.scales)
    scales: torch.Tensor = swizzled(a.scales) if a.recipe.tile == LINE_OF_32 else a.scales
    return scales


def _scales_b(b: QuantizedTensor) -> torch.Tensor:
    """Return the scales of the second operand as scaled_mm takes them; [1, N] for rows."""
    scales: torch.Tensor = b.scales.reshape(1, -1) if b.recipe.tile == ROW else _scales_a(b)
    return scales


def _padded(scales: torch.Tensor) -> torch.Tensor:
    """Return scales of 128 x 128 tiles, as quantized_operand made them, with the padding of rows.

    Returns
    -------
    tensor [tile columns rounded up to four, tile rows], column-major
    """
    rows, cols = scales.shape
    padded = -(-cols // 4) * 4
    if scales.stride() != (padded, 1):
        scales = torch.nn.functional.pad(scales, (0, padded - cols))
    return scales.as_strided((padded, rows), (1, padded))


def swizzled(scales: torch.Tensor) -> torch.Tensor:
    """Return e8m0 scales in tiles of 128 x 4: row % 32, row / 32 % 4, column % 4.

    Parameters
    ----------
    scales : tensor [rows, tiles along K] of float8_e8m0fnu

    Returns
    -------
    tensor [rows rounded up to 128 * tiles rounded up to 4] of float8_e8m0fnu
        Padding is zero.
    """
    rows, cols = scales.shape
    padded = torch.nn.functional.pad(scales.view(torch.uint8), (0, -cols % 4, 0, -rows % 128))
    tiles = padded.view(-1, 4, 32, padded.shape[1] // 4, 4)  # tile row, row / 32, row % 32, ...
    return tiles.permute(0, 3, 2, 1, 4).reshape(-1).view(torch.float8_e8m0fnu)
