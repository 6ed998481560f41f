# `fpinspect update`: weights of each mode and rule. The steps themselves: unit.optimizer and the engine's optimizers.
import math
import struct

import cli_support
from cli_support import floats, write_npy

LARGEST = 3.4028234663852886e38  # of fp32
# mode: bytes of a weight with two states, what is read, what is kept, the last step that changed what is read
MODES = {
    "fp32": (12, -0.17716650664806366, -0.17716650664806366, 60),
    "direct": (10, -0.18359375, -0.18359375, 60),
    "direct_fp16": (10, -0.1785888671875, -0.1785888671875, 60),
    "stochastic": (10, -0.1787109375, -0.1787109375, 60),
    "kahan": (12, -0.1767578125, -0.17716217041015625, 60),
    "split16": (12, -0.1767578125, -0.17716650664806366, 60),
    "master32": (14, -0.1767578125, -0.17716650664806366, 60),
    "fp8_copy": (13 + 4 / 128, -0.17644143104553223, -0.17716650664806366, 60),
    "master16_scaled": (11 + 8 / 128, -0.17853571474552155, -0.1785888671875, 55)}
# Options of 40 steps, the exact weight after them, the number of states.
RULES = [
    (["--rule", "adam", "--lr", "0.003", "--weight-decay", "0.01", "--gradient", "0.02"], 0.8805035980177499, 2),
    (["--rule", "sgd", "--lr", "0.01", "--gradient", "0.3", "--weight-decay", "0.1"], 0.843080838266692, 0),
    (["--rule", "sgd", "--lr", "0.01", "--gradient", "0.3", "--momentum", "0.9"], 0.06600912449235086, 1),
    (["--rule", "lion", "--lr", "0.001", "--gradient", "0.3", "--weight-decay", "0.1"], 0.956085691420457, 1),
    (["--rule", "lamb", "--lr", "0.01", "--gradient", "0.25", "--weight-decay", "0.1", "--block-amax", "6"],
     0.5711608277809888, 2)]


class Update(cli_support.CliTest):
    def test_modes(self):
        """After 60 steps of AdamW with every option."""
        shown = self.ok_json("update", "--steps", "60", "--lr", "2e-3", "--weight-decay", "0.1", "--gradient", "-3",
                             "--start", "-0.3", "--block-amax", "5", "--beta1", "0.8", "--beta2", "0.95",
                             "--epsilon", "1e-3")
        self.assertAlmostEqual(shown["exact"], -0.17716619172836107, places=14)
        self.assertEqual({mode["name"]: (mode["bytes_per_parameter"], mode["read"], mode["kept"], mode["last_change"])
                          for mode in shown["modes"]}, MODES)
        for mode in shown["modes"]:
            self.assertEqual(shown["rows"][-1][mode["name"]], mode["read"])
            for what in "read", "kept":
                self.assertEqual(mode[what + "_distance"],
                                 abs(mode[what] - shown["exact"]) / abs(shown["exact"]))
            if mode["name"] == "stochastic":  # of 64 weights that differ
                self.assertEqual(mode["mean"], -0.1780853271484375)
                self.assertAlmostEqual(mode["rms_distance"], 0.01441062438294576, places=14)
            else:
                self.assertEqual(mode["mean"], mode["read"])
                self.assertAlmostEqual(mode["rms_distance"], mode["read_distance"], places=14)

        # The e4m3 codes are those of the 16-bit master weight, also before the first step.
        shown = self.ok_json("update", "--start", "0.7001", "--steps", "1", "--modes", "master16_scaled")
        self.assertEqual(shown["modes"][0]["last_change"], 0)

    def test_rules(self):
        for options, exact, states in RULES:
            shown = self.ok_json("update", "--steps", "40", *options)
            self.assertAlmostEqual(shown["exact"], exact, places=14, msg=options)
            self.assertLess(shown["modes"][0]["read_distance"], 1e-5, options)
            self.assertEqual([mode["bytes_per_parameter"] for mode in shown["modes"]],
                             [size - 8 + 4 * states for size, *_ in MODES.values()], options)

    def test_epsilon_of_0(self):
        """Without a gradient, the first step is 0 / 0."""
        lines = self.ok("update", "--epsilon", "0", "--gradient", "0", "--steps", "1",
                        "--modes", "fp32,split16").out.splitlines()
        self.assertEqual([line.split() for line in lines[2:5]],
                         [["step", "exact", "fp32", "split16"], ["0", "1", "1", "1"],
                          ["1", "nan", "nan", "nan"]])
        shown = self.ok_json("update", "--epsilon", "0", "--steps", "1", "--lr", "0.25",
                             "--modes", "fp32")
        self.assertEqual((shown["epsilon"], shown["exact"], shown["modes"][0]["read"]), (0, 0.75, 0.75))

    def test_lamb_with_one_norm(self):
        """Weights of 64 and a gradient of 0 beside it: the trust ratio by hand, in the first step."""
        shown = self.ok_json("update", "--rule", "lamb", "--steps", "1", "--lr", "0.01",
                             "--block-amax", "6", "--modes", "fp32,master32")
        weights = math.sqrt(64 * 1.0 + 36.0)
        step = 0.01 * weights / 8.0  # 64 directions of 1
        self.assertAlmostEqual(shown["exact"], 1 - step, places=7)
        for mode in shown["modes"]:
            self.assertAlmostEqual(mode["kept"], shown["exact"], places=6)

    def test_gradients_of_a_file(self):
        """One after the other, then from the first again."""
        half = write_npy(self.path("h.npy"), "<f2", (2,), struct.pack("<2e", 0.5, -0.25))
        shown = self.ok_json("update", "--rule", "sgd", "--gradient", half, "--lr", "0.5", "--steps", "5",
                             "--every", "1", "--modes", "fp32,direct_fp16")
        self.assertEqual([(row["exact"], row["fp32"], row["direct_fp16"]) for row in shown["rows"]],
                         [(x, x, x) for x in (1, 0.75, 0.875, 0.625, 0.75, 0.5)])

    def test_shown_steps(self):
        def steps(*arguments):
            return [row["step"] for row in self.ok_json("update", *arguments)["rows"]]
        self.assertEqual(steps("--steps", "100"), [0, 1, 2, 5, 10, 20, 50, 100])
        self.assertEqual(steps("--steps", "7"), [0, 1, 2, 5, 7])
        self.assertEqual(steps("--steps", "1"), [0, 1])
        self.assertEqual(steps("--steps", "10", "--every", "4"), [0, 4, 8, 10])
        self.assertEqual(steps("--steps", "3", "--every", "3"), [0, 3])

    def test_seed_and_modes(self):
        def weights(*arguments):
            shown = self.ok_json("update", "--modes", "stochastic,fp32", *arguments)
            self.assertEqual([mode["name"] for mode in shown["modes"]], ["stochastic", "fp32"])
            return [row["stochastic"] for row in shown["rows"]], [row["fp32"] for row in shown["rows"]]
        first, second = weights(), weights("--seed", "7")
        self.assertNotEqual(first[0], second[0])
        self.assertEqual(first[1], second[1])
        self.assertEqual(first, weights("--seed", "0"))

    def test_weights_that_reach_zero_and_inf(self):
        shown = self.ok_json("update", "--rule", "sgd", "--gradient", "1", "--lr", "0.5", "--steps", "2",
                             "--modes", "fp32")
        self.assertEqual((shown["exact"], shown["modes"][0]["read"]), (0, 0))
        self.assertIsNone(shown["modes"][0]["read_distance"])
        lines = self.ok("update", "--rule", "sgd", "--gradient", "-3e38", "--lr", "4", "--steps", "1",
                        "--modes", "fp32").out.splitlines()
        self.assertIn("1     1.2e+39   inf", lines)

    def test_numbers_that_name_files_too(self):
        write_npy(self.path("1"), "<f4", (1,), floats(7))
        shown = self.ok_json("update", "--gradient", "1", "--rule", "sgd", "--lr", "0.5", "--steps", "1",
                             "--modes", "fp32", cwd=self.folder)
        self.assertEqual(shown["exact"], 0.5)

    def test_gradients_and_weights_at_the_limits(self):
        path = write_npy(self.path("g.npy"), "<f4", (3,), floats(1, math.nan, 1))
        shown = self.ok_json("update", "--gradient", path, "--steps", "9")
        for mode in shown["modes"]:
            self.assertEqual((mode["read"], mode["kept_distance"], mode["last_change"]), (None, None, 2), mode)
        shown = self.ok_json("update", "--start", "3e38", "--steps", "1")
        self.assertEqual(shown["block_amax"], LARGEST)
        for mode in shown["modes"]:
            self.assertEqual(mode["kept"] is None, mode["name"] == "direct_fp16", mode)
        for mode in self.ok_json("update", "--start", "0", "--gradient", "0")["modes"]:
            self.assertEqual((mode["read"], mode["kept"], mode["last_change"]), (0, 0, 0))

    def test_text_fits_80_columns(self):
        lines = self.ok("update", "--lr", "0.0001234", "--start", "-0.123456", "--steps", "100000",
                        "--every", "30000").out.splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertEqual([line.split()[0] for line in lines if line.startswith(("30000", "100000"))],
                         ["30000", "100000"] * 2)

    def test_why_fp8_does_not_show_the_start(self):
        line = "fp8_copy, master16_scaled: e4m3 codes; --block-amax 5 sets their scale"
        both = self.ok("update", "--modes", "fp8_copy,master16_scaled", "--steps", "2", "--block-amax", "5")
        self.assertIn(line, both.out)
        self.assertNotIn("e4m3", self.ok("update", "--modes", "fp32,direct", "--steps", "2").out)

    def test_all_modes(self):
        arguments = ["update", "--steps", "2", "--json"]
        self.assertEqual(self.ok(*arguments, "--modes", "all").out, self.ok(*arguments).out)

    def test_errors(self):
        empty = write_npy(self.path("e.npy"), "<f4", (0,), b"")
        for arguments, says in [
                (["--rule", "x"], ['--rule: "x" is not one of adamw, adam, sgd, lion, lamb']),
                (["--modes", "fp32,x"], ['--modes: "x" is not one of fp32, direct']),
                (["--lr", "-1"], "--lr: must be"),
                (["--epsilon", "-1"], "--epsilon: must be a number >= 0 that is finite"),
                (["--weight-decay", "-1"], "--weight-decay: must be"), (["--lr", "x"], '"x" is not a finite number'),
                (["--beta1", "1"], "--beta1: must be"), (["--start", "1e39"], "beyond the numbers of fp32"),
                (["--steps", "0"], "--steps"), (["--every", "0"], "--every"),
                (["--momentum", "0.9"], "--momentum does nothing without --rule sgd"),
                (["--rule", "sgd", "--beta1", "0.9"], "--beta1 does nothing without"),
                (["--gradient", "nan"], "not a finite number"),
                (["--gradient", empty], "has no elements")]:
            self.fails(2, "update", *arguments, says=says)
        self.fails(3, "update", "--gradient", self.path("missing.npy"))
