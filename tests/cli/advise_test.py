# `fpinspect advise`: the choices, their sources, and the precision map.
import fnmatch
import itertools
import json
import os

import cli_support
from cli_support import read_text

GPUS = ["volta", "turing", "ampere", "ada", "hopper", "blackwell", "other"]
# Format and FP8 recipe by GPU, for the aims stable and fast, as the guides say.
CHOICES = {
    "volta": ("fp16", "fp16", None), "turing": ("fp16", "fp16", None),
    "ampere": ("bf16", "bf16", None), "ada": ("bf16", "fp8", "TE_CURRENT"),
    "hopper": ("bf16", "fp8", "TE_BLOCK_1D"), "blackwell": ("bf16", "fp8", "MXFP8_TE"),
    "other": ("fp32", "fp32", None),
}


class Advise(cli_support.CliTest):
    def advice(self, *arguments):
        return self.ok_json("advise", *arguments)

    def topics(self, *arguments):
        return [row["topic"] for row in self.advice(*arguments)["advice"]]

    def test_choices(self):
        for gpu, (stable, fast, recipe) in CHOICES.items():
            shown = self.advice("--gpu", gpu)
            self.assertEqual((shown["gpu"], shown["format"], shown["recipe"]), (gpu, stable, None))
            shown = self.advice("--gpu", gpu, "--aim", "fast")
            self.assertEqual((shown["format"], shown["recipe"]), (fast, recipe), gpu)

    def test_small_inference_has_fp8_weights(self):
        for gpu, (stable, _, recipe) in CHOICES.items():
            shown = self.advice("--gpu", gpu, "--task", "inference", "--aim", "small")
            self.assertEqual((shown["format"], shown["recipe"]),
                             ("fp8", recipe) if recipe else (stable, None), gpu)
            said = {row["topic"]: row["advice"] for row in shown["advice"]}["inference"] \
                if stable != "fp32" else ""
            self.assertEqual("8 bits" in said, recipe is not None)
            self.assertEqual("in 16 bits" in said, recipe is None and stable != "fp32")

    def test_the_verdict_keeps_the_same_layers_out_of_fp8(self):
        names = ["model.embed_tokens.weight", "lm_head.weight", "model.layers.0.mlp.gate.weight",
                 "model.layers.0.router.weight", "model.layers.0.mlp.gate_proj.weight",
                 "model.layers.0.q_proj.weight"]
        data = cli_support.floats(*[(1 + i * 37 % 101) / 64 for i in range(1024)])
        path = cli_support.write_safetensors(self.path("m.safetensors"), [
            (name, "F32", (8, 128), data) for name in names])
        layers = self.advice("--gpu", "b200", "--task", "inference", "--aim", "small")["layers"]
        advised = {name: next(precision for pattern, precision in layers.items()
                              if fnmatch.fnmatch(name.removesuffix(".weight"), pattern))
                   for name in names}
        self.assertEqual([advised[name] for name in names], ["bf16"] * 4 + ["MXFP8_TE"] * 2)
        verdict = self.ok_json("tensor", path)["verdict"]
        self.assertEqual({t["name"]: t["choice"] for t in verdict["tensors"]},
                         {name: None if advised[name] == "bf16" else "fp8 e4m3, one scale"
                          for name in names})
        self.assertIn("\n          besides: 4 of embedding, head or gate as stored\n",
                      self.ok("tensor", path).out)
        # Alone, they are judged in 16 bits.
        (role,) = self.ok_json("tensor", path + "#lm_head.weight")["verdict"]["roles"]
        self.assertEqual([t["choice"] for t in role["tried"]], ["bf16", "fp16", "fp32"])

    def test_every_answer_has_sources_and_known_names(self):
        recipes = {r["name"]: r for r in self.ok_json("recipes")["recipes"]}
        schemes = {s["name"]: s["bytes_per_parameter"] for s in self.ok_json("memory")["schemes"]}
        for gpu, task, aim, size in itertools.product(
                GPUS, ["training", "inference"], ["stable", "fast", "small"],
                [[], ["--parameters", "1e8"], ["--parameters", "2e11"]]):
            shown = self.advice("--gpu", gpu, "--task", task, "--aim", aim, *size)
            self.assertTrue(all(row["advice"] and row["source"] for row in shown["advice"]))
            self.assertEqual(shown["bytes_per_parameter"], schemes[shown["memory_scheme"]])
            precisions = list(shown["layers"].values())
            self.assertEqual(list(shown["layers"])[-1], "*")
            if shown["format"] == "fp8":
                self.assertEqual(recipes[precisions[-1]]["scales"], "current")
                self.assertEqual(set(precisions[:-1]), {"bf16"})
            else:
                self.assertEqual(precisions, [shown["format"]])

    def test_names_of_gpus(self):
        for text, gpu in [("H100", "hopper"), ("9.0", "hopper"), ("8.9", "ada"), ("4090", "ada"),
                          ("12.0", "blackwell"), ("A100", "ampere"), ("8.6", "ampere"),
                          ("V100", "volta"), ("T4", "turing"), ("cpu", "other")]:
            self.assertEqual(self.advice("--gpu", text)["gpu"], gpu, text)

    def test_brands_before_the_model(self):
        for name in "rtx4090", "RTX 4090", "GeForce RTX 4090", "nvidia-geforce-rtx-4090":
            self.assertEqual(self.ok_json("advise", "--gpu", name)["gpu"],
                             self.ok_json("advise", "--gpu", "4090")["gpu"])
        self.fails(2, "advise", "--gpu", "rtx", says="--gpu")

    def test_conditions(self):
        self.assertIn("loss scale", self.topics("--gpu", "volta"))
        self.assertNotIn("loss scale", self.topics("--gpu", "volta", "--task", "inference"))
        self.assertNotIn("loss scale", self.topics("--gpu", "ampere"))
        for size, phrase in [("5e8", "larger batch"), ("1e9", "gradient checkpointing"),
                             ("2e10", "checkpointing and ZeRO"), ("1e11", "offload")]:
            advice = [row["advice"] for row in self.advice("--gpu", "a100", "--parameters", size)["advice"]
                      if row["topic"] == "memory"]
            self.assertEqual(len(advice), 1, size)
            self.assertIn(phrase, advice[0])
        self.assertNotIn("memory", self.topics("--gpu", "a100"))
        self.assertIn("memory", self.topics("--gpu", "a100", "--aim", "small"))
        # Above 10^11 parameters, FP8 also without --aim fast, where GPUs have scales of blocks.
        formats = [self.advice("--gpu", gpu, "--parameters", "1e11")["format"] for gpu in GPUS]
        self.assertEqual(formats, ["fp16", "fp16", "bf16", "bf16", "fp8", "fp8", "fp32"])

    def test_map(self):
        path = self.path("map.json")
        question = ["advise", "--gpu", "h100", "--aim", "fast", "--keep", "*attn*,*lm_head*"]
        self.assertEqual(self.ok(*question, "--map", path).out, self.ok(*question).out)
        text = read_text(path)
        self.assertEqual(self.ok(*question, "--map", "-").out, text)
        content = json.loads(text)
        self.assertEqual(set(content), {"version", "comment", "layers"})
        self.assertEqual(content["version"], 1)
        self.assertEqual(list(content["layers"].items()), [
            ("*attn*", "bf16"), ("*lm_head*", "bf16"), ("*embed*", "bf16"), ("*router*", "bf16"),
            ("*.gate", "bf16"), ("*", "TE_BLOCK_1D")])
        self.assertEqual(content["layers"], self.ok_json(*question)["layers"])
        # A pattern is a string of JSON whatever it holds, and occurs once.
        odd = json.loads(self.ok("advise", "--gpu", "ada", "--aim", "fast", "--keep", 'a"b,*', "--map",
                                 "-").out)
        self.assertEqual(list(odd["layers"])[0:2], ['a"b', "*"])
        self.assertEqual(odd["layers"]["*"], "bf16")

    def test_lines_fit_the_terminal(self):
        for gpu in GPUS:
            lines = self.ok("advise", "--gpu", gpu, "--aim", "fast", "--parameters", "2e10").out
            table = lines[:lines.index(" bytes a parameter")].splitlines()
            self.assertLessEqual(max(map(len, table)), 80)

    def test_errors(self):
        for arguments, says in [
                ([], "--gpu"), (["--gpu", "x"], ['--gpu: "x"', "hopper, h100"]),
                (["--gpu", "ada", "--task", "x"], "training, inference"),
                (["--gpu", "ada", "--aim", "x"], "stable, fast, small"),
                (["--gpu", "ada", "--parameters", "-1"], "above 0"),
                (["--gpu", "ada", "--map", "-", "--json"], "--json and --map")]:
            self.fails(2, "advise", *arguments, says=says)
        self.fails(3, "advise", "--gpu", "ada", "--map", os.path.join(self.folder, "no", "map.json"))
