#!/usr/bin/env python3
"""Lets PyTorch's wheel for CUDA load without CUDA's libraries (2.7 GB).

Writes stand-ins for the libraries into the folder lib of the installed package torch. Each of their
functions returns 100 (cudaErrorNoDevice), so PyTorch finds no GPU. Of a wheel without CUDA nothing is
missing, and nothing is written.
"""
import importlib.util
import re
import subprocess
import tempfile
from pathlib import Path


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def functions_wanted(folder):
    """Returns {library that is absent: {(function, version of the symbol or "")}}."""
    wanted, unversioned, defined = {}, set(), set()
    for path in folder.glob("*.so*"):
        dynamic = output("readelf", "--wide", "-dV", path)
        for name in re.findall(r"NEEDED.*\[(lib(?:cu|nc|nv)\S+)\]", dynamic):
            wanted.setdefault(name, set())
        file_of = {None: None}
        for line in dynamic.splitlines():
            if file := re.search(r"File: (\S+)", line):
                file_of[None] = file[1]
            elif version := re.search(r"Name: (\S+)", line):
                file_of[version[1]] = file_of[None]
        for line in output("nm", "-D", path).splitlines():
            *_, kind, symbol = line.split()
            symbol, _, version = symbol.partition("@")
            if kind not in "Uw":
                defined.add(symbol)
            elif file_of.get(version) in wanted:
                wanted[file_of[version]].add((symbol, version))
            elif not version and symbol.startswith(("cu", "nccl", "nv")):
                unversioned.add((symbol, ""))
    for name in wanted:
        if name.startswith("libcudart"):  # every library with such symbols loads this one
            wanted[name] |= {entry for entry in unversioned if entry[0] not in defined}
    return wanted


def write_library(path, functions):
    versions = {version for _, version in functions if version}
    with tempfile.TemporaryDirectory() as scratch:
        source, script = Path(scratch, "functions.s"), Path(scratch, "versions.map")
        labels = "".join(
            f".globl {name}_\n{name}_:\n.symver {name}_, {name}@@{version}\n" if version
            else f".globl {name}\n{name}:\n" for name, version in sorted(functions))
        # All labels stand before the one body: mov $100, %eax; ret.
        source.write_text(f'.section .note.GNU-stack,"",@progbits\n.text\n{labels}' "mov $100, %eax\nret\n")
        script.write_text("".join(f"{version} {{}};\n" for version in versions))
        subprocess.run(["cc", "-shared", "-nostdlib", f"-Wl,-soname,{path.name}", "-o", path, source]
                       + ([f"-Wl,--version-script={script}"] if versions else []), check=True)


if __name__ == "__main__":
    lib = Path(next(iter(importlib.util.find_spec("torch").submodule_search_locations)), "lib")
    for library, functions in functions_wanted(lib).items():
        if not (lib / library).exists():
            write_library(lib / library, functions)
