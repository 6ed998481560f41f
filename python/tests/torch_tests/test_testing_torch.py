"""Tests of `samebits.testing` on torch callables: planted errors, right kernels, memory, texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import samebits as sb
from planted import SEEDS, failure_of, repeated
from samebits.testing import Layout, check_conversion, check_quantize, check_reduction

E4M3 = torch.float8_e4m3fn
SATURATE = {"overflow": "saturate"}


def saturating(x: Any) -> Any:
    return x.clamp(-448, 448).to(E4M3)


def rounded(added: int) -> Callable[[Any], Any]:
    """Return a kernel that adds a number to the code and cuts it; results are codes, in int16."""
    return lambda x: torch.where(x.isnan(), torch.tensor(0x7FFF, dtype=torch.int16, device=x.device),
                                 (x.view(torch.int32) + added >> 16).to(torch.int16))


def inputs_flushed(x: Any) -> Any:
    zero = torch.copysign(torch.zeros_like(x), x)
    return torch.where(x.abs() < 2.0**-126, zero, x).to(torch.bfloat16)


CONVERSIONS: dict[str, tuple[Callable[[Any], Any], str, str, dict[str, Any]]] = {
    "ties_away": (rounded(0x8000), "bf16", "ties away from zero instead of to even", {}),
    "truncation": (rounded(0), "bf16", "rounded toward zero (truncated) instead of to nearest even", {}),
    "inputs_flushed": (inputs_flushed, "bf16", "subnormal inputs flushed to zero", {}),
    "nan_lost": (lambda x: x.nan_to_num(0.0, torch.inf, -torch.inf).to(torch.bfloat16), "bf16", "a NaN becomes 0", {}),
    "next_element": (lambda x: x.roll(-1).to(torch.bfloat16), "bf16", "out[i] comes from in[i + 1]", {}),
    "through_bf16": (lambda x: saturating(x.to(torch.bfloat16).to(torch.float32)), "e4m3",
                     "rounded twice: to bf16, then to e4m3", SATURATE),
}
for _name, _case in CONVERSIONS.items():
    _case[0].__name__ = _name  # stands in the line that repeats a failure


@pytest.mark.parametrize(("kernel", "target", "says", "options"), CONVERSIONS.values(), ids=CONVERSIONS)
def test_planted_conversion_error_is_found_shrunk_and_named(
        kernel: Callable[[Any], Any], target: str, says: str, options: dict[str, Any], device: str) -> None:
    for seed in SEEDS:
        text = failure_of(check_conversion, kernel, "fp32", target, device=device, examples=1,
                          examples_seed=seed, **options)
        assert says in text.split("looks like: ")[1], text
        assert "(smallest case found)" in text
        assert int(text.split(" of ")[1].split()[0]) <= 3, text
    assert f'device="{device}"' in text.splitlines()[-1]
    assert "looks like" in repeated(text, check_conversion, kernel)[-2]


@pytest.mark.parametrize(("source", "target", "dtype"), [
    ("fp32", "bf16", torch.bfloat16), ("fp32", "fp16", torch.float16),
    ("fp32", "e5m2", torch.float8_e5m2), ("bf16", "fp32", torch.float32),
    ("e4m3", "fp32", torch.float32), ("fp16", "e5m2", torch.float8_e5m2),
    ("fp64", "fp32", torch.float32), ("e5m2", "bf16", torch.bfloat16)])
def test_right_casts_pass(source: str, target: str, dtype: torch.dtype, device: str) -> None:
    layouts = [Layout(), Layout(3), Layout(1, step=2)]
    check_conversion(lambda x: x.to(dtype), source, target, device=device, examples=2, layouts=layouts)


def test_samebits_on_tensors_passes(device: str) -> None:
    check_conversion(lambda x: sb.convert(x, "e4m3", overflow="saturate"), "fp32", "e4m3",
                     device=device, examples=2, **SATURATE)
    check_quantize(lambda x: sb.quantize(x, "DSV3_IEEE"), "DSV3_IEEE", device=device, examples=2)
    for reduction in ("sum", "sum_of_squares", "amax"):
        check_reduction(lambda x: getattr(sb, reduction)(x), reduction, device=device, examples=2)


def test_inputs_keep_strides_and_offsets(device: str) -> None:
    seen = set()

    def records(x: Any) -> Any:
        assert x.device.type == device and x.dtype == torch.bfloat16
        seen.add((x.data_ptr() % 64, x.stride(0)))
        return x.to(torch.float32)

    check_conversion(records, "bf16", "fp32", device=device, examples=4,
                     layouts=[Layout(0), Layout(3), Layout(1, step=2)])
    assert {(0, 1), (6, 1), (2, 2)} <= seen
    with pytest.raises(sb.InvalidArgument, match="torch tensors have no stride of -1"):
        check_conversion(records, "bf16", "fp32", device=device, layouts=[Layout(step=-1)])


def test_out_arguments(device: str) -> None:
    def fills(x: Any, out: Any) -> None:
        out.copy_(x)

    def writes_beside(x: Any, out: Any) -> None:
        out.copy_(x)
        out.as_strided((1,), (1,), out.storage_offset() + out.numel()).fill_(0)

    def skips(x: Any, out: Any) -> None:
        written = torch.arange(x.numel(), device=x.device) % 5 != 4
        out[written] = x.to(torch.bfloat16)[written]

    check_conversion(fills, "fp32", "bf16", device=device, examples=1, fills_out=True)
    assert "writes_beside wrote beside its output in a call with 0 elements" in failure_of(
        check_conversion, writes_beside, "fp32", "bf16", device=device, fills_out=True)
    assert "looks like: some elements are not written" in failure_of(
        check_conversion, skips, "fp32", "bf16", device=device, examples=1, fills_out=True)


def test_results_of_another_kind_are_reported(device: str) -> None:
    def text(kernel: Any) -> str:
        return failure_of(check_conversion, kernel, "fp32", "bf16", device=device, examples=1)

    assert "... changed its input" in text(lambda x: x.mul_(2).to(torch.bfloat16))
    assert f"returned ndarray; expected a torch tensor on {device}" in text(lambda x: np.zeros(x.shape, np.uint16))
    assert "expected a tensor of bfloat16 or of uint16 codes for bf16, got torch.float32" in text(lambda x: x)
    assert f"returned Tensor on meta; expected a torch tensor on {device}" in text(
        lambda x: x.to(torch.bfloat16).to("meta"))


def test_domains_and_results_with_the_negative_bit(device: str) -> None:
    def negated(x: Any) -> Any:
        assert x.isfinite().all()
        y = torch.complex(torch.zeros_like(x), -x).conj().imag  # x, with the bit instead of another sign
        assert y.is_neg()
        return y

    check_conversion(negated, "fp32", "fp32", device=device, examples=1, where=torch.isfinite)


def quantizer(*, by_inverse: bool = False, eps: float = 1e-4) -> Callable[[Any], Any]:
    """Return tiles of 1 x 128 by max(amax, eps) / 448, in separate IEEE operations of torch."""
    def kernel(x: Any) -> Any:
        rows, cols = x.shape
        tiles = torch.nn.functional.pad(x, (0, -cols % 128)).reshape(rows, -1, 128)
        largest = torch.full((), 448.0, device=x.device)  # a tensor: CUDA divides, too
        scales = tiles.abs().amax(2).clamp(min=eps) / largest
        by = scales[:, :, None]
        scaled = tiles * (1 / by) if by_inverse else tiles / by
        return scaled.to(E4M3).reshape(rows, -1)[:, :cols], scales
    return kernel


QUANTIZE: dict[str, Any] = {"tile": (1, 128), "scale": "div", "eps": 1e-4, "overflow": "ieee",
                            "where": torch.isfinite, "shapes": [(1, 1), (2, 128), (3, 129)]}


@pytest.mark.parametrize(("kernel", "says"), [
    (quantizer(by_inverse=True), "scale rule rcp instead of div"),
    (quantizer(eps=1e-12), "eps is 1e-12 instead of 0.0001"),
], ids=["by_inverse", "eps"])
def test_planted_quantizer_error_is_found_and_named(kernel: Any, says: str, device: str) -> None:
    check_quantize(quantizer(), device=device, examples=4, **QUANTIZE)
    for seed in SEEDS:
        text = failure_of(check_quantize, kernel, device=device, examples=24, examples_seed=seed, **QUANTIZE)
        assert says in text.split("looks like: ")[1], text
    assert "repeat:   check_quantize(kernel, tile=(1, 128)" in text


@pytest.mark.parametrize(("reduction", "kernel", "says"), [
    ("amax", lambda x: x.max() if x.numel() else torch.zeros(()),
     "the maximum of the elements instead of their magnitudes"),
    ("amax", lambda x: x[~x.isnan()].abs().max() if x[~x.isnan()].numel() else 0.0, "NaN is dropped"),
    ("sum", lambda x: x[:x.numel() // 8 * 8].to(torch.float64).cumsum(0)[-1:].sum(), ""),
], ids=["signed", "nan", "tail"])
def test_planted_reduction_error_is_found_and_named(reduction: str, kernel: Any, says: str, device: str) -> None:
    for seed in SEEDS:
        text = failure_of(check_reduction, kernel, reduction, device=device, examples=8, examples_seed=seed)
        assert says in text.split("looks like: ")[1], text


def test_devices_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for device, kind, message in (
            ("gpu", sb.InvalidArgument, 'device: "cpu", "cuda" or "cuda:1" is expected'),
            ("meta", sb.Unsupported, "device: 'meta' is not supported"),
            ("cuda", sb.Unsupported, "device: 'cuda': torch finds no GPU")):
        with pytest.raises(kind, match=message):
            check_conversion(lambda x: x, "fp32", "fp32", device=device)
    check_conversion(lambda x: x, "fp32", "fp32", device=torch.device("cpu"), examples=1)
