# `fpinspect update`: steps of the contract's section 12 in binary32, written here again, and the ways
# to store weights, with the rounding of reference.py.
import math
import struct

import cli_support
from cli_support import floats, write_npy
from reference import convert, format_named, nearest_even, random_word, stochastic

MODES = ["fp32", "direct", "direct_fp16", "stochastic", "kahan", "split16", "master32", "fp8_copy",
         "master16_scaled"]
STATES = {"adamw": 2, "adam": 2, "lamb": 2, "lion": 1, "sgd": 0}
BYTES = {"fp32": 4, "direct": 2, "direct_fp16": 2, "stochastic": 2, "kahan": 4, "split16": 4,
         "master32": 6, "fp8_copy": 5 + 4 / 128, "master16_scaled": 3 + 8 / 128}
EQUAL = 64


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def bits(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def of_bits(u):
    return struct.unpack("<f", struct.pack("<I", u))[0]


def rounded(name, x, away=nearest_even):
    return format_named(name).value(convert(name, x, away)[0])


def power(base, n):
    result = 1.0
    while n:
        if n & 1:
            result *= base
        base *= base
        n >>= 1
    return result


class Strict:
    """Steps of one weight, profile strict."""

    def __init__(self, rule, lr, wd=0.0, beta1=0.9, beta2=0.999, eps=1e-8, momentum=0.0):
        self.rule, self.lr, self.wd, self.eps, self.momentum = rule, lr, wd, eps, momentum
        self.beta1, self.beta2 = f32(beta1), f32(beta2)
        self.m = self.v = 0.0

    def average(self, beta, old, new):
        return f32(f32(beta * old) + f32(f32(1 - beta) * new))

    def step(self, p, g, t):
        lr = self.lr
        if self.rule in ("adamw", "lion") and self.wd:
            p = f32(p * f32(1 - lr * self.wd))
        if self.rule in ("adam", "sgd") and self.wd:
            g = f32(g + f32(f32(self.wd) * p))
        if self.rule == "sgd":
            if self.momentum:
                # dampening is 0
                self.m = g if t == 1 else f32(f32(f32(self.momentum) * self.m) + g)
                g = self.m
            return f32(p - f32(f32(lr) * g))
        if self.rule == "lion":
            x = self.average(self.beta1, self.m, g)
            p = f32(p - f32(f32(lr) * ((x > 0) - (x < 0))))
            self.m = self.average(self.beta2, self.m, g)
            return p
        c1, c2 = 1 - power(self.beta1, t), 1 - power(self.beta2, t)
        self.m = self.average(self.beta1, self.m, g)
        self.v = self.average(self.beta2, self.v, f32(g * g))
        d = f32(f32(f32(math.sqrt(self.v)) / f32(math.sqrt(c2))) + f32(self.eps))
        return f32(p - f32(f32(f32(lr / c1) * self.m) / d))


class Stored:
    """A weight, with the largest one of its block; `read` is what a model reads of it."""

    def __init__(self, mode, start, amax, index=0):
        self.mode, self.index, self.low = mode, index, 0
        self.write(start, amax, None)

    def write(self, p, amax, t):
        self.kept = self.read = p
        if self.mode == "direct":
            self.kept = self.read = rounded("bf16", p)
        elif self.mode == "direct_fp16":
            self.kept = self.read = rounded("fp16", p)
        elif self.mode == "stochastic":
            word = random_word(0, (1 << 56) + t, self.index, 16) if t else 0
            self.kept = self.read = rounded("bf16", p, stochastic(word, 16) if t else nearest_even)
        elif self.mode == "kahan":
            self.read = rounded("bf16", p)
            self.kept = f32(self.read + rounded("bf16", f32(p - self.read)))
        elif self.mode == "split16":
            self.read = of_bits((bits(p) + 0x8000) & 0xFFFF0000)
        elif self.mode == "master32":
            self.read = rounded("bf16", p)
        elif self.mode == "fp8_copy":
            self.read = self.fp8(p, max(abs(p), abs(amax)))
        elif self.mode == "master16_scaled":
            largest = max(abs(p), abs(amax))
            exponent = max((bits(largest) >> 23) - 14, 1) - 127
            self.kept = rounded("fp16", p / 2.0**exponent) * 2.0**exponent
            self.other = rounded("fp16", amax / 2.0**exponent) * 2.0**exponent
            self.read = self.fp8(self.kept if t is None else p,
                                 max(abs(self.kept), abs(self.other)) if t is None else largest)

    @staticmethod
    def fp8(p, amax):
        inverse = f32(448 / amax)
        return f32(rounded("e4m3", f32(p * inverse)) * f32(1 / inverse))


def exact(rule, start, gradients, lr, wd=0.0, beta1=0.9, beta2=0.999, eps=1e-8, momentum=0.0):
    """The last weight of the formulas in binary64."""
    p, m, v = start, 0.0, 0.0
    for t, g in enumerate(gradients, 1):
        if rule in ("adamw", "lion"):
            p *= 1 - lr * wd
        elif rule in ("adam", "sgd"):
            g += wd * p
        if rule == "sgd":
            m = g if t == 1 else momentum * m + g
            p -= lr * m
        elif rule == "lion":
            x = beta1 * m + (1 - beta1) * g
            p -= lr * ((x > 0) - (x < 0))
            m = beta2 * m + (1 - beta2) * g
        else:
            m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
            p -= lr * (m / (1 - beta1**t)) / (math.sqrt(v / (1 - beta2**t)) + eps)
    return p


class Update(cli_support.CliTest):
    def check(self, rule, steps, gradients, arguments, start=1.0, amax=None, **hyper):
        shown = self.ok_json("update", "--rule", rule, "--steps", str(steps), *arguments)
        amax = 3 * abs(start) if amax is None else amax
        self.assertEqual([mode["name"] for mode in shown["modes"]], MODES)
        for place, mode in enumerate(MODES):
            equal = EQUAL if mode == "stochastic" else 1
            weights = [Stored(mode, f32(start), f32(amax), i) for i in range(equal)]
            others = [Stored(mode, f32(amax), f32(start))] if mode == "master16_scaled" else []
            rules = [Strict(rule, **hyper) for _ in weights]
            other, other_rule = f32(amax), Strict(rule, **hyper)
            if others:
                other = others[0].kept
            last_change, row = 0, 0
            for t in range(steps + 1):
                before = weights[0].read
                if t:
                    other = other_rule.step(other, 0.0, t)
                    for weight, own in zip(weights, rules):
                        p = own.step(weight.kept, gradients[(t - 1) % len(gradients)], t)
                        weight.write(p, other, t)
                    if others:
                        other = weights[0].other
                    if weights[0].read != before:
                        last_change = t
                if row < len(shown["rows"]) and shown["rows"][row]["step"] == t:
                    self.assertEqual(shown["rows"][row][mode], weights[0].read, (mode, t))
                    row += 1
            self.assertEqual(row, len(shown["rows"]))
            told = shown["modes"][place]
            self.assertEqual((told["read"], told["kept"], told["last_change"]),
                             (weights[0].read, weights[0].kept, last_change), mode)
            for what in "read", "kept":
                self.assertEqual(told[what + "_distance"],
                                 abs(told[what] - shown["exact"]) / abs(shown["exact"]))
            self.assertEqual(told["mean"], sum(w.read for w in weights) / equal, mode)
            rms = math.sqrt(sum((w.read - shown["exact"])**2 for w in weights) / equal)
            self.assertAlmostEqual(told["rms_distance"], rms / abs(shown["exact"]), places=14)
            states = STATES[rule] or (1 if hyper.get("momentum") else 0)
            self.assertEqual(told["bytes_per_parameter"], BYTES[mode] + 4 * states)
        values = [gradients[(t - 1) % len(gradients)] for t in range(1, steps + 1)]
        self.assertAlmostEqual(shown["exact"], exact(rule, f32(start), values, **hyper), places=12)
        return shown

    def test_adamw(self):
        shown = self.check("adamw", 300, [f32(0.01)], [], lr=1e-4)
        last = {mode["name"]: mode for mode in shown["modes"]}
        self.assertEqual((last["direct"]["last_change"], last["direct_fp16"]["last_change"]), (0, 0))
        self.assertLess(last["split16"]["kept_distance"], 1e-5)
        self.check("adamw", 60, [f32(-3.0)], [
            "--lr", "2e-3", "--weight-decay", "0.1", "--gradient", "-3", "--start", "-0.3",
            "--block-amax", "5", "--beta1", "0.8", "--beta2", "0.95", "--epsilon", "1e-3"],
            start=-0.3, amax=5.0, lr=2e-3, wd=0.1, beta1=0.8, beta2=0.95, eps=1e-3)

    def test_epsilon_of_0(self):
        """Without a gradient, the first step is 0 / 0."""
        lines = self.ok("update", "--epsilon", "0", "--gradient", "0", "--steps", "1",
                        "--modes", "fp32,split16").out.splitlines()
        self.assertEqual([line.split() for line in lines[2:5]],
                         [["step", "exact", "fp32", "split16"], ["0", "1", "1", "1"],
                          ["1", "nan", "nan", "nan"]])
        shown = self.ok_json("update", "--epsilon", "0", "--steps", "1", "--lr", "0.25",
                             "--modes", "fp32")
        self.assertEqual((shown["epsilon"], shown["exact"], shown["modes"][0]["read"]), (0, 0.75, 0.75))

    def test_other_rules(self):
        self.check("adam", 40, [f32(0.02)], ["--lr", "0.003", "--weight-decay", "0.01", "--gradient", "0.02"],
                   lr=0.003, wd=0.01)
        self.check("sgd", 40, [f32(0.3)], ["--lr", "0.01", "--gradient", "0.3", "--weight-decay", "0.1"],
                   lr=0.01, wd=0.1)
        self.check("sgd", 40, [f32(0.3)], ["--lr", "0.01", "--gradient", "0.3", "--momentum", "0.9"],
                   lr=0.01, momentum=0.9)
        self.check("lion", 40, [f32(0.3)], ["--lr", "0.001", "--gradient", "0.3", "--weight-decay", "0.1"],
                   lr=0.001, wd=0.1)

    def test_lamb_with_one_norm(self):
        """Weights of 64 and a gradient of 0 beside it: the trust ratio by hand, in the first step."""
        shown = self.ok_json("update", "--rule", "lamb", "--steps", "1", "--lr", "0.01",
                             "--block-amax", "6", "--modes", "fp32,master32")
        weights = math.sqrt(64 * 1.0 + 36.0)
        step = 0.01 * weights / 8.0  # 64 directions of 1
        self.assertAlmostEqual(shown["exact"], 1 - step, places=7)
        for mode in shown["modes"]:
            self.assertAlmostEqual(mode["kept"], shown["exact"], places=6)

    def test_exact_weight_of_lamb(self):
        """64 equal weights and one without gradient, by the formulas in binary64."""
        shown = self.ok_json("update", "--rule", "lamb", "--steps", "40", "--lr", "0.01", "--weight-decay",
                             "0.1", "--gradient", "0.25", "--block-amax", "6", "--modes", "fp32")
        p, g, m, v = [1.0, 6.0], [0.25, 0.0], [0.0, 0.0], [0.0, 0.0]
        for t in range(1, 41):
            m = [0.9 * a + (1 - 0.9) * x for a, x in zip(m, g)]
            v = [0.999 * a + (1 - 0.999) * x * x for a, x in zip(v, g)]
            u = [a / (1 - 0.9**t) / (math.sqrt(b / (1 - 0.999**t)) + 1e-8) + 0.1 * w
                 for a, b, w in zip(m, v, p)]
            trust = math.sqrt(64 * p[0]**2 + p[1]**2) / math.sqrt(64 * u[0]**2 + u[1]**2)
            p = [w - 0.01 * trust * d for w, d in zip(p, u)]
        self.assertAlmostEqual(shown["exact"], p[0], places=12)

    def test_gradients_of_a_file(self):
        values = [f32(x) for x in (0.5, -0.25, 0.1, 2.0, -0.7)]
        path = write_npy(self.path("g.npy"), "<f4", (5,), floats(*values))
        self.check("adamw", 13, values, ["--gradient", path, "--lr", "0.01"], lr=0.01)
        half = write_npy(self.path("h.npy"), "<f2", (2,), struct.pack("<2e", 0.5, -0.25))
        self.check("sgd", 4, [0.5, -0.25], ["--gradient", half, "--lr", "0.5"], lr=0.5)

    def test_shown_steps(self):
        def steps(*arguments):
            return [row["step"] for row in self.ok_json("update", *arguments)["rows"]]
        self.assertEqual(steps("--steps", "100"), [0, 1, 2, 5, 10, 20, 50, 100])
        self.assertEqual(steps("--steps", "7"), [0, 1, 2, 5, 7])
        self.assertEqual(steps("--steps", "1"), [0, 1])
        self.assertEqual(steps("--steps", "10", "--every", "4"), [0, 4, 8, 10])
        self.assertEqual(steps("--steps", "3", "--every", "3"), [0, 3])

    def test_seed_and_modes(self):
        def weights(*arguments):
            shown = self.ok_json("update", "--modes", "stochastic,fp32", *arguments)
            self.assertEqual([mode["name"] for mode in shown["modes"]], ["stochastic", "fp32"])
            return [row["stochastic"] for row in shown["rows"]], [row["fp32"] for row in shown["rows"]]
        first, second = weights(), weights("--seed", "7")
        self.assertNotEqual(first[0], second[0])
        self.assertEqual(first[1], second[1])
        self.assertEqual(first, weights("--seed", "0"))

    def test_weights_that_reach_zero_and_inf(self):
        shown = self.ok_json("update", "--rule", "sgd", "--gradient", "1", "--lr", "0.5", "--steps", "2",
                             "--modes", "fp32")
        self.assertEqual((shown["exact"], shown["modes"][0]["read"]), (0, 0))
        self.assertIsNone(shown["modes"][0]["read_distance"])
        lines = self.ok("update", "--rule", "sgd", "--gradient", "-3e38", "--lr", "4", "--steps", "1",
                        "--modes", "fp32").out.splitlines()
        self.assertIn("1     1.2e+39   inf", lines)

    def test_numbers_that_name_files_too(self):
        write_npy(self.path("1"), "<f4", (1,), floats(7))
        shown = self.ok_json("update", "--gradient", "1", "--rule", "sgd", "--lr", "0.5", "--steps", "1",
                             "--modes", "fp32", cwd=self.folder)
        self.assertEqual(shown["exact"], 0.5)

    def test_gradients_and_weights_at_the_limits(self):
        path = write_npy(self.path("g.npy"), "<f4", (3,), floats(1, math.nan, 1))
        shown = self.ok_json("update", "--gradient", path, "--steps", "9")
        for mode in shown["modes"]:
            self.assertEqual((mode["read"], mode["kept_distance"], mode["last_change"]), (None, None, 2), mode)
        shown = self.ok_json("update", "--start", "3e38", "--steps", "1")
        self.assertEqual(shown["block_amax"], of_bits(0x7F7FFFFF))
        for mode in shown["modes"]:
            self.assertEqual(mode["kept"] is None, mode["name"] == "direct_fp16", mode)
        for mode in self.ok_json("update", "--start", "0", "--gradient", "0")["modes"]:
            self.assertEqual((mode["read"], mode["kept"], mode["last_change"]), (0, 0, 0))

    def test_text_fits_80_columns(self):
        lines = self.ok("update", "--lr", "0.0001234", "--start", "-0.123456", "--steps", "100000",
                        "--every", "30000").out.splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertEqual([line.split()[0] for line in lines if line.startswith(("30000", "100000"))],
                         ["30000", "100000"] * 2)

    def test_why_fp8_does_not_show_the_start(self):
        line = "fp8_copy, master16_scaled: e4m3 codes; --block-amax 5 sets their scale"
        both = self.ok("update", "--modes", "fp8_copy,master16_scaled", "--steps", "2", "--block-amax", "5")
        self.assertIn(line, both.out)
        self.assertNotIn("e4m3", self.ok("update", "--modes", "fp32,direct", "--steps", "2").out)

    def test_all_modes(self):
        arguments = ["update", "--steps", "2", "--json"]
        self.assertEqual(self.ok(*arguments, "--modes", "all").out, self.ok(*arguments).out)

    def test_errors(self):
        empty = write_npy(self.path("e.npy"), "<f4", (0,), b"")
        for arguments, says in [
                (["--rule", "x"], ['--rule: "x" is not one of adamw, adam, sgd, lion, lamb']),
                (["--modes", "fp32,x"], ['--modes: "x" is not one of fp32, direct']),
                (["--lr", "-1"], "--lr: must be"),
                (["--epsilon", "-1"], "--epsilon: must be a number >= 0 that is finite"),
                (["--weight-decay", "-1"], "--weight-decay: must be"), (["--lr", "x"], '"x" is not a finite number'),
                (["--beta1", "1"], "--beta1: must be"), (["--start", "1e39"], "beyond the numbers of fp32"),
                (["--steps", "0"], "--steps"), (["--every", "0"], "--every"),
                (["--momentum", "0.9"], "--momentum does nothing without --rule sgd"),
                (["--rule", "sgd", "--beta1", "0.9"], "--beta1 does nothing without"),
                (["--gradient", "nan"], "not a finite number"),
                (["--gradient", empty], "has no elements")]:
            self.fails(2, "update", *arguments, says=says)
        self.fails(3, "update", "--gradient", self.path("missing.npy"))
