# `fpinspect trace`: recordings as samebits.torch.record writes them, and files that are none.
import json

import cli_support
from cli_support import floats, write_safetensors

TRACE = {
    "version": 2,
    "machine": {"torch": "2.11.0", "multiprocessors": 132, "tf32": False},
    "blocks": [{"bytes": 1024, "source": "fc.weight", "hash": "0"}, {"bytes": 16},
               {"bytes": 3, "source": "x", "hash": "1"}],
    "operators": [
        {"op": "aten.mm.default", "args": [], "kwargs": {}, "module": "Net.fc",
         "kernels": [{"name": "gemm<\u001b>", "grid": [1, 2, 3], "block": [128, 1, 1]}],
         "wrote": [[[1, 0, [2, 3], [3, 1], "bfloat16"], "00000000000000ab"]]},
        {"op": "aten._local_scalar_dense.default", "args": [], "kwargs": {}, "wrote": []},
        {"op": "aten.frexp.Tensor", "args": [], "kwargs": {}, "module": "Net backward", "deterministic": True,
         "wrote": [[[1, 0, [], [], "float32"], "01"], [[2, 0, [7], [1], "int32"], "02"]]}]}


class Trace(cli_support.CliTest):
    def recording(self, trace):
        text = trace if isinstance(trace, str) else json.dumps(trace)
        return write_safetensors(self.path("step.sbt"), [("block.0", "F32", [1], floats(1))],
                                 {"samebits_trace": text})

    def test_text(self):
        lines = self.ok("trace", self.recording(TRACE)).out.splitlines()
        self.assertTrue(lines[0].endswith("step.sbt: 3 operators, 2 sources of 1.0 kB"), lines[0])
        self.assertEqual(lines[1], "multiprocessors 132, tf32 false, torch 2.11.0")
        self.assertEqual([line.split() for line in lines[3:]], [
            ["#", "operator", "module", "results"],
            ["0", "aten.mm.default", "Net.fc", "bfloat16", "[2,", "3]", "00000000000000ab"],
            ["1", "aten._local_scalar_dense.default"],
            ["2", "aten.frexp.Tensor", "Net", "backward", "float32", "[],", "int32", "[7]", "01", "02"]])

    def test_texts_of_a_file_are_escaped(self):
        hostile = json.loads(json.dumps(TRACE).replace("aten.mm.default", "\\u001b[2J"))
        result = self.ok("trace", self.recording(hostile))
        self.assertNotIn("\x1b", result.out)
        self.assertIn("[2J", result.out)

    def test_json(self):
        document = self.ok_json("trace", self.recording(TRACE))
        self.assertEqual(document["machine"], {"multiprocessors": "132", "tf32": "false", "torch": "2.11.0"})
        self.assertEqual((document["sources"], document["source_bytes"]), (2, 1027))
        self.assertEqual(document["operators"][0],
                         {"number": 0, "operator": "aten.mm.default", "module": "Net.fc",
                          "results": "bfloat16 [2, 3]", "hashes": "00000000000000ab",
                          "kernels": "gemm<\u001b> [1,2,3] x [128,1,1]"})

    def test_kernels(self):
        out = self.ok("trace", "--kernels", self.recording(TRACE)).out
        self.assertRegex(out, r"aten\.mm\.default +Net\.fc +gemm<.*> \[1,2,3\] x \[128,1,1\]\n")
        self.assertNotIn("\x1b", out)
        self.assertNotIn("00000000000000ab", out)

    def test_other_files(self):
        self.fails(3, "trace", cli_support.SAMPLE, says="no recording: its metadata has no samebits_trace")
        broken = ["", "{", "[]", json.dumps({**TRACE, "version": 1})]
        for key in TRACE:
            broken += [json.dumps({k: v for k, v in TRACE.items() if k != key}),
                       json.dumps({**TRACE, key: [[1]]})]
        broken.append(json.dumps({**TRACE, "machine": {"torch": [1]}}))
        broken.append(json.dumps({**TRACE, "machine": 0}).replace('"machine": 0', '"machine": ' + "[" * 10**5))
        for deep in ("@", '[{"name": "", "grid": @, "block": []}]'):
            broken.append(json.dumps({**TRACE, "operators": [{"op": "x", "kernels": "@", "wrote": []}]}).replace(
                '"@"', deep.replace("@", "[" * 10**5 + "]" * 10**5)))
        for text in broken:
            self.fails(3, "trace", self.recording(text),
                       says="step.sbt: samebits_trace is no recording of version 2")
        self.fails(3, "trace", self.path("missing"), says="missing")
