"""Asks a solver whether a script in SMT-LIB 2 has a model.

usage: solve.py SOLVER FILE [NAME ...]      SOLVER: bitwuzla or z3

Prints `unsat`, or `sat` and the values of the named bit-vectors, in hexadecimal; anything else is no answer.
"""

import sys
from pathlib import Path


def bitwuzla(script, names):
    import bitwuzla as b

    options = b.Options()
    options.set(b.Option.PRODUCE_MODELS, True)
    manager = b.TermManager()
    parser = b.Parser(manager, options)
    parser.parse(script, parse_file=False, parse_only=True)
    solver = parser.bitwuzla()
    result = solver.check_sat()
    if result == b.Result.SAT:
        constants = {str(c): c for c in parser.get_declared_funs()}
        return [int(solver.get_value(constants[n]).value(10), 10) for n in names]
    return None if result == b.Result.UNSAT else "unknown"


def z3(script, names):
    import z3 as z

    solver = z.Solver()
    solver.from_string(script)
    result = solver.check()
    if result == z.sat:
        model = {d.name(): solver.model()[d].as_long() for d in solver.model()}
        return [model.get(n, 0) for n in names]
    return None if result == z.unsat else "unknown"


def main():
    solver, file, *names = sys.argv[1:]
    found = {"bitwuzla": bitwuzla, "z3": z3}[solver](Path(file).read_text(), names)
    print("unsat" if found is None else found if found == "unknown" else
          " ".join(["sat", *(f"{value:x}" for value in found)]))


if __name__ == "__main__":
    main()
