# `fpinspect demo`: every figure computed again, in exact fractions or in binary32 by struct.
import math
import struct
from fractions import Fraction

import cli_support
from reference import convert, format_named, random_word, stochastic


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def rounded(name, x):
    """The value of x in a format; x is a float or a Fraction."""
    if name == "fp32":
        return f32(float(x))
    return format_named(name).value(convert(name, float(x))[0])


def tree(level, add):
    while len(level) > 1:
        level = [add(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)] + level[len(level) & ~1:]
    return level[0]


class Demo(cli_support.CliTest):
    def rows(self, name):
        return self.ok_json("demo", name)["rows"]

    def test_tiny_mul(self):
        for row in self.rows("tiny-mul"):
            b = rounded(row["format"], 1e-8)
            self.assertEqual((row["a"], row["b"], row["a * b"]), (1, b, b), row["format"])
            flags = "underflow, inexact" if b == 0 else "inexact" if b != f32(1e-8) else "none"
            self.assertEqual(row["flags of b"], flags)

    def test_grad_once(self):
        rows = self.rows("grad-once")
        self.assertEqual(len(rows), 12)
        for row in rows:
            name = row["format"]
            loss, gradient = 1024.0, rounded(name, row["loss scale"])
            for factor in map(float, row["factors"].split(", ")):
                loss = rounded(name, loss * rounded(name, factor))
                gradient = rounded(name, gradient * rounded(name, factor))
            self.assertEqual((row["loss"], row["scaled gradient"]), (loss, gradient), row)
            self.assertEqual(row["gradient"], f32(gradient / row["loss scale"]))
        fp16 = [row["gradient"] for row in rows if row["format"] == "fp16"]
        self.assertEqual([g == 0 for g in fp16], [True, True, True, False])

    def test_repeated_sum(self):
        for row in self.rows("repeated-sum"):
            name, total, last = row["format"], 0.0, 0
            term = rounded(name, 1.0 if row["term"] == 1 else 0.001)
            for i in range(1, 10001):
                following = rounded(name, total + term)
                if following == total:
                    break
                total, last = following, i
            self.assertEqual((row["term"], row["sum"], row["exact"], row["last change"]),
                             (term, total, term * 10000, last), name)

    def test_error_growth(self):
        """The first three rows of each format: 1, 10 and 100 updates of 64 weights."""
        rows = self.rows("error-growth")
        self.assertEqual([row["updates"] for row in rows], [1, 10, 100, 1000, 10000] * 2)
        term = f32(1e-4)
        for name in ["fp16", "bf16"]:
            shown = {row["updates"]: row for row in rows if row["format"] == name}
            to = format_named(name)
            nearest, weights = 1.0, [1.0] * 64
            for i in range(1, 101):
                nearest = rounded(name, nearest + term)
                weights = [to.value(convert(name, w + term, stochastic(random_word(0, i, k, 32), 32))[0])
                           for k, w in enumerate(weights)]
                if i in shown:
                    exact = 1.0 + i * term
                    self.assertEqual((shown[i]["exact"], shown[i]["nearest"]), (exact, nearest))
                    self.assertEqual(shown[i]["stochastic"], sum(weights) / 64, (name, i))
                    rms = math.sqrt(sum((w - exact)**2 for w in weights) / 64)
                    self.assertAlmostEqual(shown[i]["rms error"], rms, places=15)
            # Lost to nearest, right on average stochastically.
            self.assertEqual(shown[10000]["nearest"], 1)
            self.assertLess(abs(shown[10000]["stochastic"] - 2), 4 * shown[10000]["rms error"] / 8)

    def test_layernorm_variance(self):
        for row in self.rows("layernorm-variance"):
            n = 4096
            x = [f32(row["mean"] + (random_word(0, 0, i, 32) * 2.0**-31 - 1.0)) for i in range(n)]
            add = lambda a, b: f32(a + b)
            mean = tree(x, add) / n
            one_pass = f32(tree([f32(v * v) for v in x], add) / n - f32(mean * mean))
            two_pass = tree([f32(f32(v - mean) * f32(v - mean)) for v in x], add) / n
            self.assertEqual((row["E[x^2]-E[x]^2"], row["two passes"]), (one_pass, two_pass), row)
            exact = [Fraction(v) for v in x]
            center = sum(exact) / n
            variance = float(sum((v - center)**2 for v in exact) / n)
            self.assertAlmostEqual(row["variance"], variance, delta=1e-9 * variance)
            self.assertAlmostEqual(row["error"], one_pass / row["variance"] - 1, places=12)
            self.assertAlmostEqual(row["error (2)"], two_pass / row["variance"] - 1, places=12)

    def test_text(self):
        self.assertEqual(self.ok("demo", "tiny-mul").out.splitlines()[:5], [
            "What is 1 * 1e-8?", "", "format  a  b            a * b        flags of b",
            "fp32    1  1e-08        1e-08        none",
            "bf16    1  1.00117e-08  1.00117e-08  inexact"])

    def test_errors(self):
        self.fails(2, "demo", says="NAME")
        self.fails(2, "demo", "x", says=['NAME: "x" is not one of tiny-mul, grad-once'])
