"""What PyTorch 2.11 returned on an H200: the recordings, their operands, and the comparison."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

FORMATS = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}


def recording(name: str) -> Any:
    """Return the rows of a file, one a call; the tests of a file say what a row holds."""
    return json.loads((Path(__file__).parent / f"torch_{name}.json").read_text())


def elements(seed: int, shape: Any, form: str = "fp32") -> Any:
    """Return numbers of magnitude 2^-7 to 2, the same on every machine."""
    words = np.random.Generator(np.random.PCG64(seed)).integers(0, 1 << 32, int(np.prod(shape)), dtype=np.uint32)
    exponent = ((words >> np.uint32(23)) & np.uint32(7)) + np.uint32(120)
    numbers = (words & np.uint32(0x807FFFFF)) | (exponent << np.uint32(23))
    return numbers.view(np.float32).reshape(shape).astype(FORMATS[form])


def sha(x: Any, digits: int = 16) -> str:
    """Return the first digits of the SHA-256 of an array."""
    return hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()[:digits]


def differing(results: Callable[..., Any], rows: list[Any], **options: Any) -> list[Any]:
    """Return the rows whose results, as hashes, are not the last entry of the row."""
    return [row for row in rows if results(*row[:-1], **options) != row[-1]]
