"""Linear layers that multiply in FP8, forward and backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits._core import flag, integer
from samebits.errors import InvalidArgument, Unsupported
from samebits.quantize import QuantizedTensor
from samebits.recipes import Recipe
from samebits.rules import options_of
from samebits.torch.linear_recipe import LinearRecipe, linear_recipe
from samebits.torch.quantized_operand import (
    quantize_activations,
    quantize_gradients,
    quantize_weights,
)
from samebits.torch.scaled_product import scaled_product
from samebits.torch.tensors import is_dtensor

if TYPE_CHECKING:
    from samebits.typing import RecipeName

__all__ = ["Float8Conv1D", "Float8Linear"]


def column_sums(x: torch.Tensor) -> torch.Tensor:
    """Return the float32 sums of the columns of x [rows, cols]: neighbours are added pairwise.

    In each round, rows 0 and 1, rows 2 and 3, ... are added; a last row without a neighbour is
    kept. Each step is one float32 addition, so the sums are the same on CPU and GPU.
    """
    if x.shape[0] == 0:
        return x.new_zeros(x.shape[1], dtype=torch.float32)
    sums = x.float()
    while sums.shape[0] > 1:
        even = sums.shape[0] // 2 * 2
        pairs = sums[0:even:2] + sums[1:even:2]
        sums = pairs if even == sums.shape[0] else torch.cat((pairs, sums[even:]))
    return sums[0]


def _padded(x: torch.Tensor) -> torch.Tensor:
    """Return x [rows, cols] with rows of zeros up to a multiple of 16, at least 16."""
    missing = max(-(-x.shape[0] // 16) * 16, 16) - x.shape[0]
    return torch.nn.functional.pad(x, (0, 0, 0, missing)) if missing else x


def _cropped(x: torch.Tensor, rows: int) -> torch.Tensor:
    """Return the first rows of x; a copy, because autograd refuses later writes to a view."""
    return x if x.shape[0] == rows else x[:rows].clone()


class _Product(torch.autograd.Function):
    """y = x w^T + bias on quantized operands. Quantization has the derivative of the identity."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None,
                recipe: LinearRecipe, use_fast_accum: bool, grad_mode: bool,
                graphs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        needs_dx, needs_dw = (grad_mode and needed for needed in ctx.needs_input_grad[:2])
        xq = quantize_activations(_padded(x), recipe, transposed=needs_dw)
        wq = quantize_weights(w, recipe, transposed=needs_dx)
        y = scaled_product(xq.direct, wq.direct, x.dtype, use_fast_accum=use_fast_accum)
        ctx.recipe, ctx.graphs = recipe, graphs
        ctx.dtypes = x.dtype, w.dtype, None if bias is None else bias.dtype
        _keep(ctx, xq.transposed if needs_dw else None, wq.transposed if needs_dx else None)
        y = _cropped(y, x.shape[0])
        return y if bias is None else y.add_(bias.to(y.dtype))

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        if torch.is_grad_enabled():  # the gradients get a graph: create_graph=True
            found = _Gradients.apply(ctx, dy, *ctx.graphs)  # type: ignore[no-untyped-call]
        else:
            found = _gradients(ctx, dy)
        return (*found, None, None, None, None)


def _gradients(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """Return dx, dw and the gradient of the bias; None for those that nobody needs."""
    x, w = _kept(ctx)
    needs_dx, needs_dw, needs_dbias = ctx.needs_input_grad[:3]
    x_dtype, w_dtype, bias_dtype = ctx.dtypes
    dyq = quantize_gradients(_padded(dy), ctx.recipe, direct=needs_dx, transposed=needs_dw)
    dx = _cropped(scaled_product(dyq.direct, w, x_dtype), dy.shape[0]) if needs_dx else None
    dw = scaled_product(dyq.transposed, x, w_dtype) if needs_dw else None
    dbias = column_sums(dy).to(bias_dtype) if needs_dbias else None
    return dx, dw, dbias


class _Gradients(torch.autograd.Function):
    """The gradients of a product, as a function of dy, x and w that has no derivative.

    `torch.autograd.function.once_differentiable` would not do: its refusal lies on no path from
    the gradients to x and w, so ``torch.autograd.grad`` would leave the layer's part out silently.
    """

    @staticmethod
    def forward(ctx: Any, product: Any, dy: torch.Tensor,
                *graphs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return _gradients(product, dy)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        raise Unsupported("samebits.torch.Float8Linear has no second derivative")


def _keep(ctx: Any, *operands: QuantizedTensor | None) -> None:
    """Let autograd keep codes and scales for the backward pass."""
    ctx.rules = [q and (q.recipe, q.format) for q in operands]
    ctx.save_for_backward(*(part for q in operands if q for part in (q.codes, q.scales)))


def _kept(ctx: Any) -> list[Any]:
    """Return what `_keep` was given."""
    parts = iter(ctx.saved_tensors)
    return [rules and QuantizedTensor(next(parts), next(parts), *rules) for rules in ctx.rules]


@torch._disable_dynamo  # type: ignore[attr-defined]
def _linear(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, recipe: LinearRecipe,
            use_fast_accum: bool) -> torch.Tensor:
    """Return x w^T + bias. torch.compile leaves its graph here and goes on behind it."""
    rows = x.reshape(-1, x.shape[-1])
    # Empty tensors in the graphs of x and w: they keep no memory of x and w.
    graphs = tuple(torch.slice_copy(t, 0, 0, 0) for t in (rows, w)
                   if t.requires_grad and torch.is_grad_enabled())
    y: torch.Tensor = _Product.apply(  # type: ignore[no-untyped-call]
        rows, w, bias, recipe, use_fast_accum, torch.is_grad_enabled(), graphs)
    return y.reshape(*x.shape[:-1], w.shape[0])


def _is_called(layer: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
    """Change nothing: a pre-hook that makes `torch.nn.TransformerEncoderLayer` call the layer.

    In eval mode without gradients, TransformerEncoderLayer reads the weights of its layers and
    multiplies them itself, unless a layer has a hook.
    """


class Float8Linear(torch.nn.Linear):
    """A `torch.nn.Linear` whose three products multiply FP8 codes.

    y = x w^T, dx = dy w and dw = dy^T x are products of quantized operands. On a GPU,
    `torch.nn.functional.scaled_mm` multiplies; on the CPU, `samebits.matmul` does, as cuBLASLt on
    Hopper. Results on CPU and GPU are equal bit for bit where `LinearRecipe.coverage` says
    "covered".

    - Parameters stay in their own dtype; they are quantized in each forward pass.
    - y and dx have the dtype of x, dw that of the weight. Under autocast, x is cast first; weights
      are quantized from their own values.
    - The bias is added to y after y was rounded to its dtype: scaled_mm's own addition is not
      covered, and it refuses float32. The gradient of the bias is a sum of dy in float32, over a
      fixed tree.
    - Tokens are padded with rows of zeros to a multiple of 16.
    - For the backward pass, codes and scales of x and w are kept; x and w themselves are not.
    - `torch.compile` runs the layer outside its graphs; ``fullgraph=True`` is refused by torch.
    - There is no second derivative: its backward pass raises `samebits.Unsupported`.
    - Each layer has an empty forward pre-hook, so that `torch.nn.TransformerEncoderLayer` calls it
      in eval mode too, instead of reading its weight.

    Parameters
    ----------
    in_features, out_features : int
        Multiples of 16.
    bias : bool
        Whether there is a bias [out_features].
    recipe : str, Recipe or LinearRecipe
        As in `linear_recipe`.
    use_fast_accum : bool
        Whether y uses fast accumulation; gradients never do. Recipes with scales along the sum have
        no fast accumulation.
    device, dtype
        As in `torch.nn.Linear`.

    Raises
    ------
    InvalidArgument
        A size is no multiple of 16, the recipe is unknown or has no fast accumulation.

    Examples
    --------
    >>> layer = sbt.Float8Linear(256, 128, recipe="TE_CURRENT")
    >>> y = layer(torch.ones(3, 7, 256))
    >>> y.sum().backward()
    >>> y.shape, layer.weight.grad.shape
    (torch.Size([3, 7, 128]), torch.Size([128, 256]))
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *,
                 recipe: LinearRecipe | Recipe | RecipeName = "TE_CURRENT", use_fast_accum: bool = False,
                 device: Any = None, dtype: Any = None) -> None:
        _check_sizes(in_features, out_features)
        rules = _checked_recipe(recipe, use_fast_accum)
        super().__init__(in_features, out_features, flag(bias, "bias"), device=device, dtype=dtype)
        self.recipe = rules
        self.use_fast_accum = use_fast_accum
        self._add_hook()

    @classmethod
    def from_linear(cls, linear: torch.nn.Module, recipe: LinearRecipe | Recipe | RecipeName,
                    *, use_fast_accum: bool = False) -> Float8Linear:
        """Return a layer with the Parameters, hooks and mode of a `torch.nn.Linear`.

        ``Float8Conv1D.from_linear`` takes a ``Conv1D`` of transformers instead.

        The Parameters are the same objects, so optimizers that hold them stay valid.

        Parameters
        ----------
        linear : torch.nn.Linear
        recipe, use_fast_accum
            As in the constructor.

        Examples
        --------
        >>> linear = torch.nn.Linear(64, 32)
        >>> sbt.Float8Linear.from_linear(linear, "TE_CURRENT").weight is linear.weight
        True
        """
        sizes = cls.sizes_of(linear)
        _check_sizes(*sizes)
        rules = _checked_recipe(recipe, use_fast_accum)
        layer = cls.__new__(cls)
        layer.__dict__.update(linear.__dict__)
        for own in ("_parameters", "_buffers", "_modules", "_forward_pre_hooks"):
            layer.__dict__[own] = linear.__dict__[own].copy()
        layer.in_features, layer.out_features = sizes
        layer.recipe = rules
        layer.use_fast_accum = use_fast_accum
        layer._add_hook()
        return layer

    @classmethod
    def sizes_of(cls, linear: Any) -> tuple[int, int]:
        """Return in_features and out_features of a layer that `from_linear` takes."""
        return linear.in_features, linear.out_features

    def _matrix(self) -> torch.Tensor:
        """Return the weight as [out_features, in_features]."""
        return self.weight

    def _add_hook(self) -> None:
        """Register `_is_called`, once."""
        if _is_called not in self._forward_pre_hooks.values():
            self.register_forward_pre_hook(_is_called)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read a pickle; those of earlier versions lack the hook."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._add_hook()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return input w^T + bias.

        Parameters
        ----------
        input : tensor [..., in_features]
            In float32, bfloat16 or float16.

        Returns
        -------
        tensor [..., out_features]
        """
        for name, tensor in (("input", input), ("weight", self.weight)):
            if is_dtensor(tensor):
                raise InvalidArgument(f"{name}: a DTensor; a layer that tensor parallelism splits "
                                      "cannot multiply in FP8; leave it out by filter=")
        kind = input.device.type
        if torch.is_autocast_enabled(kind):
            input = input.to(torch.get_autocast_dtype(kind))
        if input.shape[-1:] != (self.in_features,):
            raise InvalidArgument(f"input: a tensor [..., {self.in_features}] is expected; got "
                                  f"{list(input.shape)}")
        return _linear(input, self._matrix(), self.bias, self.recipe, self.use_fast_accum)

    def extra_repr(self) -> str:
        """Return sizes, recipe and accumulation, for ``print(model)``."""
        fast = ", use_fast_accum=True" if self.use_fast_accum else ""
        return f"{super().extra_repr()}, recipe={self.recipe.name or self.recipe}{fast}"


@options_of(Float8Linear)
class Float8Conv1D(Float8Linear):
    """A `Float8Linear` with a weight [in_features, out_features].

    Takes the place of ``transformers.pytorch_utils.Conv1D``, the linear layer of GPT-2; made by
    `convert_linears` or ``Float8Conv1D.from_linear(conv1d, recipe)``.

    Examples
    --------
    >>> sbt.Float8Conv1D(32, 64)(torch.ones(2, 32)).shape
    torch.Size([2, 64])
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *,
                 recipe: LinearRecipe | Recipe | RecipeName = "TE_CURRENT",
                 use_fast_accum: bool = False, device: Any = None, dtype: Any = None) -> None:
        super().__init__(in_features, out_features, bias, recipe=recipe,
                         use_fast_accum=use_fast_accum, device=device, dtype=dtype)
        self.weight = torch.nn.Parameter(super()._matrix().detach().t().contiguous())

    @classmethod
    def sizes_of(cls, linear: Any) -> tuple[int, int]:
        rows, cols = linear.weight.shape
        return rows, cols

    def _matrix(self) -> torch.Tensor:
        return self.weight.t()


def _check_sizes(in_features: int, out_features: int) -> None:
    """Refuse sizes that scaled_mm refuses."""
    for name, size in (("in_features", in_features), ("out_features", out_features)):
        size = integer(size, name)
        if size % 16 or size == 0:
            raise InvalidArgument(
                f"{name}: {size} is no positive multiple of 16, which scaled_mm needs; "
                f"leave the layer out by filter=, or give it {max(-(-size // 16) * 16, 16)}")


def _checked_recipe(recipe: LinearRecipe | Recipe | str, use_fast_accum: bool) -> LinearRecipe:
    rules = linear_recipe(recipe)
    if flag(use_fast_accum, "use_fast_accum") and not rules.allows_fast_accumulation:
        raise InvalidArgument(f"use_fast_accum: {rules.name or 'the recipe'} has scales "
                              "along the sum, where cuBLASLt has no fast accumulation; pass False")
    return rules
