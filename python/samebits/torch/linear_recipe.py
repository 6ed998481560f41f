"""Recipes of linear layers: how activations, weights and gradients are quantized."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from samebits.errors import InvalidArgument
from samebits.formats import nearest_first
from samebits.recipes import Recipe, recipe_of, recipes

__all__ = ["LinearRecipe", "linear_recipe", "linear_recipe_names"]

TENSOR: Final = (0, 0)
ROW: Final = (1, 0)
LINE_OF_128: Final = (1, 128)
SQUARE_OF_128: Final = (128, 128)
LINE_OF_32: Final = (1, 32)

#: The tiles of (activations, weights, gradients) that scaled_mm multiplies, and the formats of
#: gradients in these products.
_COMBINATIONS: Final[dict[tuple[tuple[int, int], ...], tuple[str, ...]]] = {
    (TENSOR, TENSOR, TENSOR): ("e4m3", "e5m2"),
    (ROW, ROW, ROW): ("e4m3",),
    (LINE_OF_128, SQUARE_OF_128, LINE_OF_128): ("e4m3",),
    (LINE_OF_128, LINE_OF_128, LINE_OF_128): ("e4m3",),
    (LINE_OF_32, LINE_OF_32, LINE_OF_32): ("e4m3",),
}

#: The three products of a linear layer, by the names of their results.
PRODUCTS: Final = ("y", "dx", "dw")


def text_of(tile: tuple[int, int]) -> str:
    """Return a tile as pages write it."""
    return {TENSOR: "tensor", ROW: "row"}.get(tile, f"{tile[0]}x{tile[1]}")


@dataclass(frozen=True)
class LinearRecipe:
    """How a linear layer quantizes the operands of its three products.

    The products are y = x w^T, dx = dy w and dw = dy^T x. Activations x and weights w become E4M3.
    Every operand is quantized along the axis that its product sums over, directly from its values,
    never from codes.

    Attributes
    ----------
    activations, weights, gradients : Recipe
        Rules for x [tokens, in], w [out, in] and dy [tokens, out]. Tiles lie along the last axis.
    gradient_format : str
        Format of the codes of dy: e4m3 or e5m2.
    name : str
        Name of the recipe; empty for your own rules.

    Raises
    ------
    InvalidArgument
        torch.nn.functional.scaled_mm does not multiply these tiles or formats.

    Examples
    --------
    >>> recipe = sbt.linear_recipe("TE_BLOCK_1D")
    >>> recipe.activations.tile, recipe.weights.tile, recipe.gradients.tile
    ((1, 128), (128, 128), (1, 128))
    """

    activations: Recipe
    weights: Recipe
    gradients: Recipe
    gradient_format: str = "e4m3"
    name: str = ""

    def __post_init__(self) -> None:
        operands = {"activations": self.activations, "weights": self.weights,
                    "gradients": self.gradients}
        for role, rules in operands.items():
            if not isinstance(rules, Recipe):
                raise TypeError(f"{role}: a Recipe is expected; got a {type(rules).__name__}")
            _check_source(role, rules)
        tiles = tuple(rules.tile for rules in operands.values())
        formats = _COMBINATIONS.get(tiles)
        if formats is None:
            known = "; ".join(", ".join(map(text_of, each)) for each in _COMBINATIONS)
            raise InvalidArgument(
                "activations, weights, gradients: scaled_mm has no product for tiles of "
                f"{', '.join(map(text_of, tiles))}; pass one of these: {known}"
            )
        if self.gradient_format not in formats:
            raise InvalidArgument(
                f"gradient_format: {self.gradient_format!r} is not one of {', '.join(formats)}, "
                f"which scaled_mm multiplies with scales per {text_of(self.gradients.tile)}"
            )
        scales = "e8m0" if self.gradients.tile == LINE_OF_32 else "fp32"
        for role, rules in operands.items():
            if rules.scale_format != scales:
                raise InvalidArgument(
                    f"{role}: scales in {rules.scale_format}; scaled_mm reads {scales} for tiles of "
                    f"{text_of(rules.tile)}; "
                    f"pass dataclasses.replace({role}, scale_format={scales!r})"
                )

    @property
    def allows_fast_accumulation(self) -> bool:
        """Whether cuBLASLt can compute y with fast accumulation."""
        return self.gradients.tile in (TENSOR, ROW)

    @property
    def coverage(self) -> dict[str, str]:
        """For y, dx and dw: "covered", or the reason why CPU and GPU results may differ.

        "covered": on a Hopper GPU the product has the bits of the CPU, unless cuBLASLt splits the
        sum. It does so for few outputs with a long sum; scaled_mm has no option that forbids it.
        """
        if self.gradients.tile == LINE_OF_32:
            return dict.fromkeys(PRODUCTS, "not covered: no model of MXFP8 tensor cores")
        return dict.fromkeys(PRODUCTS, "covered")


def _check_source(argument: str, rules: Recipe) -> None:
    """Refuse a recipe with scales of earlier steps."""
    if rules.source != "current":
        raise InvalidArgument(
            f"{argument}: {rules.name or 'the recipe'} takes its scales from earlier steps, which no "
            "layer here keeps; pass 'TE_CURRENT'"
        )


def _of_preset(recipe: Recipe) -> LinearRecipe:
    """Return the recipe of a layer that applies one recipe to all its operands.

    Tiles of 1 x 128 and 128 x 128 belong together: square tiles are for weights. With one scale per
    tensor, gradients are E5M2, as in TransformerEngine's hybrid format.
    """
    _check_source("recipe", recipe)
    if recipe.tile in (LINE_OF_128, SQUARE_OF_128):
        line = replace(recipe, tile=LINE_OF_128)
        return LinearRecipe(line, replace(recipe, tile=SQUARE_OF_128), line, name=recipe.name)
    hybrid = "e5m2" if recipe.tile == TENSOR else "e4m3"
    return LinearRecipe(recipe, recipe, recipe, hybrid, recipe.name)


def linear_recipe_names() -> tuple[str, ...]:
    """Return the names that `linear_recipe` knows: presets of FP8 with scales of the tensor itself.

    Examples
    --------
    >>> "TE_CURRENT" in sbt.linear_recipe_names(), "TE_DELAYED" in sbt.linear_recipe_names()
    (True, False)
    """
    return tuple(name for name, rules in recipes.items()
                 if rules.source == "current" and rules.code_format == "e4m3")


def linear_recipe(recipe: LinearRecipe | Recipe | str) -> LinearRecipe:
    """Return the recipe of a linear layer.

    Parameters
    ----------
    recipe : str, Recipe or LinearRecipe
        A name of `linear_recipe_names`, in upper or lower case; rules of your own for all operands;
        or a `LinearRecipe`, which is returned as it is. A recipe with tiles of 1 x 128 or 128 x 128
        gives 128 x 128 to weights and 1 x 128 to activations and gradients. A recipe with one scale
        per tensor gives E5M2 to gradients.

    Raises
    ------
    InvalidArgument
        The name is unknown, or scaled_mm does not multiply the tiles.

    Examples
    --------
    >>> sbt.linear_recipe("TE_CURRENT").gradient_format
    'e5m2'
    """
    if isinstance(recipe, LinearRecipe):
        return recipe
    if isinstance(recipe, str) and recipe.upper() not in recipes:
        raise InvalidArgument(
            f"recipe: {recipe!r} is not one of "
            f"{nearest_first(recipe.upper(), linear_recipe_names())}"
        )
    if not isinstance(recipe, (str, Recipe)):
        raise TypeError("recipe: a name, a Recipe or a LinearRecipe is expected; "
                        f"got a {type(recipe).__name__}")
    rules = recipe_of(recipe)
    if rules.code_format != "e4m3":
        raise InvalidArgument(f"recipe: layers multiply codes of FP8; {rules.name or 'this one'} has "
                              f"{rules.code_format}")
    return _of_preset(rules)
