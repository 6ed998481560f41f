"""Checkpoints that `fpinspect quantize -o` writes.

Codes and scales are those of samebits.quantize. safetensors, compressed-tensors and transformers load them, and
their dequantized weights have the bits of `fpinspect dequantize`. FPINSPECT names the executable; without it
nothing runs. requirements-test.txt pins safetensors. The tests with compressed-tensors 0.20.1 and transformers
5.24.0 run where these are installed.
"""
from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tensors import bits, same

import samebits as sb
import samebits.torch as sbt

pytestmark = pytest.mark.skipif("FPINSPECT" not in os.environ, reason="fpinspect is not built")

RECIPES = ["TE_BLOCK_2D", "TE_BLOCK_1D", "TE_CURRENT", "FBGEMM_ROW", "MXFP8_TORCHAO"]


def fpinspect(*arguments: str | Path) -> str:
    return subprocess.run([os.environ["FPINSPECT"], *map(str, arguments)], check=True,
                          capture_output=True, encoding="utf-8").stdout


def load(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of the .safetensors files of a folder."""
    return {n: t for file in path.glob("*.safetensors") for n, t in load_file(file).items()}


def model(folder: Path, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """Write the shards of a small Llama with its configuration; return its tensors."""
    draw = torch.Generator().manual_seed(7)
    sizes = {"model.embed_tokens": (64, 256), "lm_head": (64, 256)}
    for layer in ["model.layers.0.", "model.layers.1."]:
        sizes |= {layer + "self_attn.q_proj": (256, 256), layer + "self_attn.k_proj": (128, 256),
                  layer + "self_attn.v_proj": (128, 256), layer + "self_attn.o_proj": (256, 256),
                  layer + "mlp.gate_proj": (384, 256), layer + "mlp.up_proj": (384, 256),
                  layer + "mlp.down_proj": (256, 384), layer + "input_layernorm": (256,),
                  layer + "post_attention_layernorm": (256,)}
    sizes["model.norm"] = (256,)
    tensors = {f"{n}.weight": (torch.randn(s, generator=draw) * 0.1).to(dtype) for n, s in sizes.items()}
    folder.mkdir()
    names = list(tensors)
    files = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    for file, part in zip(files, (names[:9], names[9:])):
        save_file({n: tensors[n] for n in part}, folder / file, {"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps(
        {"metadata": {}, "weight_map": {n: files[i >= 9] for i, n in enumerate(names)}}))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 384,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64,
        "dtype": str(dtype)[6:], "tie_word_embeddings": False}))
    return tensors


def is_quantized(name: str) -> bool:
    return "_proj" in name


@pytest.mark.parametrize("recipe, layout", [*((recipe, "compressed-tensors") for recipe in RECIPES),
                                            ("TE_BLOCK_2D", "deepseek"), ("TE_BLOCK_2D", "plain")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_codes_and_scales_of_quantize(tmp_path: Path, recipe: str, layout: str, dtype: torch.dtype) -> None:
    tensors = model(tmp_path / "model", dtype)
    fpinspect("quantize", tmp_path / "model", "-o", tmp_path / "out", "--recipe", recipe, "--layout", layout)
    fpinspect("dequantize", tmp_path / "out", "-o", tmp_path / "back", "--to", "fp32")
    written, restored = load(tmp_path / "out"), load(tmp_path / "back")
    assert set(restored) == set(tensors)
    for name, tensor in tensors.items():
        if not is_quantized(name):
            assert same(written[name], tensor) and same(restored[name], tensor)
            continue
        expected = sb.quantize(tensor, recipe)
        (scales,) = (t for n, t in written.items() if n.startswith(name) and "scale" in n[len(name):])
        assert same(written[name], expected.codes), name
        assert torch.equal(bits(scales).flatten(), bits(expected.scales).flatten()), name
        assert same(restored[name], expected.dequantize()), name


@pytest.mark.parametrize("recipe", RECIPES)
def test_loaded_by_compressed_tensors(tmp_path: Path, recipe: str) -> None:
    converters = pytest.importorskip("compressed_tensors.entrypoints.convert.converters")
    layouts = ["compressed-tensors"] + ["deepseek"] * (recipe == "TE_BLOCK_2D")
    model(tmp_path / "model")
    for layout in layouts:
        out, back = tmp_path / layout, tmp_path / "back"
        fpinspect("quantize", tmp_path / "model", "-o", out, "--recipe", recipe, "--layout", layout)
        fpinspect("dequantize", out, "-o", back)
        if layout == "deepseek":
            reader = converters.FP8BlockDequantizer.from_pretrained(str(out), dtype=torch.float32)
        else:
            reader = converters.CompressedTensorsDequantizer(str(out), dtype=torch.float32)
        values, expected = reader.validate(load(out)), load(back)
        assert set(values) == set(expected)
        for name, tensor in expected.items():
            assert same(values[name], tensor), name


@pytest.mark.parametrize("recipe", RECIPES)
def test_loaded_by_transformers(tmp_path: Path, recipe: str) -> None:
    pytest.importorskip("compressed_tensors")
    transformers = pytest.importorskip("transformers")
    model(tmp_path / "model")
    fpinspect("quantize", tmp_path / "model", "-o", tmp_path / "out", "--recipe", recipe)
    fpinspect("dequantize", tmp_path / "out", "-o", tmp_path / "back")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "out", dtype=torch.float32,
        quantization_config=transformers.CompressedTensorsConfig(dequantize=True)).state_dict()
    for name, tensor in load(tmp_path / "back").items():
        assert same(loaded[name].contiguous(), tensor), name


def test_map_of_torch_layers(tmp_path: Path) -> None:
    """The layers of a map are those of convert_linears, with the weights' tiles."""
    tensors = model(tmp_path / "model")
    layers = {"*.1.*": "TE_BLOCK_1D", "lm_head": "bf16", "*k_proj": "BF16",
              "*[qv]_proj": "TE_CURRENT", "*.mlp.[!d]*": "TE_BLOCK_2D"}
    (tmp_path / "map.json").write_text(json.dumps({"version": 1, "layers": layers}))
    done = json.loads(fpinspect("quantize", tmp_path / "model", "-o", tmp_path / "out", "--map",
                                tmp_path / "map.json", "--json"))
    precision = sbt.PrecisionMap(layers)
    for entry in done["tensors"]:
        recipe = precision.recipe_of(entry["name"].removesuffix(".weight"))
        if recipe is None or not is_quantized(entry["name"]):
            assert entry["to"] is None
        else:
            assert (entry["recipe"], tuple(entry["block"])) == (recipe.name, recipe.weights.tile)
    assert len(done["tensors"]) == len(tensors)
