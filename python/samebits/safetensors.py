"""Reads and writes .safetensors files of NumPy arrays, with the formats that NumPy lacks."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.formats import dtype_of
from samebits.packing import pack_codes, unpack_codes

#: Names of formats in a .safetensors file.
_IN_FILE: Final[dict[Any, str]] = {
    "fp64": "F64", "fp32": "F32", "fp16": "F16", "bf16": "BF16", "e4m3": "F8_E4M3",
    "e5m2": "F8_E5M2", "e4m3fnuz": "F8_E4M3FNUZ", "e5m2fnuz": "F8_E5M2FNUZ", "e8m0": "F8_E8M0",
    "e2m1": "F4", "e2m3": "F6_E2M3", "e3m2": "F6_E3M2",
}
#: Formats whose codes a file packs, without regard to rows.
_PACKED: Final = ("e2m1", "e2m3", "e3m2")
_FROM_FILE: Final[dict[str, Any]] = {file: name for name, file in _IN_FILE.items()}


def write_safetensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, tuple[npt.NDArray[Any], Any]],
    metadata: Mapping[str, str],
) -> None:
    """Write a file of arrays, each with its format, and a metadata table of texts."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    parts = []
    end = 0
    for name, (array, format_name) in tensors.items():
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{name}: NumPy arrays can be saved; got a {type(array).__name__}")
        if format_name not in _IN_FILE:
            raise InvalidArgument(f"{name}: a .safetensors file has no {format_name}")
        if array.dtype.itemsize != dtype_of(format_name).itemsize:
            raise InvalidArgument(f"{name}: dtype {array.dtype} does not hold {format_name}")
        data = array.tobytes()
        if format_name in _PACKED:
            data = pack_codes(array.reshape(-1), format=format_name).tobytes()
        header[name] = {"dtype": _IN_FILE[format_name], "shape": list(array.shape),
                        "data_offsets": [end, end + len(data)]}
        end += len(data)
        parts.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(_path(path), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.writelines(parts)


def _path(path: Any) -> str | bytes:
    """Return the path of a file; open() would take a number for an open file."""
    if isinstance(path, (str, bytes, os.PathLike)):
        return os.fspath(path)
    raise TypeError(f"path: a path is expected; got a {type(path).__name__}")


def read_safetensors(
    path: str | os.PathLike[str],
) -> tuple[dict[str, tuple[npt.NDArray[Any], Any]], dict[str, str]]:
    """Return the arrays of a file with their formats, and its metadata table of texts."""
    with open(_path(path), "rb") as file:
        data = file.read()
    try:
        length = int.from_bytes(data[:8], "little")
        if len(data) < 8 or length > len(data) - 8:
            raise ValueError("the header is cut off")
        header = json.loads(data[8 : 8 + length])
        if not isinstance(header, dict):
            raise ValueError("the header is no JSON object")
        metadata = header.pop("__metadata__", {})
        rules = {str(k): str(v) for k, v in metadata.items()}
        body = memoryview(data)[8 + length :]
        tensors = {name: _tensor(body, name, entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidArgument(f"{os.fspath(path)}: no .safetensors file: {error}") from None
    return tensors, rules


def _tensor(
    body: memoryview, name: str, entry: Mapping[str, Any]
) -> tuple[npt.NDArray[Any], Any]:
    """Return one array of a file, copied out of it."""
    format_name = _FROM_FILE.get(entry["dtype"])
    if format_name is None:
        raise ValueError(f"{name}: dtype {entry['dtype']} is not a format that samebits reads")
    begin, end = entry["data_offsets"]
    shape = tuple(entry["shape"])
    if not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"{name}: the shape {entry['shape']} is no list of sizes")
    dtype = dtype_of(format_name)
    size = dtype.itemsize * math.prod(shape)
    if format_name in _PACKED:
        size = _core.packed_row_bytes(format_name, size)
    if not 0 <= begin <= end <= len(body) or end - begin != size:
        raise ValueError(f"{name}: the data is cut off")
    codes = np.frombuffer(body[begin:end], np.uint8).copy()
    if format_name in _PACKED:
        return unpack_codes(codes, format_name, math.prod(shape)).reshape(shape), format_name
    return codes.view(dtype).reshape(shape), format_name
