"""NVFP4 is one name for several definitions, whose scales and codes differ.

    python examples/python/findings/nvfp4_definitions.py

Quantizes the same tensors by each, and counts what differs from TransformerEngine's. Then tensors
with a tile of zeros, with a tile that is far smaller than the others, and with an Inf.
"""

import numpy as np

import samebits as sb

PRESETS = ["NVFP4_STATIC6", "NVFP4_TORCHAO", "NVFP4_VLLM"]
TENSORS = 200


def tensors():
    """Yield Gaussian tensors [128, 1024] in bf16, each with an amax of its own."""
    rng = np.random.default_rng(0)
    for _ in range(TENSORS):
        x = rng.standard_normal((128, 1024)) * rng.uniform(0.5, 2)
        yield sb.convert(x.astype(np.float32), "bf16")


def share(name):
    """Return the shares of scales and of codes that differ from TransformerEngine's."""
    scales = codes = 0.0
    for x in tensors():
        ours, te = sb.quantize(x, name), sb.quantize(x, "NVFP4_TE")
        scales += np.mean(ours.scales.view(np.uint8) != te.scales.view(np.uint8))
        codes += np.mean(ours.codes.view(np.uint8) != te.codes.view(np.uint8))
    return scales / TENSORS, codes / TENSORS


def fate(name, tile):
    """Return the scale byte and the first value of a tile behind a tile of 1000."""
    x = np.full((1, 32), 1000, np.float32)
    x[0, 16:] = tile
    q = sb.quantize(x, name)
    return f"{int(q.scales.view(np.uint8)[0, 1]):02X} {q.dequantize()[0, 16]:g}"


def main():
    print(f"{'preset':15} {'scales':9} {'codes':9} {'zeros':7} {'1e-4':9} {'Inf'}")
    for name in ["NVFP4_TE", *PRESETS]:
        scales, codes = share(name)
        cells = [fate(name, tile) for tile in (0.0, 1e-4, np.inf)]
        print(f"{name:15} {scales:<9.3%} {codes:<9.3%} {cells[0]:7} {cells[1]:9} {cells[2]}")


if __name__ == "__main__":
    main()
