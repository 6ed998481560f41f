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


@pytest.mark.parametrize("call", [
    lambda s: sb.convert(np.float32(1), "fp32", out=s), lambda s: sb.add(X[0, 0], X[0, 0], out=s),
    lambda s: sb.unscale([s], 0.5), lambda s: sb.scale({"w": s}, 2.0), lambda s: sb.clip(s, 0.1),
    lambda s: sb.LossScaler().unscale([s])])
def test_scalars_are_not_written(call: Any) -> None:
    """A NumPy scalar is copied into an array, so a result written there would be lost."""
    with pytest.raises(sb.InvalidArgument, match="a scalar cannot be written; pass a"):
        call(np.float32(3))


def test_messages_about_results_and_lists() -> None:
    with pytest.raises(TypeError, match="out: a list is no array; pass a NumPy array, which rec"):
        sb.convert(X, "fp16", out=[1.0])
    with pytest.raises(TypeError, match=r"tensors\[1\]: an int is no array"):
        sb.cast([X, 1], "bf16")
