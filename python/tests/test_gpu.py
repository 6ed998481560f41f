"""Calls on CUDA tensors have the bits of the same calls on host arrays.

Needs PyTorch and a GPU; skipped otherwise, unless SAMEBITS_REQUIRE_GPU=1 makes that a failure.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import samebits as sb
from samebits.formats import NAMES


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


torch = _torch()
pytestmark = pytest.mark.skipif(
    torch is None and os.environ.get("SAMEBITS_REQUIRE_GPU") != "1",
    reason="needs a CUDA GPU and torch",
)
GPU_BACKENDS = [b.name for b in sb.backends() if b.memory == "device"] or ["cuda-native"]
RNG = np.random.default_rng(11)


def random_codes(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return random codes of a format, special values included, as unsigned integers."""
    f = sb.finfo(name)
    codes = RNG.integers(0, 1 << f.bits, shape, dtype=np.uint64)
    if name == "tf32":
        codes <<= np.uint64(13)
    width = sb.dtype_of(name).itemsize
    return codes.astype(f"u{width}")


def on_gpu(array: np.ndarray) -> Any:
    assert torch is not None, "SAMEBITS_REQUIRE_GPU=1, but there is no CUDA GPU with torch"
    plain = array.view(f"u{array.dtype.itemsize}") if array.dtype.kind in "Vf" else array
    return torch.from_numpy(np.ascontiguousarray(plain)).cuda()


def bits(x: Any) -> np.ndarray:
    """Return the codes of a NumPy array or a tensor."""
    if not isinstance(x, np.ndarray):
        x = x.view(getattr(torch, f"uint{8 * x.element_size()}")).cpu().numpy()
    return x.view(f"u{x.dtype.itemsize}")


@pytest.mark.parametrize("backend", GPU_BACKENDS)
@pytest.mark.parametrize("source", NAMES)
def test_convert(source: str, backend: str) -> None:
    codes = random_codes(source, (67, 301))
    device = on_gpu(codes)
    for target in NAMES:
        for options in (
            {},
            {"overflow": "saturate"},
            {"rounding": "stochastic", "seed": 5, "random_bits": 16},
            {"rounding": "toward_zero", "nan": "preserve_sign"},
        ):
            host = sb.convert(codes, target, format=source, **options)
            try:
                got = sb.convert(device, target, format=source, backend=backend, **options)
            except sb.Unsupported:  # cuda-native refuses by name what its instructions lack
                assert backend == "cuda-native"
                got = sb.convert(device, target, format=source, **options)
            assert got.is_cuda
            assert np.array_equal(bits(got), bits(host)), (source, target, options)


@pytest.mark.parametrize("backend", GPU_BACKENDS)
def test_typed_tensors_and_strides(backend: str) -> None:
    x = (RNG.standard_normal((64, 257)) * 30).astype(np.float32)
    device = torch.from_numpy(x).cuda()
    got = sb.convert(device.t()[3:, ::2], "bf16", backend=backend)
    assert got.dtype == torch.bfloat16 and got.shape == (254, 32)
    assert np.array_equal(bits(got), bits(sb.convert(x.T[3:, ::2], "bf16")))
    again = sb.convert(got, "fp32")
    assert torch.equal(again, got.float())


@pytest.mark.parametrize("backend", GPU_BACKENDS)
@pytest.mark.parametrize("recipe", list(sb.recipes))
def test_quantize(recipe: str, backend: str) -> None:
    rows = np.exp2(RNG.integers(-12, 12, (130, 1)))
    x = (RNG.standard_normal((130, 400)) * rows).astype(np.float32)
    x[5] = 0
    x[9, 3] = np.inf
    x[70, 390] = np.nan
    device = torch.from_numpy(x).cuda()
    try:
        host = sb.quantize(x, recipe, transposed=True)
    except sb.InvalidArgument as refusal:  # delayed scaling wants inverse_scales
        with pytest.raises(sb.InvalidArgument, match=str(refusal)[:20]):
            sb.quantize(device, recipe, transposed=True, backend=backend)
        return
    got = sb.quantize(device, recipe, transposed=True, backend=backend)
    assert np.array_equal(bits(got.codes), bits(host.codes))
    assert np.array_equal(bits(got.scales), bits(host.scales))
    turned, host_turned = got.transposed, host.transposed
    assert np.array_equal(bits(turned.codes), bits(host_turned.codes))
    assert np.array_equal(bits(got.dequantize()), bits(host.dequantize()))


@pytest.mark.parametrize("backend", [None, "cuda-emulated"])  # cuda-native returns no flags
@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16", "e4m3", "e5m2"])
def test_arithmetic(name: str, backend: str | None) -> None:
    a, b, c = (random_codes(name, (5000,)) for _ in range(3))
    for operation, inputs in (
        (sb.add, (a, b)), (sb.subtract, (a, b)), (sb.multiply, (a, b)), (sb.divide, (a, b)),
        (sb.sqrt, (a,)), (sb.fma, (a, b, c)), (sb.remainder, (a, b)), (sb.rint, (a,)),
        (sb.minimum, (a, b)), (sb.maximum, (a, b)), (sb.fmin, (a, b)), (sb.fmax, (a, b)),
    ):
        host = operation(*inputs, format=name)
        got = operation(*(on_gpu(i) for i in inputs), format=name, backend=backend)
        assert np.array_equal(bits(got.value), bits(host.value)), operation
        assert got.flags == host.flags, operation


@pytest.mark.parametrize("backend", GPU_BACKENDS)
@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16"])
def test_lists_and_reductions(name: str, backend: str) -> None:
    values = (RNG.standard_normal((3, 5000)) * 4).astype(np.float32)
    host = [np.array(sb.convert(v, name)) for v in values]
    device = [on_gpu(h) for h in host]

    given: Any = {"format": name, "backend": backend}
    assert repr(sb.inspect(device, **given)) == repr(sb.inspect(host))
    assert sb.l2norm(device, **given) == sb.l2norm(host)
    for x, y in zip(device, host):
        assert sb.amax(x, **given) == sb.amax(y)
        assert sb.sum(x, **given) == sb.sum(y)
        assert sb.sum_of_squares(x, **given) == sb.sum_of_squares(y)
        assert sb.counts(x, **given) == sb.counts(y)

    assert repr(sb.unscale(device, 0.125, **given)) == repr(sb.unscale(host, 0.125))
    sb.scale(device, 3.0, **given)
    sb.scale(host, 3.0)
    assert repr(sb.clip(device, 1.0, **given)) == repr(sb.clip(host, 1.0))
    for x, y in zip(device, host):
        assert np.array_equal(bits(x), bits(y))


def test_device_calls_run_on_the_given_stream() -> None:
    x = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)  # clock cycles: a call on another stream would read zeros
        x.normal_()
        y = sb.convert(x, "bf16", stream=side)
    side.synchronize()
    assert np.array_equal(bits(y), bits(sb.convert(x.cpu().numpy(), "bf16")))


def test_host_and_device_arrays_do_not_mix() -> None:
    x = torch.ones(4, device="cuda")
    with pytest.raises(sb.InvalidArgument, match="must lie in the same memory as out"):
        sb.add(x, np.ones(4, np.float32))
