#!/usr/bin/env python3
"""Plants an error in every kernel and shows that the property of its operation finds it.

usage: planted_errors.py build DIR [--host] [--jobs N] [--cmake=-DOPTION=VALUE ...]
       planted_errors.py run PROGRAM [--host] [--cases N]

`build` copies the sources to DIR/source, changes one piece of text for each error, configures
DIR/build and builds the programs of the properties once, with all errors in them; with --host those
of the host backends alone. It fails if a text to change is not there exactly once. `run` runs every
operation on every backend, each in a process of its own: all must fail, and print a small case and a
line that repeats it. It takes device_property_test, which needs a GPU, or with --host
property_operations_test. The reference has no error.

An error that kernels of several operations share is rare, so that it does not hide their own.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ["CMakeLists.txt", "CMakePresets.json", "LICENSE", "backends", "examples", "include",
         "numerics", "tests", "tools"]

# (file under backends/, text, what it becomes)
DEVICE_ERRORS = [
    # Convert: the pitch of random indices; the last element behind the last whole pack.
    ("cuda/convert/emulated.cu", "c.index + row * c.pitch + col", "c.index + row * c.cols + col"),
    ("cuda/common/launch.cuh", "c = whole * pack; c < d.cols; ++c)", "c = whole * pack; c + 1 < d.cols; ++c)"),
    # Compute: the pitch of random indices; a repeated operand behind the last whole pack.
    ("cuda/arithmetic/arithmetic.cu", "t.index + row * t.pitch + col", "t.index + row * t.cols + col"),
    ("cuda/arithmetic/words_kernel.cuh", "(t.in[k].repeated ? 0 : col * width)", "col * width"),
    # Reduction: +0 instead of inputs that are not there; one of the lanes of bytes.
    ("cuda/reductions/reduction_parts.cuh", "return -Number{0};", "return Number{0};"),
    ("cuda/reductions/native.cu", "word >> 8 & keep * 0x10001u", "word >> 16 & keep * 0x10001u"),
    # Quantize: counts of half of the threads; random words for K = 9 to 16; zeros as underflowed.
    ("cuda/quantize/general/general.cu", "half > 0; half /= 2", "half > 1; half /= 2"),
    ("cuda/quantize/tiles/block/block_tiles_kernel.cuh", "case 16: return launch_cast<From, To, stochastic_cast<To, 16>>",
     "case 16: return launch_cast<From, To, stochastic_cast<To, 32>>"),
    ("cuda/quantize/tiles/statistics_tiles.cu", "add(underflowed, c.zero_codes - c.zeros);",
     "add(underflowed, c.zero_codes);"),
    # Dequantize: the scale of the last column.
    ("cuda/quantize/dequantize.cu", "t.scales.at(row / t.tile_rows, col / t.tile_cols)",
     "t.scales.at(row / t.tile_rows, (col + 1 < t.cols ? col : 0) / t.tile_cols)"),
    # QuantizeList: scales of the tensor before.
    ("cuda/quantize/quantize_list.cu", "scales + list.tiles.first[tensor];",
     "scales + list.tiles.first[tensor & ~1u];"),
    ("cuda/quantize/tiles/list/list_tiles_kernel.cuh", "&list.scales[list.tensor_of_block[blockIdx.x]]",
     "&list.scales[list.tensor_of_block[blockIdx.x] & ~1u]"),
    # Inspect: the smallest normal number as a subnormal one.
    ("cuda/tensor_list/list_inspect.cuh", "m != 0 && m < minimum ?", "m != 0 && m <= minimum ?"),
    # L2Norm: the last element of a whole chunk; a last group of up to 16 elements.
    ("cuda/tensor_list/list_inspect.cuh", "if (at < c.count) {", "if (at < c.count && at != 4095) {"),
    ("cuda/tensor_list/list_inspect.cuh", "codes::count >= count_) return 0.0;",
     "codes::count >= count_ - 16) return 0.0;"),
    # Unscale: a single overflow of a chunk. Scale, Clip: elements that are not stored.
    ("cuda/tensor_list/list_elementwise.cu", "if (after != before) {", "if (after > before + 1) {"),
    ("cuda/tensor_list/list_elementwise.cu", "codes.store(i, after);", "if (i % 32 != 31) codes.store(i, after);"),
    ("cuda/tensor_list/list_elementwise.cu",
     "store_value<F>(p, numerics::scaled_value<hardware>(before, factor));",
     "if (lane != 2) store_value<F>(p, numerics::scaled_value<hardware>(before, factor));"),
    # Accumulate: the scale of the tensor before.
    ("cuda/tensor_list/list_elementwise.cu", "__float_as_uint(call.scales[c.tensor])",
     "__float_as_uint(call.scales[c.tensor & ~1u])"),
    # Axpby: an element of the turn before; the other factor behind the last whole vector.
    ("cuda/tensor_list/list_elementwise.cu", "y.load(i)));", "y.load(i < 64 ? i : i - 32)));"),
    ("cuda/tensor_list/list_elementwise.cu", "load_value<F>(x + at), b,", "load_value<F>(x + at), a,"),
    # Cast: the stream of the first tensor behind the last whole pack; the policy of mixed lists.
    ("cuda/tensor_list/list_cast.cuh", "index + static_cast<std::uint64_t>(i), tensor);",
     "index + static_cast<std::uint64_t>(i), 0);"),
    ("cuda/tensor_list/native_cast.cu", "if (on_overflow == overflow::saturate) {",
     "if (on_overflow == overflow::saturate && alike) {"),
    # ReduceGradients: ranks after the first in the reverse order.
    ("cuda/training/gradient_reduction.cu", "load_dense<communication_bytes>(communication, rank * share + i)",
     "load_dense<communication_bytes>(communication, (task.ranks - rank) * share + i)"),
    # LossScaler: the last loss. ShardedLossScaler: the last of three ranks.
    ("cuda/training/scaler_kernels.cuh", "threadIdx.x; i < count;", "threadIdx.x; i + 1 < count;"),
    ("cuda/training/shard_kernels.cuh", "i < t.ranks * numerics::agreement_words;",
     "i < (t.ranks == 3 ? 2 : t.ranks) * numerics::agreement_words;"),
]
DEVICE_OPERATIONS = ["Convert", "Compute", "Reduction", "Quantize", "Dequantize", "QuantizeList",
                     "Inspect", "L2Norm", "Unscale", "Scale", "Clip", "Accumulate", "Axpby", "Cast",
                     "ReduceGradients", "LossScaler", "ShardedLossScaler"]

HOST_ERRORS = [
    # Convert: random indices behind the border of a Philox block.
    ("simd/convert/convert_walk.hpp", "index + static_cast<std::uint64_t>(lead), batch,",
     "index + static_cast<std::uint64_t>(lead + (lead > 2)), batch,"),
    # Compute: operands behind the last whole register.
    ("simd/arithmetic/arithmetic_walk.hpp", "__builtin_memcpy(in_copy[i], s.in[i], static_cast<std::size_t>(bytes));",
     "__builtin_memcpy(in_copy[i], s.in[i], static_cast<std::size_t>(bytes - (bytes == 12) * 4));"),
    # Quantize, QuantizeList: the last row of tiles of one column.
    ("simd/quantize/quantize_kernel.hpp", "for (std::int64_t r = 0; r < b.rows; ++r, p +=",
     "for (std::int64_t r = 0; r + (b.rows > 1) < b.rows; ++r, p +="),
    # Inspect: NaN as Inf. Scale, Accumulate, Axpby: the last element behind whole registers.
    ("simd/tensor_list/list_kernel.hpp", "codes, count, inf) - found.nan;", "codes, count, inf);"),
    ("simd/tensor_list/list_kernel.hpp", "static_cast<std::size_t>(count - i) * 4);",
     "static_cast<std::size_t>(count - i - (count - i == 5)) * 4);"),
]
HOST_OPERATIONS = ["Operations.Convert", "Operations.Compute", "Operations.Quantize",
                   "Operations.QuantizeList", "*/inspect", "*/scale", "*/accumulate", "*/axpby",
                   "Operations.LossScaler"]


def plant(source, errors):
    for name, old, new in errors:
        path = source / "backends" / name
        text = path.read_text(encoding="utf-8")
        if text.count(old) != 1:
            sys.exit(f"backends/{name}: {text.count(old)} times instead of once: {old}")
        path.write_text(text.replace(old, new), encoding="utf-8")
    print(f"{len(errors)} errors planted")


def build(arguments):
    source, folder = arguments.dir.resolve() / "source", arguments.dir.resolve() / "build"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for part in PARTS:  # with the times of files, so that a second build is short
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part)
        else:
            shutil.copy2(ROOT / part, source / part)
    plant(source, HOST_ERRORS + DEVICE_ERRORS)
    subprocess.run(["cmake", "-S", source, "-B", folder, "-G", "Ninja",
                    "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DSAMEBITS_TOOLS=OFF",
                    f"-DSAMEBITS_CUDA={'OFF' if arguments.host else 'ON'}", *arguments.cmake],
                   check=True)
    programs = ["tests/operations/property_operations_test"]
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
