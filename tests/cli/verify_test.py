# `fpinspect backends` and `fpinspect verify`: their shape, what they find, and exit codes.
import os
import platform
import unittest

import cli_support
from cli_support import read_text, write_file

# A copy of fpinspect with two more backends: `planted`, which rounds the tie 464 wrongly into e4m3,
# and `absent`, whose machine nobody has.
PLANTED = os.environ.get("FPINSPECT_PLANTED", "")
NAMES = ["reference", "avx2", "avx512", "cuda-emulated", "cuda-native"]


class Backends(cli_support.CliTest):
    def listed(self, **environment):
        backends = self.ok_json("backends", env=environment)["backends"]
        return {b["name"]: b for b in backends}

    def test_json(self):
        backends = self.listed()
        self.assertEqual(list(backends), [n for n in NAMES if n in backends])
        self.assertTrue(backends["reference"]["supported"])
        for b in backends.values():
            self.assertEqual(set(b), {"name", "description", "memory", "supported", "default",
                                      "why_unsupported"})
            self.assertEqual(b["memory"], "device" if b["name"].startswith("cuda") else "host")
            self.assertEqual(b["supported"], b["why_unsupported"] == "")
        defaults = [b for b in backends.values() if b["default"] and b["memory"] == "host"]
        self.assertEqual(len(defaults), 1)
        last = [b for b in backends.values() if b["supported"] and b["memory"] == "host"][-1]
        self.assertEqual(defaults, [last])
        if platform.machine() == "x86_64":
            self.assertIn("avx512", backends)

    def test_text(self):
        lines = self.ok("backends").out.splitlines()
        self.assertEqual(lines[0].split()[:3], ["backend", "memory", "here"])
        for line, b in zip(lines[1:], self.listed().values(), strict=True):
            here = "default" if b["default"] else "yes" if b["supported"] else "no"
            self.assertEqual(line.split()[:3], [b["name"], b["memory"], here])
            self.assertIn(b["description"], line)
            self.assertIn(b["why_unsupported"], line)

    def test_environment(self):
        self.assertTrue(self.listed(SAMEBITS_BACKEND="reference")["reference"]["default"])
        for command in ("backends", "backends --json"):
            self.fails(4, *command.split(), env={"SAMEBITS_BACKEND": "abacus"},
                       says=["'abacus'", "reference"])


class Verify(cli_support.CliTest):
    def entries(self, *arguments, **more):
        entries = self.ok("verify", "--json", *arguments, **more).json()
        self.assertIsInstance(entries, list)
        for entry in entries:
            self.assertEqual(list(entry), ["backend", "what", "compared", "differed"])
            self.assertEqual(entry["differed"], 0)
        return entries

    def test_every_backend(self):
        """All that this machine runs but the reference; SAMEBITS_BACKEND has no say."""
        backends = self.ok_json("backends")["backends"]
        found = self.entries(env={"SAMEBITS_BACKEND": "reference"})
        skipped = {e["backend"]: e for e in found if e["compared"] == 0}
        for b in backends:
            own = [e for e in found if e["backend"] == b["name"]]
            if b["name"] == "reference":
                self.assertEqual(own, [])
            elif b["supported"]:
                self.assertGreater(len(own), 5)
                whats = [e["what"] for e in own]
                self.assertEqual(sum(w.startswith("self-test, ") for w in whats), 1)
                self.assertGreaterEqual(sum(w.startswith("quantize ") for w in whats), 5)
                self.assertEqual(sum(w.startswith("dequantize ") for w in whats), 1)
                self.assertNotIn(b["name"], skipped)
            else:
                self.assertEqual([e["what"] for e in own], ["skipped: " + b["why_unsupported"]])
        for e in found:
            if e["backend"].startswith("avx") and e["what"].startswith("fp32 to e4m3,"):
                self.assertGreater(e["compared"], 36 * 2**32 // 509)
            if e["backend"].startswith("avx") and e["what"].startswith("quantize fp32, fp16, bf16"):
                self.assertGreater(e["compared"], 10**6)
            if e["backend"].startswith("avx") and e["what"].startswith("bf16 to 13"):
                self.assertEqual(e["compared"], 65536 * 13 * 36)

    def test_refused(self):
        self.fails(4, "verify", "--backend", "abacus", says=["'abacus'", "reference"])
        self.fails(2, "verify", "--threads", "-1", says="--threads")
        self.fails(2, "verify", "--threads", "many", says="--threads")
        self.fails(2, "verify", "reference", says="reference")
        for b in self.ok_json("backends")["backends"]:
            if not b["supported"]:
                self.fails(4, "verify", "--backend", b["name"], says=b["why_unsupported"])


H200 = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "tensor_core",
                    "h200.txt")


class TensorCores(cli_support.CliTest):
    def test_recorded(self):
        lines = self.ok("verify", "--tensor-cores", "--results", H200).out.splitlines()
        self.assertEqual(lines[0].split(), ["compared", "differed", "unit", "evidence",
                                            "instruction"])
        self.assertEqual(len(lines), 1 + 36 + 2)
        for line in lines[1:37]:
            compared, differed, unit, evidence, instruction = line.split()
            self.assertEqual((compared, differed, evidence), ("80", "0", "hardware"))
            self.assertTrue(instruction.startswith("wgmma" if unit == "hopper-wgmma" else "mma_"))
        self.assertEqual(lines[-1], "tensor cores: 2880 results compared, 0 differ")

    def test_choice(self):
        arguments = ["verify", "--tensor-cores", "--results", H200]
        found = self.ok_json(*arguments, "--unit", "hopper-mma-sync")["instructions"]
        self.assertEqual(len(found), 24)
        found = self.ok_json(*arguments, "--instruction", "wgmma_bf16")["instructions"]
        self.assertEqual(found, [{"instruction": "wgmma_bf16", "unit": "hopper-wgmma",
                                  "evidence": "hardware", "confirmed": True, "compared": 80,
                                  "differed": 0, "first_difference": ""}])

    def test_another_unit(self):
        """Hopper's results under the name of a unit whose steps are shorter."""
        path = self.path("results.txt")
        with open(H200, encoding="utf-8") as file, open(path, "w", encoding="utf-8") as copy:
            copy.write("# of an H200\n\n")
            copy.writelines(line.replace("hopper-wgmma", "ampere-mma") for line in file
                            if line.startswith("hopper-wgmma bf16"))
        result = cli_support.run("verify", "--tensor-cores", "--results", path, "--json")
        self.assertEqual(result.code, 1)
        document = result.json()
        self.assertIsNone(document["gpu"])
        found, = document["instructions"]
        self.assertEqual((found["instruction"], found["unit"], found["evidence"]),
                         ("mma_bf16_k16", "ampere-mma", "published"))
        self.assertEqual(found["searched"], 80)
        self.assertEqual(found["row_explains"], 80 - found["differed"])
        self.assertGreater(found["settings_tried"], 900000)
        self.assertGreater(found["settings_exact"], 0)
        best, = found["settings"]
        self.assertEqual((best["explained"], best["group"], best["alignment_bits"], best["sum"]),
                         (80, 16, 25, "first_step"))
        text = cli_support.run("verify", "--tensor-cores", "--results", path)
        self.assertEqual((text.code, text.err),
                         (1, f"fpinspect: verify: {found['differed']} results differ\n"))
        self.assertIn(f"the row explains {found['row_explains']} of 80 results; ", text.out)
        self.assertIn("group 16, kept 25 toward_zero, bits 23 toward_zero, floor ", text.out)

    def test_another_unit_of_fp8(self):
        path = self.path("results.txt")
        with open(H200, encoding="utf-8") as file, open(path, "w", encoding="utf-8") as copy:
            copy.writelines(line.replace("hopper-wgmma", "blackwell-rtx-mma") for line in file
                            if line.startswith("hopper-wgmma e4m3 e4m3 fp32"))
        result = cli_support.run("verify", "--tensor-cores", "--results", path, "--json")
        found, = result.json()["instructions"]
        self.assertEqual((result.code, found["instruction"], found["confirmed"]), (1, "mma_e4m3_k32", False))
        best, = found["settings"]
        self.assertEqual((best["explained"], best["group"], best["alignment_bits"], best["fraction_bits"]),
                         (80, 32, 13, 13))

    def test_refused(self):
        arguments = ["verify", "--tensor-cores"]
        for name, text in ("none", None), ("broken", "hopper-wgmma fp16\n"), ("empty", ""):
            if text is not None:
                write_file(self.path(name), text)
        for code, options, says in [
                (3, ["--results", self.path("none")], "cannot be opened"),
                (3, ["--results", self.path("broken")], "line 1"),
                (2, ["--results", self.path("empty")], "--results"),
                (2, ["--unit", "tpu"], ['"tpu"', "hopper-wgmma"]),
                (2, ["--instruction", "mma"], ['"mma"', "wgmma_e4m3"]),
                (2, ["--cases", "0"], "--cases"), (2, ["--seed", "x"], "--seed"),
                (2, ["--backend", "avx2"], "--backend"), (2, ["--exhaustive"], "--exhaustive"),
                (2, ["--results", H200, "--record", "x"], "--record")]:
            self.fails(code, *arguments, *options, says=says)
        self.fails(2, "verify", "--unit", "hopper-wgmma", says="--tensor-cores")

    def test_no_gpu(self):
        """Hidden GPUs are as good as none."""
        self.fails(4, "verify", "--tensor-cores", env={"CUDA_VISIBLE_DEVICES": ""},
                   says="tensor cores cannot be asked: ")


class OtherChecks(cli_support.CliTest):
    """The other checks of a GPU, and the options that each refuses besides those of all."""
    CHECKS = {"--function-units": [], "--exact-functions": ["--function-units"],
              "--card": ["--function-units", "--exact-functions", "--json"]}

    def test_refused(self):
        for check, more in self.CHECKS.items():
            for option in ["--backend=avx2", "--exhaustive", "--threads=2", "--tensor-cores", *more]:
                self.fails(2, "verify", check, option, says=option.split("=")[0])
        self.fails(2, "verify", "--function-units", "--unit", "hopper-wgmma", says="--tensor-cores")

    def test_no_gpu(self):
        for check in self.CHECKS:
            self.fails(4, "verify", check, env={"CUDA_VISIBLE_DEVICES": ""},
                       says="the GPU cannot be asked: ")


@unittest.skipUnless(PLANTED, "needs FPINSPECT_PLANTED")
class Planted(cli_support.CliTest):
    def setUp(self):
        super().setUp()
        usual, cli_support.FPINSPECT = cli_support.FPINSPECT, PLANTED
        self.addCleanup(setattr, cli_support, "FPINSPECT", usual)

    def check(self, *arguments):
        result = cli_support.run("verify", "--backend", "planted", *arguments)
        self.assertEqual(result.code, 1)
        self.assertRegex(result.err, r"\Afpinspect: verify: [1-9]\d* results? differs?\n\Z")
        return result

    def test_text(self):
        out = self.check("--color", "never", "--threads", "1").out
        self.assertIn("fp32 to e4m3, every threshold and every 509th code, 1 rule", out)
        self.assertIn("fp32 0x43e80000 to e4m3 0x7f, expected 0x7e; nearest_even ieee canonical",
                      out)
        self.assertRegex(out, r"\nplanted: \d+ results compared, [1-9]\d* differs?\n\Z")

    def test_json(self):
        found = {e["what"]: e["differed"] for e in self.check("--json").json()}
        self.assertGreater(found["fp32 to e4m3, every threshold and every 509th code, 1 rule"], 0)

    def test_tensor_cores(self):
        """An instruction that is not its row: the message, the settings, and what is recorded."""
        recording = self.path("recording.txt")
        arguments = ["verify", "--tensor-cores", "--cases", "64", "--color", "never"]
        result = cli_support.run(*arguments, "--instruction", "mma_f16_k16", "--record", recording)
        self.assertEqual(result.code, 1)
        self.assertRegex(result.err, r"\Afpinspect: verify: [1-9]\d* results differ\n\Z")
        lines = result.out.splitlines()
        self.assertEqual(lines[0], "a planted GPU, compute capability 9.0")
        self.assertRegex(lines[2], r"^ +40960 +[1-9]\d*  hopper-mma-sync +hardware +mma_f16_k16$")
        self.assertRegex(lines[3], r"^ {24}[a-z_]+: got [0-9A-F]+, expected [0-9A-F]+: hopper-mma")
        self.assertRegex(lines[4], r"the row explains \d+ of \d+ results; 13 of 982800 settings ")
        self.assertEqual(lines[5].strip(), "group 8, kept 24 toward_zero, bits 23 toward_zero, "
                         "floor -133, sum in the first step, consecutive")
        self.assertEqual(lines[6].strip(), "left open: floor none, -137 to -126")
        lines = read_text(recording).splitlines()
        self.assertRegex(lines[0], r"^# fpinspect \S+ verify --tensor-cores --cases 64 --seed 0$")
        self.assertEqual(lines[1], "# a planted GPU, compute capability 9.0")
        self.assertEqual(len(lines), 2 + 4 * 20)
        again = cli_support.run("verify", "--tensor-cores", "--results", recording, "--json")
        self.assertEqual(again.code, 1)
        self.assertEqual(again.json()["instructions"][0]["compared"], 80)
        found = self.ok_json(*arguments, "--seed", "9", "--unit", "hopper-wgmma", "--instruction",
                             "wgmma_tf32")
        self.assertEqual((found["gpu"], found["compute_capability"]), ("a planted GPU", "9.0"))
        self.assertEqual(found["instructions"][0]["differed"], 0)
        self.fails(4, *arguments, "--unit", "ada-mma", says="nothing to check")

    def test_function_units(self):
        arguments = ["verify", "--function-units"]
        result = cli_support.run(*arguments, "--color", "never")
        self.assertEqual((result.code, result.err),
                         (1, "fpinspect: verify: 3 results differ\n"))
        lines = result.out.splitlines()
        self.assertEqual(lines[0], "a planted GPU")
        self.assertEqual(lines[1].split(), ["compared", "differed", "instruction"])
        self.assertEqual(lines[2].split(), ["4294967296", "0", "ex2.approx.ftz.f32"])
        self.assertEqual(lines[7].split(), ["4294967296", "3", "rcp.approx.f32"])
        self.assertEqual(lines[8].strip(), "3F800001: GPU 3F7FFFFD, model 3F7FFFFE")
        self.assertEqual(lines[-1], "function units: 64424640512 results compared, 3 differ")
        self.assertEqual(len(lines), 2 + 17 + 1 + 2)
        result = cli_support.run(*arguments, "--json")
        self.assertEqual(result.code, 1)
        document = result.json()
        self.assertEqual((document["schema"], document["gpu"]), (1, "a planted GPU"))
        self.assertEqual(len(document["instructions"]), 17)
        self.assertEqual(document["instructions"][5], {
            "instruction": "rcp.approx.f32", "compared": 2**32, "differed": 3,
            "first_difference": "3F800001: GPU 3F7FFFFD, model 3F7FFFFE"})

    def test_exact_functions(self):
        result = cli_support.run("verify", "--exact-functions", "--color", "never")
        self.assertEqual((result.code, result.err), (1, "fpinspect: verify: 1 sum differs\n"))
        lines = result.out.splitlines()
        self.assertEqual(lines[0], "a planted GPU")
        self.assertEqual(lines[1].split(), ["operands", "sum", "function"])
        self.assertEqual(lines[2].split(), ["4294967296", "73AB759CD0ED008F", "exp"])
        self.assertEqual(lines[5].split(), ["4294967296", "2EA226BE772E2A54", "log"])
        self.assertEqual(lines[6].strip(), "2EA226BE772E2A52 was expected")
        self.assertEqual(lines[-1],
                         "exact functions: 77309411328 results compared, 1 sum differs")
        self.assertEqual(len(lines), 2 + 18 + 1 + 2)
        result = cli_support.run("verify", "--exact-functions", "--json")
        self.assertEqual(result.code, 1)
        document = result.json()
        self.assertEqual((document["schema"], document["gpu"]), (1, "a planted GPU"))
        self.assertEqual(len(document["functions"]), 18)
        self.assertEqual(document["functions"][3], {
            "function": "log", "operands": 2**32, "sum": "2EA226BE772E2A54",
            "expected": "2EA226BE772E2A52"})

    def test_unsupported(self):
        self.fails(4, "verify", "--backend", "absent", says="there is no such machine")
        self.assertIn("no such machine", self.ok("backends").out)
