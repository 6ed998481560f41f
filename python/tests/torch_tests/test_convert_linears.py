"""convert_linears on models like GPT-2: Conv1D, heads tied to embeddings, what is printed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import samebits as sb
import samebits.torch as sbt


class Conv1D(torch.nn.Module):
    """The class of transformers.pytorch_utils: weight [in, out]."""

    def __init__(self, nf: int, nx: int) -> None:
        super().__init__()
        self.nf, self.nx = nf, nx
        self.weight = torch.nn.Parameter(torch.randn(nx, nf) * 0.1)
        self.bias = torch.nn.Parameter(torch.randn(nf))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return y.view(*x.shape[:-1], self.nf)


class Gpt2(torch.nn.Module):
    """Embedding, layers as in GPT-2, and a head whose weight is the embedding's."""

    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.wte = torch.nn.Embedding(48, 32)
        self.h = torch.nn.ModuleList([torch.nn.ModuleDict({
            "c_fc": Conv1D(64, 32), "c_proj": Conv1D(32, 64)}) for _ in range(layers)])
        self.lm_head = torch.nn.Linear(32, 48, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.wte(words)
        for block in self.h:
            x = x + block["c_proj"](torch.relu(block["c_fc"](x)))
        return self.lm_head(x)  # type: ignore[no-any-return]


LAYERS = ["h.0.c_fc", "h.0.c_proj", "h.1.c_fc", "h.1.c_proj"]


def test_conv1d_is_converted_and_a_tied_head_is_not() -> None:
    torch.manual_seed(0)
    model = Gpt2()
    before, state = dict(model.named_parameters()), list(model.state_dict())
    assert sbt.convert_linears(model, "TE_CURRENT") is model
    assert list(sbt.float8_layers(model)) == LAYERS
    assert type(model.lm_head) is torch.nn.Linear
    after = dict(model.named_parameters())
    assert list(model.state_dict()) == state and list(after) == list(before)
    assert all(after[name] is p for name, p in before.items())
    model(torch.arange(6).reshape(2, 3)).sum().backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in after.values())


@pytest.mark.parametrize("recipe", ["TE_CURRENT", "TORCHAO_ROW", "TE_BLOCK_1D"])
def test_conv1d_has_the_bits_of_a_linear_layer(recipe: str) -> None:
    torch.manual_seed(1)
    conv = Conv1D(144, 272)
    linear = torch.nn.Linear(272, 144)
    with torch.no_grad():
        linear.weight.copy_(conv.weight.t())
        linear.bias.copy_(conv.bias)
    x, dy = torch.randn(5, 7, 272), torch.randn(5, 7, 144)

    def results(layer: torch.nn.Module) -> Any:
        inputs = x.clone().requires_grad_()
        y = layer(inputs)
        y.backward(dy)
        return y, inputs.grad, layer.weight.grad, layer.bias.grad  # type: ignore[union-attr]

    y, dx, dw, dbias = results(sbt.convert_linears(conv, recipe))
    expected = results(sbt.Float8Linear.from_linear(linear, recipe))
    assert type(conv) is Conv1D  # a model that is a layer stays as it is
    for got, right in zip((y, dx, dw.t(), dbias), expected, strict=True):
        assert torch.equal(got, right)


@pytest.mark.parametrize(("options", "layers"), [
    ({"filter": lambda name, module: name == "lm_head"}, ["lm_head"]),
    ({"recipe": sbt.PrecisionMap({"lm_head": "TE_CURRENT"})}, ["lm_head"]),
    ({"recipe": sbt.PrecisionMap({"lm_*": "TE_CURRENT", "*": "TE_CURRENT"})}, [*LAYERS, "lm_head"]),
    ({"recipe": sbt.PrecisionMap({"*": "TE_CURRENT"})}, LAYERS),
    ({"recipe": sbt.PrecisionMap({"*": "TE_CURRENT", "lm_head": "TE_CURRENT"})}, [*LAYERS, "lm_head"]),
    ({"recipe": sbt.PrecisionMap({"*": "TE_CURRENT", "lm_head": "bf16"})}, LAYERS),
    ({"recipe": sbt.PrecisionMap({"lm_head": "bf16", "h.0.*": "TE_CURRENT"})}, LAYERS[:2]),
])
def test_a_tied_head_is_converted_if_it_is_named(options: dict[str, Any], layers: list[str]) -> None:
    model = sbt.convert_linears(Gpt2(), **options)
    assert list(sbt.float8_layers(model)) == layers
    assert model.lm_head.weight is model.wte.weight
    model(torch.arange(6)).sum().backward()


def test_what_was_converted_is_printed_and_returned(capsys: pytest.CaptureFixture[str]) -> None:
    precision = sbt.PrecisionMap({"h.0.*": "TE_CURRENT", "h.1.c_fc": "TORCHAO_ROW"})
    model = sbt.convert_linears(Gpt2(), precision)
    assert capsys.readouterr().out == (
        "convert_linears: 3 layers multiply in FP8\n"
        "  TE_CURRENT: h.0.c_fc, h.0.c_proj\n"
        "  TORCHAO_ROW: h.1.c_fc\n"
        "  not converted: h.1.c_proj\n"
        "  not converted: lm_head shares its weight with the embedding wte; name it in filter= or "
        "in a PrecisionMap to convert it\n")
    assert sbt.float8_layers(model) == {"h.0.c_fc": "TE_CURRENT", "h.0.c_proj": "TE_CURRENT", "h.1.c_fc": "TORCHAO_ROW"}
    with pytest.raises(sb.InvalidArgument, match="^1: in_features: 40 is no positive multiple"):
        sbt.convert_linears(torch.nn.Sequential(torch.nn.ReLU(), Conv1D(32, 40)))
    sbt.convert_linears(Gpt2(12))
    assert "  TE_CURRENT: h.*.c_fc (12), h.*.c_proj (12)\n" in capsys.readouterr().out
    sbt.convert_linears(Gpt2(), verbose=False)
    assert capsys.readouterr().out == ""


def test_gpt2_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=2, n_head=2, n_embd=64, vocab_size=100, n_positions=32, bos_token_id=0,
        eos_token_id=0))
    sbt.convert_linears(model, "TE_CURRENT")
    assert list(sbt.float8_layers(model)) == [
        f"transformer.h.{layer}.{name}" for layer in range(2)
        for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")]
    assert type(model.lm_head) is torch.nn.Linear
    model(torch.arange(8)[None]).logits.sum().backward()
