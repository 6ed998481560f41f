"""bitsandbytes on a CPU: 0 does not stay 0 in 8-bit codes, and int8 products are 1.8e-5 too large.

    python examples/python/findings/bitsandbytes_on_cpu.py

Needs bitsandbytes; seen in 0.50.2. Its CPU quantizer cuts numbers to 65536 bins before it looks for
the nearest of 256 numbers, and no bin has the number 0. Its product of int8 codes multiplies by
6.200124e-05 instead of 1 / 127^2 = 6.200012e-05.
"""

import bitsandbytes.functional as bnb
import torch


def zero_comes_back_as():
    """Return what a 0 beside a 1 becomes in dynamic 8-bit codes."""
    codes, state = bnb.quantize_blockwise(torch.tensor([0.0, 1.0]))
    return bnb.dequantize_blockwise(codes, state)[0].item()


def product_of_ones():
    """Return the product of two rows [1] in int8, whose exact value is 1."""
    one = torch.tensor([[127]], dtype=torch.int8)
    product, scale = bnb.int8_linear_matmul(one, one), torch.ones(1)
    dequantized = torch.ops.bitsandbytes.int8_mm_dequant(product, scale, scale, torch.float32)
    return dequantized.item()


def main():
    print(f"0 beside 1 comes back as {zero_comes_back_as():.3g}")
    print(f"1 * 1 in int8, in fp32: {product_of_ones():.7f}")


if __name__ == "__main__":
    main()
