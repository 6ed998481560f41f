"""Results are of the caller's kind: NumPy, torch, any library of the array API standard."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

import samebits as sb


class Array:
    """An array of a library that is not NumPy: NumPy's memory behind __dlpack__."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.device = "cpu"
        self.shape = array.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class ArrayApi(Array):
    """As the array API standard describes it."""

    def __array_namespace__(self) -> Any:
        return types.SimpleNamespace(
            float32=np.float32, float64=np.float64, uint8=np.uint8, uint16=np.uint16,
            empty=lambda shape, dtype, device: ArrayApi(np.empty(shape, dtype)))


class Tensor(Array):
    """Stands for torch.Tensor, which the tests do not need."""

    requires_grad = True

    def __dlpack__(self, **options: Any) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient")
        return super().__dlpack__(**options)

    def detach(self) -> Tensor:
        plain = Tensor(self.array)
        plain.requires_grad = False
        return plain

    def is_conj(self) -> bool:
        return False

    def is_neg(self) -> bool:
        return False


Tensor.__module__ = "torch"
X = np.float32([[1, 2.5, 1e9]])


def test_array_api() -> None:
    got = sb.convert(ArrayApi(X), "fp64")
    assert type(got) is ArrayApi and np.array_equal(got.array, X)
    codes = sb.convert(ArrayApi(X), "bf16")  # the library has no bf16
    assert type(codes) is ArrayApi and codes.array.dtype == np.uint16
    assert np.array_equal(codes.array, sb.convert(X, "bf16").view(np.uint16))
    q = sb.quantize(ArrayApi(X), "TE_CURRENT")
    assert type(q.codes) is ArrayApi and type(q.scales) is ArrayApi
    assert np.array_equal(q.dequantize().array, sb.quantize(X, "TE_CURRENT").dequantize())


def test_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = types.ModuleType("torch")
    torch.float16 = np.float16  # type: ignore[attr-defined]
    torch.empty = (  # type: ignore[attr-defined]
        lambda shape, dtype, device: Tensor(np.empty(shape, dtype)))
    monkeypatch.setitem(sys.modules, "torch", torch)
    got = sb.convert(Tensor(X), "fp16", overflow="saturate")
    assert type(got) is Tensor and got.array.tolist() == [[1, 2.5, 65504]]
    assert sb.inspect({"w": Tensor(X)}).tensors["w"].amax == 1e9


def test_other_objects_return_numpy() -> None:
    assert isinstance(sb.convert(Array(X), "fp64"), np.ndarray)
    assert isinstance(sb.convert(memoryview(X), "fp64"), np.ndarray)
    out = Array(np.empty(X.shape))
    assert sb.convert(Array(X), "fp64", out=out) is out
    assert np.array_equal(out.array, X)


def test_a_refusal_of_the_producer_is_passed_on() -> None:
    class Refusing(Array):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("not today")

    with pytest.raises(sb.InvalidArgument, match="x: Refusing refuses __dlpack__: not today"):
        sb.convert(Refusing(X), "bf16")
