"""torch on CUDA divides a tensor by a Python number as a product: x / 448.0 is x * RN(1/448).

    python examples/python/findings/division_by_number.py      # the CUDA rows need a GPU

The same line gives other scales on the CPU, where torch divides, and so other FP8 codes.
"""

import numpy as np
import torch

import samebits as sb


def amaxes():
    """Return 65536 random fp32 numbers in [1, 2)."""
    return torch.from_numpy(np.random.default_rng(0).uniform(1, 2, 1 << 16).astype(np.float32))


def differing(got, right):
    """Return the share of elements with other bits."""
    return (got.cpu().view(torch.int32) != right.view(torch.int32)).float().mean().item()


def shares(device):
    """Return the shares of quotients of torch that differ from IEEE division: (number, tensor)."""
    x, divisor = amaxes(), torch.full((1 << 16,), 448.0)
    right = sb.divide(x, divisor, to="fp32").value
    return (differing(x.to(device) / 448.0, right),
            differing(x.to(device) / divisor.to(device), right))


def product_share():
    """Return the share of products x * RN(1/448) that differ from x / 448."""
    x = amaxes()
    return differing(x * torch.tensor(1 / 448.0, dtype=torch.float32), x / torch.tensor(448.0))


def main():
    print(f"x * RN(1/448), computed on the CPU: {product_share():.1%} differ from x / 448")
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        number, tensor = shares(device)
        print(f"{device:5} x / 448.0: {number:.1%} differ from IEEE division; "
              f"x / tensor of 448: {tensor:.1%}")


if __name__ == "__main__":
    main()
