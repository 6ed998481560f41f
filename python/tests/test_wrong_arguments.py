"""Wrong arguments: each is refused by a sentence, and none is taken for something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samebits as sb

X = np.arange(16, dtype=np.float32).reshape(4, 4)


@pytest.mark.parametrize("call", [sb.finfo, sb.dtype_of, sb.format_name,
                                  lambda name: sb.matmul(X, X, out=name),
                                  lambda name: sb.inspect(X).to(name)])
def test_none_is_no_format(call: Any) -> None:
    """NumPy takes None for float64."""
    with pytest.raises(TypeError, match=r"a name, a NumPy dtype or a torch dtype is expected"):
        call(None)


def test_f4_is_refused() -> None:
    """The name f4 is float32 in NumPy and FP4 in .safetensors."""
    with pytest.raises(sb.InvalidArgument, match="pass 'fp32' or 'e2m1'"):
        sb.convert(X, "f4")
    assert sb.format_name("F4") == "e2m1"
    assert sb.format_name(np.dtype("f4")) == "fp32"


@pytest.mark.parametrize("name", ["bf16\0", "bf16\n", "\ud800", "bf16\N{COMBINING ACUTE ACCENT}"])
def test_names_with_odd_characters_are_refused(name: str) -> None:
    with pytest.raises(sb.InvalidArgument, match="is not one of"):
        sb.finfo(name)
