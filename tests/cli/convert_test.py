# `fpinspect convert`: codes, values, files, random indices.
import math
import os
import pty
import struct
import subprocess

import cli_support
from cli_support import floats, hexadecimal, read_file, read_npy, write_file, write_npy, write_safetensors

INF, NAN = math.inf, math.nan

# Contract, sections 3 and 4: ties 1.0625 and 464, half of the least subnormal 2^-9, specials.
INPUTS = floats(1.0625, -1.0625, 464.0, -465.0, INF, NAN, 2.0**-10, 0.0, -0.0, -1e-30)
TO_E4M3 = {
    "nearest_even":  "38 b8 7e 7f 7f 7f 00 00 80 80",
    "nearest_away":  "39 b9 7f 7f 7f 7f 01 00 80 80",
    "toward_zero":   "38 b8 7e fe 7f 7f 00 00 80 80",
    "upward":        "39 b8 7f fe 7f 7f 01 00 80 80",
    "downward":      "38 b9 7e 7f 7f 7f 00 00 80 81",
    "to_odd":        "39 b9 7e fe 7f 7f 01 00 80 81",
}
POLICIES = {
    "ieee":            "38 b8 7e 7f 7f 7f 00 00 80 80",
    "saturate":        "38 b8 7e fe 7e 7f 00 00 80 80",
    "saturate_finite": "38 b8 7e fe 7f 7f 00 00 80 80",
}


class Convert(cli_support.CliTest):
    def source(self, data=INPUTS, descr="<f4", shape=None):
        size = int(descr[-1])
        return write_npy(self.path("in.npy"), descr,
                         (len(data) // size,) if shape is None else shape, data)

    def test_rounding_modes(self):
        for mode, codes in TO_E4M3.items():
            result = self.convert(self.source(), "--to", "e4m3", "--rounding", mode)
            self.assertEqual(result, ("|u1", (10,), bytes.fromhex(codes)), mode)

    def test_overflow_policies(self):
        for policy, codes in POLICIES.items():
            *_, data = self.convert(self.source(), "--to", "e4m3", "--overflow", policy)
            self.assertEqual(data.hex(" "), codes, policy)

    def test_nan_policies(self):
        source = self.source(struct.pack("<3I", 0xFFC00001, 0x7F800001, 0x7FFFFFFF))
        for policy, codes in [("canonical", ["7fff"] * 3),
                              ("preserve_sign", ["ffff", "7fff", "7fff"])]:
            descr, _, data = self.convert(source, "--to", "bf16", "--nan", policy)
            self.assertEqual((descr, hexadecimal(data, 2)), ("<u2", codes))
            descr, _, data = self.convert(source, "--to", "bf16", "--nan", policy, "--decode")
            self.assertEqual((descr, hexadecimal(data, 4)), ("<f4", [c + "ffff" for c in codes]))

    def test_every_format(self):
        source = self.source(floats(1.0, -3.0))
        for name, descr, codes in [
                ("fp32", "<f4", ["3f800000", "c0400000"]),
                ("tf32", "<f4", ["3f800000", "c0400000"]),
                ("fp16", "<f2", ["3c00", "c200"]), ("bf16", "<u2", ["3f80", "c040"]),
                ("e4m3", "|u1", ["38", "c4"]), ("e5m2", "|u1", ["3c", "c2"]),
                ("e3m2", "|u1", ["0c", "32"]), ("e2m3", "|u1", ["08", "34"]),
                ("e2m1", "|u1", ["02", "0d"]), ("e4m3fnuz", "|u1", ["40", "cc"]),
                ("e5m2fnuz", "|u1", ["40", "c6"]), ("e8m0", "|u1", ["7f", "81"])]:
            got = self.convert(source, "--to", name)
            self.assertEqual((got[0], got[1], hexadecimal(got[2], int(descr[-1]))),
                             (descr, (2,), codes), name)
            values = self.convert(source, "--to", name, "--decode")
            self.assertEqual(values, ("<f4", (2,), floats(1.0, 4.0 if name == "e8m0" else -3.0)))

    def test_sources(self):
        for descr, data, options in [
                ("<f2", struct.pack("<2e", 1.5, -2), []), (">f2", struct.pack(">2e", 1.5, -2), []),
                ("<f4", floats(1.5, -2), []), (">f4", struct.pack(">2f", 1.5, -2), []),
                ("<f8", struct.pack("<2d", 1.5, -2), []), ("<f2", struct.pack("<2e", 1.5, -2),
                                                          ["--from", "fp16"]),
                ("|u1", bytes([0x3c, 0xc0]), ["--from", "e4m3"]),
                ("|u1", bytes([0xf3, 0xfc]), ["--from", "e2m1"]),  # high bits are ignored
                ("<u2", struct.pack("<2H", 0x3fc0, 0xc000), ["--from", "bf16"]),
                (">u2", struct.pack(">2H", 0x3e00, 0xc000), ["--from", "fp16"]),
                ("<u4", struct.pack("<2I", 0x3fc01fff, 0xc0000000), ["--from", "tf32"])]:
            source = self.source(data, descr)
            self.assertEqual(self.convert(source, "--to", "e5m2", *options),
                             ("|u1", (2,), bytes([0x3e, 0xc0])), descr)

    def test_binary64_is_rounded_once(self):
        source = self.source(struct.pack("<d", 1 + 2.0**-11 + 2.0**-40),
                             "<f8")  # above a tie of fp16
        *_, data = self.convert(source, "--to", "fp16")
        self.assertEqual(hexadecimal(data, 2), ["3c01"])

    def test_shapes(self):
        values = struct.pack("<6f", *range(6))
        for shape in [(), (0,), (6,), (2, 3), (1, 2, 3), (3, 0, 2), (1,) * 64]:
            count = math.prod(shape)
            source = self.source(values[:4 * count], "<f4", shape)
            got = self.convert(source, "--to", "fp32", "--decode")
            self.assertEqual(got, ("<f4", shape, values[:4 * count]))

    def test_fortran_order_becomes_c_order(self):
        source = write_npy(self.path("f.npy"), "<f4", (2, 3), floats(0, 3, 1, 4, 2, 5),
                           fortran=True)
        self.assertEqual(self.convert(source, "--to", "fp32", "--decode"),
                         ("<f4", (2, 3), floats(*range(6))))

    def test_safetensors(self):
        path = write_safetensors(self.path("m.safetensors"), [
            ("a", "F32", (1, 2), floats(1, 2)), ("b#1", "BF16", (2,), b"\x80\x3f\x00\x40"),
            ("f4", "F4", (4,), bytes([0x21, 0xf7])), ("f6", "F6_E3M2", (4,), b"\x0c\x4f\x7f"),
            ("u", "U16", (1,), b"\x00\x3c"), ("b", "BOOL", (1,), b"1"),
            ("", "F16", (), b"\x00\x3c")])
        self.assertEqual(self.convert(path + "#a", "--to", "e4m3"), ("|u1", (1, 2), b"\x38\x40"))
        self.assertEqual(self.convert(path + "#", "--to", "e4m3"), ("|u1", (), b"\x38"))
        self.assertEqual(self.convert(path + "#f4", "--to", "fp32", "--decode"),
                         ("<f4", (4,), floats(0.5, 1, 6, -6)))
        self.assertEqual(self.convert(path + "#f6", "--to", "e3m2")[2].hex(), "0c3c341f")
        self.assertEqual(self.convert(path + "#u", "--to", "bf16", "--from", "fp16")[2],
                         b"\x80\x3f")
        out = self.path("o.npy")
        self.fails(3, "convert", path + "#no", out, "--to", "fp16", says=["m.safetensors", '"no"'])
        # Split at the last #, so that this asks for tensor 1 of a file m.safetensors#b.
        self.fails(3, "convert", path + "#b#1", out, "--to", "fp16", says="m.safetensors#b: ")
        self.fails(2, "convert", path, out, "--to", "fp16", says=["7 tensors", "FILE#TENSOR"])
        self.fails(3, "convert", path + "#b", out, "--to", "fp16", says="BOOL")
        self.assertFalse(os.path.exists(out))

    def test_integers_are_values_without_from(self):
        for descr, form, values in [("|u1", "B", [0, 1, 16, 255]), ("|i1", "b", [-128, -1, 0, 127]),
                                    ("<u2", "H", [0, 1, 65535]), (">i2", "h", [-32768, -1, 5]),
                                    ("<u4", "I", [0, 2**32 - 1]), ("<i4", "i", [-2**31, 7]),
                                    ("<u8", "Q", [2**53 - 1, 2**63]),
                                    ("<i8", "q", [-2**63, 2**53 - 1, 3 << 40])]:
            order = ">" if descr[0] == ">" else "<"
            source = self.source(struct.pack(f"{order}{len(values)}{form}", *values), descr)
            got = self.convert(source, "--to", "fp32")
            self.assertEqual(got, ("<f4", (len(values),), floats(*map(float, values))), descr)
        pixels = self.source(bytes(range(17)), "|u1")
        self.assertEqual(self.convert(pixels, "--to", "e4m3", "--decode")[2],
                         floats(*map(float, range(17))))
        done = cli_support.run("convert", pixels, self.path("o.npy"), "--to", "fp16")
        self.assertIn("U8 -> fp16", done.err)
        document = self.ok_json("convert", pixels, self.path("o.npy"), "--to", "fp16")
        self.assertEqual(document["from"], "U8")
        # One rounding of the exact integer: fp32 between them would make a tie of it.
        above = self.source(struct.pack("<q", (1 << 40) + (1 << 32) + 1), "<i8")
        self.assertEqual(hexadecimal(self.convert(above, "--to", "bf16")[2], 2), ["5381"])
        wide = self.source(struct.pack("<2q", 1, 2**53 + 1), "<i8")
        self.fails(3, "convert", wide, self.path("o.npy"), "--to", "fp16",
                   says=["number 1", "53 significant bits"])

    def test_signed_integers_may_be_codes(self):
        source = self.source(bytes([0x38, 0xc0]), "|i1")  # as torch.int8 holds them
        self.assertEqual(self.convert(source, "--from", "e4m3", "--to", "fp32")[2],
                         floats(1.0, -2.0))

    def test_one_tensor_needs_no_name(self):
        path = write_safetensors(self.path("one#1.safetensors"), [("x", "F32", (1,), floats(1))])
        for source in [path, path + "#x"]:
            self.assertEqual(self.convert(source, "--to", "e4m3"), ("|u1", (1,), b"\x38"))

    def test_stochastic(self):
        """The numbers of random bits use three widths of fields; the index wraps at 2^64."""
        source = self.source(floats(1.09) * 40, "<f4", (4, 10))
        for bits, rounded_up in {
                1: "++----++---+++--++-+--+-+++++--++-+--+-+",
                3: "+++-+-++---+++--++-+--+-+++++--++-++++-+",
                8: "+++++-++---++++-+++++-+-+++++--+++++++-+",
                9: "+++-++--+++++++++-+++-+-++--+---+-++++++",
                16: "+++-++--+++++++++-+++-+-++--+---+-++++++",
                17: "+++++-+++++++++-+-+++++++--+---+++-+++++",
                32: "+++++-+++++++++-+-+++++++--+---+++-+++++"}.items():
            *_, data = self.convert(source, "--to", "e4m3", "--rounding", "stochastic", "--seed", str(2**64 - 1),
                                    "--stream", hex(2**40 + 1), "--offset", str(2**64 - 5), "--random-bits",
                                    str(bits))
            self.assertEqual(data, bytes(0x39 if up == "+" else 0x38 for up in rounded_up), bits)

    def test_random_index_in_a_large_tensor(self):
        """The tail alone, with the offset of its first element, gets the bits it has in the whole."""
        count = (1 << 20) + 4099
        options = ["--to", "e4m3", "--rounding", "stochastic", "--seed", "7", "--random-bits", "8"]
        *_, data = self.convert(self.source(floats(1.0625) * count), *options)
        self.assertEqual(len(data), count)
        for first in 65000, (1 << 20) - 64, (1 << 20) + 11:
            tail = self.source(floats(1.0625) * (count - first))
            self.assertEqual(self.convert(tail, *options, "--offset", str(first))[2], data[first:])

    def test_output_is_what_numpy_would_write(self):
        self.convert(self.source(floats(1, 2), "<f4", (2,)), "--to", "e4m3")
        content = read_file(self.path("converted.npy"))
        header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }"
        self.assertEqual(content, b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(117) + b"\n8@")

    def test_json(self):
        source = self.source(floats(1, 2), "<f4", (1, 2))
        target = self.path("out.npy")
        document = self.ok_json("convert", source, target, "--to", "fp16", "--rounding", "stochastic",
                                "--seed", "18446744073709551615", "--backend", "reference")
        self.assertEqual(document, {
            "schema": 1, "input": source, "output": target, "from": "fp32", "to": "fp16",
            "round": "stochastic", "overflow": "ieee", "nan": "canonical",
            "seed": 18446744073709551615, "stream": 0, "offset": 0, "random_bits": 32,
            "decoded": False, "dtype": "<f2", "count": 2, "shape": [1, 2], "backend": "reference"})
        self.assertEqual(read_npy(target), ("<f2", (1, 2), b"\x00\x3c\x00\x40"))

    def test_the_extension_says_what_is_written(self):
        source = self.source(floats(1, -3, 0.5, 6), "<f4", (2, 2))
        target = self.path("o.safetensors")
        for name, dtype, raw in [
                ("fp32", "F32", floats(1, -3, 0.5, 6)), ("tf32", "F32", floats(1, -3, 0.5, 6)),
                ("fp16", "F16", struct.pack("<4e", 1, -3, 0.5, 6)),
                ("bf16", "BF16", b"\x80\x3f\x40\xc0\x00\x3f\xc0\x40"),
                ("e4m3", "F8_E4M3", b"\x38\xc4\x30\x4c"), ("e5m2", "F8_E5M2", b"<\xc2\x38\x46"),
                ("e4m3fnuz", "F8_E4M3FNUZ", b"\x40\xcc\x38\x54"),
                ("e5m2fnuz", "F8_E5M2FNUZ", b"\x40\xc6\x3c\x4a"),
                ("e8m0", "F8_E8M0", b"\x7f\x81\x7e\x82"),
                ("e2m1", "F4", b"\xd2\x71"), ("e3m2", "F6_E3M2", None), ("e2m3", "F6_E2M3", None)]:
            document = self.ok_json("convert", source, target, "--to", name)
            self.assertEqual(document["dtype"], dtype)
            (got,) = cli_support.read_safetensors(target).items()
            self.assertEqual(got[0], "tensor")
            self.assertEqual(got[1][:2], (dtype, [2, 2]), name)
            if raw is not None:
                self.assertEqual(got[1][2], raw, name)
            # What was written is read back for what it is, with no word about its format.
            self.assertEqual(self.convert(target, "--to", name, "--decode"),
                             self.convert(source, "--to", name, "--decode"))
        self.ok_json("convert", source, target, "--to", "e4m3", "--decode")
        self.assertEqual(cli_support.read_safetensors(target),
                         {"tensor": ("F32", [2, 2], floats(1, -3, 0.5, 6))})
        model = write_safetensors(self.path("m.safetensors"), [("layer.0", "F32", (1,), floats(2))])
        self.ok_json("convert", model, target, "--to", "bf16")
        self.assertEqual(cli_support.read_safetensors(target),
                         {"layer.0": ("BF16", [1], b"\x00\x40")})
        self.ok_json("convert", model, self.path("UPPER.NPY"), "--to", "bf16")
        self.assertEqual(read_npy(self.path("UPPER.NPY")), ("<u2", (1,), b"\x00\x40"))

    def test_other_extensions_are_refused(self):
        source = self.source(floats(1, 2, 3), "<f4", (3,))
        before = sorted(os.listdir(self.folder))
        for name in ["o", "o.bin", "o.npz", "o.npy.gz", "o.safetensor", "npy"]:
            self.fails(2, "convert", source, self.path(name), "--to", "fp16",
                       says=[".npy or .safetensors", name])
        self.fails(2, "convert", source, self.path("o.safetensors"), "--to", "e2m1",
                   says=["3 elements of F4", ".npy"])
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_standard_output(self):
        source = self.source(floats(1, 2), "<f4", (1, 2))
        done = subprocess.run([cli_support.FPINSPECT, "convert", source, "-", "--to", "bf16"],
                              capture_output=True, env=cli_support.CLEAN, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stderr.startswith(b"standard output: 2 elements"))
        write_file(self.path("piped.npy"), done.stdout)
        self.assertEqual(read_npy(self.path("piped.npy")), ("<u2", (1, 2), b"\x80\x3f\x00\x40"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.npy", "piped.npy"])
        self.fails(2, "convert", source, "-", "--to", "bf16", "--json", says="OUT -")
        self.fails(2, "convert", "--to", "bf16", "--json", "--", source, "-", says="OUT -")
        ours, theirs = pty.openpty()  # a terminal would show the bytes
        done = subprocess.run([cli_support.FPINSPECT, "convert", source, "-", "--to", "bf16"],
                              stdout=theirs, stderr=subprocess.PIPE, env=cli_support.CLEAN)
        os.close(theirs)
        os.close(ours)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"is a terminal", done.stderr)

    def test_permissions_of_the_old_file_stay(self):
        source, target = self.source(floats(1, 2)), self.path("private.npy")
        write_npy(target, "|u1", (1,), b"1")
        os.chmod(target, 0o600)
        self.convert(source, "--to", "e4m3")
        self.ok("convert", source, target, "--to", "e4m3", "--json")
        self.assertEqual(os.stat(target).st_mode & 0o7777, 0o600)

    def test_refused(self):
        source, out = self.source(), self.path("out.npy")
        codes = write_npy(self.path("codes.npy"), "|u1", (1,), b"\x38")
        for arguments, says in [
                ([source, out], "--to"), ([source, "--to", "fp16"], "OUT"),
                ([source, out, "--to", "fp64"], "fp64"), ([source, out, "--to", "fp8"], "e4m3"),
                ([source, out, "--to", "fp16", "--from", "bf16"], "F32"),
                ([codes, out, "--to", "fp16", "--from", "bf16"], "16 bits"),
                ([source, out, "--to", "fp16", "--rounding", "even"], "nearest_even"),
                ([source, out, "--to", "fp16", "--nope"], "--nope")]:
            self.fails(2, "convert", *arguments, says=says)
        for text in ["-1", "+1", "1.0", "1e3", " 1", "0x", "0xg", "", "18446744073709551616",
                     "0x10000000000000000", "one"]:
            for option in ["--seed", "--stream", "--offset", "--random-bits"]:
                self.fails(2, "convert", source, out, "--to", "fp16", f"{option}={text}",
                           says=option)
        self.assertFalse(os.path.exists(out))
