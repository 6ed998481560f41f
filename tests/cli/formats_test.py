# `fpinspect formats` against the contract's table.
import math

import cli_support

# name: bits, exponent bits, mantissa bits, bias, max, log2 of min normal and of min subnormal,
# finite values, bytes per million
TABLE = {
    "fp64": (64, 11, 52, 1023, 1.7976931348623157e308, -1022, -1074, 18437736874454810623, 8000000),
    "fp32": (32, 8, 23, 127, 3.4028234663852886e38, -126, -149, 4278190079, 4000000),
    "tf32": (19, 8, 10, 127, 3.4011621342146535e38, -126, -136, 522239, 4000000),
    "fp16": (16, 5, 10, 15, 65504, -14, -24, 63487, 2000000),
    "bf16": (16, 8, 7, 127, 3.3895313892515355e38, -126, -133, 65279, 2000000),
    "e4m3": (8, 4, 3, 7, 448, -6, -9, 253, 1000000),
    "e5m2": (8, 5, 2, 15, 57344, -14, -16, 247, 1000000),
    "e3m2": (6, 3, 2, 3, 28, -2, -4, 63, 750000),
    "e2m3": (6, 2, 3, 1, 7.5, 0, -3, 63, 750000),
    "e2m1": (4, 2, 1, 1, 6, 0, -1, 15, 500000),
    "e4m3fnuz": (8, 4, 3, 8, 240, -7, -10, 255, 1000000),
    "e5m2fnuz": (8, 5, 2, 16, 57344, -15, -17, 255, 1000000),
    "e8m0": (8, 8, 0, 127, 2.0**127, -127, None, 255, 1000000),
}
CODES = {"fp32": "0x7f7fffff", "tf32": "0x7f7fe000", "fp16": "0x7bff", "bf16": "0x7f7f",
         "e4m3": "0x7e", "e5m2": "0x7b", "e2m1": "0x07", "e2m3": "0x1f", "e3m2": "0x1f",
         "e4m3fnuz": "0x7f", "e5m2fnuz": "0x7f", "e8m0": "0xfe"}


class Formats(cli_support.CliTest):
    def test_json(self):
        formats = self.ok_json("formats")["formats"]
        self.assertEqual([f["name"] for f in formats], list(TABLE))
        for f in formats:
            (bits, exponent, mantissa, bias, largest, normal, subnormal, values,
             size) = TABLE[f["name"]]
            power = lambda log2: None if log2 is None else math.ldexp(1.0, log2)
            self.assertEqual(
                [f["bits"], f["exponent_bits"], f["mantissa_bits"], f["bias"], f["max"],
                 f["min_normal"], f["min_subnormal"], f["epsilon"], f["values"],
                 f["bytes_per_million"]],
                [bits, exponent, mantissa, bias, largest, power(normal), power(subnormal),
                 power(-mantissa), values, size], f["name"])
            self.assertEqual(f["sign_bits"] + exponent + mantissa, bits)
            self.assertEqual(f["max_code"], CODES.get(f["name"], "0x7fefffffffffffff"))
            # Every code is finite, Inf or NaN; -0 is a code but not a value of its own.
            negative_zero = f["name"] not in ("e4m3fnuz", "e5m2fnuz", "e8m0")
            self.assertEqual(values + negative_zero + f["inf_codes"] + f["nan_codes"], 2**bits)
            smallest = f["min_subnormal"] or f["min_normal"]
            self.assertEqual(f["decades"], math.log10(f["max"]) - math.log10(smallest))

    def test_table_fits_80_columns(self):
        lines = self.ok("formats").out.splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        rows = {line.split()[0]: line.split() for line in lines[2:15]}
        self.assertEqual(list(rows), list(TABLE))
        self.assertEqual(rows["e4m3"], ["e4m3", "8", "1/4/3", "7", "448", "2^-6", "2^-9", "2^-3",
                                        "5.4", "253", "1"])
