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


def load(path: pathlib.Path, header: Any, body: bytes) -> sb.QuantizedTensor:
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + body)
    return sb.load_quantized(path)


@pytest.mark.parametrize("change", [
    b"", b"[1]", b"3", b"null", b"{", b"[" * 100000, b"\xff\xfe{", b'{"__metadata__": 5}',
    b'{"__metadata__": null}', b'{"codes": 3}',
    {"shape": [-4, -4]}, {"shape": [float("inf")]}, {"shape": [4.5, 4]}, {"shape": ["4", "4"]}, {"shape": 4},
    {"shape": None}, {"shape": [1] * 70 + [16]}, {"shape": [17]}, {"data_offsets": [0]}, {"data_offsets": [-16, 0]},
    {"data_offsets": [0.0, 16.0]}, {"data_offsets": [0, 10**9]}, {"dtype": "I8"}, {"dtype": [1]}, {"dtype": "F32"},
    "tile=1", "tile=x y", "tile=1 2 3", "scale=zz", "eps=zz", "nonfinite=zz", "scale_overflow=zz", "overflow=zz"])
def test_damaged_headers(tmp_path: pathlib.Path, change: Any) -> None:
    """A header, an entry of the codes, or a rule."""
    header, body = saved(path := tmp_path / "q.safetensors")
    text = r"q\.safetensors: no \.safetensors file"
    if isinstance(change, dict):
        header["codes"] |= change
    elif isinstance(change, str):
        name, _, value = change.partition("=")
        header["__metadata__"]["samebits." + name] = value
        text = r"q\.safetensors: no rules of samebits"
    with pytest.raises(sb.InvalidArgument, match=text):
        load(path, change if isinstance(change, bytes) else header, b"" if isinstance(change, bytes) else body)


def test_recipes_of_later_versions_are_rules_without_a_name(tmp_path: pathlib.Path) -> None:
    header, body = saved(path := tmp_path / "q.safetensors")
    header["__metadata__"]["samebits.recipe"] = "TE_OF_NEXT_YEAR"
    q = load(path, header, body)
    assert q.recipe.name == "" and q.recipe.tile == (0, 0)
    q.scales = q.scales.astype(np.float64)
    with pytest.raises(sb.InvalidArgument, match="scales: dtype float64 does not hold fp32"):
        q.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("length", [0, 4, 8, 20, 100, -1])
def test_files_cut_short(tmp_path: pathlib.Path, length: int) -> None:
    path = tmp_path / "q.safetensors"
    saved(path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(sb.InvalidArgument, match="cut off"):
        sb.load_quantized(path)
