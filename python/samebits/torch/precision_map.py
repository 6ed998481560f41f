"""The precision of each layer of a model, from a JSON file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from samebits.errors import InvalidArgument
from samebits.formats import nearest_first
from samebits.torch.linear_recipe import LinearRecipe, linear_recipe, linear_recipe_names

__all__ = ["PrecisionMap", "load_precision_map"]

#: Values for layers that stay torch.nn.Linear.
_UNQUANTIZED: Final = ("bf16", "fp16", "fp32")


@dataclass(frozen=True)
class PrecisionMap:
    """Patterns of layer names, each with a recipe; the first pattern that matches decides.

    Attributes
    ----------
    layers : mapping of str to str
        Patterns, in order, with a name of `linear_recipe_names`, or bf16, fp16 or fp32 for a layer
        that stays a `torch.nn.Linear`. In a pattern, ``*`` stands for any characters, dots
        included, ``?`` for one character, and ``[...]`` for one of these characters.

    Raises
    ------
    InvalidArgument
        A pattern is empty, or a recipe is unknown.

    Examples
    --------
    >>> precision = sbt.PrecisionMap({"h.*.mlp.*": "TE_CURRENT", "lm_head": "bf16"})
    >>> precision.recipe_of("h.0.mlp.c_fc").name
    'TE_CURRENT'
    >>> precision.recipe_of("lm_head") is precision.recipe_of("h.0.attn.c_proj") is None
    True
    """

    layers: Mapping[str, str]

    def __post_init__(self) -> None:
        for pattern, name in self.layers.items():
            if not pattern:
                raise InvalidArgument("layers: a pattern is empty; pass '*' for every layer")
            if not isinstance(name, str):
                raise InvalidArgument(f"layers[{pattern!r}]: a string is expected, such as "
                                      f"'TE_CURRENT' or 'bf16'; got {name!r}")
            if name.lower() in _UNQUANTIZED:
                continue
            try:
                linear_recipe(name)
            except InvalidArgument:
                known = (*linear_recipe_names(), *_UNQUANTIZED)
                raise InvalidArgument(f"layers[{pattern!r}]: {name!r} is not one of "
                                      f"{nearest_first(name, known)}") from None

    def recipe_of(self, layer: str) -> LinearRecipe | None:
        """Return the recipe of a layer; None if the layer stays as it is.

        That is: the first pattern that matches says bf16, fp16 or fp32, or no pattern matches.
        """
        for pattern, name in self.layers.items():
            if fnmatchcase(layer, pattern):
                return None if name.lower() in _UNQUANTIZED else linear_recipe(name)
        return None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file that `load_precision_map` reads.

        Parameters
        ----------
        path : str or path
        """
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "layers": dict(self.layers)}, file, indent=2)

    def names(self, layer: str, others: Iterable[str]) -> bool:
        """Return whether a pattern with a recipe matches this layer and none of the others."""
        names = list(others)
        return any(recipe.lower() not in _UNQUANTIZED and fnmatchcase(layer, pattern)
                   and not any(fnmatchcase(name, pattern) for name in names)
                   for pattern, recipe in self.layers.items())

    def check_names(self, layers: Iterable[str]) -> None:
        """Refuse patterns with a recipe that match none of the layers, such as misspelt ones."""
        names = list(layers)
        for pattern, recipe in self.layers.items():
            unquantized = recipe.lower() in _UNQUANTIZED
            if not unquantized and not any(fnmatchcase(name, pattern) for name in names):
                raise InvalidArgument(
                    f"layers[{pattern!r}]: no torch.nn.Linear of the model matches; its layers are "
                    f"{nearest_first(pattern, names) or 'none'}")


def load_precision_map(path: str | os.PathLike[str]) -> PrecisionMap:
    """Read a JSON file that says the precision of each layer.

    Parameters
    ----------
    path : str or path
        A file like ``{"version": 1, "layers": {"h.*.mlp.*": "TE_CURRENT", "lm_head": "bf16"}}``.
        Its patterns and values are those of `PrecisionMap`. An entry "comment" is ignored.

    Returns
    -------
    PrecisionMap
        For `convert_linears`.

    Raises
    ------
    InvalidArgument
        The file is no JSON, has another version, an unknown or a repeated entry, or names an
        unknown recipe. The message begins with the path.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "map.json")
    >>> sbt.PrecisionMap({"*": "TE_BLOCK_1D"}).save(path)
    >>> sbt.load_precision_map(path).layers
    {'*': 'TE_BLOCK_1D'}
    """
    try:
        with open(path, encoding="utf-8") as file:
            return _map_of(json.load(file, object_pairs_hook=_unique))
    except InvalidArgument as error:
        raise InvalidArgument(f"{os.fspath(path)}: {error}") from None
    except ValueError as error:  # of JSON or UTF-8
        raise InvalidArgument(f"{os.fspath(path)}: no JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict; refuse an entry that occurs twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidArgument(f"{key!r} occurs twice; remove one")
        found[key] = value
    return found


def _map_of(content: Any) -> PrecisionMap:
    if not isinstance(content, dict):
        raise InvalidArgument('an object {"version": 1, "layers": {...}} is expected; got '
                              f"{content!r:.40}")
    unknown = set(content) - {"version", "layers", "comment"}
    if unknown:
        raise InvalidArgument(f"{min(unknown)!r} is no entry; there are version, layers, comment")
    version = content.get("version")
    if version != 1 or isinstance(version, bool):
        raise InvalidArgument(f"version: {version!r} is not one of 1")
    layers = content.get("layers")
    if not isinstance(layers, dict):
        raise InvalidArgument(f"layers: an object of patterns is expected; got {layers!r:.40}")
    return PrecisionMap(layers)
