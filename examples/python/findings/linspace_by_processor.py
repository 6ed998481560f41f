"""torch.linspace on the CPU has other last bits on processors without AVX2.

    python examples/python/findings/linspace_by_processor.py

PyTorch's vector code computes start + step * i with one rounding, the scalar code with two.
bitsandbytes and torchao divide the decades of their 8-bit tables with this function.
"""

import os
import subprocess
import sys

COUNTS = 17, 65, 129
CODE = f"""import torch
for count in {COUNTS}:
    print(*torch.linspace(0.1, 1, count).view(torch.int32).tolist())"""


def numbers(capability):
    """Return the bits of linspace(0.1, 1, count) for each count by the code for some processors."""
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability}
    text = subprocess.run([sys.executable, "-c", CODE], env=environment, check=True,
                          capture_output=True, text=True).stdout
    return [line.split() for line in text.splitlines()]


def main():
    for count, *pair in zip(COUNTS, numbers("default"), numbers("avx2"), strict=True):
        differ = sum(a != b for a, b in zip(*pair, strict=True))
        print(f"linspace(0.1, 1, {count}): {differ} numbers differ with and without AVX2")


if __name__ == "__main__":
    main()
