"""Times the library beside a copy of the same memory and beside PyTorch and NumPy, in one process.

example: bench.py conversions products --backend avx2 avx512 --threads 1 2 --only 'fp32 to e4m3|768'

Prints a table for each group: the median time of a call; bytes moved, or multiply-adds, per second; the time over the
floor, which is the bytes divided by the bandwidth of a copy in the same rounds (its reciprocal is the share of copy);
and the time over that of other libraries. All rows of a set take turns. On a GPU the host enqueues four calls behind a
wait, so that its own time does not count. Rows of C++ alone need --library, the target samebits_bench_calls.
"""

import argparse
import os

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # torch's CPU memory on huge pages

import array_rows
import list_rows
import operator_rows
import torch
from timing import Machine

GROUPS = {f.__name__: f for f in (
    array_rows.conversions, array_rows.quantization, array_rows.arithmetic, array_rows.functions, array_rows.products,
    array_rows.calls, list_rows.lists, list_rows.scalers, list_rows.optimizers, operator_rows.rows,
    operator_rows.losses, operator_rows.fused)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", nargs="*", metavar="GROUP", default=list(GROUPS), help=", ".join(GROUPS))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose names match")
    parser.add_argument("--log2-elements", type=int, metavar="N", help="size of arrays: 26 on a CPU, 28 on a GPU")
    parser.add_argument("--backend", nargs="+", default=[os.environ.get("SAMEBITS_BACKEND", "")], metavar="NAME")
    parser.add_argument("--threads", nargs="+", type=int, default=[1], metavar="N", help="of the CPU")
    parser.add_argument("--rounds", type=int, default=9, metavar="N")
    parser.add_argument("--cols", type=int, default=8192, metavar="N", help="of the matrices of rows, losses and fused")
    parser.add_argument("--library", default="", metavar="FILE", help="libsamebits_bench_calls.so of a build")
    given = parser.parse_args()
    if unknown := set(given.group) - set(GROUPS):
        parser.error(f"no groups: {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    log2 = given.log2_elements or (28 if given.device == "cuda" else 26)
    machine = Machine(given.device, 1 << log2, min(given.cols, 1 << log2), given.rounds, given.backend, given.threads,
                      given.only, given.library)
    for name in given.group:
        print(f"\n## {name}, {given.device}, 2^{log2} elements\n\n| work | time | speed | / copy | / others |\n"
              "|---|---|---|---|---|", flush=True)
        for rows in GROUPS[name](machine):
            machine.measure(rows)


if __name__ == "__main__":
    main()
