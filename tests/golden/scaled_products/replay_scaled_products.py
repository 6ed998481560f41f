"""Scaled FP8 products that cuBLASLt returned on a GPU, against matmul() without one; ../README.md has the format."""
import collections
import functools
import pathlib

import numpy as np

import samebits as sb

ORDERS = ("product", "product_fused", "a_then_b", "a_then_b_fused", "b_then_a", "b_then_a_fused")
#: What has one scale in A and in B: the order of cublaslt_order(), as unit.matmul has it.
OF_TILES = {
    ("line", "line"): "b_then_a",
    ("line_by_128", "line_by_128"): "a_then_b_fused",
    ("line_by_128", "square_of_128"): "product_fused",
    ("square_of_128", "line_by_128"): "product_fused",
    ("whole", "whole"): "product_fused",
}
WORDS = {"a": "u1", "w": "u1", "s": "u4", "t": "u4", "d": "u4"}


def recordings():
    """Rows of A and D, columns of B, and the scales of each row and column."""
    found = []
    for line in (pathlib.Path(__file__).parent / "h200.txt").read_text().splitlines():
        key, *words = line.split()
        if key == "product":
            a, w, _, _, depth, promotion, *tiles = words
            found.append({"formats": (a, w), "depth": int(depth), "promotion": int(promotion), "tiles": tuple(tiles),
                          **{k: [] for k in WORDS}})
        elif key != "#":
            row = np.frombuffer(bytes.fromhex("".join(words)), WORDS[key].replace("u", ">u"))
            found[-1][key].append(row.astype(WORDS[key]))
    return found


def replayed(r, order, backend=None):
    """The product, with a scale for each line in place of the library's tiles."""
    deep = 128 if "128" in r["tiles"][0] else 0
    a, w, a_scales, w_scales = (np.array(r[key]) for key in "awst")
    return sb.matmul(a, w.T, unit="hopper_wgmma", promotion=r["promotion"], a_format=r["formats"][0],
                     b_format=r["formats"][1], a_scales=a_scales.view(np.float32), a_tile=(1, deep),
                     b_scales=w_scales.view(np.float32).T, b_tile=(deep, 1), scale_order=order, backend=backend)


def is_recorded(r, *arguments):
    return np.array_equal(replayed(r, *arguments).view(np.uint32), np.array(r["d"]))


def test_every_backend_returns_what_the_gpu_did():
    hosts = [b.name for b in sb.backends() if b.supported and b.memory == "host"]
    assert "reference" in hosts
    for r in recordings():
        for backend in hosts:
            assert is_recorded(r, OF_TILES[r["tiles"]], backend), (backend, r["tiles"])


def test_no_other_order_of_scales_gives_all_products_of_some_tiles():
    right = collections.defaultdict(list)
    for r in recordings():
        right[r["tiles"]].append({order for order in ORDERS if is_recorded(r, order)})
    assert set(right) == set(OF_TILES)
    for tiles, orders in right.items():
        assert functools.reduce(set.intersection, orders) == {OF_TILES[tiles]}
