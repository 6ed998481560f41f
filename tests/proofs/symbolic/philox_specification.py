"""What a round of Philox4x32 must return, in SMT-LIB 2: contract section 3, from Salmon et al. 2011.

A product is stated as the sum of the operand times each power of two in the multiplier.
"""

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)


def product(word, multiplier):
    wide = f"((_ zero_extend 32) {word})"
    terms = [f"(bvmul {wide} (_ bv{1 << i} 64))" for i in range(32) if multiplier >> i & 1]
    total = terms[0]
    for term in terms[1:]:
        total = f"(bvadd {total} {term})"
    return total


class PhiloxSpecification:
    """The four words after a round.

    lines : list of str
        Definitions.
    """

    lines = [f"(define-fun p{i} () (_ BitVec 64) {product(word, multiplier)})"
             for i, (word, multiplier) in enumerate(zip(("c0", "c2"), MULTIPLIERS))]

    def goals(self):
        high, low = ("((_ extract 63 32) {})".format, "((_ extract 31 0) {})".format)
        expected = [f"(bvxor {high('p1')} c1 key0)", low("p1"), f"(bvxor {high('p0')} c3 key1)", low("p0")]
        return "(and defined " + " ".join(f"(= w{i} {e})" for i, e in enumerate(expected)) + ")"
