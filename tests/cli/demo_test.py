# `fpinspect demo`: JSON has the cells of the text; the text of the other demonstrations is in docs/fpinspect_numbers.md.
import re

import cli_support


class Demo(cli_support.CliTest):
    def test_text(self):
        self.assertEqual(self.ok("demo", "tiny-mul").out.splitlines()[:8], [
            "What is 1 * 1e-8?", "", "format  a  b            a * b        flags of b",
            "fp32    1  1e-08        1e-08        none", "bf16    1  1.00117e-08  1.00117e-08  inexact",
            "fp16    1  0            0            underflow, inexact",
            "e5m2    1  0            0            underflow, inexact",
            "e4m3    1  0            0            underflow, inexact"])

    def test_json_has_the_cells_of_the_text(self):
        for name in "tiny-mul", "grad-once", "repeated-sum", "error-growth", "layernorm-variance":
            rows = self.ok_json("demo", name)["rows"]
            heading, *lines = self.ok("demo", name).out.splitlines()[2:3 + len(rows)]
            self.assertEqual(list(rows[0]), re.split("  +", heading))
            for line, row in zip(lines, rows):
                self.assertEqual(re.split("  +", line),
                                 [cell if isinstance(cell, str) else f"{cell:.6g}" for cell in row.values()])

    def test_errors(self):
        self.fails(2, "demo", says="NAME")
        self.fails(2, "demo", "x", says=['NAME: "x" is not one of tiny-mul, grad-once'])
