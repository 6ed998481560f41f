#!/usr/bin/env python3
"""Changes one thing at a time in numerics/ and reports what no test notices.

usage: tools/mutate.py --cases FILE [--count N] [--seed S] [--files NAME ...] [--jobs N]

FILE is what the program mutation_cases wrote (ctest -R support.mutation_cases, or
BUILD/tests/mutation/mutation_cases FILE): calls with results that the oracle judged. Each mutant is
one change of one operator, number, condition or statement in a copy of numerics/; the small program
tests/mutation/killer.cpp is compiled with it and repeats the calls. A mutant is killed if a result
differs, the program crashes or does not end, or a static_assert fails; one that does not compile
otherwise is not counted. Mutants that change no result, and why, are listed in
tests/mutation/equivalent.txt and left out.

Prints every survivor; the exit status is 1 if fewer than 95 % were killed.
"""

import argparse
import concurrent.futures
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tests" / "mutation" / "equivalent.txt"
FILES = ["add", "arithmetic", "classify", "compare", "convert", "decode", "divide", "encode",
         "integral", "layout", "multiply", "number", "random", "round", "square_root", "word"]
LIMIT = 20  # seconds for the compiler, and for the killer
ENOUGH = 0.95

# (what is looked for, what it becomes); operators stand between spaces, templates' brackets do not.
SWAPS = [(r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
         (r" == ", " != "), (r" != ", " == "), (r" \+ ", " - "), (r" - ", " + "),
         (r" \* ", " + "), (r" << ", " >> "), (r" >> ", " << "), (r" & ", " | "), (r" \| ", " & "),
         (r" \^ ", " | "), (r" && ", " || "), (r" \|\| ", " && "), (r"\btrue\b", "false"),
         (r"\bfalse\b", "true"), (r"!(?=[a-z(])", ""), (r"(?<=[(, ])-(?=[a-z])", ""),
         (r"\bflags::(?!none)\w+", "flags::none"), (r"\bflags::none\b", "flags::inexact"),
         (r" \? (?P<a>[^?:;]+) : (?P<b>[^?:;)]+)", r" ? \g<b> : \g<a>")]
NUMBER = re.compile(r"(?<![\w.])(?P<digits>0x[0-9A-Fa-f]+|\d+)(?=[uU]?\b)")
STATEMENT = re.compile(r"^\s+(?:if \([^{]*\) )?(?:[a-z_]\w*(?:\.\w+)* [|^&+*-]?(?:<<|>>)?= |--\w|\+\+\w|return ).*;$")


def code_lines(text):
    """(index, line) of lines that hold rules: no comments, includes, assertions or bare structure."""
    checks = False
    for i, line in enumerate(text.splitlines()):
        checks = (checks or line.startswith("namespace checks")) and "}  // namespace checks" not in line
        code = line.split("//")[0].rstrip()
        if checks or not code.strip() or code.lstrip().startswith(("#", "static_assert", "template",
                                                                   "using ", "namespace ")):
            continue
        yield i, line


def mutants_of(name):
    """(file, line index, the line, the changed line)"""
    text = (ROOT / "numerics" / f"{name}.hpp").read_text(encoding="utf-8")
    for i, line in code_lines(text):
        code = line.split("//")[0]
        rest = line[len(code):]
        for pattern, replacement in SWAPS:
            for match in re.finditer(pattern, code):
                changed = code[:match.start()] + match.expand(replacement) + code[match.end():]
                yield name, i, line, changed + rest
        for match in NUMBER.finditer(code):
            number = int(match["digits"], 0)
            changed = code[:match.start()] + str(number + 1) + code[match.end():]
            yield name, i, line, changed + rest
        if STATEMENT.match(code.rstrip()) and "return {}" not in code:
            indent = code[:len(code) - len(code.lstrip())]
            if not code.lstrip().startswith("return "):  # deleting a plain return leaves none
                yield name, i, line, indent + ";"


def equivalents():
    """{(file, line, changed line)} of the list; whitespace at the ends does not matter."""
    found, entry = set(), []
    for line in EQUIVALENT.read_text(encoding="utf-8").splitlines():
        if line.startswith(("file ", "from ", "to   ")):
            entry.append(line[5:].strip())
        if len(entry) == 3:
            found.add(tuple(entry))
            entry = []
    return found


def run(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT,
                          errors="replace", check=False)


def judge(mutant, arguments):
    """"killed", "survived" or "invalid", and by what."""
    name, index, _, changed = mutant
    with tempfile.TemporaryDirectory() as folder:
        numerics = pathlib.Path(folder) / "numerics"
        shutil.copytree(ROOT / "numerics", numerics)
        path = numerics / f"{name}.hpp"
        lines = path.read_text(encoding="utf-8").splitlines()
        lines[index] = changed
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            built = run([arguments.compiler, "-std=c++20", "-Og", "-w", f"-I{folder}",
                         f"-I{ROOT / 'include'}", f"-I{ROOT / 'tests'}",
                         str(ROOT / "tests" / "mutation" / "killer.cpp"), "-o", "killer"], folder)
        except subprocess.TimeoutExpired:
            return "killed", "the compiler does not end"
        if built.returncode != 0:
            asserted = "static assertion" in built.stderr or "static_assert" in built.stderr
            return ("killed", "static_assert") if asserted else ("invalid", "")
        try:
            done = run(["./killer", str(arguments.cases)], folder)
        except subprocess.TimeoutExpired:
            return "killed", "does not end"
        if done.returncode == 0:
            return "survived", ""
        return "killed", done.stdout.strip() or "crash"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=250, help="drawn mutants; 0: all there are")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", nargs="*", default=FILES, help="headers of numerics/, no suffix")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--compiler", default="c++")
    arguments = parser.parse_args()
    arguments.cases = arguments.cases.resolve()
    left_out = equivalents()
    mutants = [m for name in arguments.files for m in mutants_of(name)]
    listed = [m for m in mutants if (m[0], m[2].strip(), m[3].strip()) in left_out]
    mutants = [m for m in mutants if m not in listed]
    total = len(mutants)
    if 0 < arguments.count < total:
        mutants = random.Random(arguments.seed).sample(mutants, arguments.count)
    counts = {"killed": 0, "survived": 0, "invalid": 0}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, (verdict, _) in zip(mutants, pool.map(lambda m: judge(m, arguments), mutants)):
            counts[verdict] += 1
            if verdict == "survived":
                print(f"survived: numerics/{mutant[0]}.hpp:{mutant[1] + 1}\n  - {mutant[2].strip()}\n"
                      f"  + {mutant[3].strip()}", flush=True)
    valid = counts["killed"] + counts["survived"]
    share = counts["killed"] / valid if valid else 0.0
    print(f"{len(mutants)} of {total} mutants: {counts['killed']} killed of {valid} that compile, "
          f"{100 * share:.1f} %; {len(listed)} equivalent ones left out")
    return 0 if share >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
