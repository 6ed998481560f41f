# `fpinspect tensor --stats` on small files. That the figures are right: unit.cast_statistics.
import math
import struct

import cli_support
from cli_support import SAMPLE, floats, read_safetensors, write_npy, write_safetensors

INF, NAN = math.inf, math.nan


class Stats(cli_support.CliTest):
    def stats(self, path, *arguments):
        return self.ok_json("tensor", path, "--stats", *arguments)["tensors"]

    def scales(self, values, shape):
        path = write_npy(self.path("x.npy"), "<f4", shape, floats(*values))
        return self.stats(path)[0]["statistics"]["scales"]

    def test_every_figure(self):
        values = [2.5, -1.0, 0.0, NAN, 1.0, -5.0, -0.0, INF, 3.0, 0.5, 0.0, NAN, NAN, -INF, NAN, NAN]
        path = write_npy(self.path("x.npy"), "<f4", (4, 4), floats(*values))
        (tensor,) = self.stats(path)
        figures = tensor["statistics"]
        self.assertEqual([scale["recipe"] for scale in figures.pop("scales")],
                         ["TE_BLOCK_2D", "TE_BLOCK_1D", "MXFP8_TE"])
        self.assertEqual(figures, {
            "zeros": 3, "nan": 5, "inf": 2, "min": -5, "max": 3, "amax": 5, "min_nonzero": 0.5,
            "dynamic_range_log2": math.log2(10), "mean": 1 / 9, "std": 2.1702249982916233, "l1_norm": 13,
            "l2_norm": math.sqrt(42.5),
            "percentiles": {"1": -5, "5": -5, "25": 0, "50": 0, "75": 1, "95": 3, "99": 3},
            "rows": {"channels": 4, "zero": 0, "not_finite": 1, "smallest_amax": 2.5, "median_amax": 3,
                     "largest_amax": 5, "largest": 1},
            "columns": {"channels": 4, "zero": 1, "not_finite": 1, "smallest_amax": 3, "median_amax": 3,
                        "largest_amax": 5, "largest": 1}})

    def test_missing_figures(self):
        (tensor,) = self.stats(write_npy(self.path("x.npy"), "<f4", (0, 3), b""))
        self.assertEqual({key for key, value in tensor["statistics"].items() if value is None},
                         {"min", "max", "amax", "min_nonzero", "dynamic_range_log2", "mean", "std",
                          "percentiles", "rows", "columns"})
        (tensor,) = self.stats(write_npy(self.path("x.npy"), "<f4", (2, 1), floats(NAN, INF)))
        self.assertEqual(tensor["statistics"]["rows"], {
            "channels": 2, "zero": 0, "not_finite": 2, "smallest_amax": 0, "median_amax": 0,
            "largest_amax": 0, "largest": 0})

    def test_other_elements(self):
        """Those of the same numbers in fp64."""
        for descr, code, values in [
                ("<f4", "f", [0.5, -7, 0, NAN, INF, 12]), (">f2", "e", [0.5, -7, 0, NAN, INF, 12]),
                ("<i2", "h", [5, -7, 0, 32767, -32768, 12]), ("<i8", "q", [2**52 + 1, -(2**53), 3, 0, 1, 1])]:
            path = write_npy(self.path("x.npy"), descr, (2, 3), struct.pack(f"{descr[0]}6{code}", *values))
            (tensor,) = self.stats(path)
            same = write_npy(self.path("y.npy"), "<f8", (2, 3), struct.pack("<6d", *values))
            (expected,) = self.stats(same)
            self.assertEqual({**tensor["statistics"], "scales": []}, expected["statistics"], descr)

    def test_rows_and_columns_without_finite_values(self):
        path = write_npy(self.path("x.npy"), "<f4", (3, 2), floats(NAN, NAN, 0, 0, 1, NAN))
        self.assertIn("3 rows: amax 1 to 1 (1 x), median 0, max in 2, 1 all 0, "
                      "1 without a finite value\n", self.ok("tensor", path, "--stats").out)
        path = write_npy(self.path("x.npy"), "<f4", (2, 2), floats(NAN, NAN, NAN, NAN))
        self.assertIn("2 rows: no finite value\n", self.ok("tensor", path, "--stats").out)

    def test_more_than_a_chunk(self):
        scales = self.scales([1.0] * 70000, (7, 10000))
        self.assertEqual([s["tiles"] for s in scales], [79, 7 * 79, 7 * 313])

    def test_scales_are_those_that_quantize_writes(self):
        for name in "grad.preactivation.fc1", "weight.fc2.bf16":
            (tensor,) = self.stats(f"{SAMPLE}#{name}")
            for range_ in tensor["statistics"]["scales"]:
                path = self.path("q.safetensors")
                self.ok_json("quantize", f"{SAMPLE}#{name}", path, "--recipe", range_["recipe"])
                (dtype, _, raw), = [t for key, t in read_safetensors(path).items() if "scale" in key]
                log2 = ([code - 127 for code in raw] if dtype == "F8_E8M0" else
                        [math.frexp(s)[1] - 1 for s in struct.unpack(f"<{len(raw) // 4}f", raw)])
                self.assertEqual((range_["tiles"], range_["zero_tiles"]), (len(log2), 0))
                self.assertEqual((range_["smallest_log2"], range_["largest_log2"]),
                                 (min(log2), max(log2)))

    def test_tiles_of_zeros_have_no_scale(self):
        values = [0.0] * (3 * 300)
        values[0] = 448.0
        values[2 * 300 + 299] = 448.0 * 2**-20
        values[300 + 150] = -0.0
        two_d, one_d, mx = self.scales(values, (3, 300))
        self.assertEqual(one_d, {"recipe": "TE_BLOCK_1D", "tiles": 9, "zero_tiles": 7,
                                 "smallest_log2": -20, "largest_log2": 0})
        self.assertEqual((two_d["tiles"], two_d["zero_tiles"]), (3, 1))
        self.assertEqual((mx["tiles"], mx["zero_tiles"], mx["smallest_log2"], mx["largest_log2"]),
                         (30, 28, -20, 0))
        for scale in self.scales([0.0] * 9, (3, 3)):
            self.assertEqual((scale["zero_tiles"], scale["smallest_log2"]), (scale["tiles"], None))

    def test_text_has_the_figures(self):
        path = write_safetensors(self.path("m.safetensors"), [
            ("a", "F32", (2, 3), floats(1, -2, 3, 0, 0.5, -6.25)), ("b", "BOOL", (2,), bytes(2)),
            ("c", "F32", (0, 3), b"")])
        self.assertEqual(self.ok("tensor", path, "--stats").out, """\
a  fp32 [2, 3]  6 elements
  min -6.25   max 3   mean -0.625   std 2.91458
  zeros 1 (16.67 %)   NaN 0   Inf 0   L1 norm 12.75   L2 norm 7.30154
  amax 6.25   smallest non-zero 0.5   their ratio 2^3.6
  percentiles
        1 %        5 %       25 %       50 %       75 %       95 %       99 %
      -6.25      -6.25         -2          0          1          3          3
  2 rows: amax 3 to 6.25 (2.08 x), median 3, max in 1
  3 columns: amax 1 to 6.25 (6.25 x), median 2, max in 2
  scales of 128x128 tiles 2^-6   (TE_BLOCK_2D, 1 tile)
  scales of 1x128 tiles   2^-7 to 2^-6   (TE_BLOCK_1D, 2 tiles)
  scales of 1x32 blocks   2^-7 to 2^-6   (MXFP8_TE, 2 tiles)

b  [2]  2 elements
  elements are neither floating point nor integers

c  fp32 [0, 3]  0 elements
  min -   max -   mean -   std -
  zeros 0 (-)   NaN 0   Inf 0   L1 norm 0   L2 norm 0
  amax -   smallest non-zero -   their ratio -
""")
        for line in self.ok("tensor", SAMPLE, "--stats").out.splitlines():
            self.assertLessEqual(len(line), 80)
        self.assertIsNone(self.stats(path, "--tensor", "b")[0]["statistics"])

    def test_options(self):
        for option in (["--recipes"], ["--list"], ["--to", "fp16"], ["--all-formats"], ["--ascii"],
                       ["--need", "30dB"], ["--role", "a=weights"], ["--details", "a"]):
            self.fails(2, "tensor", SAMPLE, "--stats", *option, says=["--stats", option[0]])
        for option in ["--json"], ["--recipes"], ["--to", "fp16"], ["--details", "a"]:
            self.fails(2, "tensor", SAMPLE, "--list", *option, says=["--list", option[0]])
