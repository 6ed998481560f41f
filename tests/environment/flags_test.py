"""Compiles the self-test's probes with wrong flags: each must be refused or seen; right ones pass.

usage: flags_test.py SOURCE_DIR COMPILER...

A wrong flag is compiled twice: as a user would, where the compiler must refuse it or the run must
report it; and with the compile-time refusal switched off, where the run alone must report it.
Compilers that are not installed are named and left out.
"""

import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

RIGHT = [
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-O3 -ffp-contract=off -mfma",
    "-O3 -ffp-contract=off -march=native",
    "-O2 -ffp-contract=fast",  # plain x86-64 has no fused instruction to contract to
]
# Flags, the checks that must fail, the compilers whose macros name the flag.
WRONG = [
    ("-O2 -ffp-contract=fast -mfma", {"contraction"}, ()),
    ("-O3 -ffp-contract=fast -mfma", {"contraction"}, ()),
    ("-O2 -ffast-math", {"reciprocal", "reassociation", "nan", "signed_zero"}, ("gcc", "clang")),
    ("-Ofast", {"reciprocal", "reassociation", "nan", "signed_zero"}, ("gcc", "clang")),
    ("-O3 -ffast-math -mrecip", {"division", "square_root"}, ("gcc", "clang")),
    ("-O2 -ffinite-math-only", {"nan"}, ("gcc", "clang")),
    ("-O2 -funsafe-math-optimizations", {"reciprocal", "reassociation", "signed_zero"}, ("gcc",)),
    ("-O2 -fassociative-math -fno-signed-zeros -fno-trapping-math", {"reassociation"}, ("gcc",)),
    ("-O2 -freciprocal-math", {"reciprocal"}, ("gcc",)),
    ("-O2 -fno-signed-zeros", {"signed_zero"}, ("gcc",)),
    ("-O2 -mfpmath=387", {"excess_precision", "reassociation", "contraction"}, ("gcc",)),
]
# Right when compiled, wrong when linked: crtfastmath.o sets FTZ and DAZ at the program's start.
WRONG_LINK = ["-ffast-math", "-Ofast", "-funsafe-math-optimizations"]
REFUSAL_OFF = "-DSAMEBITS_TEST_WRONG_FLAGS"


class Failure(Exception):
    pass


def build(compiler, root, flags, link_flags, work):
    """Returns (program, None) or (None, what the compiler said)."""
    source = root / "tests/environment/print_failed_probes.cpp"
    program, object_file = work / "probes", work / "probes.o"
    for command in (
            [compiler, "-std=c++20", *flags, f"-I{root}", f"-I{root}/include", "-c", source,
             "-o", object_file],
            [compiler, *link_flags, object_file, "-lm", "-o", program]):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            return None, result.stderr
    return program, None


def failed_probes(program):
    lines = subprocess.run([program], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    if not lines or lines[-1] != "done":
        raise Failure("the program did not reach its end")
    return set(lines[:-1])


def check_wrong(compiler, kind, root, flags, expected, named_by, work):
    flags = flags.split()
    program, message = build(compiler, root, flags, [], work)
    if program is None and "387" in message and "not supported" in message:
        return "not accepted by this compiler"
    if kind in named_by:
        if program is not None:
            raise Failure("compiled, but must be refused")
        if "samebits must not be compiled" not in message and "samebits needs" not in message:
            raise Failure(f"refused without saying why:\n{message}")
    elif program is None:
        raise Failure(f"did not compile:\n{message}")
    program, message = build(compiler, root, [*flags, REFUSAL_OFF], [], work)
    if program is None:
        raise Failure(f"did not compile with the refusal off:\n{message}")
    failed = failed_probes(program)
    if not expected <= failed:
        raise Failure(f"the run must report {sorted(expected)}, reported {sorted(failed)}")
    return ("refused, and " if kind in named_by else "") + "seen: " + ", ".join(sorted(failed))


def check_right(compiler, root, flags, work):
    program, message = build(compiler, root, flags.split(), [], work)
    if program is None:
        raise Failure(f"did not compile:\n{message}")
    if failed := failed_probes(program):
        raise Failure(f"reported {sorted(failed)}")
    return "nothing seen"


def check_link(compiler, root, flags, work):
    program, message = build(compiler, root, ["-O2"], flags.split(), work)
    if program is None:
        raise Failure(f"did not compile:\n{message}")
    failed = failed_probes(program)
    if failed != {"flush_to_zero", "denormals_are_zero"}:
        raise Failure(f"reported {sorted(failed)}")
    return "seen: " + ", ".join(sorted(failed))


def kind_of(compiler):
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True,
                             check=True).stdout
    return "clang" if "clang" in version else "gcc"


def main():
    root = pathlib.Path(sys.argv[1])
    if platform.machine() not in ("x86_64", "AMD64"):
        print("the flags are x86-64's")
        return 77
    if "fma" not in pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii").split():
        print("this processor has no FMA to contract to")
        return 77
    wrong = 0
    seen = set()
    for name in sys.argv[2:]:
        compiler = shutil.which(name)
        if compiler is None:
            print(f"{name} is not installed")
            continue
        if pathlib.Path(compiler).resolve() in seen:
            continue
        seen.add(pathlib.Path(compiler).resolve())
        kind = kind_of(compiler)
        rows = [(f, lambda w, f=f: check_right(compiler, root, f, w)) for f in RIGHT]
        rows += [(f, lambda w, f=f, e=e, n=n: check_wrong(compiler, kind, root, f, e, n, w))
                 for f, e, n in WRONG]
        rows += [(f"linked with {f}", lambda w, f=f: check_link(compiler, root, f, w))
                 for f in WRONG_LINK]
        for title, run in rows:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    print(f"{kind} {title}: {run(pathlib.Path(folder))}")
                except Failure as failure:
                    wrong += 1
                    print(f"{kind} {title}: FAILED: {failure}")
    print(f"{len(seen)} compilers, {wrong} failed")
    return 1 if wrong or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
