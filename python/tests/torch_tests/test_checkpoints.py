"""Checkpoints that `fpinspect quantize -o` writes.

Codes and scales are those of samebits.quantize. safetensors, compressed-tensors and transformers load them, and
their dequantized weights have the bits of `fpinspect dequantize`. FPINSPECT names the executable; without it
nothing runs. requirements-test.txt pins safetensors. The tests with compressed-tensors 0.20.1 and transformers
5.24.0 run where these are installed.
"""
from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

import samebits as sb
import samebits.torch as sbt

pytestmark = pytest.mark.skipif("FPINSPECT" not in os.environ, reason="fpinspect is not built")

TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "U8": torch.uint8,
         "F8_E4M3": torch.float8_e4m3fn, "F8_E8M0": torch.float8_e8m0fnu}
RECIPES = ["TE_BLOCK_2D", "TE_BLOCK_1D", "TE_CURRENT", "FBGEMM_ROW", "MXFP8_TORCHAO"]


def fpinspect(*arguments: str | Path) -> str:
    return subprocess.run([os.environ["FPINSPECT"], *map(str, arguments)], check=True,
                          capture_output=True, encoding="utf-8").stdout


def load(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of a .safetensors file, read here, or of all such files of a folder."""
    if path.is_dir():
        return {n: t for file in path.glob("*.safetensors") for n, t in load(file).items()}
    content = path.read_bytes()
    start = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    return {name: torch.frombuffer(bytearray(content[start:]), dtype=TYPES[entry["dtype"]],
                                   count=torch.Size(entry["shape"]).numel(),
                                   offset=entry["data_offsets"][0]).reshape(entry["shape"])
            for name, entry in header.items()}


def save(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, tensor in tensors.items():
        raw = bytes(tensor.contiguous().view(torch.uint8).flatten().tolist())
        header[name] = {"dtype": next(k for k, t in TYPES.items() if t == tensor.dtype),
                        "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def equal_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.view(torch.uint8),
                                                                    b.view(torch.uint8))


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
    tensors = {f"{n}.weight": (torch.randn(s, generator=draw) * 0.1).to(dtype)
               for n, s in sizes.items()}
    folder.mkdir()
    names = list(tensors)
    files = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    for file, part in zip(files, (names[:9], names[9:])):
        save(folder / file, {n: tensors[n] for n in part})
    (folder / "model.safetensors.index.json").write_text(json.dumps(
        {"metadata": {}, "weight_map": {n: files[i >= 9] for i, n in enumerate(names)}}))
    (folder / "config.json").write_text(json.dumps(
        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256,
         "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 64, "dtype": str(dtype)[6:],
         "tie_word_embeddings": False}))
    return tensors


def is_quantized(name: str) -> bool:
    return "_proj" in name


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_codes_and_scales_of_quantize(tmp_path: Path, recipe: str, dtype: torch.dtype) -> None:
    tensors = model(tmp_path / "model", dtype)
    fpinspect("quantize", tmp_path / "model", "-o", tmp_path / "out", "--recipe", recipe)
    fpinspect("dequantize", tmp_path / "out", "-o", tmp_path / "back", "--to", "fp32")
    written, restored = load(tmp_path / "out"), load(tmp_path / "back")
    assert set(restored) == set(tensors)
    for name, tensor in tensors.items():
        if not is_quantized(name):
            assert equal_bits(written[name], tensor) and equal_bits(restored[name], tensor)
            continue
        expected = sb.quantize(tensor, recipe)
        assert equal_bits(written[name], expected.codes), name
        assert torch.equal(written[name + "_scale"].view(torch.uint8).flatten(),
                           expected.scales.view(torch.uint8).flatten()), name
        assert equal_bits(restored[name], expected.dequantize()), name


@pytest.mark.parametrize("layout", ["compressed-tensors", "deepseek", "plain"])
def test_loaded_by_safetensors(tmp_path: Path, layout: str) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    model(tmp_path / "model")
    fpinspect("quantize", tmp_path / "model", "-o", tmp_path / "out", "--recipe", "TE_BLOCK_2D",
              "--layout", layout)
    for file in (tmp_path / "out").glob("*.safetensors"):
        expected, read = load(file), safetensors.load_file(file)
        assert set(read) == set(expected)
        assert all(equal_bits(read[name], tensor) for name, tensor in expected.items())


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
            assert equal_bits(values[name], tensor), name


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
        assert equal_bits(loaded[name].contiguous(), tensor), name


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
