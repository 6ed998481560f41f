"""Right results: those of the library itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from samebits.testing.model import Rule, convert_codes
from samebits.testing.number_formats import Codes
from samebits.testing.quantize_model import Floats, Quantized, QuantizeRule, quantize_model
from samebits.testing.runs import indices


def converted(codes: Codes, rule: Rule, position: Any) -> Codes:
    """Return the right results of elements at these positions of their calls."""
    return convert_codes(codes, rule, indices(rule, position))


def recipe_rule(recipe: Any, **options: Any) -> QuantizeRule:
    """Return the rules of a recipe, some of them replaced."""
    return QuantizeRule(**options)


def quantized(x: Floats, rule: QuantizeRule) -> Quantized:
    """Return the right codes and scales of a matrix."""
    return quantize_model(x, rule)
