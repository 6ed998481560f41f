#!/usr/bin/env python3
"""Plants an error in every kernel and shows that the property of its operation finds it.

usage: planted_errors.py build DIR [--host] [--jobs N] [--cmake=-DOPTION=VALUE ...]
       planted_errors.py run PROGRAM [--host] [--cases N]

`build` copies the sources to DIR/source, plants the errors of kind `kernel` of tests/power/errors.tsv,
configures DIR/build and builds the programs of the properties once, with all errors in them; with
--host those of the host backends alone. `run` runs every
operation on every backend, each in a process of its own: all must fail, and print a small case and a
line that repeats it. It takes device_property_test, which needs a GPU, or with --host
engine_host_test. The reference has no error.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "power"))
import count
PARTS = ["CMakeLists.txt", "CMakePresets.json", "LICENSE", "backends", "examples", "include",
         "numerics", "tests", "tools"]

DEVICE_OPERATIONS = ["Convert", "Compute", "Reduction", "Quantize", "Dequantize", "QuantizeList",
                     "Inspect", "L2Norm", "Unscale", "Scale", "Clip", "Accumulate", "Axpby", "Cast",
                     "ReduceGradients", "LossScaler", "ShardedLossScaler"]

HOST_OPERATIONS = ["Operations.Convert", "Operations.Compute", "Operations.Quantize",
                   "Operations.QuantizeList", "*/inspect", "*/scale", "*/accumulate", "*/axpby",
                   "Operations.LossScaler"]


def build(arguments):
    source, folder = arguments.dir.resolve() / "source", arguments.dir.resolve() / "build"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for part in PARTS:  # with the times of files, so that a second build is short
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part)
        else:
            shutil.copy2(ROOT / part, source / part)
    kernels = {row["name"] for row in count.read_list() if row["kind"] == "kernel"}
    for name, changes in count.read_patches().items():
        if name in kernels:
            count.plant(source, changes)
    subprocess.run(["cmake", "-S", source, "-B", folder, "-G", "Ninja",
                    "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DSAMEBITS_TOOLS=OFF",
                    f"-DSAMEBITS_CUDA={'OFF' if arguments.host else 'ON'}", *arguments.cmake],
                   check=True)
    programs = ["tests/engine/engine_host_test"]
    if not arguments.host:
        programs.append("tests/device/device_property_test")
    subprocess.run(["ninja", "-C", folder, "-j", str(arguments.jobs), *programs], check=True)
    print("built:", *(folder / program for program in programs))
    return 0


def run(arguments):
    if arguments.host:
        tests = HOST_OPERATIONS
    else:
        tests = [f"*DeviceProperty.{operation}/{backend}" for operation in DEVICE_OPERATIONS
                 for backend in ("Emulated", "Native")]
    environment = dict(os.environ, RC_PARAMS=f"max_success={arguments.cases}")
    missed = 0
    for test in tests:
        done = subprocess.run([arguments.program, f"--gtest_filter={test}"], env=environment,
                              capture_output=True, text=True, errors="replace", check=False)
        found = (done.returncode != 0 and "smallest failing case: " in done.stdout
                 and "repeat with: RC_PARAMS=" in done.stdout)
        missed += not found
        tried = re.findall(r": (\d+) cases", done.stdout)
        print(f"{test}: {'found' if found else 'MISSED'} after {' and '.join(tried) or '?'} cases")
        text = done.stdout[done.stdout.find("Failure"):] if found else done.stdout[-2000:] + done.stderr[-2000:]
        print("  " + "\n  ".join(text.splitlines()[1:14] if found else text.splitlines()), flush=True)
    print(f"{len(tests) - missed} of {len(tests)} found")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    building = commands.add_parser("build")
    building.add_argument("dir", type=pathlib.Path)
    building.add_argument("--host", action="store_true")
    building.add_argument("--jobs", type=int, default=os.cpu_count())
    building.add_argument("--cmake", action="append", default=[], help="an option for CMake")
    building.set_defaults(work=build)
    running = commands.add_parser("run")
    running.add_argument("program", type=pathlib.Path)
    running.add_argument("--host", action="store_true")
    running.add_argument("--cases", type=int, default=50_000, help="most, of each backend")
    running.set_defaults(work=run)
    arguments = parser.parse_args()
    return arguments.work(arguments)


if __name__ == "__main__":
    sys.exit(main())
