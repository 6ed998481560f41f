# What the verdict of `fpinspect tensor` counts against the need: loss scales, tiny values of
# optimizer states, and the matrices and bits of convolutions.
import math
import struct

import cli_support
from cli_support import SAMPLE, floats, write_safetensors


class LossScaleOfEveryTensor(cli_support.CliTest):
    """The need holds in each gradient tensor, not in all gradients together."""

    def meets(self, path, k, db=30):
        """Whether fp16 at the scale 2^k meets the need in every gradient of the file."""
        tensors = self.ok_json("tensor", path, "--tensor", "grad.*", "--to", "fp16", "--scale",
                               f"2^{k}")["tensors"]
        fp16 = [(t["formats"]["fp16"], t["count"] - t["zeros"]) for t in tensors]
        return all(100 * f["underflow"] < nonzero and f["overflow"] == 0 and
                   (f["changed"] == 0 or f["saturated_sqnr_db"] >= db) for f, nonzero in fp16)

    def test_the_range_holds_in_every_tensor(self):
        found = self.ok_json("tensor", SAMPLE)["verdict"]["fp16_loss_scale"]
        self.assertEqual((found["smallest_log2_that_meets_the_need"], found["log2"]), (9, 26))
        self.assertEqual([self.meets(SAMPLE, k) for k in (6, 8, 9, 26, 27)],
                         [False, False, True, True, False])
        self.assertIn("\n  Every scale from 2^9 to 2^26 meets the need.\n", self.ok("tensor", SAMPLE).out)

    def test_the_ratio_is_that_of_the_worst_tensor(self):
        shown = self.ok_json("tensor", SAMPLE, "--tensor", "grad.*", "--to", "fp16", "--scale", "2^26")
        ratio, name = min((t["formats"]["fp16"]["sqnr_db"], t["name"]) for t in shown["tensors"])
        (tried,) = [tried for role in self.ok_json("tensor", SAMPLE)["verdict"]["roles"]
                    for tried in role["tried"]
                    if (role["role"], tried["choice"]) == ("gradients", "fp16, loss scale")]
        self.assertEqual((tried["lowest_sqnr"]["sqnr_db"], tried["lowest_sqnr"]["tensor"]),
                         (ratio, name))

    def test_shares_are_those_of_the_worst_tensor(self):
        found = self.ok_json("tensor", SAMPLE)["verdict"]["fp16_loss_scale"]
        self.assertEqual(found["without"]["worst"], {"tensor": "grad.preactivation.fc1",
                                                     "underflow": 5116, "nonzero": 16384})
        self.assertEqual(found["scales"][-1]["worst"], None)
        self.assertIn("\n  none       31.23 % lost in grad.preactivation.fc1, 11.08 % of all\n",
                      self.ok("tensor", SAMPLE).out)
        alone = self.ok("tensor", SAMPLE + "#grad.preactivation.fc1").out
        self.assertIn("\n  none       31.23 % lost\n", alone)

    def test_many_large_gradients_hide_no_small_ones(self):
        path = write_safetensors(self.path("g.safetensors"), [
            ("grad.a", "F32", (1000, 1000), floats(1e-2) * 10**6),
            ("grad.b", "F32", (64, 64), floats(1e-9) * 4096)])
        found = self.ok_json("tensor", path)["verdict"]["fp16_loss_scale"]
        self.assertTrue(found["needed"])
        least = found["smallest_log2_that_meets_the_need"]
        # From 2^5 on nothing becomes 0; at least 2^10 keeps 30 dB of 1e-9.
        self.assertEqual([self.meets(path, k) for k in (5, least - 1, least, found["log2"])],
                         [False, False, True, True])
        out = self.ok("tensor", path).out
        self.assertIn("\nLoss scale for fp16 gradients: 2^22 ", out)
        self.assertIn("\n  none         100 % lost in grad.b, 0.41 % of all\n", out)
        self.assertIn("\n  Every scale from 2^10 to 2^22 meets the need.\n", out)

    def test_no_scale(self):
        path = write_safetensors(self.path("g.safetensors"), [
            ("grad.a", "F32", (1, 2), floats(1.0, 2.0)), ("grad.b", "F32", (1, 1), floats(1e-30))])
        found = self.ok_json("tensor", path)["verdict"]["fp16_loss_scale"]
        self.assertEqual((found["needed"], found["smallest_log2_that_meets_the_need"]), (True, None))
        self.assertIn("\n  No scale without overflow meets the need in every tensor.\n",
                      self.ok("tensor", path).out)


class LimitsOfLossScales(cli_support.CliTest):
    """Loss scales are normal binary32 numbers, 2^-126 to 2^127; scalers stop at 2^24."""

    def gradients(self, *values, dtype="F64"):
        code = "d" if dtype == "F64" else "f"
        return write_safetensors(self.path("g.safetensors"), [
            ("grad.a", dtype, (1, len(values)), struct.pack(f"<{len(values)}{code}", *values))])

    def test_at_most_2_to_the_127(self):
        path = self.gradients(1e-45, 3e-45, dtype="F32")
        out = self.ok("tensor", path).out
        self.assertIn("\nLoss scale for fp16 gradients: 2^127   (above 2^24: fp32 gradients would serve)\n",
                      out)
        self.assertIn(" lost, the largest that loss scalers hold\n", out)
        self.assertIn("\n  fp16           2^127 ", out)
        self.assertIn("above 2^24, fp32 gradients would serve", out)
        self.assertNotRegex(out, r"2\^(12[89]|1[3-9]\d)")
        document = self.ok_json("tensor", path, "--to", "fp16,e5m2")
        found = document["verdict"]["fp16_loss_scale"]
        self.assertEqual((found["log2"], found["note"]),
                         (127, "above 2^24: fp32 gradients would serve"))
        self.assertEqual([loss["log2"] for loss in found["scales"]], [123, 125, 126, 127])
        self.assertEqual(document["tensors"][0]["fp16_loss_scale_log2"], 127)
        self.assertEqual({f: s["log2"] for f, s in document["tensors"][0]["loss_scales"].items()},
                         {"fp16": 127, "e5m2": 127})

    def test_at_least_2_to_the_minus_126(self):
        path = self.gradients(1e308, 1.0)
        out = self.ok("tensor", path).out
        self.assertIn("\nLoss scale for fp16 gradients: none\n", out)
        self.assertIn("\n  2^-126     50.00 % lost, 1 value overflows in grad.a\n", out)
        self.assertIn("\n  No scale without overflow meets the need in every tensor.\n", out)
        self.assertNotIn("2^-1008", out)
        document = self.ok_json("tensor", path, "--to", "fp16,e5m2")
        found = document["verdict"]["fp16_loss_scale"]
        self.assertEqual((found["log2"], found["needed"], found["smallest_log2_that_meets_the_need"]),
                         (None, True, None))
        self.assertEqual(document["tensors"][0]["fp16_loss_scale_log2"], None)
        self.assertEqual(document["tensors"][0]["loss_scales"], {"fp16": None, "e5m2": None})
        exact = self.gradients(2.0**141)  # 2^15 at the smallest scale
        self.assertEqual(self.ok_json("tensor", exact)["verdict"]["fp16_loss_scale"]["log2"], -126)

    def test_above_the_ceiling_of_scalers(self):
        note = lambda *values: self.ok_json(
            "tensor", self.gradients(*values, dtype="F32"))["verdict"]["fp16_loss_scale"]["note"]
        self.assertEqual(note(2.0**-9, 2.0**-30), "bf16 gradients need none")  # 2^24
        self.assertEqual(note(2.0**-10, 2.0**-30), "above 2^24: fp32 or bf16 would serve")
        self.assertEqual(note(2.0**-10), None)  # none needed
        # fp32 does not hold these
        self.assertNotIn("would serve", self.ok("tensor", self.gradients(1e-50)).out)


class WhatTheNeedCosts(cli_support.CliTest):
    """The bytes of the choices, and the need that a refused choice would meet."""

    def verdict(self, *options, files=(SAMPLE,)):
        return self.ok_json("tensor", *files, *options)["verdict"]

    def test_fraction_bits(self):
        """Rounding to m bits is an error of 2^(-2m) / 12 beside squares of 7/3."""
        for bits in range(1, 12):
            db = 10 * math.log10(28 * 4**bits)
            self.assertEqual(self.verdict("--need", f"{db - 0.01}dB")["need"]["fraction_bits"], bits)
            self.assertEqual(self.verdict("--need", f"{db + 0.01}dB")["need"]["fraction_bits"], bits + 1)
        self.assertEqual(self.verdict("--need", "0dB")["need"]["fraction_bits"], 0)
        self.assertEqual(self.verdict("--need", "1e308dB")["need"]["fraction_bits"], 1000000)

    def test_the_admitted_need_admits(self):
        for need, role, text in [
                (30, "gradients", "30 dB takes 3 fraction bits, e5m2 has 2; --need 25dB admits it for gradients"),
                (40, "weights", "40 dB takes 5 fraction bits, e4m3 has 3; --need 31dB admits it for weights"),
                (32, "weights", "--need 31dB admits mxfp8 e4m3, 1x32 blocks for weights")]:
            refused = self.verdict("--need", f"{need}dB")["refused"]
            self.assertEqual((refused["role"], refused["text"]), (role, text))
            self.assertIn(f"\n  {text}\n", self.ok("tensor", SAMPLE, "--need", f"{need}dB").out)
            for db, admitted in (refused["admitted_sqnr_db"], True), (refused["admitted_sqnr_db"] + 1, False):
                found = [r for r in self.verdict("--need", f"{db}dB")["roles"] if r["role"] == role]
                failed = [t["failed"] for t in found[0]["tried"] if t["choice"] == refused["choice"]]
                self.assertEqual(failed == [0], admitted)

    def test_report(self):
        page = self.ok("report", SAMPLE, "-o", "-").out
        self.assertIn("<p>414 kB as stored, 152 kB with these choices</p><p>30 dB takes 3 fraction bits, "
                      "e5m2 has 2; --need 25dB admits it for gradients</p>", page)

    def test_losses_admit_nothing(self):
        """No need in dB helps a choice that loses too many values of another tensor."""
        ramp = [1 + i / 64 for i in range(64)]
        path = write_safetensors(self.path("w.safetensors"), [
            ("a.weight", "F32", (8, 8), floats(*ramp)),
            ("b.weight", "F32", (8, 8), floats(*ramp[:60], 1e-7, 1e-7, 1e-7, 1e-7))])
        self.assertEqual(self.verdict("--need", "40dB", files=[path])["refused"], {
            "role": "weights", "choice": "mxfp8 e4m3, 1x32 blocks", "admitted_sqnr_db": None,
            "text": "40 dB takes 5 fraction bits, e4m3 has 3"})
        self.assertIsNone(self.verdict(files=[path])["refused"])  # the losses decide

    def test_bytes(self):
        """Elements in their choices, with the scales of tiles; all others as they are stored."""
        sizes = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1}
        bits = {"fp8 e4m3, one scale": 8, "mxfp8 e4m3, 1x32 blocks": 8.25, "bf16": 16, "fp16": 16,
                "fp16, loss scale": 16}
        for need in 30, 31.5, 40, 60:
            document = self.ok_json("tensor", SAMPLE, "--need", f"{need}dB")
            before = [t["count"] * sizes[t["dtype"]] for t in document["tensors"]]
            chosen = [t["choice"] for t in document["verdict"]["tensors"]]
            after = [t["count"] * bits[c] / 8 if c in bits else size
                     for t, c, size in zip(document["tensors"], chosen, before)]
            self.assertEqual((document["verdict"]["bytes_before"], document["verdict"]["bytes_after"]),
                             (sum(before), sum(after)))


class OptimizerStates(cli_support.CliTest):
    """Losing values below 2^-24 of the RMS of an optimizer state does not fail the need."""

    def state(self, tiny, size=1.0, name="exp_avg"):
        """16 tensors of values up to 1.4e-3; two of them have 32 values `tiny` of 1024."""
        rows = [[size * 1e-5 * (1 + 7 * i % 140) for i in range(1024)] for _ in range(16)]
        for row in rows[3], rows[9]:
            row[:32] = [tiny] * 32
        return write_safetensors(self.path("m.safetensors"), [
            (f"{name}.{i}", "F32", (8, 128), floats(*row)) for i, row in enumerate(rows)])

    def test_tiny_values_decide_nothing(self):
        path = self.state(6e-45)
        out = self.ok("tensor", path).out
        self.assertIn("\n  Adam m         16  bf16                      55.1 dB    3.12 % lost    16 bits\n"
                      "          not counted: lost values below 2^-24 of their tensor's RMS\n", out)
        (role,) = self.ok_json("tensor", path)["verdict"]["roles"]
        self.assertEqual(role["choice"], "bf16")
        worst = role["tried"][0]["largest_underflow"]
        self.assertEqual((worst["underflow"], worst["negligible"], worst["nonzero"]), (32, 32, 1024))
        page = self.ok("report", path, "-o", "-").out
        self.assertIn("not counted: lost values below 2^-24 of their tensor&#39;s RMS", page)

    def test_values_near_the_rms_still_count(self):
        path = self.state(6e-45, size=1e-34)  # the RMS is 8e-38: 2^-24 of it is 5e-45
        (role,) = self.ok_json("tensor", path)["verdict"]["roles"]
        self.assertEqual(role["choice"], "fp32")
        self.assertEqual(role["tried"][0]["largest_underflow"]["negligible"], 0)
        self.assertNotIn("not counted", self.ok("tensor", path).out)

    def test_other_roles_count_all(self):
        for name in "grad", "act", "some":
            (role,) = self.ok_json("tensor", self.state(6e-45, name=name))["verdict"]["roles"]
            bf16 = [t for t in role["tried"] if t["choice"] == "bf16"][0]
            self.assertEqual((bf16["failed"], bf16["largest_underflow"]["negligible"]), (2, 0))


class Convolutions(cli_support.CliTest):
    """Weights of rank above 2 are judged as [out, rest]; bits have the scales of the actual tiles."""

    def tensor(self, name, shape):
        values = [(1 + i * 37 % 101) / 64 for i in range(math.prod(shape))]
        return name, "F32", shape, floats(*values)

    def tried(self, path):
        (role,) = self.ok_json("tensor", path)["verdict"]["roles"]
        return {t["choice"]: (t["bits"], (t["lowest_sqnr"] or {}).get("sqnr_db")) for t in role["tried"]}

    def test_weights_are_judged_as_matrices(self):
        name, dtype, shape, data = self.tensor("conv.weight", (64, 32, 3, 3))
        for name in "conv.weight", "grad.conv.weight":
            whole = write_safetensors(self.path("w.safetensors"), [(name, dtype, shape, data)])
            matrix = write_safetensors(self.path("m.safetensors"), [(name, dtype, (64, 288), data)])
            self.assertEqual(self.tried(whole), self.tried(matrix))
            self.assertIn("\n          as [out, rest]: 1 of rank above 2\n", self.ok("tensor", whole).out)
            self.assertNotIn("[out, rest]", self.ok("tensor", matrix).out)
            page = self.ok("report", whole, "-o", "-").out
            self.assertIn("as [out, rest]: 1 of rank above 2", page)
            self.assertIn("64 rows, 288 columns", page)

    def test_recipes(self):
        name, dtype, shape, data = self.tensor("conv.weight", (64, 128, 1, 1))
        whole = write_safetensors(self.path("w.safetensors"), [(name, dtype, shape, data)])
        matrix = write_safetensors(self.path("m.safetensors"), [(name, dtype, (64, 128), data)])
        out = self.ok("tensor", whole, "--recipes").out
        self.assertEqual(out.splitlines()[0], "conv.weight  F32 [64, 128, 1, 1] as [64, 128]")
        self.assertEqual(out.splitlines()[1:], self.ok("tensor", matrix, "--recipes").out.splitlines()[1:])
        table = next(line for line in out.splitlines() if line.split()[:1] == ["recipe"])
        self.assertEqual(max(map(len, out.splitlines())), len(table))
        (found,) = self.ok_json("tensor", whole, "--recipes")["tensors"]
        self.assertEqual((found["shape"], found["matrix"]), ([64, 128, 1, 1], [64, 128]))
        bits = {r["name"]: r["bits"] for r in found["recipes"]}
        self.assertEqual([bits[n] for n in ("TE_CURRENT", "TE_BLOCK_2D", "TE_BLOCK_1D", "MXFP8_TE")],
                         [8, 8 + 32 / 8192, 8.25, 8.25])
        failed = cli_support.run("tensor", whole, "--recipes", "--fail-if", "DSV3_IEEE.sqnr>60dB")
        self.assertEqual((failed.code, failed.err), (0, ""))
        self.assertIn("64 tiles of [64, 128])\n", self.ok("tensor", whole, "--stats").out)

    def test_bits_of_short_rows(self):
        """One scale an element is 40 bits, and no choice before bf16."""
        pixels = write_safetensors(self.path("p.safetensors"), [self.tensor("thing", (64, 128, 1, 1))])
        found = self.tried(pixels)
        self.assertEqual({name: bits for name, (bits, _) in found.items()}, {
            "fp8 e4m3, one scale": 8, "fp8 e4m3, 1x128 tiles": 40, "mxfp8 e4m3, 1x32 blocks": 16,
            "bf16": 16, "fp16": 16, "fp32": 32})
        self.assertEqual(sorted(bits for bits, _ in found.values()), [b for b, _ in found.values()])
        (thing,) = self.ok_json("tensor", pixels, "--recipes")["tensors"]
        self.assertEqual([r["bits"] for r in thing["recipes"] if r["name"] == "DSV3_IEEE"], [40])
        activation = write_safetensors(self.path("a.safetensors"), [self.tensor("act.a", (2, 8, 14, 7))])
        self.assertEqual(self.tried(activation)["fp8 e4m3, 1x128 tiles"][0], 8 + 32 / 7)
        fails = cli_support.run("tensor", pixels, "--need", "31.9dB", "--fail-if", "bits>16")
        self.assertEqual(fails.code, 0, fails.err)
