"""Arguments and results of every public call; the C++ tests prove the values."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samebits as sb

RNG = np.random.default_rng(7)
X = (RNG.standard_normal((64, 256)) * 3).astype(np.float32)


def bits(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}")


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.array_equal(bits(a), bits(b))


# --- formats ------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["fp64", "fp32", "fp16"])
def test_finfo_is_numpys(name: str) -> None:
    ours, numpys = sb.finfo(name), np.finfo(sb.dtype_of(name))
    assert ours.max == float(numpys.max) and ours.eps == float(numpys.eps)
    assert ours.smallest_normal == float(numpys.smallest_normal)
    assert ours.smallest_subnormal == float(numpys.smallest_subnormal)
    assert (ours.bits, ours.mantissa_bits) == (numpys.bits, numpys.nmant)
    assert ours.has_inf and ours.has_nan


def test_finfo_of_small_formats() -> None:
    assert (sb.finfo("e4m3").max, sb.finfo("e5m2").max, sb.finfo("e2m1").max) == (448, 57344, 6)
    assert not sb.finfo("e4m3").has_inf and not sb.finfo("e2m1").has_nan
    assert sb.finfo("tf32").bits == 19 and sb.finfo("e3m2").bits == 6


def test_every_name_of_a_format() -> None:
    names = ["bf16", "BF16", "bfloat16", "torch.bfloat16", "ml_dtypes.bfloat16"]
    assert {sb.format_name(n) for n in names} == {"bf16"}
    assert sb.format_name(np.float16) == sb.format_name(np.dtype("f2")) == "fp16"
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert sb.format_name(ml_dtypes.float8_e4m3fn) == "e4m3"
    assert sb.format_name(np.dtype(ml_dtypes.float4_e2m1fn)) == "e2m1"


# --- convert ------------------------------------------------------------------------------------
def test_options() -> None:
    x = np.float32([1.0 + 2**-9, 1e9, np.inf, np.nan, -np.nan])
    assert sb.convert(x, "bf16", rounding="upward").astype("f4")[0] == 1 + 2**-7
    assert sb.convert(x, "bf16", rounding="downward").astype("f4")[0] == 1
    saturated = sb.convert(sb.convert(x, "e4m3", overflow="saturate"), "fp32")
    assert saturated[1] == saturated[2] == 448
    ieee = sb.convert(sb.convert(x, "e5m2"), "fp32")
    assert ieee[1] == ieee[2] == np.inf and np.isnan(ieee[3])
    finite = sb.convert(sb.convert(x, "e5m2", overflow="saturate_finite"), "fp32")
    assert finite[1] == 57344 and finite[2] == np.inf
    signed = bits(sb.convert(x, "fp16", nan="preserve_sign"))
    assert (signed[3] ^ signed[4]) == 0x8000


def test_random_bits() -> None:
    def rounded(x: np.ndarray = X, **given: Any) -> np.ndarray:
        return bits(sb.convert(x, "bf16", rounding="stochastic", **{"seed": 4, **given}))

    whole = rounded(threads=5, backend="reference")
    assert np.array_equal(whole, rounded())
    assert np.array_equal(rounded(X[8:16, 32:64], offset=8 * 256 + 32, pitch=256), whole[8:16, 32:64])
    others = ({"seed": 1}, {"random_stream": 1}, {"offset": 1}, {"random_bits": 8})
    assert len({whole.tobytes(), *(rounded(**o).tobytes() for o in others)}) == 5


# --- arithmetic ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("ours", "numpys", "count"), [
    (sb.add, np.add, 2), (sb.subtract, np.subtract, 2), (sb.multiply, np.multiply, 2), (sb.divide, np.divide, 2),
    (sb.minimum, np.minimum, 2), (sb.maximum, np.maximum, 2), (sb.fmin, np.fmin, 2), (sb.fmax, np.fmax, 2),
    (sb.sqrt, np.sqrt, 1), (sb.rint, np.rint, 1), (sb.remainder, np.vectorize(math.remainder, otypes=["f4"]), 2),
    (sb.fma, lambda a, b, c: np.float32(a.astype("f8") * b + c), 3)])
def test_operations(ours: Any, numpys: Any, count: int) -> None:
    operands = [np.abs(X[8 * i:8 * i + 8]).astype(np.float16).astype(np.float32) for i in range(count)]
    assert same(ours(*operands).value, numpys(*operands))
    if count == 2:  # broadcast
        assert same(ours(operands[0], operands[1][:1]).value, numpys(operands[0], operands[1][:1]))
        assert same(ours(operands[0][:, :1], operands[1]).value, numpys(operands[0][:, :1], operands[1]))


def test_flags() -> None:
    a, b = np.float32([1, 0, 1, 3e38, 1e-38, np.inf]), np.float32([3, 0, 0, 1e-3, 1e9, np.inf])
    r = sb.divide(a, b, each_flags=True)
    assert r.each is not None
    each = [sb.Flags.of(int(f)) for f in r.each]
    assert each[0] == sb.Flags(False, False, False, False, True)
    assert each[1].invalid and each[2].divide_by_zero and each[3].overflow
    assert each[4].underflow and each[5].invalid
    assert r.flags == sb.Flags(True, True, True, True, True)
    assert sb.add(a[:1], a[:1]).flags == sb.Flags(False, False, False, False, False)


def test_result_format() -> None:
    a = sb.convert(X[:2], "e4m3")
    r = sb.multiply(a, a, to="bf16")
    assert r.value.dtype == sb.dtype_of("bf16")
    wide = sb.convert(a, "fp64") ** 2
    assert same(r.value, sb.convert(wide, "bf16"))
    out = np.empty((2, 256), np.float32)
    assert sb.multiply(a, a, to="fp32", out=out).value is out
    assert np.array_equal(out, wide)


# --- reductions ---------------------------------------------------------------------------------
def test_reductions() -> None:
    y = np.float32(RNG.integers(-100, 100, (7, 9)))
    assert sb.sum(y) == y.sum(dtype="f8") and sb.amax(y) == np.abs(y).max()
    assert sb.sum_of_squares(y) == (y.astype("f8") ** 2).sum() == sb.dot(y, y)
    assert sb.dot(y, y, precision="fp32", order="sequential") == sb.dot(y, y)
    c = sb.counts(np.float32([0, -0.0, 1e-40, np.nan, np.inf, 1]))
    assert (c.elements, c.nan, c.inf, c.zeros, c.subnormals) == (6, 1, 1, 2, 1)


# --- quantize -----------------------------------------------------------------------------------
def test_statistics() -> None:
    q = sb.quantize(X, "TE_CURRENT", statistics=True)
    assert q.scales.shape == (1, 1) and q.scales[0, 0] == np.float32(1) / (np.float32(448) / np.abs(X).max())
    assert q.statistics is not None and q.statistics.amax == np.abs(X).max()
    assert q.statistics.elements == X.size and q.statistics.noise > 0


@pytest.mark.parametrize("name", sb.recipes)
def test_every_recipe(name: str, tmp_path: Path) -> None:
    recipe = sb.recipes[name]
    given = np.full((1, 1), 2, np.float32) if recipe.source == "delayed" else None
    q = sb.quantize(X[:63, :249], name, transposed=True, inverse_scales=given)  # files pack codes of an odd number
    t = q.transposed
    assert q.recipe == recipe
    for ours, turned in ((q.codes, t.codes), (q.scales, t.scales), (q.dequantize(), t.dequantize())):
        assert same(np.ascontiguousarray(ours.T), turned)
    q.save(tmp_path / "q.safetensors")
    back = sb.load_quantized(tmp_path / "q.safetensors")
    assert back.recipe == recipe and back.format == q.format
    for field in ("codes", "scales", "codes_transposed", "scales_transposed"):
        assert same(getattr(back, field), getattr(q, field))
    assert same(back.dequantize(), q.dequantize())


def test_quantize_out_and_threads() -> None:
    q = sb.quantize(X, tile=(1, 128), scale="div", to="e5m2")
    again = sb.quantize(X * 2, tile=(1, 128), scale="div", to="e5m2", out=q, threads=2)
    assert again is q
    assert same(q.scales, sb.quantize(X, tile=(1, 128), scale="div", to="e5m2").scales * 2)


def test_safetensors_reads_our_file(tmp_path: Path) -> None:
    safe_open = pytest.importorskip("safetensors").safe_open
    q = sb.quantize(X, "TE_BLOCK_1D")
    q.save(tmp_path / "q.safetensors")
    with safe_open(tmp_path / "q.safetensors", "numpy") as file:
        assert set(file.keys()) == {"codes", "scales"}
        assert file.metadata()["samebits.recipe"] == "TE_BLOCK_1D"
        assert np.array_equal(file.get_tensor("scales"), q.scales)


def test_delayed_scaling() -> None:
    state = sb.DelayedScaling(4)
    state.observe(7.0)
    state.update()
    assert state.inverse_scale == 64.0 and state.scale == 1 / 64
    state.update()  # a step of zeros is skipped
    assert state.inverse_scale == 64.0


# --- tensor lists -------------------------------------------------------------------------------
def test_inspect() -> None:
    tensors = {"w": X.copy(), "b": np.float16([0, 1e-7, np.inf, np.nan])}
    r = sb.inspect(tensors)
    assert r.first_bad == "b" and r.total.elements == X.size + 4
    b = r.tensors["b"]
    assert (b.nan, b.inf, b.zeros, b.subnormals) == (1, 1, 1, 1) and math.isnan(b.amax)
    assert r.tensors["w"].amax == np.abs(X).max()
    assert abs(r.tensors["w"].norm - np.linalg.norm(X.astype("f8"))) < 1e-9
    assert np.sum(r.exponents) == r.total.elements and "1 NaN" in str(r)
    lean = sb.inspect(tensors, distribution=False)
    assert lean.tensors["b"].zeros == 0 and lean.first_bad == "b"
    assert sb.l2norm(tensors["w"])[0] == r.tensors["w"].norm


def test_conversion_loss() -> None:
    x = np.float32([1, 1e-9, 1e9, np.nan, 0, 1.01])
    loss = sb.inspect(x).to("e4m3")
    assert (loss.elements, loss.nonfinite, loss.underflowed, loss.overflowed) == (6, 1, 1, 1)
    assert loss.inexact == 3
    assert sb.inspect(X).to("bf16").sqnr > sb.inspect(X).to("e4m3").sqnr > 20


def test_in_place_operations() -> None:
    w, g = np.float32([3, 4]), np.float16([1, 2])
    assert sb.clip([w], 1.0) == sb.ClipReport(5.0, float(np.float32(1 / (5 + 1e-6))))
    w[:] = [3, 4]
    sb.accumulate({"w": w}, {"w": g}, scales=np.float32([2]))
    assert np.array_equal(w, [5, 8])
    sb.scale(w, 0.5)
    assert np.array_equal(w, [2.5, 4])
    r = sb.unscale({"w": w}, 2.0)
    assert np.array_equal(w, [5, 8]) and r.first_bad is None and r.amax == 4
    out = np.zeros(2, np.float32)
    sb.axpby(2, w, 3, g, out)
    assert np.array_equal(out, [13, 22])
    half = sb.cast({"w": w}, "fp16")["w"]
    assert half.dtype == np.float16 and np.array_equal(half, [5, 8])


# --- loss scaler --------------------------------------------------------------------------------
@pytest.mark.parametrize("policy", ["native", "torch", "apex", "apex_amp", "megatron", "deepspeed"])
def test_every_policy(policy: str) -> None:
    scaler = sb.LossScaler(policy)
    before = scaler.get_scale()
    stepped = []
    for good in (True, False, False, True):
        g = np.float32([1, 1 if good else np.inf])
        scaler.unscale({"w": g})
        assert scaler.step(lambda: stepped.append(1)) is good
        assert scaler.update().applied is good
    assert len(stepped) == 2 == scaler.applied_steps() and scaler.updates() == 4
    assert scaler.get_scale() < before
    again = sb.LossScaler.load(scaler.save())
    assert again.save() == scaler.save() == pickle.loads(pickle.dumps(scaler)).save()
    if policy != "native":
        fresh = sb.LossScaler(policy)
        fresh.load_state_dict(scaler.state_dict())
        assert fresh.get_scale() == scaler.get_scale()
    assert repr(scaler).startswith(f"LossScaler('{policy}'")


def test_an_exception_of_the_optimizer_passes_through() -> None:
    scaler = sb.LossScaler("torch")
    scaler.observe(nonfinite=False)

    def fails() -> None:
        raise KeyError("optimizer")

    with pytest.raises(KeyError, match="optimizer"):
        scaler.step(fails)
    assert scaler.step(lambda: scaler.get_scale())  # may ask for the scale, and may be repeated


def test_observe_takes_a_report() -> None:
    scaler = sb.LossScaler("torch")
    scaler.observe(sb.inspect(np.float32([np.inf])))
    assert not scaler.step() and scaler.update().cause == "overflow"


def test_the_end_of_a_run() -> None:
    scaler = sb.LossScaler("deepspeed", init_scale=1, delayed_shift=1)
    with pytest.raises(sb.ScaleExhausted):
        for _ in range(3):
            scaler.observe(nonfinite=True)
            scaler.step()
            scaler.update()


# --- products -----------------------------------------------------------------------------------
def test_products() -> None:
    a, b = (np.float32(RNG.integers(-8, 8, shape)) for shape in ((5, 64), (64, 3)))
    assert np.array_equal(sb.matmul(a, b), a @ b)
    assert np.array_equal(sb.matmul(a, b, out="fp64"), a.astype("f8") @ b.astype("f8"))
    assert np.array_equal(sb.matmul(a, b, c=np.ones((5, 3), np.float32)), a @ b + 1)
    out = np.empty((5, 3), np.float16)
    assert sb.matmul(a, b, out=out) is out
    for kind, total in (("ieee_fp32", 2**24), ("exact", 2**24 + 2)):
        assert sb.matmul(np.float32([[2**24, 1, 1]]), np.ones((3, 1), np.float32), sum=kind) == total


def test_tensor_core_of_quantized_tensors() -> None:
    a = sb.quantize(X[:16], "TE_CURRENT")
    w = sb.quantize(X[16:32], "TE_CURRENT", transposed=True)
    plain = sb.matmul(a.codes, w.codes.T, unit="hopper_fp8", a_scales=a.scales, b_scales=w.scales, out="bf16")
    assert same(plain, sb.matmul(a, w.transposed, unit="hopper_fp8", out="bf16"))
    p = sb.predict(a, w.transposed, "hopper_fp8", out="bf16")
    assert same(p.value, plain) and p.evidence == "hardware"
    assert p.error.count == 256 and p.error.noise >= 0


# --- autocast, backends -------------------------------------------------------------------------
def test_autocast() -> None:
    assert sb.autocast_rule("conv2d") == "low_precision" and sb.autocast_rule("exp") == "fp32"
    assert sb.autocast_rule("no_such_operation") == "as_given"
    found = sb.autocast_formats("linear", "mixed_fp8", "bf16")
    assert found is not None and found.gradients == "e5m2"


def test_backends() -> None:
    names = [b.name for b in sb.backends()]
    assert names[0] == "reference" and sum(b.default for b in sb.backends()) >= 1
    assert {t.backend for t in sb.self_test("reference")} == {"reference"}
    sb.initialize("reference")
    assert all(t.passed for t in sb.self_test() if t.backend in ("reference", "avx2", "avx512"))
