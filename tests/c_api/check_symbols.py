"""The symbols that the shared library of the C interface exports are those of symbols.txt.

usage: check_symbols.py NM LIBRARY HEADER [--write]

The functions of HEADER must be the same. A symbol is added to symbols.txt with --write, and never
removed, except with a new SAMEBITS_C_INTERFACE.
"""

import pathlib
import re
import subprocess
import sys

LISTING = pathlib.Path(__file__).with_name("symbols.txt")


def main():
    nm, library, header = sys.argv[1:4]
    lines = subprocess.run([nm, "-D", "--defined-only", library], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    names = {line.split()[-1].split("@")[0] for line in lines}
    exported = {name for name in names if not re.fullmatch(r"SAMEBITS_\d+", name)}
    if sys.argv[4:] == ["--write"]:
        LISTING.write_text("\n".join(sorted(exported)) + "\n", encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(header).read_text(encoding="utf-8"), flags=re.S)
    declared = set(re.findall(r"\b(samebits_[a-z0-9_]+)\(", text))
    listed = set(LISTING.read_text(encoding="utf-8").split())
    found = [f"{name}: exported {name in exported}, declared {name in declared}, listed {name in listed}"
             for name in sorted(exported | declared | listed)
             if not (name in exported and name in declared and name in listed)]
    print("\n".join(found))
    print(f"{len(exported)} symbols, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
