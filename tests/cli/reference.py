# Rounding by looking up neighbours in a list of all values of a format.
#
# Written from the contract alone, in exact fractions; slow, and meant for small files.
import bisect
import functools
import math
from fractions import Fraction

# name: exponent bits, mantissa bits, bias, special codes (as the contract's table, section 1)
FORMATS = {
    "fp16": (5, 10, 15, "ieee"), "bf16": (8, 7, 127, "ieee"), "e4m3": (4, 3, 7, "fn"),
    "e5m2": (5, 2, 15, "ieee"), "e3m2": (3, 2, 3, "none"), "e2m3": (2, 3, 1, "none"),
    "e2m1": (2, 1, 1, "none"), "e4m3fnuz": (4, 3, 8, "fnuz"), "e5m2fnuz": (5, 2, 16, "fnuz"),
}


class Format:
    def __init__(self, name):
        exponent_bits, self.mantissa_bits, bias, self.special = FORMATS[name]
        self.sign = 1 << (exponent_bits + self.mantissa_bits)
        removed = {"ieee": 1 << self.mantissa_bits, "fn": 1}.get(self.special, 0)
        self.values = []  # of the positive codes, ascending: a code is its value's index
        for code in range(self.sign - removed):
            exponent, mantissa = divmod(code, 1 << self.mantissa_bits)
            whole = mantissa + ((1 << self.mantissa_bits) if exponent else 0)
            power = max(exponent, 1) - bias - self.mantissa_bits
            self.values.append(whole * Fraction(2) ** power)
        self.min_normal = self.values[1 << self.mantissa_bits]
        self.max_code = len(self.values) - 1
        # The value after max, had the format one more code.
        self.beyond = 2 * self.values[-1] - self.values[-2]

    def nan(self):
        return {"ieee": self.sign - 1, "fn": self.sign - 1, "none": self.max_code,
                "fnuz": self.sign}[self.special]

    def inf(self):
        return self.max_code + 1 if self.special == "ieee" else None

    def signed(self, code, negative):
        return code | self.sign if negative and (code or self.special != "fnuz") else code

    def round(self, x):
        """x, not NaN nor infinite, as (code, overflowed), to nearest even. Overflow is `ieee`."""
        negative = math.copysign(1.0, x) < 0
        magnitude = abs(Fraction(x))
        grid = self.values + [self.beyond]
        if magnitude >= self.beyond:
            code = len(self.values)
        else:
            code = bisect.bisect_right(grid, magnitude) - 1
            v = (magnitude - grid[code]) / (grid[code + 1] - grid[code])
            if v > Fraction(1, 2) or (v == Fraction(1, 2) and code % 2 == 1):
                code += 1
        if code <= self.max_code:
            return self.signed(code, negative), False
        if self.special == "none":
            return self.signed(self.max_code, negative), True
        return (self.nan() if self.inf() is None else self.signed(self.inf(), negative)), True

    def value(self, code):
        """A float, exact; NaN and infinities as such."""
        magnitude = code & (self.sign - 1)
        if self.special == "fnuz" and code == self.sign:
            return math.nan
        if magnitude <= self.max_code:
            return math.copysign(float(self.values[magnitude]), -1.0 if code & self.sign else 1.0)
        if magnitude == self.inf():
            return -math.inf if code & self.sign else math.inf
        return math.nan


@functools.lru_cache(None)
def format_named(name):
    return Format(name)


def convert(name, x):
    """(code, overflowed) of a float under overflow `ieee` and NaN `canonical`."""
    to = format_named(name)
    if math.isnan(x):
        return to.nan(), False
    if math.isinf(x):
        if to.inf() is not None:
            return to.signed(to.inf(), x < 0), False
        return (to.signed(to.max_code, x < 0) if to.special == "none" else to.nan()), False
    return to.round(x)
