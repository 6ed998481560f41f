"""Calls on CUDA tensors have the bits of the same calls on host arrays, on each backend of a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tensors import bits

import samebits as sb
import samebits.torch as sbt
from samebits.formats import NAMES

GPU_BACKENDS = [b.name for b in sb.backends() if b.memory == "device"] or ["cuda-native"]
RNG = np.random.default_rng(11)


def random_codes(name: str, shape: tuple[int, ...]) -> Any:
    """Return random codes of a format, special values included, as unsigned integers."""
    codes = RNG.integers(0, 1 << sb.finfo(name).bits, shape, dtype=np.uint64) << np.uint64(13 * (name == "tf32"))
    return codes.astype(f"u{sb.dtype_of(name).itemsize}")


def same(got: Any, host: Any) -> bool:
    return np.array_equal(bits(got).numpy(), np.asarray(host).view(f"u{host.dtype.itemsize}"))


@pytest.mark.parametrize("backend", GPU_BACKENDS)
@pytest.mark.parametrize("source", NAMES)
def test_convert(cuda: str, source: str, backend: str) -> None:
    codes = random_codes(source, (67, 301))
    device = torch.from_numpy(codes).to(cuda)
    for target in NAMES:
        options: dict[str, Any]
        for options in ({}, {"overflow": "saturate"}, {"rounding": "stochastic", "seed": 5, "random_bits": 16},
                        {"rounding": "toward_zero", "nan": "preserve_sign"}):
            host = sb.convert(codes, target, format=source, **options)
            try:
                got = sb.convert(device, target, format=source, backend=backend, **options)
            except sb.Unsupported:  # cuda-native refuses by name what its instructions lack
                assert backend == "cuda-native"
                got = sb.convert(device, target, format=source, **options)
            assert got.device == device.device and same(got, host), (source, target, options)


@pytest.mark.parametrize("backend", GPU_BACKENDS)
def test_typed_tensors_and_strides(cuda: str, backend: str) -> None:
    x = (RNG.standard_normal((64, 257)) * 30).astype(np.float32)
    got = sb.convert(torch.from_numpy(x).to(cuda).t()[3:, ::2], "bf16", backend=backend)
    assert got.dtype == torch.bfloat16 and got.shape == (254, 32)
    assert same(got, sb.convert(x.T[3:, ::2], "bf16"))
    assert torch.equal(sb.convert(got, "fp32"), got.float())


@pytest.mark.parametrize("backend", GPU_BACKENDS)
@pytest.mark.parametrize("recipe", list(sb.recipes))
def test_quantize(cuda: str, recipe: str, backend: str) -> None:
    x = (RNG.standard_normal((130, 400)) * np.exp2(RNG.integers(-12, 12, (130, 1)))).astype(np.float32)
    x[5], x[9, 3], x[70, 390] = 0, np.inf, np.nan
    device = torch.from_numpy(x).to(cuda)
    try:
        host = sb.quantize(x, recipe, transposed=True)
    except sb.InvalidArgument as refusal:  # delayed scaling wants inverse_scales
        with pytest.raises(sb.InvalidArgument, match=str(refusal)[:20]):
            sb.quantize(device, recipe, transposed=True, backend=backend)
        return
    got = sb.quantize(device, recipe, transposed=True, backend=backend)
    assert same(got.codes, host.codes) and same(got.scales, host.scales)
    assert same(got.transposed.codes, host.transposed.codes) and same(got.dequantize(), host.dequantize())


@pytest.mark.parametrize("backend", [None, "cuda-emulated"])  # cuda-native returns no flags
@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16", "e4m3", "e5m2"])
def test_arithmetic(cuda: str, name: str, backend: str | None) -> None:
    operands = [random_codes(name, (5000,)) for _ in range(3)]
    for count, operations in ((1, (sb.sqrt, sb.rint)), (3, (sb.fma,)), (2, (
            sb.add, sb.subtract, sb.multiply, sb.divide, sb.remainder, sb.minimum, sb.maximum, sb.fmin, sb.fmax))):
        for operation in operations:
            host = operation(*operands[:count], format=name)
            got = operation(*(torch.from_numpy(x).to(cuda) for x in operands[:count]), format=name, backend=backend)
            assert same(got.value, host.value) and got.flags == host.flags, operation


@pytest.mark.parametrize("backend", GPU_BACKENDS)
@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16"])
def test_lists_and_reductions(cuda: str, name: str, backend: str) -> None:
    values = (RNG.standard_normal((3, 5000)) * 4).astype(np.float32)
    host = [np.array(sb.convert(v, name)) for v in values]
    device = [sbt.from_numpy(h.copy()).to(cuda) for h in host]
    given: Any = {"backend": backend}
    assert repr(sb.inspect(device, **given)) == repr(sb.inspect(host))
    assert sb.l2norm(device, **given) == sb.l2norm(host)
    for x, y in zip(device, host, strict=True):
        for reduction in (sb.amax, sb.sum, sb.sum_of_squares, sb.counts):
            assert reduction(x, **given) == reduction(y)
    assert repr(sb.unscale(device, 0.125, **given)) == repr(sb.unscale(host, 0.125))
    sb.scale(device, 3.0, **given)
    sb.scale(host, 3.0)
    assert repr(sb.clip(device, 1.0, **given)) == repr(sb.clip(host, 1.0))
    assert all(same(x, y) for x, y in zip(device, host, strict=True))


def test_device_calls_run_on_the_given_stream(cuda: str) -> None:
    x = torch.zeros(1 << 20, device=cuda)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)  # clock cycles: a call on another stream would read zeros
        x.normal_()
        y = sb.convert(x, "bf16", stream=side)
    side.synchronize()
    assert same(y, sb.convert(x.cpu().numpy(), "bf16"))


def test_host_and_device_arrays_do_not_mix(cuda: str) -> None:
    with pytest.raises(sb.InvalidArgument, match="must lie in the same memory as out"):
        sb.add(torch.ones(4, device=cuda), np.ones(4, np.float32))
