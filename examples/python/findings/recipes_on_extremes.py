"""What FP8 recipes make of a tile with one Inf, of a tile with one NaN, and of a tiny tile.

    python examples/python/findings/recipes_on_extremes.py

The other elements of the tile are finite, around 2^-12. docs/quantization.md says which of these
results were recorded from the library itself, and for which its source was read.
"""

import numpy as np

import samebits as sb

PRESETS = ["TE_BLOCK_1D", "TE_CURRENT", "DEEPGEMM_FP32_CUDA", "DEEPGEMM_UE8M0", "DSV3_IEEE",
           "VLLM_GROUP", "TORCHAO_BLOCK", "TORCHAO_ROW", "FBGEMM_ROW", "MXFP8_TE",
           "MXFP8_TORCHAO", "MXFP8_FLOOR"]


def tile(bad):
    """Return a tile [1, 32] of numbers around 2^-12, as gradients are, with one bad element."""
    x = np.linspace(0.5, 1.5, 32, dtype=np.float32).reshape(1, 32) * np.float32(2.0**-12)
    x[0, 5] = bad
    return x


def fate(x, preset):
    """Return what becomes of the finite elements of a tile."""
    back = sb.quantize(x, preset).dequantize()
    finite = np.isfinite(x)
    got, right = back[finite], x[finite]
    if np.isnan(got).all():
        return "all NaN"
    if (got == 0).all():
        return "all 0"
    return "kept" if np.all(np.abs(got - right) <= right / 8) else "wrong"


def smallest_kept(preset):
    """Return the smallest power of two that is not lost in a tile of nothing larger."""
    kept = None
    for exponent in range(0, -150, -1):
        x = np.full((1, 32), np.ldexp(np.float32(1), exponent), np.float32)
        if not sb.quantize(x, preset).dequantize().any():
            break
        kept = exponent
    return kept


def main():
    print(f"{'preset':20} {'beside Inf':12} {'beside NaN':12} smallest amax that is kept")
    for preset in PRESETS:
        print(f"{preset:20} {fate(tile(np.inf), preset):12} {fate(tile(np.nan), preset):12} "
              f"2^{smallest_kept(preset)}")


if __name__ == "__main__":
    main()
