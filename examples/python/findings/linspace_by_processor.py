"""torch.linspace on the CPU has other last bits on processors without AVX2.

    python examples/python/findings/linspace_by_processor.py

PyTorch's vector code computes start + step * i with one rounding, the scalar code with two.
bitsandbytes and torchao divide the decades of their 8-bit tables with this function.
"""

import os
import subprocess
import sys

CODE = "import torch; print(torch.linspace(0.1, 1, {}).view(torch.int32).tolist())"


def numbers(count, capability):
    """Return the bits of linspace(0.1, 1, count) by the code for some processors."""
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability}
    return subprocess.run([sys.executable, "-c", CODE.format(count)], env=environment, check=True,
                          capture_output=True, text=True).stdout.strip("[]\n").split(", ")


def main():
    for count in (17, 65, 129):
        pairs = zip(numbers(count, "default"), numbers(count, "avx2"), strict=True)
        differ = sum(a != b for a, b in pairs)
        print(f"linspace(0.1, 1, {count}): {differ} numbers differ with and without AVX2")


if __name__ == "__main__":
    main()
