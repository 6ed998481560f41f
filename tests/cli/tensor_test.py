# `fpinspect tensor` on small files, against exact fractions.
import math
import os
import pty
import random
import re
import struct
import subprocess
from fractions import Fraction

import cli_support
import reference
from cli_support import floats, sqnr_db, tree_sum, write_npy, write_safetensors

KEYS = ["name", "dtype", "shape", "count", "zeros", "nan", "inf", "amax", "min_nonzero", "formats",
        "fp16_loss_scale_log2"]
ALL_FORMATS = ["fp32", "tf32", "fp16", "bf16", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e4m3fnuz",
               "e5m2fnuz"]


def effect(name, values):
    """What `tensor` says of a format, by way of the reference."""
    to = reference.format_named(name)
    statistics = {"underflow": 0, "subnormal": 0, "overflow": 0, "to_inf": 0, "to_nan": 0,
                  "to_max": 0, "changed": 0}
    signal, noise, saturated_signal, saturated_noise = [], [], [], []
    for x in values:
        code, overflowed = reference.convert(name, x)
        y = to.value(code)
        statistics["to_inf"] += math.isfinite(x) and math.isinf(y)
        statistics["to_nan"] += not math.isnan(x) and math.isnan(y)
        statistics["to_max"] += not math.isfinite(x) and math.isfinite(y)
        statistics["changed"] += x != y and not (math.isnan(x) and math.isnan(y))
        most = math.copysign(float(to.values[to.max_code]), x)
        saturated = most if overflowed and math.isfinite(x) else y
        both = math.isfinite(x) and math.isfinite(saturated)
        saturated_signal.append(x * x if both else 0.0)
        saturated_noise.append((x - saturated) * (x - saturated) if both else 0.0)
        statistics["overflow"] += overflowed
        if math.isfinite(x) and x != 0:
            statistics["underflow"] += y == 0
            statistics["subnormal"] += y != 0 and abs(y) < to.min_normal
        paired = math.isfinite(x) and math.isfinite(y)
        signal.append(x * x if paired else 0.0)
        noise.append((x - y) * (x - y) if paired else 0.0)
    statistics["signal"], statistics["noise"] = tree_sum(signal), tree_sum(noise)
    statistics["saturated_signal"] = tree_sum(saturated_signal)
    statistics["saturated_noise"] = tree_sum(saturated_noise)
    return {**statistics, **cli_support.ratios(statistics, len(values))}


def loss_scale(amax):
    """The largest k from -126 to 127 with amax * 2^k < 65520; None if there is none."""
    fitting = [k for k in range(-126, 128) if Fraction(amax) * Fraction(2)**k < 65520]
    return max(fitting, default=None)


def statistics(values):
    finite = [abs(x) for x in values if math.isfinite(x)]
    nonzero = [x for x in finite if x != 0]
    exponents = {}
    for x in nonzero:
        exponent = str(math.frexp(x)[1] - 1)
        exponents[exponent] = exponents.get(exponent, 0) + 1
    return {
        "count": len(values), "zeros": len(finite) - len(nonzero),
        "nan": sum(map(math.isnan, values)), "inf": sum(map(math.isinf, values)),
        "amax": max(finite, default=None), "min_nonzero": min(nonzero, default=None),
        "fp16_loss_scale_log2": loss_scale(max(finite)) if nonzero else None,
        "exponents": exponents}


class Tensor(cli_support.CliTest):
    def tensors(self, path, *arguments):
        return self.ok_json("tensor", path, *arguments)["tensors"]

    def check(self, tensor, values):
        expected = statistics(values)
        self.assertEqual({key: tensor[key] for key in expected}, expected)
        self.assertEqual(list(tensor["formats"]), ALL_FORMATS)
        for name in reference.FORMATS:
            self.assertEqual(tensor["formats"][name], effect(name, values), name)

    def test_statistics(self):
        generator = random.Random(1)
        edges = [448.0, 464.0, 465.0, 61439.0, 61440.0, 65504.0, 65519.0, 65520.0, 57344.0, 240.0,
                 248.0, 6.0, 7.0, 7.5, 7.75, 28.0, 30.0, 3e38, 2.0**-24, 2.0**-25, 2.0**-14,
                 2.0**-9, 2.0**-10, 3 * 2.0**-11, 1e-45, 1e-38, 0.0, -0.0, math.inf, -math.inf,
                 math.nan, math.nan, 1.0]
        wide = [generator.uniform(-1, 1) * 2.0**generator.randint(-30, 20) for _ in range(1000)]
        path = write_safetensors(self.path("m.safetensors"), [
            ("edges", "F32", (len(edges),), floats(*edges)),
            ("wide", "F32", (20, 50), floats(*wide)),
            ("wide64", "F64", (1000,), struct.pack("<1000d", *wide))])
        as_fp32 = lambda values: struct.unpack(f"<{len(values)}f", floats(*values))
        edge_tensor, wide_tensor, wide64_tensor = self.tensors(path)
        self.assertTrue(set(KEYS) <= set(edge_tensor))
        self.check(edge_tensor, as_fp32(edges))
        self.check(wide_tensor, as_fp32(wide))
        self.check(wide64_tensor, wide)

    def test_sum_of_more_than_one_block(self):
        generator = random.Random(2)
        values = [generator.gauss(0, 1e-3) for _ in range((1 << 17) + 4097)]
        path = write_npy(self.path("x.npy"), "<f8", (len(values),),
                         struct.pack(f"<{len(values)}d", *values))
        (tensor,) = self.tensors(path, "--to", "fp32")
        rounded = struct.unpack(f"<{len(values)}f", floats(*values))
        signal = tree_sum([x * x for x in values])
        noise = tree_sum([(x - y) * (x - y) for x, y in zip(values, rounded)])
        self.assertEqual(tensor["formats"], {"fp32": {
            "underflow": 0, "subnormal": 0, "overflow": 0, "to_inf": 0, "to_nan": 0,
                  "to_max": 0,
            "changed": sum(x != y for x, y in zip(values, rounded)),
            "sqnr_db": sqnr_db(signal, noise), "sqnr_note": None, "signal": signal, "noise": noise,
            "saturated_sqnr_db": sqnr_db(signal, noise), "saturated_signal": signal,
            "saturated_noise": noise}})
        self.assertEqual(tensor["name"], "")

    def test_exact_and_missing_statistics(self):
        path = write_safetensors(self.path("m.safetensors"), [
            ("exact", "F16", (2,), struct.pack("<2e", 1, -2)), ("none", "F32", (0, 3), b""),
            ("zeros", "F32", (2,), floats(0, -0.0)), ("nan", "BF16", (1,), b"\xc0\x7f"),
            ("one", "F64", (), struct.pack("<d", 5e-324))])
        exact, none, zeros, nan, one = self.tensors(path)
        self.check(exact, [1.0, -2.0])
        self.assertEqual([(f["sqnr_db"], f["sqnr_note"]) for f in exact["formats"].values()],
                         [(None, "exact")] * 11)
        for tensor, values in [(none, []), (zeros, [0.0, -0.0]), (nan, [math.nan]),
                               (one, [5e-324])]:
            self.check(tensor, values)
        self.assertEqual((none["amax"], zeros["amax"], zeros["min_nonzero"]), (None, 0, None))
        self.assertEqual((one["amax_code"], one["fp16_loss_scale_log2"]),
                         ("0x0000000000000001", 127))
        self.assertEqual(exact["amax_code"], "0x4000")

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
                ([1, 1e-9, -1e9, math.inf], "f", "e4m3", "0, NaN", "1 became 0, 2 became NaN"),
                ([1, math.inf, math.nan], "f", "e2m1", "max", "2 became finite")]:
            path = write_npy(self.path("x.npy"), f"<f{8 if form == 'd' else 4}", (len(values),),
                             struct.pack(f"<{len(values)}{form}", *values))
            values = struct.unpack(f"<{len(values)}{form}",
                                   struct.pack(f"<{len(values)}{form}", *values))
            (tensor,) = self.tensors(path, "--to", name)
            self.assertEqual(tensor["formats"][name], effect(name, values))
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
        for values, exact in [([1, 2, math.nan, math.inf, -math.inf, 0.0, -0.0], True),
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
        write_npy(self.path("x.npy"), "<f4", (5,), floats(1.0, 2.0**-10, 1e9, 0.0, math.nan))
        row = next(line for line in self.ok("tensor", self.path("x.npy")).out.splitlines()
                   if line.startswith("  e4m3 "))
        self.assertEqual(row.split(), ["e4m3", "33.33", "%", "0", "%", "33.33", "%", "–", "0.0", "dB",
                                       "0,", "NaN"])
