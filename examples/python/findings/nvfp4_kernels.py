"""TransformerEngine's NVFP4 kernels give a tensor with an Inf or a NaN different scales.

    python examples/python/findings/nvfp4_kernels.py

The steps are those of its source (d0067d0), in fp32; its kernels need a Blackwell GPU and did not
run here. Prints the scale S of the tensor by its amax A, and what each kernel makes of the tile
(1, 0.5) of such a tensor: the scale's byte, and the codes' numbers.
"""

import numpy as np

import samebits as sb

F = np.float32
LARGEST = np.finfo(F).max


def plain(a):
    """The kernels without a transform: fmin drops a NaN."""
    s = np.fmin(F(2688) / a, LARGEST)
    return F(1) if a == 0 or s == 0 else s


def fused(a):
    """The kernels fused with the Hadamard transform."""
    return np.fmin(F(2688) / a, LARGEST) if a > 0 else F(1)


def sharded(a):
    """The kernels of sharded weights."""
    return np.fmin(F(2688) / max(a, np.finfo(F).tiny), LARGEST) if a > 0 else F(1)


def tile_by(s):
    """Return the scale byte and the numbers of the codes of the tile (1, 0.5)."""
    x = np.array([1, 0.5], F)
    scale = sb.convert(np.fmin(x[:1] * (s * (F(1) / F(6))), LARGEST), "e4m3", overflow="saturate")
    back = sb.convert(scale, "fp32") * (F(1) / s)
    codes = sb.convert(x * np.fmin(F(1) / back, LARGEST), "e2m1")
    one, half = sb.convert(codes, "fp32")
    return f"{int(scale.view(np.uint8)[0]):02X} {one:g} {half:g}"


def main():
    print(f"{'A':8}" + "".join(f"{kernel:26}" for kernel in ("plain", "fused with transform",
                                                             "sharded weights")).rstrip())
    for a in (1, np.inf, np.nan):
        with np.errstate(all="ignore"):
            scales = [kernel(F(a)) for kernel in (plain, fused, sharded)]
            cells = [f"{s:<12.6g}  {tile_by(s)}" for s in scales]
        print(f"{a:<8g}" + "".join(f"{cell:26}" for cell in cells).rstrip())


if __name__ == "__main__":
    main()
