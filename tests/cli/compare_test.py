# `fpinspect compare`: figures against Python's own, pairs of tensors, and conditions for CI.
import math
import random
import struct

import cli_support
from cli_support import SAMPLE, floats, run, sqnr_db, tree_sum, write_npy, write_safetensors

NAN, INF = float("nan"), float("inf")


def bits32(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def steps(x, y):
    """Number of binary32 values from x to y; neighbours are one step apart."""
    place = lambda c: -(c & 0x7fffffff) if c >> 31 else c
    return abs(place(bits32(x)) - place(bits32(y)))


def expected(a, b):
    """The figures of two lists of binary32 numbers, from their definitions."""
    same = lambda x, y: x == y or (math.isnan(x) and math.isnan(y))
    pairs = [(x, y) if math.isfinite(x) and math.isfinite(y) else None for x, y in zip(a, b)]
    errors = [abs(p[0] - p[1]) if p else 0.0 for p in pairs]
    distances = [steps(*p) for p in pairs if p]
    ulp = {}
    for d in distances:
        first = 0 if d == 0 else 1 << (d.bit_length() - 1)
        ulp[str(first)] = ulp.get(str(first), 0) + 1
    changed = [(x, y) for x, y in zip(a, b) if not same(x, y)]
    first = [i for i, (x, y) in enumerate(zip(a, b)) if not same(x, y)]
    return {
        "differ": len(changed), "bits_differ": sum(bits32(x) != bits32(y) for x, y in zip(a, b)),
        "new_nan": sum(math.isnan(y) for x, y in changed),
        "lost_nan": sum(math.isnan(x) for x, y in changed),
        "new_inf": sum(math.isinf(y) for x, y in changed),
        "lost_inf": sum(math.isinf(x) for x, y in changed),
        "nonzero": sum(math.isfinite(x) and x != 0 for x in a),
        "underflow": sum(math.isfinite(x) and x != 0 and y == 0 for x, y in zip(a, b)),
        "paired": len(distances), "max_error": max(errors),
        "mean_error": tree_sum(errors) / max(1, len(distances)),
        "signal": tree_sum([p[0] * p[0] if p else 0.0 for p in pairs]),
        "noise": tree_sum([e * e for e in errors]),
        "max_ulp": max(distances), "ulp": ulp, "ulp_format": "fp32",
        "first_index": first[0] if first else None}


class Figures(cli_support.CliTest):
    def compare(self, a, b, *options):
        shape = (len(a),)
        return self.ok_json("compare", write_npy(self.path("a.npy"), "<f4", shape, floats(*a)),
                            write_npy(self.path("b.npy"), "<f4", shape, floats(*b)), *options)

    def check(self, a, b):
        single = lambda values: list(struct.unpack(f"<{len(values)}f", floats(*values)))
        a, b = single(a), single(b)
        (got,) = self.compare(a, b)["tensors"]
        want = expected(a, b)
        first = want.pop("first_index")
        self.assertEqual(got["first"] and got["first"]["index"], first)
        self.assertEqual({key: got[key] for key in want}, want)
        return got

    def test_random_values(self):
        draw = random.Random(7)
        a = [draw.gauss(0, 1) * 2.0 ** draw.randrange(-20, 20) for _ in range(70001)]
        b = [x * (1 + draw.choice([0, 2.0**-23, -2.0**-20, 2.0**-9])) for x in a]
        got = self.check(a, b)
        self.assertEqual(got["sqnr_db"], sqnr_db(got["signal"], got["noise"]))
        self.assertEqual(abs(got["largest"]["a"] - got["largest"]["b"]), got["max_error"])

    def test_differences_late_in_the_tensor(self):
        a = [1.0] * 70001
        b = [1.0] * 70000 + [2.0]
        b[66000] = 1.5
        got = self.check(a, b)
        self.assertEqual((got["first"]["index"], got["largest"]["index"]), (66000, 70000))

    def test_special_values(self):
        a = [1.0, 0.0, -0.0, NAN, NAN, INF, -INF, INF, 2.0, 1e-45, 5.0, 3.0, -1e-45]
        b = [1.0, -0.0, 0.0, NAN, 1.0, INF, INF, 7.0, NAN, 0.0, -INF, 3.5, 1e-45]
        got = self.check(a, b)
        self.assertIsNone(got["sqnr_db"])
        self.assertEqual(got["sqnr_note"], "1 new NaN, 2 new Inf, 1 NaN became numbers, "
                                           "2 Inf became other values")
        self.assertEqual((got["first"]["index"], got["largest"]["index"]), (4, 11))

    def test_equal(self):
        got = self.check([1.0, NAN, INF, -0.0], [1.0, NAN, INF, -0.0])
        self.assertEqual((got["sqnr_note"], got["largest"]), ("exact", None))
        draw = random.Random(8)
        many = [draw.gauss(0, 1) for _ in range(70001)]
        many[40000], many[50000], many[60000] = NAN, -INF, 0.0
        self.assertEqual(self.check(many, many)["sqnr_note"], "exact")
        signs = self.check([0.0, 1.0], [-0.0, 1.0])
        self.assertEqual((signs["differ"], signs["bits_differ"]), (0, 1))

    def test_ulp_of_the_coarser_format(self):
        for mode, most in ("nearest_even", 0), ("toward_zero", 1):
            target = self.path("bf16.safetensors")
            run("convert", SAMPLE + "#weight.fc1", target, "--to", "bf16", "--rounding", mode)
            for files in ([SAMPLE + "#weight.fc1", target], [target, SAMPLE + "#weight.fc1"]):
                (got,) = self.ok_json("compare", *files)["tensors"]
                self.assertEqual((got["ulp_format"], got["max_ulp"]), ("bf16", most))
                self.assertIsNone(got["bits_differ"])

    def test_fp64_and_both_ends_of_the_line(self):
        top = 1.7976931348623157e308
        a = write_npy(self.path("a.npy"), "<f8", (2,), struct.pack("<2d", -top, 1.0))
        b = write_npy(self.path("b.npy"), "<f8", (2,), struct.pack("<2d", top, 1.0))
        (got,) = self.ok_json("compare", a, b)["tensors"]
        self.assertEqual(got["max_ulp"], 2 * 0x7fefffffffffffff)

    def test_codes_in_integers(self):
        codes = self.path("codes.npy")
        run("convert", SAMPLE + "#weight.fc1", codes, "--to", "bf16")
        (got,) = self.ok_json("compare", SAMPLE + "#weight.fc1", codes, "--from-b", "bf16")["tensors"]
        self.assertEqual((got["type_a"], got["type_b"], got["max_ulp"]), ("fp32", "bf16", 0))
        self.fails(2, "compare", codes, SAMPLE + "#weight.fc1", "--from-b", "bf16", says="--from-b")
        # as values, these integers are beyond 53 bits; as codes they are numbers
        wide = write_npy(self.path("wide.npy"), "<u8", (2,), struct.pack("<2d", 0.1, 0.2))
        same = write_npy(self.path("same.npy"), "<f8", (2,), struct.pack("<2d", 0.1, 0.2))
        (got,) = self.ok_json("compare", wide, same, "--from-a", "fp64")["tensors"]
        self.assertEqual((got["not_compared"], got["bits_differ"]), (None, 0))
        (got,) = self.ok_json("compare", wide, same)["tensors"]
        self.assertIn("53 significant bits", got["not_compared"])


class Files(cli_support.CliTest):
    def setUp(self):
        super().setUp()
        tensor = lambda name, *values: (name, "F32", (len(values),), floats(*values))
        self.a = write_safetensors(self.path("a.safetensors"), [
            tensor("same", 1, 2), tensor("w", 1, 2, 3), tensor("shape", 1, 2), tensor("gone", 1),
            ("flag", "BOOL", (1,), b"\x01")])
        self.b = write_safetensors(self.path("b.safetensors"), [
            tensor("w", 1, 2, 3.5), tensor("same", 1, 2), tensor("shape", 1, 2, 3),
            tensor("added", 1), ("flag", "BOOL", (1,), b"\x00")])

    def test_pairs_by_name(self):
        document = self.ok_json("compare", self.a, self.b)
        self.assertEqual((document["only_in_a"], document["only_in_b"]), (["gone"], ["added"]))
        self.assertEqual([(t["name"], t.get("differ"), t["not_compared"])
                          for t in document["tensors"]],
                         [("same", 0, None), ("w", 1, None), ("shape", None, "shapes [2] and [3]"),
                          ("flag", None, "elements are neither floating point nor integers")])
        out = self.ok("compare", self.a, self.b).out
        self.assertIn("2 tensors, 1 equal, 1 differ\n", out)
        self.assertIn("Only in A: gone\nOnly in B: added\n", out)
        self.assertIn("  w [2]: 3 in A, 3.5 in B, first and largest\n", out)

    def test_patterns(self):
        names = [t["name"] for t in self.ok_json("compare", self.a, self.b, "--tensor", "s*")
                 ["tensors"]]
        self.assertEqual(names, ["same", "shape"])
        self.fails(3, "compare", self.a, self.b, "--tensor", "nothing", says='"nothing"')

    def test_no_pair(self):
        self.fails(3, "compare", self.a, self.b + "#added", says="no tensor of a name")

    def test_single_tensors_need_no_common_name(self):
        document = self.ok_json("compare", self.a + "#w", self.b + "#w")
        self.assertEqual(document["tensors"][0]["differ"], 1)
        self.assertEqual(self.ok_json("compare", self.a + "#same", self.b + "#shape")
                         ["tensors"][0]["not_compared"], "shapes [2] and [3]")

    def test_hostile_names(self):
        name = "n\n\x1b[31m"
        paths = [write_safetensors(self.path(f"{i}.safetensors"),
                                   [(name, "F32", (1,), floats(i))]) for i in range(2)]
        done = run("compare", *paths, "--fail-if", "differ>0")
        self.assertEqual(done.code, 1)
        self.assertNotIn("\x1b", done.out + done.err)


class Quantized(cli_support.CliTest):
    def setUp(self):
        super().setUp()
        self.source = SAMPLE + "#grad.preactivation.fc1"
        for name, recipe in ("one", "TE_CURRENT"), ("tiles", "TE_BLOCK_1D"):
            setattr(self, name, self.path(name + ".safetensors"))
            setattr(self, name + "_report", self.ok_json(
                "quantize", self.source, getattr(self, name), "--recipe", recipe))

    def test_values_are_codes_times_scales(self):
        run("dequantize", self.one, self.path("one.npy"))
        (got,) = self.ok_json("compare", self.one, self.path("one.npy"))["tensors"]
        self.assertEqual((got["name"], got["bits_differ"]), ("values", 0))
        (raw,) = self.ok_json("compare", self.one + "#codes", self.one + "#codes")["tensors"]
        self.assertEqual(raw["type_a"], "e4m3")

    def test_which_is_closer(self):
        document = self.ok_json("compare", self.one, self.tiles, "--original", self.source)
        against = document["tensors"][0]["against_original"]
        for key, report in ("a", self.one_report), ("b", self.tiles_report):
            self.assertEqual(against[key]["underflow"], report["underflowed"])
            # quantize rounds x * (1 / scale); its noise is not computed from values in fp32
            self.assertAlmostEqual(against[key]["sqnr_db"], report["sqnr_db"], places=3)
        self.assertLessEqual(against["closer_a"] + against["closer_b"], 16384)
        self.assertGreater(against["closer_b"], 0)
        better = "A" if against["a"]["sqnr_db"] > against["b"]["sqnr_db"] else "B"
        for files, wanted in ([self.one, self.tiles], better), \
                             ([self.tiles, self.one], "AB".replace(better, "")):
            out = self.ok("compare", *files, "--original", self.source).out
            self.assertIn(f"\n{wanted} is closer to the original in 1 of 1 tensor\n", out)
            self.assertIn("  grad.preactivation.fc1 ", out)

    def test_neither(self):
        out = self.ok("compare", self.one, self.one, "--original", self.source).out
        self.assertIn("Neither is closer to the original: A in 0, B in 0 of 1 tensor\n", out)

    def test_a_value_that_is_not_finite_is_farther(self):
        files = [write_npy(self.path(f"{name}.npy"), "<f4", (6,), floats(*values))
                 for name, values in [("a", (1, INF, 3, NAN, 9, NAN)), ("b", (9, 2, 3, 4, NAN, INF)),
                                      ("o", (1, 2, 3, 4, 5, 6))]]
        (tensor,) = self.ok_json("compare", *files[:2], "--original", files[2])["tensors"]
        self.assertEqual([tensor["against_original"][k] for k in ("closer_a", "closer_b")], [2, 2])


class Conditions(cli_support.CliTest):
    def setUp(self):
        super().setUp()
        tensor = lambda name, *values: (name, "F32", (len(values),), floats(*values))
        self.a = write_safetensors(self.path("a.safetensors"), [
            tensor("x", 1, 2, 3, 4), tensor("y", 1, 2, 3, 4), tensor("z", 1, 1, 1, 1)])
        self.b = write_safetensors(self.path("b.safetensors"), [
            tensor("x", 1, 2, 3, 0), tensor("y", 1, 2, 0, 0), tensor("z", 1, 1, 1, NAN)])

    def code(self, *conditions, files=None):
        return run("compare", *(files or [self.a, self.b]), "--fail-if", *conditions)

    def test_each_figure(self):
        for holds, does_not in [
                ("underflow>49%", "underflow>50%"), ("underflow>=50 %", "underflow>2"),
                ("differ>0", "differ>50%"), ("new-nan>0", "new-nan>25%"), ("max-error>=4", "max-error>4"),
                ("mean-error>1.7", "mean-error>1.75"), ("bits-differ>1", "bits-differ>2"),
                ("new-inf>=0", "new-inf>0"), ("max-ulp>1000", "max-ulp>1e10"),
                ("sqnr<1dB", "sqnr>99")]:
            self.assertEqual(self.code(holds).code, 1, holds)
            done = self.code(does_not)
            self.assertEqual((done.code, done.err), (0, ""), does_not)

    def test_the_message_names_the_worst(self):
        done = self.code("underflow>1%,new-nan>0")
        self.assertEqual(done.err, "fpinspect: --fail-if underflow>1%: 2 times, worst y: 50 %; "
                                   "--fail-if new-nan>0: z: 1\n")
        self.assertIn("3 tensors, 0 equal, 3 differ\n", done.out)  # the report is complete

    def test_json(self):
        done = run("compare", self.a, self.b, "--json", "--fail-if", "underflow > 1 %",
                   "--fail-if", "new-inf>0")
        self.assertEqual((done.code, done.json()["fail_if"]), (1, [
            {"condition": "underflow>1%", "failed": 2, "worst": "y", "value": 50},
            {"condition": "new-inf>0", "failed": 0, "worst": None, "value": None}]))

    def test_what_cannot_be_compared_fails(self):
        fewer = write_safetensors(self.path("c.safetensors"), [("x", "F32", (4,), floats(1, 2, 3, 4))])
        done = self.code("max-ulp>0", files=[self.a, fewer])
        self.assertEqual((done.code, done.err),
                         (1, "fpinspect: --fail-if: 2 tensors are not measured: y: only in A\n"))
        self.assertEqual(self.code("max-ulp>0", files=[fewer, self.a]).code, 1)
        self.ok("compare", self.a, fewer)  # without a condition it is only reported

    def test_no_ratio_fails_every_lower_limit(self):
        done = self.code("sqnr<-1dB", files=[self.a, self.b])
        self.assertEqual(done.code, 2)  # limits are not negative
        files = [self.a + "#z", self.b + "#z"]
        self.assertIn("z: no value", self.code("sqnr<0dB", files=files).err)

    def test_wrong_conditions(self):
        for text in ["underflow", "underflow>", ">1", "underflow>1dB", "overflow>1%", "underflow=1%",
                     "underflow>x", "underflow>nan", "underflow>1e999", "sqnr<30%", "max-ulp>1%"]:
            self.fails(2, "compare", self.a, self.b, "--fail-if", text, says=["--fail-if", "sqnr"])
        self.fails(2, "compare", self.a, self.b, "--fail-if", "fp16.underflow>1%", says='"fp16."')


class Rules(cli_support.CliTest):
    """--explain names the cast or the recipe, of files that other commands wrote."""
    ONE = SAMPLE + "#weight.fc1"

    def rules(self, a, b):
        got = self.ok_json("compare", a, b, "--explain")["tensors"]
        return [tensor.get("rule", "not searched") for tensor in got]

    def converted(self, name, *options, source=ONE):
        path = self.path(name + ".safetensors")
        self.assertEqual(run("convert", source, path, *options).code, 0)
        return path

    def quantized(self, name, recipe):
        path = self.path(name + ".safetensors")
        self.assertEqual(run("quantize", self.ONE, path, "--recipe", recipe, "--to", "e4m3").code, 0)
        return path

    def test_casts(self):
        for rounding in ("nearest_even", "toward_zero"):
            for to in ("bf16", "fp16", "e5m2"):
                b = self.converted("b", "--to", to, "--rounding", rounding)
                self.assertEqual(self.rules(self.ONE, b), [f"B is A rounded to {to} ({rounding})"])
                self.assertEqual(self.rules(b, self.ONE), [f"A is B rounded to {to} ({rounding})"])
                wide = self.converted("wide", "--to", "fp32", source=b)  # as a master that was rounded
                self.assertEqual(self.rules(self.ONE, wide), [f"B is A rounded to {to} ({rounding})"])
                self.assertEqual(self.rules(b, wide), ["not searched"])  # they are equal

    def test_recipes(self):
        for recipe in ("TE_BLOCK_2D", "MXFP8_TE", "DEEPGEMM_FP32_CUDA", "TE_CURRENT"):
            b = self.quantized("b", recipe)
            (rule,) = self.rules(self.ONE, b)
            self.assertRegex(rule, "^B is A by recipe [A-Z0-9_]+ to e4m3$")
            named = self.quantized("named", rule.split()[5])  # perhaps another of the same result
            self.assertEqual(self.ok_json("compare", b, named)["tensors"][0]["differ"], 0)

    def test_two_levels_and_few_bits(self):
        """Codes times scales are what dequantize writes."""
        options = [["--recipe", "NVFP4_TE"], ["--recipe", "MXFP4_FLOOR"], ["--recipe", "MXFP8_TE"],
                   ["--scale-rule", "nvfp4_te", "--tile", "1x16", "--to", "e4m3"]]
        for option in options:
            q, values = self.path("q.safetensors"), self.path("values.npy")
            self.assertEqual(run("quantize", self.ONE, q, *option).code, 0)
            self.assertEqual(run("dequantize", q, values).code, 0)
            self.assertEqual(self.ok_json("compare", q, values)["tensors"][0]["differ"], 0)

    def test_no_rule(self):
        draw = random.Random(3)
        values = [draw.gauss(0, 1) for _ in range(64)]
        a = write_npy(self.path("a.npy"), "<f4", (8, 8), floats(*values))
        b = write_npy(self.path("b.npy"), "<f4", (8, 8), floats(*[x + 1e-3 for x in values]))
        self.assertEqual(self.rules(a, b), [None])
        self.assertIn("no known rule\n", self.ok("compare", a, b, "--explain").out)
        one = list(struct.unpack("<64f", floats(*values)))
        half = [struct.unpack("<e", struct.pack("<e", x))[0] for x in one]
        c = write_npy(self.path("c.npy"), "<f4", (8, 8), floats(*half))
        self.assertEqual(self.rules(a, c), ["B is A rounded to fp16 (nearest_even)"])
        half[17] += 2**-10  # one value
        d = write_npy(self.path("d.npy"), "<f4", (8, 8), floats(*half))
        self.assertEqual(self.rules(a, d), [None])

    def test_nan_and_zeros(self):
        values = [NAN, INF, -INF, 0.0, -0.0, 1 / 3, 1e-42, 65520.0]
        a = write_npy(self.path("a.npy"), "<f4", (8,), floats(*values))
        b = self.converted("b", "--to", "bf16", source=a)
        self.assertEqual(self.rules(a, b), ["B is A rounded to bf16 (nearest_even)"])

    def test_refused(self):
        self.fails(2, "compare", self.ONE, self.ONE, "--explain", "--original", self.ONE, says="--original")
