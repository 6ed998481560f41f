"""Judge ELU as plain PyTorch, compiled, and in Triton: `python examples/python/judge_elu.py`.

ELU(x) = x for x >= 0, exp(x) - 1 for x < 0. Near 0 exp(x) rounds to a number beside 1, and the
subtraction leaves what the rounding made of x. Each version is compared with the exact value, in
ulp of fp32. On a GPU the versions are also timed beside a copy.

Needs torch. The Triton versions need a GPU, or TRITON_INTERPRET=1 for CPU tensors.
"""

import os
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import median

import numpy as np
import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None
else:
    @triton.jit
    def elu_kernel(x_pointer, y_pointer, n, FIXED: tl.constexpr, BLOCK: tl.constexpr):
        """Compute ELU of contiguous fp32 elements. One program computes BLOCK elements."""
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_pointer + at, mask=at < n, other=0.0)
        u = tl.exp(x)
        y = u - 1.0
        if FIXED:  # W. Kahan's expm1: the same rounded u in both places, so its error cancels
            y = y * (x / tl.log(u))
            y = tl.where(x < -17.0, -1.0, y)  # exp(x) is below half an ulp of 1
            y = tl.where(x > -1e-3, x + 0.5 * x * x * (1.0 + x / 3.0), y)
        tl.store(y_pointer + at, tl.where(x < 0, y, x), mask=at < n)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TRITON = triton and (DEVICE == "cuda" or os.environ.get("TRITON_INTERPRET") == "1")


def elu(x):
    """Return ELU as tutorials write it."""
    return torch.where(x < 0, torch.exp(x) - 1, x)


def elu_expm1(x):
    """Return ELU by expm1, which does not cancel."""
    return torch.where(x < 0, torch.expm1(x), x)


def triton_elu(fixed):
    """Return ELU in Triton: by exp(x) - 1, or without its cancellation."""
    def run(x):
        y = torch.empty_like(x)
        with np.errstate(all="ignore"):  # of the interpreter: elements that are not used
            elu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), fixed, BLOCK=1024)
        return y

    return run


def versions():
    """Return the versions by name."""
    found = {"exp(x) - 1": elu, "the same, compiled": torch.compile(elu),
             "expm1": elu_expm1, "F.elu": torch.nn.functional.elu}
    if TRITON:
        found |= {"Triton, exp(x) - 1": triton_elu(False), "Triton, Kahan": triton_elu(True)}
    return found


def inputs(per_binade=64):
    """Return negative fp32 numbers, `per_binade` of each exponent from -40 to 3, as [44, n]."""
    rng = np.random.default_rng(0)
    significands = rng.uniform(1, 2, (44, per_binade)).astype(np.float32)
    return -np.ldexp(significands, np.arange(-40, 4)[:, None]).astype(np.float32)


def exact_elu(x):
    """Return exp(x) - 1 for x < 0 as a Fraction, right to some 40 digits."""
    with localcontext() as context:
        context.prec = 60
        return Fraction(Decimal(float(x)).exp() - 1)


def ulp(value):
    """Return the distance between fp32 numbers at a value, as a Fraction."""
    exponent = max(int(np.frexp(np.float64(float(abs(value))))[1]) - 1, -126)
    return Fraction(2) ** (exponent - 23)


def errors(got, exact):
    """Return the errors of results in ulp, as [binades, n]."""
    table = [[float(abs(Fraction(float(g)) - e) / ulp(e)) for g, e in zip(row, right)]
             for row, right in zip(got, exact)]
    return np.array(table)


BANDS = [(-40, -25), (-24, -20), (-19, -15), (-14, -10), (-9, -5), (-4, -1), (0, 3)]


def judge(x, exact, function):
    """Return (largest error in ulp, share of results that are 0) in each band of exponents."""
    got = function(torch.from_numpy(x).to(DEVICE).reshape(-1)).cpu().numpy().reshape(x.shape)
    by_binade = errors(got, exact)
    rows = [slice(low + 40, high + 41) for low, high in BANDS]
    return [(by_binade[r].max(), (got[r] == 0).mean()) for r in rows]


def times(functions, elements=1 << 26, rounds=11):
    """Return the median time of each version and of a copy in ms; the versions alternate."""
    x = torch.randn(elements, device="cuda")
    y = torch.empty_like(x)
    calls = {"copy": lambda: y.copy_(x), **{n: lambda f=f: f(x) for n, f in functions.items()}}
    measured = {name: [] for name in calls}
    for number in range(rounds + 3):
        for name, call in calls.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            if number >= 3:
                measured[name].append(start.elapsed_time(end))
    return {name: median(values) for name, values in measured.items()}


def main():
    x = inputs()
    exact = [[exact_elu(v) for v in row] for row in x]
    print(f"ELU on {DEVICE}, torch {torch.__version__}: largest error in ulp (share of zeros)")
    head = "".join(f"{f'2^{low}..2^{high + 1}':>16}" for low, high in BANDS)
    print(f"{'-x in':20}{head}")
    functions = versions()
    for name, function in functions.items():
        cells = []
        for largest, zeros in judge(x, exact, function):
            cells.append(f"{largest:.3g}" + (f" ({zeros:.0%})" if zeros else ""))
        print(f"{name:20}" + "".join(f"{c:>16}" for c in cells), flush=True)
    if DEVICE == "cuda":
        measured = times(functions)
        for name, ms in measured.items():
            print(f"{name:20}{ms:8.3f} ms, {ms / measured['copy']:.2f} of copy")


if __name__ == "__main__":
    main()
