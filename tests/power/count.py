#!/usr/bin/env python3
"""Counts planted errors: how many there are, and which the tests find.

usage: count.py list
       count.py planted [--build DIR] [--seeds N] [--update] [REGEX]
       count.py patches [--work DIR | --here] [--gpu] [--sample N] [--jobs N] [REGEX]

errors.tsv lists every error with the test that finds it. Its states:
  planted   the test plants the error itself, in a kernel or program of its own
  proven    patches.txt has a change of the product that brings the error back; the test failed with it
  patch     the same, but the test has not run with the change
  unproven  a regression that a test describes; nobody has written the change

`list` checks the list: names, changed texts that stand once in the product, the table in docs/testkit.md, and that no
row was removed. `planted` runs the tests of planted errors, with N seeds each, by default 1, and reads which errors
they found. It fails for an error without a row, a row without a test, and an error that needs more than 3 times the
cases of the list; --update writes new numbers. `patches` plants each change alone, builds its test and runs it: it must
fail. Changes are made in a copy of the tree, DIR, by default build/power/planted, or with --here in this tree itself.
--gpu takes the errors that need a GPU. --sample takes N changes, others for each commit. REGEX chooses rows. Python
runs as in check_regressions.py.
"""

import argparse
import collections
import csv
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

from check_regressions import PYTHON, ROOT, Build, git, run

LIST, PATCHES = (pathlib.Path(__file__).with_name(name) for name in ("errors.tsv", "patches.txt"))
PAGE = ROOT / "docs" / "testkit.md"
SLOWER = 3  # times the cases of the list
#: Rows of each kind that there must be at least: raise these numbers when you add rows.
LEAST = {"kit-c++": 86, "kit-python": 205, "kit-torch": 11, "kit-test": 47, "kernel": 31, "backend": 4, "suite": 1,
         "flags": 2, "model": 2, "directed": 182}


def read_list(regex=""):
    with open(LIST, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row for row in rows if re.search(regex, " ".join(row.values()))]


def read_patches():
    """{name: [(file, text, what it becomes)]}"""
    found, name = collections.defaultdict(list), ""
    for line in PATCHES.read_text(encoding="utf-8").splitlines():
        tag, text = line[:5].rstrip(), line[5:]
        if tag == "name":
            name = text
        elif tag == "file":
            found[name].append((text, [], []))
        elif tag in ("from", "to"):
            found[name][-1][1 + (tag == "to")].append(text)
    return {name: [(file, "\n".join(old), "\n".join(new)) for file, old, new in changes]
            for name, changes in found.items()}


def plant(tree, changes):
    """Makes the changes of one error in a tree, and returns {file: its text before}."""
    before = {}
    for file, old, new in changes:
        text = (tree / file).read_text(encoding="utf-8")
        if text.count(old) != 1 or not old or old == new:
            raise ValueError(f"{file} holds the text {text.count(old)} times instead of once: {old}")
        before.setdefault(tree / file, text)
        (tree / file).write_text(text.replace(old, new), encoding="utf-8")
    return before


# ---- The list ----

def removed_rows(rows):
    """The (kind, name) of rows that a commit removed, as far as git knows the commits."""
    try:
        log = git("log", "--format=", "-p", "--unified=0", "--no-renames", "--", LIST)
        log += "\n" + git("diff", "HEAD", "--unified=0", "--", LIST)
    except (OSError, subprocess.CalledProcessError):
        return []
    cells = (line[1:].split("\t") for line in log.splitlines() if line.startswith("-") and line.count("\t") >= 4)
    return sorted({(c[0], c[3]) for c in cells} - {(r["kind"], r["name"]) for r in rows})


def kit_table(rows):
    """The lines of the table in docs/testkit.md."""
    counts = collections.Counter()
    for row in rows:
        if row["kind"] in ("kit-c++", "kit-python", "kit-torch"):
            check, _, name = row["name"].partition(".")
            counts[row["kind"][4:], check, "degenerate" if name.startswith("degenerate.") else "usual"] += bool(name)
    checks = sorted({key[:2] for key, n in counts.items() if n})
    return "".join(f"| {kit} | {check} | {counts[kit, check, 'usual']} | {counts[kit, check, 'degenerate']} | 100 % |\n"
                   for kit, check in checks)


def check_list(rows, patches):
    problems = [f"{key}: listed {n} times" for key, n in
                collections.Counter((r["kind"], r["name"]) for r in rows).items() if n > 1]
    problems += [f"{kind}: {name}: the row was removed" for kind, name in removed_rows(rows)]
    kinds = collections.Counter(r["kind"] for r in rows)
    problems += [f"{kind}: {kinds[kind]} rows, at least {n} expected" for kind, n in LEAST.items() if kinds[kind] < n]
    patched = {r["name"] for r in rows if r["state"] in ("proven", "patch")}
    problems += [f"{name}: a change without a row of the state proven or patch" for name in set(patches) - patched]
    problems += [f"{name}: no change of the product" for name in patched - set(patches)]
    for name, changes in patches.items():
        for file, old, new in changes:
            count = (ROOT / file).read_text(encoding="utf-8").count(old) if (ROOT / file).is_file() else 0
            if count != 1 or not old or old == new:
                problems.append(f"{name}: {file} holds its text {count} times instead of once")
    if kit_table(rows) not in PAGE.read_text(encoding="utf-8"):
        problems.append(f"docs/testkit.md: expected this table of planted errors:\n{kit_table(rows)}")
    states = collections.Counter((r["kind"], r["where"], r["state"]) for r in rows)
    for (kind, where, state), n in sorted(states.items()):
        print(f"{kind:12} {where:10} {state:9} {n:4}")
    print(f"{len(rows)} rows")
    return problems


# ---- Errors that tests plant ----

def read_report(path, prefix, is_gtest):
    """{test: cases or "" if it passed, None if it failed} of a report in JUnit's format."""
    found = {}
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        if case.find("skipped") is not None or case.get("status") == "notrun":
            continue
        name = prefix + (f"{case.get('classname')}." if is_gtest else "") + case.get("name")
        name = name.replace("[cuda-", "[cpu-")  # where there is a GPU, both must find the error
        cases = [int(p.get("value")) for p in case.iter("property") if p.get("name") == "cases"]
        failed = case.find("failure") is not None or case.find("error") is not None or found.get(name, "") is None
        found[name] = None if failed else max(cases, default="")
    return found


def family_of(test):
    """What a parametrized test plants is its parameters: all are run, so that none is without a row."""
    return re.sub(r"(\[.*\]|\*)$", "", test) if "::" in test else re.sub(r"(?<=[^ ]/)[^/.*]+$", "*", test)


def run_planted(program, tests, build, seeds, folder):
    """Runs the tests of one program and returns what read_report() returns."""
    found, report, is_pytest = {}, pathlib.Path(folder) / "report.xml", "::" in tests[0]
    environment = {**os.environ, "SAMEBITS_TEST_SEEDS": str(seeds), "PYTHONDONTWRITEBYTECODE": "1",
                   "PYTHONPATH": str(build.folder / "python" / "package")}
    families = sorted({family_of(test) for test in tests})
    report.unlink(missing_ok=True)
    if is_pytest:
        done = run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "python",
                    f"--junitxml={report}", *families], cwd=ROOT, env=environment)
    elif " " in tests[0] and "/cli/" not in tests[0]:
        binary = build.path(program.replace(".", "_") + "_test")
        filters = ":".join(family.split(" ", 1)[1] for family in families)
        done = run([binary, f"--gtest_filter={filters}", f"--gtest_output=xml:{report}"], cwd=ROOT, env=environment)
    else:  # programs without a report: the exit status of each test
        for test in tests:
            kind = "cli" if test.startswith("tests/cli/") else "ctest"
            if build.outcome({"kind": kind, "test": test if kind == "cli" else f"^{re.escape(test)}$"})[0] == "passes":
                found[test] = ""
        return found
    if report.exists():
        found = read_report(report, program + ("::" if is_pytest else " "), not is_pytest)
    if not found or None in found.values():
        print(done.stdout[-4000:])
    return found


def matching(test, found):
    pattern = re.compile(".*".join(map(re.escape, test.split("*"))))
    return {name: cases for name, cases in found.items() if pattern.fullmatch(name)}


def count_planted(rows, options):
    """Runs the tests of the rows of the state planted, prints what they found, and returns the problems."""
    problems, build, measured = [], Build(ROOT, 1), {}
    build.folder = options.build.resolve()
    if not list(build.folder.glob("python/package/samebits/_core*")):
        print("left out: tests in Python, because the build has no Python package")
        rows = [row for row in rows if "::" not in row["test"]]
    by_program, counts, seconds = collections.defaultdict(list), collections.Counter(), collections.Counter()
    for row in rows:
        by_program[re.split(r"::| (?!.*\.py)", row["test"], maxsplit=1)[0]].append(row)
    with tempfile.TemporaryDirectory() as folder:
        for program, of_program in by_program.items():
            began = time.monotonic()
            found = run_planted(program, [row["test"] for row in of_program], build, options.seeds, folder)
            seconds[of_program[0]["kind"]] += time.monotonic() - began
            unlisted = dict(found)
            for row in of_program:
                results = matching(row["test"], found)
                for name in results:
                    unlisted.pop(name, None)
                if not results or None in results.values():
                    problems.append(f"{row['kind']}: {row['name']}: MISSED by {row['test']}")
                    continue
                counts[row["kind"]] += 1
                cases = max((c for c in results.values() if c != ""), default="")
                measured[row["kind"], row["name"]] = str(cases or "-")
                if cases and row["cases"] != "-" and cases > SLOWER * max(int(row["cases"]), 100) and not options.update:
                    problems.append(f"{row['kind']}: {row['name']}: needs {cases} cases, {row['cases']} before")
            problems += [f"{name}: plants an error that has no row" for name in unlisted]
    for kind, n in collections.Counter(row["kind"] for row in rows).items():
        print(f"{kind:12} {counts[kind]:4} of {n:4} found, {seconds[kind]:4.0f} s")
    if options.update:
        everything = read_list()
        with open(LIST, "w", encoding="utf-8") as file:
            print(*everything[0], sep="\t", file=file)
            for row in everything:
                row["cases"] = measured.get((row["kind"], row["name"]), row["cases"])
                print(*row.values(), sep="\t", file=file)
    return problems


def has_torch():
    return run([PYTHON, "-c", "import torch"]).returncode == 0


# ---- Errors that are changes of the product ----

def copied(tree):
    """Copies this tree; files that stay the same keep their times, so that a further build is short."""
    for part in git("ls-files").splitlines():
        source, copy = ROOT / part, tree / part
        if source.is_file() and not (copy.exists() and copy.read_bytes() == source.read_bytes()):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
    return tree


def test_of(row):
    """The row as check_regressions.py takes it."""
    test, kind = row["test"], "ctest"
    if test.startswith(("tests/cli/", "python/tests/")):
        kind = "cli" if test.startswith("tests/cli/") else "pytest"
    elif test.startswith(("racecheck ", "initcheck ")):  # of compute-sanitizer
        tool, program, filters = test.split(" ")
        program = program.replace(".", "_") + "_test"
        kind, test = "script", (
            f'ninja -C "$BUILD" {program} || exit 127; SAMEBITS_TEST_EFFORT=smallest compute-sanitizer --tool {tool} '
            f'--error-exitcode 1 "$BUILD/tests/device/{program}" --gtest_filter={filters}')
    elif " " in test:
        test = "{} --gtest_filter={}".format(*test.split(" ", 1))
    return {"kind": kind, "test": test}


def count_patches(rows, patches, options):
    """Plants one error after the other, prints what the tests say, and returns the problems."""
    problems, counts = [], collections.Counter()
    tree = ROOT if options.here else copied(options.work.resolve())
    cmake = [f"-D{name}_EXECUTABLE={shutil.which(PYTHON)}" for name in ("Python", "Python3")]
    cmake += ["-DSAMEBITS_CUDA=ON", "-DSAMEBITS_DEEP_TESTS=ON"] if options.gpu else []
    for row in rows:
        began = time.monotonic()
        before = plant(tree, patches[row["name"]])
        try:
            outcome, output = Build(tree, options.jobs, cmake).outcome(test_of(row))
        finally:
            for path, text in before.items():
                path.write_text(text, encoding="utf-8")
        counts[outcome] += 1
        print(f"{'found' if outcome == 'fails' else 'MISSED: ' + outcome:22} {time.monotonic() - began:5.0f} s  "
              f"{row['name']}  ({row['test']})", flush=True)
        if outcome != "fails":
            problems.append(f"{row['kind']}: {row['name']}: the test {outcome}")
            print("    " + "\n    ".join(output.splitlines()[-15:]), flush=True)
    print(f"{counts['fails']} of {len(rows)} changes found")
    return problems


def chosen(rows, options):
    """Rows with a change that run on this machine; of them a sample, another one for each commit."""
    wanted = {"gpu", "torch-gpu"} if options.gpu else {"ci", "deep"} | ({"torch"} if has_torch() else set())
    states = {"proven"} if options.sample else {"proven", "patch"}
    rows = [row for row in rows if row["state"] in states and row["where"] in wanted]
    if not options.sample:
        return rows
    commit = git("rev-parse", "HEAD")
    return sorted(rows, key=lambda r: hashlib.sha256((commit + r["name"]).encode()).digest())[:options.sample]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["list", "planted", "patches"])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "power" / "planted")
    parser.add_argument("--here", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("regex", nargs="?", default="")
    options = parser.parse_intermixed_args()
    rows, patches = read_list(options.regex), read_patches()
    if options.what == "list":
        problems = check_list(read_list(), patches)
    elif options.what == "patches":
        problems = count_patches(chosen(rows, options), patches, options)
    else:
        wanted = {"ci"} | ({"torch"} if has_torch() else set())
        problems = count_planted([r for r in rows if r["state"] == "planted" and r["where"] in wanted], options)
    for problem in problems:
        print(problem)
    return 1 if problems or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
