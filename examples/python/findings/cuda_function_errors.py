"""The errors of CUDA's functions: the largest one, and the share of results that are rounded right.

    python examples/python/findings/cuda_function_errors.py

Computes the bits that a Hopper GPU returns, on the CPU, at every 1021st of the 2^32 fp32 numbers,
and compares them with fp64; pow at pseudo-random operands from 2^-4 to 2^4 and exponents from -20 to
20. Operands and results are normal numbers. An ulp is the spacing of fp32 at the exact value.
"""

import math

import numpy as np

from samebits import functions

EXACT = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc),
    "rsqrt": lambda x: 1 / np.sqrt(x), "fast_exp": np.exp, "fast_log": np.log,
}
SMALLEST, LARGEST = 2.0**-126, 2.0**128 - 2.0**104
STRIDE = 1021


def errors(name, x):
    """Return the errors in ulp where operand and result are normal, and these operands."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        exact = EXACT[name](wide)
        chosen = ((np.abs(wide) >= SMALLEST) & (np.abs(exact) >= SMALLEST)
                  & (np.abs(exact) <= LARGEST))
    exact, x = exact[chosen], x[chosen]
    ulp = 2.0 ** (np.floor(np.log2(np.abs(exact))) - 23)
    return (functions.evaluate(name, x, rule="cuda_13_0") - exact) / ulp, x


def errors_of_pow():
    """Return the errors of pow in ulp, and the operands."""
    random = np.random.default_rng(1)
    found, operands = [], []
    for exponent in random.uniform(-20, 20, 1024).astype(np.float32):
        x = np.exp2(random.uniform(-4, 4, 4096)).astype(np.float32)
        exact = x.astype(np.float64) ** np.float64(exponent)
        ulp = 2.0 ** (np.floor(np.log2(exact)) - 23)
        found.append((functions.pow(x, float(exponent), rule="cuda_13_0") - exact) / ulp)
        operands.append(x)
    return np.concatenate(found), np.concatenate(operands)


def main():
    with np.errstate(all="ignore"):
        x = np.arange(0, 2**32, STRIDE, np.int64).astype(np.uint32).view(np.float32)
        x = x[np.isfinite(x)]
    print("function   largest error    at             rounded right")
    for name in [*EXACT, "pow"]:
        found, at = errors_of_pow() if name == "pow" else errors(name, x)
        worst = np.argmax(np.abs(found))
        right = np.mean(np.abs(found) <= 0.5)
        print(f"{name:10} {abs(found[worst]):9.2f} ulp   {at[worst]:13.8g}  {right:12.1%}")
    whole = np.arange(-126, 128, dtype=np.float32)
    powers = np.float32(2.0) ** whole
    exact = functions.exp2(whole, rule="cuda_13_0") == powers
    print(f"exp2 of the whole numbers -126 to 127: {np.mean(exact):.0%} exact")
    for name, k in (("2^-126 to 1/2", whole < 0), ("2 to 2^127", whole > 0)):
        found, _ = errors("fast_log", powers[k])
        print(f"fast_log of {name}: errors of {found.min():.2f} to {found.max():.2f} ulp")


if __name__ == "__main__":
    main()
