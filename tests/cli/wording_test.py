# What fpinspect says in rare cases: one of something, files of one name, numbers beyond binary64.
import os
import struct

import cli_support
from cli_support import SAMPLE, floats, run, write_file, write_npy, write_safetensors


def quantized_with_tile(path, tile):
    """A file like those of `quantize`, whose metadata name this tile."""
    header = ('{"__metadata__":{"samebits.block":"' + tile + '"},'
              '"scales":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},'
              '"codes":{"dtype":"F8_E4M3","shape":[1,1],"data_offsets":[4,5]}}').encode()
    write_file(path, struct.pack("<Q", len(header)) + header + floats(1) + b"\x38")
    return path


class Wording(cli_support.CliTest):
    def test_one_element_and_one_point(self):
        path = write_npy(self.path("x.npy"), "<f4", (1,), floats(1.5))
        self.assertIn("[1]  1 element\n", self.ok("tensor", path).out)
        self.assertIn("[1]  1 element\n", self.ok("tensor", path, "--stats").out)
        self.assertIn(": 1 element [1], fp32",
                      run("convert", path, self.path("y.npy"), "--to", "fp16").err)
        self.assertIn("1 element   zeros 0",
                      self.ok("quantize", path, self.path("q.safetensors"), "--to", "e4m3").out)
        done = run("arith", "add", path, "1", "--format", "fp16", "--out", self.path("s.npy"))
        self.assertIn(": 1 element [1]", done.err)
        self.assertIn("1 point spread evenly over it becomes 1 value; error 0 ",
                      self.ok("resolution", "e4m3", "--points", "1").out)

    def test_a_number_below_binary64_has_no_error(self):
        (result,) = self.ok_json("show", "fp16", "1e-400", "--rounding", "nearest_even")["results"]
        self.assertEqual((result["error"], result["outcome"]), (None, "underflow"))
        self.assertIn("underflow", self.ok("show", "fp16,bf16", "1e-400").out)
        (result,) = self.ok_json("show", "fp16", "0", "--rounding", "nearest_even")["results"]
        self.assertEqual(result["error"], 0)

    def test_gradients_that_bf16_does_not_hold(self):
        for values, holds in ([1e-2, 1e-9], True), ([1e-2, 1e-45], False), ([1e-9, 1e39], False):
            path = write_safetensors(self.path("g.safetensors"), [
                ("grad.w", "F64", (2,), struct.pack("<2d", *values))])
            out = self.ok("tensor", path).out
            self.assertEqual("(bf16 gradients need none)" in out, holds, values)
            page = self.ok("report", path, "-o", "-").out
            self.assertEqual("(bf16 gradients need none)" in page, holds, values)

    def test_files_of_one_name(self):
        paths = []
        for folder in "a", "b":
            os.makedirs(self.path(f"run/{folder}/weights"))
            paths.append(self.path(f"run/{folder}/weights/model.safetensors"))
            write_safetensors(paths[-1], [("w", "F32", (2,), floats(1, 2))])
        names = ["a/weights/model.safetensors#w", "b/weights/model.safetensors#w"]
        document = self.ok_json("tensor", *paths)
        self.assertEqual([t["name"] for t in document["verdict"]["tensors"]], names)
        page = self.ok("report", *paths, "-o", "-").out
        for name in names:
            self.assertIn(name, page)
        self.assertNotIn(self.folder, page)
        other = write_npy(self.path("x.npy"), "<f4", (1,), floats(1))
        self.assertIn(">model.safetensors#w<", self.ok("report", paths[0], other, "-o", "-").out)

    def test_a_file_with_a_malformed_tile(self):
        path = quantized_with_tile(self.path("bad.safetensors"), "1x1o")
        good = quantized_with_tile(self.path("good.safetensors"), "1x128")
        self.ok("compare", good, good)
        for arguments in (["compare", path, good], ["compare", good, path], ["diff", path, good],
                          ["dequantize", path, self.path("x.npy")]):
            self.fails(3, *arguments, says=["bad.safetensors: samebits.block", "1x1o"])

    def test_matrices_without_elements_of_any_size(self):
        path = write_safetensors(self.path("e.safetensors"), [("x", "F32", (0, 2**63), b"")])
        for arguments in (["quantize", path, self.path("q.safetensors"), "--to", "e4m3"],
                          ["tensor", path, "--recipes"]):
            self.fails(3, *arguments, says=["e.safetensors: ", '"x"', "2^63"])
        for options in [], ["--stats"], ["--quick"]:
            self.ok("tensor", path, *options)

    def test_help_names_every_kind_of_file(self):
        for command in "tensor", "report", "compare", "convert", "quantize", "arith", "matmul", "diff":
            text = " ".join(run(command, "--help").out.split())
            for kind in ".npy", ".npz", ".safetensors", ".gguf", ".pt", "FILE#TENSOR", "or -":
                self.assertIn(kind, text, command)

    def test_the_last_line_of_tensor_names_the_report(self):
        self.assertIn("fpinspect report", self.ok("tensor", SAMPLE).out.splitlines()[-1])
