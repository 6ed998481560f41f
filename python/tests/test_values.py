"""Results of every public call against values computed with NumPy, or known from the C++ tests."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

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


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_threads_and_backends_do_not_matter(threads: int) -> None:
    x = RNG.integers(0, 1 << 32, 300_000, dtype=np.uint32).view(np.float32)
    plain = bits(sb.convert(x, "bf16", rounding="stochastic", seed=9, backend="reference"))
    for b in sb.backends():
        if b.supported and b.memory == "host":
            got = sb.convert(x, "bf16", rounding="stochastic", seed=9, threads=threads,
                             backend=b.name)
            assert np.array_equal(bits(got), plain)


def test_blocks_of_a_matrix_have_its_random_bits() -> None:
    whole = bits(sb.convert(X, "bf16", rounding="stochastic", seed=4))
    block = sb.convert(X[8:16, 32:64], "bf16", rounding="stochastic", seed=4,
                       offset=8 * 256 + 32, pitch=256)
    assert np.array_equal(bits(block), whole[8:16, 32:64])


def test_stochastic_rounding_uses_its_bits() -> None:
    x = np.full(1 << 16, 1 + 2**-9, np.float32)  # a quarter of the way to the next bf16
    up = np.mean(bits(sb.convert(x, "bf16", rounding="stochastic", seed=1)) == 0x3F81)
    assert abs(up - 0.25) < 0.01
    other = [bits(sb.convert(x, "bf16", rounding="stochastic", seed=1, **o))
             for o in ({}, {"random_stream": 1}, {"offset": 1}, {"random_bits": 8})]
    assert len({o.tobytes() for o in other}) == 4
    assert np.array_equal(other[0][1:], other[2][:-1])


# --- arithmetic ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("ours", "numpys"), [
    (sb.add, np.add), (sb.subtract, np.subtract), (sb.multiply, np.multiply),
    (sb.divide, np.divide), (sb.minimum, np.minimum), (sb.maximum, np.maximum),
    (sb.fmin, np.fmin), (sb.fmax, np.fmax),
])
def test_binary_operations(ours, numpys) -> None:  # type: ignore[no-untyped-def]
    a, b = X[:8], X[8:16]
    assert same(ours(a, b).value, numpys(a, b))
    assert same(ours(a, b[:1]).value, numpys(a, b[:1]))  # broadcast
    assert same(ours(a[:, :1], b).value, numpys(a[:, :1], b))


def test_other_operations() -> None:
    a = np.abs(X[:4])
    assert same(sb.sqrt(a).value, np.sqrt(a))
    assert same(sb.rint(a).value, np.rint(a))
    wide = X[:4].astype("f8") * X[4:8].astype("f8") + X[8:12].astype("f8")
    close = sb.fma(X[:4], X[4:8], X[8:12]).value
    assert np.all(np.abs(close - wide) <= np.spacing(np.abs(close)) * 0.5000001)
    got = sb.remainder(X[:4], X[4:8]).value
    assert same(got, np.vectorize(math.remainder, otypes=["f4"])(X[:4], X[4:8]))


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
def test_te_current() -> None:
    q = sb.quantize(X, "TE_CURRENT", statistics=True)
    amax = np.abs(X).max()
    inverse = np.float32(448) / amax
    assert q.scales.shape == (1, 1) and q.scales[0, 0] == np.float32(1) / inverse
    assert same(q.codes, sb.convert(X * inverse, "e4m3", overflow="saturate"))
    values = sb.convert(q.codes, "fp32") * q.scales[0, 0]
    assert same(q.dequantize(), values)
    assert q.statistics is not None and q.statistics.amax == amax
    assert q.statistics.elements == X.size and q.statistics.noise > 0


@pytest.mark.parametrize("name", sb.recipes)
def test_every_recipe(name: str, tmp_path: Path) -> None:
    recipe = sb.recipes[name]
    given = None
    if recipe.source == "delayed":
        given = np.full((1, 1), 2, np.float32)
    q = sb.quantize(X, name, transposed=True, inverse_scales=given)
    assert q.recipe == recipe
    t = q.transposed
    assert same(np.ascontiguousarray(q.codes.T), t.codes)
    assert same(np.ascontiguousarray(q.scales.T), t.scales)
    assert same(np.ascontiguousarray(q.dequantize().T), t.dequantize())
    error = np.abs(q.dequantize() - X)
    saturates = recipe.scale in ("mx_floor", "mx_even") or recipe.scale.startswith("nvfp4")
    relative = 2.0 ** -(sb.finfo(recipe.code_format).mantissa_bits + (0 if saturates else 1))
    absolute = 2**-9 if recipe.code_format == "e4m3" else 2**-3
    assert np.all(error <= np.abs(X) * relative + np.abs(X).max() * absolute)
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


def test_files_that_are_no_quantized_tensors(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    for content in (b"", b"12345678", b"\xff" * 64, (2).to_bytes(8, "little") + b"{}"):
        path.write_bytes(content)
        with pytest.raises(sb.InvalidArgument, match="x.safetensors"):
            sb.load_quantized(path)


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
def test_exact_product() -> None:
    a = np.float32(RNG.integers(-8, 8, (5, 64)))
    b = np.float32(RNG.integers(-8, 8, (64, 3)))
    assert np.array_equal(sb.matmul(a, b), a @ b)
    assert np.array_equal(sb.matmul(a, b, out="fp64"), a.astype("f8") @ b.astype("f8"))
    c = np.ones((5, 3), np.float32)
    assert np.array_equal(sb.matmul(a, b, c=c), a @ b + 1)
    out = np.empty((5, 3), np.float16)
    assert sb.matmul(a, b, out=out) is out


def test_ascending_product() -> None:
    a, b = X[:2, :32].copy(), X[2:4, :32].T
    want = np.zeros((2, 2), np.float32)
    for k in range(32):
        want += a[:, k : k + 1] * b[k : k + 1]
    assert same(sb.matmul(a, b, sum="ieee_fp32"), want)


def test_tensor_core_of_quantized_tensors() -> None:
    a = sb.quantize(X[:16], "TE_CURRENT")
    w = sb.quantize(X[16:32], "TE_CURRENT", transposed=True)
    plain = sb.matmul(a.codes, w.codes.T, unit="hopper_fp8", a_scales=a.scales,
                      b_scales=w.scales, out="bf16")
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
