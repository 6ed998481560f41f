# `fpinspect arith`: values, files of codes and of floats, flags, random indices, refusals.
import os
import struct

import cli_support
from cli_support import floats, hexadecimal, read_npy, run, write_npy

CODES = bytes(range(256))


class Arith(cli_support.CliTest):
    def result(self, *arguments):
        return self.ok("arith", *arguments, "--json").json()["result"]

    def npy(self, name, descr, data, shape=None):
        return write_npy(self.path(name), descr,
                         (len(data) // int(descr[-1]),) if shape is None else shape, data)

    def arith(self, *arguments, flags=True):
        """(descr, shape, codes), flag bytes, lines on standard error"""
        out, raised = self.path("out.npy"), self.path("flags.npy")
        done = run("arith", *arguments, "--out", out, *(["--flags", raised] if flags else []))
        self.assertEqual((done.code, done.out), (0, ""), done.err)
        if not flags:
            return read_npy(out), None, done.err.splitlines()
        descr, shape, bits = read_npy(raised)
        self.assertEqual((descr, shape), ("|u1", read_npy(out)[1]))
        return read_npy(out), bits, done.err.splitlines()

    def test_no_flags(self):
        self.assertEqual(self.ok("arith", "add", "1", "2", "--format", "e5m2").out.split("\n")[2],
                         "add      e5m2  0x42        3                         no flags")

    def test_every_operation(self):
        for arguments, code, flags in [
                (["add", "448", "18"], "0x7f", ["overflow", "inexact"]),
                (["add", "448", "16"], "0x7e", ["inexact"]),
                (["sub", "1", "1"], "0x00", []),
                (["sub", "1", "1", "--rounding", "downward"], "0x80", []),
                (["mul", "-0", "3"], "0x80", []),
                (["mul", "0.0625", "0.01"], "0x00", ["underflow", "inexact"]),
                (["mul", "300", "2", "--overflow", "saturate"], "0x7e", ["overflow", "inexact"]),
                (["div", "1", "0"], "0x7f", ["divide_by_zero"]),
                (["div", "-1", "0", "--overflow", "saturate"], "0xfe", ["divide_by_zero"]),
                (["div", "-1", "0", "--nan", "preserve_sign"], "0xff", ["divide_by_zero"]),
                (["div", "0", "0"], "0x7f", ["invalid"]),
                (["sqrt", "2"], "0x3b", ["inexact"]), (["sqrt", "-1"], "0x7f", ["invalid"]),
                (["fma", "3", "5", "1"], "0x58", []), (["rem", "7", "4"], "0xb8", []),
                (["rint", "2.5"], "0x40", ["inexact"]),
                (["rint", "2.5", "--rounding", "to_odd"], "0x44", ["inexact"]),
                (["min", "-0", "0"], "0x80", []), (["max", "nan", "1"], "0x7f", []),
                (["min_num", "nan", "1"], "0x38", []), (["max_num", "2", "-3"], "0x40", [])]:
            got = self.result(*arguments, "--format", "e4m3")
            self.assertEqual((got["code"], got["flags"]), (code, flags), arguments)

    def test_destination(self):
        got = self.result("mul", "3", "0.1", "--format", "fp32", "--dest", "bf16")
        self.assertEqual(got["code"], "0x3e9a")
        document = self.ok_json("arith", "add", "1e-3", "2", "--format", "bf16", "--dest", "fp32")
        self.assertEqual((document["format"], document["dest"]), ("bf16", "fp32"))
        self.assertEqual(document["operands"][0]["inexact"], True)
        self.assertEqual(document["operands"][1], {
            "input": "2", "code": "0x4000", "value": "2", "number": 2, "inexact": False})

    def test_codes_of_16_and_32_bits(self):
        half = self.npy("h.npy", "<u2", struct.pack("<3H", 0x3C00, 0x7C01, 0x7BFF))
        (descr, _, codes), flags, _ = self.arith("add", half, half, "--format", "fp16", "--from",
                                                 "fp16")
        self.assertEqual((descr, hexadecimal(codes, 2)), ("<f2", ["4000", "7fff", "7c00"]))
        self.assertEqual(list(flags), [0, 1, 4 + 16])
        single = self.npy("s.npy", "<u4", struct.pack("<2I", 0x3F800000, 0x00000001))
        (descr, _, codes), flags, _ = self.arith("div", single, "3", "--format", "fp32", "--from",
                                                 "fp32")
        self.assertEqual((descr, hexadecimal(codes, 4)), ("<f4", ["3eaaaaab", "00000000"]))
        self.assertEqual(list(flags), [16, 8 + 16])

    def test_floats_are_rounded_first_and_counted(self):
        x = self.npy("x.npy", "<f4", floats(1.0, 1.0625, 0.3, 464.0))
        (_, _, codes), _, lines = self.arith("mul", x, "1", "--format", "e4m3")
        self.assertEqual(hexadecimal(codes), ["38", "38", "2a", "7e"])
        self.assertEqual(lines[0], "A: 3 of 4 elements of fp32 were inexact in e4m3")
        y = self.npy("y.npy", "<f8", struct.pack("<2d", 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11))
        (_, _, codes), _, lines = self.arith("max_num", "nan", y, "--format", "fp16")
        self.assertEqual(hexadecimal(codes, 2), ["3c01", "3c00"])  # one rounding, not through fp32
        self.assertEqual(lines[0], "B: 2 of 2 elements of fp64 were inexact in fp16")
        (_, _, codes), _, lines = self.arith("add", x, x, "--format", "fp32")
        self.assertEqual(codes, floats(2.0, 2.125, 0.6000000238418579, 928.0))
        self.assertEqual(len(lines), 1)

    def test_summary(self):
        x = self.npy("x.npy", "|u1", bytes([0x38, 0x00, 0x7E, 0x01]), (2, 2))
        _, _, lines = self.arith("div", x, x, "--format", "e4m3", "--from", "e4m3")
        self.assertEqual(lines, [
            f"{self.path('out.npy')}: 4 elements [2, 2], div of e4m3 -> e4m3 (nearest_even, ieee, "
            "canonical); 1 invalid, 0 divide_by_zero, 0 overflow, 0 underflow, 0 inexact"])
        document = self.ok_json("arith", "div", x, "3", "--format", "e4m3", "--from", "e4m3", "--out",
                                self.path("out.npy"))
        self.assertEqual(document["count"], 4)
        self.assertEqual(document["shape"], [2, 2])
        self.assertEqual(document["raised"], {"invalid": 0, "divide_by_zero": 0, "overflow": 0,
                                              "underflow": 1, "inexact": 3})
        self.assertNotIn("flags_output", document)

    def test_random_bits_of_elements(self):
        """Those with which `convert` rounds the same products, of more than one chunk."""
        x = self.npy("x.npy", "<f4", floats(1.0625, 3.03125, 0.1) * 22000)
        for bits in "8", "32":
            rule = ["--rounding", "stochastic", "--seed", "5", "--stream", "3", "--offset", "70",
                    "--random-bits", bits]
            (_, _, codes), _, _ = self.arith("mul", x, "1", "--format", "fp32", "--dest", "e4m3", *rule)
            self.assertEqual(codes, self.convert(x, "--to", "e4m3", *rule)[2])
            self.assertNotEqual(codes, self.convert(x, "--to", "e4m3")[2])

    def test_integers_are_values_without_from(self):
        x = self.npy("x.npy", "|u1", bytes([3, 17, 255]))
        (_, _, codes), _, lines = self.arith("add", x, "1", "--format", "e4m3")
        self.assertEqual(hexadecimal(codes), ["48", "58", "78"])  # 3 + 1, 16 + 1, 256 + 1
        self.assertEqual(lines[0], "A: 2 of 3 elements of U8 were inexact in e4m3")

    def test_from_speaks_of_integers(self):
        x = self.npy("x.npy", "|u1", bytes([0x38, 0x40]))
        y = self.npy("y.npy", "<f4", floats(1.0, 3.0))
        (_, _, codes), _, _ = self.arith("mul", x, y, "--format", "e4m3", "--from", "e4m3")
        self.assertEqual(hexadecimal(codes), ["38", "4c"])
        self.fails(2, "arith", "mul", y, y, "--format", "e4m3", "--from", "e4m3", "--out", "z.npy",
                   says="--from: no operand is a file of integers")

    def test_tensors_of_safetensors_files(self):
        source = cli_support.write_safetensors(self.path("model"), [
            ("a", "F8_E4M3", [2], b"\x38\x40"), ("b", "F32", [2], floats(1, 2))])
        out = self.path("out.safetensors")
        done = run("arith", "mul", f"{source}#a", f"{source}#b", "--format", "e4m3", "--dest",
                   "bf16", "--out", out)
        self.assertEqual((done.code, done.out), (0, ""), done.err)
        self.assertEqual(cli_support.read_safetensors(out),
                         {"result": ("BF16", [2], b"\x80\x3f\x80\x40")})

    def test_values_take_the_index_of_their_offset(self):
        codes = {self.result("add", "1", "0.0625", "--format", "e4m3", "--rounding", "stochastic",
                             "--offset", str(i))["code"] for i in range(20)}
        self.assertEqual(codes, {"0x38", "0x39"})

    def test_values_into_files(self):
        (descr, shape, codes), flags, _ = self.values_out("add", "1", "2", "--format", "fp16")
        self.assertEqual((descr, shape, codes, flags), ("<f2", (), b"\x00\x42", b"\x00"))

    def values_out(self, *arguments):
        out, raised = self.path("out.npy"), self.path("flags.npy")
        self.ok("arith", *arguments, "--out", out, "--flags", raised)
        return read_npy(out), read_npy(raised)[2], None

    def test_empty_arrays(self):
        x = self.npy("x.npy", "|u1", b"", (0, 3))
        (descr, shape, codes), flags, _ = self.arith("add", x, x, "--format", "e5m2")
        self.assertEqual((descr, shape, codes, flags), ("|u1", (0, 3), b"", b""))

    def test_refusals(self):
        x = self.npy("x.npy", "|u1", CODES)
        y = self.npy("y.npy", "|u1", CODES[:5])
        booleans = self.npy("b.npy", "|b1", bytes(2))
        for arguments, says in [
                (["pow", "1", "2", "--format", "fp16"], "pow"),
                (["add", "1", "--format", "fp16"], "add takes 2 operands, got 1"),
                (["sqrt", "1", "2", "--format", "fp16"], "sqrt takes 1 operand, got 2"),
                (["add", "1", "2"], "--format"),
                (["add", "1", "2", "--format", "tf32"], "no arithmetic in tf32"),
                (["add", "1", "2", "--format", "fp16", "--dest", "e8m0"], "--dest"),
                (["add", "one", "2", "--format", "fp16"], "A: "),
                (["add", "1", "2x", "--format", "fp16"], "B: "),
                (["add", x, "1", "--format", "e4m3"], "--out"),
                (["add", x, y, "--format", "e4m3", "--out", "z.npy"], "B: its shape [5]"),
                (["add", x, "1", "--format", "fp16", "--from", "fp16", "--out", "z.npy"],
                 "--from: codes of fp16 have 16 bits, the elements are U8"),
                (["add", x, "1", "--format", "fp16", "--out", "z.txt"], ".npy or .safetensors"),
                (["add", "1", "2", "--format", "fp16", "--rounding", "up"], "--rounding")]:
            self.fails(2, "arith", *arguments, says=says)
            self.assertFalse(os.path.exists("z.npy"))
        self.fails(3, "arith", "add", booleans, "1", "--format", "fp16", "--out", "z.npy", says="BOOL")
        self.fails(3, "arith", "add", self.path("no.npy"), "1", "--format", "fp16", "--out", "z.npy",
                   says="no.npy")



class Functions(cli_support.CliTest):
    def test_json(self):
        found = self.ok_json("arith", "gelu_tanh", "1", "--rule", "torch_2_11", "--format", "bf16")
        self.assertEqual(found, {
            "schema": 1, "function": "gelu_tanh", "format": "bf16", "rule": "torch_2_11",
            "input": "1", "operand": "0x3f80", "result": "0x3f57", "value": "0.84",
            "exact": "0.8411919906082767", "error_ulp": "-0.345"})
        found = self.ok_json("arith", "pow", "-8", "3", "--rule", "cuda_13_0")
        self.assertEqual((found["value"], found["error_ulp"]), ("-512", "0.000"))
        for line in self.ok("arith", "log", "-1", "--rule", "cuda_13_0").out.splitlines():
            self.assertEqual(line, line.rstrip())
        found = self.ok_json("arith", "log", "-1", "--rule", "cuda_13_0")
        self.assertEqual((found["result"], found["error_ulp"]), ("0x7fffffff", ""))

    def exact_of(self, function, x, rule="torch_2_11"):
        return self.ok_json("arith", function, x, "--rule", rule)["exact"]

    def test_exact_values_at_nan_and_minus_infinity(self):
        self.assertEqual(self.exact_of("relu", "nan"), "nan")
        self.assertEqual(self.exact_of("relu", "-1"), "0")
        self.assertEqual(self.exact_of("relu", "2.5"), "2.5")
        for function in ("silu", "gelu", "gelu_tanh", "mish", "hardswish"):
            self.assertEqual(self.exact_of(function, "-inf"), "-0", function)
            self.assertEqual(self.exact_of(function, "nan"), "nan", function)
        self.assertEqual(self.exact_of("relu", "-inf"), "0")
        self.assertEqual(self.exact_of("elu", "-inf"), "-1")

    def test_options_of_operations_are_refused(self):
        for option, value in (("--rounding", "downward"), ("--rounding", "stochastic"),
                              ("--overflow", "saturate"), ("--nan", "preserve_sign")):
            self.fails(2, "arith", "exp", "1", "--rule", "cuda_13_0", option, value,
                       says=f"{option}: not for functions; leave it out")
        for option in ("--seed", "--stream", "--offset", "--random-bits"):
            self.fails(2, "arith", "exp", "1", "--rule", "cuda_13_0", option, "1", says=option)
            self.fails(2, "arith", "exp", "1", "--rule", "cuda_13_0", "--rounding", "stochastic",
                       option, "1", says="--rounding: not for functions")
        self.ok("arith", "exp", "1", "--rule", "cuda_13_0", "--rounding", "nearest_even")

    def test_rules_that_have_the_function_are_named(self):
        self.fails(2, "arith", "exp", "1", "--rule", "cuda_13_0", "--format", "fp16",
                   says=["--rule", "cuda_13_0 has no exp of fp16", "rules that have it: ", "torch_2_11"])
        self.fails(2, "arith", "exp", "c.npy", "--rule", "torch_2_11",
                   says=["c.npy", "not a number", "functions take one number"])

    def test_refused(self):
        self.fails(2, "arith", "pow", "2", "--rule", "cuda_13_0",
                   says="pow takes a number and its exponent, got 1 operand")
        self.fails(2, "arith", "elu", "1", "2", "3", "--rule", "torch_2_11",
                   says="elu takes one number and its parameter, got 3 operands")
        self.fails(2, "arith", "exp", "1", says="--rule: needed for exp")
        self.fails(2, "arith", "exp", "1", "--rule", "cuda", says=["--rule", "cuda_13_0"])
        self.fails(2, "arith", "exp", "1", "2", "--rule", "cuda_13_0", says="takes one number")
        self.fails(2, "arith", "exp", "x", "--rule", "cuda_13_0", says="is not a number")
        self.fails(2, "arith", "pow", "1", "x", "--rule", "cuda_13_0", says="parameter")
        self.fails(2, "arith", "exp", "1", "--rule", "cuda_13_0", "--dest", "fp16", says="--dest")
        self.fails(2, "arith", "add", "1", "2", "--format", "fp16", "--rule", "cuda_13_0",
                   says="--rule")
        self.fails(2, "arith", "add", "1", "2", "--rule", "cuda_13_0", says="--rule: only for")
        self.fails(2, "arith", "expo", "1", "--rule", "exact", says=["OP: ", '"expo"', "gelu_tanh"])
        self.fails(2, "arith", "add", "1", "2", says="--format is required")
        self.fails(2, "arith", "plus", "1", "2", says=['OP: "plus" is not one of', "add, sub"])
        self.fails(2, "arith", "gelu", "1", "--rule", "cuda_13_0", says="has no gelu")
