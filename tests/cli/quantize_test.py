# `fpinspect quantize` and `dequantize`: files, shapes, options, refusals, stochastic codes.
import math
import os
import struct
import subprocess

import cli_support
from cli_support import floats, read_npy, read_safetensors, write_file, write_npy, write_safetensors

INF, NAN = math.inf, math.nan

# Five rows of fp32, tile 1x0, and the scales and e4m3 codes of each rule by NumPy's float32: near
# ties of a quotient, at powers of two, where a scale is subnormal. No two rules agree on all rows.
ROWS_OF_RULES = """3ce57564 38551194 ba2c180b b8fe0b1c   3facd999 bc393248 3e81a333 3b2080ea
                   04600001 00900001 80640001 00a80001   3cfbdb3b 38a1e85d 39c5e31c 3ac5e31c
                   04600000 82a80001 02680000 80900000"""
OF_RULES = {
    "te": ("38831e82 3b458af7 00400000 388feafd 00400000",
           "7e35d2bf 7ec76b35 7e41bd42 7e394b5b 7ee35ec1"),
    "div": ("38831e82 3b458af8 00800000 388feafd 00800000",
            "7e35d2c0 7ec76a35 7639b53b 7e394b5b 76db56b9"),
    "rcp": ("38831e82 3b458af8 00800000 388feafd 00800000",
            "7e35d3c0 7ec76b35 7639b53b 7e394b5b 76db56b9"),
    "pow2": ("39000000 3b800000 00800000 39000000 00800000",
             "762dcbb8 7bc46832 7639b53b 78324454 76db56b9"),
    "dg_cuda": ("38831e83 3b458af9 00800000 388feafe 00800000",
                "7e35d2bf 7ec76a35 7639b53b 7e394b5b 76db56b9"),
    "dg_tile": ("38831e82 3b458af8 00800000 388feafd 00800000",
                "7e35d2bf 7ec76b35 7639b53b 7e394b5b 76db56b9"),
    "sgl_v2": ("38831e83 3b458af9 00800000 388feafe 00800000",
               "7e35d2bf 7ec76b35 7639b53b 7e394b5b 76db56b9"),
    "te_pow2": ("39000000 3b800000 00800000 39000000 00400000",
                "762dcbb8 7bc46832 7639b53b 78324454 7ee35ec1"),
    "mx_floor": ("38800000 3b800000 00400000 38800000 00400000",
                 "7e35d3c0 7bc46832 7e41bd43 7e3a4c5c 7ee35ec1"),
    "mx_ceil": ("39000000 3c000000 00800000 39000000 00800000",
                "762dcbb8 73bc602a 7639b53b 78324454 76db56b9"),
    "mx_even": ("38800000 3b800000 00400000 39000000 00400000",
                "7e35d3c0 7bc46832 7e41bd43 78324454 7ee35ec1"),
    "mx_rceil": ("39000000 3b800000 00400000 39000000 00400000",
                 "762dcbb8 7bc46832 7e41bd43 78324454 7ee35ec1")}


class Quantize(cli_support.CliTest):
    def quantize(self, values, shape, *options, to="e4m3"):
        """({name: (dtype, shape, raw)}, JSON document) of float32 values."""
        source = write_npy(self.path("in.npy"), "<f4", shape, floats(*values))
        target = self.path("out.safetensors")
        document = self.ok_json("quantize", source, target, "--to", to, *options)
        return read_safetensors(target), document

    def test_older_name_of_tile(self):
        plain = write_npy(self.path("plain.npy"), "<f4", (1, 16), floats(*range(16)))
        written, back = self.path("w.safetensors"), self.path("back.npy")
        for command in [["quantize", plain, written, "--to", "e4m3"], ["dequantize", written, back]]:
            new = self.ok_json(*command, "--tile", "1x16")
            for old in [("--block", "1x16"), ("--block=1x16",)]:
                self.assertEqual(self.ok_json(*command, *old), new)
            self.assertNotIn("--block", self.ok(command[0], "--help").out)
        self.fails(2, "matmul", plain, plain, "--block", "1x16", says='has no option "--block"')

    def test_tensors_and_shapes(self):
        values = [float(i + 1) for i in range(2 * 3 * 20)]
        written, document = self.quantize(values, (2, 3, 20), "--tile", "16x16", "--transposed")
        self.assertEqual({name: (dtype, shape) for name, (dtype, shape, _) in written.items()},
                         {"codes": ("F8_E4M3", [6, 20]), "scales": ("F32", [1, 2]),
                          "codes_t": ("F8_E4M3", [20, 6]), "scales_t": ("F32", [2, 1])})
        codes, codes_t = written["codes"][2], written["codes_t"][2]
        self.assertEqual(bytes(codes[r * 20 + c] for c in range(20) for r in range(6)), codes_t)
        self.assertEqual((document["codes_shape"], document["scales_shape"]), ([6, 20], [1, 2]))
        self.assertEqual((document["block"], document["transposed"]), ([16, 16], True))
        written, _ = self.quantize(values[:20], (20,), "--tile", "1x16", to="e5m2")
        self.assertEqual({name: (dtype, shape) for name, (dtype, shape, _) in written.items()},
                         {"codes": ("F8_E5M2", [1, 20]), "scales": ("F32", [1, 2])})

    def test_whole_extents(self):
        values = [1.0, 2.0, 896.0, 448.0, 4.0, 8.0]
        for block, scales in [("row", [2.0, 1.0]), ("tensor", [2.0]), ("1x0", [2.0, 1.0]),
                              ("0x0", [2.0])]:
            written, _ = self.quantize(values, (2, 3), "--tile", block, "--scale-rule", "div")
            self.assertEqual(written["scales"][2], floats(*scales), block)
        written, _ = self.quantize(values, (2, 3), "--tile", "column", "--scale-rule", "pow2")
        self.assertEqual(written["scales"][2], floats(1.0, 2.0 ** -6, 2.0))

    def test_each_scale_rule(self):
        bits = [int(word, 16) for word in ROWS_OF_RULES.split()]
        values = struct.unpack("<20f", struct.pack("<20I", *bits))
        for rule, (scales, codes) in OF_RULES.items():
            written, document = self.quantize(values, (5, 4), "--tile", "row", "--scale-rule", rule)
            found = struct.unpack("<5I", written["scales"][2])
            self.assertEqual(" ".join(f"{scale:08x}" for scale in found), scales, rule)
            self.assertEqual(written["codes"][2].hex(" ", -4), codes, rule)
            self.assertEqual(document["scale_rule"], rule)

    def test_policies_and_bounds(self):
        values = [NAN, 896.0, -INF, 1.0]
        for policy, scale, codes in [("te", 1.0, "7f7efe38"), ("skip_nonfinite", 2.0, "7f7efe30"),
                                     ("propagate", None, "7f7f7f7f")]:
            written, document = self.quantize(values, (4,), "--scale-rule", "div", "--nonfinite", policy)
            self.assertEqual(written["codes"][2].hex(), codes, policy)
            if scale is not None:
                self.assertEqual(written["scales"][2], floats(scale))
            self.assertEqual(document["statistics"]["nan"], 1)
            self.assertEqual(document["statistics"]["inf"], 1)
            self.assertIsNone(document["statistics"]["amax"])
        written, document = self.quantize([1000.0, 1.0], (2,), "--upper-bound", "448")
        self.assertEqual((written["codes"][2].hex(), document["saturated"]), ("7e38", 1))
        self.assertEqual((document["upper_bound"], document["eps"]), (448, 0))
        written, document = self.quantize([1e-3, 0.0], (2,), "--eps", "448")
        self.assertEqual((written["codes"][2].hex(), document["underflowed"]), ("0100", 0))
        written, document = self.quantize([9e-4, -0.0], (2,), "--eps", "448")
        self.assertEqual((written["codes"][2].hex(), document["underflowed"]), ("0080", 1))
        written, _ = self.quantize([1000.0, 1.0], (2,), "--upper-bound", "448", "--overflow", "ieee")
        self.assertEqual(written["codes"][2].hex(), "7f38")

    def test_statistics(self):
        _, document = self.quantize([448.0, 17.0, -3.0, 0.0], (4,))
        self.assertEqual(document["statistics"],
                         {"count": 4, "zeros": 1, "nan": 0, "inf": 0, "amax": 448,
                          "min_nonzero": 3, "signal": 448.0 ** 2 + 17 ** 2 + 9, "noise": 1})
        self.assertEqual(document["sqnr_db"], cli_support.sqnr_db(448.0 ** 2 + 17 ** 2 + 9, 1.0))
        _, document = self.quantize([448.0], (1,))
        self.assertIsNone(document["sqnr_db"])

    def test_random_bits_of_elements(self):
        """Those with which `convert` rounds the same elements, whose scale is 1."""
        values = [math.sin(i + 1) * 300 for i in range(60)] + [448.0] * 3
        for bits in "3", "32":
            rule = ["--rounding", "stochastic", "--seed", "7", "--stream", "0x10", "--offset", "5",
                    "--random-bits", bits]
            written, document = self.quantize(values, (3, 21), "--tile", "tensor", *rule)
            self.assertEqual(document["seed"], 7)
            codes = self.convert(self.path("in.npy"), "--to", "e4m3", *rule)[2]
            self.assertEqual(written["codes"][2], codes)
            self.assertNotEqual(codes, self.convert(self.path("in.npy"), "--to", "e4m3")[2])

    def test_narrow_sources_and_codes(self):
        source = write_npy(self.path("in.npy"), "<u2", (2,), struct.pack("<2H", 0x43E0, 0x3F80))
        target = self.path("out.safetensors")
        self.ok("quantize", source, target, "--to", "e4m3", "--from", "bf16")
        self.assertEqual(read_safetensors(target)["codes"][2].hex(), "7e38")
        source = write_safetensors(self.path("in.safetensors"),
                                   [("h", "F16", [1, 2], struct.pack("<2e", 448.0, 1.0))])
        self.ok("quantize", f"{source}#h", target, "--to", "e4m3")
        self.assertEqual(read_safetensors(target)["codes"][2].hex(), "7e38")

    def test_empty(self):
        for shape, scales in [((0,), [1, 0]), ((0, 5), [0, 1]), ((3, 0), [3, 0])]:
            written, document = self.quantize([], shape)
            self.assertEqual(written["scales"][1], scales)
            self.assertEqual(document["statistics"]["count"], 0)
        written, _ = self.quantize([448.0], ())
        self.assertEqual(written["codes"], ("F8_E4M3", [1, 1], b"\x7e"))

    def test_dequantize(self):
        target, back = self.path("out.safetensors"), self.path("back.npy")
        self.quantize([896.0, 1.0, -2.0], (3,), "--scale-rule", "pow2", "--tile", "1x16")
        for to, descr, form in [("fp32", "<f4", "<3f"), ("fp16", "<f2", "<3e")]:
            result = cli_support.run("dequantize", target, back, "--to", to)
            self.assertEqual((result.code, result.out), (0, ""), result.err)
            self.assertEqual(read_npy(back), (descr, (1, 3), struct.pack(form, 896.0, 1.0, -2.0)))
        document = self.ok_json("dequantize", target, back, "--to", "bf16")
        self.assertEqual((document["block"], document["dtype"]), ([1, 16], "<u2"))
        self.assertEqual(read_npy(back)[2], struct.pack("<3H", 0x4460, 0x3F80, 0xC000))

    def test_dequantize_writes_what_the_extension_says(self):
        target, back = self.path("out.safetensors"), self.path("back.safetensors")
        self.quantize([896.0, 1.0, -2.0], (3,), "--scale-rule", "pow2", "--tile", "1x16")
        for to, dtype, raw in [("fp32", "F32", floats(896.0, 1.0, -2.0)),
                               ("fp16", "F16", struct.pack("<3e", 896.0, 1.0, -2.0)),
                               ("bf16", "BF16", struct.pack("<3H", 0x4460, 0x3F80, 0xC000))]:
            document = self.ok_json("dequantize", target, back, "--to", to)
            self.assertEqual(document["dtype"], dtype)
            self.assertEqual(read_safetensors(back), {"values": (dtype, [1, 3], raw)})
        for name in ["back", "back.bin", "back.npz"]:
            self.fails(2, "dequantize", target, self.path(name), says=".npy or .safetensors")
        self.fails(2, "dequantize", target, back, "--tile", "1x32",
                   says=["1x32 contradicts the file, which says 1x16"])
        self.ok_json("dequantize", target, back, "--tile", "1x16")

    def test_dequantize_each_kind_of_outputs(self):
        values = [float(i % 13 - 6) for i in range(40 * 20)]
        self.quantize(values, (40, 20), "--outputs", "row,col,transposed", "--tile", "16x1",
                      "--scale-rule", "pow2")
        target, back = self.path("out.safetensors"), self.path("back.npy")
        turned = [values[r * 20 + c] for c in range(20) for r in range(40)]
        for name, shape, expected in [("#codes", (40, 20), values), ("#codes_col", (40, 20), values),
                                      ("#codes_t", (20, 40), turned)]:
            self.ok_json("dequantize", target + name, back)
            self.assertEqual(read_npy(back), ("<f4", shape, floats(*expected)), name)
        self.fails(2, "dequantize", target + "#scales", back, says="codes, codes_col, codes_t")

    def test_only_safetensors_holds_codes_and_scales(self):
        source = write_npy(self.path("in.npy"), "<f4", (2,), floats(448.0, 1.0))
        for name in ["q.npy", "q", "q.bin"]:
            self.fails(2, "quantize", source, self.path(name), "--to", "e4m3", says=".safetensors")
        done = subprocess.run([cli_support.FPINSPECT, "quantize", source, "-", "--to", "e4m3"],
                              capture_output=True, env=cli_support.CLEAN, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"standard output: codes [1, 2] e4m3", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["in.npy"])
        write_file(self.path("piped.safetensors"), done.stdout)
        self.assertEqual(read_safetensors(self.path("piped.safetensors"))["codes"],
                         ("F8_E4M3", [1, 2], b"\x7e\x38"))
        self.fails(2, "quantize", source, "-", "--to", "e4m3", "--json", says="OUT -")

    def test_integers_are_values_unless_from_says_codes(self):
        source = write_npy(self.path("in.npy"), "|u1", (4,), bytes([0, 1, 16, 56]))
        target = self.path("out.safetensors")
        document = self.ok_json("quantize", source, target, "--to", "e4m3", "--scale-rule", "pow2")
        self.assertEqual((document["from"], document["statistics"]["amax"]), ("U8", 56))
        bf16 = write_npy(self.path("b.npy"), "<u2", (2,), struct.pack("<2H", 0x43E0, 0x3F80))
        document = self.ok_json("quantize", bf16, target, "--to", "e4m3", "--from", "BF16")
        self.assertEqual((document["from"], document["statistics"]["amax"]), ("bf16", 448))
        self.ok("diff", target, target, "--source", bf16, "--from", "bf16")
        wide = write_npy(self.path("w.npy"), "<i4", (2,), bytes(8))
        self.fails(3, "quantize", wide, target, "--to", "e4m3", says="convert --to fp32")

    def test_exact_means_that_nothing_was_lost(self):
        for values, options, sqnr, note in [
                ([448.0, 1.0], [], None, "exact"),
                ([1000.0, 1.0], ["--upper-bound", "448", "--overflow", "ieee"], None,
                 "1 became Inf or NaN"),
                ([INF, 1.0], ["--nonfinite", "skip_nonfinite", "--scale-rule", "pow2"], None,
                 "1 not finite"),
                ([NAN, 1.0], ["--nonfinite", "propagate"], None, "1 not finite")]:
            _, document = self.quantize(values, (2,), *options)
            self.assertEqual((document["sqnr_db"], document["sqnr_note"]), (sqnr, note), values)
        text = self.ok("quantize", self.path("in.npy"), self.path("q.safetensors"), "--to", "e4m3",
                       "--nonfinite", "propagate").out
        self.assertIn("SQNR - (1 not finite)", text)

    def test_dequantize_needs_a_block_that_fits(self):
        source = write_safetensors(self.path("plain.safetensors"),
                                   [("scales", "F32", [1, 2], floats(2.0, 4.0)),
                                    ("codes", "F8_E4M3", [1, 20], b"\x38" * 20)])
        back = self.path("back.npy")
        self.fails(2, "dequantize", source, back, says="--tile")
        self.ok_json("dequantize", source, back, "--tile", "1x16")
        self.assertEqual(read_npy(back)[2], floats(*[2.0] * 16, *[4.0] * 4))
        self.fails(3, "dequantize", source, back, "--tile", "1x32", says="scales: shape")
        for tensors, says in [
                ([("scales", "F32", [1, 1], floats(1.0))], "codes"),
                ([("codes", "F8_E4M3", [1, 1], b"8")], "scales"),
                ([("scales", "F32", [1, 1], floats(1.0)), ("codes", "U8", [1, 1], b"8")], "codes"),
                ([("scales", "F32", [1], floats(1.0)), ("codes", "F8_E4M3", [1, 1], b"8")],
                 "scales must be a matrix")]:
            bad = write_safetensors(self.path("bad.safetensors"), tensors)
            self.fails(3, "dequantize", bad, back, "--tile", "1x16", says=says)

    def test_refused(self):
        source = write_npy(self.path("in.npy"), "<f4", (2,), floats(1.0, 2.0))
        target = self.path("out.safetensors")
        for options, says in [
                (["--to", "fp16"], "e4m3, e5m2"), (["--to", "e4m3fnuz"], "e4m3, e5m2"),
                (["--to", "e4m3", "--tile", "1x100"], "--tile"),
                (["--to", "e4m3", "--tile", "128"], "--tile"),
                (["--to", "e4m3", "--tile", "64x128"], "--tile"),
                (["--to", "e4m3", "--tile", "1x-16"], "--tile"),
                (["--to", "e4m3", "--scale-rule", "max"], 
                 "te, div, rcp, pow2, dg_cuda, dg_tile, sgl_v2, te_pow2"),
                (["--to", "e4m3", "--nonfinite", "drop"], "te, skip_nonfinite, propagate"),
                (["--to", "e4m3", "--rounding", "upward"], "nearest_even or stochastic"),
                (["--to", "e4m3", "--eps", "-1"], "--eps"),
                (["--to", "e4m3", "--eps", "inf"], "--eps"),
                (["--to", "e4m3", "--eps", "nan"], "--eps"),
                (["--to", "e4m3", "--upper-bound", "0"], "--upper-bound"),
                ([], "--to")]:
            self.fails(2, "quantize", source, target, *options, says=says)
        double = write_npy(self.path("d.npy"), "<f8", (1,), struct.pack("<d", 1.0))
        self.fails(3, "quantize", double, target, "--to", "e4m3", says="fp32, fp16 and bf16")
        self.fails(3, "quantize", self.path("none.npy"), target, "--to", "e4m3", says="none.npy")
        self.fails(4, "quantize", source, target, "--to", "e4m3", "--backend", "abacus",
                   says="abacus")
        self.fails(4, "quantize", source, target, "--to", "e4m3",
                   env={"SAMEBITS_BACKEND": "abacus"}, says="abacus")
        self.assertFalse(os.path.exists(target))

    def test_named_backend(self):
        source = write_npy(self.path("in.npy"), "<f4", (2,), floats(1.0, 2.0))
        target = self.path("out.safetensors")
        document = self.ok_json("quantize", source, target, "--to", "e4m3", "--backend",
                                "reference")
        self.assertEqual(document["backend"], "reference")
        self.assertIsNone(self.ok_json("quantize", source, target, "--to", "e4m3")["backend"])
