"""Wrong arguments: each is refused by a sentence, and none is taken for something else."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import samebits as sb

X = np.arange(16, dtype=np.float32).reshape(4, 4)


@pytest.mark.parametrize("call", [sb.finfo, sb.dtype_of, sb.format_name, lambda name: sb.matmul(X, X, out=name),
                                  lambda name: sb.inspect(X).to(name)])
def test_none_is_no_format(call: Any) -> None:
    """NumPy takes None for float64."""
    with pytest.raises(TypeError, match=r"a name, a NumPy dtype or a torch dtype is expected"):
        call(None)
    assert (sb.format_name("F4"), sb.format_name(np.dtype("f4"))) == ("e2m1", "fp32")


@pytest.mark.parametrize("call", [
    lambda s: sb.convert(np.float32(1), "fp32", out=s), lambda s: sb.add(X[0, 0], X[0, 0], out=s),
    lambda s: sb.unscale([s], 0.5), lambda s: sb.scale({"w": s}, 2.0), lambda s: sb.clip(s, 0.1),
    lambda s: sb.LossScaler().unscale([s])])
def test_scalars_are_not_written(call: Any) -> None:
    """A NumPy scalar is copied into an array, so a result written there would be lost."""
    with pytest.raises(sb.InvalidArgument, match="a scalar cannot be written; pass a"):
        call(np.float32(3))


@pytest.mark.parametrize("name", ["seed", "random_stream", "offset", "random_bits", "pitch"])
@pytest.mark.parametrize("value", [1.5, "2", float("nan"), [1]])
def test_random_streams_take_integers(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name}: an integer is expected"):
        sb.convert(X, "bf16", rounding="stochastic", **{"seed": 1, name: value})


@pytest.mark.parametrize(("call", "text"), [
    (lambda v: sb.unscale([X.copy()], v), "inverse_scale"), (lambda v: sb.clip(X.copy(), v), "max"),
    (lambda v: sb.scale(X.copy(), v), "factor"), (lambda v: sb.LossScaler().scale(v), "loss"),
    (lambda v: sb.axpby(v, [X], 1, [X], [X.copy()]), "a"),
    (lambda v: sb.DelayedScaling(2).observe(v), "amax"),
    (lambda v: sb.LossScaler("torch").load_state_dict({"scale": v}), "state")])
@pytest.mark.parametrize("value", [None, "x", [1.0]])
def test_factors_are_numbers(call: Any, text: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"^{text}.*: a number is expected"):
        call(value)


def test_numpy_booleans_are_observed() -> None:
    """np.isinf(g).any() is a NumPy boolean."""
    scaler = sb.LossScaler("torch", init_scale=1024)
    scaler.observe(nonfinite=np.isinf(np.float32([np.inf])).any())
    assert not scaler.step()
    assert scaler.update().change == "backed_off"


class _Scaler(sb.LossScaler):
    """A subclass."""


def test_copies_of_a_subclass_are_of_the_subclass() -> None:
    assert type(copy.deepcopy(_Scaler("torch"))) is _Scaler


def test_results_with_arrays_compare_by_identity() -> None:
    """Comparing their arrays has no single truth value."""
    q, r = sb.quantize(X), sb.add(X, X)
    assert q == q and q != sb.quantize(X)
    assert r == r and r != sb.add(X, X)
    assert len({q, r}) == 2


F16, F64 = X.astype(np.float16), X.astype(np.float64)
ONE = np.ones((1, 1), np.float32)


INVALID = sb.InvalidArgument


class NoCapsule:
    """An array whose __dlpack__ returns something else."""

    def __dlpack__(self, **_: Any) -> int:
        return 5

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize(("call", "kind", "begin"), [
    (lambda: sb.convert(X, "bf16", threads=-1), INVALID, "threads: an integer of 0 .. 2^31 - 1 is expected; got -1"),
    (lambda: sb.set_num_threads(1.5), TypeError, "threads: an integer is expected"),
    *((lambda n=n: sb.sum(X, threads=n), TypeError, "threads: an integer is expected; got ") for n in (1.5, "2", [1])),
    *((lambda tile=tile: sb.quantize(X, tile=tile), TypeError, "tile: rows and columns are expected, such as (1, 128)")
      for tile in (128, (1,), "1x128", (1, 2, 3))),
    (lambda: sb.dequantize(X, ONE, tile=(1.0, 128.0)), TypeError, "tile: an integer is expected; got 1.0"),
    (lambda: sb.set_num_threads(2**31), INVALID, "threads: an integer of 0 .. "),
    *((lambda stream=stream: sb.amax(X, stream=stream), INVALID, "stream: a cudaStream_t is expected")
      for stream in (-1, 2**64)),
    *((lambda name=name: sb.finfo(name), INVALID, f"name: {name!r} is not one of")
      for name in ("bf16\0", "bf16\n", "\ud800", "bf16\N{COMBINING ACUTE ACCENT}")),
    (lambda: sb.convert(X, "f4"), INVALID, "to: 'f4'"),  # float32 in NumPy, FP4 in .safetensors
    (lambda: sb.convert(NoCapsule(), "bf16"), TypeError, "x: __dlpack__ did not return an unused DLPack capsule"),
    (lambda: sb.convert(X, "fp16", out=[1.0]), TypeError, "out: a list is no array; pass a NumPy array, which rec"),
    (lambda: sb.cast([X, 1], "bf16"), TypeError, "tensors[1]: an int is no array"),
    (lambda: sb.amax(F64), INVALID, "x: format must be one of fp32,"),
    (lambda: sb.add(F64, F64, to="fp32"), INVALID, "a: format must be one of fp32,"),
    (lambda: sb.add(X, X[0, :3], each_flags=True), INVALID,
     "b: its shape does not broadcast with the other operands': (4, 4), (3,)"),
    (lambda: sb.functions.exp(X, rounding="upward"), sb.Error, "rounding: rule exact rounds into fp32 "),
    (lambda: sb.quantize(F64), INVALID, "x: format must be one of fp32, fp16, bf16, got fp64"),
    (lambda: sb.quantize(X, to="fp16"), INVALID, "to: format must be one of e4m3, e5m2, e2m1, e2m3, e3m2, got fp16"),
    (lambda: sb.quantize(X, rounding="upward"), INVALID, "rounding must be nearest_even or stochastic, "),
    (lambda: sb.quantize(X, inverse_scales=ONE), INVALID, "inverse_scales: shape must be [4, 1], got [1, 1]"),
    (lambda: sb.quantize(X, out=X), TypeError, "out: a QuantizedTensor is expected"),
    (lambda: sb.quantize(X, out=sb.quantize(X), transposed=True), INVALID, "transposed: `out` was made without"),
    (lambda: sb.quantize(X[:2], out=sb.quantize(X)), INVALID, "out.codes: shape must be [2, 4], got [4, 4]"),
    (lambda: sb.quantize(X, tile=(1, 0), out=sb.quantize(X, tile=(0, 0))), INVALID,
     "out.scales: shape must be [4, 1], got [1, 1]"),
    (lambda: sb.DelayedScaling(4, to="fp16"), INVALID, "to: e4m3 or e5m2 is expected; got fp16"),
    (lambda: sb.DelayedScaling(1.5), TypeError, "length: an integer is expected"),
    (lambda: sb.DelayedScaling(margin=65), INVALID, "margin: an integer of -64 .. 64 is expected; got 65"),
    (lambda: sb.predict(X, X, None), TypeError, "unit: a tensor core is expected, one of volta"),
    (lambda: sb.matmul(X, None), TypeError, "b: a NumPy"),
    (lambda: sb.matmul(X, X, out=ONE), INVALID, "out: shape must be [4, 4], got [1, 1]"),
    (lambda: sb.matmul(X, X, a_tile=(3, 3), a_scales=ONE), INVALID, "a_tile must be {0, 0}, "),
    (lambda: sb.matmul(X, X, a_tile=(1, 0), a_scales=ONE), INVALID, "a_scales: shape must be [4, 1], "),
    (lambda: sb.matmul(X, X, c=ONE), INVALID, "c: shape must be [4, 4], got [1, 1]"),
    (lambda: sb.matmul(F16, F16, unit="hopper_wgmma", promotion=3), INVALID, "promotion must be 0 or "),
    (lambda: sb.matmul(F16, F16, unit="hopper_wgmma", unit_result="bf16"), sb.Error, "unit_result must be "),
    (lambda: sb.matmul(F16, F16, unit="hopper_wgmma", products=5), INVALID, "products must be 0, "),
    (lambda: sb.LossScaler().observe("w"), TypeError, "seen: the InspectReport of inspect"),
    (lambda: sb.LossScaler().observe(amax_bits=2**32), INVALID, "amax_bits: an integer of 0 .."),
    (lambda: sb.LossScaler().load_state_dict([1]), TypeError, "state: a mapping is expected"),
    (lambda: sb.LossScaler.load(b"x"), TypeError, "text: the text of save"),
    (lambda: sb.LossScaler.load("x"), INVALID, "LossScaler.load: line 1"),
    (lambda: sb.LossScaler("torch").load_state_dict({"growth_factor": 2}), INVALID,
     "load_state_dict, policy torch: there is no scale"),
    (lambda: sb.LossScaler("torch").load_state_dict({}, "apex"), INVALID,
     "load_state_dict: a scaler of policy torch cannot continue from policy apex"),
    (lambda: sb.LossScaler("torch").state_dict("apex"), INVALID,
     "state_dict: a scaler of policy torch has no state for policy apex"),
])
def test_messages_name_the_argument_as_it_was_written(call: Any, kind: type[Exception], begin: str) -> None:
    """The library knows some arguments by other names, such as where.threads."""
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(begin)


@pytest.mark.parametrize(("fields", "kind", "begin"), [
    ({"scale": "tee"}, sb.InvalidArgument, "scale: 'tee' is not one of te,"),
    ({"tile": (3, 3)}, sb.InvalidArgument, "tile must be "),
    ({"tile": [1, 128]}, TypeError, "tile: rows and columns are expected, such as (1, 128); got [1"),
    ({"tile": (1, 128.0)}, TypeError, "tile: an integer is expected; got 128.0"),
    ({"eps": "1"}, TypeError, "eps: a number is expected; got '1'"),
    ({"eps": -1.0}, sb.InvalidArgument, "eps must be finite and >= 0"),
    ({"upper_bound": 0.0}, sb.InvalidArgument, "upper_bound must be > 0"),
    ({"nonfinite": "skip"}, sb.InvalidArgument, "nonfinite: 'skip' is not one of skip_"),
    ({"overflow": None}, TypeError, "overflow: a string is expected, one of ieee"),
    ({"scale_overflow": "max"}, sb.InvalidArgument, "scale_overflow: 'max' is not one of flt_max"),
    ({"scale_format": "e8m0"}, sb.InvalidArgument, "scale_format: scales in e8m0 need "),
    ({"scale_format": "fp16"}, sb.InvalidArgument, "scale_format: format must be one of fp32, "),
    ({"source": "later"}, sb.InvalidArgument, "source: 'later' is not one of "),
])
def test_recipes_refuse_rules_by_which_nothing_could_be_quantized(
        fields: Any, kind: type[Exception], begin: str) -> None:
    with pytest.raises(kind) as caught:
        sb.Recipe(**fields)
    assert str(caught.value).startswith(begin)
