# `fpinspect matmul` and `units`: products that every unit has without an error, what single units
# lose, errors, refusals.
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


def exact(a, b, formats=("e4m3", "e4m3")):
    """The dot product of two rows of codes."""
    return sum(value(formats[0], x) * value(formats[1], y) for x, y in zip(a, b))


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

    def integers(self, name, rows, cols):
        """Codes of -3 .. 3, whose products no unit rounds."""
        codes = [reference.convert(name, float(n))[0] for n in range(-3, 4)]
        return [[self.random.choice(codes) for _ in range(cols)] for _ in range(rows)]

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

    def test_sums_that_no_unit_rounds(self):
        for formats in [("e4m3", "e4m3"), ("e5m2", "e4m3")]:
            a, b = self.integers(formats[0], 2, 300), self.integers(formats[1], 3, 300)
            for unit in ["hopper-wgmma", "ada-mma", "blackwell-tcgen05"]:
                for promotion in [0, 128]:
                    got, document = self.result(
                        self.write("a.npy", a), self.write("b.npy", b), "--trans-b",
                        *self.formats(*formats), "--unit", unit, "--promotion", str(promotion))
                    self.assertEqual(got, [tuple(exact(x, y, formats) for y in b) for x in a])
                    self.assertEqual((document["unit"], document["promotion"], document["depth"]),
                                     (unit, promotion, 300))
                    self.assertIsNone(document["error"])

    def test_what_units_lose(self):
        """256 and 2^-6 in one step, in steps of 16 products, and in steps beyond the 128th product."""
        large, small = [reference.convert("e4m3", x)[0] for x in (256.0, 2.0**-6)]
        a = [[0] * 160 for _ in range(3)]
        a[0][0], a[0][1] = large, small
        a[1][0], a[1][1], a[1][17] = large, large | 0x80, small
        a[2][0], a[2][128] = large, small
        files = [self.write("a.npy", a), self.write("ones.npy", [[0x38] * 160]), "--trans-b",
                 *self.formats("e4m3", "e4m3")]
        for unit, promotion, rest in [  # 2^-6 is kept
                ("hopper-wgmma", 0, (0, 0, 0)), ("hopper-wgmma", 128, (0, 0, 1)),
                ("ada-mma", 0, (0, 1, 0)), ("blackwell-tcgen05", 0, (1, 1, 1))]:
            got, _ = self.result(*files, "--unit", unit, "--promotion", str(promotion))
            self.assertEqual(got, [(x + kept * 2.0**-6,) for x, kept in zip((256, 0, 256), rest)],
                             (unit, promotion))

    def test_transposes(self):
        a, b = self.codes(2, 64), self.codes(3, 64)
        options = [*self.formats("e4m3", "e5m2"), "--unit", "hopper-mma-sync", "--promotion", "0"]
        turned = [list(row) for row in zip(*b)]
        self.assertEqual(self.result(self.write("a.npy", a), self.write("b.npy", b), "--trans-b",
                                     *options)[0],
                         self.result(self.write("a.npy", a), self.write("t.npy", turned),
                                     *options)[0])

    def test_scales(self):
        a, b = self.integers("e4m3", 2, 256), self.integers("e4m3", 3, 256)
        files = [self.write("a.npy", a), self.write("b.npy", b), "--trans-b",
                 *self.formats("e4m3", "e4m3"), "--unit", "hopper-wgmma", "--promotion", "128"]
        sa = [[0.75, 5], [1, -0.875]]
        write_npy(self.path("sa.npy"), "<f4", (2, 2), floats(*sum(sa, [])))
        for sb in [[0.5, 11]], [[1.375, 3], [1, 1.25], [9, 1.75]]:
            write_npy(self.path("sb.npy"), "<f4", (len(sb), 2), floats(*sum(sb, [])))
            got, _ = self.result(*files, "--scale-a", self.path("sa.npy"), "--scale-b",
                                 self.path("sb.npy"))
            for i in range(2):
                for j in range(3):
                    halves = [exact(a[i][k:k + 128], b[j][k:k + 128]) for k in (0, 128)]
                    self.assertEqual(got[i][j], sum(h * x * y for h, x, y in
                                                    zip(halves, sa[i], sb[j % len(sb)])))
        plain, _ = self.result(*files)
        write_npy(self.path("row.npy"), "<f4", (2,), floats(2, 0.25))
        write_npy(self.path("col.npy"), "<f4", (3,), floats(1, 3, 5))
        got, _ = self.result(*files, "--scale-a", self.path("row.npy"), "--scale-b",
                             self.path("col.npy"))
        self.assertEqual(got, [tuple(p * x * y for p, y in zip(row, (1, 3, 5)))
                               for row, x in zip(plain, (2, 0.25))])
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
            errors = [abs(Fraction(got[i][j]) - exact(a[i], b[j])) for i in range(4)
                      for j in range(4)]
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
        rows = [[reference.convert("e4m3", x)[0] for x in values[k:k + 64]] for k in (0, 64)]
        self.assertEqual(got, self.result(self.write("codes.npy", rows), ones, "--trans-b",
                                          *self.formats("e4m3", "e4m3"), "--unit", "hopper-wgmma",
                                          "--promotion", "0")[0])
        error = document["error"]
        self.assertEqual(error["against"], "values")
        self.assertAlmostEqual(error["max"], max(
            abs(float(Fraction(got[i][0]) - sum(map(Fraction, values[64 * i:64 * i + 64]))))
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
                           floats(*(x + bias[i % 9] for i, x in enumerate(d))))
        c = write_npy(self.path("c.npy"), "<f4", (9,), floats(*bias))
        found = self.ok("matmul", *formats, "--find", summed, "--c", c).out
        self.assertEqual(found.splitlines()[0], rule)
        none = "--find: no rule gives the bits of D"
        self.fails(1, "matmul", *formats, "--find", summed, says=none)
        document = cli_support.run("matmul", *formats, "--find", summed, "--json")
        self.assertEqual((document.code, document.json()["rules"]), (1, []))
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
