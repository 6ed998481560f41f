"""CUDA's functions as the nvcc at hand compiles them, against the operations of rule cuda_13_0.

usage: check_ptx.py NVCC [--write]

Compiles each function to PTX for sm_90 and compares its instructions with cuda_functions_ptx.txt
beside this file: predicates, opcodes, registers, constants and labels. Registers and labels are
numbered anew by their first appearance, so that another numbering is no difference. Prints every
instruction that changed and exits 1 if there is one: then the function needs a rule of its own.
`--write` writes the file anew. Needs no GPU.
"""

import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

EXPECTED = pathlib.Path(__file__).with_name("cuda_functions_ptx.txt")
ONE = ("expf exp2f expm1f logf log2f log10f log1pf sinf cosf tanhf erff erfcf rsqrtf __expf "
       "__logf").split()
TWO = ["powf", "__fdividef"]
REGISTER = re.compile(r"%([a-z]+)\d+|\$L\w+")


def source():
    """A kernel for each function."""
    kernel = 'extern "C" __global__ void k_{0}(const float* p, float* y) {{ *y = {0}({1}); }}\n'
    return ("".join(kernel.format(f, "*p") for f in ONE) +
            "".join(kernel.format(f, "*p, p[1]") for f in TWO))


def renumbered(lines):
    """The lines with registers and labels numbered by their first appearance, each kind apart."""
    names = {}
    counts = {}

    def name(match):
        kind = match[1] or "L"
        if match[0] not in names:
            counts[kind] = counts.get(kind, 0) + 1
            names[match[0]] = f"{kind}{counts[kind]}"
        return names[match[0]]

    return [REGISTER.sub(name, line) for line in lines]


def instructions(ptx):
    """Function -> its instructions and labels. Declarations and moves of parameters are left out."""
    found = {}
    for name, body in re.findall(r"\.entry k_(\w+)\(.*?\)\n\{(.*?)\n\}", ptx, re.S):
        lines = []
        for line in body.splitlines():
            line = " ".join(line.split())
            is_code = re.match(r"(@!?%p\d+ )?[a-z][\w.]*( .*)?;$|\$L\w+:$", line)
            if is_code and not line.startswith(("ld.param", "cvta")):
                lines.append(line.rstrip(";"))
        found[name] = renumbered(lines)
    return found


def compiled(nvcc):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "functions.cu")
        path.write_text(source())
        subprocess.run([nvcc, "-arch=sm_90", "-ptx", str(path), "-o", str(path) + ".ptx"],
                       check=True)
        return instructions(pathlib.Path(str(path) + ".ptx").read_text())


def text_of(functions):
    return "".join(f"{name}\n" + "".join(f"  {line}\n" for line in lines)
                   for name, lines in functions.items())


def read():
    functions = {}
    for line in EXPECTED.read_text().splitlines():
        if line.startswith("  "):
            functions[name].append(line[2:])
        else:
            name = line
            functions[name] = []
    return functions


def main():
    functions = compiled(sys.argv[1])
    if sys.argv[2:] == ["--write"]:
        EXPECTED.write_text(text_of(functions))
        return 0
    changed = 0
    for name, expected in read().items():
        diff = [line for line in difflib.ndiff(expected, functions.get(name, []))
                if line[0] in "+-"]
        changed += bool(diff)
        print(f"{name}: " + ("as in rule cuda_13_0" if not diff else "CHANGED"))
        print("".join(f"  {line}\n" for line in diff), end="")
    print(f"{len(functions)} functions, {changed} changed")
    return 1 if changed or len(functions) != len(ONE) + len(TWO) else 0


if __name__ == "__main__":
    sys.exit(main())
