"""Checks the allowed #include arrows between the folders of the tree.

usage: check_layering.py ROOT
Prints every forbidden line and exits 1 if there is one. The rules are docs/architecture.md's.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
# Tokens that would bring floating-point arithmetic or state into the one definition.
NO_FLOAT = re.compile(r"\b(float|double)\b")
USER_CODE = ("tests", "examples")  # they may look at the compiler
# What the files of a folder of backends/ may include of other folders there.
BACKENDS = {
    "dispatch": {"reference", "simd"},  # the registry lists the executors
    "threads": {"dispatch"},
    "self_test": {"dispatch"},
    "api": {"dispatch", "threads", "self_test", "reference"},
    "ranks": {"dispatch", "threads", "self_test", "reference", "api"},
    "loss_scaler": {"dispatch", "api", "ranks"},
    "verify": {"dispatch", "threads"},
    "reference": {"dispatch", "threads", "self_test"},
    "simd": {"dispatch", "threads", "self_test", "reference"},
    "c_api": set(),
    "cuda": {"dispatch", "threads", "self_test", "api", "ranks", "loss_scaler"},
}
# What the Python extension may include beside the public API: calls whose memory a framework owns,
# messages between ranks, and the checks of samebits.testing.
EXTENSION = {"engine/inputs/families.hpp", "engine/kit/conversion.hpp", "engine/kit/function.hpp",
             "engine/kit/quantize.hpp", "engine/kit/report.hpp",
             "backends/dispatch/access.hpp", "backends/dispatch/calls/optimizer.hpp",
             "backends/loss_scaler/report_ring.hpp", "backends/loss_scaler/resident.hpp",
             "backends/ranks/ranks.hpp"}
# What the oracle sees of the project: enums and their names.
ORACLE_SEES = {f"samebits/core/{name}.hpp" for name in ("operation", "optimizer", "rounding", "scaling")}
# What the engine may include of other tests: the kit's headers of plain C++, and the instructions of tensor cores.
ENGINE = {"tensor_cores/tensor_cases.hpp"} | {
    f"samebits/testkit/{name}.hpp" for name in ("conversion", "domain", "quantize", "ranks")}
# What cases and comparisons must not need: GoogleTest, RapidCheck, test support.
OF_TESTS = re.compile(r"(gtest|gmock|rapidcheck|support|device)\b")
# fpinspect opens files in these places only, which know inputs and outputs.
OPENS_FILES = re.compile(r"\b(?:[io]?fstream|fopen)\b|\bstaged_file \w|"
                         r"\b(?:tensor_file|tensor_reader)::open\(")
OPENERS = ("tools/fpinspect/cli/files.cpp", "tools/fpinspect/tensors/source/source.cpp")
# fpinspect shows a weight under an optimizer by the library's own formulas, in binary64.
EXACT_WEIGHT = "tools/fpinspect/explore/update/weight_life.cpp"
STANDARD = {"cstdint", "cstddef", "string_view", "optional"}


def strip_comments(text):
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def layer_of(path):
    """The folder a file or an included name belongs to, as the rules call it."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[:2] == ("include", "samebits"):
        parts = parts[1:]
    if parts[:2] == ("samebits", "testkit"):
        return "testkit"
    if parts[:2] == ("samebits", "core"):
        return "core"
    if parts[:2] == ("samebits", "c"):
        return "c"
    if parts[0] == "samebits":
        return "include"
    if parts[0] == "numerics":
        return "numerics"
    if parts[0] == "backends":
        return "backends/" + parts[1]
    if parts[:2] == ("tests", "engine") or parts[0] == "engine":
        return "suites" if "suites" in parts else "engine"
    if parts[0] in ("oracle", "tests") and "oracle" in parts:
        return "oracle"
    if parts[0] in ("tests", "tools", "examples", "python"):
        return parts[0]
    if parts[0] in ("tensor_file", "tensor_core_probe", "function_unit_probe", "gpu_probe",
                    "fpinspect"):
        return "tools"
    if parts[0].startswith("Eigen"):
        return "Eigen"
    if parts[0] == "boost":
        return "boost"
    if parts[0].startswith("cuda"):
        return "cuda_runtime"
    return "other"


def allowed(source, target, source_file, target_name):
    """Whether a file of layer `source` may include something of layer `target`."""
    if source == "core":
        return target in ("core", "other")
    if source == "numerics":
        # host-only algorithms of text use the standard library freely; the rules do not
        free = source_file.parent.name == "text"
        return target in ("numerics", "core") or (
            target == "other" and (free or target_name in STANDARD))
    if source == "include":
        if target == "Eigen":
            return source_file.name == "eigen.hpp"
        return target in ("include", "core", "numerics", "other")
    if source.startswith("backends/"):
        own = source.split("/")[1]
        if target.startswith("backends/"):
            other = target.split("/")[1]
            return other == own or other in BACKENDS[own]
        if target == "cuda_runtime":
            return own == "cuda"
        return target in ("include", "core", "numerics", "other") or (
            own == "c_api" and target == "c")
    if source == "oracle":
        return target in ("oracle", "boost", "other") or target_name in ORACLE_SEES
    if source == "engine":  # which the library, the kit and the extension can contain
        return target in ("engine", "include", "core", "numerics") or \
            target_name in ENGINE or (target == "other" and not OF_TESTS.match(target_name))
    if source == "python":  # the extension is written over the public API
        return target in ("python", "include", "core", "other") or target_name in EXTENSION
    if source == "c":
        return target in ("c", "other")
    if source in ("tools", "examples"):
        if target == "testkit":
            return source == "examples"
        if source_file.parts[:2] in (("tools", "tensor_core_probe"),
                                     ("tools", "function_unit_probe"),
                                     ("tools", "gpu_probe")):  # look behind the library
            return target not in ("oracle", "tests", "boost")
        if target == "numerics":
            return str(source_file) == EXACT_WEIGHT
        return target not in ("oracle", "tests", "boost") and \
            not target.startswith("backends/")
    return True  # tests see everything


def violations(root):
    root = pathlib.Path(root)
    for folder in ("include", "numerics", "backends", "tests", "tools", "examples", "python"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".hpp", ".cpp", ".cu", ".cuh", ".h"):
                continue
            relative = path.relative_to(root)
            source = layer_of(relative)
            text = strip_comments(path.read_text(encoding="utf-8"))
            for number, line in enumerate(text.splitlines(), 1):
                match = INCLUDE.match(line)
                if match and not allowed(source, layer_of(match[1]), relative, match[1]):
                    yield f"{relative}:{number}: {source} may not include {match[1]}"
                if source == "numerics" and NO_FLOAT.search(line):
                    yield f"{relative}:{number}: floating-point type in numerics/: {line.strip()}"
                if relative.parts[:2] == ("tools", "fpinspect") and OPENS_FILES.search(line) and \
                        str(relative) not in OPENERS:
                    yield f"{relative}:{number}: files are opened by {' and '.join(OPENERS)}: {line.strip()}"
                if "__CUDACC__" in line and path.name != "config.hpp" and folder not in USER_CODE:
                    yield f"{relative}:{number}: only samebits/core/config.hpp looks at __CUDACC__"


def main():
    found = list(violations(sys.argv[1]))
    for line in found:
        print(line)
    print(f"{len(found)} forbidden lines")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
