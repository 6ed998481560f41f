"""Recipes: the quantization rules of other libraries, by name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.formats import nearest_first

if TYPE_CHECKING:
    from samebits.typing import (
        Format,
        Nonfinite,
        Overflow,
        RecipeName,
        ScaleOverflow,
        ScaleRule,
        ScaleSource,
    )

__all__ = ["Recipe", "recipes"]

#: The fields of `Recipe` that are rules, in the order of the library's table; the first make scales.
RULES: Final = ("tile", "scale", "eps", "upper_bound", "nonfinite", "scale_overflow", "overflow",
                "scale_format", "source", "code_format")
SCALE_RULES: Final = RULES[:6]


@dataclass(frozen=True)
class Recipe:
    """Everything besides the input that determines codes and scales; wrong rules are refused.

    Attributes
    ----------
    name : str
        Name of the preset; empty for your own rules.
    tile : (int, int)
        Rows and columns that share a scale. 0 is the whole extent: (1, 0) is a scale per row,
        (0, 1) per column, (0, 0) per tensor. All other tiles are 1 x G, G x 1 or G x G with G one
        of 16, 32, 64, 128, 256.
    scale : str
        Scale rule: te, div, rcp, pow2, dg_cuda, dg_tile, sgl_v2, te_pow2, mx_floor, mx_ceil,
        mx_even or mx_rceil; with two levels nvfp4_te, nvfp4_static6, nvfp4_4over6_mae,
        nvfp4_4over6_mse, nvfp4_torchao or nvfp4_vllm.
    eps, upper_bound : float
        Bounds of a tile's amax.
    nonfinite : str
        Treatment of NaN and Inf in a tile's amax: te, skip_nonfinite, skip_nan or propagate.
    scale_overflow : str
        Replacement of an inverse scale that overflows: flt_max or input_max. Only the rules te and
        te_pow2 read it.
    overflow : str
        Overflow of the codes: saturate, ieee or saturate_finite.
    scale_format : str
        fp32 or e8m0; e4m3 with two levels.
    source : str
        current: scales from the tensor itself. delayed: the caller passes ``inverse_scales=``.
    code_format : str
        Format of the codes: e4m3, e5m2, e2m1, e2m3 or e3m2. e4m3 may be replaced by e5m2.
    reproduces, version : str
        The calls that this preset reproduces, and the version of the library's source.
    exceptions : str
        Cases in which equal bits are not claimed.
    evidence, evidence_nonfinite : str
        Evidence for finite elements, and for tiles with NaN or Inf. "library output": compared with
        the library's own output. "unverified": formulas read in the library's source.

    Raises
    ------
    InvalidArgument, TypeError
        No tensor could be quantized by these rules; the message names the field.

    Examples
    --------
    >>> sb.Recipe(tile=(1, 32), scale="mx_rceil", scale_format="e8m0").source
    'current'
    """

    name: str = ""
    tile: tuple[int, int] = (1, 128)
    scale: ScaleRule = "te"
    eps: float = 0.0
    upper_bound: float = math.inf
    nonfinite: Nonfinite = "te"
    scale_overflow: ScaleOverflow = "flt_max"
    overflow: Overflow = "saturate"
    scale_format: Format = "fp32"
    source: ScaleSource = "current"
    code_format: Format = "e4m3"
    reproduces: str = ""
    version: str = ""
    exceptions: str = ""
    evidence: str = "unverified"
    evidence_nonfinite: str = "unverified"

    def __post_init__(self) -> None:
        """Refuse rules by which no tensor could be quantized."""
        _core.check_recipe(attrgetter(*RULES)(self))


class _Recipes(Mapping[str, Recipe]):
    """The presets by name."""

    def __init__(self) -> None:
        self._presets = {row["name"]: Recipe(**row) for row in _core.recipes()}

    def __getitem__(self, name: str) -> Recipe:
        found = self._presets.get(name.upper()) if isinstance(name, str) else None
        if found is None:
            raise KeyError(
                f"recipe: {name!r} is not one of {nearest_first(str(name).upper(), self._presets)}"
            )
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._presets)

    def __len__(self) -> int:
        return len(self._presets)

    def __repr__(self) -> str:
        return f"<recipes: {', '.join(self._presets)}>"


#: The presets by name, a mapping.
#:
#: >>> import samebits as sb
#: >>> sb.recipes["TE_CURRENT"].tile
#: (0, 0)
recipes = _Recipes()


def recipe_of(recipe: Recipe | RecipeName | str) -> Recipe:
    """Return the recipe with a name; return a `Recipe` unchanged."""
    if isinstance(recipe, Recipe):
        return recipe
    if not isinstance(recipe, str):
        raise TypeError(f"recipe: a name or a Recipe is expected; got a {type(recipe).__name__}")
    try:
        return recipes[recipe]
    except KeyError as error:
        raise InvalidArgument(str(error.args[0])) from None
