# `fpinspect claims`: each figure computed again, from the values of the formats.
import bisect
import math
import struct
import unittest
from fractions import Fraction

import cli_support
from reference import convert, format_named


def fp16(x):
    return format_named("fp16").value(convert("fp16", x)[0])


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Claims(cli_support.CliTest):
    def claims(self, *names):
        return {c["name"]: c for c in self.ok_json("claims", *names)["claims"]}

    def figures(self, name):
        claim = self.claims(name)[name]
        self.assertTrue(claim["refuted"])
        return claim["figures"]

    def test_all_are_refuted(self):
        claims = self.claims()
        self.assertEqual(len(claims), 9)
        for claim in claims.values():
            self.assertTrue(claim["refuted"], claim["name"])
            self.assertTrue(claim["source"] and claim["statement"])

    def test_1e40(self):
        figures = self.figures("bf16-1e40")
        bf16 = format_named("bf16")
        self.assertEqual((figures["bf16(1e40)"], figures["fp32(1e40)"]), (None, None))  # Inf
        self.assertEqual(figures["largest bf16"], bf16.values[-1])
        self.assertEqual(figures["bf16(1e-40)"], bf16.value(convert("bf16", 1e-40)[0]))
        self.assertEqual(figures["fp32(1e-40)"], f32(1e-40))

    def test_gradients_and_smallest(self):
        figures, to = self.figures("fp16-gradients"), format_named("fp16")
        self.assertEqual(figures, {
            "fp16(1e-5)": fp16(1e-5), "smallest normal fp16": to.min_normal,
            "smallest fp16": to.values[1], "largest number that becomes 0": to.values[1] / 2})
        figures = self.figures("smallest-positive")
        for name in ["fp16", "bf16"]:
            self.assertEqual(figures[f"smallest {name}"], format_named(name).values[1])
        self.assertEqual(figures["smallest fp32"], 2.0**-149)
        figures = self.figures("fp16-1e-7")
        self.assertEqual(figures["fp16(1e-7)"], fp16(1e-7))
        self.assertEqual(figures["fp16(1e-7 * 2^16) / 2^16"], fp16(1e-7 * 65536) / 65536)

    def test_neighbours_of_3_7(self):
        values = format_named("fp16").values
        above = bisect.bisect(values, Fraction(3.7))
        self.assertEqual(self.figures("fp16-3.7"), {
            "fp16 below 3.7": values[above - 1], "fp16 above 3.7": values[above],
            "values of fp16 in [3, 4)": sum(3 <= v < 4 for v in values)})

    def test_stochastic_rounding(self):
        figures, values = self.figures("stochastic-absolute-error"), format_named("fp16").values
        for text in ["3.7", "0.1", "2049.3"]:
            x = f32(float(text))
            near = fp16(x)
            tutorial = {"low": near, "high": fp16(near + math.copysign(1, x - near)),
                        "share": abs(x - near)}
            above = bisect.bisect(values, Fraction(x))
            low, high = values[above - 1], values[above]
            proper = {"low": low, "high": high,
                      "share": math.floor((Fraction(x) - low) / (high - low) * 2**32) / 2**32}
            for rule, expected in [("by the tutorial", tutorial), ("stochastically", proper)]:
                for key, value in expected.items():
                    self.assertEqual(figures[f"{text} {rule}: {key}"], value, (text, rule, key))
            self.assertNotIn(Fraction(tutorial["high"]), {low, high} if text != "2049.3" else set())

    def test_loss_scale(self):
        figures = self.figures("loss-scale-nan")
        for log2 in [14, 15, 16, 17]:
            expected = fp16(2.0 * 2**log2)
            self.assertEqual(figures[f"fp16(2 * 2^{log2})"],
                             expected if math.isfinite(expected) else None)
        self.assertIsNone(figures["inf - inf"])

    def test_layernorm_equals_the_demo(self):
        figures = self.figures("layernorm-one-pass")
        for row in self.ok_json("demo", "layernorm-variance")["rows"]:
            if row["mean"] in (0, 1000, 10000):
                at = f", mean {row['mean']:g}"
                self.assertEqual(figures["E[x^2] - E[x]^2" + at], row["E[x^2]-E[x]^2"])
                self.assertEqual(figures["two passes" + at], row["two passes"])

    def test_epsilon(self):
        self.assertEqual(self.figures("epsilon-fp32")["distance from 1 to the next fp32"], 2.0**-23)

    def test_text_and_errors(self):
        text = self.ok("claims", "fp16-3.7,epsilon-fp32").out
        self.assertEqual(text.splitlines()[:5], [
            'fp16-3.7: "of 3.7, fp16 can only represent 3.0 or 4.0"',
            "  fp16 below 3.7 = 3.69921875", "  fp16 above 3.7 = 3.70117188",
            "  values of fp16 in [3, 4) = 512",
            '  refuted   (course "Mixed-precision training" (Chinese), chapter 11)'])
        self.fails(2, "claims", "x", says='NAME: "x" is not one of bf16-1e40')


if __name__ == "__main__":
    cli_support.main()
