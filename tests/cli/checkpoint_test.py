# `quantize`, `convert` and `dequantize` of whole checkpoints: -o, layouts, maps, folders, refusals.
#
# What one tensor becomes is tested elsewhere (quantize, convert, recipe): here each tensor of a
# checkpoint must be what the same command makes of it alone.
import json
import os
import random
import resource
import signal
import struct
import subprocess

import cli_support
from cli_support import floats, read_file, read_safetensors, read_text, run, write_file, write_safetensors

NAN, INF = 0x7E00, 0x7C00  # fp16
BLOCKS = ["--to", "e4m3", "--tile", "128x128", "--scale-rule", "div", "--eps", "1e-4"]


def metadata_of(path):
    content = read_file(path)
    return json.loads(content[8:8 + struct.unpack("<Q", content[:8])[0]])["__metadata__"]


def with_metadata(path, metadata):
    """Adds metadata to a .safetensors file."""
    content = read_file(path)
    end = 8 + struct.unpack("<Q", content[:8])[0]
    text = json.dumps({"__metadata__": metadata, **json.loads(content[8:end])}).encode()
    write_file(path, struct.pack("<Q", len(text)) + text + content[end:])


def halves(rows, cols, seed):
    """fp16 of all magnitudes."""
    draw = random.Random(seed)
    codes = [draw.randrange(0x7C00) | draw.randrange(2) << 15 for _ in range(rows * cols)]
    return struct.pack(f"<{len(codes)}H", *codes)


class Checkpoint(cli_support.CliTest):
    def model(self):
        """A folder of two shards, with the files that stand beside them."""
        folder = self.path("model")
        os.mkdir(folder)
        first = [("embed_tokens.weight", "F16", [3, 128], halves(3, 128, 1)),
                 ("layers.0.fc.weight", "F16", [140, 256], halves(140, 256, 2)),
                 ("layers.0.fc.bias", "F16", [140], halves(1, 140, 3)),
                 ("layers.0.norm.weight", "F32", [8], floats(*range(8)))]
        second = [("layers.1.fc.weight", "F16", [16, 128], halves(16, 128, 4)),
                  ("layers.1.up.weight", "F32", [2, 128], floats(*range(256))),
                  ("layers.1.steps", "I64", [1], struct.pack("<q", 7)),
                  ("layers.1.mask", "BOOL", [3], b"\1\0\1"),
                  ("lm_head.weight", "F16", [5, 128], halves(5, 128, 5))]
        self.tensors, shards = {}, {}
        for number, tensors in enumerate([first, second], 1):
            file = f"model-0000{number}-of-00002.safetensors"
            write_safetensors(os.path.join(folder, file), tensors)
            with_metadata(os.path.join(folder, file), {"format": "pt", "author": "nobody"})
            for tensor, *rest in tensors:
                shards[tensor], self.tensors[tensor] = file, tuple(rest)
        self.write(folder, "model.safetensors.index.json",
                   json.dumps({"metadata": {"total_size": 1}, "weight_map": shards}))
        self.write(folder, "config.json", '{"z": 1.5, "dtype": "float16", "a": [1, 2]}')
        self.write(folder, "tokenizer.json", '{"x": 1}')
        self.write(folder, "notes.bin2", "not copied")
        return folder

    def write(self, folder, name, text):
        write_file(os.path.join(folder, name), text)

    def json_of(self, folder, name):
        return json.loads(read_text(os.path.join(folder, name)))

    def all_of(self, folder):
        """The tensors of a folder; its index and its files must agree."""
        found, files = {}, {}
        for file in sorted(os.listdir(folder)):
            if file.endswith(".safetensors"):
                tensors = read_safetensors(os.path.join(folder, file))
                found.update(tensors)
                files.update(dict.fromkeys(tensors, file))
        index = os.path.join(folder, "model.safetensors.index.json")
        if os.path.exists(index):
            content = json.loads(read_text(index))
            self.assertEqual(content["weight_map"], files)
            self.assertEqual(content["metadata"]["total_size"],
                             sum(len(raw) for _, _, raw in found.values()))
        return found

    def only(self, tensor):
        """A file of one tensor of the model."""
        return write_safetensors(self.path("only.safetensors"), [(tensor, *self.tensors[tensor])])

    def alone(self, tensor, *options):
        """Codes and scales of one tensor by `quantize IN OUT`."""
        target = self.path("alone.safetensors")
        self.ok("quantize", self.only(tensor), target, *options)
        written = read_safetensors(target)
        return written["codes"], written["scales"]

    def same(self, found, expected, what):
        """Large tensors are equal; assertEqual would take minutes to print how they differ."""
        self.assertTrue(found == expected, what)

    def weights(self):
        return ["layers.0.fc.weight", "layers.1.fc.weight", "layers.1.up.weight"]

    def check_quantized(self, target, options, scales_name):
        """Codes, scales and copied tensors of the model."""
        found, expected = self.all_of(target), dict(self.tensors)
        for name in self.weights():
            codes, scales = self.alone(name, *options)
            expected[name] = codes
            stored = found[scales_name(name)]
            self.assertEqual(stored[2], scales[2], name)
            expected[scales_name(name)] = stored
        self.assertEqual(found, expected)
        return found

    def test_layouts(self):
        source, target = self.model(), self.path("out")
        names = {"compressed-tensors": lambda n: n + "_scale", "plain": lambda n: n + ".scales",
                 "deepseek": lambda n: n + "_scale_inv"}
        for layout in ["compressed-tensors", "deepseek", "plain"]:
            scales = names[layout]
            document = self.ok_json("quantize", source, "-o", target, *BLOCKS, "--layout", layout)
            found = self.check_quantized(target, BLOCKS, scales)
            self.assertEqual([found[scales(n)][:2] for n in self.weights()],
                             [("F32", [2, 2]), ("F32", [1, 1]), ("F32", [1, 1])])
            self.assertEqual(document["bytes_after"], sum(len(raw) for *_, raw in found.values()))
            self.assertEqual(document["bytes_before"],
                             sum(len(raw) for *_, raw in self.tensors.values()))
            row = next(t for t in document["tensors"] if t["name"] == "layers.0.fc.weight")
            self.assertEqual((row["from"], row["to"], row["block"]), ("F16", "e4m3", [128, 128]))
            texts = {"config.json", "tokenizer.json", "model.safetensors.index.json"}
            self.assertEqual(set(os.listdir(target)), texts | set(document["files"]))
            config = self.json_of(target, "config.json")
            self.assertEqual(list(config)[:3], ["z", "dtype", "a"])
            self.assertEqual("quantization_config" in config, layout != "plain")
            metadata = metadata_of(os.path.join(target, document["files"][0]))
            self.assertEqual((metadata["format"], metadata["author"]), ("pt", "nobody"))
        self.assertEqual(metadata["samebits.block:layers.0.fc.weight"], "128x128")

    def test_configurations(self):
        source, target = self.model(), self.path("out")
        self.ok("quantize", source, "-o", target, *BLOCKS, "--layout", "deepseek")
        self.assertEqual(self.json_of(target, "config.json")["quantization_config"],
                         {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                          "weight_block_size": [128, 128],
                          "modules_to_not_convert": ["embed_tokens", "lm_head"]})
        kinds = {"TE_BLOCK_2D": ("block", None, [128, 128], 128),
                 "TE_BLOCK_1D": ("group", 128, None, 128), "TE_CURRENT": ("tensor", None, None, None),
                 "FBGEMM_ROW": ("channel", None, None, None), "MXFP8_TE": ("group", 32, None, 32)}
        for recipe, (strategy, group, block, width) in kinds.items():
            self.ok("quantize", source, "-o", target, "--recipe", recipe)
            config = self.json_of(target, "config.json")["quantization_config"]
            self.assertEqual(list(config["config_groups"]), ["group_0"])
            one = config["config_groups"]["group_0"]
            self.assertEqual((one["targets"], config["ignore"]),
                             (["Linear"], ["embed_tokens", "lm_head"]))
            weights, inputs = one["weights"], one["input_activations"]
            self.assertEqual((weights["strategy"], weights["group_size"],
                              weights.get("block_structure")), (strategy, group, block), recipe)
            self.assertEqual((inputs["strategy"], inputs["group_size"], inputs["dynamic"]),
                             ("group" if width else "token", width, True))
            name = "mxfp8-quantized" if recipe == "MXFP8_TE" else "float-quantized"
            self.assertEqual((config["format"], one["format"]), (name, name))
            if recipe == "TE_CURRENT":
                self.assertEqual(self.all_of(target)["layers.0.fc.weight_scale"][1], [1])

    def test_one_scale_with_specials(self):
        """NaN and infinities in the first of several bands: all bands have the matrix's scale."""
        source, target = self.path("one.safetensors"), self.path("two.safetensors")
        finite = halves(1100, 1000, 6)
        for special in [(NAN,), (INF,), (NAN, INF | 0x8000), (0x7BFF,)]:
            raw = struct.pack(f"<{len(special)}H", *special) + finite[2 * len(special):]
            self.tensors = {"x.weight": ("F16", [1100, 1000], raw)}
            write_safetensors(source, [("x.weight", *self.tensors["x.weight"])])
            for policy in ["te", "skip_nonfinite", "skip_nan", "propagate"]:
                options = ["--to", "e5m2", "--tile", "tensor", "--scale-rule", "div",
                           "--nonfinite", policy]
                self.ok("quantize", source, "-o", target, *options, "--layout", "plain")
                codes, scales = self.alone("x.weight", *options)
                self.same(read_safetensors(target),
                          {"x.weight": codes, "x.weight.scales": scales}, (special, policy))

    def test_bands(self):
        """Matrices of several bands, with every kind of tile."""
        source, target = self.path("one.safetensors"), self.path("two.safetensors")
        self.tensors = {"x.weight": ("F16", [1300, 900], halves(1300, 900, 6))}
        write_safetensors(source, [("x.weight", *self.tensors["x.weight"])])
        for tile in ["1x128", "128x128", "64x1", "row", "column", "tensor"]:
            for rounding in ["nearest_even", "stochastic"]:
                options = ["--to", "e4m3", "--tile", tile, "--scale-rule", "rcp", "--rounding",
                           rounding]
                self.ok("quantize", source, "-o", target, *options, "--layout", "plain")
                codes, scales = self.alone("x.weight", *options)
                self.same(read_safetensors(target),
                          {"x.weight": codes, "x.weight.scales": scales}, (tile, rounding))
                self.assertEqual(metadata_of(target)["samebits.block:x.weight"], tile)
                for to in ["fp32", "bf16"]:
                    values = self.path("values.safetensors")
                    self.ok("dequantize", target, "-o", values, "--to", to)
                    run("dequantize", self.path("alone.safetensors"), self.path("v.safetensors"),
                        "--to", to)
                    self.same(read_safetensors(values)["x.weight"],
                              read_safetensors(self.path("v.safetensors"))["values"], (tile, to))

    def test_narrow_codes(self):
        """Codes of 4 and 6 bits of several bands, and two levels: each tensor as it is alone."""
        source, target = self.path("one.safetensors"), self.path("two.safetensors")
        back, alone = self.path("values.safetensors"), self.path("alone.safetensors")
        for special in [(), (NAN,), (INF,)]:
            raw = struct.pack(f"<{len(special)}H", *special) + halves(1300, 902, 6)[2 * len(special):]
            self.tensors = {"x.weight": ("F16", [1300, 902], raw)}
            write_safetensors(source, [("x.weight", *self.tensors["x.weight"])])
            for recipe in ["MXFP4_EVEN", "MXFP6_E3M2_FLOOR", "NVFP4_TE", "NVFP4_TE_2D", "NVFP4_TORCHAO",
                           "NVFP4_VLLM"]:
                options = ["--recipe", recipe]
                self.ok("quantize", source, "-o", target, *options, "--layout", "plain")
                self.alone("x.weight", *options)
                expected = {name.replace("codes", "x.weight").replace("scales", "x.weight.scales")
                            .replace("tensor_scale", "x.weight.tensor_scale"): tensor
                            for name, tensor in read_safetensors(alone).items()}
                self.same(read_safetensors(target), expected, (recipe, special))
                self.ok("dequantize", target, "-o", back)
                run("dequantize", alone, self.path("v.safetensors"))
                self.same(read_safetensors(back), {
                    "x.weight": read_safetensors(self.path("v.safetensors"))["values"]}, recipe)
        figures = self.ok_json("compare", source, target)["tensors"][0]
        self.assertEqual(figures["sqnr_db"], self.ok_json("compare", source, back)["tensors"][0]["sqnr_db"])
        tensors = [(name, *tensor) for name, tensor in read_safetensors(target).items()]
        self.fails(3, "dequantize", write_safetensors(target, tensors), "-o", back,
                   says=["samebits.scale_rule:x.weight must name a rule with two levels"])
        self.ok("compare", target, target)  # codes of other tools are compared as they are
        write_safetensors(source, [("scales_mlp.weight", "F16", [64, 96], halves(64, 96, 6))])
        self.ok("quantize", source, "-o", target, "--recipe", "NVFP4_TE", "--layout", "plain",
                "--role", "*=weights")
        self.ok("dequantize", target, "-o", back)
        write_safetensors(source, [("x.weight", "F16", [3, 33], halves(3, 33, 6))])
        self.fails(2, "quantize", source, "-o", target, "--recipe", "NVFP4_TE", "--layout", "plain",
                   says=["codes that fill whole bytes"])
        self.fails(2, "quantize", source, "-o", target, "--recipe", "NVFP4_TE",
                   says=["compressed-tensors needs e4m3", "--layout plain"])

    def test_dequantize_restores(self):
        source, quantized, target = self.model(), self.path("q"), self.path("back")
        for layout in ["compressed-tensors", "deepseek", "plain"]:
            self.ok("quantize", source, "-o", quantized, *BLOCKS, "--layout", layout)
            self.ok("dequantize", quantized, "-o", target, "--to", "fp16")
            found = self.all_of(target)
            for name in self.weights():
                self.alone(name, *BLOCKS)
                run("dequantize", self.path("alone.safetensors"), self.path("v.safetensors"),
                    "--to", "fp16")
                self.assertEqual(found[name][2],
                                 read_safetensors(self.path("v.safetensors"))["values"][2])
            self.assertEqual({n: t for n, t in found.items() if n not in self.weights()},
                             {n: t for n, t in self.tensors.items() if n not in self.weights()})
            self.assertEqual(self.json_of(target, "config.json"),
                             {"z": 1.5, "dtype": "float16", "a": [1, 2]})
        self.ok("dequantize", quantized, "-o", target)
        self.assertEqual(self.json_of(target, "config.json")["dtype"], "float32")

    def test_checkpoints_of_others(self):
        """Scales in bf16, in another file, as bytes, as a scalar, and tiles told by their shape."""
        codes = bytes(range(0x70)) * 160
        first = [("a.weight", "F8_E4M3", [140, 128], codes), ("b.weight", "F8_E4M3", [140, 128], codes),
                 ("c.weight", "F8_E4M3", [140, 128], codes), ("d.weight", "F8_E5M2", [140, 128], codes),
                 ("e.weight", "F8_E4M3", [140, 128], codes)]
        second = [("a.weight_scale_inv", "F32", [2, 1], floats(2, 4)),
                  ("b.weight_scale", "BF16", [140, 1], struct.pack("<H", 0x4040) * 140),  # 3
                  ("c.weight_scale", "U8", [140, 4], bytes([128]) * 560),  # 2
                  ("d.weight_scale", "F32", [], floats(8))]
        files = [write_safetensors(self.path("a.safetensors"), first),
                 write_safetensors(self.path("b.safetensors"), second)]
        document = self.ok_json("dequantize", *files, "-o", self.path("out"))
        self.assertEqual([t["block"] for t in document["tensors"]],
                         [[128, 128], [1, 0], [1, 32], [0, 0], None])
        found = self.all_of(self.path("out"))
        self.assertEqual(found.pop("e.weight"), first[4][1:])
        plain = self.path("plain.safetensors")
        self.assertEqual(set(found), {"a.weight", "b.weight", "c.weight", "d.weight"})
        self.ok("convert", files[0], "-o", plain, "--to", "fp32")
        values = {n: struct.unpack("<17920f", raw) for n, (_, _, raw) in read_safetensors(plain).items()}
        scales = {"a.weight": lambda i: 2 if i < 128 * 128 else 4, "b.weight": lambda i: 3,
                  "c.weight": lambda i: 2, "d.weight": lambda i: 8}
        for name, scale in scales.items():
            self.assertEqual(struct.unpack("<17920f", found[name][2]),
                             tuple(x * scale(i) for i, x in enumerate(values[name])), name)
        write_safetensors(files[1], [("a.weight_scale_inv", "F32", [3, 5], floats(*range(15)))])
        self.fails(3, "dequantize", *files, "-o", self.path("o2"), says="no scales of tiles")
        self.fails(3, "dequantize", files[1], "-o", self.path("o2"), says="no tensor is quantized")

    def test_map(self):
        source, target = self.model(), self.path("out")
        self.write(self.folder, "map.json", json.dumps({"version": 1, "comment": "", "layers": {
            "layers.[!0].up": "BF16", "lm_head": "TE_CURRENT", "layers.?.f[a-d]": "te_block_1d",
            "*": "TE_CURRENT"}}))
        document = self.ok_json("quantize", source, "-o", target, "--map", self.path("map.json"))
        self.assertEqual({t["name"]: (t["recipe"], t["block"]) for t in document["tensors"] if t["to"]},
                         {"layers.0.fc.weight": ("TE_BLOCK_1D", [128, 128]),
                          "layers.1.fc.weight": ("TE_BLOCK_1D", [128, 128]),
                          "lm_head.weight": ("TE_CURRENT", [0, 0])})
        config = self.json_of(target, "config.json")["quantization_config"]
        self.assertEqual({k: g["targets"] for k, g in config["config_groups"].items()},
                         {"group_0": ["layers.0.fc", "layers.1.fc"], "group_1": ["lm_head"]})
        self.assertEqual(config["ignore"], ["embed_tokens", "layers.1.up"])
        self.ok("quantize", source, "-o", target, "--map", self.path("map.json"), "--rounding",
                "stochastic", "--seed", "3", "--layout", "plain")
        self.alone("lm_head.weight", "--recipe", "TE_CURRENT", "--rounding", "stochastic", "--seed",
                   "3", "--offset", str(3 * 128 + 140 * 256 + 140 + 8 + 16 * 128 + 256 + 1 + 3))
        self.assertEqual(self.all_of(target)["lm_head.weight"],
                         read_safetensors(self.path("alone.safetensors"))["codes"])
        document = self.ok_json("convert", source, "-o", target, "--map", self.path("map.json"))
        self.assertEqual([t["name"] for t in document["tensors"] if t["to"] == "bf16"],
                         ["layers.1.up.weight"])
        for text, says in [({"version": 2, "layers": {}}, "version: must be 1"),
                           ({"version": 1, "layers": {"x": 1}}, '"x": expected a string'),
                           ({"version": 1, "layer": {}}, '"layer" is no entry'),
                           ({"version": 1, "layers": {"": "bf16"}}, "a pattern is empty")]:
            self.write(self.folder, "map.json", json.dumps(text))
            self.fails(3, "quantize", source, "-o", target, "--map", self.path("map.json"), says=says)
        for layers, says in [({"*": "TE_BLOK"}, '"TE_BLOK" is not one of'),
                             ({"*": "TE_DELAYED"}, "takes its scales from earlier steps"),
                             ({"layers.7.*": "TE_CURRENT", "*": "TE_CURRENT"},
                              'no layer matches "layers.7.*"')]:
            self.write(self.folder, "map.json", json.dumps({"version": 1, "layers": layers}))
            self.fails(2, "quantize", source, "-o", target, "--map", self.path("map.json"), says=says)

    def test_what_advise_writes(self):
        source, target, precision = self.model(), self.path("out"), self.path("precision.json")
        self.ok("advise", "--gpu", "h100", "--aim", "fast", "--map", precision)
        self.ok("quantize", source, "-o", target, "--map", precision)
        self.assertEqual(set(self.all_of(target)) - set(self.tensors),
                         {n + "_scale" for n in self.weights()})

    def test_by_verdict(self):
        source, target = self.path("in.safetensors"), self.path("out.safetensors")
        draw = random.Random(7)
        flat = floats(*[draw.gauss(0, 1) for _ in range(128 * 128)])
        write_safetensors(source, [("a.weight", "F32", [128, 128], flat),
                                   ("a.bias", "F32", [4], floats(1, 2, 3, 4)),
                                   ("adam.exp_avg.a", "F32", [128, 128], flat),
                                   ("lm_head.weight", "F32", [128, 128], flat)])
        verdict = {t["name"]: t["choice"] for t in
                   self.ok_json("tensor", source)["verdict"]["tensors"]}
        self.assertEqual(verdict["a.weight"], "fp8 e4m3, one scale")
        document = self.ok_json("quantize", source, "-o", target, "--by-verdict")
        self.assertEqual({t["name"]: (t["to"], t["recipe"]) for t in document["tensors"]},
                         {"a.weight": ("e4m3", "TE_CURRENT"), "a.bias": (None, None),
                          "adam.exp_avg.a": ("bf16", None), "lm_head.weight": (None, None)})
        self.assertEqual(verdict["adam.exp_avg.a"], "bf16")
        document = self.ok_json("convert", source, "-o", target, "--by-verdict")
        self.assertEqual({t["name"]: t["to"] for t in document["tensors"]},
                         {"a.weight": "bf16", "a.bias": None, "adam.exp_avg.a": "bf16",
                          "lm_head.weight": None})
        document = self.ok_json("quantize", source, "-o", target, "--by-verdict", "--need", "60dB",
                                "--role", "adam.*=other")
        self.assertEqual({t["to"] for t in document["tensors"]}, {"fp16"})

    def test_convert(self):
        source, target = self.model(), self.path("out")
        for options in [["--to", "bf16"], ["--to", "e5m2", "--overflow", "saturate"]]:
            self.ok("convert", source, "-o", target, *options)
            found = self.all_of(target)
            for name, (dtype, shape, raw) in self.tensors.items():
                if dtype in ("I64", "BOOL"):
                    self.assertEqual(found[name], (dtype, shape, raw))
                    continue
                alone = self.path("alone.safetensors")
                run("convert", self.only(name), alone, *options)
                self.assertEqual(found[name], read_safetensors(alone)[name])
        self.ok("convert", source, "-o", target, "--to", "bf16", "--keep", "layers.0.*")
        self.assertEqual(self.all_of(target)["layers.0.fc.weight"],
                         self.tensors["layers.0.fc.weight"])
        self.assertEqual(self.json_of(target, "config.json")["dtype"], "bfloat16")
        # The random bits of a tensor are those behind the elements of the tensors before it.
        stochastic = ["--to", "e4m3", "--rounding", "stochastic", "--offset"]
        self.ok("convert", source, "-o", target, *stochastic, "5")
        run("convert", self.only("layers.0.fc.weight"), self.path("alone.safetensors"), *stochastic,
            str(5 + 3 * 128))
        self.assertEqual(self.all_of(target)["layers.0.fc.weight"],
                         read_safetensors(self.path("alone.safetensors"))["layers.0.fc.weight"])
        self.fails(2, "convert", source, "-o", target, "--to", "e2m1", says="whole bytes")
        self.ok("quantize", source, "-o", target, "--recipe", "TE_CURRENT")
        self.fails(3, "convert", target, "-o", self.path("x"), "--to", "bf16",
                   says="`fpinspect dequantize` restores its values")

    def test_other_files(self):
        """One shard under another name, a .npy file, and PyTorch's names."""
        source = write_safetensors(self.path("pytorch_model.safetensors"),
                                   [("a.weight", "F16", [2, 16], halves(2, 16, 8))])
        array = cli_support.write_npy(self.path("x.weight.npy"), ">f4", (2, 32),
                                      struct.pack(">64f", *range(64)))
        document = self.ok_json("quantize", source, array, "-o", self.path("out"), "--recipe",
                                "TE_CURRENT", "--keep", "x", "--layout", "plain")
        self.assertEqual(document["files"], ["model.safetensors", "x.weight.safetensors"])
        found = self.all_of(self.path("out"))
        self.assertEqual(found["x.weight"], ("F32", [2, 32], floats(*range(64))))
        self.assertEqual(metadata_of(self.path("out/model.safetensors"))["format"], "pt")

    def test_index(self):
        """An index stands for its folder; several FILEs, or one of them, have no texts."""
        source = self.model()
        for name in [source, os.path.join(source, "model.safetensors.index.json")]:
            self.ok("quantize", name, "-o", self.path("out"), "--recipe", "TE_CURRENT")
            self.assertIn("tokenizer.json", os.listdir(self.path("out")))
        result = run("quantize", "model.safetensors.index.json", "-o", self.path("out"), "--recipe",
                     "TE_CURRENT", cwd=source)
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("tokenizer.json", os.listdir(self.path("out")))
        self.fails(2, "quantize", "model.safetensors.index.json", "-o", ".", "--recipe", "TE_CURRENT",
                   cwd=source, says="is read by this command")
        shards = [os.path.join(source, f) for f in sorted(os.listdir(source)) if "-of-" in f]
        self.ok("quantize", *shards, "-o", self.path("out"), "--recipe", "TE_CURRENT")
        self.assertEqual(sorted(os.listdir(self.path("out"))),
                         ["config.json", *map(os.path.basename, shards),
                          "model.safetensors.index.json"])

    def test_replacement(self):
        source, target = self.model(), self.path("out")
        command = ["quantize", source, "-o", target, "--recipe", "TE_CURRENT"]
        self.ok(*command)
        self.write(target, "extra.json", "{}")
        os.chmod(target, 0o750)
        self.ok(*command)
        self.assertNotIn("extra.json", os.listdir(target))
        self.assertEqual(os.stat(target).st_mode & 0o777, 0o750)
        os.symlink(target, self.path("link"))
        self.write(target, "extra.json", "{}")
        self.ok("quantize", source, "-o", self.path("link"), "--recipe", "TE_CURRENT")
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertNotIn("extra.json", os.listdir(target))
        self.write(target, "thesis.tex", "years of work")
        self.fails(2, *command, says=["would be replaced", "thesis.tex"])
        os.remove(os.path.join(target, "thesis.tex"))
        os.mkdir(os.path.join(target, "sub.json"))
        self.fails(2, *command, says="sub.json")
        os.rmdir(os.path.join(target, "sub.json"))
        before = self.all_of(target)
        self.write(source, "config.json", "{")
        self.fails(3, *command, says="config.json")
        self.assertEqual(self.all_of(target), before)
        self.assertEqual([f for f in os.listdir(self.folder) if f.startswith(".samebits")], [])

    def test_refusals(self):
        source, target = self.model(), self.path("out")
        command = ["quantize", source, "-o"]
        self.fails(2, *command, source, "--recipe", "TE_CURRENT", says="is read by this command")
        self.fails(2, *command, self.path("x.safetensors"), "--recipe", "TE_CURRENT",
                   says="in several; name a folder")
        self.fails(2, *command, self.path("model/config.json"), "--recipe", "TE_CURRENT",
                   says="is no folder, and no .safetensors file")
        for options, says in [
                (["--recipe", "TE_BLOCK_1D", "--layout", "deepseek"], "deepseek needs 128x128 tiles"),
                (["--to", "e5m2"], "compressed-tensors needs e4m3"),
                (["--to", "e4m3", "--tile", "column"], "needs tiles 1xG, GxG, row or tensor"),
                (["--recipe", "TE_DELAYED"], "takes its scales from earlier steps"),
                (["--keep", "*", "--recipe", "TE_CURRENT"], "no tensor would be quantized"),
                (["--role", "*=weights", "--recipe", "TE_CURRENT", "--keep", "lm_*", "--keep",
                  "*.fc", "--keep", "*.up", "--keep", "embed*"], "no tensor would be quantized"),
                (["--recipe", "TE_CURRENT", "--fail-if", "nan>0"], "-o and --fail-if contradict"),
                (["--by-verdict", "--recipe", "TE_CURRENT"], "--by-verdict and --recipe contradict")]:
            self.fails(2, *command, target, *options, says=says)
        self.fails(2, "quantize", source, target, target, "--to", "e4m3",
                   says=[target, "one argument too many"])
        self.fails(2, "quantize", source, "--to", "e4m3", says="OUT is required")
        self.fails(2, "quantize", source, target, "--map", "x.json", says="does nothing without -o")
        self.fails(2, "quantize", source, source, "-o", target, "--recipe", "TE_CURRENT",
                   says="several tensors are called")
        ragged = write_safetensors(self.path("r.safetensors"),
                                   [("a.weight", "F16", [2, 130], halves(2, 130, 9))])
        self.fails(2, "quantize", ragged, "-o", target, "--recipe", "TE_BLOCK_1D",
                   says=["a multiple of 128 columns", "--layout plain"])
        taken = write_safetensors(self.path("t.safetensors"),
                                  [("a.weight", "F16", [2, 128], halves(2, 128, 9)),
                                   ("a.weight_scale", "F16", [1], halves(1, 1, 9))])
        self.fails(2, "quantize", taken, "-o", target, "--recipe", "TE_BLOCK_1D",
                   says='there is a tensor "a.weight_scale" already')
        self.ok("quantize", source, "-o", target, "--recipe", "TE_CURRENT")
        self.fails(3, "quantize", target, "-o", self.path("q"), "--recipe", "TE_CURRENT",
                   says="has a quantization_config")
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["model", "out", "r.safetensors", "t.safetensors"])

    def sparse(self, rows, cols):
        """A file of one matrix of zeros, which takes no room on the disk."""
        path = self.path("sparse.safetensors")
        write_safetensors(path, [])
        text = json.dumps({"a.weight": {"dtype": "F32", "shape": [rows, cols],
                                        "data_offsets": [0, 4 * rows * cols]}}).encode()
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + 4 * rows * cols)
        return path

    def test_memory_is_bounded(self):
        """256 MiB of fp32, whose codes take 64 MiB, with 48 MiB of memory."""
        source, target = self.sparse(16384, 4096), self.path("out.safetensors")
        limit = 48 << 20

        def limited(*arguments):
            self.ok(*arguments,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
        for recipe in ["TE_BLOCK_1D", "TE_BLOCK_2D", "TE_CURRENT"]:
            limited("quantize", source, "-o", target, "--recipe", recipe)
        limited("dequantize", target, "-o", self.path("back.safetensors"), "--to", "bf16")
        limited("convert", source, "-o", target, "--to", "bf16")

    def test_signals_leave_nothing(self):
        """Nor one that comes while the output folder is being made: hence many."""
        source = self.sparse(65536, 8192)
        for _ in range(30):
            process = subprocess.Popen([cli_support.FPINSPECT, "quantize", source, "-o",
                                        self.path("out"), "--recipe", "TE_CURRENT"],
                                       env=cli_support.CLEAN, stdout=subprocess.DEVNULL)
            while process.poll() is None and len(os.listdir(self.folder)) == 1:
                pass
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(60), -signal.SIGINT)
            self.assertEqual(os.listdir(self.folder), ["sparse.safetensors"])

    def test_compare(self):
        """Quantized matrices are compared by their values, in every layout."""
        source, target, back = self.model(), self.path("out"), self.path("back")
        figures = []
        for layout in ["compressed-tensors", "deepseek", "plain"]:
            self.ok("quantize", source, "-o", target, *BLOCKS, "--layout", layout)
            self.ok("dequantize", target, "-o", back)
            by_codes = run("compare", source, target, "--json").json()
            by_values = run("compare", source, back, "--json").json()
            self.assertEqual(by_codes["only_in_b"], [])
            self.assertEqual({t["name"] for t in by_codes["tensors"]}, set(self.tensors))
            for one, other in zip(by_codes["tensors"], by_values["tensors"]):
                self.assertEqual({**one, "type_b": ""}, {**other, "type_b": ""})
            figures.append([t.get("sqnr_db") for t in by_codes["tensors"]])
        self.assertGreater(sum(db is not None for db in figures[0]), 0)
        self.assertEqual(figures[0], figures[2])
        # Scales of no tiles are tensors like others.
        odd = write_safetensors(self.path("o.safetensors"),
                                [("a.weight", "F8_E4M3", [2, 2], b"abcd"),
                                 ("a.weight_scale", "F32", [3], floats(1, 2, 3))])
        self.assertEqual(len(self.ok_json("compare", odd, odd)["tensors"]), 2)

    def test_text(self):
        result = self.ok("quantize", self.model(), "-o", self.path("out"), *BLOCKS)
        self.assertEqual(result.out.splitlines()[1:],
                         ["       6  as stored", "       3  e4m3, 128x128, scales fp32"])
        self.assertRegex(result.out, "out: 2 files, 9 tensors, 79 kB -> 41 kB\n")
