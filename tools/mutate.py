#!/usr/bin/env python3
"""Changes one thing at a time in numerics/ and reports what no test notices.

usage: tools/mutate.py BUILD [--each N] [--seed S] [--files NAME ...] [--headers N] [--jobs N] [--least PERCENT]

Each mutant is one change of one operator, number, condition or statement in a copy of numerics/. The
tests of its header (TESTS below) are compiled with that copy, linked with libraries and
tests of BUILD, a built tree, and run. A mutant is killed if a test fails, crashes or does not end,
or if a static_assert fails; a mutant that does not compile otherwise is not counted. Mutants that
change no result, and why, are listed in tests/mutation/equivalent.txt and left out.

Which mutants are chosen depends on the seed and on their own text: a change of one line of a header
leaves the choice of all other lines as it was. --headers takes N headers, others for each commit, and
those that the commit or the working tree changes.

Prints every survivor and a table of headers. The exit status is 1 if fewer than PERCENT of the
counted mutants were killed, and 2 if a test fails without a change.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tests" / "mutation" / "equivalent.txt"
CPU_LIMIT = 40  # seconds of processor time for the compiler, and for a test
WALL_LIMIT = 300  # seconds for a test whose threads wait for each other
# Tests stop at their first failure, and RapidCheck draws the same cases in every run. (It counts 100
# cases as its default, in whose place properties set a number of their own.)
ENVIRONMENT = {"GTEST_FAIL_FAST": "1", "RC_PARAMS": "seed=1 max_success=101 noshrink=1"}


@dataclasses.dataclass(frozen=True)
class Test:
    """One test program of some headers."""
    headers: str  # names without suffix
    compiled: list  # sources compiled with the changed copy; paths in the repository
    built: list = ()  # test sources whose object files are taken from the build
    runs: list = ("",)  # command lines' arguments; {cases} is the file of mutation_cases
    definition: str = "MUTANT"  # of a macro, for the compiler

# A mutant meets the tests of its header in this order, until one kills it.
TESTS = [
    Test("add arithmetic classify compare convert decode divide encode integral layout multiply "
          "number random round square_root word", ["tests/mutation/killer.cpp"], runs=["{cases}"]),
    Test("binary32 by_definition", ["tests/unit/binary32_test.cpp"]),
    Test("binary64", ["tests/unit/binary64_test.cpp"]),
    Test("accumulate", ["tests/unit/accumulate_test.cpp"]),
    Test("accumulate", ["tests/exhaustive/accumulate_sweep.cpp"], runs=["60000"]),
    Test("ex2 ex2_table interpolation lg2 lg2_table operand rcp rcp_table rsqrt rsqrt_table sqrt "
          "sqrt_table squarer subnormals", ["tests/unit/function_units_test.cpp"]),
    Test("half_results interpolation operand sin_table sin_unit squarer tanh_table tanh_unit "
          "truncated_number", ["tests/unit/function_units_recorded_test.cpp"]),
    Test("truncated_number", ["tests/unit/function_units_test.cpp"]),
    Test("erf erfc exp expm1 fast_divide log log1p pow rsqrt_function sin steps tanh two_over_pi",
         ["tests/unit/cuda_functions_test.cpp"]),
    Test("binary64_steps exact_function exact_functions exponential logarithm normal_tail "
          "sigmoid_gradients sigmoids", ["tests/unit/exact_functions_test.cpp"]),
    Test("fast_values", ["tests/unit/fast_values_test.cpp"]),
    Test("fixed_point fixed_point_constants rotary",
         ["tests/unit/fixed_point_test.cpp", "tests/unit/rotary_test.cpp",
          "backends/api/functions/rotary.cpp"]),
    Test("activation_gradients activations evaluate function_gradients power tensor_format",
         ["tests/unit/torch_operators_test.cpp"]),
    Test("attention", ["tests/unit/attention_test.cpp"]),
    Test("attention_plan", ["tests/unit/attention_plan_test.cpp"]),
    Test("k_slices", ["tests/unit/k_slices_test.cpp"]),
    Test("hash", ["tests/unit/hash_test.cpp", "backends/reference/reductions/hash.cpp"]),
    Test("axis_plan axis_reduction row_order", ["tests/unit/axis_reductions_test.cpp"]),
    Test("row_layer_norm", ["tests/unit/layer_norm_test.cpp"]),
    Test("cross_entropy embedding_gradient foreach_norm nll_loss norm_parameters",
         ["tests/unit/training_functions_test.cpp"]),
    Test("fused_elements",
         ["backends/reference/functions/fused.cpp", "backends/api/functions/operators.cpp"],
         ["tests/engine/suites/functions_test.cpp"], runs=["--gtest_filter=FusedOperators*"]),
    Test("scores", ["tests/unit/scores_test.cpp"]),
    Test("scores",
         ["backends/reference/functions/row_functions.cpp", "backends/api/functions/scaled_softmax.cpp"],
         ["tests/engine/suites/functions_test.cpp"], runs=["--gtest_filter=RowFunctions*"]),
    Test("row_order row_softmax", ["tests/unit/row_functions_test.cpp"]),
    Test("compiled_activations evaluate full_divide triton_functions triton_softmax",
         ["tests/unit/triton_functions_test.cpp"]),
    Test("element_counts", ["tests/unit/element_counts_test.cpp"]),
    Test("statistics", ["tests/unit/quantize_statistics_test.cpp"]),
    Test("scale tile", ["tests/unit/scale_test.cpp"]),
    Test("codebook int8_rows", ["tests/unit/codebook_test.cpp", "backends/reference/codebook.cpp"]),
    Test("four_over_six scale tile two_levels", ["backends/reference/quantize.cpp"],
          ["tests/engine/suites/oracle/quantize_oracle.cpp"],
          runs=["--gtest_filter=-PresetOracle*", "--gtest_filter=PresetOracle*NVFP4*"]),
    Test("dot exact_sum", ["tests/unit/dot_test.cpp"]),
    Test("dot exact_sum", ["backends/reference/matmul.cpp"],
          ["tests/engine/suites/oracle/matmul_oracle.cpp"]),
    Test("big_integer text", ["backends/reference/text.cpp"],
          ["tests/unit/text_test.cpp", "tests/property/text_property.cpp"]),
    Test("loss_scale", ["tests/unit/loss_scale_test.cpp"]),
    Test("loss_scale", ["tests/exhaustive/loss_scale_laws.cpp"], runs=["1000"]),
    Test("loss_scale_compat", ["tests/golden/loss_scale_golden.cpp"],
         definition=f'SAMEBITS_GOLDEN_TRACES="{ROOT}/tests/golden/loss_scale"'),
    Test("decide inspect squares", ["tests/unit/decide_test.cpp"]),
    Test("gradient_report", ["tests/unit/gradient_report_test.cpp"]),
    Test("inspect squares",
          ["backends/reference/list.cpp", "backends/threads/tensor_list.cpp",
           "backends/api/lists/tensor_list_operations.cpp"],
          ["tests/engine/suites/oracle/lists_oracle.cpp"]),
    Test("list", ["tests/unit/tensor_list_test.cpp", "backends/api/lists/tensor_list.cpp",
                   "backends/reference/list.cpp"], ["tests/engine/suites/oracle/lists_oracle.cpp"]),
    Test("list_ops", ["tests/unit/tensor_list_operations_test.cpp", "backends/reference/list.cpp"],
          ["tests/engine/suites/oracle/lists_oracle.cpp"]),
    Test("constants lamb lion stored", ["tests/unit/optimizer_test.cpp"]),
    Test("dynamic_codes dynamic_values", ["tests/unit/dynamic_codes_test.cpp"]),
    Test("adam adam_libraries adam_torch constants dynamic_codes lamb lion sgd stored update "
          "update_arithmetic update_tables",
          ["backends/reference/optimizer.cpp", "backends/threads/optimizer.cpp",
           "backends/api/optimizer/optimizer_list.cpp"],
          ["tests/engine/suites/oracle/optimizer_oracle.cpp"]),
    Test("agreement", ["tests/unit/agreement_test.cpp", "backends/loss_scaler/agreement.cpp"]),
    Test("rank_sum tile", ["tests/unit/rank_sum_test.cpp", "backends/ranks/gradient_reduction.cpp"],
          ["tests/engine/suites/oracle/gradients_oracle.cpp"]),
    Test("report_ring", ["tests/unit/report_ring_test.cpp", "backends/loss_scaler/report_ring.cpp"],
          runs=["--gtest_filter=-*AtOnce*"]),  # whose threads meet differently in every run
    Test("sum_tree", ["tests/unit/sum_tree_test.cpp"]),
    Test("shard_tree", ["tests/property/shard_tree_property.cpp", "backends/ranks/shard_layout.cpp"]),
]
LIBRARIES = ["tests/tensor_cores/libsamebits_tensor_core_cases.a",
             "tools/tensor_core_probe/libsamebits_tensor_core_probe.a",
             "tests/testkit/libsamebits_testkit.a", "tests/testkit/libsamebits_testkit_checks.a",
             "libsamebits_core.a"]
# What the tests include of others: read once, not for every mutant.
PRECOMPILED = ["gtest/gtest.h", "algorithm", "bit", "cmath", "cstdint", "functional", "limits",
               "random", "string", "thread", "vector"]

# (what is looked for, what it becomes); operators stand between spaces, templates' brackets do not.
SWAPS = [(r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
         (r" == ", " != "), (r" != ", " == "), (r" \+ ", " - "), (r" - ", " + "),
         (r" \* ", " + "), (r" << ", " >> "), (r" >> ", " << "), (r" & ", " | "), (r" \| ", " & "),
         (r" \^ ", " | "), (r" && ", " || "), (r" \|\| ", " && "), (r"\btrue\b", "false"),
         (r"\bfalse\b", "true"), (r"!(?=[a-z(])", ""), (r"(?<=[(, ])-(?=[a-z])", ""),
         (r"\bflags::(?!none)\w+", "flags::none"), (r"\bflags::none\b", "flags::inexact"),
         (r" \? (?P<a>[^?:;]+) : (?P<b>[^?:;)]+)", r" ? \g<b> : \g<a>")]
# A call of two plain arguments, which becomes the first of them.
CALL = re.compile(r"(?<![\w:.])[\w:]+(?:<[^<>()]*>)?\((?P<a>[\w.\[\]]+), [\w.\[\]]+\)")
NUMBER = re.compile(r"(?<![\w.])(?P<digits>0x[0-9A-Fa-f]+|\d+)(?=[uU]?\b)")
STATEMENT = re.compile(r"^\s+(?:if \([^{]*\) )?(?:[a-z_]\w*(?:\.\w+)* [|^&+*-]?(?:<<|>>)?= |--\w|\+\+\w|return ).*;$")


@dataclasses.dataclass(frozen=True)
class Mutant:
    header: str
    index: int  # of the line
    line: str
    changed: str

    def key(self):
        return self.header, self.line.strip(), self.changed.strip()

    def __str__(self):
        return (f"{path_of(self.header).relative_to(ROOT)}:{self.index + 1}\n  - {self.line.strip()}\n"
                f"  + {self.changed.strip()}")


def path_of(header):
    """Where in numerics/ a header stands. No two folders there hold headers of one name."""
    (path,) = (ROOT / "numerics").rglob(f"{header}.hpp")
    return path


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


def mutants_of(header):
    text = path_of(header).read_text(encoding="utf-8")
    for i, line in code_lines(text):
        code = line.split("//")[0]
        rest = line[len(code):]
        for pattern, replacement in SWAPS:
            for match in re.finditer(pattern, code):
                changed = code[:match.start()] + match.expand(replacement) + code[match.end():]
                yield Mutant(header, i, line, changed + rest)
        for match in CALL.finditer(code):
            changed = code[:match.start()] + match["a"] + code[match.end():]
            yield Mutant(header, i, line, changed + rest)
        for match in NUMBER.finditer(code):
            if header == "exact_functions" and code.startswith("}", match.end()):
                continue  # the sum of all results, which only the sweep over 2^32 operands compares
            number = int(match["digits"], 0)
            changed = code[:match.start()] + str(number + 1) + code[match.end():]
            yield Mutant(header, i, line, changed + rest)
        if STATEMENT.match(code.rstrip()) and "return {}" not in code:
            indent = code[:len(code) - len(code.lstrip())]
            if not code.lstrip().startswith("return "):  # deleting a plain return leaves none
                yield Mutant(header, i, line, indent + ";")


def shuffled(mutants, seed):
    """In an order that depends on the seed and on each mutant's own text and number."""
    seen = {}
    def rank(mutant):
        seen[mutant.key()] = seen.get(mutant.key(), -1) + 1
        return hashlib.sha256(repr((seed, mutant.key(), seen[mutant.key()])).encode()).digest()
    return sorted(mutants, key=rank)


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
    """The command with a limit on processor time, which a busy machine does not use up."""
    limited = ["bash", "-c", f'ulimit -t {CPU_LIMIT} -v 8000000; exec "$@"', "limited", *command]
    return subprocess.run(limited, cwd=folder, capture_output=True, text=True, errors="replace",
                          timeout=WALL_LIMIT, check=False, env=os.environ | ENVIRONMENT)


class Bench:
    """Compiles and runs the tests."""

    def __init__(self, build, compiler, scratch):
        self.build, self.compiler, self.scratch = build, compiler, scratch
        self.cases = build / "tests" / "mutation" / "cases.bin"
        if not self.cases.exists():
            subprocess.run([build / "tests" / "mutation" / "mutation_cases", self.cases], check=True)
        self.flags = ["-std=c++20", "-O1", "-w", "-DSAMEBITS_TEST_INSTRUMENTED=1"]
        header = scratch / "precompiled.hpp"
        header.write_text("".join(f"#include <{name}>\n" for name in PRECOMPILED))
        subprocess.run([compiler, *self.flags, "-x", "c++-header", header, "-o",
                        f"{header}.gch"], check=True)

    def copy(self, folder, mutant):
        numerics = pathlib.Path(folder) / "numerics"
        shutil.copytree(ROOT / "numerics", numerics)
        # Forced inlining takes the compiler more time than everything else together.
        config = pathlib.Path(folder) / "samebits" / "core" / "config.hpp"
        config.parent.mkdir(parents=True)
        config.write_text((ROOT / "include" / "samebits" / "core" / "config.hpp").read_text()
                          .replace("[[gnu::always_inline]] inline", "inline"))
        if mutant is not None:
            path = pathlib.Path(folder) / path_of(mutant.header).relative_to(ROOT)
            lines = path.read_text(encoding="utf-8").splitlines()
            lines[mutant.index] = mutant.changed
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def object_of(self, source):
        path = pathlib.Path(source)
        found = [file for folder in path.parents for file in
                 (self.build / folder / "CMakeFiles").glob(f"*/{path.relative_to(folder)}.o")]
        if not found:
            sys.exit(f"{self.build} holds no object file of {source}: build all tests first (tools/test.sh --all)")
        return found[0]

    def verdict(self, test, folder):
        """"killed", "survived" or "invalid", and by what."""
        # The library's objects hold several sources each: where a changed source stands in one, the
        # linker takes the changed definition, which comes first.
        compiled = run([self.compiler, *self.flags, "-Wl,--allow-multiple-definition",
                        f"-D{test.definition}", "-include", self.scratch / "precompiled.hpp",
                        f"-I{folder}", f"-I{ROOT}", f"-I{ROOT / 'include'}", f"-I{ROOT / 'tests'}", f"-I{ROOT / 'tools'}",
                        f"-I{ROOT / 'tests' / 'testkit'}",
                        *(ROOT / source for source in test.compiled),
                        *(self.object_of(source) for source in test.built),
                        *(self.build / library for library in LIBRARIES),
                        "-lrapidcheck", "-lgtest_main", "-lgtest", "-lpthread", "-s",
                        "-o", "test"], folder)
        if compiled.returncode != 0:
            error = compiled.stderr
            if "static assertion" in error or "static_assert" in error:
                return "killed", "static_assert"
            return "invalid", error
        for arguments in test.runs:
            try:
                done = run(["./test", *arguments.format(cases=self.cases).split()], folder)
            except subprocess.TimeoutExpired:
                return "killed", "does not end"
            if done.returncode != 0:
                return "killed", done.stdout + done.stderr
        return "survived", ""

    def test(self, mutant):
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            self.copy(folder, mutant)
            for test in TESTS:
                if mutant.header not in test.headers.split():
                    continue
                verdict, why = self.verdict(test, folder)
                if verdict != "survived":
                    return verdict, why
        return "survived", ""

    def without_a_change(self, test):
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            self.copy(folder, None)
            return self.verdict(test, folder)


class HeaderMutants:
    """The mutants of one header, and what became of those that were chosen."""

    def __init__(self, header, seed, left_out):
        everything = shuffled(mutants_of(header), seed)
        self.header, self.all = header, len(everything)
        self.waiting = [m for m in everything if m.key() not in left_out]
        self.equivalent = self.all - len(self.waiting)
        self.verdicts = {"killed": 0, "survived": 0, "invalid": 0}

    @property
    def counted(self):
        return self.verdicts["killed"] + self.verdicts["survived"]

    def choose(self, wanted):
        """What is missing of `wanted` counted mutants; with 0 all that are left."""
        missing = wanted - self.counted if wanted else len(self.waiting)
        chosen, self.waiting = self.waiting[:missing], self.waiting[missing:]
        return [(self, mutant) for mutant in chosen]


def check_tests(bench, pool, headers):
    tests = [test for test in TESTS if headers & set(test.headers.split())]
    for test, (verdict, why) in zip(tests, pool.map(bench.without_a_change, tests)):
        if verdict != "survived":
            print(f"{test.compiled[0]} fails without a change:\n{why}", file=sys.stderr)
            sys.exit(2)


def test_all(bench, pool, by_header, each):
    # Mutants that do not compile are replaced by further ones.
    while chosen := [pair for of_header in by_header for pair in of_header.choose(each)]:
        verdicts = pool.map(lambda pair: bench.test(pair[1]), chosen)
        for (of_header, mutant), (verdict, _) in zip(chosen, verdicts):
            of_header.verdicts[verdict] += 1
            if verdict == "survived":
                print(f"survived: {mutant}", flush=True)


def show(by_header, seconds):
    """The table; returns the share of counted mutants that were killed, in percent."""
    print(f"{'header':20}{'mutants':>8}{'equivalent':>12}{'counted':>9}{'killed':>8}")
    for t in by_header:
        print(f"{t.header:20}{t.all:8}{t.equivalent:12}{t.counted:9}{t.verdicts['killed']:8}")
    counted = sum(t.counted for t in by_header)
    killed = sum(t.verdicts["killed"] for t in by_header)
    share = 100 * killed / counted if counted else 100
    print(f"{killed} of {counted} killed, {share:.1f} %; {seconds:.0f} s")
    return share


def sample(headers, count):
    """`count` of the headers, others for each commit, and those that it changes; all of them for 0."""
    if not count:
        return headers

    def git(*command):
        return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True).stdout

    commit = git("rev-parse", "HEAD")
    changed = {pathlib.Path(name).stem for name in git("diff", "--name-only", "HEAD~1", "--", "numerics").split()}
    ranked = sorted(headers, key=lambda header: hashlib.sha256((commit + header).encode()).digest())
    return [header for i, header in enumerate(ranked) if i < count or header in changed]


def main():
    headers = sorted(path.stem for path in (ROOT / "numerics").rglob("*.hpp"))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--each", type=int, default=20, help="counted mutants a header; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", nargs="*", default=headers, choices=headers, metavar="NAME",
                        help="headers of numerics/, no suffix")
    parser.add_argument("--headers", type=int, default=0, help="a sample of so many headers that have mutants; 0: all")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--least", type=float, default=95, help="percent that must be killed")
    parser.add_argument("--compiler", default="c++")
    arguments = parser.parse_args()
    left_out = equivalents()
    by_header = [HeaderMutants(header, arguments.seed, left_out) for header in arguments.files]
    tested = {name for test in TESTS for name in test.headers.split()}
    for of_header in by_header:
        if of_header.all and of_header.header not in tested:
            sys.exit(f"numerics/{of_header.header}.hpp has no entry in TESTS")
    chosen = sample([of_header.header for of_header in by_header if of_header.all], arguments.headers)
    by_header = [of_header for of_header in by_header if of_header.header in chosen]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, \
         concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        bench = Bench(arguments.build.resolve(), arguments.compiler, pathlib.Path(scratch))
        check_tests(bench, pool, set(chosen))
        test_all(bench, pool, by_header, arguments.each)
    return 0 if show(by_header, time.monotonic() - began) >= arguments.least else 1


if __name__ == "__main__":
    sys.exit(main())
