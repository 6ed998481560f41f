# The verdict of `fpinspect tensor`: five files made for it, roles, needs and details.
import json
import os
import struct

import cli_support
import verdict_files
from cli_support import SAMPLE, floats, write_file, write_npy, write_safetensors

NEED = ["", "Cheapest choice that keeps 30 dB and loses fewer than 1 % of the non-zero",
        "values in every tensor (--need). Figures: the worst tensor's."]


LAST = "more: --list, --details NAME, --stats, --recipes, --json; fpinspect report FILE"


class FiveFiles(cli_support.CliTest):
    def file(self, make):
        return verdict_files.write(make, self.path(make.__name__ + ".safetensors"))

    def starts(self, make, *expected):
        """The text of the file begins with its name, the need and these lines."""
        path = self.file(make)
        lines = self.ok("tensor", path).out.splitlines()
        self.assertTrue(lines[0].startswith(path + ": "), lines[0])
        self.assertEqual(lines[1:4], NEED)
        self.assertEqual(lines[4:4 + len(expected)], list(expected))
        return lines

    def listed(self, make):
        return self.ok("tensor", self.file(make), "--list").out.splitlines()

    def test_healthy_weights(self):
        self.starts(
            verdict_files.healthy,
            "  weights         3  fp8 e4m3, one scale       31.6 dB       0 % lost     8 bits",
            "          besides: 1 of rank 0 or 1 as stored",
            "  all             3  132 kB as stored, 34 kB with these choices",
            "",
            "Nothing else needs attention.")

    def test_gradients_that_underflow(self):
        lines = self.starts(
            verdict_files.underflow,
            "  gradients       2  bf16                      55.5 dB       0 % lost    16 bits",
            "          not mxfp8 e4m3, 1x32 blocks: 1.29 % lost in grad.deep",
            "  all             2  131 kB as stored, 66 kB with these choices",
            "",
            "Loss scale for fp16 gradients: 2^24   (bf16 gradients need none)",
            "  none       70.94 % lost in grad.deep, 35.47 % of all",
            "  2^24           0 % lost, the largest without overflow",
            "  2^25           0 % lost, 870 values overflow in grad.head",
            "  Every scale from 2^14 to 2^24 meets the need.",
            "",
            "Look at these",
            "  grad.deep: fp16 without a loss scale loses 70.94 %",
            "",
            LAST)
        self.assertEqual(lines[-1], LAST)
        rows = self.listed(verdict_files.underflow)[4:]
        self.assertEqual([row.split()[-1] for row in rows], ["grad.deep", "grad.head"])  # worst first

    def test_one_outlier_channel(self):
        self.starts(
            verdict_files.outlier,
            "  activations     2  mxfp8 e4m3, 1x32 blocks   31.5 dB    0.50 % lost  8.25 bits",
            "          not fp8 e4m3, 1x128 tiles: 1.97 % lost in act.mlp",
            "  all             2  524 kB as stored, 135 kB with these choices",
            "",
            "Look at these",
            "  act.mlp: channel 17 is 63835 x the median channel: fp8 e4m3, one scale loses",
            "    27.93 %; mxfp8 e4m3, 1x32 blocks loses 0.50 %",
            "")

    def test_checkpoint_of_many_tensors(self):
        lines = self.starts(
            verdict_files.checkpoint,
            "  weights       250  fp8 e4m3, one scale       31.0 dB    0.10 % lost     8 bits",
            "          besides: 125 of rank 0 or 1 as stored",
            "  gradients     125  fp8 e4m3, one scale       31.1 dB       0 % lost     8 bits",
            "          not fp8 e5m2, one scale: 24.9 dB in grad.layers.68.weight, 124 more",
            "            fail",
            "  Adam m        125  bf16                      55.0 dB       0 % lost    16 bits",
            "  all           500  1.5 MB as stored, 516 kB with these choices",
            "  30 dB takes 3 fraction bits, e5m2 has 2; --need 24dB admits it for gradients",
            "",
            "Loss scale for fp16 gradients: none needed",
            "  none        0.20 % lost in grad.layers.43.weight, 0.03 % of all")
        self.assertIn("500 tensors, 385000 values", lines[0])
        self.assertEqual(lines[-3:], ["Nothing else needs attention.", "", LAST])
        self.assertLessEqual(len(lines), 24)
        listed = self.listed(verdict_files.checkpoint)
        self.assertEqual(listed[:2], [lines[0], ""])
        self.assertEqual(len(listed), 2 + 2 + 500)

    def test_the_screen_has_room_for_the_verdict(self):
        """Of many tensors that need attention as many are named as fit on 24 lines."""
        tensors = [(f"layers.{i}.weight", "F32", (2, 2), floats(1, 2, 3, float("nan")))
                   for i in range(30)]
        path = write_safetensors(self.path("m.safetensors"), tensors)
        lines = self.ok("tensor", path).out.splitlines()
        self.assertEqual(len(lines), 24)
        named = [line for line in lines if ": 1 NaN, first at [1, 1]" in line]
        self.assertEqual(lines[-3], f"  and {30 - len(named)} more: --json")
        self.assertEqual(len(self.ok_json("tensor", path)["verdict"]["findings"]), 30)
        gradients = [(f"grad.{i}", "F32", (2, 2), floats(1, 1e-9, 1e-30, float("inf")))
                     for i in range(4)]
        roles = [(name, "F32", (2, 2), floats(1, 2, 3, 1e-9))
                 for name in ("act.0", "exp_avg.0", "exp_avg_sq.0", "x.0", "w.weight")]
        path = write_safetensors(self.path("m.safetensors"), gradients + roles + [
            ("v.weight", "I32", (1,), bytes(4)), ("u.weight", "F8_E4M3", (1,), bytes(1))])
        lines = self.ok("tensor", path).out.splitlines()
        self.assertEqual(sum(": 1 Inf" in line for line in lines), 3)  # at least three
        self.assertEqual(lines[-3].split(" more")[1], ": --json")

    def test_nan(self):
        self.starts(
            verdict_files.nan,
            "  weights         2  fp8 e4m3, one scale       31.7 dB    0.01 % lost     8 bits",
            "          besides: 1 with NaN or Inf",
            "  all             2  66 kB as stored, 41 kB with these choices",
            "",
            "Look at these",
            "  w1.weight: 3 NaN and 1 Inf, first at [17, 254]",
            "")

    def test_several_files(self):
        files = [self.file(verdict_files.healthy), self.file(verdict_files.nan)]
        lines = self.ok("tensor", *files).out.splitlines()
        self.assertEqual(lines[0], "2 files: 5 tensors, 49408 values")
        self.assertIn("  nan.safetensors#w1.weight: 3 NaN and 1 Inf, first at [17, 254]", lines)
        document = self.ok_json("tensor", *files)
        self.assertEqual(len(document["tensors"]), 5)
        self.assertEqual(self.ok_json("tensor", f"{files[0]}#layers.0.norm.weight", files[1])
                         ["verdict"]["roles"][0]["tensors"], 3)

    def test_width(self):
        for make in verdict_files.healthy, verdict_files.underflow, verdict_files.outlier, verdict_files.nan:
            for line in self.ok("tensor", self.file(make)).out.splitlines()[1:]:
                self.assertLessEqual(len(line), 80)


class Lines(cli_support.CliTest):
    LONG = "model.layers.%d.self_attention.query_key_value.lora_adapter.weight"

    def long_names(self):
        nan = float("nan")
        return write_safetensors(self.path("m.safetensors"), [
            (self.LONG % i, "F32", (2, 2), floats(1, 2, 3, 1e-9)) for i in range(3)] + [
            ("grad." + self.LONG % i, "F32", (2, 2), floats(1, 2e-9, nan if i else 3, 1e-12))
            for i in range(3)])

    def test_lines_are_broken_at_the_width(self):
        for width in 80, 100:
            out = self.ok("tensor", self.long_names(), env={"COLUMNS": str(width)}).out
            for line in out.splitlines()[1:]:
                if len(line) > width:  # a name cannot be broken, but it stands alone
                    self.assertEqual(len(line.split()), 1, line)
        narrow = self.ok("tensor", self.long_names(), env={"COLUMNS": "80"}).out
        self.assertIn(f"\n  grad.{self.LONG % 1}: 1 NaN,\n    first at [1, 0]\n", narrow)
        wide = self.ok("tensor", self.long_names(), env={"COLUMNS": "300"}).out
        self.assertIn(f"\n  grad.{self.LONG % 1}: 1 NaN, first at [1, 0]\n", wide)

    def test_columns_of_the_list_stay_in_place(self):
        lines = self.ok("tensor", self.long_names(), "--list").out.splitlines()
        self.assertEqual({line.rstrip().rfind("  ") for line in lines[3:]}, {lines[3].rfind("  ")})
        self.assertEqual(lines[2], lines[2].rstrip())

    def test_plain(self):
        """The figures of --json, one line a tensor, in the order of --list."""
        path = self.long_names()
        order = [line.split()[-1] for line in self.ok("tensor", path, "--list").out.splitlines()[4:]]
        rows = [line.split("\t") for line in
                self.ok("tensor", path, "--list", "--plain").out.splitlines()]
        self.assertEqual([row[0] for row in rows], order)
        document = self.ok_json("tensor", path)
        verdicts = {t["name"]: t for t in document["verdict"]["tensors"]}
        stats = {t["name"]: t for t in document["tensors"]}
        for name, role, count, lost, choice, db, lost_in_choice in rows:
            verdict, fp16 = verdicts[name], stats[name]["formats"]["fp16"]
            nonzero = stats[name]["count"] - stats[name]["zeros"] - stats[name]["nan"]
            self.assertEqual((role, int(count)), (verdict["role"], 4))
            self.assertEqual(float(lost), (fp16["underflow"] + fp16["overflow"]) / nonzero)
            self.assertEqual(choice, verdict["choice"] or "not judged")
            if verdict["choice"]:
                self.assertEqual(float(db), verdict["sqnr_db"])
                self.assertEqual(float(lost_in_choice), verdict["underflow"] / nonzero)
            else:
                self.assertEqual((db, lost_in_choice), ("-", "-"))
        path = write_safetensors(self.path("m.safetensors"), [
            ("b.bias", "F32", (2,), floats(1, 2)), ("i\t1", "I8", (2,), bytes(2)),
            ("none", "F32", (0,), b"")])
        self.assertEqual(self.ok("tensor", path, "--list", "--plain").out,
                         "b.bias\tweights\t2\t0\tbf16\texact\t0\n"
                         "i\\x091\tother\t2\t-\tnot judged\t-\t-\n"
                         "none\tother\t0\t-\tnot judged\t-\t-\n")
        self.fails(2, "tensor", path, "--plain", says="--plain does nothing without --list")


class Shards(cli_support.CliTest):
    def test_index(self):
        for name, tensor in ("1.safetensors", "a.weight"), ("2.safetensors", "b.weight"):
            write_safetensors(self.path(name), [(tensor, "F32", (2, 2), floats(1, 2, 3, 4))])
        index = self.path("m.safetensors.index.json")
        with open(index, "w") as file:
            json.dump({"metadata": {"total_size": 32}, "weight_map": {
                "b.weight": "2.safetensors", "a.weight": "1.safetensors"}}, file)
        names = lambda *arguments: [t["name"] for t in self.ok_json("tensor", *arguments)
                                    ["verdict"]["tensors"]]
        self.assertEqual(names(index), ["a.weight", "b.weight"])
        self.assertEqual(names(index + "#b.weight"), ["b.weight"])
        self.assertEqual(names(index, "--tensor", "b*"), ["b.weight"])
        self.assertIn(index + ": 2 tensors, 8 values\n", self.ok("tensor", index).out)
        self.fails(3, "tensor", index + "#c", says='"c"')
        os.remove(self.path("2.safetensors"))
        self.fails(3, "tensor", index, says="2.safetensors")
        write_file(index, '{"weight_map": {"a": "../1.safetensors"}}')
        self.fails(3, "tensor", index, says=[index, '"../1.safetensors"'])

    def test_folder(self):
        """The files of the first pattern that a snapshot has, as one file."""
        folder = self.path("snapshot")
        os.mkdir(folder)

        def written(name, *tensors):
            return write_safetensors(os.path.join(folder, name),
                                     [(t, "F32", (2, 2), floats(1, 2, 3, 4)) for t in tensors])

        def names():
            return [t["name"] for t in self.ok_json("tensor", folder)["tensors"]]
        self.fails(3, "tensor", folder,
                   says=f"{folder}: a folder without .safetensors, .gguf or PyTorch files")
        write_file(os.path.join(folder, "training_args.bin"), b"\x80\x02N.")
        self.fails(3, "tensor", folder, says=[folder, "training_args.bin", "a pickle"])
        for name in ("x.ckpt", "x.pth", "x.pt", "x.gguf", "pytorch_model-2.bin", "pytorch_model.bin"):
            written(name, name)  # the content decides what is read
            expected = [name] if name != "pytorch_model.bin" else ["pytorch_model-2.bin", name]
            self.assertEqual(names(), expected)
        written("b.safetensors", "b")
        written("a.safetensors", "a.weight", "a.bias")
        self.assertEqual(names(), ["a.weight", "a.bias", "b"])
        self.assertIn(folder + ": 3 tensors, 12 values\n", self.ok("tensor", folder).out)
        self.assertEqual(self.ok("tensor", folder + "#b").out.splitlines()[1:],
                         self.ok("tensor", os.path.join(folder, "b.safetensors") + "#b").out.splitlines()[1:])
        self.ok("compare", folder, folder, "--fail-if", "max-ulp>0")
        self.ok("report", folder, "-o", self.path("r.html"))
        written("c.safetensors", "b")
        self.fails(3, "tensor", folder,
                   says=f'{folder}: tensor "b" is in {folder}/b.safetensors and in '
                        f"{folder}/c.safetensors; name the files to read")
        with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
            json.dump({"weight_map": {"b": "b.safetensors"}}, file)
        self.assertEqual(names(), ["b"])
        self.fails(2, "report", folder, "-o", os.path.join(folder, "b.safetensors"))
        self.fails(3, "convert", folder + "#b", self.path("o.npy"), "--to", "fp32",
                   says="is a directory")

    def test_index_that_is_wrong(self):
        """A tensor that is not where the index says, and keys that occur twice; no condition passes then."""
        for name, tensors in ("1.safetensors", "ab"), ("2.safetensors", "c"):
            write_safetensors(self.path(name), [(t, "F32", (2, 2), floats(1, 2, 3, 4)) for t in tensors])
        index = self.path("m.safetensors.index.json")

        def written(text):
            write_file(index, '{"weight_map": {' + text + "}}")
            return index
        right = '"a": "1.safetensors", "b": "1.safetensors", "c": "2.safetensors"'
        self.assertEqual(len(self.ok_json("tensor", written(right))["tensors"]), 3)
        fewer = '"b": "1.safetensors", "c": "2.safetensors"'  # a is read all the same
        self.assertEqual(len(self.ok_json("tensor", written(fewer))["tensors"]), 3)
        for text, *says in [
                (right + ', "zz": "1.safetensors"', 'tensor "zz" is not in "1.safetensors", which weight_map says'),
                (right + ', "d": "2.safetensors"', 'tensor "d" is not in "2.safetensors"'),
                ('"a": "2.safetensors", "b": "1.safetensors"',
                 'tensor "a" is in "1.safetensors", but weight_map says "2.safetensors"'),
                ('"b": "1.safetensors", "c": "1.safetensors", "d": "2.safetensors"',
                 'tensor "c" is in "2.safetensors", but weight_map says "1.safetensors"'),
                (right + ', "a": "1.safetensors"', '"a" occurs twice'),
                ('"a": "2.safetensors", ' + right, '"a" occurs twice')]:
            with self.subTest(text):
                self.fails(3, "tensor", written(text), "--fail-if", "nan>0", says=[index + ": index: ", *says])
                self.fails(3, "compare", index, index, "--fail-if", "max-ulp>1", says=says)
                self.fails(3, "report", index, "-o", self.path("o.html"), says=says)
        write_safetensors(self.path("2.safetensors"), [(t, "F32", (1,), floats(1)) for t in "ac"])
        self.fails(3, "tensor", written(right), says='"a" is in "2.safetensors", but weight_map says "1.safet')


class Options(cli_support.CliTest):
    def roles(self, *arguments):
        return {r["role"]: (r["tensors"], r["choice"])
                for r in self.ok_json("tensor", *arguments)["verdict"]["roles"]}

    def test_need_decides_the_choice(self):
        weights = lambda need: self.roles(SAMPLE, "--tensor", "weight.fc1", "--need", need)["weights"]
        self.assertEqual(weights("31dB"), (1, "fp8 e4m3, one scale"))
        self.assertEqual(weights("40dB"), (1, "bf16"))
        self.assertEqual(weights("60 dB"), (1, "fp16"))
        self.assertEqual(weights("99dB,underflow<1%"), (1, "fp32"))
        # 0.59 % of grad.preactivation.fc1 are lost with one scale, 0.19 % with tiles
        gradients = lambda need: self.roles(SAMPLE, "--need", need)["gradients"]
        self.assertEqual(gradients("underflow<0.6%"), (4, "fp8 e4m3, one scale"))
        self.assertEqual(gradients("underflow<0.2%"), (4, "fp8 e4m3, 1x128 tiles"))
        self.assertIn("keeps 33.5 dB and loses none of the non-zero", self.ok(
            "tensor", SAMPLE, "--need", "underflow<0%", "--need", "33.5dB").out)

    def test_figures_are_those_of_quantize(self):
        (role,) = self.ok_json("tensor", f"{SAMPLE}#weight.fc1")["verdict"]["roles"]
        recipes = [tried for tried in role["tried"] if tried["recipe"]]
        self.assertEqual([r["recipe"] for r in recipes], ["TE_CURRENT", "TE_BLOCK_2D", "MXFP8_TE"])
        for tried in recipes:
            one = self.ok_json("quantize", f"{SAMPLE}#weight.fc1", self.path("x.safetensors"),
                               "--recipe", tried["recipe"])
            self.assertEqual(tried["lowest_sqnr"]["sqnr_db"], one["sqnr_db"])
            self.assertEqual(tried["lowest_sqnr"]["underflow"], one["underflowed"])

    def test_roles_can_be_set(self):
        path = write_safetensors(self.path("m.safetensors"), [
            (name, "F32", (2, 2), floats(1, 2, 3, 4)) for name in ("d_a", "d_b", "c.weight")])
        count = lambda *arguments: {k: n for k, (n, _) in self.roles(path, *arguments).items()}
        self.assertEqual(count(), {"weights": 1, "other": 2})
        self.assertEqual(count("--role", "d_*=gradients"), {"weights": 1, "gradients": 2})
        self.assertEqual(count("--role", "d_a=adam_v", "--role", "*=activations"),
                         {"activations": 2, "adam_v": 1})
        self.fails(2, "tensor", path, "--role", "x*=weights", says=["--role", '"x*"'])
        self.fails(2, "tensor", path, "--details", "x*", says=["--details", '"x*"'])
        grads = write_npy(self.path("grad_fc1.npy"), "<f4", (2, 2), floats(1, 2, 3, 4))
        self.assertEqual(list(self.roles(grads)), ["gradients"])  # the file's name tells

    def test_patterns_choose_tensors(self):
        names = lambda *arguments: [t["name"] for t in self.ok_json(
            "tensor", SAMPLE, *arguments)["tensors"]]
        self.assertEqual(names("--tensor", "*.fc2.*"), ["weight.fc2.bf16"])
        self.assertEqual(names("--tensor", "grad.bias.fc1", "--tensor", "grad.*"), [
            "grad.bias.fc1", "grad.preactivation.fc1", "grad.activation.gelu", "grad.weight.fc1"])
        self.fails(3, "tensor", SAMPLE, "--tensor", "x*", says='"x*"')

    def test_details_are_for_chosen_tensors(self):
        charts = lambda *arguments: self.ok("tensor", SAMPLE, *arguments).out.count("smallest non-zero")
        self.assertEqual(charts(), 0)
        self.assertEqual(charts("--details", "weight.fc1"), 1)
        self.assertEqual(charts("--details", "grad.*", "--details", "weight.fc1"), 5)
        self.assertEqual(charts("--tensor", "weight.fc1"), 1)
        self.assertEqual(charts("--to", "e4m3"), 10)  # figures for formats are asked for
        self.assertEqual(charts("--to", "e4m3", "--details", "weight.fc1"), 1)

    def test_loss_scales_of_formats(self):
        """For each format the largest scale without overflow, and what is lost at it, as --scale measures."""
        values = [v * 2.0**e for e in range(-30, 4, 3) for v in
                  (1.0, 464 / 512, 464.5 / 512, 61440 / 65536, 61439 / 65536, 65520 / 65536)]
        path = write_safetensors(self.path("s.safetensors"), [
            ("grad", "F32", (len(values),), floats(*values)),
            ("weight", "F32", (len(values),), floats(*values))])
        formats = "fp16", "e5m2", "e4m3", "e2m1"
        gradient = self.ok_json("tensor", path, "--to", ",".join(formats))["tensors"][0]
        self.assertEqual(list(gradient["loss_scales"]), list(formats))
        for name, best in gradient["loss_scales"].items():
            for log2, overflows in (best["log2"], False), (best["log2"] + 1, True):
                scaled = self.ok_json("tensor", path, "--to", name, "--scale", f"2^{log2}")
                self.assertEqual(scaled["scale_log2"], log2)
                effect = scaled["tensors"][0]["formats"][name]
                self.assertEqual(effect["overflow"] > 0, overflows, (name, log2))
                if not overflows:
                    self.assertEqual(effect["underflow"], best["underflow"], name)

    def test_loss_scales_are_for_gradients(self):
        text = self.ok("tensor", SAMPLE, "--tensor", "weight.fc1").out
        self.assertNotIn("loss scale", text)
        text = self.ok("tensor", SAMPLE, "--tensor", "grad.preactivation.fc1").out
        self.assertIn("  e4m3            2^24      0.76 %        100 %\n", text)
        self.assertIn("  bf16      not needed         0 %          0 %\n", text)
        for wrong in "24", "2^", "2^128", "2^1x", "2^-128":
            self.fails(2, "tensor", SAMPLE, "--scale", wrong, says=["--scale", "2^16", "65536"])
        self.fails(2, "tensor", SAMPLE, "--scale", "2^4", "--stats", says=["--scale", "--stats"])

    def test_scaled_products_outside_binary64(self):
        path = self.path("wide.npy")
        values = [1e308, 1.0, 1e-320]
        write_npy(path, "<f8", [3], struct.pack("<3d", *values))
        for scale, overflow, underflow in ("2^127", 2, 1), ("2^-127", 1, 2):
            found = self.ok_json("tensor", path, "--to", "fp16", "--scale", scale)["tensors"][0]
            fp16 = found["formats"]["fp16"]
            self.assertEqual((fp16["overflow"], fp16["underflow"]), (overflow, underflow))

    def test_fp64_beyond_fp32(self):
        tiny = write_npy(self.path("grad64.npy"), "<f8", (2, 2), struct.pack("<4d", *[2e-44] * 4))
        self.assertEqual(self.roles(tiny), {"gradients": (1, "fp16, loss scale")})
        self.assertIn("not bf16: 0.0 dB", self.ok("tensor", tiny).out)
        huge = write_npy(self.path("w.weight.npy"), "<f8", (2, 2), struct.pack("<4d", 1, 1, 1, 1e300))
        self.assertEqual(self.roles(huge), {"weights": (1, None)})
        self.assertIn("as stored: no choice meets the need\n          not fp32: 1 value overflows",
                      self.ok("tensor", huge).out)

    def test_position_of_the_first_nan(self):
        values = [1.0] * 140000  # more than one chunk
        values[139999] = values[135001] = float("nan")
        path = write_npy(self.path("x.npy"), "<f4", (2, 70000), floats(*values))
        self.assertIn(": 2 NaN, first at [1, 65001]\n", self.ok("tensor", path).out)

    def test_elements_that_are_not_judged(self):
        path = write_safetensors(self.path("m.safetensors"), [
            ("i.weight", "I32", (2,), struct.pack("<2i", 1, 2)), ("b", "BOOL", (2,), bytes(2)),
            ("e.weight", "F8_E4M3", (2,), b"\x38\x39"), ("none", "F32", (0, 3), b""),
            ("zeros.weight", "F32", (2, 2), bytes(16)), ("d.weight", "F64", (1, 2), bytes(16))])
        out = self.ok("tensor", path).out
        self.assertIn("besides: 1 of 8 bits or fewer already; 1 of integers\n", out)
        self.assertNotIn("Loss scale", out)
        document = self.ok_json("tensor", path)["verdict"]
        self.assertEqual([t["judged"] for t in document["tensors"]],
                         [t["name"] not in ("i.weight", "b", "e.weight", "none")
                          for t in document["tensors"]])


class Conditions(cli_support.CliTest):
    """--fail-if: the exit code, and the tensor farthest from the limit."""

    def code(self, *conditions, files=(SAMPLE,), options=()):
        return cli_support.run("tensor", *files, *options, "--fail-if", *conditions)

    def test_figures_of_formats(self):
        document = self.ok_json("tensor", SAMPLE)
        shares = {t["name"]: 100 * t["formats"]["fp16"]["underflow"] / (t["count"] - t["zeros"])
                  for t in document["tensors"]}
        worst = max(shares, key=shares.get)
        done = self.code("fp16.underflow>1%")
        self.assertEqual((done.code, done.err), (1, "fpinspect: --fail-if fp16.underflow>1%: "
                         f"{sum(s > 1 for s in shares.values())} times, worst {worst} in fp16: "
                         f"{shares[worst]:.4g} %\n"))
        self.assertEqual(done.out, self.ok("tensor", SAMPLE).out)  # the report is complete
        self.assertEqual(self.code(f"fp16.underflow>{max(shares.values()) + 0.01}%").code, 0)
        self.assertEqual(self.code("bf16.underflow>0").code, 0)
        self.assertEqual(self.code("bf16.sqnr<55dB").code, 0)
        roles = {t["name"]: t["role"] for t in document["verdict"]["tensors"]}
        for role in sorted(set(roles.values())):
            of_role = [s for name, s in shares.items() if roles[name] == role]
            expected = [(f"{role}.fp16.underflow>1%", []), (f"{role}.underflow>1%", ["--to", "fp16"])]
            for text, options in expected:
                done = self.code(text, options=options)
                self.assertEqual(done.code, int(max(of_role) > 1), text)
                if done.code:
                    self.assertIn(f"--fail-if {role}.fp16.underflow>1%: ", done.err)
                    self.assertIn(f"{max(of_role):.4g} %", done.err)
        self.assertEqual(self.code("bf16.sqnr<57dB").code, 1)
        self.assertEqual(self.code("e2m1.overflow>0").code, 0)

    def test_a_condition_without_a_format_is_one_on_each_of_to(self):
        done = self.code("underflow>1%", options=["--to", "bf16,e4m3"])
        self.assertIn("--fail-if e4m3.underflow>1%: 9 times", done.err)
        self.assertNotIn("bf16", done.err)
        # fp16 is measured for the verdict; it is not asked for
        self.assertEqual(self.code("underflow>1%", options=["--to", "bf16"]).code, 0)

    def test_verdict(self):
        self.assertEqual(self.code("weights.bits>8").code, 0)
        self.assertIn("weights: 16\n", self.code("weights.bits>8", options=["--need", "40dB"]).err)
        self.assertIn("Adam v: 32\n", self.code("bits>8").err)
        best = self.ok_json("tensor", SAMPLE)["verdict"]["fp16_loss_scale"]["log2"]
        self.assertEqual(self.code(f"loss-scale<{2**best}").code, 0)
        self.assertEqual(self.code(f"loss-scale<={2**best}").code, 1)

    def test_nan_and_inf(self):
        nan, inf = float("nan"), float("inf")
        path = write_npy(self.path("x.npy"), "<f4", (4,), floats(nan, inf, 1, 2))
        done = cli_support.run("tensor", path, "--fail-if", "nan>0,inf>25%,inf>=25 %", "--json")
        self.assertEqual((done.code, done.json()["fail_if"]), (1, [
            {"condition": "nan>0", "failed": 1, "worst": "x.npy", "value": 1},
            {"condition": "inf>25%", "failed": 0, "worst": None, "value": None},
            {"condition": "inf>=25%", "failed": 1, "worst": "x.npy", "value": 25}]))

    def test_a_share_of_nothing_is_0(self):
        zeros = write_npy(self.path("zeros.npy"), "<f4", (4,), floats(0, 0, 0, 0))
        self.assertEqual(self.code("fp16.underflow>=1%", files=[zeros]).code, 0)
        self.assertEqual(self.code("fp16.underflow<1%", files=[zeros]).code, 1)

    def test_tensors_that_are_not_measured_fail(self):
        truths = write_npy(self.path("truths.npy"), "|b1", (2,), b"\0\1")
        done = self.code("nan>0", files=[truths])
        self.assertEqual(done.code, 1)
        self.assertIn("1 tensor is not measured: truths.npy", done.err)

    def test_refused(self):
        for text, *says in [("underflow>1%", "needs a format", "fp16.underflow>1%"),
                            ("weight.bits>8", "weights, activations"), ("fp99.sqnr<1dB", "fp99"),
                            ("fp64.sqnr<1dB", "fp64"), ("fp16.nan>0", '"fp16."'), ("max-ulp>1", "bits"),
                            ("gradients.sqnr<1dB", "gradients.fp16.sqnr<1dB"),
                            ("grads.fp16.sqnr<1dB", "grads.fp16")]:
            self.fails(2, "tensor", SAMPLE, "--fail-if", text, says=["--fail-if", *says])
        self.fails(2, "tensor", SAMPLE, "--stats", "--fail-if", "nan>0", says="--stats and --fail-if")
