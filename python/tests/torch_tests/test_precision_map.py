"""convert_linears, and the precision of each layer from a JSON file."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

import samebits as sb
import samebits.torch as sbt


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn = torch.nn.MultiheadAttention(32, 2, batch_first=True)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32, bias=False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(x, x, x, need_weights=False)[0]
        return x + self.mlp(x)  # type: ignore[no-any-return]


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.h = torch.nn.ModuleList([Block(), Block()])
        self.lm_head = torch.nn.Linear(32, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.h:
            x = block(x)
        return self.lm_head(x)  # type: ignore[no-any-return]


converted = sbt.float8_layers
ALL = ["h.0.mlp.0", "h.0.mlp.2", "h.1.mlp.0", "h.1.mlp.2", "lm_head"]


def test_hooks_and_optimizers_stay(device: str) -> None:
    model = Model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    calls: list[str] = []
    model.lm_head.register_forward_hook(lambda *_: calls.append("forward"))
    model.lm_head.weight.register_hook(lambda _: calls.append("weight"))
    state = {name: t.clone() for name, t in model.state_dict().items()}
    model.eval()
    assert sbt.convert_linears(model, "TE_CURRENT") is model
    assert converted(model) == dict.fromkeys(ALL, "TE_CURRENT")
    assert not model.lm_head.training
    model.train()
    model.load_state_dict(state)
    before = model.lm_head.weight.detach().clone()
    model(torch.randn(2, 3, 32, device=device)).sum().backward()
    optimizer.step()
    assert calls == ["forward", "weight"]
    assert not torch.equal(before, model.lm_head.weight)


def test_a_converted_layer_shares_nothing_but_parameters() -> None:
    linear = torch.nn.Linear(32, 16)
    layer = sbt.Float8Linear.from_linear(linear, "TE_CURRENT", use_fast_accum=True)
    assert layer.weight is linear.weight and layer.bias is linear.bias and layer.use_fast_accum
    layer.bias = None  # type: ignore[assignment]
    assert linear.bias is not None
    assert repr(layer) == ("Float8Linear(in_features=32, out_features=16, bias=False, "
                           "recipe=TE_CURRENT, use_fast_accum=True)")


def test_filter() -> None:
    model = Model()
    seen: list[tuple[str, torch.nn.Module]] = []

    def keep_head(name: str, module: torch.nn.Module) -> bool:
        seen.append((name, module))
        return name != "lm_head"

    sbt.convert_linears(model, "TORCHAO_ROW", keep_head, use_fast_accum=True)
    assert converted(model) == dict.fromkeys(ALL[:-1], "TORCHAO_ROW")
    assert [name for name, _ in seen] == ALL  # out_proj of attention is a subclass of Linear
    assert model.h[0].mlp[0].use_fast_accum
    sbt.convert_linears(model, "TE_CURRENT")  # layers that were converted stay
    assert converted(model) == dict.fromkeys(ALL[:-1], "TORCHAO_ROW") | {"lm_head": "TE_CURRENT"}


def test_a_model_that_is_a_layer_and_a_layer_in_two_places() -> None:
    linear = torch.nn.Linear(32, 32)
    layer = sbt.convert_linears(linear)
    assert isinstance(layer, sbt.Float8Linear) and layer.weight is linear.weight
    assert type(linear) is torch.nn.Linear
    assert sbt.convert_linears(linear, filter=lambda name, module: False) is linear
    model = sbt.convert_linears(torch.nn.Sequential(linear, torch.nn.ReLU(), linear))
    assert model[0] is model[2] and isinstance(model[0], sbt.Float8Linear)


def test_models_without_a_layer_to_convert_are_refused() -> None:
    with pytest.raises(sb.InvalidArgument, match="^model: no torch.nn.Linear and no Conv1D of"):
        sbt.convert_linears(torch.nn.Sequential(torch.nn.GELU()))
    model = sbt.convert_linears(Model(), "TE_CURRENT")
    with pytest.raises(sb.InvalidArgument, match=r"no torch.nn.Linear is left; 5 of its layers are "
                                                 r"Float8Linear already, such as 'h.0.mlp.0'"):
        sbt.convert_linears(model, "TORCHAO_ROW")
    assert converted(model) == dict.fromkeys(ALL, "TE_CURRENT")


@pytest.mark.parametrize(("options", "message"), [
    ({}, "1: out_features: 10 is no positive multiple of 16, which scaled_mm needs; leave the "
         "layer out by filter=, or give it 16"),
    ({"recipe": "TE_BLOCK"}, "recipe: 'TE_BLOCK' is not one of TE_BLOCK_2D, TE_BLOCK_1D, "),
    ({"recipe": "TE_CURENT", "filter": lambda name, module: False}, "recipe: 'TE_CURENT' is not"),
    ({"recipe": "TE_BLOCK_1D", "use_fast_accum": True},
     "0: use_fast_accum: TE_BLOCK_1D has scales along the sum, where cuBLASLt has no fast"),
    ({"recipe": sbt.PrecisionMap({"0": "TE_CURRENT", "head": "TE_CURRENT"})},
     r"layers\['head'\]: no torch.nn.Linear of the model matches; its layers are 0, 1"),
])
def test_nothing_changes_if_a_layer_is_refused(options: dict[str, Any], message: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 10))
    with pytest.raises(sb.InvalidArgument, match=message):
        sbt.convert_linears(model, **options)
    assert converted(model) == {}


# --- the file -----------------------------------------------------------------------------------


def written(path: Path, content: Any) -> Path:
    file = path / "map.json"
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


MAPS: list[tuple[dict[str, str], Any, dict[str, str]]] = [
    ({"h.1.mlp.2": "fp32", "h.*.mlp.*": "DEEPGEMM_UE8M0", "lm_head": "BF16", "*": "te_current"}, None,
     dict.fromkeys(ALL[:3], "DEEPGEMM_UE8M0")),
    ({"h.[0].mlp.?": "TE_CURRENT"}, None, dict.fromkeys(ALL[:2], "TE_CURRENT")),  # others stay
    ({"h.*": "TE_CURRENT"}, lambda name, module: name.endswith("0"), {ALL[0]: "TE_CURRENT", ALL[2]: "TE_CURRENT"})]


@pytest.mark.parametrize("layers, filter, expected", MAPS)
def test_the_first_match_wins(tmp_path: Path, layers: dict[str, str], filter: Any, expected: dict[str, str]) -> None:
    file = written(tmp_path, {"version": 1, "layers": layers, "comment": ["any", "value"]})
    precision = sbt.load_precision_map(file)
    assert dict(precision.layers) == dict(sbt.load_precision_map(str(file)).layers) == layers
    model = sbt.convert_linears(Model(), precision, filter)
    assert converted(model) == expected and type(model.lm_head) is torch.nn.Linear


@pytest.mark.skipif("FPINSPECT" not in os.environ, reason="fpinspect is not built")
@pytest.mark.parametrize(("gpu", "recipe"), [
    ("ada", "TE_CURRENT"), ("hopper", "TE_BLOCK_1D"), ("blackwell", "MXFP8_TE"), ("ampere", None),
    ("volta", None), ("other", None)])
def test_maps_that_fpinspect_advises(tmp_path: Path, gpu: str, recipe: str | None) -> None:
    file = tmp_path / "map.json"
    subprocess.run([os.environ["FPINSPECT"], "advise", "--gpu", gpu, "--aim", "fast", "--keep",
                    "h.0.mlp.0", "--map", str(file)], check=True, capture_output=True)
    model = Model()
    sbt.convert_linears(model, sbt.load_precision_map(file))
    expected = ["h.0.mlp.2", "h.1.mlp.0", "h.1.mlp.2"] if recipe else []
    assert converted(model) == dict.fromkeys(expected, recipe)
    model(torch.randn(2, 3, 32)).sum().backward()


@pytest.mark.parametrize(("content", "message"), [
    ("{", "no JSON: "), (b"\xff\xfe{}", "no JSON"),
    ('{"version": 1, "layers": {"a": "bf16", "a": "fp16"}}', "'a' occurs twice; remove one"),
    ([], r'an object {"version": 1, "layers": {...}} is expected; got \[\]'),
    ({"layers": {}}, "version: None is not one of 1"),
    ({"version": 2, "layers": {}}, "version: 2 is not one of 1"),
    ({"version": True, "layers": {}}, "version: True is not one of 1"),
    ({"version": 1}, "layers: an object of patterns is expected; got None"),
    ({"version": 1, "layers": ["a"]}, r"layers: an object of patterns is expected; got \['a'\]"),
    ({"version": 1, "layers": {}, "layer": {}}, "'layer' is no entry; there are version, layers, "),
    ({"version": 1, "layers": {"a": 8}}, r"layers\['a'\]: a string is expected, such as "
                                         r"'TE_CURRENT' or 'bf16'; got 8"),
    ({"version": 1, "layers": {"": "bf16"}}, "layers: a pattern is empty; pass '\\*' for every"),
    ({"version": 1, "layers": {"a": "TE_CURENT"}}, r"layers\['a'\]: 'TE_CURENT' is not one of "
                                                   "TE_CURRENT, .*, bf16, fp16, fp32"),
    ({"version": 1, "layers": {"a": "TE_DELAYED"}}, r"layers\['a'\]: 'TE_DELAYED' is not one of"),
])
def test_files_that_are_refused(tmp_path: Path, content: Any, message: str) -> None:
    file = written(tmp_path, content)
    with pytest.raises(sb.InvalidArgument, match=message) as error:
        sbt.load_precision_map(file)
    assert str(error.value).startswith(f"{file}: ")
    with pytest.raises(FileNotFoundError):
        sbt.load_precision_map(tmp_path / "none.json")
