"""Puts FP8 layers in the place of a model's linear layers."""

from __future__ import annotations

import re
from collections.abc import Callable

import torch

from samebits.errors import InvalidArgument
from samebits.recipes import Recipe
from samebits.torch.float8_linear import Float8Conv1D, Float8Linear
from samebits.torch.linear_recipe import LinearRecipe, linear_recipe
from samebits.torch.precision_map import PrecisionMap

__all__ = ["convert_linears", "float8_layers"]

_LISTED = 8  # layers of a recipe whose names are printed one by one


def _is_conv1d(module: torch.nn.Module) -> bool:
    """Whether a module is the linear layer of GPT-2, transformers.pytorch_utils.Conv1D.

    transformers need not be installed; other libraries have copies of this class.
    """
    weight = getattr(module, "weight", None)
    return (type(module).__name__ == "Conv1D" and isinstance(weight, torch.nn.Parameter)
            and weight.dim() == 2 and weight.shape[1] == getattr(module, "nf", None))


def _embedding_of(model: torch.nn.Module, layer: torch.nn.Module) -> str | None:
    """Return the name of the embedding whose weight is the layer's; None if there is none."""
    return next((name for name, m in model.named_modules()
                 if isinstance(m, torch.nn.Embedding) and m.weight is layer.weight), None)


def _refuse_without_linears(model: torch.nn.Module) -> None:
    """Refuse a model without a layer to convert; say if its layers were converted before."""
    converted = list(float8_layers(model))
    if converted:
        raise InvalidArgument(f"model: no torch.nn.Linear is left; {len(converted)} of its layers "
                              f"are Float8Linear already, such as {converted[0]!r}; for another "
                              "recipe convert a model of torch.nn.Linear layers")
    raise InvalidArgument("model: no torch.nn.Linear and no Conv1D of transformers; subclasses of "
                          "them are not converted")


def linear_layers(model: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """Return the names and layers that `convert_linears` may replace; refuse a model without any."""
    linears = [(name, module) for name, module in model.named_modules(remove_duplicate=False)
               if type(module) is torch.nn.Linear or _is_conv1d(module)]
    if not linears:
        _refuse_without_linears(model)
    return linears


def convert_linears(model: torch.nn.Module,
                    recipe: LinearRecipe | Recipe | PrecisionMap | str = "TE_CURRENT",
                    filter: Callable[[str, torch.nn.Module], bool] | None = None, *,
                    use_fast_accum: bool = False, verbose: bool = True) -> torch.nn.Module:
    """Replace the linear layers of a model by `Float8Linear` layers, in place; print which.

    Linear layers are `torch.nn.Linear`, and GPT-2's ``Conv1D`` of Hugging Face's transformers,
    whose weight is [in, out].

    Parameters
    ----------
    model : torch.nn.Module
        Its Parameters stay the same objects under the same names: optimizers, checkpoints and hooks
        stay valid. Call this function before the model is compiled or wrapped by FSDP.
    recipe : str, Recipe, LinearRecipe or PrecisionMap
        One recipe for all layers, or a map from names of layers to recipes.
    filter : function (name, module) -> bool, optional
        Which layers to replace. By default all but heads that share their weight with an embedding.
        Such a head is converted if a pattern of a map matches this layer only, such as its name.
    use_fast_accum : bool
        As in `Float8Linear`.
    verbose : bool
        Whether to print the layers that multiply in FP8, and those left alone.

    Returns
    -------
    torch.nn.Module
        `model`, changed in place; `float8_layers` lists its FP8 layers. If `model` itself is a
        linear layer, a new layer with its Parameters: the layer that was passed is not changed.

    Raises
    ------
    InvalidArgument
        A layer cannot be converted; the message names it. Or the model has no linear layer, for
        example because all of them were converted before. No layer was replaced.

    Notes
    -----
    Subclasses of `torch.nn.Linear` are left alone: `torch.nn.MultiheadAttention`, for example,
    reads the weights of such a layer without calling it.

    A `torch.nn.TransformerEncoder` with such layers gets ``use_nested_tensor = False``, because nested tensors cannot
    be quantized.

    Examples
    --------
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 10))
    >>> model = sbt.convert_linears(model, "TE_CURRENT", lambda name, m: m.out_features > 10)
    convert_linears: 1 layer multiplies in FP8
      TE_CURRENT: 0
      not converted: 1
    >>> model
    Sequential(
      (0): Float8Linear(in_features=64, out_features=64, bias=True, recipe=TE_CURRENT)
      (1): Linear(in_features=64, out_features=10, bias=True)
    )
    """
    linears = linear_layers(model)
    tied: dict[str, str] = {}  # heads left alone, with the names of their embeddings
    if filter is not None:
        found = [(name, module) for name, module in linears if filter(name, module)]
    else:
        tied = {name: embedding for name, module in linears
                if (embedding := _embedding_of(model, module)) is not None}
        if isinstance(recipe, PrecisionMap):
            others = [name for name, _ in linears if name not in tied]
            tied = {name: embedding for name, embedding in tied.items()
                    if not recipe.names(name, others)}
        found = [(name, module) for name, module in linears if name not in tied]
    if isinstance(recipe, PrecisionMap):
        recipe.check_names([name for name, _ in found])
    else:
        recipe = linear_recipe(recipe)
    layers: dict[torch.nn.Module, Float8Linear] = {}
    for name, module in found:
        rules = recipe.recipe_of(name) if isinstance(recipe, PrecisionMap) else recipe
        if rules is None or module in layers:
            continue
        layers[module] = _converted(name, module, rules, use_fast_accum)
    for name, module in found:
        if module in layers and name:
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, layers[module])
    for module in model.modules():
        # In eval mode it would pack padded inputs into a nested tensor, which no Float8Linear takes.
        if (isinstance(module, torch.nn.TransformerEncoder)
                and any(isinstance(m, Float8Linear) for m in module.modules())):
            module.use_nested_tensor = False
    result = layers.get(model, model)
    if verbose:
        print(_report(float8_layers(result), [name for name, m in linears if m not in layers],
                      tied))
    return result


def _converted(name: str, module: torch.nn.Module, rules: LinearRecipe,
               use_fast_accum: bool) -> Float8Linear:
    kind = Float8Conv1D if _is_conv1d(module) else Float8Linear
    try:
        return kind.from_linear(module, rules, use_fast_accum=use_fast_accum)
    except (InvalidArgument, TypeError) as error:
        raise type(error)(f"{name}: {error}" if name else str(error)) from None


def float8_layers(model: torch.nn.Module) -> dict[str, str]:
    """Return the names of a model's `Float8Linear` layers, with the names of their recipes.

    Examples
    --------
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU())
    >>> sbt.float8_layers(sbt.convert_linears(model, "TE_CURRENT", verbose=False))
    {'0': 'TE_CURRENT'}
    """
    return {name: m.recipe.name or "a recipe without a name"
            for name, m in model.named_modules(remove_duplicate=False)
            if isinstance(m, Float8Linear)}


def _report(converted: dict[str, str], left: list[str], tied: dict[str, str]) -> str:
    """Return what `convert_linears` prints."""
    count = len(converted)
    lines = [f"convert_linears: {count} layer{' multiplies' if count == 1 else 's multiply'} in FP8"]
    for recipe in dict.fromkeys(converted.values()):
        names = [name for name, own in converted.items() if own == recipe]
        lines.append(f"  {recipe}: {_listed(names)}")
    plain = [name for name in left if name not in tied]
    if plain:
        lines.append(f"  not converted: {_listed(plain)}")
    lines += [f"  not converted: {name} shares its weight with the embedding {embedding}; name it "
              "in filter= or in a PrecisionMap to convert it" for name, embedding in tied.items()]
    return "\n".join(lines)


def _listed(names: list[str]) -> str:
    """Return names in one line; of many names, numbers become ``*``."""
    names = [name or "the model itself" for name in names]
    if len(names) <= _LISTED:
        return ", ".join(names)
    patterns = [re.sub(r"(?<![^.])\d+(?![^.])", "*", name) for name in names]
    return ", ".join(f"{pattern} ({patterns.count(pattern)})" for pattern in dict.fromkeys(patterns))
