# `fpinspect memory`: sums of its table, and the totals that its sources give.

import cli_support

# Bytes a parameter as the sources print them: Ultra-Scale Playbook, MS-AMP, Apex.
PUBLISHED = {
    "bf16-fp32": 4 + 4 + 2 + 2 + 4 + 4, "bf16-no-grad-sum": 4 + 2 + 2 + 4 + 4,
    "transformer-engine": 4 + 4 + 4 + 4, "fp8-lm-o3": 2 + 2 + 1 + 1 + 1 + 2,
    "nanotron-fp8": 2 + 4 + 1 + 1 + 1 + 1, "ms-amp-o1": 2 + 1 + 4 + 4,
    "ms-amp-o2": 2 + 1 + 1 + 2, "ms-amp-o3": 1 + 2 + 1 + 1 + 2,
    "apex-o1": 4 + 4 + 4 + 4, "apex-o2": 2 + 4 + 2 + 4 + 4 + 4, "bf16-only": 4 * 2, "fp32": 4 * 4,
    "deepseek-v3": 4 + 4 + 1 + 2 + 2 + 2 + 4 / 128**2,
    # e2m1 along both axes, e4m3 scales of 16 elements
    "mxfp8": 2 * (1 + 1 / 32) + 4 + 4 + 4 + 4,
    "nvfp4": 2 * (0.5 + 1 / 16) + 4 + 4 + 4 + 4,
    "qlora": 0.5 + 1 / 64,
}
PUBLISHED_SAVINGS = {"transformer-engine": 20, "fp8-lm-o3": 55, "deepseek-v3": 25,
                     "nanotron-fp8": 50}
BITS = {"fp32": 32, "fp16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "e2m1": 4}


class Memory(cli_support.CliTest):
    def test_published_sums(self):
        schemes = {s["name"]: s for s in self.ok_json("memory")["schemes"]}
        self.assertEqual({name: s["bytes_per_parameter"] for name, s in schemes.items()}, PUBLISHED)
        for name, percent in PUBLISHED_SAVINGS.items():
            self.assertEqual(round(100 * schemes[name]["saved"]), percent, name)

    def test_parts(self):
        for scheme in self.ok_json("memory", "--parameters", "7e9")["schemes"]:
            total = 0
            for part in filter(None, scheme["parts"].values()):
                bits = BITS[part["format"]] + part["scale_bits"] / part["scale_elements"]
                self.assertEqual(part["bytes"], part["copies"] * bits / 8)
                total += part["bytes"]
            self.assertEqual(scheme["bytes_per_parameter"], total)
            self.assertEqual(scheme["total_bytes"], total * 7e9)
            self.assertNotEqual(scheme["source"], "")

    def test_chosen_schemes_and_activations(self):
        shown = self.ok_json("memory", "deepseek-v3,fp32", "--activations", "3,8,2,16,5")
        self.assertEqual([s["name"] for s in shown["schemes"]], ["deepseek-v3", "fp32"])
        tokens, hidden, layers, heads = 16 * 5, 8, 3, 2
        self.assertEqual(shown["activations"], {
            "all": layers * tokens * hidden * (34 + 5 * heads * 16 / hidden),
            "selective": layers * tokens * hidden * 34, "full": layers * tokens * hidden * 2})
        self.assertIsNone(self.ok_json("memory")["activations"])
        self.assertIsNone(self.ok_json("memory")["schemes"][0]["total_bytes"])

    def test_text_fits_80_columns(self):
        lines = self.ok("memory", "--parameters", "671e9").out.splitlines()
        table = lines[:lines.index("")]
        self.assertLessEqual(max(map(len, table)), 80)
        self.assertEqual(len(table), 1 + len(PUBLISHED))
        self.assertEqual(table[1].split(), ["bf16-fp32", "bf16", "fp32", "bf16", "fp32", "fp32",
                                            "fp32", "20", "0", "%", "13420"])

    def test_modes_of_an_optimizer(self):
        """Bytes and scales of arrays of N elements, counted."""
        modes = {"fp32": ["f4"], "direct": ["f2"], "direct_fp16": ["f2"], "stochastic": ["f2"],
                 "kahan": ["f2", "f2"], "split16": ["f2", "f2"], "master32": ["f2", "f4"],
                 "fp8_copy": ["f1*", "f4"], "master16_scaled": ["f1*", "f2*"]}
        states = {"fp32": "f4", "bf16": "f2", "bf16_stochastic": "f2", "fp16": "f2",
                  "fp16_stochastic": "f2", "fp16_scaled": "f2*", "e4m3": "f1*", "e5m2": "f1*", "dynamic8": "f1*",
                  "none": "f0"}
        gradients = {"fp32": "f4", "bf16": "f2", "fp16": "f2", "e4m3": "f1+", "e5m2": "f1+"}
        all_states = states
        for n, block, rule, number in [(1000, 128, "adamw", 2), (1025, 256, "lion", 1),
                                       (7, 128, "sgd", 1), (512, 256, "lamb", 2)]:
            states = {s: a for s, a in all_states.items() if (s != "none" or rule == "sgd") and
                      (s not in ("fp16", "fp16_stochastic") or number == 1)}
            shown = self.ok_json("memory", "--weights", "all", "--states", ",".join(states),
                                 "--gradients", ",".join(gradients), "--parameters", str(n),
                                 "--rule", rule, "--block", str(block))["modes"]
            self.assertEqual([(one["name"], one["states"], one["gradients"]) for one in shown],
                             [(w, s, g) for w in modes for s in states for g in gradients])
            for one in shown:
                arrays = (modes[one["name"]] + [states[one["states"]]] * number +
                          [gradients[one["gradients"]]])
                scales = {"*": -(-n // block), "+": 1}
                self.assertEqual(one["total_bytes"],
                                 sum(n * int(a[1]) + 4 * scales.get(a[2:], 0) for a in arrays), one)
                each = sum(int(a[1]) + (4 / block if a[2:] == "*" else 0) for a in arrays)
                self.assertEqual(one["bytes_per_parameter"], each)
                self.assertEqual(each, sum(one[part + "_bytes"] for part in
                                           ("weight", "master", "low", "gradient", "state")))
        (one,) = self.ok_json("memory", "--weights", "master32")["modes"]
        self.assertEqual((one["states"], one["gradients"], one["bytes_per_parameter"],
                          one["total_bytes"]), ("fp32", "bf16", 16, None))

    def test_text_of_modes_fits_80_columns(self):
        lines = self.ok("memory", "--weights", "all", "--states", "bf16_stochastic,e4m3",
                        "--parameters", "671e9").out.splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertEqual(lines[-5].split(), ["master16_scaled", "e4m3*", "fp16*", "-", "bf16", "e4m3*",
                                             "7.125", "4780.88"])

    def test_arrays_of_states(self):
        for arguments, says in [(["--rule", "adamw"], "states: 2 arrays"),
                                (["--rule", "sgd"], "states: 1 array"),
                                (["--rule", "sgd", "--states", "none,bf16"], "states: 1 array"),
                                (["--rule", "sgd", "--states", "none"], "states: none")]:
            lines = self.ok("memory", "--weights", "fp32", *arguments).out.splitlines()
            self.assertTrue(lines[-2].endswith(says), lines[-2])

    def test_second_moments_in_fp16_are_refused(self):
        for states in "fp16", "fp16_stochastic":
            for rule in "adamw", "adam", "lamb":
                self.fails(2, "memory", "--weights", "fp32", "--states", f"fp32,{states}", "--rule", rule,
                           says=f"--states: {states} has no numbers between 0 and 2^-24, so {rule} "
                                "would divide steps of small second moments by epsilon alone; use "
                                "fp16_scaled or bf16")
            for rule in "lion", "sgd":
                self.ok("memory", "--weights", "fp32", "--states", states, "--rule", rule)

    def test_letters_behind_the_number_of_parameters(self):
        of = lambda text: self.ok_json("memory", "--parameters", text)["parameters"]
        self.assertEqual([of(text) for text in ("7B", "7b", "350M", "2k", "1.5T", "7e9")],
                         [7e9, 7e9, 350e6, 2e3, 1.5e12, 7e9])
        self.assertEqual(of("0x7b"), 123)
        for wrong in "B", "7BB", "-1B", "0M", "1e300T":
            self.fails(2, "memory", "--parameters", wrong, says="--parameters")
        self.fails(2, "memory", "--parameters", "7BB", says='"7BB"')
        self.fails(2, "memory", "7e9", says=["SCHEME", "--parameters"])

    def test_errors(self):
        for arguments, says in [
                (["x"], ['SCHEME: "x" is not one of bf16-fp32']), (["--parameters", "0"], "above 0"),
                (["--parameters", "7G"], '"7G" is not a finite number'),
                (["--activations", "1,2,3"], "five numbers"),
                (["--activations", "1,2,3,4,-5"], '"-5" is not above 0')]:
            self.fails(2, "memory", *arguments, says=says)
        for arguments, says in [
                (["fp32", "--weights", "all"], "--weights and SCHEME"),
                (["--weights", "all", "--activations", "1,2,3,4,5"], "--weights and --activations"),
                (["--states", "fp32"], "--states does nothing without --weights"),
                (["--weights", "x"], '--weights: "x" is not one of fp32, direct'),
                (["--weights", "all,fp32"], '--weights: "all" is not one of'),
                (["--weights", "all", "--states", "x"], '--states: "x" is not one of fp32'),
                (["--weights", "all", "--gradients", "none"], '--gradients: "none" is not'),
                (["--weights", "all", "--states", "none"],
                 "--states: none is only for --rule sgd; adamw keeps 2 states"),
                (["--weights", "all", "--rule", "x"], '--rule: "x" is not one of adamw'),
                (["--weights", "all", "--block", "192"], "--block")]:
            self.fails(2, "memory", *arguments, says=says)
