# The reference of these tests against the contract's own numbers.
import unittest

import reference


class Reference(unittest.TestCase):
    def test_limits_of_the_contract(self):
        for name, max_value, max_code, min_normal, min_subnormal in [
                ("fp16", 65504, 0x7bff, -14, -24), ("e4m3", 448, 0x7e, -6, -9),
                ("e5m2", 57344, 0x7b, -14, -16), ("e2m1", 6, 7, 0, -1), ("e2m3", 7.5, 0x1f, 0, -3),
                ("e3m2", 28, 0x1f, -2, -4), ("e4m3fnuz", 240, 0x7f, -7, -10),
                ("e5m2fnuz", 57344, 0x7f, -15, -17)]:
            of = reference.format_named(name)
            self.assertEqual((of.values[-1], of.max_code), (max_value, max_code), name)
            self.assertEqual((of.min_normal, of.values[1]), (2.0**min_normal, 2.0**min_subnormal))

    def test_overflow_ties_of_the_contract(self):
        self.assertEqual(reference.convert("e4m3", 464.0), (0x7e, False))
        self.assertEqual(reference.convert("e5m2", 61440.0), (0x7c, True))
