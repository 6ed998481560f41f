"""``python -m samebits`` prints what is installed, which backends run, and why others do not.

``python -m samebits replay FILE`` recomputes a recording of `samebits.torch.record`.
``python -m samebits check-card [FILE]`` asks whether the GPU computes rightly (`samebits.torch.check_card`).
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from importlib.metadata import PackageNotFoundError, files, version

from samebits import __version__, _core, backends, self_test, set_num_threads, verify
from samebits.errors import Error


def _module_line(name: str, without: str) -> str:
    """Return a line that says whether a module is installed; does not import the module.

    `without` says what is different if the module is missing.
    """
    if importlib.util.find_spec(name) is None:
        return f"{name} not installed: {without}"
    try:
        return f"{name} {version(name)} found"
    except PackageNotFoundError:
        return f"{name} found"


def _fpinspect_line() -> str:
    """Return a line that says where the installed package has its command ``fpinspect``, or that it lacks it."""
    try:
        commands = [f for f in files("samebits") or [] if f.name == "fpinspect"]
    except PackageNotFoundError:
        return "fpinspect: this package is not installed, but read from a build folder"
    if commands:
        return f"fpinspect {os.path.realpath(commands[0].locate())}"
    return "fpinspect not installed: CLI11 or nlohmann-json was missing when the package was built"


def report() -> bool:
    """Print the report; return whether every self-test passed."""
    print(f"samebits {__version__}   build: CPU{' and CUDA' if _core.has_cuda else ''}")
    passed = True
    for b in backends():
        state = "default" if b.default else "runs"
        if not b.supported:
            state = f"does not run: {b.why_not}"
        print(f"  {b.name:<14} {b.memory:<7} {state}")
        if not b.supported:
            continue
        try:
            for check in self_test(b.name):
                if not check.passed:
                    passed = False
                    print(f"    self-test {check.check}: {check.detail}")
        except Error as error:
            passed = False
            print(f"    self-test: {error}")
    print("self-test: every check passed" if passed else "self-test: FAILED, see above")
    print(_module_line("ml_dtypes", "bf16, FP8, FP6 and FP4 arrays are returned as integer codes"))
    print(_module_line("torch", "torch tensors are not needed"))
    print(_fpinspect_line())
    return passed


def _of_torch(command: str, *recordings: str) -> int:
    """Print what a command of `samebits.torch` finds; return 0 if all bits are right, 3 if it cannot be asked."""
    set_num_threads(0)
    try:
        if command == "replay":
            from samebits.torch.replay import replay

            played = replay(*recordings)
            print(played)
            return 0 if played.equal else 1
        from samebits.torch import card

        checked = card.check_card(*recordings)
    except (Error, ImportError, OSError, RuntimeError) as error:  # PyTorch's, of blocks without memory
        print(error, file=sys.stderr)
        return 3
    print(checked)
    return 1 if checked.wrong else 0


def run(arguments: list[str]) -> int:
    """Run the command; ``--verify`` also compares every backend with the reference."""
    if (arguments[:1], len(arguments)) in ((["replay"], 2), (["check-card"], 1), (["check-card"], 2)):
        return _of_torch(*arguments)
    if arguments not in ([], ["--verify"]):
        print("usage: python -m samebits [--verify | replay FILE | check-card [FILE]]", file=sys.stderr)
        return 2
    passed = report()
    if arguments:
        set_num_threads(0)
        start = time.perf_counter()
        for entry in verify():
            passed = passed and entry.differed == 0
            result = f"{entry.differed} of {entry.compared} differ"
            print(f"  {entry.backend:<14} {entry.what}: {result}")
        print(f"verified in {time.perf_counter() - start:.1f} s")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
