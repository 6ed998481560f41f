"""Damaged .safetensors files are refused as such, whatever is wrong in them."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import samebits as sb

X = np.arange(16, dtype=np.float32).reshape(4, 4)


def saved(path: pathlib.Path) -> tuple[dict[str, Any], bytes]:
    """Return header and data of a good file."""
    sb.quantize(X, "TE_CURRENT").save(path)
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


def load(path: pathlib.Path, header: bytes, body: bytes) -> sb.QuantizedTensor:
    path.write_bytes(len(header).to_bytes(8, "little") + header + body)
    return sb.load_quantized(path)


@pytest.mark.parametrize("header", [
    b"", b"[1]", b"3", b"null", b"{", b"[" * 100000, b"\xff\xfe{", b'{"__metadata__": 5}',
    b'{"__metadata__": null}', b'{"codes": 3}'])
def test_headers(tmp_path: pathlib.Path, header: bytes) -> None:
    with pytest.raises(sb.InvalidArgument, match=r"q\.safetensors: no \.safetensors file"):
        load(tmp_path / "q.safetensors", header, b"")


@pytest.mark.parametrize("change", [
    {"shape": [-4, -4]}, {"shape": [float("inf")]}, {"shape": [4.5, 4]}, {"shape": ["4", "4"]},
    {"shape": 4}, {"shape": None},
    {"shape": [1] * 70 + [16]}, {"shape": [17]}, {"data_offsets": [0]},
    {"data_offsets": [-16, 0]}, {"data_offsets": [0.0, 16.0]}, {"data_offsets": [0, 10**9]},
    {"dtype": "I8"}, {"dtype": [1]}, {"dtype": "F32"}])
def test_tensors(tmp_path: pathlib.Path, change: dict[str, Any]) -> None:
    path = tmp_path / "q.safetensors"
    header, body = saved(path)
    header["codes"] |= change
    with pytest.raises(sb.InvalidArgument, match=r"q\.safetensors: no \.safetensors file"):
        load(path, json.dumps(header).encode(), body)


@pytest.mark.parametrize("rule", ["tile=1", "tile=x y", "tile=1 2 3", "scale=zz", "eps=zz",
                                  "nonfinite=zz", "scale_overflow=zz", "overflow=zz"])
def test_rules(tmp_path: pathlib.Path, rule: str) -> None:
    path = tmp_path / "q.safetensors"
    header, body = saved(path)
    name, _, value = rule.partition("=")
    header["__metadata__"]["samebits." + name] = value
    with pytest.raises(sb.InvalidArgument, match=r"q\.safetensors: no rules of samebits"):
        load(path, json.dumps(header).encode(), body)


def test_recipes_of_later_versions_are_rules_without_a_name(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "q.safetensors"
    header, body = saved(path)
    header["__metadata__"]["samebits.recipe"] = "TE_OF_NEXT_YEAR"
    q = load(path, json.dumps(header).encode(), body)
    assert q.recipe.name == "" and q.recipe.tile == (0, 0)


@pytest.mark.parametrize("length", [0, 4, 8, 20, 100, -1])
def test_files_cut_short(tmp_path: pathlib.Path, length: int) -> None:
    path = tmp_path / "q.safetensors"
    saved(path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(sb.InvalidArgument, match="cut off"):
        sb.load_quantized(path)


def test_arrays_that_do_not_hold_their_format_are_not_saved(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "q.safetensors"
    q = sb.quantize(X)
    q.scales = q.scales.astype(np.float64)
    with pytest.raises(sb.InvalidArgument, match="scales: dtype float64 does not hold fp32"):
        q.save(path)
    assert not path.exists()
