"""Proves conversions, scale rules and Philox for all operands, by two solvers, and finds planted errors.

usage: prove.py ROOT CXX [--all] [--only REGEX] [--jobs N]

The programs *_script.cpp say what the code of numerics/ computes, as bit-vector terms; the modules
*specification.py say what the contract demands. A proof is done when no solver finds an operand for which the two
differ. Then an error is planted in a copy of numerics/ for each proof: the solver must find an operand, and the
program made from the copy must return another result for it than the right one.

--all  every pair, rounding and scale rule; else those that take 4 minutes of processor time
"""

import argparse
import concurrent.futures
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from philox_specification import PhiloxSpecification
from scale_specification import INF, NONFINITE, RULES, ScaleSpecification
from specification import FORMATS, ROUNDINGS, Specification

HERE = pathlib.Path(__file__).parent
SOLVERS = ("bitwuzla", "z3")
SMALL_EPS, BOUND = 0x2EDBE6FF, 0x44160000  # 1e-10 and 600

# Planted errors: file of numerics/, text, text with the error.
ROUND, ENCODE, SCALE = "bits/round.hpp", "bits/encode.hpp", "quantize/scale.hpp"
OF_ROUNDING = {
    "nearest_even": (ROUND, "(odd & below & one)", "(below & one)"),
    "nearest_away": (ROUND, "(below >> element{1}) + (below & one);", "(below >> element{1});"),
    "toward_zero": (ROUND, "toward_zero: break;", "toward_zero: addend = below & one; break;"),
    "upward": (ROUND, "select(negative, zero, below)", "select(negative, zero, below >> element{1})"),
    "downward": (ROUND, "select(negative, below, zero)", "select(negative, below >> element{1}, zero)"),
    "to_odd": (ROUND, "(odd & one) == zero, below, zero", "(odd & one) == zero, zero, below"),
    "stochastic": (ROUND, "dither >> element{1}) >> (Word(limit)", "dither >> element{2}) >> (Word(limit)"),
}
# Stochastic rounding into another range of exponents goes by the carry of a word.
CARRY = (ROUND, "(fraction + dither) < fraction", "(fraction + dither + Word(element{1})) < fraction")
OF_TARGET = {
    "e8m0": (ENCODE, "biased - floor + (r.q - Word(element{1}))", "biased - floor + r.q"),
}
OF_SCALE = {
    "te": (SCALE, "quotient == inf, largest_factor, quotient", "quotient == inf, inf, quotient"),
    "pow2": (SCALE, "max_word(field_above(t), Word(1u))", "max_word(t >> 23u, Word(1u))"),
    "mx_floor": (SCALE, "Word field = a >> 23u;", "Word field = field_above(a);"),
    "mx_ceil": (SCALE, "field = field_above(a);", "field = a >> 23u;"),
    "mx_even": (SCALE, "(a + Word(half)) >> 23u", "(a + Word(half - 1)) >> 23u"),
    "mx_rceil": (SCALE, "minimum, field_above(t)", "minimum, t >> 23u"),
    # What a quotient is stays open in the proof, so these errors change the scale of almost every amax.
    **dict.fromkeys(("div", "rcp", "dg_tile"), (SCALE, ": Arithmetic::quotient(a, largest)",
                                                ": Arithmetic::quotient(largest, a)")),
    **dict.fromkeys(("dg_cuda", "sgl_v2"), (SCALE, "Arithmetic::quotient(one, largest)",
                                            "Arithmetic::quotient(largest, one)")),
}
# The reciprocal of every scale: for te_pow2, and for te with bounds, where no real quotient is Inf.
RECIPROCAL = (SCALE, "quotient(Word(binary32::one), factor)", "quotient(factor, Word(binary32::one))")
# Without this limit some shift is as long as the word: C++ does not define it.
UNDEFINED = (ROUND, "min_word(shift, Word(limit))", "shift")


class Conversion:
    """fp64 or fp32 into a format by one rounding; every policy for overflow and NaN at once."""

    program, logic = "conversion_script", "QF_BVFP"
    names = ("x", "dither")

    def __init__(self, source, target, rounding):
        self.arguments = (source, target, rounding)
        self.plant = OF_TARGET.get(target, OF_ROUNDING[rounding])
        if rounding == "stochastic" and FORMATS[target].bias != FORMATS[source].bias:
            self.plant = CARRY

    def specification(self):
        return Specification(*self.arguments)

    def is_quick(self):
        source, target, rounding = self.arguments
        if rounding == "stochastic":
            return source == "fp32" and target in ("bf16", "e4m3")
        return source == "fp64" and target in ("fp32", "fp16", "bf16", "e4m3", "e5m2")


class Scale:
    """The scale of every amax by one rule, with bounds of the amax."""

    program, logic = "scale_script", "QF_UFBV"
    names = ("amax",)

    def __init__(self, rule, target, nonfinite, eps, upper):
        self.values = (rule, target, nonfinite, eps, upper)
        self.arguments = (rule, target, nonfinite, f"{eps:x}", f"{upper:x}")
        of_te = rule == "te_pow2" or (rule == "te" and upper != INF)
        self.plant = RECIPROCAL if of_te else OF_SCALE[rule]

    def specification(self):
        return ScaleSpecification(*self.values)

    def is_quick(self):
        return self.values[1:] == ("e4m3", "te", 0, INF)


class Philox:
    """One round of Philox4x32: the products of 32 bits and what is made of them."""

    program, logic, arguments = "philox_script", "QF_BV", ("philox", "round")
    names = ("c0", "c1", "c2", "c3", "key0", "key1")
    plant = ("bits/random.hpp", "(p1 >> half) ^ c[1] ^ key0", "(p1 >> half) ^ c[3] ^ key0")
    specification = PhiloxSpecification

    def is_quick(self):
        return True


def proofs():
    yield Philox()
    for source, target in itertools.product(("fp64", "fp32"), FORMATS):
        if target != "fp64" and target != source:
            roundings = [*ROUNDINGS, *(["stochastic"] if target != "e8m0" else [])]
            yield from (Conversion(source, target, rounding) for rounding in roundings)
    for rule, target, nonfinite in itertools.product(RULES, ("e4m3", "e5m2"), NONFINITE):
        yield Scale(rule, target, nonfinite, 0, INF)
        yield Scale(rule, target, nonfinite, SMALL_EPS, BOUND)


class Programs:
    """The programs made from the sources, and from copies with an error."""

    def __init__(self, root, compiler, work):
        self.root, self.compiler, self.work = root, compiler, work
        self.built = {}

    def path(self, program, plant=None):
        key = (program, plant)
        if key not in self.built:
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.work))
            if plant is not None:
                shutil.copytree(self.root / "numerics", folder / "numerics")
                file = folder / "numerics" / plant[0]
                text = file.read_text()
                assert text.count(plant[1]) == 1, f"{plant[0]}: not once: {plant[1]}"
                file.write_text(text.replace(plant[1], plant[2]))
            subprocess.run([self.compiler, "-std=c++20", "-O0", "-fsanitize=shift", "-fno-sanitize-recover=all",
                            f"-I{folder}", f"-I{self.root}", f"-I{self.root / 'include'}",
                            HERE / f"{program}.cpp", "-o", folder / program], check=True)
            self.built[key] = folder / program
        return self.built[key]


def output(program, *arguments):
    """The standard output of a program; None if it failed."""
    run = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else None


def script_of(proof, program):
    specification = proof.specification()
    definitions = output(program, *proof.arguments)
    return "\n".join([f"(set-logic {proof.logic})", definitions, *specification.lines,
                      f"(assert (not {specification.goals()}))", ""])


def solved(solver, script, names, work):
    """`unsat`, or `sat` with operands."""
    with tempfile.NamedTemporaryFile("w", dir=work, suffix=".smt2") as file:
        file.write(script)
        file.flush()
        run = subprocess.run([sys.executable, HERE / "solve.py", solver, file.name, *names], capture_output=True,
                             text=True, check=False, timeout=1800)
    return run.stdout.strip() or run.stderr.strip()[-300:]


def failures(proof, programs, work):
    """What is wrong with a proof and its planted error: texts."""
    right, wrong = programs.path(proof.program), programs.path(proof.program, proof.plant)
    script = script_of(proof, right)
    for solver in SOLVERS:
        answer = solved(solver, script, proof.names, work)
        if answer != "unsat":
            yield f"{solver}: {answer}"
    answer = solved(SOLVERS[0], script_of(proof, wrong), proof.names, work).split()
    if answer[0] != "sat":
        yield f"the planted error is not found: {answer}"
    elif output(right, *proof.arguments, *answer[1:]) == output(wrong, *proof.arguments, *answer[1:]):
        yield f"the counterexample does not replay: {answer}"


def undefined_shift_is_found(programs, work):
    """A shift that C++ does not define is found, and the program with it stops there."""
    proof = Conversion("fp32", "fp16", "toward_zero")
    wrong = programs.path(proof.program, UNDEFINED)
    answer = solved(SOLVERS[0], script_of(proof, wrong), proof.names, work).split()
    return answer[0] == "sat" and output(wrong, *proof.arguments, *answer[1:]) is None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("compiler")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    chosen = [p for p in proofs()
              if (arguments.all or p.is_quick()) and re.search(arguments.only, " ".join(p.arguments))]
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        programs = Programs(arguments.root, arguments.compiler, work)
        for p in chosen:  # compile one after another
            programs.path(p.program), programs.path(p.program, p.plant)

        def done(proof):
            begin = time.monotonic()
            return proof, list(failures(proof, programs, work)), time.monotonic() - begin

        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for proof, wrong, seconds in pool.map(done, chosen):
                print(f"{' '.join(proof.arguments):40} {'; '.join(wrong) or 'proved'} {seconds:.1f} s", flush=True)
                failed += bool(wrong)
        if not undefined_shift_is_found(programs, work):
            print("a shift that C++ does not define is not found")
            failed += 1
    print(f"{len(chosen)} proofs by {' and '.join(SOLVERS)}, each with a planted error: {failed} failures")
    return failed != 0 or not chosen


if __name__ == "__main__":
    sys.exit(main())
