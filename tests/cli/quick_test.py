# `fpinspect tensor --quick`: the figures of --stats, conditions and text.
import math
import struct

import cli_support
from cli_support import SAMPLE, floats, run, write_npy, write_safetensors

SAME = ["zeros", "nan", "inf", "min", "max", "amax", "min_nonzero", "mean", "l2_norm"]


class Quick(cli_support.CliTest):
    def check(self, *arguments):
        quick = self.ok_json("tensor", *arguments, "--quick")["tensors"]
        stats = self.ok_json("tensor", *arguments, "--stats")["tensors"]
        self.assertEqual([t["name"] for t in quick], [t["name"] for t in stats])
        for one, other in zip(quick, stats):
            found = one["statistics"]
            self.assertEqual(list(found), [*SAME[:8], "rms", "l2_norm"])
            self.assertEqual({name: found[name] for name in SAME},
                             {name: other["statistics"][name] for name in SAME}, one["name"])
            finite = one["count"] - found["nan"] - found["inf"]
            if finite == 0:
                self.assertIsNone(found["rms"])
            else:
                self.assertAlmostEqual(found["rms"], found["l2_norm"] / math.sqrt(finite),
                                       delta=1e-15 * found["l2_norm"])

    def test_the_figures_of_stats(self):
        self.check(SAMPLE)
        inf, nan = math.inf, math.nan
        for descr, code, values in [
                ("<f4", "f", []), ("<f4", "f", [nan, inf, -inf]), ("<f4", "f", [0.0, -0.0]),
                ("<f8", "d", [-0.0, -2.5, nan, 4.0, 1.0, -inf]), (">f4", "f", [-1.0, -3.0, 5.0, nan]),
                ("<i2", "h", [5, -7, 0, 32767, -32768, 12])]:
            self.check(write_npy(self.path("x.npy"), descr, (len(values),),
                                 struct.pack(f"{descr[0]}{len(values)}{code}", *values)))
        self.check(write_npy(self.path("x.npy"), "|u1", (3,), bytes([0x38, 0xB8, 0x7F])), "--from", "e4m3")

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
