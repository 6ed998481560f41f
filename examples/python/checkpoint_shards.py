"""Which 8-bit and 16-bit formats suit the tensors of a checkpoint that is too large for one machine?

    python examples/python/checkpoint_shards.py model-*.safetensors
    python examples/python/checkpoint_shards.py --dask 4 model-*.safetensors
    torchrun --nproc-per-node 4 examples/python/checkpoint_shards.py model-*.safetensors

Each process reads some of the files. Partial results are counts, maxima, and lists of sums; they are
merged in any order: counts are added, lists are joined. A total is the exact sum of its list, rounded
once (math.fsum). So every number is the same with any number of processes. Parts of one tensor may lie in
several files.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import samebits as sb
from samebits.safetensors import read_safetensors

FORMATS = ("bf16", "fp16", "e4m3", "e5m2")
NEED_DB, NEED_KEPT = 30.0, 0.99  # of SQNR, and of the values that are not 0

Partial = dict[str, dict[str, Any]]  # by name of a tensor


def arrays(path: str) -> Iterable[tuple[str, Any]]:
    """Yield the tensors of a file that have more than 8 bits, in fp32."""
    for name, (array, format) in read_safetensors(path)[0].items():
        if format in ("fp32", "fp16", "bf16"):
            yield name, sb.convert(array, "fp32", format=format)


def statistics(path: str) -> Partial:
    """Return counts, the largest magnitude and the sum of squares of each tensor."""
    found = {}
    for name, x in arrays(path):
        t = sb.inspect(x).total
        found[name] = {"elements": t.elements, "nan": t.nan, "inf": t.inf, "zeros": t.zeros,
                       "amax_bits": t.amax_bits, "squares": [t.squares]}
    return found


def losses(path: str, scales: dict[str, int]) -> Partial:
    """Return what each format loses of each tensor times a power of two."""
    found: Partial = {}
    for name, x in arrays(path):
        report = sb.inspect(np.ldexp(x, scales[name]), distribution=False)
        for format in FORMATS:
            loss = report.to(format)
            found.setdefault(name, {}).update({
                f"{format} underflow": loss.underflowed, f"{format} overflow": loss.overflowed,
                f"{format} signal": [loss.signal], f"{format} noise": [loss.noise]})
    return found


def merge(a: Partial, b: Partial) -> Partial:
    """Merge partial results; the order of merges changes nothing but the order in lists."""
    merged = {name: dict(values) for name, values in a.items()}
    for name, values in b.items():
        mine = merged.setdefault(name, {})
        for key, value in values.items():
            if key not in mine:
                mine[key] = value
            else:
                mine[key] = max(mine[key], value) if key == "amax_bits" else mine[key] + value
    return merged


def total(partial: Partial) -> Partial:
    """Return the results of a merge, in the order of names."""
    return {name: {key: math.fsum(value) if isinstance(value, list) else value
                   for key, value in sorted(partial[name].items())} for name in sorted(partial)}


def power(amax_bits: int) -> int:
    """Return k such that amax * 2^k lies in [128, 256), where e4m3 and e5m2 have room."""
    amax = float(np.uint32(amax_bits).view(np.float32))
    return 8 - math.frexp(amax)[1] if 0 < amax < math.inf else 0


def verdict(t: dict[str, Any]) -> str:
    """Return the first 8-bit format, else the first 16-bit one, that meets the need."""
    if t["nan"] or t["inf"]:
        return f"{t['nan']} NaN, {t['inf']} Inf"
    for format in ("e4m3", "e5m2", "bf16", "fp16"):
        signal, noise = t[f"{format} signal"], t[f"{format} noise"]
        kept = 1 - t[f"{format} underflow"] / max(1, t["elements"] - t["zeros"])
        if (signal >= noise * 10 ** (NEED_DB / 10) and kept >= NEED_KEPT
                and not t[f"{format} overflow"]):
            return format
    return "fp32"


Run = Callable[[Callable[[str], Partial], list[str]], Partial]


def by_one(work: Callable[[str], Partial], paths: list[str]) -> Partial:
    """Read all files in this process."""
    return functools.reduce(merge, map(work, paths), {})


def by_ranks(work: Callable[[str], Partial], paths: list[str]) -> Partial:
    """Read every n-th file; merge over the ranks of torch.distributed."""
    import torch.distributed as dist
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, by_one(work, paths[dist.get_rank()::len(parts)]))
    return functools.reduce(merge, parts)


def by_dask(workers: int) -> Run:
    """Read files in processes of Dask; `dask.distributed.Client` runs the same bag on a cluster."""
    import dask.bag

    def run(work: Callable[[str], Partial], paths: list[str]) -> Partial:
        bag = dask.bag.from_sequence(paths, npartitions=min(workers, len(paths)))
        return bag.map(work).fold(merge, initial={}).compute(scheduler="processes",
                                                             num_workers=workers)
    return run


def report(paths: list[str], run: Run) -> Partial:
    """Return statistics, losses and verdict of each tensor of a checkpoint."""
    found = total(run(statistics, paths))
    scales = {name: power(t["amax_bits"]) for name, t in found.items()}
    for name, lost in total(run(functools.partial(losses, scales=scales), paths)).items():
        found[name] |= lost
        found[name] |= {"scale": scales[name], "verdict": verdict(found[name])}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Which formats suit the tensors of a checkpoint?")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--dask", type=int, metavar="PROCESSES")
    given = parser.parse_args()
    run = by_dask(given.dask) if given.dask else by_one
    if "LOCAL_RANK" in os.environ:  # torchrun
        import torch.distributed as dist
        dist.init_process_group("gloo")
        run = by_ranks
    found = report(given.paths, run)
    if int(os.environ.get("RANK", "0")) == 0:
        for name, t in found.items():
            print(f"{name:40} {t['elements']:12,}  scale 2^{t['scale']:<4} {t['verdict']}")
        text = json.dumps(found, sort_keys=True).encode()
        print(f"SHA-256 of all numbers: {hashlib.sha256(text).hexdigest()}")
    if run is by_ranks:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
