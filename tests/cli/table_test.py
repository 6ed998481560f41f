# `fpinspect table`: all pairs of codes, computed again in exact fractions.
import math
from fractions import Fraction

import cli_support
from reference import convert, format_named, nearest_even, random_word, stochastic


def exact(op, a, b):
    """The exact result as a float or a Fraction, with Inf, NaN and signed zeros of IEEE 754."""
    if op in ("add", "sub", "mul"):  # exact in binary64 for 8-bit operands
        return a + b if op == "add" else a - b if op == "sub" else a * b
    sign = math.copysign(1.0, a) * math.copysign(1.0, b)
    if math.isnan(a) or math.isnan(b) or (a == 0 == b) or (math.isinf(a) and math.isinf(b)):
        return math.nan
    if math.isinf(a) or b == 0:
        return math.copysign(math.inf, sign)
    if a == 0 or math.isinf(b):
        return math.copysign(0.0, sign)
    return Fraction(a) / Fraction(b)


def code_of(name, x, away=nearest_even):
    if isinstance(x, Fraction):
        return format_named(name).round(x, away)[0]
    return convert(name, x, away)[0]


class Table(cli_support.CliTest):
    def rows(self, *arguments):
        shown = self.ok_json("table", *arguments)
        return shown, [[int(row[i:i + 2], 16) for i in range(0, len(row), 2)] for row in shown["rows"]]

    def test_every_pair(self):
        for name, op in [("e4m3", "add"), ("e4m3", "mul"), ("e5m2", "sub"), ("e5m2", "div")]:
            shown, rows = self.rows(name, op)
            to = format_named(name)
            values = [to.value(code) for code in range(256)]
            kinds = {"zero": 0, "subnormal": 0, "normal": 0, "infinite": 0, "nan": 0}
            for a in range(256):
                for b in range(256):
                    code = code_of(name, exact(op, values[a], values[b]))
                    self.assertEqual(rows[a][b], code, (name, op, a, b))
                    value = to.value(code)
                    kinds["nan" if math.isnan(value) else "infinite" if math.isinf(value) else
                          "zero" if value == 0 else
                          "subnormal" if abs(value) < to.min_normal else "normal"] += 1
            self.assertEqual(shown["results"], kinds)
            self.assertEqual(shown["distinct"], len({c for row in rows for c in row}))
            self.assertEqual(shown["asymmetric"], sum(rows[a][b] != rows[b][a] for a in range(256)
                                                      for b in range(256)))

    def test_flags_are_those_of_arith(self):
        """The counts of flags equal those of `arith` on two files with all pairs."""
        pairs = [(a, b) for a in range(256) for b in range(256)]
        files = [cli_support.write_npy(self.path(f"{i}.npy"), "|u1", (65536,), bytes(p[i] for p in pairs))
                 for i in (0, 1)]
        shown, rows = self.rows("e5m2", "div", "--rounding", "toward_zero")
        out = self.path("out.npy")
        document = self.ok_json("arith", "div", *files, "--format", "e5m2", "--from", "e5m2", "--out",
                                out, "--rounding", "toward_zero")
        self.assertEqual(shown["flags"], document["raised"])
        self.assertEqual(b"".join(map(bytes, rows)), cli_support.read_npy(out)[2])

    def test_stochastic(self):
        shown, rows = self.rows("e4m3", "mul", "--rounding", "stochastic", "--seed", "5", "--offset", "9")
        self.assertEqual((shown["seed"], shown["offset"]), (5, 9))
        values = [format_named("e4m3").value(code) for code in range(256)]
        for a, b in [(0x39, 0x3B), (0x12, 0x55), (0xB1, 0x4D), (0x03, 0x2F), (0x77, 0x21)]:
            word = random_word(5, 0, 9 + a * 256 + b, 32)
            code = code_of("e4m3", values[a] * values[b], stochastic(word, 32))
            self.assertEqual(rows[a][b], code, (a, b))

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
