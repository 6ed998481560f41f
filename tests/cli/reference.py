# Rounding by looking up neighbours in a list of all values of a format, and Philox4x32-10.
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

    def round(self, x, away):
        """x, not NaN nor infinite, as (code, overflowed); away(v, q) of contract section 3 with the
        fraction v between the neighbours and the code q of the lower one. Overflow is `ieee`."""
        negative = math.copysign(1.0, x) < 0
        magnitude = abs(Fraction(x))
        grid = self.values + [self.beyond]
        if magnitude >= self.beyond:
            code = len(self.values)
        else:
            code = bisect.bisect_right(grid, magnitude) - 1
            v = (magnitude - grid[code]) / (grid[code + 1] - grid[code])
            if v != 0 and away(v, code):
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


def nearest_even(v, q):
    return v > Fraction(1, 2) or (v == Fraction(1, 2) and q % 2 == 1)


def stochastic(random, bits):
    return lambda v, q: math.floor(v * 2 ** bits) + random >= 2 ** bits


def convert(name, x, away=nearest_even):
    """(code, overflowed) of a float under overflow `ieee` and NaN `canonical`."""
    to = format_named(name)
    if math.isnan(x):
        return to.nan(), False
    if math.isinf(x):
        if to.inf() is not None:
            return to.signed(to.inf(), x < 0), False
        return (to.signed(to.max_code, x < 0) if to.special == "none" else to.nan()), False
    return to.round(x, away)


def philox4x32_10(seed, stream, block):
    """Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC11)."""
    mask = 0xFFFFFFFF
    counter = [block & mask, block >> 32, stream & mask, stream >> 32]
    key = [seed & mask, seed >> 32]
    for _ in range(10):
        first, second = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [(second >> 32) ^ counter[1] ^ key[0], second & mask,
                   (first >> 32) ^ counter[3] ^ key[1], first & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return counter


def random_word(seed, stream, index, bits):
    """The K = bits random bits of one element (contract, section 3)."""
    width = 8 if bits <= 8 else 16 if bits <= 16 else 32
    fields = 128 // width
    words = philox4x32_10(seed, stream, index // fields)
    number = sum(word << (32 * i) for i, word in enumerate(words))
    field = number >> (width * (index % fields)) & ((1 << width) - 1)
    return field >> (width - bits)
