"""Tests of `samebits.testing.check_quantize`: planted errors, a right kernel, texts, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planted import SEEDS, failure_of, repeated, results_per_error
from planted_quantizers import OPTIONS, PLANTED, SAYS, quantizer
from samebits.testing import check_quantize

SHAPES = [(1, 1), (2, 128), (3, 129), (5, 300)]


def failure(kernel: Any, **options: Any) -> str:
    """Return the text of a check that must fail."""
    return failure_of(check_quantize, kernel, **{**OPTIONS, **options})


@pytest.mark.parametrize("says", PLANTED)
def test_planted_error_is_found_shrunk_and_named(says: str, record_property: Any) -> None:
    for seed in SEEDS:
        text = failure(PLANTED[says], shapes=SHAPES, examples=12, examples_seed=seed)
        assert SAYS.get(says, says) in text.split("looks like: ")[1], text
        assert "(smallest case found)" in text
        elements = int(text.split(" of ")[2].split(" codes")[0])
        assert elements <= (129 if says == "scales of the next tile" else 16), text  # two tiles
        record_property("cases", results_per_error(text))


@pytest.mark.parametrize("seed", SEEDS)
def test_right_kernel_passes(seed: int) -> None:
    check_quantize(quantizer(), examples=4, examples_seed=seed, **OPTIONS)


def test_repeat_line_fails_with_the_same_case() -> None:
    text = failure(PLANTED["eps missing"], shapes=SHAPES)
    assert repeated(text, check_quantize, PLANTED["eps missing"])[:-2] == text.splitlines()[:-2]


def test_text_of_a_wrong_code() -> None:
    x = np.array([0x43E00000, 0x3F8C0000], "u4").reshape(1, 2)  # 448, 1.09375
    text = failure(PLANTED["codes rounded toward zero"], only=x)
    assert text.splitlines()[1:-2] == [
        "  matrix   [1, 2], tile [0, 0], code of element [0, 1]",
        "  input    0x3F8C0000 = 0|01111111|00011000000000000000000 = 0x1.18p+0 = 1.09375",
        "  scale    0x3F800000 = 1, right",
        "  got      0x38 = 0|0111|000 = 0x1p+0 = 1",
        "  expected 0x39 = 0|0111|001 = 0x1.2p+0 = 1.125",
        "  elements [0, 0] 0x43E00000 = 448, [0, 1] 0x3F8C0000 = 1.09375"]


def test_wrong_results_are_reported() -> None:
    right = quantizer()

    def raises(x: Any) -> Any:
        if x.shape[1] % 128:
            raise ValueError("whole tiles only")
        return right(x)

    assert "raises raised ValueError: whole tiles only\n  in a call with shape (1, 1)" in failure(raises, shapes=SHAPES)
    check_quantize(raises, shapes=[(2, 256)], **OPTIONS)
    assert "(x of shape (1, 1), codes) returned shape (1, 1, 1); expected (1, 1)" in failure(
        lambda x: (right(x)[0][None], right(x)[1]), shapes=SHAPES)
    assert "expected (codes, scales)" in failure(lambda x: right(x)[0], shapes=SHAPES)
    assert "(x of shape (1, 1), scales): expected an array of float32" in failure(
        lambda x: (right(x)[0], right(x)[1].astype(np.float64)), shapes=SHAPES)


def test_domain() -> None:
    def finite_only(x: Any) -> Any:
        assert np.isfinite(x).all()
        return quantizer()(x)

    check_quantize(finite_only, where=np.isfinite, examples=4, **OPTIONS)
    with pytest.raises(ValueError, match="where: no input satisfies the predicate"):
        check_quantize(finite_only, where=lambda x: np.zeros(x.shape, bool),
                       only=np.ones((1, 2), np.float32), **OPTIONS)
