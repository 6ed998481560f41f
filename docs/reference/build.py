"""Writes the reference as HTML: public headers, docstrings of the Python package, help of fpinspect.

Usage: build.py OUT. Needs doxygen, Sphinx and, on PYTHONPATH, the built package; not torch. The program
fpinspect is the one that FPINSPECT names, or that of PATH. Pages of Python and of fpinspect are OUT/html,
those of C++ and C OUT/html/cpp. A text that the programs cannot read is an error.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MODULES = ["samebits", "samebits.functions", "samebits.optim", "samebits.ranks", "samebits.testing",
           "samebits.torch", "samebits.torch.optim"]


def page(name, title, body):
    name.write_text(f"{title}\n{'=' * len(title)}\n\n{body}\n")


def fpinspect_help(*words):
    """What `fpinspect help` prints, as a literal block."""
    done = subprocess.run([os.environ.get("FPINSPECT", "fpinspect"), "help", *words], check=True,
                          stdout=subprocess.PIPE, encoding="utf-8")
    return ".. code-block:: text\n\n" + re.sub("^(?=.)", "   ", done.stdout, flags=re.M)


def commands():
    """The subcommands with their options, each below a heading."""
    text = fpinspect_help()
    names = re.findall(r"^ +([a-z]+) ", text.split("Subcommands:")[1], re.M)
    return text + "".join(f"\n{name}\n{'-' * len(name)}\n\n{fpinspect_help(name)}" for name in names)


out = Path(sys.argv[1]).resolve()
source, html = out / "source", out / "html"
source.mkdir(parents=True, exist_ok=True)
for module in MODULES:
    page(source / f"{module}.rst", module, f".. automodule:: {module}")
page(source / "fpinspect.rst", "fpinspect", commands())
page(source / "index.rst", "samebits", "`C++ and C <cpp/index.html>`_\n\n.. toctree::\n   :caption: "
     "Python\n\n   " + "\n   ".join(MODULES) + "\n\n.. toctree::\n   :caption: Command line\n\n   fpinspect\n")
subprocess.run([sys.executable, "-m", "sphinx", "-q", "-E", "-W", "--keep-going", "-c", HERE, source,
                html], check=True)
subprocess.run(["doxygen", HERE / "Doxyfile"], cwd=HERE.parents[1],
               env=os.environ | {"REFERENCE_OUT": str(html)}, check=True)
