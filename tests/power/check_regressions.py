#!/usr/bin/env python3
"""Shows that regression tests fail without the change that they guard.

usage: check_regressions.py [--now] [--work DIR] [--jobs N] [REGEX]

Each row of regressions.tsv names a commit, a test of today and the fault of the commit that the test shows.
For each commit, this program lays the tests of HEAD over the product of the commit (all other files), builds what the
rows need, without CUDA, and runs the tests: each must fail. --now runs the tests on the working tree, built in
build/dev: each must pass. REGEX chooses the rows that contain a match. Trees and builds stay in DIR, by default
build/power. Tests in Python run with the interpreter of the environment variable SAMEBITS_PYTHON, else python3.

Kinds and their tests:
  cli     tests/cli/report_test.py ReportTest.test_name
  pytest  python/tests/test_name.py::test_name
  ctest   unit.name --gtest_filter=Suite.Name: the program of a ctest name; without a filter, a regex of ctest names
  script  a line of shell, run in the root of the tree; $BUILD is its build tree; status 127: the test did not run
"""

import argparse
import collections
import csv
import functools
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).with_name("regressions.tsv")
TESTS = ["tests", "python/tests"]
PYTHON = os.environ.get("SAMEBITS_PYTHON", "python3")
PROGRAMS = {"FPINSPECT": "fpinspect", "FPINSPECT_PLANTED": "fpinspect_planted"}
PRODUCT = {"fpinspect", "samebits_python_stub"}  # targets that every commit must build
# What a run prints if at least one test passed, or failed. A test that does not run prints neither.
PASSED = {"cli": r"^Ran [1-9].*\n+OK(?! \(skipped)", "pytest": r"\b[1-9]\d* passed", "gtest": r"\[  PASSED  \] [1-9]",
          "ctest": r"100% tests passed.* out of [1-9]", "script": ""}
FAILED = {"cli": r"\A(?![\s\S]*_FailedTest)[\s\S]*^FAILED \(", "pytest": r"\b[1-9]\d* failed",
          "gtest": r"\[  FAILED  \] [1-9]", "ctest": r"tests failed out of [1-9](?![\s\S]*Not Run)", "script": ""}


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                          **more)


def git(*arguments, **more):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, stdout=subprocess.PIPE, encoding="utf-8",
                          **more).stdout.strip()


def make_tree(commit, tree):
    """Checks out the product of a commit with the tests of HEAD. Files that stay the same keep their times."""
    index = {"env": {**os.environ, "GIT_INDEX_FILE": f"{tree}.index"}}
    tree.parent.mkdir(parents=True, exist_ok=True)
    git("read-tree", commit, **index)
    for folder in TESTS:
        git("rm", "-rfq", "--cached", folder, **index)
        git("read-tree", f"--prefix={folder}/", f"HEAD:{folder}", **index)
    if not tree.exists():
        git("worktree", "add", "-f", "--detach", "--no-checkout", tree, commit)
    git("-C", tree, "read-tree", "--reset", "-u", git("write-tree", **index))


class Build:
    """The build of a tree, and the tests that run on it."""

    def __init__(self, tree, jobs, options=()):
        self.tree, self.folder, self.jobs = tree, tree / "build" / "dev", jobs
        self.problem, self.targets = "", set()
        if not (self.folder / "build.ninja").exists():
            done = run(["cmake", "-S", tree, "-B", self.folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                        "-DSAMEBITS_DEEP_TESTS=OFF", "-DSAMEBITS_CUDA=OFF", *options])
            self.problem = done.stdout if done.returncode else ""
        if not self.problem:
            listed = run(["cmake", "--build", self.folder, "--target", "help"]).stdout
            self.targets = set(re.findall(r"^(\w+): phony$", listed, re.M))

    @functools.cache
    def make(self, target):
        """The text of the errors; empty if the target was built."""
        done = run(["ninja", "-C", self.folder, f"-j{self.jobs}", target])
        return done.stdout if done.returncode else ""

    def path(self, name):
        return next((str(p) for p in self.folder.rglob(name) if p.is_file() and os.access(p, os.X_OK)), name)

    def outcome(self, row):
        """"passes", "fails", "does not compile" or "does not run", and the output."""
        if self.problem:
            return "does not run", self.problem
        kind, words = row["kind"], row["test"].split()
        program = words[0].replace(".", "_") + "_test"
        targets = {"cli": {"fpinspect"}, "pytest": {"samebits_python_stub"}}.get(kind, set())
        test = self.tree / words[0].split("::")[0]
        text = row["test"] + (test.read_text(encoding="utf-8") if test.is_file() else "")
        targets |= {p for name, p in PROGRAMS.items() if re.search(rf"\b{name}\b", text)}
        if kind == "ctest" and program in self.targets:
            targets.add(program)
            kind = "gtest" if words[1:] else kind
        for target in sorted(targets):
            errors = self.make(target)
            if errors:
                return "does not run" if target in PRODUCT else "does not compile", errors
        command = {"cli": [PYTHON, "-m", "unittest", ".".join([test.stem, *words[1:]])],
                   "script": ["bash", "-c", row["test"]],
                   "pytest": [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "python", *words],
                   "ctest": ["ctest", "--test-dir", self.folder, "--output-on-failure", "-R", row["test"]],
                   "gtest": [self.path(program), *words[1:]]}[kind]
        try:
            done = run(command, cwd=self.tree, env={
                **os.environ, "PYTHONDONTWRITEBYTECODE": "1", "BUILD": str(self.folder),
                "PYTHONPATH": f"{self.folder / 'python' / 'package'}:{self.tree / 'tests' / 'cli'}",
                **{name: self.path(p) for name, p in PROGRAMS.items() if p in targets}})
        except FileNotFoundError as error:
            return "does not run", str(error)
        if done.returncode == 0:
            return "passes" if re.search(PASSED[kind], done.stdout, re.M) else "does not run", done.stdout
        failed = done.returncode != 127 and re.search(FAILED[kind], done.stdout, re.M) or done.returncode < 0  # crashed
        return "fails" if failed else "does not run", done.stdout


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2])
    parser.add_argument("--now", action="store_true")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "power")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("regex", nargs="?", default="")
    options = parser.parse_args()
    with open(TABLE, encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
                if re.search(options.regex, " ".join(r.values()))]
    expected, outcomes = "passes" if options.now else "fails", collections.Counter()
    for commit in dict.fromkeys("now" if options.now else row["commit"] for row in rows):
        tree = ROOT if options.now else options.work.resolve() / commit
        if not options.now:
            make_tree(commit, tree)
        build = Build(tree, options.jobs)
        for row in (r for r in rows if commit in ("now", r["commit"])):
            outcome, output = build.outcome(row)
            outcomes[outcome] += 1
            print(f"{commit}  {outcome:16}  {row['kind']:6}  {row['test']}  ({row['fault']})", flush=True)
            if outcome != expected:
                print("    " + "\n    ".join(output.splitlines()[-15:]), flush=True)
    print(", ".join(f"{n} {what}" for what, n in sorted(outcomes.items())) or "no rows")
    wrong = set(outcomes) - {expected} - (set() if options.now else {"does not compile"})
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
