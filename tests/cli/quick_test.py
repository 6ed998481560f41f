# `fpinspect tensor --quick`: counts, extremes and sums against --stats' own definition.
import math
import random
import struct

import cli_support
from cli_support import SAMPLE, floats, run, write_npy, write_safetensors
from stats_test import expected, scale_of_sums, tree_sum

SAME = ["zeros", "nan", "inf", "min", "max", "amax", "min_nonzero", "mean", "l2_norm"]


def expected_quick(values):
    all_of_them = expected(values, (len(values),))
    result = {name: all_of_them[name] for name in SAME}
    finite = [x for x in values if math.isfinite(x)]
    log2 = scale_of_sums(finite)
    squares = tree_sum([math.ldexp(x, log2)**2 if math.isfinite(x) else 0.0 for x in values])
    result["rms"] = (math.ldexp(math.sqrt(squares / len(finite)), -log2) if finite else None)
    return result


class Quick(cli_support.CliTest):
    def check(self, values, descr="<f4", code="f", *arguments):
        path = write_npy(self.path("x.npy"), descr, (len(values),),
                         struct.pack(f"{descr[0]}{len(values)}{code}", *values))
        (tensor,) = self.ok_json("tensor", path, "--quick", *arguments)["tensors"]
        self.assertEqual(tensor["count"], len(values))
        self.assertEqual(tensor["statistics"], expected_quick(values))

    def test_small_tensors(self):
        inf, nan = math.inf, math.nan
        for values in ([], [1.5], [-0.0], [nan], [inf], [nan, inf, -inf], [0.0, -0.0],
                       [-0.0, -2.5, nan, 4.0, 1.0, -inf], [-1.0, -3.0], [5.0, nan, 7.0],
                       [float(i) for i in range(-20, 33)]):
            self.check(values)
            self.check(values, "<f8", "d")
            self.check(values, ">f4", "f")

    def test_specials_at_every_position(self):
        """Loops over lanes must find them anywhere, also in the last, shorter part."""
        for count in 16, 17, 40:
            for special in math.nan, math.inf, -math.inf, 0.0, 1e-30, 1e30, -1e30:
                for at in range(count):
                    values = [1.0 + i for i in range(count)]
                    values[at] = struct.unpack("<f", struct.pack("<f", special))[0]
                    if at in (0, 5, 15, count - 1):
                        self.check(values)

    def test_random_numbers_and_chunks(self):
        draw = random.Random(8)
        for code, descr, low, high in ("f", "<f4", -149, 127), ("d", "<f8", -400, 400), (
                "e", "<f2", -24, 15):
            values = []
            for _ in range(2 * 32768 + 4097):
                x = math.ldexp(draw.uniform(-1.9, 1.9), draw.randint(low, high))
                values.append(struct.unpack("<" + code, struct.pack("<" + code, x))[0])
            self.check(values, descr, code)
            values[40000] = math.inf
            values[70] = math.nan
            self.check(values, descr, code)

    def test_fp64_whose_squares_leave_its_range(self):
        for values in ([1e300, -3e299, 0.0], [1e-300, 5e-324, 0.0], [5e-324],
                       [2.0**1023, 2.0**1023, math.nan]):
            self.check(values, "<f8", "d")

    def test_integers_and_codes(self):
        self.check([5, -7, 0, 32767, -32768, 12], "<i2", "h")
        self.check([2**52 + 1, -(2**53), 3, 0], "<i8", "q")
        path = write_npy(self.path("x.npy"), "|u1", (3,), bytes([0x38, 0xB8, 0x7F]))
        (tensor,) = self.ok_json("tensor", path, "--quick", "--from", "e4m3")["tensors"]
        self.assertEqual(tensor["statistics"], expected_quick([1.0, -1.0, math.nan]))

    def test_the_same_as_stats_for_the_sample(self):
        quick = self.ok_json("tensor", SAMPLE, "--quick")["tensors"]
        stats = self.ok_json("tensor", SAMPLE, "--stats")["tensors"]
        self.assertEqual([t["name"] for t in quick], [t["name"] for t in stats])
        for one, other in zip(quick, stats):
            for name in SAME:
                self.assertEqual(one["statistics"][name], other["statistics"][name], one["name"])

    def test_text(self):
        path = write_safetensors(self.path("m.safetensors"), [
            ("a", "F32", (2, 3), floats(1, -2, math.nan, 0, 0.5, -6.25)), ("b", "BOOL", (2,), bytes(2)),
            ("c", "F32", (0, 3), b"")])
        self.assertEqual(self.ok("tensor", path, "--quick").out, f"""\
{path}: 3 tensors, 8 values

       min       max      mean       rms  smallest    zeros  NaN, Inf  tensor
     -6.25         1     -1.35      2.98       0.5  16.67 %         1  a
         -         -         -         -         -        -         -  b: elements are neither floating point nor integers
         -         -         -         -         -        -         0  c

rms: root of the mean square   smallest: non-zero magnitude
All figures are those of the finite elements.
""")

    def test_conditions(self):
        path = write_safetensors(self.path("m.safetensors"), [
            ("a", "F32", (4,), floats(1, math.nan, 2, 3)), ("b", "F32", (2,), floats(math.inf, 0))])
        done = run("tensor", path, "--quick", "--fail-if", "nan>0,inf>60%")
        self.assertEqual((done.code, done.err), (1, "fpinspect: --fail-if nan>0: a: 1\n"))
        self.assertEqual(run("tensor", path, "--quick", "--fail-if", "nan>25%,inf>50%").code, 0)
        document = run("tensor", path, "--quick", "--fail-if", "inf>=50%", "--json")
        self.assertEqual((document.code, document.json()["fail_if"]), (1, [
            {"condition": "inf>=50%", "failed": 1, "worst": "b", "value": 50}]))
        self.fails(2, "tensor", path, "--quick", "--fail-if", "sqnr<30dB", says=["--fail-if", "nan"])
        unread = write_safetensors(self.path("u.safetensors"), [("b", "BOOL", (2,), bytes(2))])
        done = run("tensor", unread, "--quick", "--fail-if", "nan>0")
        self.assertEqual(done.code, 1)
        self.assertIn("1 tensor is not measured: b", done.err)
        empty = write_safetensors(self.path("e.safetensors"), [])
        self.assertEqual(run("tensor", empty, "--quick").out, "no tensors\n")
        self.assertEqual(run("tensor", empty, "--quick", "--fail-if", "nan>0").code, 1)

    def test_options(self):
        for option in (["--stats"], ["--recipes"], ["--list"], ["--to", "fp16"], ["--all-formats"],
                       ["--ascii"], ["--need", "30dB"], ["--role", "a=weights"], ["--details", "a"]):
            self.fails(2, "tensor", SAMPLE, "--quick", *option, says=["--quick", option[0]])
