"""Wrong arguments: each is refused by a sentence, and none is taken for something else."""

from __future__ import annotations

import copy
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


@pytest.mark.parametrize("name", ["seed", "random_stream", "offset", "random_bits", "pitch"])
@pytest.mark.parametrize("value", [1.5, "2", float("nan"), [1]])
def test_random_streams_take_integers(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name}: an integer is expected"):
        sb.convert(X, "bf16", rounding="stochastic", **{"seed": 1, name: value})


@pytest.mark.parametrize("stream", [-1, 2**64])
def test_streams_out_of_range(stream: int) -> None:
    with pytest.raises(sb.InvalidArgument, match="stream: a cudaStream_t is expected"):
        sb.amax(X, stream=stream)


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


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: sb.LossScaler().observe("w"), TypeError, "seen: the InspectReport of inspect"),
    (lambda: sb.LossScaler().observe(amax_bits=2**32), sb.InvalidArgument, "amax_bits: an integer of 0 .."),
    (lambda: sb.LossScaler().load_state_dict([1]), TypeError, "state: a mapping is expected"),
    (lambda: sb.LossScaler.load(b"x"), TypeError, "text: the text of save"),
    (lambda: sb.DelayedScaling(1.5), TypeError, "length: an integer is expected"),
    (lambda: sb.DelayedScaling(margin=65), sb.InvalidArgument, "margin: an integer of -64 .. 64 is expected; got 65"),
    (lambda: sb.set_num_threads(1.5), TypeError, "threads: an integer is expected"),
    (lambda: sb.set_num_threads(2**31), sb.InvalidArgument, "threads: an integer of 0 .. ")])
def test_state_and_settings(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize(("call", "text"), [
    (lambda: sb.l2norm(X, threads=-1), "threads: an integer of 0 .. 2.31 - 1 is expected; got -1"),
    (lambda: sb.LossScaler.load("x"), "LossScaler.load: line 1"),
    (lambda: sb.LossScaler("torch").load_state_dict({"growth_factor": 2}),
     "load_state_dict, policy torch: there is no scale"),
    (lambda: sb.LossScaler("torch").load_state_dict({}, "apex"),
     "load_state_dict: a scaler of policy torch cannot continue from policy apex"),
    (lambda: sb.LossScaler("torch").state_dict("apex"),
     "state_dict: a scaler of policy torch has no state for policy apex")])
def test_refusals_use_names_of_python(call: Any, text: str) -> None:
    with pytest.raises(sb.InvalidArgument, match=f"^{text}"):
        call()


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


@pytest.mark.parametrize("tile", [128, (1,), "1x128", (1.0, 128.0), (1, 2, 3)])
def test_tiles(tile: Any) -> None:
    q = sb.quantize(X)
    for call in (lambda: sb.quantize(X, tile=tile), lambda: sb.quantize(X, sb.Recipe(tile=tile)),
                 lambda: sb.dequantize(q.codes, q.scales, tile=tile)):
        with pytest.raises(TypeError, match="tile: (rows and columns are|an integer is) expected"):
            call()


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: sb.quantize(X, out=X), TypeError, "out: a QuantizedTensor is expected"),
    (lambda: sb.quantize(X, out=sb.quantize(X), transposed=True), sb.InvalidArgument,
     "transposed: .out. was made without"),
    (lambda: sb.quantize(X, eps="1"), TypeError, "eps: a number is expected"),
    (lambda: sb.add(X, np.ones(3, np.float32), each_flags=True), sb.InvalidArgument,
     r"b: its shape does not broadcast with the other operands': \(4, 4\), \(3,\)$"),
    (lambda: sb.convert(X, "bf16", roundng="x"), TypeError, r"^convert\(\) got an unexpected"),
    (lambda: sb.predict(X, X, None), TypeError, "unit: a tensor core is expected, one of volta")])
def test_options_of_quantize_and_arithmetic(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_results_with_arrays_compare_by_identity() -> None:
    """Comparing their arrays has no single truth value."""
    q, r = sb.quantize(X), sb.add(X, X)
    assert q == q and q != sb.quantize(X)
    assert r == r and r != sb.add(X, X)
    assert len({q, r}) == 2


@pytest.mark.parametrize(("call", "text"), [
    (lambda: sb.convert(None, "bf16"), "x: a NumPy"), (lambda: sb.convert(X, None), "to: a name"),
    (lambda: sb.sum(None), "x: a NumPy"), (lambda: sb.dot(X, None), "y: a NumPy"),
    (lambda: sb.quantize(None), "x: a NumPy"), (lambda: sb.dequantize(None, X), "codes: a NumPy"),
    (lambda: sb.dequantize(sb.quantize(X).codes, None), "scales: a NumPy"),
    (lambda: sb.matmul(X, None), "b: a NumPy")])
def test_none_is_no_array(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize("threads", [1.5, "2", [1], float("nan")])
def test_threads_are_integers(threads: Any) -> None:
    for call in (lambda: sb.convert(X, "bf16", threads=threads),
                 lambda: sb.quantize(X, threads=threads), lambda: sb.sum(X, threads=threads)):
        with pytest.raises(TypeError, match="threads: an integer is expected; got "):
            call()


class _NoCapsule:
    """An array whose __dlpack__ returns something else."""

    def __dlpack__(self, **_: Any) -> int:
        return 5

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_dlpack_without_a_capsule() -> None:
    with pytest.raises(TypeError, match="x: __dlpack__ did not return an unused DLPack capsule"):
        sb.convert(_NoCapsule(), "bf16")


F16, F64 = X.astype(np.float16), X.astype(np.float64)
ONE = np.ones((1, 1), np.float32)


@pytest.mark.parametrize(("call", "begin"), [
    (lambda: sb.convert(X, "bf16", threads=-1), "threads: an integer of 0 .. 2^31 - 1 is expected; got -1"),
    (lambda: sb.verify(threads=-1), "threads: an integer of 0 .. 2^31 - 1 is expected; got -1"),
    (lambda: sb.amax(F64), "x: format must be one of fp32,"),
    (lambda: sb.add(F64, F64, to="fp32"), "a: format must be one of fp32,"),
    (lambda: sb.functions.exp(X, rounding="upward"), "rounding: rule exact rounds into fp32 "),
    (lambda: sb.rotary_table([0, 1], dim=4, base=0.0), "base: must be at least 1 "),
    (lambda: sb.quantize(F64), "x: format must be one of fp32, fp16, bf16, got fp64"),
    (lambda: sb.quantize(X, to="fp16"), "to: format must be one of e4m3, e5m2, e2m1, e2m3, e3m2, got fp16"),
    (lambda: sb.quantize(X, rounding="upward"), "rounding must be nearest_even or stochastic, "),
    (lambda: sb.quantize(X, eps=-1.0), "eps must be finite and >= 0"),
    (lambda: sb.quantize(X, scale_format="e8m0"), "scale_format: scales in e8m0 need "),
    (lambda: sb.quantize(X, scale_format="fp16"), "scale_format: format must be one of fp32, "),
    (lambda: sb.quantize(X, inverse_scales=ONE), "inverse_scales: shape must be [4, 1], got [1, 1]"),
    (lambda: sb.quantize(X[:2], out=sb.quantize(X)), "out.codes: shape must be [2, 4], got [4, 4]"),
    (lambda: sb.quantize(X, tile=(1, 0), out=sb.quantize(X, tile=(0, 0))),
     "out.scales: shape must be [4, 1], got [1, 1]"),
    (lambda: sb.DelayedScaling(4, to="fp16"), "to: e4m3 or e5m2 is expected; got fp16"),
    (lambda: sb.matmul(X, X, out=ONE), "out: shape must be [4, 4], got [1, 1]"),
    (lambda: sb.matmul(X, X, a_tile=(3, 3), a_scales=ONE), "a_tile must be {0, 0}, "),
    (lambda: sb.matmul(X, X, a_tile=(1, 0), a_scales=ONE), "a_scales: shape must be [4, 1], "),
    (lambda: sb.matmul(X, X, c=ONE), "c: shape must be [4, 4], got [1, 1]"),
    (lambda: sb.matmul(F16, F16, unit="hopper_wgmma", promotion=3), "promotion must be 0 or "),
    (lambda: sb.matmul(F16, F16, unit="hopper_wgmma", unit_result="bf16"), "unit_result must be "),
    (lambda: sb.matmul(F16, F16, unit="hopper_wgmma", products=5), "products must be 0, "),
])
def test_messages_name_the_argument_as_it_was_written(call: Any, begin: str) -> None:
    """The library knows the argument by another name, such as where.threads."""
    with pytest.raises(sb.Error) as caught:
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
