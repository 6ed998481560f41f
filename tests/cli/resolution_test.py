# `fpinspect resolution` against lists of all values; docs_test.py compares the printed text with the pages.
import bisect
import math
from fractions import Fraction

import cli_support
from reference import FORMATS, convert, format_named


class Resolution(cli_support.CliTest):
    def shown(self, *arguments):
        return self.ok_json("resolution", *arguments)

    def test_values_between(self):
        for name in FORMATS:
            values = format_named(name).values
            for start, end in [("1", "2"), ("0", "1"), ("0.3", "5.7"), ("0", "100000"),
                               ("448", "449"), ("1e30", "1e31")]:
                shown = self.shown(name, start, end, "--points", "1")
                inside = [v for v in values if Fraction(start) <= v < Fraction(end)]
                self.assertEqual(shown["values"], len(inside), (name, start, end))
                listed = []
                for part in shown["spacings"]:
                    listed += [Fraction(part["first"]) + i * Fraction(part["spacing"])
                               for i in range(part["values"])]
                    self.assertEqual(listed[-1], part["last"])
                self.assertEqual(listed, inside, (name, start, end))

    def test_wide_formats_in_one_to_two(self):
        for name, mantissa in [("fp64", 52), ("fp32", 23), ("tf32", 10), ("e8m0", 0)]:
            shown = self.shown(name, "--points", "1")
            self.assertEqual((shown["values"], shown["spacings"][0]["spacing_log2"]),
                             (2**mantissa, -mantissa))

    def test_powers_of_two(self):
        shown = self.shown("e8m0", "0.3", "100", "--at", "3")
        self.assertEqual([(s["first"], s["values"], s["spacing"]) for s in shown["spacings"]],
                         [(2.0**k, 1, 2.0**k) for k in range(-1, 7)])
        self.assertEqual((shown["at"][0]["below"], shown["at"][0]["above"]), (2, 4))

    def test_largest_exact_integer(self):
        for name in FORMATS:
            values = set(format_named(name).values)
            count = 0
            while Fraction(count + 1) in values:
                count += 1
            self.assertEqual(self.shown(name)["largest_exact_integer"], count, name)
        self.assertEqual(self.shown("fp32")["largest_exact_integer"], 2**24)
        self.assertEqual(self.shown("fp64")["largest_exact_integer"], 2**53)
        self.assertEqual(self.shown("e8m0")["largest_exact_integer"], 2)

    def test_points(self):
        for name, start, end in [("e4m3", 1, 2), ("e5m2", 0, 3), ("bf16", 1, 2), ("e2m1", 0, 10)]:
            points = [start + (end - start) * (i / 1000) for i in range(1000)]
            codes = [convert(name, x)[0] for x in points]
            errors = [abs(format_named(name).value(c) - x) for c, x in zip(codes, points)]
            shown = self.shown(name, str(start), str(end), "--points", "1000")["points"]
            self.assertEqual((shown["count"], shown["distinct"], shown["max_error"]),
                             (1000, len(set(codes)), max(errors)), name)
            self.assertAlmostEqual(shown["mean_error"], math.fsum(errors) / 1000, places=12)

    def test_points_that_overflow(self):
        shown = self.shown("e4m3", "0", "1000", "--points", "100")["points"]
        self.assertEqual((shown["max_error"], shown["mean_error"]), (None, None))
        self.assertIn("error inf on average", self.ok("resolution", "e4m3", "0", "1000").out)

    def test_numbers(self):
        for name in FORMATS:
            form = format_named(name)
            for x in [3.7, 0.1, 2.0**-20, 1.0, 5.0, 447.0]:
                shown = self.shown(name, "--at", str(x))["at"][0]
                above = bisect.bisect_left(form.values, Fraction(x))
                if above == len(form.values):
                    self.assertIsNone(shown["below"], (name, x))
                    continue
                below = above if form.values[above] == x else above - 1
                self.assertEqual((shown["below"], shown["above"]),
                                 (form.values[below], form.values[above]), (name, x))
                self.assertEqual(shown["nearest"], form.value(convert(name, x)[0]))
                if below < form.max_code:
                    self.assertEqual(shown["spacing"], form.values[below + 1] - form.values[below])

    def test_text(self):
        self.assertTrue(self.ok("resolution", "e5m2", "--at", "3.7,1e9").out.endswith(
            "\nat 1e+09: beyond the values of e5m2\n"))
        self.assertIn("... ", self.ok("resolution", "fp32", "0", "1").out)

    def test_number_line_of_a_wide_interval(self):
        for end in ["1e300", "1.7e308"]:
            line = self.ok("resolution", "fp64", "0", end, "--ascii").out.splitlines()[1]
            self.assertEqual(line, "  " + "+" * 72)

    def test_number_line(self):
        """A column is marked if a value lies in it."""
        for name, start, end in [("e4m3", 0, 9), ("e2m1", 0, 8), ("e3m2", 1, 37)]:
            line = self.ok("resolution", name, str(start), str(end), "--ascii").out.splitlines()[1]
            width = Fraction(end - start, 72)
            columns = {(v - start) // width for v in format_named(name).values if start <= v < end}
            self.assertEqual(line, "  " + "".join("+" if i in columns else "-" for i in range(72)))

    def test_errors(self):
        for arguments, says in [
                (["e4m3", "1"], "B: needed after A"), (["e4m3", "2", "1"], "0 <= A < B"),
                (["e4m3", "1", "1"], "0 <= A < B"), (["e4m3", "-1", "1"], "0 <= A < B"),
                (["e4m3", "nan", "1"], 'A: "nan" is not a finite number'),
                (["e4m3", "0", "1e999"], 'B: "1e999" is not a finite number'),
                (["e4m3", "--at", "x"], '--at: "x"'), (["e4m3", "--points", "0"], "--points")]:
            self.fails(2, "resolution", *arguments, says=says)
