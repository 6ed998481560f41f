"""Triton's fp32 -> FP8 cast has other bits on Ada (sm_89) than on Hopper (sm_90).

    python examples/python/findings/triton_fp8_on_ada.py      # needs Triton, but no GPU

For sm_89 Triton first truncates to fp16, and rounds that to FP8: the result is rounded twice. The
program compiles one kernel for both GPUs and shows the conversion instructions. The share of
results with other bits is computed from what the instructions do.
"""

import re

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import samebits as sb


@triton.jit
def cast_kernel(x, y, TYPE: tl.constexpr):
    at = tl.arange(0, 128)
    tl.store(y + at, tl.load(x + at).to(TYPE))


TYPES = {"e4m3": (tl.float8e4nv, "fp8e4nv"), "e5m2": (tl.float8e5, "fp8e5")}


def instructions(target, capability):
    """Return the PTX conversions of the compiled kernel, in their order."""
    dtype, name = TYPES[target]
    source = ASTSource(fn=cast_kernel, constexprs={"TYPE": dtype},
                       signature={"x": "*fp32", "y": f"*{name}", "TYPE": "constexpr"})
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32))
    found = re.findall(r"cvt\.r[nz]\.[\w.]*f\w+", compiled.asm["ptx"])
    return list(dict.fromkeys(found))


def through_fp16(x, target):
    """Return what the two instructions for sm_89 return: truncated to fp16, then rounded."""
    middle = sb.convert(x, "fp16", rounding="toward_zero")
    return sb.convert(middle, target, overflow="saturate")


def share(target):
    """Return the share of standard normal numbers whose code differs."""
    x = np.random.default_rng(0).standard_normal(1 << 20, np.float32)
    right = sb.convert(x, target, overflow="saturate")
    return np.mean(through_fp16(x, target).view("u1") != right.view("u1"))


def main():
    for target in TYPES:
        for capability in (89, 90):
            found = ", ".join(instructions(target, capability))
            print(f"fp32 -> {target}, sm_{capability}: {found}")
        print(f"fp32 -> {target}: {share(target):.3%} of normal numbers get another code")
    x = np.array([0x3A800001], np.uint32).view(np.float32)  # 2^-10 and one bit more
    right = sb.convert(x, "e4m3", overflow="saturate")
    print(f"{x[0]!r} -> e4m3: {right[0]}, truncated to fp16 first: {through_fp16(x, 'e4m3')[0]}")


if __name__ == "__main__":
    main()
