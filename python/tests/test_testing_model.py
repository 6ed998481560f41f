"""Tests of the test kit's models: they return the bits of the library and of ml_dtypes."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import numpy as np
import pytest

from samebits import convert, recipes
from samebits.testing import inputs
from samebits.testing.model import NanPolicy, Overflow, Rounding, Rule, convert_codes
from samebits.testing.number_formats import FORMATS, array_of, codes_of, dtype_of, is_nan
from samebits.testing.quantize_inputs import matrix, shapes, source_array
from samebits.testing.quantize_model import POWER_OF_TWO_RULES, SCALE_RULES, quantize_model
from samebits.testing.random_words import random_words
from samebits.testing.reference import quantized, recipe_rule, reduced
from samebits.testing.sums import REDUCTIONS

NARROW = [n for n, f in FORMATS.items() if f.storage_bits <= 16 and n != "e8m0"]
TARGETS = [n for n in FORMATS if n not in ("tf32", "e8m0")]  # ml_dtypes has other rules for e8m0
POLICIES = [p for p in product(get_args(Rounding), get_args(Overflow), get_args(NanPolicy))
            if p[2] != "any"]


@pytest.mark.parametrize("source", FORMATS)
def test_conversions_are_the_library_s(source: str) -> None:
    rng = np.random.default_rng(0)
    for target in FORMATS:
        f, to = FORMATS[source], FORMATS[target]
        codes = inputs.edge_codes(f, to)
        codes = np.concatenate([codes, inputs.random_codes(f, to, 300, rng)])
        at = np.arange(codes.size, dtype=np.uint64)
        for rounding, overflow, nan in POLICIES[int(rng.integers(4))::4]:
            bits = int(rng.integers(1, 33))
            rule = Rule(f, to, rounding, overflow, nan, 5, 6, 2**64 - 40, bits)
            got = convert_codes(codes, rule, at + np.uint64(2**64 - 40))
            right = np.asarray(convert(
                codes.astype(f.code_dtype), target, format=source, rounding=rounding,
                overflow=overflow, nan=nan, seed=5, random_stream=6, offset=2**64 - 40,
                random_bits=bits))
            np.testing.assert_array_equal(got, right.view(to.code_dtype), str(rule))


@pytest.mark.parametrize(("source", "target"), list(product(NARROW, TARGETS)))
def test_narrow_conversions_are_those_of_ml_dtypes(source: str, target: str) -> None:
    f, to = FORMATS[source], FORMATS[target]
    codes = inputs.every_code(f)
    got = convert_codes(codes, Rule(f, to))
    with np.errstate(all="ignore"):
        expected = codes_of(array_of(codes, f).astype(dtype_of(to)), to)
    compared = ~is_nan(codes, f) | np.bool_(to.has_nan)  # without NaN, ml_dtypes gives any code
    same = (got == expected) | (is_nan(got, to) & is_nan(expected, to))
    assert same[compared].all()


def test_random_words_are_those_of_the_contract() -> None:
    table = [(1, 0, 0, 32, 0xE3E80670), (1, 0, 1, 32, 0xE50A0EBC), (1, 0, 4, 32, 0xAC08141B),
             (0x123456789ABCDEF0, 5, 3, 16, 0x70BB), (0x123456789ABCDEF0, 5, 8, 16, 0x3C2C),
             (2**63 + 7, 2**40 + 1, 2**34 + 5, 32, 0x900FB54D)]
    for seed, stream, index, bits, word in table:
        assert random_words(seed, stream, np.array([index], np.uint64), bits)[0] == word


def compare(options: dict[str, Any], recipe: str | None = None, source: str = "fp32") -> None:
    rule = recipe_rule(recipe, **options).but(source=FORMATS[source])
    rng = np.random.default_rng(1)
    for shape in shapes(rule.tile)[::4]:
        x = matrix(shape, rule, rng)
        got, expected = quantize_model(x, rule), quantized(source_array(x, rule.source), rule)
        np.testing.assert_array_equal(got.scales, expected.scales, str(rule))
        np.testing.assert_array_equal(got.codes, expected.codes, str(rule))


@pytest.mark.parametrize("name", [n for n in recipes if recipes[n].source == "current"])
def test_recipes_are_the_library_s(name: str) -> None:
    for source in ("fp32", "fp16", "bf16"):
        compare({}, name, source)


@pytest.mark.parametrize("scale", SCALE_RULES)
def test_scale_rules_are_the_library_s(scale: str) -> None:
    for nonfinite in ("te", "skip_nonfinite", "skip_nan", "propagate"):
        options = {"tile": (1, 16), "scale": scale, "nonfinite": nonfinite}
        compare({**options, "scale_overflow": "input_max"})
        compare({**options, "eps": 1e-6, "upper_bound": 3.0, "overflow": "ieee"}, source="bf16")
        if scale in POWER_OF_TWO_RULES:
            compare({**options, "scale_format": "e8m0", "tile": (16, 16)})


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_the_library_s(name: str) -> None:
    rng = np.random.default_rng(2)
    f = FORMATS["fp32"]
    for size in (0, 1, 2, 3, 7, 100, 4097):
        codes = rng.integers(0x30000000, 0x50000000, size, np.uint64)
        with np.errstate(all="ignore"):
            got = REDUCTIONS[name].reduce(array_of(codes, f).astype(np.float64))
        assert got == reduced(name, codes, f)
