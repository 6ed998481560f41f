"""The arguments of scaled_mm, without a GPU: a simulated one reads scales as cuBLASLt does."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import ScalingType, SwizzleType

import samebits as sb
import samebits.torch as sbt
from samebits.torch import scaled_product as tested

RECIPES = ["TE_CURRENT", "TORCHAO_ROW", "TE_BLOCK_1D", "DEEPGEMM_FP32_CUDA", "MXFP8_TE"]
#: M, N, K. K / 128 is a multiple of four and not.
SHAPES = [(64, 256, 512), (48, 144, 272), (16, 32, 128), (160, 400, 640), (32, 2304, 80)]


def operands(recipe: str, shape: tuple[int, int, int]) -> list[tuple[Any, Any]]:
    """The operands of y, dx and dw, as the layer makes them."""
    m, n, k = shape
    generator = torch.Generator().manual_seed(m)
    x = sbt.quantize_activations(torch.randn(m, k, generator=generator), recipe, transposed=True)
    w = sbt.quantize_weights(torch.randn(n, k, generator=generator), recipe, transposed=True)
    dy = sbt.quantize_gradients(torch.randn(m, n, generator=generator), recipe, transposed=True)
    return [(x.direct, w.direct), (dy.direct, w.transposed), (dy.transposed, x.transposed)]


def storage_of(t: torch.Tensor) -> torch.Tensor:
    """What a kernel can read from the address of a tensor on."""
    return t.as_strided((t.untyped_storage().nbytes() // t.element_size() - t.storage_offset(),), (1,))


def scales_read(scales: torch.Tensor, kind: ScalingType, lines: int, k: int) -> torch.Tensor:
    """The scales [line groups, tiles of K] of an operand [lines, K] that cuBLASLt reads.

    The kernel gets an address; strides of the tensor do not reach it.
    """
    memory = storage_of(scales)
    tiles = -(-k // 128)
    if kind == ScalingType.TensorWise:
        return memory[:1].view(1, 1)
    if kind == ScalingType.RowWise:
        return memory[:lines].view(lines, 1)
    if kind == ScalingType.BlockWise1x128:
        return memory[: lines * tiles].view(tiles, lines).t()
    assert kind == ScalingType.BlockWise128x128
    groups, padded = -(-lines // 128), -(-tiles // 4) * 4
    return memory[: groups * padded].view(groups, padded)[:, :tiles]


def check_shapes(scales: torch.Tensor, kind: ScalingType, lines: int, k: int) -> None:
    """Refuse what torch 2.11 refuses in eager mode on a GPU."""
    tiles = -(-k // 128)
    if kind == ScalingType.TensorWise:
        assert scales.numel() == 1
    elif kind == ScalingType.BlockWise1x128:
        assert scales.shape == (lines, tiles) and scales.stride(0) == 1
        assert scales.stride(1) == lines or (tiles == 1 and scales.stride(1) == 1)
    elif kind == ScalingType.BlockWise128x128:
        padded = -(-tiles // 4) * 4
        assert scales.shape == (padded, -(-lines // 128)) and scales.stride() == (1, padded)


TILES = {ScalingType.TensorWise: (0, 0), ScalingType.RowWise: (1, 0),
         ScalingType.BlockWise1x128: (1, 128), ScalingType.BlockWise128x128: (128, 128)}


def simulated_scaled_mm(a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor,
                        kind_a: ScalingType, scale_b: torch.Tensor, kind_b: ScalingType,
                        swizzle_a: Any, swizzle_b: Any, output_dtype: torch.dtype,
                        use_fast_accum: bool) -> torch.Tensor:
    (m, k), n = a.shape, b.shape[1]
    assert a.is_contiguous() and b.t().is_contiguous() and k % 16 == 0 == n % 16
    assert swizzle_a == swizzle_b == SwizzleType.NO_SWIZZLE
    check_shapes(scale_a, kind_a, m, k)
    check_shapes(scale_b, kind_b, n, k)
    if kind_a == ScalingType.RowWise:
        assert scale_a.shape == (m, 1) and scale_a.is_contiguous()
        assert scale_b.shape == (1, n) and scale_b.is_contiguous()
    rows, cols = TILES[kind_b]
    out = torch.empty((m, n), dtype=output_dtype)
    return sb.matmul(a, b, a_scales=scales_read(scale_a, kind_a, m, k), a_tile=TILES[kind_a],
                     b_scales=scales_read(scale_b, kind_b, n, k).t(), b_tile=(cols, rows),
                     unit="hopper_wgmma", promotion=0 if use_fast_accum else 128, out=out)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("recipe", [name for name in RECIPES if name != "MXFP8_TE"])
def test_scales_are_where_cublaslt_reads_them(recipe: str, shape: tuple[int, int, int],
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.functional, "scaled_mm", simulated_scaled_mm)
    monkeypatch.setattr(tested, "_check_capability", lambda tile, device: None)
    for a, b in operands(recipe, shape):
        on_gpu = tested._on_gpu(a, b, torch.float32, False)
        assert torch.equal(on_gpu, tested._on_cpu(a, b, torch.float32, False))


def test_scales_of_square_tiles_are_padded_in_place() -> None:
    w = sbt.quantize_weights(torch.randn(256, 384), "TE_BLOCK_1D", transposed=True)
    for operand, groups in ((w.direct, 2), (w.transposed, 3)):
        padded = tested._padded(operand.scales)
        assert padded.shape == (4, groups) and padded.stride() == (1, 4)
        assert padded.data_ptr() == operand.scales.data_ptr()
        assert torch.equal(padded[: operand.scales.shape[1]].t(), operand.scales)
        assert not padded[operand.scales.shape[1]:].any()
    contiguous = tested._padded(w.direct.scales.contiguous())
    assert torch.equal(contiguous, tested._padded(w.direct.scales))


@pytest.mark.parametrize("recipe", RECIPES)
def test_torch_accepts_shapes_and_strides(recipe: str) -> None:
    """The fake kernel of scaled_mm, for a GPU. (It accepts whole tiles only.)"""
    from torch._subclasses.fake_tensor import FakeTensorMode

    m, n, k = 256, 384, 640
    for (a, b), shape in zip(operands(recipe, (m, n, k)), ((m, n), (m, k), (n, k))):
        real = [a.codes, b.codes.t(), tested._scales_a(a), tested._scales_b(b)]
        with FakeTensorMode():
            fake = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cuda") for t in real]
            y = torch.nn.functional.scaled_mm(
                fake[0], fake[1], fake[2], tested._kind(a), fake[3], tested._kind(b),
                swizzle_a=tested._swizzle(a), swizzle_b=tested._swizzle(b),
                output_dtype=torch.bfloat16)
        assert y.shape == shape and y.dtype == torch.bfloat16


@pytest.mark.parametrize("shape", [(1, 1), (128, 4), (130, 3), (256, 9), (33, 8)], ids=str)
def test_swizzled_scales(shape: tuple[int, int]) -> None:
    rows, cols = shape
    codes = torch.arange(rows * cols).remainder(251).add(1).to(torch.uint8).view(rows, cols)
    got = tested.swizzled(codes.view(torch.float8_e8m0fnu)).view(torch.uint8).numpy()
    across = -(-cols // 4)
    expected = np.zeros(-(-rows // 128) * 128 * across * 4, np.uint8)
    for r in range(rows):
        for c in range(cols):
            tile = r // 128 * across + c // 4
            expected[tile * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4] = codes[r, c]
    assert (got == expected).all()


@pytest.mark.parametrize(("found", "recipe", "message"), [
    ((8, 0), "TE_CURRENT", "tiles of tensor on GPUs of compute capability 8.9 or higher; Fake GPU "
                           "has 8.0; pass 'TE_CURRENT', or run the layer on the CPU"),
    ((10, 0), "TE_BLOCK_1D", "tiles of 1x128 on GPUs of compute capability 9.0; Fake GPU has 10.0"),
    ((9, 0), "MXFP8_TE", "tiles of 1x32 on GPUs of compute capability 10.0 or higher"),
    ((9, 0), "TE_BLOCK_1D", ""),
    ((12, 0), "TORCHAO_ROW", ""),
])
def test_products_that_there_are_not(found: tuple[int, int], recipe: str, message: str,
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: found)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Fake GPU")
    tested._check_capability.cache_clear()
    try:
        with pytest.raises(sb.Unsupported, match=message) if message else contextlib.nullcontext():
            tested._check_capability(sbt.linear_recipe(recipe).activations.tile, torch.device("cuda", 0))
    finally:
        tested._check_capability.cache_clear()
    with pytest.raises(sb.InvalidArgument, match="use_fast_accum: .* per 1x128; pass use_fast"):
        tested.scaled_product(*operands("TE_BLOCK_1D", (16, 32, 128))[0], torch.float32, use_fast_accum=True)
