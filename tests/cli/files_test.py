# Files that fpinspect reads besides .npy and .safetensors: .npz, GGUF and standard input.
import os
import struct
import zipfile

import cli_support
from cli_support import SAMPLE, floats, read_file, read_npy, write_npy, write_safetensors

GGUF = os.path.join(os.path.dirname(SAMPLE), "..", "fuzz", "corpus", "gguf")


def write_npz(path, members, method):
    """members: (name, bytes)"""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


class Files(cli_support.CliTest):
    def npy(self, *array, **more):
        return read_file(write_npy(self.path("member.npy"), *array, **more))

    def sample(self):
        return read_file(SAMPLE)

    def reads_deflated(self):
        path = write_npz(self.path("try.npz"), [("a.npy", self.npy("<f4", (1,), floats(1)))],
                         zipfile.ZIP_DEFLATED)
        return self.ok_json("tensor", path)["tensors"][0]["dtype"] == "F32"

    def test_npz(self):
        """Stored and deflated archives say what the same tensors in .safetensors say."""
        values = [(-1) ** i * 2.0 ** (i % 40 - 20) * (1 + i / 4096) for i in range(4096)]
        raw = floats(*values)
        same = write_safetensors(self.path("same.safetensors"), [
            ("grad.w", "F32", (64, 64), raw), ("bias", "F16", (2,), struct.pack("<2e", 1, 0.1))])
        members = [("grad.w.npy", self.npy("<f4", (64, 64), raw)),
                   ("bias.npy", self.npy(">f2", (2,), struct.pack(">2e", 1, 0.1)))]
        expected = self.ok_json("tensor", same)
        for method in zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED:
            if method == zipfile.ZIP_DEFLATED and not self.reads_deflated():
                continue
            path = write_npz(self.path("a.npz"), members, method)
            self.assertEqual(self.ok_json("tensor", path), expected)
            # The same lines but for the name of the file.
            self.assertEqual(self.ok("tensor", path, "--list").out.splitlines()[1:],
                             self.ok("tensor", same, "--list").out.splitlines()[1:])
            self.assertEqual(self.convert(path + "#grad.w", "--to", "fp32"), ("<f4", (64, 64), raw))
            self.fails(3, "convert", path + "#none", self.path("o.npy"), "--to", "fp32",
                       says='it has 2: "grad.w", "bias"')

    def test_members_that_are_not_read(self):
        good = self.npy("<f4", (2, 2), floats(1, 2, 3, 4))
        path = write_npz(self.path("a.npz"), [
            ("w.weight.npy", good), ("o.npy", self.npy("|O", (1,), b"x")), ("readme.txt", b"hello")],
            zipfile.ZIP_STORED)
        tensors = {t["name"]: t for t in self.ok_json("tensor", path)["tensors"]}
        self.assertEqual(list(tensors), ["w.weight", "o", "readme.txt"])
        self.assertEqual(tensors["w.weight"]["dtype"], "F32")
        self.assertEqual((tensors["o"]["dtype"], tensors["o"]["amax"]), (None, None))
        self.assertIn("Python objects are pickled", tensors["o"]["note"])
        self.assertIn("other           2  not judged\n          besides: 2 not read\n",
                      self.ok("tensor", path).out)
        listed = self.ok("tensor", path, "--list").out
        self.assertIn("     not read         -  other        readme.txt: not a .npy file\n", listed)
        self.assertIn("  not a .npy file\n", self.ok("tensor", path + "#readme.txt").out)
        self.fails(3, "convert", path + "#o", self.path("o.npy"), "--to", "fp32",
                   says=[path + "#o", "Python objects"])

    def test_damaged_npz(self):
        raw = floats(*range(4096))
        path = write_npz(self.path("a.npz"), [("a.npy", self.npy("<f4", (4096,), raw))],
                         zipfile.ZIP_DEFLATED)
        if self.reads_deflated():
            with open(path, "r+b") as file:
                file.seek(1000)
                byte = file.read(1)[0]
                file.seek(1000)
                file.write(bytes([byte ^ 0x55]))
            self.fails(3, "tensor", path, says=[path, 'member "a.npy": deflated data'])
        os.truncate(path, os.path.getsize(path) - 1)
        self.fails(3, "tensor", path, says=[path, "does not end with the directory"])

    def test_stored_npz_with_a_wrong_byte(self):
        """Both tensors have numbers for elements, so that only the CRC-32 tells."""
        good, bad = (self.npy("<f4", (256, 16), floats(*range(4096))) for _ in range(2))
        path = write_npz(self.path("a.npz"), [("good.npy", good), ("bad.npy", bad)], zipfile.ZIP_STORED)
        self.ok("tensor", path, "--fail-if", "nan>0")
        with open(path, "r+b") as file:
            at = file.read().rindex(floats(1000))
            file.seek(at)
            file.write(floats(1001))
        says = [path, 'member "bad.npy": data does not have the CRC-32 of its directory']
        for more in [], ["--quick"], ["--stats"], ["--recipes"], ["--list"], ["--fail-if", "nan>0"]:
            self.fails(3, "tensor", path, *more, says=says)
        self.fails(3, "convert", path + "#bad", self.path("o.npy"), "--to", "fp32", says=says)
        self.fails(3, "compare", path, path, says=says)
        self.assertEqual(self.convert(path + "#good", "--to", "fp32"),
                         ("<f4", (256, 16), floats(*range(4096))))

    def test_gguf(self):
        """Tensors say what the same elements in .safetensors say, those of blocks too."""
        for name, dtype, shape in [("type_0", "F32", (2, 4)), ("type_30", "BF16", (2, 4)),
                                   ("type_8", "F32", (2, 64)), ("type_2", "F32", (2, 64))]:
            path = os.path.join(GGUF, name)
            if shape == (2, 4):
                raw = read_file(path)[-32 if dtype == "F32" else -16:]
            else:  # blocks: unit.gguf has their elements
                raw = self.convert(path, "--to", "fp32")[2]
            same = write_safetensors(self.path("same.safetensors"), [("t", dtype, shape, raw)])
            self.assertEqual(self.ok_json("tensor", path)["tensors"], self.ok_json("tensor", same)["tensors"])
            self.assertEqual(self.convert(path, "--to", "fp32"), self.convert(same, "--to", "fp32"))

    def test_blocks_that_are_not_read(self):
        path, why = os.path.join(GGUF, "type_12"), "t: elements are quantized in blocks of Q4_K"
        (tensor,) = self.ok_json("tensor", path)["tensors"]
        self.assertEqual((tensor["dtype"], tensor["shape"], tensor["count"], tensor["note"]),
                         (None, [2, 4], 8, why[3:]))
        self.assertIn("other           1  not judged\n          besides: 1 not read\n",
                      self.ok("tensor", path).out)
        self.assertIn(f"  other        {why}\n", self.ok("tensor", path, "--list").out)
        self.assertIn("t  not read [2, 4]\n", self.ok("tensor", path, "--recipes").out)
        self.fails(3, "convert", path, self.path("o.npy"), "--to", "fp32", says=why[3:])
        self.fails(2, "tensor", path, path, "--from", "e4m3", says="--from: none of the tensors holds integers")

    def test_standard_input(self):
        """From a file and through a pipe, the same as the file by its name."""
        content = self.sample()
        named = self.ok_json("tensor", SAMPLE)
        self.assertEqual(self.ok_json("tensor", "-", input=content), named)
        with open(SAMPLE, "rb") as file:
            self.assertEqual(self.ok_json("tensor", "-", stdin=file), named)
        self.assertTrue(self.ok("tensor", "-", input=content).out.startswith(
            "standard input: 10 tensors, 123904 values\n"))
        for name in "-#weight.fc1", "-":
            arguments = [] if "#" in name else ["--tensor", "weight.fc1"]
            out = self.ok("tensor", name, *arguments, "--stats", input=content).out
            self.assertEqual(out, self.ok("tensor", SAMPLE + "#weight.fc1", "--stats").out)
        target = self.path("o.npy")
        done = cli_support.run("convert", "-#weight.fc1", target, "--to", "fp32", input=content)
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(read_npy(target), self.convert(SAMPLE + "#weight.fc1", "--to", "fp32"))
        npy = self.npy("<f4", (2, 2), floats(1, -2, 3, 4))
        self.assertEqual(self.ok("tensor", "-", "--stats", input=npy).out.splitlines()[0],
                         "standard input  fp32 [2, 2]  4 elements")
        self.ok("arith", "add", "-", "1", "--format", "fp32", "--out", target, "--json", input=npy)
        self.assertEqual(read_npy(target)[2], floats(2, -1, 4, 5))

    def test_standard_input_that_is_refused(self):
        self.fails(3, "tensor", "-", input=b"", says="standard input: the file is empty")
        self.fails(3, "tensor", "-", input=b"\x93NUMPY", says="standard input: byte 6")
        self.fails(3, "tensor", "-#none", input=self.sample(),
                   says='standard input: no tensor "none"; it has 10')
        self.fails(2, "arith", "add", "-", "-", "--format", "fp32", input=self.npy(
            "<f4", (1,), floats(1)), says="standard input can be read only once")
        folder = os.open(self.folder, os.O_RDONLY)
        self.fails(3, "tensor", "-", stdin=folder, says="standard input: is a directory")
        os.close(folder)
        terminal, other = os.openpty()
        self.fails(2, "tensor", "-", stdin=other, says="standard input is a terminal")
        os.close(terminal)
        os.close(other)
