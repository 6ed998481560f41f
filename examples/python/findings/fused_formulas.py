"""What three formulas of fused operators lose: variances, gradients of LayerNorm and of cross entropy.

    python examples/python/findings/fused_formulas.py

Errors are relative, against binary64: of a variance, of the gradients of a row (norm of the error over norm), of one gradient.
"""

import numpy as np

import samebits

N = 768


def rows(mean):
    """Return a row around a mean, and random numbers in place of weights times gradients."""
    draw = np.random.default_rng(1)
    x = (draw.normal(size=N) + mean).astype(np.float32)
    return x, draw.normal(size=N).astype(np.float32)


def average(x):
    """Add one after another: the same bits on every processor."""
    return np.add.accumulate(x)[-1] / x.dtype.type(N)


def centred(x, g):
    """The gradient of LayerNorm's argument from x - mean."""
    y = x - average(x)
    rstd = 1 / np.sqrt(average(y * y))
    y = y * rstd
    return rstd * (g - average(g) - y * average(g * y))


def rearranged(x, g):
    """The same from sums of g and g * x, so that one pass over a row gives all sums."""
    mean = average(x)
    deviation = np.sqrt(average((x - mean) ** 2))
    alpha = ((x - mean) * mean - deviation**2) / deviation**3
    beta = (mean - x) / deviation**3
    return g / deviation + alpha * average(g) + beta * average(g * x)


for mean in (0, 10, 100, 1000):
    x, g = rows(mean)
    exact = x.astype(np.float64)
    variance = exact.var()
    by_squares = abs(float(average(x * x) - average(x) ** 2) / variance - 1)
    by_distances = abs(float(average((x - average(x)) ** 2)) / variance - 1)
    right = centred(exact, g.astype(np.float64))
    errors = [np.linalg.norm(of(x, g) - right) / np.linalg.norm(right) for of in (centred, rearranged)]
    print(f"mean {mean:4}: variance {by_distances:.0e}, by squares {by_squares:.0e}; "
          f"gradient {errors[0]:.0e}, rearranged {errors[1]:.0e}")

for p in (0.9, 0.99, 0.999):
    stored, late = samebits.convert(np.float32([p, p - 1]), "bf16").astype(np.float64)
    print(f"p = {p}: bf16(p - 1) {abs(late / (p - 1) - 1):.1%}, bf16(p) - 1 {abs((stored - 1) / (p - 1) - 1):.1%}")
