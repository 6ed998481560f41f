# `fpinspect tensor --stats` on small files, against sorted lists and the tree of sums.
import math
import random
import struct

import cli_support
from cli_support import SAMPLE, floats, read_safetensors, tree_sum, write_npy, write_safetensors

PERCENTAGES = [1, 5, 25, 50, 75, 95, 99]


def channels(rows):
    """Of lists of numbers."""
    amaxes = [max((abs(x) for x in row if math.isfinite(x)), default=None) for row in rows]
    some = [a for a in amaxes if a is not None]
    nonzero = [a for a in some if a]
    return {"channels": len(amaxes), "zero": len(some) - len(nonzero),
            "not_finite": len(amaxes) - len(some),
            "smallest_amax": min(nonzero, default=0), "largest_amax": max(some, default=0),
            "median_amax": sorted(some)[(len(some) - 1) // 2] if some else 0,
            "largest": amaxes.index(max(some)) if some else 0}


def scale_of_sums(finite):
    """The power of two for sums whose squares could leave the range of binary64."""
    amax = max(map(abs, finite), default=0)
    return 0 if amax == 0 or 2.0**-500 <= amax < 2.0**500 else 1 - math.frexp(amax)[1]


def unscaled(x, log2):
    """None if the number is beyond binary64."""
    try:
        return math.ldexp(x, -log2)
    except OverflowError:
        return None


def expected(values, shape):
    """Everything but the scales."""
    finite = [x for x in values if math.isfinite(x)]
    nonzero = [abs(x) for x in finite if x]
    log2 = scale_of_sums(finite)
    scaled = lambda x: math.ldexp(x, log2)
    summed = lambda f: tree_sum([f(scaled(x)) if math.isfinite(x) else 0.0 for x in values])
    result = {"zeros": len(finite) - len(nonzero), "nan": sum(map(math.isnan, values)),
              "inf": sum(map(math.isinf, values)), "min": None, "max": None, "amax": None,
              "min_nonzero": None, "dynamic_range_log2": None, "mean": None, "std": None,
              "l1_norm": unscaled(summed(abs), log2),
              "l2_norm": unscaled(math.sqrt(summed(lambda x: x * x)), log2),
              "percentiles": None, "rows": None, "columns": None}
    if nonzero:
        result["min_nonzero"] = min(nonzero)
        result["dynamic_range_log2"] = math.log2(max(nonzero)) - math.log2(min(nonzero))
    if finite:
        mean = summed(lambda x: x) / len(finite)
        ordered = sorted(finite)
        result.update(
            min=min(finite), max=max(finite), amax=max(map(abs, finite)),
            mean=math.ldexp(mean, -log2),
            std=math.ldexp(math.sqrt(summed(lambda x: (x - mean) * (x - mean)) / len(finite)), -log2),
            percentiles={str(p): ordered[max(1, -(-len(finite) * p // 100)) - 1]
                         for p in PERCENTAGES})
    if len(shape) > 1 and values:
        width = shape[-1]
        result["rows"] = channels([values[i:i + width] for i in range(0, len(values), width)])
        result["columns"] = channels([values[i::width] for i in range(width)])
    return result


class Stats(cli_support.CliTest):
    def stats(self, path, *arguments):
        return self.ok_json("tensor", path, "--stats", *arguments)["tensors"]

    def check(self, values, shape, descr="<f4", code="f", *arguments):
        path = write_npy(self.path("x.npy"), descr, shape,
                         struct.pack(f"<{len(values)}{code}", *values))
        (tensor,) = self.stats(path, *arguments)
        self.assertEqual((tensor["shape"], tensor["count"]), (list(shape), len(values)))
        scales = tensor["statistics"].pop("scales")
        self.assertEqual(tensor["statistics"], expected(values, shape))
        return scales

    def test_small_tensors(self):
        inf, nan = math.inf, math.nan
        self.check([], (0, 3))
        self.check([1.5], ())
        self.check([nan, inf, -inf], (3,))
        self.check([0.0, -0.0], (2,))
        self.check([-0.0, -2.5, nan, 4.0, 1.0, -inf], (2, 3))
        self.check([0.0] * 6, (2, 3))
        self.check([float(i) for i in range(100)], (100,))
        self.check([float(i) for i in range(101)], (101,))
        self.check([-float(i) for i in range(200)], (5, 2, 20))
        self.check([1.0, 2.0, 0.0, 0.0, -3.0, 0.0, 0.0, 0.0], (4, 2))

    def test_values_that_differ_in_late_bits(self):
        """Each pass of the percentiles decides some of them."""
        for code, descr, ulp, fine in ("f", "<f4", 2.0**-23, 8), ("d", "<f8", 2.0**-52, 24), (
                "e", "<f2", 2.0**-10, 4):
            for sign in 1, -1:
                values = [sign * (1 + ulp * (i * 37 % 997 % (1 << fine) % 512)) for i in range(600)]
                self.check(values, (600,), descr, code)
                self.check([sign * ulp * ulp * (1 + i % 7) if code != "e" else sign * 2.0**-24 *
                            (1 + i % 7) for i in range(50)], (50,), descr, code)

    def test_random_numbers_of_all_magnitudes(self):
        draw = random.Random(5)
        for code, descr, low, high in ("f", "<f4", -149, 127), ("d", "<f8", -400, 400), (
                "e", "<f2", -24, 15):
            values = []
            for _ in range(3000):
                x = math.ldexp(draw.uniform(-1.9, 1.9), draw.randint(low, high))
                values.append(struct.unpack("<" + code, struct.pack("<" + code, x))[0])
            self.check(values, (60, 50), descr, code)

    def test_fp64_whose_squares_leave_its_range(self):
        self.check([1e300, -3e299, 0.0, 5e-324], (2, 2), "<f8", "d")
        self.check([1e-300, -3e-299, 0.0, 5e-324], (2, 2), "<f8", "d")
        self.check([5e-324, -1.5e-323], (2,), "<f8", "d")
        self.check([2.0**1023, 2.0**1023, -(2.0**1000)], (3,), "<f8", "d")
        for edge in 2.0**500, 2.0**-500:
            for x in edge, math.nextafter(edge, 0):
                self.check([x, 0.75 * x, -x], (3,), "<f8", "d")

    def test_rows_and_columns_without_finite_values(self):
        nan = math.nan
        self.check([nan, nan, nan, 0.0, nan, 0.0, 1.0, nan, -2.0], (3, 3))
        self.check([nan, nan, math.inf, nan], (2, 2))
        path = write_npy(self.path("x.npy"), "<f4", (3, 2), floats(nan, nan, 0, 0, 1, nan))
        self.assertIn("3 rows: amax 1 to 1 (1 x), median 0, max in 2, 1 all 0, "
                      "1 without a finite value\n", self.ok("tensor", path, "--stats").out)
        path = write_npy(self.path("x.npy"), "<f4", (2, 2), floats(nan, nan, nan, nan))
        self.assertIn("2 rows: no finite value\n", self.ok("tensor", path, "--stats").out)

    def test_integers(self):
        self.check([5, -7, 0, 32767, -32768, 12], (2, 3), "<i2", "h")
        self.check([2**52 + 1, -(2**53), 3, 0], (4,), "<i8", "q")

    def test_more_than_a_chunk(self):
        draw = random.Random(6)
        values = list(struct.unpack("<70000f", floats(*[draw.gauss(0, 1) for _ in range(70000)])))
        scales = self.check(values, (7, 10000))
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
        two_d, one_d, mx = self.check(values, (3, 300))
        self.assertEqual(one_d, {"recipe": "TE_BLOCK_1D", "tiles": 9, "zero_tiles": 7,
                                 "smallest_log2": -20, "largest_log2": 0})
        self.assertEqual((two_d["tiles"], two_d["zero_tiles"]), (3, 1))
        self.assertEqual((mx["tiles"], mx["zero_tiles"], mx["smallest_log2"], mx["largest_log2"]),
                         (30, 28, -20, 0))
        for scale in self.check([0.0] * 9, (3, 3)):
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
