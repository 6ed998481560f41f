# `fpinspect cast`: one rounding from text or code into each format; docs_test.py compares the printed text with the pages.

import cli_support


class Cast(cli_support.CliTest):
    def cast(self, *arguments):
        """[(input, {format: result})]"""
        document = self.ok("cast", "--json", *arguments).json()
        return [(c["input"], {r["format"]: r for r in c["results"]}) for c in document["casts"]]

    def code(self, *arguments):
        ((_, results),) = self.cast(*arguments)
        ((_, result),) = results.items()
        return result["code"]

    def test_older_name_of_rounding(self):
        new = self.ok("cast", "1.1", "--to", "e4m3,bf16", "--rounding", "upward").out
        for old in [("--round", "upward"), ("--round=upward",)]:
            self.assertEqual(self.ok("cast", "1.1", "--to", "e4m3,bf16", *old).out, new)
        self.assertEqual(self.ok("show", "bf16", "0.1", "--round", "all").out,
                         self.ok("show", "bf16", "0.1", "--rounding", "all").out)
        self.assertNotIn("--round ", self.ok("cast", "--help").out)
        self.fails(2, "cast", "--to", "e4m3", "--", "--round", says='"--round" is not a number')

    def test_all_formats_by_default(self):
        ((text, results),) = self.cast("0.1")
        self.assertEqual(text, "0.1")
        self.assertEqual({name: r["code"] for name, r in results.items()}, {
            "fp64": "0x3fb999999999999a", "fp32": "0x3dcccccd", "tf32": "0x3dccc000",
            "fp16": "0x2e66", "bf16": "0x3dcd", "e4m3": "0x1d", "e5m2": "0x2e", "e3m2": "0x02",
            "e2m3": "0x01", "e2m1": "0x00", "e4m3fnuz": "0x25", "e5m2fnuz": "0x32", "e8m0": "0x7c"})
        self.assertEqual(results["e4m3"], {
            "format": "e4m3", "code": "0x1d", "value": "0.1", "number": 0.1015625, "inexact": True,
            "outcome": "rounded"})

    def test_sign_of_a_nan_is_shown(self):
        text = self.ok("cast", "-nan", "--nan", "preserve_sign", "--to", "bf16,e4m3fnuz").out
        self.assertEqual([line.split()[2] for line in text.splitlines()[2:]], ["-nan", "nan"])

    def test_one_rounding_from_text(self):
        # Just above the tie 1 + 2^-24 of fp32, which binary64 cannot tell from it.
        text = "1.00000005960464477539062500000000000000000000000000000000000000000001"
        self.assertEqual(self.code(text, "--to", "fp32"), "0x3f800001")
        self.assertEqual(self.code(text[:-1], "--to", "fp32"), "0x3f800000")

    def test_outcomes(self):
        for text, name, options, outcome, code in [
                ("448", "e4m3", [], "exact", "0x7e"), ("450", "e4m3", [], "rounded", "0x7e"),
                ("500", "e4m3", [], "overflow", "0x7f"),
                ("500", "e4m3", ["--overflow", "saturate"], "saturated", "0x7e"),
                ("-500", "e4m3", ["--rounding", "toward_zero"], "saturated", "0xfe"),
                ("500", "e5m2", ["--overflow", "saturate_finite"], "rounded", "0x60"),
                ("1e9", "e5m2", [], "overflow", "0x7c"), ("inf", "e5m2", [], "exact", "0x7c"),
                ("inf", "e5m2", ["--overflow", "saturate"], "saturated", "0x7b"),
                ("inf", "e4m3", [], "overflow", "0x7f"), ("nan", "e4m3", [], "exact", "0x7f"),
                ("-nan", "e4m3", ["--nan", "preserve_sign"], "exact", "0xff"),
                ("nan", "e2m1", [], "saturated", "0x07"), ("-inf", "e2m1", [], "saturated", "0x0f"),
                ("0", "e4m3", [], "exact", "0x00"), ("-0", "e4m3", [], "exact", "0x80"),
                ("-0.0e9", "e4m3fnuz", [], "exact", "0x00"),
                ("1e-99999", "fp64", [], "underflow", "0x0000000000000000"),
                ("1e99999", "fp64", [], "overflow", "0x7ff0000000000000"),
                ("1e-9", "e4m3", ["--rounding", "upward"], "subnormal", "0x01"),
                ("0.0078125", "e4m3", [], "subnormal", "0x04"),
                ("0", "e8m0", [], "rounded", "0x00"),
                ("500", "e8m0", [], "rounded", "0x88"), ("1e99", "e8m0", [], "overflow", "0xff")]:
            ((_, results),) = self.cast(text, "--to", name, *options)
            self.assertEqual((results[name]["outcome"], results[name]["code"]), (outcome, code),
                             (text, name, options))
        self.assertIn("subnormal, exact", self.ok("cast", "0.0078125", "--to", "e4m3").out)
        self.assertNotIn("subnormal, exact", self.ok("cast", "0.0079", "--to", "e4m3").out)

    def test_negative_values_and_the_end_of_options(self):
        expected = ["-1.5", "-inf", "-.25", "2"]
        for arguments in [["-1.5", "-inf", "-.25", "2", "--to", "e5m2"],
                          ["--to", "e5m2", "-1.5", "-inf", "-.25", "2"],
                          ["--to=e5m2", "--", "-1.5", "-inf", "-.25", "2"],
                          ["-1.5", "--to", "e5m2", "--", "-inf", "-.25", "2"],
                          ["-1.5", "-inf", "--to", "e5m2", "-.25", "2"]]:
            cast = self.cast(*arguments)
            self.assertEqual([text for text, _ in cast], expected)
            self.assertEqual([r["e5m2"]["code"] for _, r in cast], ["0xbe", "0xfc", "0xb4", "0x40"])

    def test_lists_of_formats(self):
        for to in [["--to", "fp16,e4m3"], ["--to", "fp16", "--to", "e4m3"],
                   ["--to", "fp16", "e4m3"], ["--to", "fp16,e4m3,fp16"]]:
            ((_, results),) = self.cast("1", *to)
            self.assertEqual(list(results), ["fp16", "e4m3"])

    def test_codes(self):
        self.assertEqual(self.code("--from", "bf16", "0x3f81", "--to", "e4m3"), "0x38")
        self.assertEqual(self.code("--from", "fp32", "0xff800001", "--to", "fp16", "--nan",
                                   "preserve_sign"), "0xffff")
        ((_, results),) = self.cast("--from", "e8m0", "0x00", "--to", "fp32,fp16")
        self.assertEqual([(r["code"], r["outcome"]) for r in results.values()],
                         [("0x00400000", "subnormal"), ("0x0000", "underflow")])

    def test_stochastic(self):
        """Value number i has the random bits of index offset + i, as in `convert`."""
        rule = ["--to", "e4m3", "--rounding", "stochastic", "--seed", "0x123456789abcdef0", "--stream", "5",
                "--offset", str(2**64 - 3), "--random-bits", "16"]
        values = [1.0625, 1.03125, -1.125, 1.5625, 100.0, 447.0] * 5
        path = cli_support.write_npy(self.path("x.npy"), "<f4", (30,), cli_support.floats(*values))
        self.assertEqual([int(results["e4m3"]["code"], 16) for _, results in self.cast(*map(repr, values), *rule)],
                         list(self.convert(path, *rule)[2]))

    def test_refused(self):
        for arguments, says in [
                ([], "VALUE"), (["--to", "fp16"], "VALUE"), (["1x"], '"1x"'), (["0x"], '"0x"'),
                (["1", "e4m3"], '"e4m3" is not a number'), (["1", "--to", "e9m9"], "e9m9"),
                (["1", "--rounding", "nearest"], "--rounding"),
                (["1", "--overflow", "inf"], "--overflow"),
                (["1", "--nan", "keep"], "--nan"), (["1", "--from", "fp16"], "0xCODE"),
                (["0x10000", "--from", "fp16"], "16 bits of fp16"), (["--", "--to"], '"--to"'),
                (["1", "--random-bits", "0"], "--random-bits"),
                (["1", "--random-bits", "33"], "--random-bits")]:
            self.fails(2, "cast", *arguments, says=says)
