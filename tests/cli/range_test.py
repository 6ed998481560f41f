# `fpinspect range` against the values of the formats.
import math

import cli_support
from reference import FORMATS, format_named


class Range(cli_support.CliTest):
    def bars(self, *arguments, **more):
        """{format: picture} and the axis: (column of 1e0, decades a column)"""
        lines = self.ok("range", "--ascii", *arguments, **more).out.splitlines()
        start = lines[0].index("decades") + len("decades ")
        foot = next(i for i, line in enumerate(lines) if set(line.strip()) == {"-", "|"})
        step = float(lines[-1].split("a column: ")[1].split()[0])
        rows = {line.split()[0]: line[start:] for line in lines[1:foot]}
        return rows, lines[foot + 1].index("1e0") - start, step, lines

    def test_all_formats_in_80_columns(self):
        rows, _, _, lines = self.bars()
        self.assertEqual(len(rows), 13)
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertEqual((rows["fp64"][0], rows["fp64"][-1]), ("<", ">"))

    def test_every_column(self):
        """A column shows what kinds of values it holds, of all values there are."""
        for names in [["fp16"], ["e4m3", "e5m2"], ["e2m1", "e3m2", "e2m3", "e4m3fnuz"]]:
            rows, one, step, _ = self.bars(",".join(names))
            for name in names:
                form = format_named(name)
                kinds = {}
                for value in form.values[1:]:
                    column = math.floor(math.log10(value) / step + 1e-9) + one
                    kinds.setdefault(column, set()).add(value >= form.min_normal)
                shown = rows[name]
                first, last = min(kinds), max(kinds)
                self.assertEqual(len(shown) - 1, last, name)
                self.assertEqual(len(shown) - len(shown.lstrip()), first, name)
                for column, has in kinds.items():
                    # A band also covers the gap up to the smallest normal value.
                    allowed = {"#" if has == {True} else "-", "+"}
                    self.assertIn(shown[column], allowed, (name, column))
                    if has == {True, False}:
                        self.assertEqual(shown[column], "+", (name, column))

    def test_wide_terminal_has_finer_columns(self):
        self.assertLess(self.bars(env={"COLUMNS": "160"})[2], self.bars()[2])

    def test_columns_are_the_narrowest_that_fit(self):
        steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
        for name in FORMATS:
            form = format_named(name)
            low, high = math.log10(form.values[1]), math.log10(form.values[-1])
            for columns in (45, 77, 135):
                step = self.bars(name, env={"COLUMNS": str(columns)})[2]
                fits = [math.floor(high / s) - math.floor(low / s) + 1 <= columns - 35 for s in steps]
                self.assertEqual(step, steps[fits.index(True)], (name, columns))

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
