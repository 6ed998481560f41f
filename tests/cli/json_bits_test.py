# --json-bits: each binary64 number of a document also as its bits.
import math
import struct

import cli_support
from cli_support import SAMPLE, write_npy

COMMANDS = [("formats",), ("cast", "0.1", "inf", "nan"), ("show", "e4m3", "0.3"), ("show", "all", "-0.1"),
            ("tensor", SAMPLE), ("tensor", SAMPLE, "--stats"), ("tensor", SAMPLE, "--quick"),
            ("tensor", SAMPLE, "--recipes"), ("recipes",), ("resolution", "fp16"), ("memory",),
            ("demo", "tiny-mul"), ("update", "--steps", "10"), ("arith", "add", "1", "1e-9", "--format", "fp32"),
            ("compare", SAMPLE, SAMPLE), ("units",)]


def bits_of(number):
    return "0x" + struct.pack(">d", number).hex()


class JsonBits(cli_support.CliTest):
    def check_and_strip(self, node):
        """The document without its members NAME_bits, each of which is compared with NAME."""
        if isinstance(node, list):
            return [self.check_and_strip(one) for one in node]
        if not isinstance(node, dict):
            return node
        plain = {}
        for name, value in node.items():
            base = name.removesuffix("_bits")
            if base != name and base in node:
                self.found += 1
                if node[base] == 0:  # Python reads -0 as the integer 0
                    self.assertIn(value, (bits_of(0.0), bits_of(-0.0)), name)
                elif node[base] is not None:
                    self.assertEqual(value, bits_of(node[base]), name)
                elif value is not None:  # NaN or an infinity, which JSON does not have
                    self.assertFalse(math.isfinite(struct.unpack(">d", bytes.fromhex(value[2:]))[0]))
                continue
            plain[name] = self.check_and_strip(value)
            if isinstance(value, float) and not isinstance(value, bool):
                self.assertIn(name + "_bits", node)
        return plain

    def test_bits_are_those_of_the_numbers_and_nothing_else_changes(self):
        found = 0
        for command in COMMANDS:
            self.found = 0
            with_bits = self.ok_json(*command, "--json-bits")
            self.assertEqual(self.check_and_strip(with_bits), self.ok_json(*command), command)
            found += self.found
        self.assertGreater(found, 500)

    def test_round_trip(self):
        """Every number that a decimal could lose."""
        values = [0.1, 1 / 3, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -0.1]
        for value in values:
            path = write_npy(self.path("x.npy"), "<f8", (1,), struct.pack("<d", value))
            (tensor,) = self.ok_json("tensor", path, "--quick", "--json-bits")["tensors"]
            self.assertEqual(tensor["statistics"]["min_bits"], bits_of(value))
            self.assertEqual(struct.pack(">d", tensor["statistics"]["min"]).hex(),
                             bits_of(value)[2:])

    def test_missing_numbers(self):
        path = write_npy(self.path("x.npy"), "<f4", (0,), b"")
        (tensor,) = self.ok_json("tensor", path, "--quick", "--json-bits")["tensors"]
        statistics = tensor["statistics"]
        self.assertEqual((statistics["min"], statistics["min_bits"]), (None, None))
        self.assertNotIn("zeros_bits", statistics)  # a count is exact

    def test_nothing_without_json(self):
        self.fails(2, "tensor", SAMPLE, "--json-bits", says=["--json-bits", "--json"])
