# Files that NumPy writes and reads.
#
# Run by SAMEBITS_PYTHON where that is set and the plain interpreter lacks NumPy; skipped otherwise.
import os
import sys

import cli_support

try:
    import numpy as np
except ImportError as missing:
    other = os.environ.pop("SAMEBITS_PYTHON", None)
    if other:
        os.execv(other, [other, *sys.orig_argv[1:]])
    print(f"skipped: {missing}")
    sys.exit(cli_support.SKIPPED)


class FilesOfNumPy(cli_support.CliTest):
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
        values = np.random.default_rng(8).standard_normal((5, 7)).astype(np.float32)
        source, target = self.path("i.npy"), self.path("o.npy")
        np.save(source, values)
        self.ok("convert", source, target, "--to", "fp16", "--decode", "--json")
        loaded = np.load(target)
        self.assertEqual((loaded.dtype, loaded.flags.c_contiguous), (np.dtype("<f4"), True))
        self.assertEqual(loaded.tobytes(), values.astype(np.float16).astype(np.float32).tobytes())
