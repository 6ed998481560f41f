"""The symbols that the shared library of the C interface exports are those of symbols.txt.

usage: check_symbols.py NM LIBRARY HEADERS [--write]

HEADERS is the folder of the C headers: every function that they declare must be exported too. A
symbol may be added to symbols.txt, with --write. A symbol is never removed, except with a new
SAMEBITS_C_INTERFACE.
"""

import pathlib
import re
import subprocess
import sys

LISTING = pathlib.Path(__file__).with_name("symbols.txt")
DECLARED = re.compile(r"\b(samebits_[a-z0-9_]+)\(")
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def exported(nm, library):
    lines = subprocess.run([nm, "-D", "--defined-only", library], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    names = {line.split()[-1].split("@")[0] for line in lines}
    return sorted(name for name in names if not re.fullmatch(r"SAMEBITS_\d+", name))


def declared(headers):
    text = "".join(COMMENT.sub("", path.read_text(encoding="utf-8"))
                   for path in pathlib.Path(headers).glob("*.h"))
    return sorted(set(DECLARED.findall(text)))


def differences(what, got, expected):
    return ([f"{what}: {name} is missing" for name in expected if name not in got] +
            [f"{what}: {name} is not expected" for name in got if name not in expected])


def main():
    nm, library, headers = sys.argv[1:4]
    got = exported(nm, library)
    if sys.argv[4:] == ["--write"]:
        LISTING.write_text("\n".join(got) + "\n", encoding="utf-8")
    expected = LISTING.read_text(encoding="utf-8").split()
    found = differences("exported", got, expected) + differences("declared", declared(headers), got)
    print("\n".join(found))
    print(f"{len(got)} symbols, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
