"""torch._scaled_mm reads the scales of B in rows padded to four, and accepts unpadded ones.

    python examples/python/findings/scaled_mm_scales.py      # needs an H100 or H200

A has scales of 1 x 128, B of 128 x 128. Each row of the table is a product of 64 x K by K x 768.
The result is compared with two predictions by the model of the tensor core: with the scales that
the caller passed, and with the scales at the addresses that cuBLASLt reads. Without a GPU the
program shows what share of the results the wrong scales change.
"""

import numpy as np
import torch

import samebits as sb

M, N = 64, 768
DEPTHS = (512, 640, 1024, 1920, 2304)


def problem(depth, rng):
    """Return a [M, K], w [N, K] in e4m3, scales of a [M, K/128], and memory of the scales of w.

    The memory starts with the [N/128, K/128] scales of w and goes on with ones: cuBLASLt reads
    beyond the scales.
    """
    tiles = depth // 128
    a, w = (torch.from_numpy(rng.standard_normal((n, depth), np.float32)).to(torch.float8_e4m3fn)
            for n in (M, N))
    a_scales = torch.from_numpy(rng.uniform(0.5, 1.5, (M, tiles)).astype(np.float32))
    memory = torch.ones(N // 128 * padded(tiles))
    memory[:N // 128 * tiles] = torch.from_numpy(
        rng.uniform(0.5, 1.5, N // 128 * tiles).astype(np.float32))
    return a, w, a_scales, memory


def padded(tiles):
    return -(-tiles // 4) * 4


def passed_scales(memory, tiles):
    """Return the scales of w that the caller passes, [N/128, K/128], without gaps."""
    return memory[:N // 128 * tiles].view(N // 128, tiles)


def read_scales(memory, tiles):
    """Return the scales of w that cuBLASLt reads: rows of K/128, padded to a multiple of four."""
    return memory.view(N // 128, padded(tiles))[:, :tiles]


def predicted(a, w, a_scales, w_scales):
    """Return the bf16 product that the tensor core computes with these scales."""
    return sb.predict(a, w.t(), "hopper_fp8", out="bf16", a_scales=a_scales, a_tile=(1, 128),
                      b_scales=w_scales.t(), b_tile=(128, 128)).value


def share(x, y):
    """Return the share of elements with other bits."""
    return (x.view(torch.int16) != y.view(torch.int16)).float().mean().item()


def on_gpu(a, w, a_scales, memory, tiles):
    """Return torch's product. A's scales are stored in columns, as _scaled_mm expects them."""
    columns = a_scales.t().contiguous().cuda().t()
    scales = passed_scales(memory.cuda(), tiles).t()
    return torch._scaled_mm(a.cuda(), w.cuda().t(), columns, scales,
                            out_dtype=torch.bfloat16).cpu()


def main():
    rng = np.random.default_rng(0)
    hopper = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
    print(f"torch {torch.__version__}; share of {M} x {N} results with other bits than")
    print(f"{'K':>6} {'K/128':>6} {'the passed scales':>18} {'the padded scales':>18}")
    for depth in DEPTHS:
        tiles = depth // 128
        a, w, a_scales, memory = problem(depth, rng)
        padding = predicted(a, w, a_scales, read_scales(memory, tiles))
        passing = predicted(a, w, a_scales, passed_scales(memory, tiles))
        result = on_gpu(a, w, a_scales, memory, tiles) if hopper else padding
        print(f"{depth:6} {tiles:6} {share(result, passing):18.1%} {share(result, padding):18.1%}"
              + ("" if hopper else "   (no Hopper GPU: the padded scales' prediction)"))


if __name__ == "__main__":
    main()
