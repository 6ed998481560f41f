# `fpinspect tensor` on small files. That the figures are right: unit.cast_statistics.
import math
import os
import pty
import re
import struct
import subprocess

import cli_support
import reference
from cli_support import floats, write_npy, write_safetensors

INF, NAN = math.inf, math.nan
ALL_FORMATS = ["fp32", "tf32", "fp16", "bf16", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e4m3fnuz",
               "e5m2fnuz"]
# Elements of which formats destroy different numbers, with what they do to them.
EDGES = [INF, NAN, NAN, 0.0, -0.0, 0.0, 1.0, 1.0625, 2.0**-9, -2.0**-8, 1e-30, 1e-6, -3e-5, 450.0, 1000.0,
         -500.0, 70000.0, -300000.0]
EFFECTS = {
    "fp16": {"underflow": 1, "subnormal": 2, "overflow": 2, "to_inf": 2, "to_nan": 0, "to_max": 0,
             "changed": 5, "sqnr_db": None, "sqnr_note": "1 became 0, 2 became Inf",
             "signal": 1452502.1289253244, "noise": 5.321406323720478e-16,
             "saturated_sqnr_db": 2.36842361954834, "saturated_signal": 94901452502.12892,
             "saturated_noise": 55008588032},
    "e4m3": {"underflow": 3, "subnormal": 2, "overflow": 4, "to_inf": 0, "to_nan": 5, "to_max": 0,
             "changed": 10, "sqnr_db": None, "sqnr_note": "3 became 0, 5 became NaN",
             "signal": 202502.1289253244, "noise": 4.003906250901,
             "saturated_sqnr_db": 0.015231956845388282, "saturated_signal": 94901452502.12892,
             "saturated_noise": 94569188820.0039},
    "e2m1": {"underflow": 5, "subnormal": 0, "overflow": 5, "to_inf": 0, "to_nan": 0, "to_max": 3,
             "changed": 14, "sqnr_db": None, "sqnr_note": "5 became 0, 3 became finite",
             "signal": 94901452502.12892, "noise": 94896989280.00392,
             "saturated_sqnr_db": 0.00020425380973163002, "saturated_signal": 94901452502.12892,
             "saturated_noise": 94896989280.00392}}


class Tensor(cli_support.CliTest):
    def tensors(self, path, *arguments):
        return self.ok_json("tensor", path, *arguments)["tensors"]

    def check(self, tensor, values):
        """The figures are those of these numbers in fp64."""
        path = write_npy(self.path("same.npy"), "<f8", (len(values),), struct.pack(f"<{len(values)}d", *values))
        (same,) = self.tensors(path)
        self.assertEqual(list(tensor["formats"]), ALL_FORMATS)
        for key in ("count", "zeros", "nan", "inf", "amax", "min_nonzero", "formats", "fp16_loss_scale_log2",
                    "exponents"):
            self.assertEqual(tensor[key], same[key], key)

    def test_every_figure(self):
        path = write_npy(self.path("x.npy"), "<f4", (2, 9), floats(*EDGES))
        (tensor,) = self.tensors(path)
        self.check(tensor, struct.unpack("<18f", floats(*EDGES)))
        self.assertEqual({name: tensor["formats"][name] for name in EFFECTS}, EFFECTS)
        self.assertEqual(tensor["exponents"], {"-100": 1, "-20": 1, "-16": 1, "-9": 1, "-8": 1, "0": 2, "8": 2,
                                               "9": 1, "16": 1, "18": 1})
        figures = {key: tensor[key] for key in tensor if key not in ("formats", "exponents", "loss_scales")}
        self.assertEqual(figures, {
            "name": "", "dtype": "F32", "from": "fp32", "shape": [2, 9], "count": 18, "zeros": 3, "nan": 2,
            "inf": 1, "amax": 300000, "amax_code": "0x48927c00", "min_nonzero": 1.0000000031710769e-30,
            "min_nonzero_code": "0x0da24260", "fp16_loss_scale_log2": -3})

    def test_exact_and_missing_statistics(self):
        path = write_safetensors(self.path("m.safetensors"), [
            ("exact", "F16", (2,), struct.pack("<2e", 1, -2)), ("none", "F32", (0, 3), b""),
            ("zeros", "F32", (2,), floats(0, -0.0)), ("nan", "BF16", (1,), b"\xc0\x7f"),
            ("one", "F64", (), struct.pack("<d", 5e-324))])
        exact, none, zeros, nan, one = self.tensors(path)
        self.assertEqual([(f["sqnr_db"], f["sqnr_note"]) for f in exact["formats"].values()],
                         [(None, "exact")] * 11)
        self.assertEqual([(t["zeros"], t["nan"], t["amax"], t["min_nonzero"], t["fp16_loss_scale_log2"])
                          for t in (exact, none, zeros, nan, one)],
                         [(0, 0, 2, 1, 14), (0, 0, None, None, None), (2, 0, 0, None, None),
                          (0, 1, None, None, None), (0, 0, 5e-324, 5e-324, 127)])
        self.assertEqual((one["amax_code"], exact["amax_code"]), ("0x0000000000000001", "0x4000"))

    def test_loss_scale_at_the_tie(self):
        # 65520 is half way from fp16's max to what would come next, and overflows.
        for amax, scale in [(65520.0, -1), (65519.99609375, 0), (8190.0, 2), (8189.99951171875, 3),
                            (65504.0, 0), (65536.0, -1), (1.0, 15)]:
            path = write_npy(self.path("x.npy"), "<f4", (2,), floats(-amax, 0.5))
            (tensor,) = self.tensors(path)
            self.assertEqual((tensor["amax"], tensor["fp16_loss_scale_log2"]), (amax, scale))

    def test_element_types(self):
        # 1.5 in every floating-point type there is, or as near as it comes.
        same = [("F64", struct.pack("<d", 1.5)), ("F32", floats(1.5)), ("F16", b"\x00\x3e"),
                ("BF16", b"\xc0\x3f"), ("F8_E4M3", b"\x3c"), ("F8_E5M2", b"\x3e"),
                ("F8_E4M3FNUZ", b"\x44"), ("F8_E5M2FNUZ", b"\x42")]
        packed = [("F4", b"\x33"), ("F6_E2M3", b"\x0c\xc3\x30"), ("F6_E3M2", b"\x8e\xe3\x38")]
        path = write_safetensors(self.path("m.safetensors"), [
            *((t, t, (1,), raw) for t, raw in same), ("F8_E8M0", "F8_E8M0", (1,), b"\x80"),
            *((t, t, (2 if t == "F4" else 4,), raw) for t, raw in packed)])
        for tensor in self.tensors(path):
            self.check(tensor, [2.0 if tensor["dtype"] == "F8_E8M0" else 1.5] * tensor["count"])

    def test_npy_in_fortran_order_and_big_endian(self):
        values = [float(i) + 2.0**-9 for i in range(6)]
        stored = [values[i] for i in (0, 3, 1, 4, 2, 5)]
        path = write_npy(self.path("f.npy"), ">f4", (2, 3), struct.pack(">6f", *stored),
                         fortran=True)
        (tensor,) = self.tensors(path)
        self.check(tensor, values)
        self.assertEqual((tensor["shape"], tensor["dtype"]), ([2, 3], "F32"))

    def test_elements_that_are_not_floating_point(self):
        path = write_safetensors(self.path("m.safetensors"), [
            ("i", "I64", (2,), struct.pack("<2q", 1, -2**53 - 1)), ("b", "BOOL", (2,), bytes(2)),
            ("f", "F32", (1,), floats(1))])
        expected = {"zeros": None, "nan": None, "inf": None, "amax": None, "min_nonzero": None,
                    "formats": {}, "fp16_loss_scale_log2": None}
        integer, boolean, floating = self.tensors(path)
        for tensor, dtype, count, note in [(integer, "I64", 2, "number 1 has more than 53"),
                                           (boolean, "BOOL", 2, "neither floating point")]:
            self.assertEqual((tensor["dtype"], tensor["count"]), (dtype, count))
            self.assertEqual({key: tensor[key] for key in expected}, expected)
            self.assertIsNone(tensor["from"])
            self.assertIn(note, tensor["note"])
        self.check(floating, [1.0])
        self.assertEqual(self.tensors(path, "--tensor", "i"), [integer])
        self.assertIn("number 1 has more than 53", self.ok("tensor", path, "--tensor", "i").out)

    def test_integers_are_values_unless_from_says_codes(self):
        pixels = bytes(range(17))
        path = write_npy(self.path("x.npy"), "|u1", (17,), pixels)
        (tensor,) = self.tensors(path)
        self.check(tensor, list(map(float, pixels)))
        self.assertEqual((tensor["dtype"], tensor["from"], tensor["amax_code"]), ("U8", "U8", None))
        self.assertIn("U8 values [17]", self.ok("tensor", path).out)
        (tensor,) = self.tensors(path, "--from", "float8_e4m3fn")
        e4m3 = reference.format_named("e4m3")
        self.check(tensor, [e4m3.value(code) for code in pixels])
        self.assertEqual((tensor["dtype"], tensor["from"], tensor["amax_code"]),
                         ("U8", "e4m3", "0x10"))
        self.assertIn("U8 codes of e4m3 [17]", self.ok("tensor", path, "--from", "e4m3").out)
        signed = write_npy(self.path("i.npy"), "<i4", (3,), struct.pack("<3i", -2**31, 0, 7))
        (tensor,) = self.tensors(signed)
        self.check(tensor, [-2.0**31, 0.0, 7.0])
        self.fails(2, "tensor", path, "--from", "bf16", says="codes of bf16 have 16 bits")
        floating = write_npy(self.path("f.npy"), "<f4", (1,), floats(1))
        self.fails(2, "tensor", floating, "--from", "e4m3", says="leave --from out")
        self.tensors(floating, "--from", "fp32")  # what it is
        model = write_safetensors(self.path("m.safetensors"), [
            ("f", "F32", (1,), floats(1)), ("u", "U8", (1,), b"\x38"), ("b", "BOOL", (1,), b"1")])
        self.assertEqual([t["from"] for t in self.tensors(model, "--from", "e4m3")],
                         ["fp32", "e4m3", None])  # of several tensors it speaks of the integers
        self.fails(2, "tensor", model, "--from", "fp16", says='the elements of "u" are U8')
        self.fails(2, "tensor", cli_support.SAMPLE, "--from", "e4m3", says="none of the tensors")

    def test_reads_what_convert_wrote(self):
        values = [1.5, -3.0, 0.25, 448.0]
        source = write_npy(self.path("x.npy"), "<f4", (2, 2), floats(*values))
        for name in ["fp32", "tf32", "fp16", "bf16", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1",
                     "e4m3fnuz", "e5m2fnuz"]:
            for target, more in [("o.npy", ["--from", name]), ("o.safetensors", [])]:
                self.ok_json("convert", source, self.path(target), "--to", name)
                if target == "o.npy" and name in ("fp32", "tf32", "fp16"):
                    more = []  # NumPy has these
                (tensor,) = self.tensors(self.path(target), *more)
                self.assertEqual(tensor["from"], "fp32" if name == "tf32" else name)
                self.assertEqual(tensor["formats"][name]["sqnr_note"], "exact", (target, name))

    def test_file_and_tensor_in_one_argument(self):
        path = write_safetensors(self.path("m.safetensors"), [
            ("a", "F32", (1,), floats(1)), ("b#2", "F32", (1,), floats(2)),
            ("", "F32", (1,), floats(3))])
        by_name = lambda *arguments: [t["amax"] for t in self.tensors(*arguments)]
        self.assertEqual(by_name(path + "#a"), [1])
        self.assertEqual(by_name(path, "--tensor", "b#2"), [2])
        self.assertEqual(by_name(path + "#"), [3])
        self.assertEqual([t["name"] for t in self.ok_json(
            "tensor", path + "#a", "--recipes")["tensors"]], ["a"])
        self.fails(3, "tensor", path + "#c", says=['"c"', "it has 3"])
        self.fails(2, "tensor", path + "#a", "--tensor", "a", says="--tensor")

    def test_destroyed_values_have_no_ratio(self):
        for values, form, name, lost, note in [
                ([1, 70000], "f", "fp16", "Inf", "1 became Inf"),
                ([1, 1e-200], "d", "fp16", "0", "1 became 0"),
                ([1, 500], "f", "e4m3", "NaN", "1 became NaN"),
                ([1, 1e-9, -1e9, INF], "f", "e4m3", "0, NaN", "1 became 0, 2 became NaN"),
                ([1, INF, NAN], "f", "e2m1", "max", "2 became finite")]:
            path = write_npy(self.path("x.npy"), f"<f{8 if form == 'd' else 4}", (len(values),),
                             struct.pack(f"<{len(values)}{form}", *values))
            (tensor,) = self.tensors(path, "--to", name)
            self.assertEqual((tensor["formats"][name]["sqnr_db"],
                              tensor["formats"][name]["sqnr_note"]), (None, note))
            text = self.ok("tensor", path, "--to", name).out
            row = next(line for line in text.splitlines() if line.startswith(f"  {name} "))
            saturated = tensor["formats"][name]["saturated_sqnr_db"]
            shown = "–" if saturated is None else f"{saturated:.1f} dB"
            self.assertTrue(row.endswith(f"         –  {shown:>10}  {lost}"), row)
            ascii_row = self.ok("tensor", path, "--to", name, "--ascii").out
            self.assertTrue(ascii_row.isascii())

    def test_exact_means_that_no_element_changed(self):
        for values, exact in [([1, 2, NAN, INF, -INF, 0.0, -0.0], True),
                              ([0.0, -0.0], True), ([1, 1 + 2.0**-20], False)]:
            path = write_npy(self.path("x.npy"), "<f4", (len(values),), floats(*values))
            (tensor,) = self.tensors(path, "--to", "fp16")
            self.assertEqual(tensor["formats"]["fp16"]["sqnr_note"] == "exact", exact, values)
            self.assertEqual(tensor["formats"]["fp16"]["changed"] == 0, exact)
            self.assertEqual("exact: no element changed; NaN" in self.ok(
                "tensor", path, "--to", "fp16").out, exact)
        path = write_npy(self.path("x.npy"), "<f4", (0,), b"")
        (tensor,) = self.tensors(path, "--to", "fp16")
        self.assertEqual(tensor["formats"]["fp16"]["sqnr_note"], "there are no elements")

    def test_choice_of_tensors_and_formats(self):
        path = write_safetensors(self.path("m.safetensors"), [
            (name, "F32", (1,), floats(1)) for name in ("a", "b", "c")])
        names = lambda *arguments: [t["name"] for t in self.tensors(path, *arguments)]
        self.assertEqual(names(), ["a", "b", "c"])
        self.assertEqual(names("--tensor", "c", "--tensor", "a"), ["c", "a"])
        rows = lambda *arguments: [line.split()[0] for line in self.ok(
            "tensor", path, "--tensor", "a", *arguments).out.splitlines() if line.endswith("exact")]
        self.assertEqual(rows(), ["fp16", "bf16", "e4m3", "e5m2"])
        self.assertEqual(rows("--to", "e2m1,fp32"), ["e2m1", "fp32"])
        self.assertEqual(rows("--all-formats"), ALL_FORMATS)
        for name in ["fp64", "e8m0", "int8"]:
            self.fails(2, "tensor", path, "--to", name, says=name)
        self.assertEqual(self.ok("tensor", write_safetensors(self.path("e.safetensors"), [])).out,
                         "no tensors\n")

    def test_threads_and_repetition_do_not_show(self):
        first = self.ok("tensor", cli_support.SAMPLE, "--json").out
        self.assertEqual(self.ok("tensor", cli_support.SAMPLE, "--json").out, first)


class Terminal(cli_support.CliTest):
    def setUp(self):
        super().setUp()
        values = [2.0**e * (1 + i / 64) for e in range(-20, -4) for i in range(e + 21)]
        self.file = write_safetensors(self.path("m.safetensors"), [
            ("ramp", "F32", (len(values),), floats(*values))])

    def lines(self, *arguments, **more):
        return self.ok("tensor", self.file, *arguments, **more).out.splitlines()

    def test_ascii_chart(self):
        lines = self.lines("--ascii", "--to", "fp16,e4m3,e5m2")
        start = next(i for i, line in enumerate(lines) if "%" in line and "|" in line)
        self.assertEqual(lines[start:start + 11], [
            "  11.8 % |                                          ...###",
            "         |                                 ...:::#########",
            "         |                        ...:::##################",
            "         |                  ...###########################",
            "         |         ...:::#################################",
            "         |...:::##########################################",
            "         +------------------------------------------------",
            "          2^-20    2^-17    2^-14    2^-11    2^-8",
            "    fp16  ------------------##############################",
            "    e4m3  .................................---------######",
            "    e5m2  ............------##############################"])
        self.assertTrue(all(line.isascii() for line in lines))

    def test_width(self):
        for columns, limit in [("", 80), ("60", 60), ("120", 120), ("10", 40)]:
            for arguments in [[], ["--ascii"], ["--all-formats"]]:
                lines = self.lines(*arguments, env={"COLUMNS": columns})
                chart = [line for line in lines if "|" in line or "│" in line]
                self.assertEqual(len(chart), 6)
                if limit >= 80:
                    self.assertLessEqual(max(map(len, lines)), limit)
                self.assertLessEqual(max(map(len, chart)), limit)

    def test_binades_are_grouped_where_there_are_too_many(self):
        values = [2.0**e for e in range(-149, 128)]
        write_safetensors(self.file, [("all", "F32", (len(values),), floats(*values))])
        lines = self.lines("--to", "bf16,e2m1")
        self.assertLessEqual(max(map(len, lines)), 80)
        (bf16, e2m1) = [line for line in lines if line.startswith(("    bf16", "    e2m1"))]
        # 4 binades per column from -152: bf16 reaches down to 2^-133, normal from 2^-126.
        self.assertEqual(bf16[10:], "·" * 4 + "▒" + "░" + "▒" + "█" * 63)
        self.assertEqual(e2m1[10:], "·" * 37 + "▒" + "▒" + "·" * 31)

    def test_color(self):
        self.assertNotIn("\x1b", "".join(self.lines()))  # not a terminal
        self.assertNotIn("\x1b", "".join(self.lines("--color=never")))
        self.assertIn("\x1b[", "".join(self.lines("--color=always")))
        self.assertIn("\x1b[", "".join(self.lines("--color=always", env={"NO_COLOR": "1"})))
        plain = self.lines()
        painted = [re.sub(r"\x1b\[\d*m", "", line) for line in self.lines("--color", "always")]
        self.assertEqual(painted, plain)

    def test_color_on_a_terminal(self):
        for env, colored in [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True),
                             ({"TERM": "dumb"}, False)]:
            ours, theirs = pty.openpty()
            done = subprocess.run([cli_support.FPINSPECT, "formats"], stdout=theirs,
                                  env={**cli_support.CLEAN, **env}, timeout=60)
            os.close(theirs)
            text = b""
            try:
                while chunk := os.read(ours, 65536):
                    text += chunk
            except OSError:  # how Linux reports the end of a pty
                pass
            os.close(ours)
            self.assertEqual((done.returncode, b"\x1b[1m" in text), (0, colored), env)

    def test_shares(self):
        write_npy(self.path("x.npy"), "<f4", (5,), floats(1.0, 2.0**-10, 1e9, 0.0, NAN))
        row = next(line for line in self.ok("tensor", self.path("x.npy")).out.splitlines()
                   if line.startswith("  e4m3 "))
        self.assertEqual(row.split(), ["e4m3", "33.33", "%", "0", "%", "33.33", "%", "–", "0.0", "dB",
                                       "0,", "NaN"])
