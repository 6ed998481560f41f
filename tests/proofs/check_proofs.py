"""Checks the error bounds of docs/decisions/0046-correct-rounding.md by machine.

usage: check_proofs.py ROOT GAPPA [SOLLYA]

For each *.gappa file beside this program:
- The polynomial's coefficients are those of the header, in the code's order, for the code's values (q)
  and for the exact ones (Q).
- Gappa proves the bounds.
- Gappa does not prove the last bound 2^12 times smaller: a proof of anything would.
With Sollya, polynomials.sollya certifies the errors of the polynomials, which the other files take as
given.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
# File: header of numerics/functions/ and the function whose polynomial the file has.
POLYNOMIALS = {
    "exponential": ("exponential.hpp", "power_of"),
    "exponential_near_zero": ("exponential.hpp", "power_of"),
    "logarithm_near_one": ("logarithm.hpp", "log_rest"),
    "erf_near_zero": ("normal_tail.hpp", "exact_erf"),
    "tail_factor": ("normal_tail.hpp", "tail_factor"),
}
NUMBER = r"-?0x1\.[0-9a-f]+p[-+]?[0-9]+"
LONG_NUMBER = r"-?0x1\.[0-9a-f]{7,}p[-+]?[0-9]+"


def header_coefficients(root, header, function):
    """The coefficients of the first horner() in a function, highest degree first."""
    text = (root / "numerics" / "functions" / header).read_text()
    body = text[text.index(f" {function}("):]
    horner = re.search(r"horner\((.*?)\);", body, re.S)[1]
    return [float.fromhex(c) for c in re.findall(rf"bits_of\(({NUMBER})\)", horner)]


def proof_coefficients(text, letter):
    """The coefficients in the definitions of q9, q8, ... or Q9, Q8, ..."""
    lines = re.findall(rf"^{letter}\d+ = .*;", text, re.M)
    return [float.fromhex(c) for line in lines for c in re.findall(NUMBER, line)]


def is_proved(gappa, text):
    run = subprocess.run([gappa], input=text, capture_output=True, text=True, check=False)
    return run.returncode == 0


def with_smaller_bound(text):
    """The same text; the last bound of the goals is 2^12 times smaller."""
    last = list(re.finditer(r"<= 0x1[.0-9a-f]*p-(\d+)", text))[-1]
    return f"{text[:last.start(1)]}{int(last[1]) + 12}{text[last.end(1):]}"


def failures(root, gappa, sollya):
    for file in sorted(HERE.glob("*.gappa")):
        text = file.read_text()
        if file.stem in POLYNOMIALS:
            header = POLYNOMIALS[file.stem][0]
            expected = header_coefficients(root, *POLYNOMIALS[file.stem])
            for letter in "qQ":
                if proof_coefficients(text, letter) != expected:
                    yield f"{file.name}: the coefficients of {letter} are not those of {header}"
        if not is_proved(gappa, text):
            yield f"{file.name}: not proved"
        if is_proved(gappa, with_smaller_bound(text)):
            yield f"{file.name}: a bound that is too small is proved"
    certified = (HERE / "polynomials.sollya").read_text()
    numbers = {float.fromhex(c) for c in re.findall(LONG_NUMBER, certified)}
    for header, function in POLYNOMIALS.values():
        if not numbers.issuperset(header_coefficients(root, header, function)):
            yield f"polynomials.sollya: lacks coefficients of {function}"
    if sollya:
        run = subprocess.run([sollya, HERE / "polynomials.sollya"], capture_output=True, text=True,
                             check=False)
        if not run.stdout.rstrip().endswith("\nPROVED"):
            yield f"polynomials.sollya: {run.stdout}"


def main():
    sollya = sys.argv[3] if len(sys.argv) > 3 else None
    found = list(failures(pathlib.Path(sys.argv[1]), sys.argv[2], sollya))
    print("\n".join(found))
    print(f"{len(list(HERE.glob('*.gappa')))} proofs, {len(found)} failures")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
