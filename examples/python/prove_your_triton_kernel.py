"""Triton casts and their tests: `pytest examples/python/prove_your_triton_kernel.py`.

Needs torch, Triton and a GPU. Without a GPU the kernels run in Triton's interpreter on CPU tensors:
set TRITON_INTERPRET=1. Run the file itself to see what the test says of each planted error.
"""

import torch
import triton
import triton.language as tl

from samebits.testing import check_conversion

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def bf16_kernel(x, y, n, TIES: tl.constexpr, FLUSH: tl.constexpr, BLOCK: tl.constexpr):
    """Round fp32 to bf16 codes in integers. One program converts BLOCK elements."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(x + at, mask=at < n, other=0)
    if FLUSH:  # an error: subnormal inputs become zero
        word = tl.where((word & 0x7F800000) == 0, word & -0x80000000, word)
    if TIES == "even":
        up = word + 0x7FFF + ((word >> 16) & 1)
    else:  # an error: ties go away from zero
        up = word + 0x8000
    nan = (word & 0x7FFFFFFF) > 0x7F800000
    tl.store(y + at, tl.where(nan, 0x7FFF, up >> 16).to(tl.int16), mask=at < n)


@triton.jit
def e4m3_kernel(x, y, n, THROUGH_FP16: tl.constexpr, ROUND_UP: tl.constexpr, BLOCK: tl.constexpr):
    """Round fp32 to e4m3 codes, saturating. One program converts BLOCK elements."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    size = tl.load(x + at, mask=at < n, other=0)
    sign = (size >> 24) & 0x80
    size = size & 0x7FFFFFFF
    if THROUGH_FP16:  # an error: the element is rounded to fp16 first
        half = size.to(tl.float32, bitcast=True).to(tl.float16)
        size = tl.where(size < 0x43E00000, half.to(tl.float32).to(tl.int32, bitcast=True), size)
    # 2^e is the exponent of the element, or the smallest normal exponent of e4m3.
    field = tl.maximum(tl.maximum(size >> 23, 1), 121)
    shift = tl.minimum(field - tl.maximum(size >> 23, 1) + 20, 31)
    significand = (size & 0x7FFFFF) | tl.where((size >> 23) > 0, 0x800000, 0)
    tie = tl.full([BLOCK], 1, tl.int32) << (shift - 1)
    if ROUND_UP:
        rounded = (significand + tie) >> shift  # an error: ties go away from zero
    else:
        rounded = (significand + tie - 1 + ((significand >> shift) & 1)) >> shift
    code = ((field - 121) << 3) + rounded
    code = tl.where(size >= 0x43E00000, 0x7E, code)  # 448 and above
    code = tl.where(size > 0x7F800000, 0x7F, code)
    tl.store(y + at, (code | sign).to(tl.uint8), mask=at < n)


def my_bf16(x, ties="even", flush=False):
    y = torch.empty(x.shape, dtype=torch.int16, device=x.device)
    if x.numel():
        grid = (triton.cdiv(x.numel(), 1024),)
        bf16_kernel[grid](x.view(torch.int32), y, x.numel(), ties, flush, BLOCK=1024)
    return y.view(torch.bfloat16)


def my_e4m3(x, through_fp16=False, round_up=False):
    y = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
    if x.numel():
        grid = (triton.cdiv(x.numel(), 1024),)
        e4m3_kernel[grid](x.view(torch.int32), y, x.numel(), through_fp16, round_up, BLOCK=1024)
    return y.view(torch.float8_e4m3fn)


def test_bf16():
    check_conversion(my_bf16, "fp32", "bf16", device=DEVICE)


def test_e4m3():
    check_conversion(my_e4m3, "fp32", "e4m3", overflow="saturate", device=DEVICE)


def bf16_with_ties_away(x):
    return my_bf16(x, ties="away")


def bf16_with_flushed_inputs(x):
    return my_bf16(x, flush=True)


def e4m3_through_fp16(x):
    return my_e4m3(x, through_fp16=True)


def e4m3_with_ties_away(x):
    return my_e4m3(x, round_up=True)


PLANTED = [(bf16_with_ties_away, "bf16", "ieee"), (bf16_with_flushed_inputs, "bf16", "ieee"),
           (e4m3_through_fp16, "e4m3", "saturate"), (e4m3_with_ties_away, "e4m3", "saturate")]


def main():
    for kernel, target, overflow in PLANTED:
        try:
            check_conversion(kernel, "fp32", target, overflow=overflow, device=DEVICE)
        except AssertionError as error:
            print(error, end="\n\n")
        else:
            raise SystemExit(f"{kernel.__name__}: the error was not found")


if __name__ == "__main__":
    main()
