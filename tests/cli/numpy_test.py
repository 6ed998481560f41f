# The loss scale of the sample by NumPy's fp16, and files that NumPy writes and reads.
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


def elements(dtype, shape, raw):
    return np.frombuffer(raw, SOURCES[dtype]).reshape(shape).astype(np.float32)


class AgainstNumPy(cli_support.CliTest):
    @classmethod
    def setUpClass(cls):
        cls.sample = os.environ.get("SAMEBITS_SAMPLE", cli_support.SAMPLE)
        cls.tensors = cli_support.read_safetensors(cls.sample)

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
