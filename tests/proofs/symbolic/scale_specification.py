"""What a scale rule must return, in SMT-LIB 2: contract section 7 and the table of samebits/core/scaling.hpp.

quotient and product are functions of which nothing is known. So the statements hold for every quotient, those that
no amax has included. Powers of two are stated by the smallest operand of each exponent, from exact fractions.
"""

from fractions import Fraction

from specification import FORMATS, ite

RULES = ("te", "div", "rcp", "pow2", "dg_cuda", "dg_tile", "sgl_v2", "te_pow2", "mx_floor", "mx_ceil", "mx_even",
         "mx_rceil")
NONFINITE = ("te", "skip_nonfinite", "propagate", "skip_nan")
FP32 = FORMATS["fp32"]
INF, LARGEST, ONE, NAN, NO_AMAX = FP32.max + 1, FP32.max, 0x3F800000, FP32.mask, 2**32 - 1
SMALLEST_NORMAL = 0x00800000


def word(number):
    return f"(_ bv{number} 32)"


def bits_of(value):
    """The binary32 bits of a value that binary32 has."""
    magnitude = FP32.first(value)
    assert FP32.value(magnitude) == value
    return magnitude


def power(exponent):
    return Fraction(2) ** exponent


def exponent_of(operand, at_least, lowest):
    """The largest i in lowest .. 254 with operand >= at_least(i), magnitudes of binary32; else lowest."""
    def tree(low, high):
        if low == high:
            return word(low)
        middle = (low + high + 1) // 2
        return ite(f"(bvuge {operand} {word(at_least(middle))})", tree(middle, high), tree(low, middle - 1))

    return tree(lowest, 254)


def power_at_or_above(t, lowest):
    """The exponent field of the least power of two that is at least t; 254 for Inf and NaN."""
    return exponent_of(t, lambda i: FP32.first(power(i - 1 - 127), above=True), lowest)


def power_bits(field):
    """2^(field - 127); field 0 is a subnormal number of binary32."""
    return ite(f"(= {field} {word(0)})", word(bits_of(power(-127))), f"(bvmul {field} {word(2**23)})")


def formula(rule, to):
    """The scale and the factor of an amax a that is not 0."""
    m = bits_of(to.value(to.max))
    largest_exponent = (to.value(to.max).numerator.bit_length() - 1)  # of M, a whole number
    raised = "(ite (bvult {0} {1}) {1} {0})".format
    a_by_m, m_by_a = f"(quotient a {word(m)})", f"(quotient {word(m)} a)"
    a_times = f"(product a (quotient {word(ONE)} {word(m)}))"

    def reciprocal(s):
        return f"(quotient {word(ONE)} {s})"

    def of_field(field):
        return power_bits(field), power_bits(f"(bvsub {word(254)} {field})")

    def at_most(r):  # 2^126; NaN stays NaN
        return ite(f"(and (bvugt {r} {word(0x7E800000)}) (bvule {r} {word(INF)}))", word(0x7E800000), r)

    if rule in ("te", "te_pow2"):
        factor = ite(f"(= {m_by_a} {word(INF)})", word(LARGEST), m_by_a)
        if rule == "te_pow2":  # the power of two at or below; NaN stays NaN, and what is below 2^-126 becomes 0
            field = exponent_of(factor, lambda i: bits_of(power(i - 127)) if i else 0, 0)
            cut = ite(f"(= {field} {word(0)})", word(0), power_bits(field))
            factor = ite(f"(bvugt {factor} {word(INF)})", factor, cut)
        return reciprocal(factor), factor
    if rule in ("div", "rcp", "dg_tile"):
        s = raised(a_by_m, word(SMALLEST_NORMAL))
        return s, {"div": s, "rcp": reciprocal(s), "dg_tile": at_most(m_by_a)}[rule]
    if rule in ("dg_cuda", "sgl_v2"):
        s = raised(a_times, word(SMALLEST_NORMAL))
        return s, reciprocal(s) if rule == "dg_cuda" else at_most(m_by_a)
    if rule == "pow2":
        return of_field(power_at_or_above(a_by_m, 1))
    if rule == "mx_rceil":
        return of_field(power_at_or_above(a_by_m, 0))

    def first(i):  # the least a with exponent field i
        top = power(i - 127 + largest_exponent)
        if rule == "mx_floor":
            return FP32.first(top)
        if rule == "mx_ceil":
            return FP32.first(top / 2, above=True)
        return FP32.first(top * (1 - power(-to.mantissa - 2)))  # mx_even: a rounds up to 2^k

    return of_field(ite(f"(bvuge a {word(INF)})", word(254), exponent_of("a", first, 0)))


class ScaleSpecification:
    """The scale of an amax.

    lines : list of str
        Definitions and assertions.
    """

    def __init__(self, rule, target, nonfinite, eps, upper):
        nan = f"(= amax {word(NAN)})" if nonfinite == "propagate" else "false"
        sort = "(_ BitVec 32)"
        self.lines = [
            f"(assert (or (bvule amax {word(INF)}) (= amax {word(NO_AMAX)}) {nan}))",
            f"(define-fun raised () {sort} (ite (bvult amax {word(eps)}) {word(eps)} amax))",
            f"(define-fun a () {sort} (ite (bvugt amax {word(INF)}) amax "
            f"(ite (bvugt raised {word(upper)}) {word(upper)} raised)))",
            f"(define-fun no_scale () Bool (or (= amax {word(NO_AMAX)}) "
            f"{f'(= amax {word(INF)})' if nonfinite == 'te' else 'false'}))",
        ]
        scale, factor = formula(rule, FORMATS[target])
        if rule.startswith("mx_") and nonfinite == "propagate":
            scale, factor = (ite(f"(bvuge a {word(INF)})", word(NAN), x) for x in (scale, factor))
        zero = f"(or no_scale (= a {word(0)}))"
        self.lines += [f"(define-fun expected_scale () {sort} {ite(zero, word(ONE), scale)})",
                       f"(define-fun expected_factor () {sort} {ite(zero, word(ONE), factor)})"]

    def goals(self):
        return "(and defined (= scale expected_scale) (= factor expected_factor))"
