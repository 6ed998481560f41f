# `fpinspect show`: codes, values, neighbours; docs_test.py compares the printed text with the pages.
import cli_support


class Show(cli_support.CliTest):
    def shown(self, *arguments):
        return self.ok_json("show", *arguments)

    def test_code(self):
        self.assertEqual(self.shown("e4m3", "0x3C"), {
            "schema": 1, "format": "e4m3",
            "input": {"text": "0x3C", "inexact": False, "outcome": None},
            "code": "0x3c", "bits": {"sign": "0", "exponent": "0111", "mantissa": "100"},
            "class": "normal", "number": 1.5, "value": "1.5", "exact": "1.5",
            "hex_float": "0x1.8p+0",
            "below": {"code": "0x3b", "value": "1.4", "number": 1.375},
            "above": {"code": "0x3d", "value": "1.6", "number": 1.625},
            "ulp_log2": -3, "ulp": 0.125})

    def test_hexadecimal_is_a_code_unless_it_is_a_float(self):
        self.assertEqual(self.shown("fp16", "0x10")["code"], "0x0010")
        self.assertEqual(self.shown("fp16", "0x1p4")["number"], 16)
        self.assertEqual(self.shown("fp16", "0x10.")["number"], 16)
        self.assertEqual(self.shown("fp16", "-0x10")["number"], -16)
        self.assertEqual(self.shown("fp16", "16")["number"], 16)

    def test_negative_values_are_not_options(self):
        for text, number in [("-1.5", -1.5), ("-.5", -0.5), ("-1e-2", -0.01000213623046875),
                             ("-0", 0)]:
            self.assertEqual(self.shown("fp16", text)["number"], number, text)
        self.assertEqual(self.shown("fp16", "-inf")["value"], "-inf")
        self.assertEqual(self.shown("fp16", "-Infinity")["code"], "0xfc00")
        self.assertEqual(self.shown("fp16", "-nan")["code"], "0x7fff")
        self.assertEqual(self.ok("show", "e4m3", "--", "-1.5").out.split("\n")[0], "e4m3 0xbc")

    def test_what_became_of_a_value(self):
        for name, text, inexact, outcome, code in [
                ("e4m3", "1.5", False, "exact", "0x3c"), ("e4m3", "1.6", True, "rounded", "0x3d"),
                ("e4m3", "0.002", True, "subnormal", "0x01"),
                ("e4m3", "1e-9", True, "underflow", "0x00"),
                ("e4m3", "1e9", True, "overflow", "0x7f"),
                ("e4m3", "inf", False, "overflow", "0x7f"),
                ("e2m1", "1e9", True, "saturated", "0x07"),
                ("e2m1", "nan", False, "saturated", "0x07"),
                ("e5m2", "inf", False, "exact", "0x7c")]:
            shown = self.shown(name, text)
            self.assertEqual((shown["input"], shown["code"]),
                             ({"text": text, "inexact": inexact, "outcome": outcome}, code))

    def test_classes_and_ulps(self):
        for name, code, what, ulp_log2 in [
                ("fp32", "0x0", "zero", -149), ("fp32", "0x1", "subnormal", -149),
                ("fp32", "0x00800000", "normal", -149), ("fp32", "0x7f7fffff", "normal", 104),
                ("fp32", "0x7f800000", "infinite", None), ("fp32", "0xffc00000", "nan", None),
                ("fp64", "0x1", "subnormal", -1074), ("fp64", "0x7fefffffffffffff", "normal", 971),
                ("e8m0", "0x00", "normal", -127), ("e8m0", "0xfe", "normal", 127),
                ("e5m2fnuz", "0x80", "nan", None), ("e2m1", "0x1", "subnormal", -1)]:
            shown = self.shown(name, code)
            self.assertEqual((shown["class"], shown["ulp_log2"]), (what, ulp_log2), (name, code))

    def test_neighbours_at_the_ends(self):
        beside = lambda *of: [self.shown(*of)[which]["code"] for which in ("below", "above")]
        self.assertEqual(beside("e4m3", "0x7e"), ["0x7d", "0x7f"])  # NaN above max
        self.assertEqual(beside("e5m2", "0x7b"), ["0x7a", "0x7c"])  # Inf above max
        self.assertEqual(beside("e2m1", "0x07"), ["0x06", "0x07"])  # nothing above max
        self.assertEqual(beside("fp16", "0x0000"), ["0x8001", "0x0001"])
        self.assertEqual(beside("fp16", "0x8001"), ["0x8002", "0x8000"])

    def test_bits_that_are_ignored(self):
        self.assertEqual(self.shown("tf32", "0x3f801fff")["code"], "0x3f800000")
        self.assertEqual(self.shown("e2m1", "0xf7")["code"], "0x07")

    def test_longest_exact_decimal(self):
        exact = self.shown("fp64", "0x1")["exact"]
        digits = str(5**1074)  # 2^-1074 = 5^1074 / 10^1074
        self.assertEqual(exact, "0." + digits.rjust(1074, "0"))

    def test_several_formats_and_modes(self):
        results = self.shown("e4m3,e2m1", "-0.1", "--rounding", "all")["results"]
        to_nearest = {"nearest_even": 1, "nearest_away": 1}
        self.assertEqual(
            [(r["format"], r["code"], r["number"], r["outcome"], r["round"]) for r in results], [
                ("e4m3", "0x9d", -0.1015625, "rounded",
                 {**to_nearest, "downward": 1, "to_odd": 1, "stochastic": 1 - 858993460 / 2**32}),
                ("e4m3", "0x9c", -0.09375, "rounded",
                 {"toward_zero": 1, "upward": 1, "stochastic": 858993460 / 2**32}),
                ("e2m1", "0x08", 0, "underflow",
                 {**to_nearest, "toward_zero": 1, "upward": 1, "stochastic": 1 - 858993459 / 2**32}),
                ("e2m1", "0x09", -0.5, "subnormal",
                 {"downward": 1, "to_odd": 1, "stochastic": 858993459 / 2**32})])
        self.assertAlmostEqual(results[0]["error"], -1 / 640)
        self.assertEqual(self.shown("e4m3,e2m1", "-0.1", "--rounding", "downward")["results"],
                         [{**r, "round": {"downward": 1}} for r in (results[0], results[3])])

    def test_errors_of_several(self):
        for arguments, says in [
                (["e4m3,e9m9", "1"], "e9m9"), (["e4m3,bf16", "0x3c"], "a code needs one format"),
                (["e4m3", "0x3c", "--rounding", "upward"], "a code needs one format"),
                (["all", "one"], '"one"'), (["e4m3", "1", "--rounding", "up"], '"up" is not one of all')]:
            self.fails(2, "show", *arguments, says=says)
