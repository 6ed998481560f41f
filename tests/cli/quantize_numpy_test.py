# Every code, scale and statistic of `quantize` on the sample, against NumPy's float32 steps and
# ml_dtypes' casts.
#
# Run by SAMEBITS_PYTHON where that is set and the plain interpreter lacks them; skipped otherwise.
import os
import sys
import unittest

import cli_support

try:
    import ml_dtypes
    import numpy as np
except ImportError as missing:
    other = os.environ.pop("SAMEBITS_PYTHON", None)
    if other:
        os.execv(other, [other, *sys.argv])
    print(f"skipped: {missing}")
    sys.exit(cli_support.SKIPPED)

SOURCES = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
           "F8_E4M3": ml_dtypes.float8_e4m3fn}
TARGETS = {"e4m3": (ml_dtypes.float8_e4m3fn, np.float32(448)),
           "e5m2": (ml_dtypes.float8_e5m2, np.float32(57344))}
ONE = np.float32(1)
FLT_MAX = np.finfo(np.float32).max
SMALLEST_NORMAL = np.finfo(np.float32).tiny
FIRST = ["te", "div", "rcp", "pow2"]
FURTHER = ["dg_cuda", "dg_tile", "sgl_v2", "te_pow2", "mx_floor", "mx_ceil", "mx_even", "mx_rceil"]


def mx_exponent(rule, largest, a):
    """k of s = 2^k."""
    if rule == "mx_rceil":
        fraction, exponent = np.frexp(a / largest)
        return int(exponent) - (1 if fraction == 0.5 else 0) if fraction else -127
    fraction, exponent = np.frexp(a)  # 0.5 <= fraction < 1
    exponent = int(exponent) - 1
    if rule == "mx_ceil" and fraction != 0.5:
        exponent += 1
    if rule == "mx_even":
        steps = np.float32(16 if largest == 448 else 8)
        exponent += 1 if np.rint(fraction * steps) == steps else 0
    return exponent - (8 if largest == 448 else 15)


def scale(rule, largest, a):
    """(s, scaled elements of x) for a finite amax a > 0."""
    if rule in ("te", "te_pow2"):
        factor = min(largest / a, FLT_MAX)
        if rule == "te_pow2":
            factor = np.ldexp(ONE, int(np.frexp(factor)[1]) - 1)
        return ONE / factor, lambda x: x * factor
    if rule.startswith("mx_"):
        k = min(max(mx_exponent(rule, largest, a), -127), 127)
        r = np.ldexp(ONE, -k)
        return np.ldexp(ONE, k), lambda x: x * r
    s = max(a * (ONE / largest) if rule in ("dg_cuda", "sgl_v2") else a / largest, SMALLEST_NORMAL)
    if rule in ("dg_tile", "sgl_v2"):
        inverse = min(largest / a, ONE / SMALLEST_NORMAL)
        return s, lambda x: x * inverse
    if rule == "pow2":
        fraction, exponent = np.frexp(s)  # 0.5 <= fraction < 1
        s = np.ldexp(ONE, int(exponent) - (1 if fraction == 0.5 else 0))
    if rule == "div":
        return s, lambda x: x / s
    r = ONE / s
    return s, lambda x: x * r


def cast(y, to):
    """Saturating codes, and how many elements saturate: 464 is a tie of e4m3 that stays, 61440 one
    of e5m2 that does not."""
    target, largest = TARGETS[to]
    beyond = np.abs(y) > 464 if to == "e4m3" else np.abs(y) >= 61440
    return np.clip(y, -largest, largest).astype(target), int(beyond.sum())


def tree_sum(sums):
    while len(sums) > 1:
        even = len(sums) & ~1
        sums = np.concatenate([sums[0:even:2] + sums[1:even:2], sums[even:]])
    return float(sums[0]) if len(sums) else 0.0


def quantize(x, block, rule, to, eps):
    rows, cols = block[0] or x.shape[0], block[1] or x.shape[1]
    shape = -(-x.shape[0] // rows), -(-x.shape[1] // cols)
    codes = np.zeros(x.shape, TARGETS[to][0])
    scales = np.zeros(shape, np.float32)
    restored = np.zeros(x.shape, np.float32)
    saturated = 0
    for r in range(shape[0]):
        for c in range(shape[1]):
            at = np.s_[r * rows:(r + 1) * rows, c * cols:(c + 1) * cols]
            a = max(np.abs(x[at]).max(), np.float32(eps))
            s, scaled = (ONE, lambda e: e) if a == 0 else scale(rule, TARGETS[to][1], a)
            codes[at], beyond = cast(scaled(x[at]), to)
            saturated += beyond
            scales[r, c] = s
            restored[at] = codes[at].astype(np.float32) * s
    return codes, scales, restored, saturated


class AgainstNumPy(cli_support.CliTest):
    def check(self, source, x, block, rule, to, eps):
        target = self.path("o.safetensors")
        document = self.ok_json("quantize", source, target, "--to", to, "--scale-rule", rule,
                                "--tile", f"{block[0]}x{block[1]}", "--eps", repr(eps),
                                "--transposed")
        written = cli_support.read_safetensors(target)
        codes, scales, restored, saturated = quantize(x, block, rule, to, eps)
        where = (source, block, rule, to, eps)
        for name, expected in [("codes", codes), ("codes_t", codes.T), ("scales", scales),
                               ("scales_t", scales.T)]:
            self.assertEqual(written[name][1], list(expected.shape), where)
            self.assertEqual(written[name][2], np.ascontiguousarray(expected).tobytes(),
                             (name, where))
        wide, back = x.astype(np.float64).ravel(), restored.astype(np.float64).ravel()
        values = codes.astype(np.float32)
        nonzero = np.abs(x[x != 0])
        self.assertEqual(document["statistics"], {
            "count": x.size, "zeros": int((x == 0).sum()), "nan": 0, "inf": 0,
            "amax": float(np.abs(x).max()), "min_nonzero": float(nonzero.min()),
            "signal": tree_sum(wide * wide), "noise": tree_sum((wide - back) * (wide - back))})
        self.assertEqual(document["underflowed"], int(((x != 0) & (values == 0)).sum()))
        self.assertEqual(document["saturated"], saturated, where)
        self.ok_json("dequantize", target, self.path("b.npy"))
        self.assertEqual(np.load(self.path("b.npy")).tobytes(), restored.tobytes(), where)

    def test_sample(self):
        for name, (dtype, shape, raw) in cli_support.read_safetensors(cli_support.SAMPLE).items():
            if dtype not in ("F32", "F16", "BF16"):
                continue
            x = np.frombuffer(raw, SOURCES[dtype]).astype(np.float32)
            x = x.reshape(-1, shape[-1])
            for block in [(1, 128), (128, 128), (32, 1), (0, 0)]:
                for rule in FIRST + (FURTHER if block == (1, 128) else []):
                    to, eps = ("e5m2", 1e-4) if block == (32, 1) else ("e4m3", 0.0)
                    self.check(f"{cli_support.SAMPLE}#{name}", x, block, rule, to, eps)

    def test_tails_and_wide_ranges(self):
        random = np.random.default_rng(3)
        exponents = random.integers(-140, 120, (37, 1))
        x = np.ldexp(random.standard_normal((37, 83)), exponents).astype(np.float32)
        x[5] = 0
        x[6, ::2] = -0.0
        x[7, 1:] = 0
        x[7, 0] = 1e-45
        source = self.path("x.npy")
        np.save(source, x)
        for block in [(1, 16), (16, 1), (64, 64), (1, 0), (0, 1)]:
            for rule in FIRST + FURTHER:
                for to in TARGETS:
                    self.check(source, x, block, rule, to, 0.0)


if __name__ == "__main__":
    np.seterr(all="ignore")
    cli_support.main()
