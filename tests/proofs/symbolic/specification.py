"""What a conversion must return, in SMT-LIB 2: contract sections 2 to 4, stated without the code of numerics/.

Conversions into IEEE formats by the roundings of IEEE 754 are stated in SMT-LIB's theory of floating point; those
into the formats of 8 bits and less by the smallest operand of each code, from exact fractions; stochastic rounding
by the contract's sentence, in integers of 128 bits.
"""

from fractions import Fraction
from typing import NamedTuple

ROUNDINGS = ("nearest_even", "nearest_away", "toward_zero", "upward", "downward", "to_odd")
THEORY = {"nearest_even": "RNE", "nearest_away": "RNA", "toward_zero": "RTZ", "upward": "RTP", "downward": "RTN",
          "to_odd": "RTZ"}
OVERFLOWS = ("ieee", "saturate", "saturate_finite")
NANS = ("canonical", "preserve_sign")


class Format(NamedTuple):
    """A row of the contract's table. special: ieee; fn, one NaN and no Inf; none; fnuz; scale, no sign."""

    exponent: int
    mantissa: int
    bias: int
    special: str
    padding: int = 0

    @property
    def mask(self):
        """All bits of a magnitude."""
        return 2 ** (self.exponent + self.mantissa) - 1

    @property
    def sign(self):
        return 0 if self.special == "scale" else self.mask + 1

    @property
    def max(self):
        """The magnitude of the largest number."""
        return self.mask - {"ieee": 2**self.mantissa, "fn": 1, "none": 0, "fnuz": 0, "scale": 1}[self.special]

    def value(self, magnitude):
        """The exact value of a magnitude, also of max + 1 as if numbers went on."""
        field, fraction = magnitude >> self.mantissa, magnitude % 2**self.mantissa
        if self.special == "scale":
            return Fraction(2) ** (magnitude - self.bias)
        implicit = 2**self.mantissa if field else 0
        return Fraction(implicit + fraction) * Fraction(2) ** (max(field, 1) - self.bias - self.mantissa)

    def first(self, value, above=False):
        """The smallest magnitude of a number that is at least a value, or above it."""
        low, high = 0, self.max + 1
        while low < high:
            middle = (low + high) // 2
            if self.value(middle) > value or (self.value(middle) == value and not above):
                high = middle
            else:
                low = middle + 1
        return low


FORMATS = {
    "fp64": Format(11, 52, 1023, "ieee"),
    "fp32": Format(8, 23, 127, "ieee"),
    "tf32": Format(8, 10, 127, "ieee", 13),
    "fp16": Format(5, 10, 15, "ieee"),
    "bf16": Format(8, 7, 127, "ieee"),
    "e5m2": Format(5, 2, 15, "ieee"),
    "e4m3": Format(4, 3, 7, "fn"),
    "e3m2": Format(3, 2, 3, "none"),
    "e2m3": Format(2, 3, 1, "none"),
    "e2m1": Format(2, 1, 1, "none"),
    "e4m3fnuz": Format(4, 3, 8, "fnuz"),
    "e5m2fnuz": Format(5, 2, 16, "fnuz"),
    "e8m0": Format(8, 0, 127, "scale"),
}


def ite(condition, yes, no):
    return f"(ite {condition} {yes} {no})"


class Specification:
    """The results of converting x, a code of an IEEE format, into another format.

    lines : list of str
        Definitions and assertions.
    """

    def __init__(self, source, target, rounding):
        self.source, self.to, self.rounding = FORMATS[source], FORMATS[target], rounding
        self.width = self.source.exponent + self.source.mantissa + 1
        self.lines = [
            f"(define-fun mag () (_ BitVec {self.width}) (bvand x {self.word(self.source.mask)}))",
            f"(define-fun neg () Bool (bvuge x {self.word(self.source.sign)}))",
            f"(define-fun nan () Bool (bvugt mag {self.word(self.source.max + 1)}))",
            f"(define-fun inf () Bool (= mag {self.word(self.source.max + 1)}))",
            "(define-fun finite () Bool (not (or nan inf)))",
        ]
        if rounding == "stochastic" or target in ("bf16", "tf32"):
            self.in_integers()
        elif target in ("fp16", "fp32"):
            self.in_theory()
        else:
            self.by_codes()

    def word(self, number):
        return f"(_ bv{number} {self.width})"

    def define(self, name, sort, term):
        self.lines.append(f"(define-fun {name} () {sort} {term})")

    def defined(self, magnitude, over, inexact):
        """Name the rounded magnitude, whether it is above max, and whether the rounding changed x."""
        self.define("rounded", f"(_ BitVec {self.width})", magnitude)
        self.define("over", "Bool", f"(and finite {over})")
        if self.to.special == "scale":  # no sign
            inexact = f"(or neg {inexact})"
        self.define("inexact", "Bool", f"(and finite (or over {inexact}))")

    def threshold(self, code, away):
        """The smallest magnitude of the source that rounds to a code, or above it.

        away : whether a directed rounding goes away from zero
        """
        below, here = self.to.value(code - 1), self.to.value(code)
        odd = self.to.special == "scale" or (code - 1) % 2 == 1  # the last bit of the significand below
        if self.rounding.startswith("nearest"):
            tie_stays = self.rounding == "nearest_even" and not odd
            return self.source.first((below + here) / 2, above=tie_stays)
        if self.rounding == "to_odd":
            away = not odd
        return self.source.first(below, above=True) if away else self.source.first(here)

    def by_sign(self, term):
        """term(away): of a directed rounding, for both signs."""
        if self.rounding not in ("upward", "downward"):
            return term(False)
        if self.to.special == "scale":
            return term(self.rounding == "upward")
        return ite("neg", term(self.rounding == "downward"), term(self.rounding == "upward"))

    def over(self):
        return self.by_sign(lambda away: f"(bvuge mag {self.word(self.threshold(self.to.max + 1, away))})")

    def in_theory(self):
        e, m = self.to.exponent, self.to.mantissa + 1
        bits = e + m
        self.lines += [
            f"(define-fun exact () (_ FloatingPoint {self.source.exponent} {self.source.mantissa + 1}) "
            f"((_ to_fp {self.source.exponent} {self.source.mantissa + 1}) x))",
            f"(define-fun result () (_ FloatingPoint {e} {m}) ((_ to_fp {e} {m}) {THEORY[self.rounding]} exact))",
            f"(declare-const result_bits (_ BitVec {bits}))",
            f"(assert (= ((_ to_fp {e} {m}) result_bits) result))",
            f"(define-fun changed () Bool (not (= ((_ to_fp {self.source.exponent} {self.source.mantissa + 1}) RNE "
            "result) exact)))",
        ]
        magnitude = f"((_ zero_extend {self.width - bits + 1}) ((_ extract {bits - 2} 0) result_bits))"
        if self.rounding == "to_odd":
            magnitude = f"(bvor {magnitude} {ite('changed', self.word(1), self.word(0))})"
        self.defined(magnitude, self.over(), "changed")

    def by_codes(self):
        def tree(low, high, away):  # the rounded code lies in low .. high
            if low == high:
                return self.word(low)
            middle = (low + high + 1) // 2
            return ite(f"(bvuge mag {self.word(self.threshold(middle, away))})", tree(middle, high, away),
                       tree(low, middle - 1, away))

        values = {self.to.value(code) for code in range(self.to.max + 1)}
        exact = [f"(= mag {self.word(self.source.first(v))})" for v in sorted(values)]
        self.defined(self.by_sign(lambda away: tree(0, self.to.max + 1, away)), self.over(),
                     f"(not (or {' '.join(exact)}))")

    def in_integers(self):
        """|x| is sig units of the source, and q spacings of the target and a rest: contract section 3."""
        sort = "(_ BitVec 128)"

        def wide(number):
            return f"(_ bv{number} 128)"

        def widened(term, bits):
            return f"((_ zero_extend {128 - bits}) {term})"

        mantissa, to = self.source.mantissa, self.to
        lowest = wide(1 - to.bias + self.source.bias)  # the target's smallest binade, as an exponent of the source
        low = widened(f"((_ extract {mantissa - 1} 0) x)", mantissa)
        self.define("field", sort, f"(bvlshr {widened('mag', self.width)} {wide(mantissa)})")
        self.define("subnormal", "Bool", f"(= field {wide(0)})")
        self.define("sig", sort, ite("subnormal", low, f"(bvadd {low} {wide(2**mantissa)})"))
        self.define("binade", sort, ite("subnormal", wide(1), "field"))
        self.define("kept", sort, ite(f"(bvult binade {lowest})", lowest, "binade"))
        # From 2^100 units on, every |x| is far below half a spacing, and below 2^-32 of one.
        self.define("far", sort, f"(bvadd (bvsub kept binade) {wide(mantissa - to.mantissa)})")
        self.define("spacing", sort, ite(f"(bvult far {wide(100)})", "far", wide(100)))
        self.define("unit", sort, f"(bvshl {wide(1)} spacing)")
        self.define("q", sort, "(bvlshr sig spacing)")
        self.define("rest", sort, "(bvsub sig (bvshl q spacing))")
        if self.rounding == "stochastic":  # away if floor(rest / unit * 2^K) + R >= 2^K
            self.lines += [
                "(declare-const K (_ BitVec 128))", "(declare-const R (_ BitVec 128))",
                f"(assert (and (bvule {wide(1)} K) (bvule K {wide(32)}) (bvult R (bvshl {wide(1)} K))))",
                f"(assert (= {widened('dither', self.width)} (bvshl R (bvsub {wide(self.width)} K))))",
            ]
            away = f"(bvuge (bvadd (bvlshr (bvshl rest K) spacing) R) (bvshl {wide(1)} K))"
        else:
            twice, some, odd = f"(bvshl rest {wide(1)})", f"(not (= rest {wide(0)}))", "(= ((_ extract 0 0) q) #b1)"
            away = {
                "nearest_even": f"(or (bvugt {twice} unit) (and (= {twice} unit) {odd}))",
                "nearest_away": f"(bvuge {twice} unit)",
                "toward_zero": "false",
                "upward": f"(and {some} (not neg))",
                "downward": f"(and {some} neg)",
                "to_odd": f"(and {some} (not {odd}))",
            }[self.rounding]
        self.define("away", "Bool", away)
        magnitude = (f"(bvadd q {ite('away', wide(1), wide(0))} "
                     f"(bvshl (bvsub kept {lowest}) {wide(to.mantissa)}))")
        self.defined(f"((_ extract {self.width - 1} 0) {magnitude})", f"(bvugt rounded {self.word(to.max)})",
                     f"(not (= rest {wide(0)}))")

    def code(self, overflow, nan):
        """The code under a policy for overflow and one for NaN: contract section 4."""
        to = self.to
        signed_nan = to.special in ("ieee", "fn")

        def signed(magnitude):
            return f"(bvor {magnitude} {ite('neg', self.word(to.sign), self.word(0))})" if to.sign else magnitude

        largest = signed(self.word(to.max))
        nan_code = self.word({"fnuz": to.sign, "none": to.max}.get(to.special, to.mask))
        if nan == "preserve_sign" and signed_nan:
            nan_code = signed(nan_code)
        infinite = {"ieee": signed(self.word(to.max + 1)), "none": largest}.get(to.special, nan_code)
        beyond = largest
        if overflow == "ieee":
            stops = {"toward_zero": "true", "to_odd": "true", "upward": "neg", "downward": "(not neg)"}
            if to.special == "scale":
                stops |= {"upward": "false", "downward": "true"}
            beyond = ite(stops.get(self.rounding, "false"), largest, infinite)
        number = signed("rounded")
        if to.special == "fnuz":  # no -0
            number = ite(f"(= rounded {self.word(0)})", self.word(0), number)
        code = ite("nan", nan_code, ite("inf", largest if overflow == "saturate" else infinite,
                                        ite("over", beyond, number)))
        return f"(bvshl {code} {self.word(to.padding)})"

    def goals(self):
        """What the definitions of conversion_script.cpp must equal."""
        goals = ["defined"]
        for p, (overflow, nan) in enumerate((o, n) for o in OVERFLOWS for n in NANS):
            goals += [f"(= code_{p} {self.code(overflow, nan)})", f"(= inexact_{p} inexact)", f"(= overflow_{p} over)"]
        return f"(and {' '.join(goals)})"
