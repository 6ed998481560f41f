# Every statistic of `tensor` and every code of `convert` on the sample, against NumPy and
# ml_dtypes.
#
# Run by SAMEBITS_PYTHON where that is set and the plain interpreter lacks them; skipped otherwise.
import math
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
FORMAT_OF = {"F32": "fp32", "F16": "fp16", "BF16": "bf16", "F8_E4M3": "e4m3"}
TARGETS = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16,
           "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
           "e3m2": ml_dtypes.float6_e3m2fn, "e2m3": ml_dtypes.float6_e2m3fn,
           "e2m1": ml_dtypes.float4_e2m1fn, "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
           "e5m2fnuz": ml_dtypes.float8_e5m2fnuz}
FNUZ_OR_FN = {"e3m2": 28.0, "e2m3": 7.5, "e2m1": 6.0}  # saturate; the rest show Inf or NaN


def cast(name, exact):
    """float32 elements rounded into the format, as float64; all sources are float32 exactly."""
    if name != "tf32":
        return exact.astype(TARGETS[name]).astype(np.float64)
    bits = exact.view(np.uint32).astype(np.uint64)
    bits = (bits + 0xFFF + (bits >> 13 & 1)) & ~np.uint64(0x1FFF)  # to nearest even at bit 13
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def largest_of(name):
    return (2 - 2.0**-10) * 2.0**127 if name == "tf32" else float(ml_dtypes.finfo(TARGETS[name]).max)


def smallest_normal(name):
    return 2.0**-126 if name == "tf32" else float(ml_dtypes.finfo(TARGETS[name]).smallest_normal)


def tree_sum(sums):
    while len(sums) > 1:
        even = len(sums) & ~1
        sums = np.concatenate([sums[0:even:2] + sums[1:even:2], sums[even:]])
    return float(sums[0]) if len(sums) else 0.0


def effect(name, exact):
    x = exact.astype(np.float64)
    y = cast(name, exact)
    some = np.isfinite(x) & (x != 0)
    overflow = np.isfinite(x) & ~np.isfinite(y)
    if name in FNUZ_OR_FN:
        largest = FNUZ_OR_FN[name]
        step = largest - float(np.nextafter(TARGETS[name](largest), TARGETS[name](0)))
        overflow = np.isfinite(x) & (np.abs(x) >= largest + step / 2)  # max is odd: a tie goes up
    paired = np.isfinite(x) & np.isfinite(y)
    signal = tree_sum(np.where(paired, x * x, 0.0))
    noise = tree_sum(np.where(paired, (x - y) * (x - y), 0.0))
    saturated = np.where(overflow, np.copysign(largest_of(name), x), y)
    both = np.isfinite(x) & np.isfinite(saturated)
    statistics = {"underflow": int((some & (y == 0)).sum()),
               "subnormal": int((some & (y != 0) & (np.abs(y) < smallest_normal(name))).sum()),
               "overflow": int(overflow.sum()),
               "to_inf": int((np.isfinite(x) & np.isinf(y)).sum()),
               "to_nan": int((~np.isnan(x) & np.isnan(y)).sum()),
               "to_max": int((~np.isfinite(x) & np.isfinite(y)).sum()),
               "changed": int(((x != y) & ~(np.isnan(x) & np.isnan(y))).sum()),
               "signal": signal, "noise": noise,
               "saturated_signal": tree_sum(np.where(both, x * x, 0.0)),
               "saturated_noise": tree_sum(np.where(both, (x - saturated) * (x - saturated), 0.0))}
    return {**statistics, **cli_support.ratios(statistics, x.size)}


def elements(dtype, shape, raw):
    return np.frombuffer(raw, SOURCES[dtype]).reshape(shape).astype(np.float32)


class AgainstNumPy(cli_support.CliTest):
    @classmethod
    def setUpClass(cls):
        cls.sample = os.environ.get("SAMEBITS_SAMPLE", cli_support.SAMPLE)
        cls.tensors = cli_support.read_safetensors(cls.sample)

    def test_statistics(self):
        shown = self.ok_json("tensor", self.sample)["tensors"]
        self.assertEqual({t["name"] for t in shown}, set(self.tensors))
        for tensor in shown:
            dtype, shape, raw = self.tensors[tensor["name"]]
            exact = elements(dtype, shape, raw).ravel()
            magnitudes = np.abs(exact.astype(np.float64))
            nonzero = magnitudes[magnitudes > 0]
            binades, counts = np.unique(np.frexp(nonzero)[1] - 1, return_counts=True)
            amax = float(magnitudes.max())
            scale = max(k for k in range(-200, 200) if math.ldexp(amax, k) < 65520)
            self.assertTrue(np.isfinite(exact).all())
            for name, found in tensor.pop("loss_scales").items():
                if found["log2"] > 100 or name not in TARGETS:
                    continue  # the products are beyond binary32, or NumPy lacks the format
                best, next_scale = (effect(name, np.ldexp(exact, found["log2"] + more))
                                    for more in (0, 1))
                self.assertEqual((best["underflow"], best["overflow"]), (found["underflow"], 0))
                self.assertGreater(next_scale["overflow"], 0)
            self.assertEqual(tensor, {
                "name": tensor["name"], "dtype": dtype, "from": FORMAT_OF[dtype], "shape": shape, "count": exact.size,
                "zeros": int((exact == 0).sum()), "nan": 0, "inf": 0, "amax": amax,
                "min_nonzero": float(nonzero.min()), "fp16_loss_scale_log2": scale,
                "exponents": {str(b): int(c) for b, c in zip(binades, counts)},
                "formats": {name: effect(name, exact) for name in ["tf32", *TARGETS]},
                "amax_code": tensor["amax_code"], "min_nonzero_code": tensor["min_nonzero_code"]})

    def test_distributions(self):
        """--stats on the sample: sums in the order of the tree, and NumPy's own to 6 digits."""
        for tensor in self.ok_json("tensor", self.sample, "--stats")["tensors"]:
            dtype, shape, raw = self.tensors[tensor["name"]]
            x = elements(dtype, shape, raw).astype(np.float64)
            flat, got = x.ravel(), tensor["statistics"]
            magnitudes = np.abs(flat)
            mean = tree_sum(flat) / flat.size
            smallest = float(magnitudes[magnitudes > 0].min())
            ordered = np.sort(flat) + 0.0
            expected = {
                "zeros": int((flat == 0).sum()), "nan": 0, "inf": 0, "min": float(flat.min()),
                "max": float(flat.max()), "amax": float(magnitudes.max()), "min_nonzero": smallest,
                "dynamic_range_log2": math.log2(magnitudes.max()) - math.log2(smallest),
                "mean": mean, "std": math.sqrt(tree_sum((flat - mean) * (flat - mean)) / flat.size),
                "l1_norm": tree_sum(magnitudes), "l2_norm": math.sqrt(tree_sum(flat * flat)),
                "percentiles": {str(p): float(ordered[-(-flat.size * p // 100) - 1])
                                for p in (1, 5, 25, 50, 75, 95, 99)}}
            self.assertEqual({key: got[key] for key in expected}, expected)
            for key, value in {"mean": flat.mean(), "std": flat.std(),
                               "l1_norm": np.linalg.norm(flat, 1),
                               "l2_norm": np.linalg.norm(flat)}.items():
                self.assertAlmostEqual(got[key] / value, 1, places=9, msg=key)
            for p, value in got["percentiles"].items():
                self.assertEqual(value, np.percentile(flat, int(p), method="inverted_cdf"))
            for key, axis in ("rows", 1), ("columns", 0):
                if x.ndim < 2:
                    self.assertIsNone(got[key])
                    continue
                amaxes = np.abs(x).max(axis=axis)
                self.assertEqual(got[key], {
                    "channels": amaxes.size, "zero": int((amaxes == 0).sum()), "not_finite": 0,
                    "smallest_amax": float(amaxes[amaxes > 0].min()),
                    "median_amax": float(np.percentile(amaxes, 50, method="inverted_cdf")),
                    "largest_amax": float(amaxes.max()), "largest": int(amaxes.argmax())})

    def test_loss_scale(self):
        """The verdict's scale and its losses, by a search over all scales."""
        verdict = self.ok_json("tensor", self.sample)["verdict"]
        scale = verdict["fp16_loss_scale"]
        names = [name for name in self.tensors if name.startswith("grad.")]
        each = [elements(*self.tensors[name]).ravel().astype(np.float64) for name in names]
        each = [gradient[gradient != 0] for gradient in each]
        gradients = np.concatenate(each)
        losses = {}

        def meets(gradient, k):
            x = np.ldexp(gradient, k)
            rounded = x.astype(np.float16).astype(np.float64)
            noise = ((x - rounded)**2).sum()
            return 100 * (rounded == 0).sum() < x.size and (x**2).sum() >= 1000 * noise  # 30 dB

        with np.errstate(over="ignore", under="ignore"):
            for k in range(-60, 160):
                rounded = np.ldexp(gradients, k).astype(np.float16)
                losses[k] = int((rounded == 0).sum()), int(np.isinf(rounded).sum())
        self.assertEqual(scale["nonzero"], gradients.size)
        self.assertEqual(scale["log2"], max(k for k in losses if losses[k][1] == 0))
        safe = [losses[k][0] for k in losses if losses[k][1] == 0]
        self.assertEqual(losses[scale["log2"]][0], min(safe))
        enough = scale["smallest_log2_that_meets_the_need"]
        self.assertEqual(enough, min(k for k in range(-60, scale["log2"])
                                     if all(meets(gradient, k) for gradient in each)))
        for loss in [scale["without"], *scale["scales"]]:
            self.assertEqual((loss["underflow"], loss["overflow"]), losses[loss["log2"]], loss)
        (role,) = [r for r in verdict["roles"] if r["role"] == "gradients"]
        (tried,) = [t for t in role["tried"] if t["choice"] == "fp16, loss scale"]
        lowest = []
        for name in names:
            x = np.ldexp(elements(*self.tensors[name]).astype(np.float64), scale["log2"])
            d = x - x.astype(np.float16).astype(np.float64)
            lowest.append((10 * math.log10((x * x).sum() / (d * d).sum()), name))
        self.assertEqual(tried["lowest_sqnr"]["tensor"], min(lowest)[1])
        self.assertAlmostEqual(tried["lowest_sqnr"]["sqnr_db"], min(lowest)[0], places=9)

    def test_codes(self):
        for name, (dtype, shape, raw) in self.tensors.items():
            exact = elements(dtype, shape, raw)
            for to, target in TARGETS.items():
                descr, got_shape, data = self.convert(f"{self.sample}#{name}", "--to", to)
                expected = exact.astype(target)
                self.assertEqual((int(descr[2]), list(got_shape)), (expected.itemsize, shape))
                self.assertEqual(data, expected.tobytes(), (name, to))

    def test_archives_that_numpy_writes(self):
        """Every array of savez and savez_compressed is read as NumPy reads it."""
        random = np.random.default_rng(7)
        arrays = {"f4": random.standard_normal((64, 48)).astype(np.float32),
                  "f2": random.standard_normal((5, 7)).astype(np.float16),
                  "big": random.standard_normal((3, 4)).astype(">f8"),
                  "fortran": np.asfortranarray(random.standard_normal((6, 5)).astype(np.float32)),
                  "i2": np.arange(-8, 8, dtype=np.int16), "u1": np.arange(6, dtype=np.uint8),
                  "scalar": np.float32(0.1), "none": np.zeros((0, 3), np.float32),
                  "zeros": np.zeros((300, 500), np.float32)}
        for save in np.savez, np.savez_compressed:
            path = self.path(save.__name__ + ".npz")
            save(path, **arrays)
            tensors = self.ok_json("tensor", path)["tensors"]
            if tensors[0]["dtype"] is None:
                self.assertEqual(save, np.savez_compressed)
                self.assertIn("this build has no zlib", tensors[0]["note"])
                continue
            self.assertEqual([t["name"] for t in tensors], list(arrays))
            for tensor, (name, array) in zip(tensors, arrays.items()):
                alone = self.path("alone.npy")
                np.save(alone, array)
                (expected,) = self.ok_json("tensor", alone)["tensors"]
                self.assertEqual(tensor, {**expected, "name": name})
                _, shape, data = self.convert(f"{path}#{name}", "--to", "fp32")
                expected = array.astype(np.float32).tobytes()
                self.assertEqual((shape, data), (array.shape, expected), name)

    def test_numpy_reads_what_convert_writes(self):
        name, (dtype, shape, raw) = next(iter(self.tensors.items()))
        target = self.path("o.npy")
        self.ok("convert", f"{self.sample}#{name}", target, "--to", "fp16", "--decode", "--json")
        loaded = np.load(target)
        self.assertEqual((loaded.dtype, loaded.flags.c_contiguous), (np.dtype("<f4"), True))
        expected = elements(dtype, shape, raw).astype(np.float16).astype(np.float32)
        self.assertEqual(loaded.tobytes(), expected.tobytes())


if __name__ == "__main__":
    cli_support.main()
