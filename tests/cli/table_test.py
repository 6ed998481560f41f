# `fpinspect table`: all pairs of codes, as `arith` computes them; docs_test.py compares the counts with the pages.
import math

import cli_support
from reference import convert, format_named


class Table(cli_support.CliTest):
    def rows(self, *arguments):
        shown = self.ok_json("table", *arguments)
        return shown, [[int(row[i:i + 2], 16) for i in range(0, len(row), 2)] for row in shown["rows"]]

    def test_codes_and_flags_are_those_of_arith(self):
        pairs = [(a, b) for a in range(256) for b in range(256)]
        files = [cli_support.write_npy(self.path(f"{i}.npy"), "|u1", (65536,), bytes(p[i] for p in pairs))
                 for i in (0, 1)]
        out = self.path("out.npy")
        for name, op, *options in [
                ("e5m2", "div", "--rounding", "toward_zero"), ("e4m3", "sub", "--overflow", "saturate"),
                ("e4m3", "mul", "--rounding", "stochastic", "--seed", "5", "--offset", "9")]:
            shown, rows = self.rows(name, op, *options)
            document = self.ok_json("arith", op, *files, "--format", name, "--from", name, "--out", out,
                                    *options)
            self.assertEqual(shown["flags"], document["raised"], name)
            self.assertEqual(b"".join(map(bytes, rows)), cli_support.read_npy(out)[2], name)
            self.assertEqual(sum(shown["results"].values()), 65536)
            self.assertEqual(shown["distinct"], len({c for row in rows for c in row}))
            self.assertEqual(shown["asymmetric"], sum(rows[a][b] != rows[b][a] for a, b in pairs))
        self.assertEqual((shown["seed"], shown["offset"]), (5, 9))

    def test_csv(self):
        _, rows = self.rows("e4m3", "min")
        lines = self.ok("table", "e4m3", "min", "--csv").out.splitlines()
        self.assertEqual(lines[0], "a\\b," + ",".join(f"{b:02x}" for b in range(256)))
        self.assertEqual([line.split(",") for line in lines[1:]],
                         [[f"{a:02x}", *(f"{c:02x}" for c in rows[a])] for a in range(256)])

    def test_one_operand(self):
        shown, rows = self.rows("e4m3", "sqrt")
        self.assertIsNone(shown["asymmetric"])
        to = format_named("e4m3")
        for a in range(0x7F):
            self.assertEqual(rows[a], [convert("e4m3", math.sqrt(to.value(a)))[0]], a)
        self.assertEqual(self.ok("table", "e4m3", "sqrt", "--csv").out.splitlines()[:3],
                         ["a,result", "00,00", f"01,{rows[1][0]:02x}"])
        self.assertIn("256 codes", self.ok("table", "e4m3", "sqrt").out)

    def test_errors(self):
        for arguments, says in [
                (["e3m2", "add"], 'FORMAT: "e3m2" is not one of e4m3, e5m2'),
                (["e4m3", "fma"], 'OP: "fma" is not one of add'), (["e4m3"], "OP"),
                (["e4m3", "add", "--csv", "--json"], "--json and --csv"),
                (["e4m3", "add", "--seed", "1"], "--rounding stochastic")]:
            self.fails(2, "table", *arguments, says=says)
