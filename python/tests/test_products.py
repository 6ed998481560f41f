"""Rules of matrix products, against what PyTorch 2.11 returned on an H200."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samebits as sb
from recorded import elements, recording, sha

#: A row a product: which, format, M, N, K, first seed, rule, and the first half of the SHA-256 of at
#: most 16 x 16 results. Of 736 recorded products 735 have a rule; these are rows with every kind of rule.
RECORDED = recording("products")


def operands(row: Any) -> tuple[Any, Any, Any]:
    """Return the rows of A, the columns of B and the C of the results that were recorded."""
    kind, form, m, n, k, seed = row[:6]
    a_shape, b_shape = {"fwd": ((m, k), (n, k)), "dx": ((m, k), (k, n)), "dw": ((k, m), (k, n)),
                        "bmm": ((12, m, k), (12, n, k)), "bmmn": ((12, m, k), (12, k, n))}[kind]
    a, b = elements(seed, a_shape, form), elements(seed + 1, b_shape, form)
    if len(a_shape) == 3:
        a, b = a[7], b[7]
    if kind == "dw":
        a = a.T
    if kind in ("fwd", "bmm"):
        b = b.T
    rows, cols = (np.linspace(0, size - 1, min(16, size)).astype(int) for size in (m, n))
    c = None
    if kind == "fwd":  # with a bias
        c = np.broadcast_to(elements(seed + 2, (n,), form)[cols], (len(rows), len(cols)))
    return a[rows], b[:, cols], c


def product(row: Any, rule: str) -> Any:
    """Return the recorded results as a rule computes them."""
    a, b, c = operands(row)
    return sb.matmul(a, b, rule=rule, c=c, out=row[1])


def test_recorded_on_a_gpu() -> None:
    for row in RECORDED:
        assert sha(product(row, row[6])) == row[7], row


def test_finds_the_rules() -> None:
    for row in RECORDED[::4]:
        a, b, c = operands(row)
        assert sb.find_rule(a, b, product(row, row[6]), c=c)[0] == row[6], row


def test_one_wrong_bit_has_no_rule() -> None:
    row = next(r for r in RECORDED if "slices=4" in r[6] and r[1] == "fp32")
    a, b, c = operands(row)
    d = product(row, row[6])
    d.view(np.uint32)[3, 5] ^= 1
    assert sb.find_rule(a, b, d, c=c, max_slices=8) == []


def test_rule_is_the_options_it_names() -> None:
    a = elements(1, (8, 300), "bf16")
    options: dict[str, Any] = {"slices": 3, "slice_tile": 16, "slice_rounding": "each", "residue_tile": 32}
    rule = "sum=tensor_core unit=hopper-wgmma " + " ".join(f"{k}={v}" for k, v in options.items())
    d = sb.matmul(a, a.T, unit="hopper_wgmma", out="bf16", **options)
    assert d.tobytes() == sb.matmul(a, a.T, rule=rule, out="bf16").tobytes()
    told = sb.predict(a, a.T, rule=rule, out="bf16")
    assert told.value.tobytes() == d.tobytes()
    assert told.evidence == "hardware"
    fused = sb.predict(a, a.T, rule="sum=ieee_fp32 order=ascending_fused")
    assert (fused.evidence, fused.error.count) == ("none", 64)


def test_refusals() -> None:
    a = elements(1, (4, 4), "fp32")
    given: dict[str, Any]
    for given in ({"unit": "hopper_wgmma"}, {"sum": "exact"}, {"slices": 2}, {"c_enters": "first"}):
        with pytest.raises(sb.InvalidArgument, match="^rule: pass no other option"):
            sb.matmul(a, a, rule="sum=exact", **given)
    with pytest.raises(sb.InvalidArgument, match="^rule: must start with sum=, got 'slices=2'"):
        sb.matmul(a, a, rule="slices=2")
    with pytest.raises(TypeError, match="rule"):
        sb.matmul(a, a, rule=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^d: an array is expected"):
        sb.find_rule(a, a, "fp32")
    with pytest.raises(sb.InvalidArgument, match="^d: shape must be"):
        sb.find_rule(a, a, a[:2])
    with pytest.raises(sb.InvalidArgument, match="^max_slices: must be at least 1, got 0"):
        sb.find_rule(a, a, a, max_slices=0)
    with pytest.raises(sb.InvalidArgument, match="units"):
        sb.find_rule(a, a, a, units=["hopper"])  # type: ignore[list-item]
