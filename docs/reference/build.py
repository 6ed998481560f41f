"""Writes the API reference as HTML from the public headers and the Python package's docstrings.

Usage: build.py OUT. Needs doxygen, Sphinx and, on PYTHONPATH, the built package; not torch. Python's
pages are OUT/html, those of C++ and C OUT/html/cpp. A text that the two programs cannot read is an
error.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MODULES = ["samebits", "samebits.functions", "samebits.optim", "samebits.ranks", "samebits.testing",
           "samebits.torch", "samebits.torch.optim"]


def page(name, title, body):
    name.write_text(f"{title}\n{'=' * len(title)}\n\n{body}\n")


out = Path(sys.argv[1]).resolve()
source, html = out / "source", out / "html"
source.mkdir(parents=True, exist_ok=True)
for module in MODULES:
    page(source / f"{module}.rst", module, f".. automodule:: {module}")
page(source / "index.rst", "samebits", "`C++ and C <cpp/index.html>`_\n\n.. toctree::\n   :caption: "
     "Python\n\n   " + "\n   ".join(MODULES))
subprocess.run([sys.executable, "-m", "sphinx", "-q", "-E", "-W", "--keep-going", "-c", HERE, source,
                html], check=True)
subprocess.run(["doxygen", HERE / "Doxyfile"], cwd=HERE.parents[1],
               env=os.environ | {"REFERENCE_OUT": str(html)}, check=True)
