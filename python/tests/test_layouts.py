"""dtype x container x layout: every cell passes or is a named refusal."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samebits as sb

FORMATS = sb.formats()


def dense(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of codes that are all different, without NaN."""
    info = sb.finfo(name)
    step = np.arange(int(np.prod(shape)), dtype=np.uint64) % (1 << min(info.bits - 2, 12))
    dtype = f"u{info.storage_bits // 8}"
    padding = np.uint64(13 if name == "tf32" else 0)
    return (step << padding).astype(dtype).reshape(shape)


class Dlpack:
    """An object with __dlpack__ alone."""

    device = "cpu"

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape = array, array.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class OldDlpack(Dlpack):
    """As before DLPack 1.0: no max_version."""

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__()


def typed(codes: np.ndarray, name: str) -> np.ndarray:
    dtype = sb.dtype_of(name)
    return codes if dtype.kind == "u" else codes.view(dtype)


CONTAINERS: dict[str, Callable[[np.ndarray, str], Any]] = {
    "dtype": typed,
    "codes": lambda codes, name: codes,
    "dlpack": lambda codes, name: Dlpack(codes),
    "old dlpack": lambda codes, name: OldDlpack(codes),
    "memoryview": lambda codes, name: memoryview(codes),
    "subclass": lambda codes, name: codes.view(np.matrix) if codes.ndim == 2 else codes,
}


def unaligned(name: str) -> np.ndarray:
    codes = dense(name, (3, 8))
    raw = np.zeros(codes.nbytes + 1, np.uint8)[1:]
    raw[:] = codes.view(np.uint8).reshape(-1)
    return raw.view(codes.dtype).reshape(codes.shape)


LAYOUTS: dict[str, Callable[[str], np.ndarray]] = {
    "contiguous": lambda n: dense(n, (3, 8)),
    "1-d": lambda n: dense(n, (24,)),
    "3-d": lambda n: dense(n, (2, 3, 4)),
    "strided": lambda n: dense(n, (6, 16))[::2, ::2],
    "transposed": lambda n: dense(n, (8, 3)).T,
    "3-d transposed": lambda n: dense(n, (4, 3, 2)).transpose(1, 2, 0),
    "3-d strided": lambda n: dense(n, (4, 6, 8))[::2, ::3, ::2],
    "broadcast": lambda n: np.broadcast_to(dense(n, (8,)), (3, 8)),
    "0-d": lambda n: dense(n, (1,)).reshape(()),
    "empty": lambda n: dense(n, (0, 8)),
    "empty 3-d": lambda n: dense(n, (2, 0, 8)),
    "unaligned": unaligned,
    "negative rows": lambda n: dense(n, (3, 8))[::-1],
    "negative first axis": lambda n: dense(n, (2, 3, 4))[::-1],
}


def expected(codes: np.ndarray, name: str) -> np.ndarray:
    """Return the conversion of a plain copy."""
    plain = np.ascontiguousarray(codes).reshape(-1)
    return sb.convert(plain, "fp64", format=name).reshape(codes.shape)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", FORMATS)
def test_cell(name: str, container: str, layout: str) -> None:
    codes = LAYOUTS[layout](name)
    given = CONTAINERS[container](codes, name)
    if container == "old dlpack" and not codes.flags.writeable:  # NumPy itself refuses
        with pytest.raises(sb.InvalidArgument, match="x: OldDlpack refuses __dlpack__: .*readonly"):
            sb.convert(given, "fp64", format=name)
        return
    got = sb.convert(given, "fp64", format=name)
    assert isinstance(got, np.ndarray)
    assert got.flags.c_contiguous and got.shape == codes.shape
    assert np.array_equal(got, expected(codes, name))
    read_only = codes.view()
    read_only.flags.writeable = False
    assert np.array_equal(sb.convert(CONTAINERS["dtype"](read_only, name), "fp64", format=name), got)


@pytest.mark.parametrize("layout", [k for k in LAYOUTS if k != "broadcast"])
@pytest.mark.parametrize("name", FORMATS)
def test_out_in_every_layout(name: str, layout: str) -> None:
    out = LAYOUTS[layout](name)
    x = np.arange(out.size, dtype=np.float32).reshape(out.shape) / 8
    assert sb.convert(x, name, out=out, overflow="saturate") is out
    plain = sb.convert(np.ascontiguousarray(x).reshape(-1), name, overflow="saturate")
    assert np.array_equal(out.reshape(-1), plain.view(out.dtype))


def test_stochastic_indices_are_flat_in_every_layout() -> None:
    x = np.random.default_rng(0).standard_normal((3, 4, 5), dtype=np.float32)
    plain = sb.convert(x.reshape(-1).copy(), "bf16", rounding="stochastic", seed=3)
    wanted = plain.view(np.uint16).reshape(x.shape)
    for view in (x, np.asfortranarray(x), x[:, ::-1][:, ::-1], np.repeat(x, 2, 1)[:, ::2],
                 np.ascontiguousarray(x[::-1])[::-1]):
        got = sb.convert(view, "bf16", rounding="stochastic", seed=3)
        assert np.array_equal(got.view(np.uint16), wanted)


def test_in_place_and_scalars() -> None:
    x = np.float32([1.00001, 2, 3])
    assert sb.convert(x, "tf32", out=x) is x and x[0] == 1.0
    y = sb.convert(np.float32(1.5), "fp16")
    assert y == np.float16(1.5) and y.shape == ()


def test_quantize_takes_leading_axes_as_rows() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 128), dtype=np.float32)
    q, p = sb.quantize(x), sb.quantize(x.reshape(6, 128))
    assert q.codes.shape == x.shape and q.scales.shape == (6, 1)
    assert np.array_equal(q.codes.view(np.uint8).reshape(6, 128), p.codes.view(np.uint8))
    with pytest.raises(sb.InvalidArgument, match="x: the leading axes .*ascontiguousarray"):
        sb.quantize(x.transpose(1, 0, 2))


def test_results_that_share_elements_are_refused() -> None:
    """Each matrix of the first result is dense; neighbouring matrices share elements."""
    x, memory = np.ones((3, 2, 2), np.float32), np.zeros((4, 5, 6), np.float32)
    out = np.lib.stride_tricks.as_strided(np.zeros(40, np.float32), x.shape, (4, 12, 4))
    for call, message in ((lambda: sb.convert(x, "fp32", out=out), "out: elements share memory"),
                          (lambda: sb.add(x, x, out=out), "out: elements share memory"),
                          (lambda: sb.convert(memory[:3, ::2, ::2], "fp32", out=memory[1:, ::2, ::2]), "share memory|overlap"),
                          (lambda: sb.convert(memory[0, :, ::-1], "bf16"),
                           r"x: the last axis .* np\.ascontiguousarray\(x\)")):
        with pytest.raises(sb.InvalidArgument, match=message):
            call()


# --- results are of the caller's kind: NumPy, torch, any library of the array API standard --------


class ArrayApi(Dlpack):
    """As the array API standard describes it."""

    def __array_namespace__(self) -> Any:
        return types.SimpleNamespace(
            float32=np.float32, float64=np.float64, uint8=np.uint8, uint16=np.uint16,
            empty=lambda shape, dtype, device: ArrayApi(np.empty(shape, dtype)))


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


def test_other_objects_return_numpy() -> None:
    assert isinstance(sb.convert(Dlpack(X), "fp64"), np.ndarray)
    assert isinstance(sb.convert(memoryview(X), "fp64"), np.ndarray)
    out = Dlpack(np.empty(X.shape))
    assert sb.convert(Dlpack(X), "fp64", out=out) is out
    assert np.array_equal(out.array, X)


def test_a_refusal_of_the_producer_is_passed_on() -> None:
    class Refusing(Dlpack):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("not today")

    with pytest.raises(sb.InvalidArgument, match="x: Refusing refuses __dlpack__: not today"):
        sb.convert(Refusing(X), "bf16")
