"""Every external function that an instruction set's object file defines must name that set.

usage: check_isa_symbols.py NM LIBRARY

An inline function or template without the set in its name would be merged by the linker with the
same one compiled for any machine, and could then run where the instructions are missing. Data holds
no instructions: constants that headers define may be merged.
"""

import re
import subprocess
import sys

LOCAL = set("abcdnrst")  # nm's lower-case types: not visible outside the object
DATA = set("BDGRSVu")  # nm's types of objects that are no functions


def main():
    nm, library = sys.argv[1:]
    listing = subprocess.run([nm, "-A", "-C", "--defined-only", library], check=True,
                             capture_output=True, text=True).stdout
    seen = {"avx2": 0, "avx512": 0}
    wrong = []
    for line in listing.splitlines():
        match = re.match(r".*\w+_(avx2|avx512)(?:_cxx\.cxx|\.cpp)\.o: ?[0-9a-f]* (\S) (.*)$", line)
        if not match or match[2] in LOCAL | DATA:
            continue
        isa, name = match[1], match[3]
        seen[isa] += 1
        if isa not in name:
            wrong.append(f"{isa}: {name}")
    print("\n".join(wrong))
    print(f"external functions: {seen}, without their instruction set: {len(wrong)}")
    return 1 if wrong or not all(seen.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
