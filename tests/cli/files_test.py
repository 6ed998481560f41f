# Files that fpinspect reads besides .npy and .safetensors: .npz and GGUF, written here.
import os
import struct
import zipfile

import cli_support
from cli_support import SAMPLE, floats, read_file, read_npy, write_file, write_npy, write_safetensors

F32, F16, Q4_0, Q8_0, Q4_K, I32, BF16 = 0, 1, 2, 8, 12, 26, 30


def write_npz(path, members, method):
    """members: (name, bytes)"""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def write_gguf(path, tensors, pairs=b"", pair_count=0, version=3):
    """tensors: (name, type, shape with the slowest dimension first, raw bytes)"""
    infos, data = b"", b""
    for name, kind, shape, raw in tensors:
        infos += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", len(shape))
        infos += b"".join(struct.pack("<Q", extent) for extent in reversed(shape))
        infos += struct.pack("<IQ", kind, len(data))
        data += raw + bytes(-len(raw) % 32)
    start = b"GGUF" + struct.pack("<IQQ", version, len(tensors), pair_count) + pairs + infos
    write_file(path, start + bytes(-len(start) % 32) + data)
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

    def without_names(self, document):
        for tensor in document["tensors"]:
            del tensor["name"]
        return document["tensors"]

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

    def test_fortran_order_in_npz(self):
        path = write_npz(self.path("a.npz"), [
            ("f.npy", self.npy("<f4", (2, 3), floats(1, 4, 2, 5, 3, 6), fortran=True))],
            zipfile.ZIP_STORED)
        self.assertEqual(self.convert(path, "--to", "fp32"),
                         ("<f4", (2, 3), floats(1, 2, 3, 4, 5, 6)))

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
        raw = floats(*[i / 7 - 3 for i in range(64)])
        half = struct.pack("<4e", 1, 2, 3, 0.1)
        bf16 = b"".join(floats(x)[2:] for x in (1, 2.5, -3, 8))
        pairs = struct.pack("<Q", 3) + b"k.n" + struct.pack("<IQ", 8, 5) + b"value"
        for version in 2, 3:
            path = write_gguf(self.path("m.gguf"), [
                ("blk.0.attn_q.weight", F32, (4, 16), raw), ("blk.0.ffn.weight", Q4_K, (2, 256), bytes(288)),
                ("blk.0.norm", F16, (4,), half), ("output.weight", BF16, (2, 2), bf16),
                ("ids", I32, (2,), struct.pack("<2i", -1, 7))], pairs, 1, version)
            same = write_safetensors(self.path("same.safetensors"), [
                ("a", "F32", (4, 16), raw), ("c", "F16", (4,), half), ("d", "BF16", (2, 2), bf16),
                ("e", "I32", (2,), struct.pack("<2i", -1, 7))])
            document = self.ok_json("tensor", path)
            self.assertEqual([t["name"] for t in document["tensors"]], [
                "blk.0.attn_q.weight", "blk.0.ffn.weight", "blk.0.norm", "output.weight", "ids"])
            quantized = document["tensors"].pop(1)
            self.assertEqual(
                (quantized["dtype"], quantized["shape"], quantized["count"], quantized["note"]),
                (None, [2, 256], 512, "elements are quantized in blocks of Q4_K"))
            self.assertEqual(self.without_names(document),
                             self.without_names(self.ok_json("tensor", same)))
        self.assertIn("besides: 1 not read\n", self.ok("tensor", path).out)
        self.assertIn("  weights      blk.0.ffn.weight: elements are quantized in blocks of Q4_K\n",
                      self.ok("tensor", path, "--list").out)
        self.assertIn("\nblk.0.ffn.weight  not read [2, 256]\n",
                      "\n" + self.ok("tensor", path, "--recipes").out)
        self.assertEqual(self.convert(path + "#output.weight", "--to", "fp32"),
                         ("<f4", (2, 2), floats(1, 2.5, -3, 8)))
        self.fails(3, "convert", path + "#blk.0.ffn.weight", self.path("o.npy"), "--to", "fp32",
                   says="blk.0.ffn.weight: elements are quantized in blocks of Q4_K")

    def test_blocks_of_gguf(self):
        """Elements of Q8_0 and Q4_0 are those of the products in fp32."""
        q8 = [(7 * i) % 256 - 128 for i in range(64)]
        nibbles = [(5 * i) % 16 for i in range(32)]
        path = write_gguf(self.path("m.gguf"), [
            ("a.weight", Q8_0, (2, 32), b"".join(struct.pack("<e32b", scale, *q8[at:at + 32])
                                                 for at, scale in ((0, 0.5), (32, -3)))),
            ("b.weight", Q4_0, (32,), struct.pack("<e", 0.1) +
             bytes(nibbles[i] | nibbles[16 + i] << 4 for i in range(16)))])
        tenth, = struct.unpack("<e", struct.pack("<e", 0.1))
        first = floats(*[0.5 * q for q in q8[:32]], *[-3.0 * q for q in q8[32:]])
        second = floats(*[tenth * (n - 8) for n in nibbles])
        same = write_safetensors(self.path("same.safetensors"), [
            ("a.weight", "F32", (2, 32), first), ("b.weight", "F32", (32,), second)])
        self.assertEqual(self.ok_json("tensor", path), self.ok_json("tensor", same))
        self.assertEqual(self.convert(path + "#a.weight", "--to", "fp32"), ("<f4", (2, 32), first))
        self.assertEqual(self.convert(path + "#b.weight", "--to", "fp32"), ("<f4", (32,), second))

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

    def test_only_blocks(self):
        path = write_gguf(self.path("m.gguf"), [("w", Q4_K, (1, 256), bytes(144))])
        self.assertIn("other           1  not judged\n          besides: 1 not read\n",
                      self.ok("tensor", path).out)
        self.fails(2, "tensor", path, "--from", "e4m3", "--tensor", "w", "--tensor", "w",
                   says="--from: none of the tensors holds integers")
