"""torch.optim.SGD(fused=True) on the CPU leaves most 16-bit parameters unchanged.

    python examples/python/findings/fused_sgd_on_cpu.py

The vector loop of the kernel computes the new parameters and does not store them. Only the elements
behind the last whole vector are updated.
"""

import torch


def changed(count, dtype, **options):
    """Return how many of `count` parameters a step with gradient 1 changes."""
    parameter = torch.nn.Parameter(torch.ones(count, dtype=dtype))
    parameter.grad = torch.ones(count, dtype=dtype)
    torch.optim.SGD([parameter], lr=0.5, **options).step()
    return int((parameter != 1).sum())


def main():
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for kind in ("foreach", "fused"):
            counts = [changed(n, dtype, **{kind: True}) for n in (96, 100)]
            print(f"{str(dtype):15} {kind}=True: {counts[0]:3} of 96 and {counts[1]:3} of 100 change")


if __name__ == "__main__":
    main()
