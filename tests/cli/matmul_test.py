# `fpinspect matmul` and `units`: products compared with a model in exact fractions, errors,
# refusals.
import math
import random
import struct
from fractions import Fraction

import cli_support
import reference
from cli_support import floats, read_npy, write_npy, write_safetensors


def value(name, code):
    f = reference.format_named(name)
    magnitude = f.values[code & (f.sign - 1)]
    return -magnitude if code & f.sign else magnitude


def exponent(x):
    """Largest e with 2^e <= |x|."""
    x = abs(x)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e - 1 if Fraction(2) ** e > x else e


def field_exponent(name, code):
    """That of the code's binade; of a subnormal the least normal one."""
    f = reference.format_named(name)
    return max(exponent(value(name, code)), exponent(f.min_normal))


def toward_zero(x, unit):
    return math.trunc(x / unit) * unit


def fp32(x):
    """A fraction as the nearest binary32 number, even at ties."""
    if x == 0:
        return Fraction(0)
    unit = Fraction(2) ** (max(exponent(x), -126) - 23)
    return round(x / unit) * unit


def step(products, total, kept, bits):
    """[(value, exponent)] and the sum so far, as a tensor core adds them."""
    terms = [(v, e) for v, e in products if v]
    if total:
        terms.append((total, exponent(total)))
    if not terms:
        return Fraction(0)
    unit = Fraction(2) ** (max(e for _, e in terms) - kept)
    total = sum(toward_zero(v, unit) for v, _ in terms)
    if total == 0:
        return total
    return toward_zero(total, Fraction(2) ** (exponent(total) - bits))


def dot(a, b, formats, group, kept, bits, promotion, scales=None, by_lines=False):
    """scales: one pair for each 128 of K, multiplied first and then fused; by_lines: the sum times the
    first, then fused with the second."""
    promoted = Fraction(0)
    total = Fraction(0)
    for k in range(0, len(a), group):
        products = [(value(formats[0], x) * value(formats[1], y),
                     field_exponent(formats[0], x) + field_exponent(formats[1], y))
                    for x, y in zip(a[k:k + group], b[k:k + group]) if x & 0x7f and y & 0x7f]
        total = step(products, total, kept, bits)
        end = k + group >= len(a)
        if promotion and (end or (k + group) % promotion == 0):
            if scales:
                x, y = scales[k // 128]
                promoted = fp32(promoted + (fp32(total * x) * y if by_lines else
                                            total * fp32(x * y)))
            else:
                promoted = fp32(promoted + total)
            total = Fraction(0)
    return promoted if promotion else total


class Matmul(cli_support.CliTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(7)
        self.out = self.path("d.npy")

    def codes(self, rows, cols):
        """Codes of either FP8 format, not NaN nor infinite, mostly within some binades."""
        return [[self.random.choice([0, 0x80]) | (0 if self.random.random() < 0.1 else
                                                  self.random.randrange(0x28, 0x48))
                 for _ in range(cols)] for _ in range(rows)]

    @staticmethod
    def formats(a, b):
        """Both operands are codes in integers."""
        return ["--format-a", a, "--from-a", a, "--format-b", b, "--from-b", b]

    def write(self, name, rows):
        return write_npy(self.path(name), "|u1", (len(rows), len(rows[0])), bytes(sum(rows, [])))

    def result(self, *arguments):
        document = self.ok_json("matmul", *arguments, "--out", self.out)
        descr, shape, raw = read_npy(self.out)
        self.assertEqual((descr, list(shape)), ("<f4", document["shape"]))
        flat = struct.unpack(f"<{shape[0] * shape[1]}f", raw)
        return [flat[i * shape[1]:(i + 1) * shape[1]] for i in range(shape[0])], document

    def test_is_the_model(self):
        a, b = self.codes(2, 300), self.codes(3, 300)
        for formats in [("e4m3", "e4m3"), ("e5m2", "e4m3")]:
            for unit, group, kept, bits in [("hopper-wgmma", 32, 13, 13),
                                            ("ada-mma", 16, 13, 13),
                                            ("blackwell-tcgen05", 32, 25, 23)]:
                for promotion in [0, 128]:
                    got, document = self.result(
                        self.write("a.npy", a), self.write("b.npy", b), "--trans-b",
                        *self.formats(*formats), "--unit", unit, "--promotion", str(promotion))
                    for i in range(2):
                        for j in range(3):
                            expected = dot(a[i], b[j], formats, group, kept, bits, promotion)
                            self.assertEqual(Fraction(got[i][j]), expected,
                                             (formats, unit, promotion, i, j))
                    self.assertEqual((document["unit"], document["promotion"], document["depth"]),
                                     (unit, promotion, 300))
                    self.assertIsNone(document["error"])

    def test_transposes(self):
        a, b = self.codes(2, 64), self.codes(3, 64)
        options = [*self.formats("e4m3", "e5m2"), "--unit", "hopper-mma-sync", "--promotion", "0"]
        turned = [list(row) for row in zip(*b)]
        self.assertEqual(self.result(self.write("a.npy", a), self.write("b.npy", b), "--trans-b",
                                     *options)[0],
                         self.result(self.write("a.npy", a), self.write("t.npy", turned),
                                     *options)[0])

    def test_scales(self):
        a, b = self.codes(2, 256), self.codes(3, 256)
        files = [self.write("a.npy", a), self.write("b.npy", b), "--trans-b",
                 *self.formats("e4m3", "e4m3"), "--unit", "hopper-wgmma", "--promotion", "128"]
        sa = [[Fraction(3, 4), Fraction(5)], [Fraction(1), Fraction(-7, 8)]]
        write_npy(self.path("sa.npy"), "<f4", (2, 2), floats(*map(float, sum(sa, []))))
        write_npy(self.path("sb.npy"), "<f4", (1, 2), floats(0.5, 11))
        got, _ = self.result(*files, "--scale-a", self.path("sa.npy"), "--scale-b",
                             self.path("sb.npy"))
        for i in range(2):
            for j in range(3):
                pairs = list(zip(sa[i], [Fraction(1, 2), Fraction(11)]))
                self.assertEqual(Fraction(got[i][j]),
                                 dot(a[i], b[j], ("e4m3", "e4m3"), 32, 13, 13, 128, pairs))
        sb = [[Fraction(11, 8), Fraction(3)], [Fraction(1), Fraction(5, 4)],
              [Fraction(9), Fraction(7, 4)]]
        third = Fraction(float.fromhex("0x1.555556p-2"))
        sa = [[x * third for x in row] for row in sa]
        write_npy(self.path("sa.npy"), "<f4", (2, 2), floats(*map(float, map(fp32, sum(sa, [])))))
        write_npy(self.path("sb.npy"), "<f4", (3, 2), floats(*map(float, sum(sb, []))))
        got, _ = self.result(*files, "--scale-a", self.path("sa.npy"), "--scale-b",
                             self.path("sb.npy"))
        other = 0
        for i in range(2):
            for j in range(3):
                pairs = list(zip(map(fp32, sa[i]), sb[j]))
                unit = (a[i], b[j], ("e4m3", "e4m3"), 32, 13, 13, 128, pairs)
                self.assertEqual(Fraction(got[i][j]), dot(*unit, by_lines=True))
                other += Fraction(got[i][j]) != dot(*unit)
        self.assertGreater(other, 0)
        plain, _ = self.result(*files)
        write_npy(self.path("row.npy"), "<f4", (2,), floats(2, 0.25))
        write_npy(self.path("col.npy"), "<f4", (3,), floats(1, 3, 5))
        got, _ = self.result(*files, "--scale-a", self.path("row.npy"), "--scale-b",
                             self.path("col.npy"))
        for i, x in enumerate([2, Fraction(1, 4)]):
            for j, y in enumerate([1, 3, 5]):
                self.assertEqual(Fraction(got[i][j]), fp32(Fraction(plain[i][j]) * x * y))
        got, _ = self.result(*files, "--scale-a", "0.5", "--scale-b", "-4")
        self.assertEqual(got[1], tuple(-2 * x for x in plain[1]))

    def test_error_of_codes(self):
        a, b = self.codes(4, 1000), self.codes(4, 1000)
        a = [[code & 0x7f for code in row] for row in a]  # sums that grow
        b = [[code & 0x7f for code in row] for row in b]
        files = [self.write("a.npy", a), self.write("b.npy", b), "--trans-b",
                 *self.formats("e4m3", "e4m3"), "--unit", "hopper-wgmma", "--against", "exact"]
        means = []
        for promotion in ["0", "128"]:
            got, document = self.result(*files, "--promotion", promotion)
            errors = [abs(Fraction(got[i][j]) -
                          sum(value("e4m3", x) * value("e4m3", y) for x, y in zip(a[i], b[j])))
                      for i in range(4) for j in range(4)]
            error = document["error"]
            self.assertEqual((error["against"], error["count"], error["nonfinite"]),
                             ("codes", 16, 0))
            self.assertEqual(error["unequal"], sum(e != 0 for e in errors))
            self.assertEqual(error["max"], float(max(errors)))
            self.assertAlmostEqual(error["mean"], float(sum(errors) / 16), delta=1e-12)
            self.assertEqual(error["operands_share"], 0)
            self.assertGreater(error["accumulation_share"], 0.99)
            self.assertEqual(sum(error["octaves"]), error["unequal"])
            means.append(error["mean"])
        self.assertGreater(means[0], 2 * means[1])

    def test_values_and_their_rounding(self):
        values = [self.random.gauss(0, 1) for _ in range(2 * 64)]
        values = list(struct.unpack("<128f", floats(*values)))
        source = write_npy(self.path("v.npy"), "<f4", (2, 64), floats(*values))
        ones = write_npy(self.path("ones.npy"), "|u1", (1, 64), bytes([0x38] * 64))
        got, document = self.result(source, ones, "--trans-b", "--format-a", "e4m3", "--format-b",
                                    "e4m3", "--from-b", "e4m3", "--unit", "hopper-wgmma", "--promotion", "0", "--against",
                                    "exact")
        for i in range(2):
            row = [reference.convert("e4m3", x)[0] for x in values[64 * i:64 * i + 64]]
            self.assertEqual(Fraction(got[i][0]),
                             dot(row, [0x38] * 64, ("e4m3", "e4m3"), 32, 13, 13, 0))
        error = document["error"]
        self.assertEqual(error["against"], "values")
        exact = [sum(map(Fraction, values[64 * i:64 * i + 64])) for i in range(2)]
        self.assertAlmostEqual(error["max"], max(abs(float(Fraction(got[i][0]) - exact[i]))
                                                 for i in range(2)), delta=1e-12)
        self.assertGreater(error["operands_share"], 0.9)
        self.assertAlmostEqual(error["operands_share"] + error["accumulation_share"] +
                               error["rounding_share"], 1)
        # values that the format has are no rounding
        halves = write_safetensors(self.path("h.safetensors"),
                                   [("x", "F16", [1, 2], struct.pack("<2e", 1.5, -2.0))])
        got, document = self.result(f"{halves}#x", f"{halves}#x", "--trans-b", "--format-a", "fp16",
                                    "--format-b", "fp16", "--unit", "volta-mma", "--promotion", "0",
                                    "--against", "exact")
        self.assertEqual((got, document["error"]["against"]), ([(6.25,)], "codes"))

    def test_integers_are_values_without_from(self):
        source = self.write("a.npy", [[3, 0, 16, 1]])
        options = ["--trans-b", "--format-a", "e4m3", "--format-b", "e4m3", "--unit",
                   "hopper-wgmma", "--promotion", "0"]
        got, document = self.result(source, source, *options, "--against", "exact")
        self.assertEqual((got, document["error"]["against"]), ([(266.0,)], "values"))
        done = cli_support.run("matmul", source, source, *options, "--out", self.out)
        self.assertIn("note: the integers of A are values; --from-a says", done.err)
        out = self.path("d.safetensors")
        done = cli_support.run("matmul", source, source, *options, "--out", out)
        self.assertEqual(cli_support.read_safetensors(out), {"d": ("F32", [1, 1], floats(266))})

    def test_text(self):
        source = self.write("a.npy", [[0x38] * 32])
        arguments = ["matmul", source, source, "--trans-b", *self.formats("e4m3", "e4m3"),
                     "--promotion", "0", "--out", self.out]
        done = cli_support.run(*arguments, "--unit", "hopper-wgmma", "--against", "exact")
        self.assertEqual(done.code, 0)
        self.assertTrue(done.err.endswith("d.npy: [1, 1] over 32, e4m3 x e4m3 by hopper-wgmma, no "
                                          "promotion\n"))
        self.assertIn("elements       1, 0 with an error", done.out)
        done = cli_support.run(*arguments, "--unit", "blackwell-rtx-mma")
        self.assertEqual((done.code, done.out), (0, ""))
        self.assertIn("note: this unit is not confirmed on hardware by this project; evidence: "
                      "literature", done.err)

    def test_finds_the_rule(self):
        a, b = self.write("a.npy", self.codes(20, 300)), self.write("b.npy", self.codes(9, 300))
        formats = [a, b, "--trans-b", *self.formats("e4m3", "e4m3")]
        self.result(*formats, "--unit", "hopper-wgmma", "--promotion", "128")
        rule = "sum=tensor_core unit=hopper-wgmma promotion=128"
        self.assertEqual(self.ok("matmul", *formats, "--find", self.out).out, rule + "\n")
        document = self.ok_json("matmul", *formats, "--find", self.out)
        self.assertEqual((document["rules"], document["shape"], document["depth"]),
                         ([rule], [20, 9], 300))
        # D with a bias; of another unit there is no rule, and without the bias neither
        shape, raw = read_npy(self.out)[1:]
        bias = [float(i + 1) for i in range(9)]
        d = struct.unpack("<180f", raw)
        summed = write_npy(self.path("s.npy"), "<f4", shape,
                           floats(*(float(fp32(Fraction(x) + Fraction(bias[i % 9])))
                                    for i, x in enumerate(d))))
        c = write_npy(self.path("c.npy"), "<f4", (9,), floats(*bias))
        found = self.ok("matmul", *formats, "--find", summed, "--c", c).out
        self.assertEqual(found.splitlines()[0], rule)
        none = "--find: no rule gives the bits of D"
        self.fails(1, "matmul", *formats, "--find", summed, says=none)
        self.fails(1, "matmul", *formats, "--find", self.out, "--unit", "ada-mma", says=none)
        self.fails(2, "matmul", *formats, "--find", c, says="--find: the product has [20, 9], got [9]")
        self.fails(2, "matmul", *formats, "--find", a, says="fp32, fp16 or bf16 is expected")
        self.fails(2, "matmul", *formats, "--find", self.out, "--promotion", "0",
                   says="--find and --promotion contradict each other")
        self.fails(2, "matmul", *formats, "--c", c, "--unit", "ada-mma", "--promotion", "0", "--out",
                   self.out, says="--c does nothing without --find")
        self.fails(2, "matmul", *formats, says="--unit is required")

    def test_refusals(self):
        a = self.write("a.npy", [[0x38] * 128] * 2)
        plain = {"--format-a": "e4m3", "--from-a": "e4m3", "--format-b": "e4m3",
                 "--from-b": "e4m3", "--unit": "hopper-wgmma",
                 "--promotion": "0", "--out": self.out}

        def fails(code, says, first=a, **changed):
            options = {**plain, **{"--" + k.replace("_", "-"): v for k, v in changed.items()}}
            flat = [word for pair in options.items() for word in pair]
            self.fails(code, "matmul", first, a, "--trans-b", *flat, says=says)

        fails(2, "--unit: \"hopper\" is not one of volta-mma, ", unit="hopper")
        fails(2, "ampere-mma does not multiply e4m3 by e4m3", unit="ampere-mma")
        fails(2, "--promotion: 48 is no multiple", promotion="48")
        fails(2, "--promotion", promotion="-1")
        fails(2, "--promotion: is given more than once", promote="0")  # the older name
        fails(2, "--against: \"fp64\" is not exact", against="fp64")
        fails(2, "--from-a: codes of fp16 have 16 bits, the elements are U8", from_a="fp16")
        fails(2, "--out: \"d.bin\" must end in .npy or .safetensors", out="d.bin")
        fails(2, "K is 128, that of A 64", first=self.write("b.npy", [[0x38] * 64]))
        fails(3, "nowhere", first=self.path("nowhere.npy"))
        fails(4, "nope", backend="nope")
        scales = write_npy(self.path("s.npy"), "<f4", (5, 1), floats(1, 2, 3, 4, 5))
        fails(2, "--scale-a: [5, 1] scales fit no tiles of [2, 128]", scale_a=scales)
        fails(3, "1e99", scale_a="1e99")
        cube = write_npy(self.path("c.npy"), "|u1", (1, 2, 64), bytes(128))
        fails(2, "A: must have two dimensions, got [1, 2, 64]", first=cube)
        wide = write_npy(self.path("w.npy"), "<f4", (2, 256), floats(*[1.0] * 512))
        tiles = write_npy(self.path("t.npy"), "<f4", (2, 2), floats(1, 2, 3, 4))
        self.fails(2, "matmul", wide, wide, "--trans-b", "--format-a", "e4m3",
                   "--format-b", "e4m3", "--unit", "hopper-wgmma", "--promotion", "0", "--out",
                   self.out, "--scale-a", tiles, says="scales of 128 along K need 128")

    def test_units(self):
        document = self.ok_json("units")
        rows = {(u["unit"], u["operands"]): u for u in document["units"]}
        self.assertEqual(len(rows), len(document["units"]))
        wgmma = rows["hopper-wgmma", "fp8"]
        self.assertEqual((wgmma["products"], wgmma["group"], wgmma["alignment_bits"],
                          wgmma["fraction_bits"], wgmma["evidence_fp32"]),
                         (32, 32, 13, 13, "hardware"))
        self.assertEqual(rows["hopper-mma-sync", "fp8"]["path"], "by fp16")
        text = self.ok("units").out
        for unit, operands in rows:
            self.assertRegex(text, rf"(?m)^{unit} +{operands} ")


if __name__ == "__main__":
    cli_support.main()
