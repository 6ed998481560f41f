"""Float8Linear in torch.nn.TransformerEncoderLayer and TransformerEncoder, with and without gradients.

In eval mode without gradients, these modules read the weights of their layers and multiply in
fp32, unless a layer has a hook.
"""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch

import samebits.torch as sbt


def encoder_layer(norm_first: bool = False) -> torch.nn.TransformerEncoderLayer:
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0, norm_first=norm_first)
    return sbt.convert_linears(layer.eval(), "TE_BLOCK_1D")  # type: ignore[return-value]


def by_hand(layer: torch.nn.TransformerEncoderLayer, x: torch.Tensor, padding: torch.Tensor | None = None) -> torch.Tensor:
    """What the layer computes, one module after another.

    Attention is torch's own, whose last bits differ with and without gradients.
    """
    def attention(x: torch.Tensor) -> Any:
        return layer.self_attn(x, x, x, key_padding_mask=padding, need_weights=False)[0]

    def feed_forward(x: torch.Tensor) -> Any:
        return layer.linear2(torch.relu(layer.linear1(x)))

    if layer.norm_first:
        x = x + attention(layer.norm1(x))
        return x + feed_forward(layer.norm2(x))
    x = layer.norm1(x + attention(x))
    y: torch.Tensor = layer.norm2(x + feed_forward(x))
    return y


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_layer_calls_its_layers(norm_first: bool, grad: bool) -> None:
    layer, x, file = encoder_layer(norm_first), torch.randn(2, 5, 64), io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    with torch.set_grad_enabled(grad):
        expected = by_hand(layer, x)
        for same in (layer, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)),
                     torch.load(file, weights_only=False), torch.compile(layer, backend="eager")):
            assert torch.equal(same(x), expected)


@pytest.mark.parametrize("grad", [True, False])
def test_an_encoder_with_padded_inputs(grad: bool) -> None:
    torch.manual_seed(1)
    encoder = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0), 2).eval()
    sbt.convert_linears(encoder, "TE_CURRENT")
    x, padding = torch.randn(2, 5, 64), torch.zeros(2, 5, dtype=torch.bool)
    padding[0, 3:] = True
    with torch.set_grad_enabled(grad):
        expected = x
        # The encoder turns the mask into numbers, for which attention has the same bits always.
        mask = torch.zeros(2, 5).masked_fill(padding, float("-inf"))
        for layer in encoder.layers:
            expected = by_hand(layer, expected, mask)
        got = encoder(x, src_key_padding_mask=padding)
    assert torch.equal(got[~padding], expected[~padding])


def test_a_layer_has_the_hook_once() -> None:
    linear = torch.nn.Linear(32, 32)
    for layer in (sbt.Float8Linear(32, 32), *(sbt.Float8Linear.from_linear(linear, "TE_CURRENT") for _ in range(2))):
        assert len(layer._forward_pre_hooks) == 1
    layer._forward_pre_hooks.clear()  # as earlier versions wrote it
    assert len(pickle.loads(pickle.dumps(layer))._forward_pre_hooks) == 1


def test_layers_that_were_not_converted_stay_as_they_are() -> None:
    linear = torch.nn.Linear(64, 64)
    layer = sbt.Float8Linear.from_linear(linear, "TE_CURRENT")
    assert not linear._forward_pre_hooks and len(layer._forward_pre_hooks) == 1
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 1)
    model = torch.nn.ModuleDict({"encoder": encoder, "head": torch.nn.Linear(64, 64)})
    sbt.convert_linears(model, "TE_CURRENT", lambda name, module: name == "head")
    assert encoder.use_nested_tensor
    sbt.convert_linears(model, "TE_CURRENT")
    assert not encoder.use_nested_tensor
