"""Codes of 4 and 6 bits: products, parts of a tensor, the transform of 16, codebooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import samebits as sb

RNG = np.random.default_rng(11)
X = (RNG.standard_normal((6, 96)) * np.exp2(RNG.integers(-6, 7, (6, 96)))).astype(np.float32)
W = RNG.standard_normal((5, 96)).astype(np.float32)


def codes(a: Any) -> Any:
    return np.asarray(a).view(np.uint8)


@pytest.mark.parametrize("name", ["MXFP4_FLOOR", "MXFP4_RCEIL", "MXFP6_E2M3_FLOOR", "MXFP6_E3M2_FLOOR",
                                  "MXFP8_FLOOR", "NVFP4_TE", "NVFP4_TE_2D"])
def test_products_of_block_scaled_codes_are_those_of_codes_and_scales(name: str) -> None:
    a, b = sb.quantize(X, name), sb.quantize(W, name, transposed=True).transposed

    def scales(q: Any) -> Any:
        s = sb.convert(q.scales, "fp32", format=q.recipe.scale_format)
        return s if name.startswith("MX") else s * q.tensor_scale[0, 0] * (np.float32(1) / np.float32(2688))

    expected = sb.matmul(a.codes, b.codes, a_scales=scales(a), a_tile=a.recipe.tile, b_scales=scales(b),
                         b_tile=b.recipe.tile)
    assert (sb.matmul(a, b) == expected).all()


@pytest.mark.parametrize("name", [n for n in sb.recipes if n.startswith("NVFP4")])
def test_a_part_has_the_codes_of_the_whole(name: str) -> None:
    whole = sb.quantize(X, name)
    rows = slice(None) if whole.recipe.tile[0] == 16 else slice(2, 5)
    part = sb.quantize(X[rows, 32:64], name, tensor_scale=whole.tensor_scale)
    assert (codes(part.codes) == codes(whole.codes)[rows, 32:64]).all()
    assert (codes(part.scales) == codes(whole.scales)[rows, 2:4]).all()
    assert part.tensor_scale == whole.tensor_scale
    assert (part.dequantize() == whole.dequantize()[rows, 32:64]).all()


def test_the_transform_is_the_matrix() -> None:
    h = np.array([[1.0]])
    for _ in range(4):
        h = np.block([[h, h], [h, -h]])
    signs = np.array([-1.0 if sb.TRANSFORMER_ENGINE_SIGNS >> i & 1 else 1.0 for i in range(16)])
    assert "".join("+" if s > 0 else "-" for s in signs) == "+++-+------+-+--"
    x = RNG.integers(-8, 9, (4, 48)).astype(np.float32)  # every sum is exact
    got = sb.random_hadamard(sb.convert(x, "bf16"), to="fp32")
    assert (got.reshape(-1, 16) == x.reshape(-1, 16) @ (signs[:, None] * h / 4)).all()


def test_double_quantization_is_that_of_the_absmaxes() -> None:
    q = sb.quantize_blocks(X, block=32, double=True)
    plain = sb.quantize_blocks(X, block=32)
    assert (q.codes == plain.codes).all()
    nested = sb.quantize_blocks(plain.absmax - np.float32(q.offset), "dynamic8", block=256)
    assert (q.absmax.codes == nested.codes).all()
    assert (q.absmaxes() == nested.dequantize() + np.float32(q.offset)).all()
    restored = sb.QuantizedBlocks(q.codes, q.absmaxes(), X.shape, "nf4", 32)
    assert (q.dequantize() == restored.dequantize()).all()
    out = np.empty(X.shape, np.float32)
    assert q.dequantize(out=out) is out and (out == q.dequantize()).all()
    with pytest.raises(sb.InvalidArgument, match="out: shape"):
        q.dequantize(out=out.reshape(-1))
