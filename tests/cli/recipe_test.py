# Recipes from the outside: `recipes`, `quantize --recipe`, `diff`, `tensor --recipes`.
import itertools
import math
import pathlib
import struct

import cli_support
from cli_support import SAMPLE, floats, read_file, read_safetensors, write_file, write_npy, write_safetensors

FP32 = ["activation.gelu", "weight.fc1", "grad.preactivation.fc1", "grad.weight.fc1",
        "adam.exp_avg_sq.fc1", "grad.bias.fc1"]
REAL = FP32 + ["weight.fc2.bf16", "activation.gelu.f16"]
NAMES = ["TE_BLOCK_1D", "TE_BLOCK_2D", "TE_CURRENT", "TE_DELAYED", "DEEPGEMM_UE8M0",
         "DEEPGEMM_FP32_CUDA", "DEEPGEMM_FP32_CPU", "DSV3_IEEE", "VLLM_GROUP", "TORCHAO_BLOCK",
         "TORCHAO_ROW", "FBGEMM_ROW", "MSAMP", "MXFP8_TE", "MXFP8_TORCHAO", "MXFP8_FLOOR",
         "MXFP8_CEIL", "MXFP8_EVEN"]
#: Recipes whose codes have 4 or 6 bits.
NARROW = ["MXFP6_E2M3_FLOOR", "MXFP6_E3M2_FLOOR", "MXFP4_FLOOR", "MXFP4_CEIL", "MXFP4_EVEN",
          "MXFP4_RCEIL", "NVFP4_TE", "NVFP4_TE_2D", "NVFP4_TE_4OVER6", "NVFP4_TE_4OVER6_MSE",
          "NVFP4_STATIC6", "NVFP4_TORCHAO", "NVFP4_VLLM"]
RECORDINGS = pathlib.Path(SAMPLE).parent.parent / "golden" / "recipes"
CAUSES = ["scale_ulp", "tie", "policy", "nan", "saturation", "unexplained"]


class Recipes(cli_support.CliTest):
    def quantize(self, source, name, *options):
        target = self.path(f"{name}.safetensors")
        self.ok("quantize", source, target, *options)
        return target

    def diff(self, a, b, *options):
        """The JSON document; the exit status and the sums in it agree."""
        result = cli_support.run("diff", a, b, *options, "--json")
        document = result.json()
        self.assertEqual(list(document["why"]), CAUSES)
        self.assertEqual(sum(document["why"].values()), document["differ"])
        for what in ["compared", "differ"]:
            self.assertEqual(document[what], document["codes"][what] + document["scales"][what])
        self.assertEqual(result.code, 1 if document["differ"] else 0, result.err)
        return document

    def why(self, a, b, *options):
        return {k: n for k, n in self.diff(a, b, *options)["why"].items() if n}

    def test_the_table(self):
        recipes = self.ok_json("recipes")["recipes"]
        self.assertEqual([r["name"] for r in recipes], NAMES + NARROW)
        for r in recipes:
            recording = RECORDINGS / (r["name"] + ".txt")  # replayed by golden.recipes
            nonfinite = RECORDINGS / "nonfinite" / recording.name
            for key, file in [("verified", recording), ("verified_nonfinite", nonfinite)]:
                self.assertEqual(r[key], "library output" if file.exists() else "unverified")
            self.assertTrue(r["version"] and r["reproduces"] and r["exceptions"])
        text = self.ok("recipes").out
        for name in NAMES:
            self.assertIn(f"\n{name} ", text)
        self.assertIn("was not run", text)

    def test_a_recipe_is_its_options(self):
        source = f"{SAMPLE}#weight.fc2.bf16"
        for name, options in [
                ("DEEPGEMM_FP32_CUDA", ["--scale-rule", "dg_cuda", "--eps", "1e-4", "--nonfinite",
                                        "propagate", "--overflow", "ieee"]),
                ("TE_BLOCK_2D", ["--scale-rule", "te_pow2", "--tile", "128x128"]),
                ("FBGEMM_ROW", ["--scale-rule", "div", "--tile", "row", "--eps", "0.001953125",
                                "--nonfinite", "skip_nan"])]:
            by_recipe = self.quantize(source, "recipe", "--recipe", name)
            by_options = self.quantize(source, "options", "--to", "e4m3", *options)
            self.assertEqual(read_safetensors(by_recipe), read_safetensors(by_options), name)
        wide = self.quantize(source, "wide", "--recipe", "te_current", "--to", "e5m2")
        self.assertEqual(read_safetensors(wide)["codes"][0], "F8_E5M2")

    def test_outputs(self):
        source = f"{SAMPLE}#weight.fc2.bf16"  # [32, 256]
        target = self.quantize(source, "all", "--recipe", "MXFP8_TE", "--outputs",
                               "row,col,transposed")
        written = read_safetensors(target)
        self.assertEqual({name: (dtype, shape) for name, (dtype, shape, _) in written.items()},
                         {"codes": ("F8_E4M3", [32, 256]), "scales": ("F8_E8M0", [32, 8]),
                          "codes_col": ("F8_E4M3", [32, 256]), "scales_col": ("F8_E8M0", [1, 256]),
                          "codes_t": ("F8_E4M3", [256, 32]), "scales_t": ("F8_E8M0", [8, 32])})
        options = ["--scale-rule", "mx_rceil", "--tile", "32x1", "--nonfinite", "skip_nan"]
        column = read_safetensors(self.quantize(source, "col", "--to", "e4m3", *options))
        self.assertEqual(written["codes_col"][2], column["codes"][2])
        powers = struct.unpack("<256f", column["scales"][2])
        self.assertEqual(written["scales_col"][2],
                         bytes(127 + int(math.log2(s)) for s in powers))
        only = read_safetensors(self.quantize(source, "only", "--recipe", "MXFP8_TE", "--outputs",
                                              "transposed"))
        self.assertEqual(only, {name: written[name] for name in ["codes_t", "scales_t"]})
        # Back by way of the bytes.
        back = self.path("back.npy")
        self.assertEqual(cli_support.run("dequantize", target, back).code, 0)

    def test_bytes_of_special_tiles(self):
        source = write_npy(self.path("in.npy"), "<f4", (4, 32),
                           floats(*[0.0] * 32, *[1.0] * 32, math.nan, *[1.0] * 31,
                                  math.inf, *[1.0] * 31))
        for name, scales in [("MXFP8_TE", "007777fe"), ("MXFP8_TORCHAO", "0077ffff"),
                             ("MXFP8_FLOOR", "0077ffff")]:
            written = read_safetensors(self.quantize(source, "mx", "--recipe", name))
            self.assertEqual(written["scales"][2].hex(), scales, name)

    def test_pairs_of_recipes_on_real_tensors(self):
        total = dict.fromkeys(CAUSES, 0)
        for number, tensor in enumerate(REAL):
            source = f"{SAMPLE}#{tensor}"
            files = [self.quantize(source, name, "--recipe", name) for name in NAMES]
            for k, (a, b) in enumerate(itertools.combinations(range(len(NAMES)), 2)):
                # Every other one without the tensor that was quantized.
                known = ["--source", source] if (k + number) % 2 else []
                document = self.diff(files[a], files[b], *known)
                self.assertEqual(document["why"]["unexplained"], 0,
                                 (tensor, NAMES[a], NAMES[b], document))
                for cause, n in document["why"].items():
                    total[cause] += n
        for cause in ["scale_ulp", "tie", "policy", "saturation"]:
            self.assertGreater(total[cause], 0, cause)

    def test_each_cause(self):
        def pair(values, first, second):
            source = write_npy(self.path("in.npy"), "<f4", (1, len(values)), floats(*values))
            a = self.quantize(source, "a", "--to", "e4m3", "--tile", "row", *first)
            b = self.quantize(source, "b", "--to", "e4m3", "--tile", "row", *second)
            return [self.why(a, b), self.why(a, b, "--source", source)]

        same = pair([1.0, 2.0], ["--scale-rule", "te"], ["--scale-rule", "te"])
        self.assertEqual(same, [{}, {}])
        # mx_floor has scale 1, under which 500 is cut off at 448; mx_rceil has 2.
        self.assertEqual(pair([500.0, 1.0], ["--scale-rule", "mx_floor"], ["--scale-rule", "mx_rceil"]),
                         [{"saturation": 1, "policy": 2}] * 2)
        self.assertEqual(pair([math.inf, 3.0], ["--scale-rule", "div"],
                              ["--scale-rule", "div", "--nonfinite", "propagate"]),
                         [{"nan": 3}] * 2)
        # te and div on one row of 1/3 steps: scales an ulp apart or equal, codes on borders.
        whys = [pair([i / 7 + k / 16 for k in range(40)] + [float(i)], ["--scale-rule", "te"],
                     ["--scale-rule", "div"]) for i in range(1, 40)]
        self.assertEqual({cause for both in whys for w in both for cause in w}
                         - {"scale_ulp", "tie"}, set())
        self.assertTrue(any("scale_ulp" in both[0] for both in whys))

    def test_what_no_recipe_explains(self):
        source = f"{SAMPLE}#weight.fc1"
        names = ["TE_BLOCK_1D", "DSV3_IEEE"]
        files = [self.quantize(source, name, "--recipe", name) for name in names]
        content = bytearray(read_file(files[1]))
        content[-1] ^= 0x80  # the last code's sign
        changed = write_file(self.path("changed.safetensors"), content)
        for known in ([], ["--source", source]):
            self.assertGreaterEqual(self.why(files[0], changed, *known)["unexplained"], 1)
            # Of one rule not even a neighbouring code is explained.
            self.assertEqual(self.why(files[1], changed, *known), {"unexplained": 1})
        content[-1] ^= 0x81
        write_file(changed, content)
        self.assertEqual(self.why(files[1], changed), {"unexplained": 1})
        self.assertIn("first unexplained: codes [63, 255]",
                      cli_support.run("diff", files[1], changed).out)

    def test_tensor_recipes(self):
        document = self.ok_json("tensor", SAMPLE, "--tensor", "weight.fc1", "--recipes")
        (tensor,) = document["tensors"]
        self.assertEqual([r["name"] for r in tensor["recipes"]],
                         [n for n in NAMES + NARROW if n != "TE_DELAYED"])
        for r in tensor["recipes"]:
            one = self.ok_json("quantize", f"{SAMPLE}#weight.fc1", self.path("x.safetensors"),
                               "--recipe", r["name"])
            for key in ["sqnr_db", "underflowed", "saturated", "lost_tiles"]:
                self.assertEqual(r[key], one[key], r["name"])
        text = self.ok("tensor", SAMPLE, "--recipes").out
        self.assertIn("MXFP8_FLOOR", text)
        self.assertIn("not quantized", text)  # weight.fc1.e4m3

    def test_narrow_codes_and_back(self):
        for name in NARROW:
            written = self.quantize(f"{SAMPLE}#weight.fc1", name, "--recipe", name)
            dtype, shape, raw = read_safetensors(written)["codes"]
            bits = 4 if dtype == "F4" else 6
            self.assertEqual((shape, 8 * len(raw)), ([64, 256], bits * 64 * 256), name)
            back = self.path("back.npy")
            self.ok_json("dequantize", written, back)
            found = self.ok_json("compare", f"{SAMPLE}#weight.fc1", back)["tensors"][0]
            (tensor,) = self.ok_json("tensor", f"{SAMPLE}#weight.fc1", "--recipes")["tensors"]
            (recipe,) = [r for r in tensor["recipes"] if r["name"] == name]
            self.assertAlmostEqual(found["sqnr_db"], recipe["sqnr_db"], 5, name)
        self.fails(3, "diff", written, written, says=["e2m1 are not compared"])

    def test_lost_tiles(self):
        values = [1e4] * 16 + [1e-4] * 16 + [0.0] * 16
        source = write_npy(self.path("lost.npy"), "<f4", (1, 48), floats(*values))
        for name, lost in [("NVFP4_TE", 1), ("NVFP4_VLLM", 1), ("NVFP4_TORCHAO", 0)]:
            document = self.ok_json("quantize", source, self.path("x.safetensors"), "--recipe", name)
            self.assertEqual((document["lost_tiles"], document["underflowed"]), (lost, 16), name)

    def test_refused(self):
        source, target = f"{SAMPLE}#weight.fc1", self.path("out.safetensors")
        self.fails(2, "quantize", source, target, "--recipe", "TE", says=NAMES)
        self.fails(2, "quantize", source, target, "--recipe", "MSAMP", "--tile", "1x16",
                   says="--recipe and --tile contradict each other")
        self.fails(2, "quantize", source, target, "--recipe", "MSAMP", "--overflow", "ieee",
                   says="--overflow")
        self.fails(2, "quantize", source, target, "--recipe", "MSAMP", "--outputs", "row,both",
                   says="row, col, transposed")
        self.fails(2, "quantize", source, target, says="--to")
        plain = write_safetensors(self.path("plain.safetensors"),
                                  [("codes", "F8_E4M3", [1, 1], b"8")])
        self.fails(3, "diff", plain, plain, says="samebits.block")
        a = self.quantize(source, "a", "--recipe", "TE_CURRENT")
        b = self.quantize(f"{SAMPLE}#grad.bias.fc1", "b", "--recipe", "TE_CURRENT")
        self.fails(3, "diff", a, b, says="shape")
        self.fails(2, "diff", a, a, "--source", f"{SAMPLE}#grad.bias.fc1", says="--source")
