"""Errors that each linear layer of a model causes in each format, and the precisions to choose by them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from samebits.errors import InvalidArgument
from samebits.torch.convert_linears import linear_layers
from samebits.torch.linear_recipe import LinearRecipe, linear_recipe
from samebits.torch.precision_map import PrecisionMap
from samebits.torch.quantized_operand import (
    quantize_activations,
    quantize_gradients,
    quantize_weights,
)

__all__ = ["LayerError", "LayerErrors", "measure_layers"]

#: Formats that are no recipes.
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def _bits(format: str) -> int:
    """Return the bits of an operand's element."""
    return _DTYPES[format].itemsize * 8 if format in _DTYPES else 8


def _recipe(format: str) -> LinearRecipe | None:
    """Return the recipe that a format names; None for bf16, fp16 and fp32."""
    return None if format in _DTYPES else linear_recipe(format)


def _rounded(kind: Callable[..., Any], x: torch.Tensor, format: str, *, transposed: bool) -> torch.Tensor:
    """Return x [rows, cols] as a product in this format reads it, in fp32.

    `transposed`: for a product that sums over rows.
    """
    x = x.float()
    recipe = _recipe(format)
    if recipe is None:
        return x.to(_DTYPES[format]).float()
    operand = kind(x, recipe, direct=not transposed, transposed=transposed)
    return operand.transposed.dequantize().t() if transposed else operand.direct.dequantize()


class _Emulated(torch.autograd.Function):
    """y = x w^T of rounded operands, and its gradients; products and sums are those of fp32."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, format: str) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        ctx.format = format
        y = (_rounded(quantize_activations, x, format, transposed=False)
             @ _rounded(quantize_weights, w, format, transposed=False).t())
        return y.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, w = ctx.saved_tensors
        rounded = functools.partial(_rounded, format=ctx.format)
        dx = (rounded(quantize_gradients, dy, transposed=False)
              @ rounded(quantize_weights, w, transposed=True))
        dw = (rounded(quantize_gradients, dy, transposed=True).t()
              @ rounded(quantize_activations, x, transposed=True))
        return dx.to(x.dtype), dw.to(w.dtype), None


def _forward(layer: torch.nn.Module, format: str, x: torch.Tensor) -> torch.Tensor:
    """Return what a layer would return in this format."""
    kind = x.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
    with torch.autocast(kind, enabled=False):
        w: Any = layer.weight if type(layer) is torch.nn.Linear else layer.weight.t()
        y: torch.Tensor = _Emulated.apply(  # type: ignore[no-untyped-call]
            x.reshape(-1, x.shape[-1]).to(dtype), w, format)
        y = y.reshape(*x.shape[:-1], -1)
        return y if layer.bias is None else y + layer.bias.to(dtype)  # type: ignore[operator]


@contextmanager
def _emulated(layers: Mapping[str, torch.nn.Module], formats: Mapping[str, str]) -> Iterator[None]:
    """Let layers compute in formats meanwhile."""
    own = {name: layers[name].__dict__.get("forward") for name in formats}  # as other libraries set it
    try:
        for name, format in formats.items():
            layer = layers[name]
            layer.forward = functools.partial(_forward, layer, format)  # type: ignore[method-assign]
        yield
    finally:
        for name, forward in own.items():
            layers[name].__dict__.pop("forward", None)
            if forward is not None:
                layers[name].forward = forward  # type: ignore[method-assign]


@dataclass(frozen=True)
class LayerError:
    """What one layer in one format does to the model.

    Attributes
    ----------
    layer, format : str
    loss : float
        Relative change of the loss.
    gradient : float
        L2 norm of the change of all gradients, divided by the norm of the gradients.

    Examples
    --------
    >>> sbt.LayerError("lm_head", "bf16", loss=1e-4, gradient=1e-3).format
    'bf16'
    """

    layer: str
    format: str
    loss: float
    gradient: float


class LayerErrors:
    """The errors of all layers, made by `measure_layers`. ``print`` shows them as a table.

    Parameters
    ----------
    rows : list of LayerError
    unfit : dict of str to str
        Layers whose sizes tensor cores do not take, or take slowly, and why.
    weights : dict of str to int
        Number of weights of each layer.
    change : callable
        ``change({layer: format})`` returns the relative change of the loss.

    Examples
    --------
    >>> errors = sbt.LayerErrors([sbt.LayerError("h.0", "bf16", 1e-4, 1e-3)], {}, {"h.0": 4096},
    ...                          lambda formats: 1e-4)
    >>> errors
    layer  format      loss  gradient
    h.0    bf16    +1.0e-04   1.0e-03
    >>> errors.choose(budget=1e-3).layers
    {'h.0': 'bf16'}
    """

    def __init__(self, rows: list[LayerError], unfit: dict[str, str], weights: dict[str, int],
                 change: Callable[[Mapping[str, str]], float]) -> None:
        self.rows, self.unfit = rows, unfit
        self._weights, self._change = weights, change

    def __repr__(self) -> str:
        width = max(map(len, ["layer", *(row.layer for row in self.rows)]))
        kinds = max(map(len, ["format", *(row.format for row in self.rows)]))
        lines = [f"{'layer':{width}}  {'format':{kinds}}      loss  gradient"]
        lines += [f"{r.layer:{width}}  {r.format:{kinds}}  {r.loss:+8.1e}  {r.gradient:8.1e}"
                  for r in self.rows]
        return "\n".join(lines + [f"{name}: {why}" for name, why in self.unfit.items()])

    def choose(self, budget: float) -> PrecisionMap:
        """Choose narrow formats for as many weights as a budget allows.

        Candidates are tried in the order of their gradient error for each weight and bit that they
        save. Each is kept if the loss of the model, with all formats that were kept before, changes
        by at most the budget. So at most one loss is computed for each row.

        Parameters
        ----------
        budget : float
            Largest relative change of the loss, such as 0.001.

        Returns
        -------
        PrecisionMap
            For `convert_linears`. Layers without a format are named fp32.
        """
        if not budget >= 0:
            raise InvalidArgument(f"budget: a number >= 0 is expected; got {budget}")

        def saved(row: LayerError) -> int:
            return self._weights[row.layer] * (32 - _bits(row.format))

        chosen: dict[str, str] = {}
        for row in sorted((r for r in self.rows if saved(r) and math.isfinite(r.gradient)),
                          key=lambda r: r.gradient / saved(r)):
            before = chosen.get(row.layer)
            if before is not None and _bits(before) <= _bits(row.format):
                continue
            if abs(self._change({**chosen, row.layer: row.format})) <= budget:
                chosen[row.layer] = row.format
        return PrecisionMap({name: chosen.get(name, "fp32") for name in self._weights})


def _why_unfit(weight: torch.Tensor) -> str | None:
    """Return what is wrong with a layer's sizes; None if nothing is."""
    odd = sorted({n for n in weight.shape if n % 16})
    if not odd:
        return None
    sizes = " and ".join(map(str, odd))
    if any(n % 8 for n in odd):
        return (f"{sizes}: no multiple of 8, which tensor cores need in bf16 and fp16 for their "
                "full speed; FP8 needs multiples of 16")
    return f"{sizes}: no multiple of 16, which FP8 needs"


def measure_layers(model: torch.nn.Module, loss: Callable[[], torch.Tensor],
                   formats: Sequence[str] = ("bf16", "fp16", "TE_CURRENT", "TE_BLOCK_1D")) -> LayerErrors:
    """Measure what each linear layer of a model in each format does to loss and gradients.

    One layer after the other computes with rounded operands, forward and backward, as it would
    after `convert_linears`: but products are multiplied and added in fp32, so that any device will
    do. Every other layer computes as before.

    Parameters
    ----------
    model : torch.nn.Module
        It is not changed; its gradients are computed apart from ``grad``.
    loss : callable
        ``loss()`` returns the loss of the model on your batch. It must return the same value each
        time: without dropout, and without other batches.
    formats : sequence of str
        bf16, fp16, and recipes of `linear_recipe_names`.

    Returns
    -------
    LayerErrors

    Raises
    ------
    InvalidArgument
        A format is unknown, the model has no linear layer, or the loss or its gradients are 0 or not finite.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 10))
    >>> x = torch.randn(32, 64)
    >>> errors = sbt.measure_layers(model, lambda: model(x).square().mean(), ["bf16", "TE_CURRENT"])
    >>> [(row.layer, row.format) for row in errors.rows]
    [('0', 'bf16'), ('0', 'TE_CURRENT'), ('2', 'bf16')]
    >>> errors.unfit
    {'2': '10: no multiple of 8, which tensor cores need in bf16 and fp16 for their full speed; FP8 needs multiples of 16'}
    >>> errors.choose(budget=0.01).layers
    {'0': 'TE_CURRENT', '2': 'bf16'}
    """
    for format in formats:
        _recipe(format)
    layers = dict(linear_layers(model))
    parameters = [p for p in model.parameters() if p.requires_grad]
    before = loss()
    exact = float(before.detach())
    if not math.isfinite(exact) or exact == 0:
        raise InvalidArgument(f"loss: a finite loss that is not 0 is expected; got {exact}")
    reference = torch.autograd.grad(before, parameters, allow_unused=True) if before.requires_grad else ()
    norm = _norm(reference)
    if not math.isfinite(norm) or norm == 0:
        raise InvalidArgument(f"loss: finite gradients that are not all 0 are expected; their norm is {norm}")

    @torch.no_grad()
    def change(chosen: Mapping[str, str]) -> float:
        with _emulated(layers, chosen):
            return float(loss()) / exact - 1

    rows, unfit = [], {}
    for name, layer in layers.items():
        weight: Any = layer.weight
        why = _why_unfit(weight)
        if why:
            unfit[name] = why
        for format in formats:
            if why and _recipe(format):
                continue
            with _emulated(layers, {name: format}):
                now = loss()
                found = torch.autograd.grad(now, parameters, allow_unused=True)
            apart = _norm([None if a is None or b is None else a - b
                           for a, b in zip(found, reference, strict=True)])
            rows.append(LayerError(name, format, float(now.detach()) / exact - 1, apart / norm))
    weights = {name: int(layer.weight.numel()) for name, layer in layers.items()}  # type: ignore[operator]
    return LayerErrors(rows, unfit, weights, change)


def _norm(gradients: Sequence[torch.Tensor | None]) -> float:
    """Return the L2 norm of all gradients together."""
    return math.sqrt(sum(float(g.double().square().sum()) for g in gradients if g is not None))

