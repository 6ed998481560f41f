# `fpinspect backends` and `fpinspect verify`: their shape, what they find, and exit codes.
import os
import platform
import unittest

import cli_support

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

    def test_unsupported(self):
        self.fails(4, "verify", "--backend", "absent", says="there is no such machine")
        self.assertIn("no such machine", self.ok("backends").out)


if __name__ == "__main__":
    cli_support.main()
