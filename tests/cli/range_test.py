# `fpinspect range`; docs_test.py has the picture of all formats.
import math

import cli_support
from reference import FORMATS, format_named


class Range(cli_support.CliTest):
    def test_columns(self):
        """The finest that fit the terminal."""
        self.assertEqual(self.ok("range", "--ascii", "fp16,e4m3,e2m1,e4m3fnuz").out, """\
format   smallest  largest decades
fp16      6.0e-08  6.6e+04    12.0 ------+##################
e4m3      2.0e-03  4.5e+02     5.4          --+#########
e2m1      5.0e-01  6.0e+00     1.1               -##
e4m3fnuz  9.8e-04  2.4e+02     5.4         --+#########
                                   -----|---------|---------
                                        1e-5      1e0

# normal  - subnormal  + both  < > goes on  a column: 0.5 decades
""")
        lines = self.ok("range", "--ascii", "bf16", env={"COLUMNS": "45"}).out.splitlines()
        self.assertEqual((lines[1][35:], lines[-1].split(": ")[1]), ("-+#######", "10 decades"))
        lines = self.ok("range", "--ascii", "e5m2", env={"COLUMNS": "135"}).out.splitlines()
        self.assertEqual((lines[1][35:], lines[-1].split(": ")[1]), ("------+" + "#" * 90, "0.1 decades"))

    def test_json(self):
        formats = {f["name"]: f for f in self.ok_json("range")["formats"]}
        self.assertEqual(len(formats), 13)
        for name in FORMATS:
            form, shown = format_named(name), formats[name]
            self.assertEqual((shown["min_positive"], shown["min_normal"], shown["max"]),
                             (form.values[1], form.min_normal, form.values[-1]))
            self.assertAlmostEqual(shown["decades"],
                                   math.log10(form.values[-1] / form.values[1]), places=12)
            self.assertAlmostEqual(shown["decades_subnormal"],
                                   math.log10(form.min_normal / form.values[1]), places=12)
        self.assertEqual((formats["e8m0"]["min_positive"], formats["e8m0"]["max"]), (2.0**-127, 2.0**127))

    def test_fp64_alone_has_its_own_axis(self):
        lines = self.ok("range", "fp64", "--ascii").out.splitlines()
        self.assertNotIn("<", lines[1])
        self.assertIn("1e200", lines[3])

    def test_errors(self):
        self.fails(2, "range", "e9m9", says='FORMAT: "e9m9"')
        self.fails(2, "range", "--json", "--ascii", says="--json and --ascii")
