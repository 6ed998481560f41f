"""The right results: what samebits itself returns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from samebits.quantize import quantize
from samebits.recipes import RULES, Recipe, recipe_of
from samebits.reductions import amax, sum, sum_of_squares
from samebits.testing.number_formats import FORMATS, Codes, Format, array_of
from samebits.testing.quantize_model import Quantized, QuantizeRule

_REDUCTIONS = {"sum": sum, "sum_of_squares": sum_of_squares, "amax": amax}
_RULES = [rule for rule in RULES if rule != "source"]


def recipe_rule(recipe: Recipe | str | None, **options: Any) -> QuantizeRule:
    """Return the rules of a recipe, some of them replaced.

    Raises
    ------
    InvalidArgument
        No recipe has this name.
    """
    rules = replace(Recipe() if recipe is None else recipe_of(recipe), **options)
    return QuantizeRule(**{field: getattr(rules, field) for field in _RULES})


def quantized(x: Any, rule: QuantizeRule) -> Quantized:
    """Return the right codes and scales of a matrix in the source's dtype."""
    result = quantize(
        x, to=rule.to.name, rounding=rule.rounding,
        **{field: getattr(rule, field) for field in _RULES})
    scale_dtype = FORMATS[rule.scale_format].code_dtype
    return Quantized(np.asarray(result.codes).view(np.uint8).astype(np.uint64),
                     np.asarray(result.scales).view(scale_dtype).astype(np.uint64))


def reduced(reduction: str, codes: Codes, source: Format) -> float:
    """Return the right result of a reduction."""
    return _REDUCTIONS[reduction](array_of(codes, source), format=source.name)
