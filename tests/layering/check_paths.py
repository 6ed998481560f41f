"""Every path in a page of docs/ or in the README names a file or folder of the tree.

usage: check_paths.py ROOT
Looks at names in `backquotes` that begin with a folder of the tree, and at targets of links; those in
pages must be headings. Names
with <...>, *, {...} or capitals are patterns and are skipped. So are names of INSTALLED, which only an
installation has, and docs/results/ and docs/decisions/, which tell of their own day.
"""

import functools
import pathlib
import re
import sys

TOPS = ("backends/", "docs/", "examples/", "include/", "numerics/", "python/", "tests/", "tools/",
        "samebits/")
QUOTED = re.compile(r"`([a-z_./0-9]+)`")
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")
ROOTS = ("", "include", "tests/testkit")  # where a name may begin
INSTALLED = ("samebits/testkit/internal/",)


@functools.cache
def headings(page):
    """The anchors of a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    names = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line) for line in re.findall(r"^#+ (.*)$", text, re.M))
    return {re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-") for name in names}


def missing(root):
    root = pathlib.Path(root)
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    for page in pages:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for name in QUOTED.findall(line):
                if name.startswith(TOPS) and name not in INSTALLED and not any((root / p / name).exists() for p in ROOTS):
                    yield f"{page.relative_to(root)}:{number}: no {name}"
            for name, anchor in LINK.findall(line):
                target = page.parent / name if name else page
                if not target.exists():
                    yield f"{page.relative_to(root)}:{number}: no {name}"
                elif anchor and target.suffix == ".md" and anchor not in headings(target):
                    yield f"{page.relative_to(root)}:{number}: no {name}#{anchor}"


def main():
    found = list(missing(sys.argv[1]))
    print("\n".join(found))
    print(f"{len(found)} paths that are not there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
