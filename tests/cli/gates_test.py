# --fail-if of `quantize` and of `tensor --recipes`.
import math
import os

import cli_support
from cli_support import SAMPLE, floats, run, write_npy, write_safetensors

WEIGHT = f"{SAMPLE}#weight.fc1"


class QuantizeGate(cli_support.CliTest):
    def quantize(self, source, *conditions, options=("--to", "e4m3")):
        self.out = self.path("q.safetensors")
        return run("quantize", source, self.out, *options, "--fail-if", *conditions)

    def test_figures(self):
        document = self.ok_json("quantize", WEIGHT, self.path("q.safetensors"), "--to", "e4m3")
        self.assertEqual(document["fail_if"], [])
        db = document["sqnr_db"]
        self.assertEqual(self.quantize(WEIGHT, f"sqnr<{db - 0.001}dB").code, 0)
        done = self.quantize(WEIGHT, f"sqnr<{db + 0.001}dB")
        self.assertEqual((done.code, done.err), (1, f"fpinspect: --fail-if sqnr<{db + 0.001}dB: "
                                                 f"weight.fc1: {db:.4g} dB\n"))

    def test_the_file_and_the_report_are_complete(self):
        done = self.quantize(WEIGHT, "sqnr<99dB")
        self.assertEqual(done.code, 1)
        self.assertEqual(done.out, self.ok("quantize", WEIGHT, self.out, "--to", "e4m3").out)
        self.assertGreater(os.path.getsize(self.out), 16384)

    def test_counts_and_shares(self):
        # A tile of 1 x 128: the largest is 448, so 2^-10 becomes 0.
        path = write_npy(self.path("x.npy"), "<f4", (1, 5), floats(448, 2**-11, 2**-12, 0, 1))
        self.assertEqual(self.quantize(path, "underflow>1").code, 1)
        self.assertEqual(self.quantize(path, "underflow>2").code, 0)
        self.assertEqual(self.quantize(path, "underflow>=50%").code, 1)  # of 4 that are not 0
        self.assertEqual(self.quantize(path, "underflow>50%").code, 0)
        path = write_npy(self.path("x.npy"), "<f4", (1, 4), floats(math.nan, math.inf, 1, math.nan))
        done = self.quantize(path, "nan>1,inf>25%,saturated>5")
        self.assertEqual((done.code, done.err), (1, f"fpinspect: --fail-if nan>1: {path}: 2\n"))
        # MXFP8 with a scale rounded down saturates.
        path = write_npy(self.path("x.npy"), "<f4", (1, 32), floats(*[511.0] * 32))
        options = ["--recipe", "MXFP8_FLOOR"]
        self.assertEqual(self.quantize(path, "saturated>31", options=options).code, 1)
        self.assertEqual(self.quantize(path, "saturated>=100%", options=options).code, 1)

    def test_json(self):
        done = run("quantize", WEIGHT, self.path("q.safetensors"), "--to", "e4m3", "--json",
                   "--fail-if", "underflow>0,nan>0")
        names = [one["condition"] for one in done.json()["fail_if"]]
        self.assertEqual((done.code, names), (0, ["underflow>0", "nan>0"]))

    def test_exact_and_empty(self):
        exact = write_npy(self.path("x.npy"), "<f4", (2, 2), floats(448, 1, 2, 0))
        self.assertEqual(self.quantize(exact, "sqnr<300dB").code, 0)
        empty = write_npy(self.path("x.npy"), "<f4", (0, 2), b"")
        self.assertEqual(self.quantize(empty, "sqnr<300dB,underflow>0").code, 0)

    def test_refused(self):
        for text in "bits>8", "sqnr<30%", "sqnr":
            self.fails(2, "quantize", WEIGHT, self.path("no.safetensors"), "--to", "e4m3", "--fail-if",
                       text, says=["--fail-if", "saturated"])
        self.fails(2, "quantize", WEIGHT, self.path("no.safetensors"), "--to", "e4m3", "--fail-if",
                   "TE_CURRENT.sqnr<30dB", says='"TE_CURRENT."')
        self.assertFalse(os.path.exists(self.path("no.safetensors")))


class RecipesGate(cli_support.CliTest):
    def recipes(self, *conditions, files=(WEIGHT,)):
        return run("tensor", *files, "--recipes", "--fail-if", *conditions)

    def test_one_recipe_or_all(self):
        (tensor,) = self.ok_json("tensor", WEIGHT, "--recipes")["tensors"]
        db = {r["name"]: r["sqnr_db"] for r in tensor["recipes"]}
        worst = min(db, key=db.get)
        done = self.recipes("sqnr<31.55dB")
        below = sum(one < 31.55 for one in db.values())
        self.assertGreater(below, 1)
        self.assertEqual((done.code, done.err), (1, f"fpinspect: --fail-if sqnr<31.55dB: {below} times, "
                                                 f"worst weight.fc1 by {worst}: {db[worst]:.4g} dB\n"))
        self.assertEqual(self.recipes("TE_CURRENT.sqnr<31.55dB").code, 0)
        self.assertEqual(self.recipes("te_current.sqnr<99dB").code, 1)
        self.assertEqual(self.recipes("TE_CURRENT.saturated>0").code, 0)
        self.assertIn("by MXFP8_FLOOR: 109", self.recipes("mxfp8_floor.saturated>0").err)
        self.assertEqual(self.recipes("TE_BLOCK_2D.underflow>0").code, 1)
        self.assertEqual(done.out, self.ok("tensor", WEIGHT, "--recipes").out)

    def test_tensors_that_are_not_quantized_fail(self):
        path = write_safetensors(self.path("m.safetensors"), [
            ("a", "F32", (2, 2), floats(1, 2, 3, 4)), ("d", "F64", (1,), bytes(8))])
        done = self.recipes("nan>0", files=[path])
        self.assertEqual(done.code, 1)
        self.assertIn("1 tensor is not measured: d: not quantized", done.err)
        self.assertEqual(self.recipes("nan>0", files=[f"{path}#a"]).code, 0)
        empty = write_safetensors(self.path("e.safetensors"), [])
        self.assertEqual(self.recipes("nan>0", files=[empty]).code, 1)

    def test_json(self):
        done = run("tensor", WEIGHT, "--recipes", "--json", "--fail-if", "nan>0")
        self.assertEqual(done.json()["fail_if"],
                         [{"condition": "nan>0", "failed": 0, "worst": None, "value": None}])

    def test_refused(self):
        self.fails(2, "tensor", WEIGHT, "--recipes", "--fail-if", "NO_SUCH.sqnr<30dB",
                   says=["NO_SUCH", "TE_CURRENT"])
        self.fails(2, "tensor", WEIGHT, "--recipes", "--fail-if", "bits>8", says="saturated")
        self.fails(2, "tensor", WEIGHT, "--recipes", "--fail-if", "TE_CURRENT.nan>0", says="TE_CURRENT")
