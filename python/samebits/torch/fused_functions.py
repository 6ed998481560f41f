"""The fused functions of `samebits.torch.functional`: SwiGLU, bias + GELU, rotary, embedding, dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.autograd.function import once_differentiable

from samebits.errors import InvalidArgument
from samebits.rules import options_of
from samebits.torch import fused_operators  # noqa: F401 - it defines the operators
from samebits.torch.aten.fused import function_of
from samebits.torch.aten.registry import require
from samebits.torch.quantize import QuantizedTensor, recipe_of_text, rules_text
from samebits.torch.row_operators import ops
from samebits.torch.tensors import constant_format_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.recipes import Recipe
    from samebits.typing import FormatLike, RecipeName

__all__ = ["bias_gelu", "dropout", "embedding", "clip_fake_quantize", "geglu", "gelu", "rotary", "scaled_softmax",
           "silu", "swiglu", "swiglu_quantize"]

Approximate = Literal["none", "tanh"]


def _function(name: str, approximate: str) -> str:
    if approximate not in ("none", "tanh"):
        raise InvalidArgument(f"approximate: 'none' or 'tanh' is expected; got {approximate!r}")
    return function_of(name, approximate)


def silu(input: torch.Tensor) -> torch.Tensor:
    """Return what ``torch.nn.functional.silu`` returns on a GPU.

    Parameters
    ----------
    input : Tensor
        fp32, bf16 or fp16.

    Examples
    --------
    >>> sbt.functional.silu(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    return ops.silu(input)


def gelu(input: torch.Tensor, approximate: Approximate = "none") -> torch.Tensor:
    """Return what ``torch.nn.functional.gelu`` returns on a GPU.

    Parameters
    ----------
    input : Tensor
        fp32, bf16 or fp16.
    approximate : str

    Examples
    --------
    >>> sbt.functional.gelu(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """
    _function("gelu", approximate)
    return ops.gelu(input, approximate=approximate)


def _check_halves(gate: torch.Tensor) -> None:
    if gate.dim() == 0 or gate.shape[-1] % 2:
        raise InvalidArgument(f"gate: two halves are expected in the last axis; got shape {[*gate.shape]}")


def _gated(function: str, gate: torch.Tensor, up: torch.Tensor | None) -> torch.Tensor:
    if up is not None:
        return ops.gated(gate, up, function)
    _check_halves(gate)
    return ops.gated_halves(gate, function)


def swiglu(gate: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
    """Return ``silu(gate) * up``, with the bits of PyTorch's operators on a GPU, in one pass.

    Parameters
    ----------
    gate : Tensor [..., n]
        fp32, bf16 or fp16.
    up : Tensor [..., n], optional
        None: `gate` is [..., 2 n] and holds both, as a product with concatenated weights returns them. Its
        gradient is one tensor.

    Examples
    --------
    >>> sbt.functional.swiglu(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.5]))
    tensor([0.7311, 0.8808])
    """
    return _gated("silu", gate, up)


class _GatedSource(torch.autograd.Function):
    """Stands for f(gate) * up, whose values no tensor holds: of its shape, with the memory of one element."""

    @staticmethod
    def forward(ctx: Any, gate: torch.Tensor, up: torch.Tensor, function: str) -> torch.Tensor:
        ctx.function = function
        ctx.save_for_backward(gate, up)
        return gate.new_zeros(()).expand_as(gate)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return *ops.gated_backward(grad, *ctx.saved_tensors, ctx.function), None


def quantization_of(recipe: Any, to: Any) -> tuple[Any, str, Any]:
    """Return a recipe, its text and the name of the codes' format, for results that are quantized at once."""
    text, name = rules_text(recipe, ()), constant_format_name(to)
    rules = recipe_of_text(text)
    if name not in ("e4m3", "e5m2"):
        raise InvalidArgument(f"to: e4m3 or e5m2 is expected; got {name}")
    if rules.source != "current" or rules.code_format not in ("e4m3", "e5m2"):
        raise InvalidArgument("recipe: one of FP8 with scales of the tensor itself is expected; else pass the result to "
                              "samebits.torch.quantize")
    return rules, text, name


@options_of(swiglu)
def swiglu_quantize(gate: torch.Tensor, up: torch.Tensor | None = None, recipe: Recipe | RecipeName | None = None, *,
                    to: FormatLike = "e4m3") -> QuantizedTensor:
    """Return ``samebits.torch.quantize(swiglu(gate, up), recipe)``, bit for bit, without the tensor between.

    Parameters
    ----------
    recipe : Recipe or str, optional
        As in `samebits.torch.quantize`. On a GPU one kernel computes recipes of 1 x 128 tiles.
    to : str or dtype
        ``e4m3`` or ``e5m2``.

    Returns
    -------
    QuantizedTensor
        Its `dequantize` passes the gradient straight through, to `gate` and `up`.

    Examples
    --------
    >>> q = sbt.functional.swiglu_quantize(torch.ones(2, 128), torch.ones(2, 128), "DSV3_IEEE")
    >>> q.codes.shape, q.scales.shape
    (torch.Size([2, 128]), torch.Size([2, 1]))
    """
    if up is None:
        _check_halves(gate)
        gate, up = gate.chunk(2, -1)
    rules, text, name = quantization_of(recipe, to)
    codes, scales = ops.gated_quantize(gate.detach(), up.detach(), "silu", text, name)
    made = QuantizedTensor(codes, scales, rules, name)
    if torch.is_grad_enabled() and (gate.requires_grad or up.requires_grad):
        made.source = _GatedSource.apply(gate, up, "silu")  # type: ignore[no-untyped-call]
    return made


@options_of(swiglu, gelu)
def geglu(gate: torch.Tensor, up: torch.Tensor | None = None, approximate: Approximate = "none") -> torch.Tensor:
    """Return ``gelu(gate, approximate) * up``, as `swiglu` does.

    Examples
    --------
    >>> sbt.functional.geglu(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.5]))
    tensor([0.8413, 0.9772])
    """
    return _gated(_function("gelu", approximate), gate, up)


def bias_gelu(input: torch.Tensor, bias: torch.Tensor, approximate: Approximate = "none") -> torch.Tensor:
    """Return ``gelu(input + bias, approximate)``, with the bits of PyTorch's operators on a GPU, in one pass.

    Parameters
    ----------
    input : Tensor [..., n]
        fp32, bf16 or fp16.
    bias : Tensor [n]
        In the format of `input`. On a GPU PyTorch's kernel sums its gradient.
    approximate : str

    Examples
    --------
    >>> sbt.functional.bias_gelu(torch.tensor([[0.5, 1.0]]), torch.tensor([0.5, 0.0]))
    tensor([[0.8413, 0.8413]])
    """
    if input.dim() == 0:
        raise InvalidArgument("input: columns are expected; got a tensor of no axis")
    if bias.dim() != 1 or bias.shape[0] != input.shape[-1]:
        raise InvalidArgument(f"bias: one number for each column is expected; got shape {[*bias.shape]}")
    return ops.biased(input, bias, _function("gelu", approximate))


def rotary(input: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *, heads_last: bool = False) -> torch.Tensor:
    """Return ``x * cos + rotate_half(x) * sin``, with the bits of PyTorch's operators on a GPU, in one pass.

    ``rotate_half(x)`` is ``cat((-x[..., n:], x[..., :n]), -1)``, as in Transformers; there cos and sin hold each
    column twice.

    Parameters
    ----------
    input : Tensor [..., positions, 2 n]
        fp32, bf16 or fp16.
    cos, sin : Tensor [positions, n]
        In the format of `input`, without gradients: as `samebits.rotary_table` returns them.
    heads_last : bool
        Whether `input` is [..., positions, heads, 2 n].

    Examples
    --------
    >>> one, zero = torch.ones(1, 1), torch.zeros(1, 1)
    >>> sbt.functional.rotary(torch.tensor([[3.0, 4.0]]), zero, one)
    tensor([[-4.,  3.]])
    """
    axis = -3 if heads_last else -2
    if input.dim() < -axis or cos.shape != (input.shape[axis], input.shape[-1] // 2) or input.shape[-1] % 2:
        raise InvalidArgument(f"cos: [positions, columns / 2] are expected for input of shape {[*input.shape]}; got "
                              f"{[*cos.shape]}")
    if sin.shape != cos.shape:
        raise InvalidArgument(f"sin: the shape of cos, {[*cos.shape]}, is expected; got {[*sin.shape]}")
    require(not (torch.is_grad_enabled() and (cos.requires_grad or sin.requires_grad)), "gradients of cos and sin")
    return ops.rotary(input, cos, sin, input.shape[-2] if heads_last else 1)


def check_mask(mask: torch.Tensor, dtype: torch.dtype, shape: Sequence[int], name: str = "mask") -> None:
    """Refuse a mask of scores of a format and shape that `scaled_softmax` does not take."""
    if mask.dtype not in (torch.bool, dtype):
        raise InvalidArgument(f"{name}: torch.bool or {dtype} is expected; got {mask.dtype}")
    sizes = zip(mask.shape[::-1], shape[::-1], strict=False)
    if not 0 < mask.dim() <= len(shape) or any(size not in (1, of) for size, of in sizes):
        raise InvalidArgument(f"{name}: a shape that broadcasts to {[*shape]} is expected; got {[*mask.shape]}")
    require(not (torch.is_grad_enabled() and mask.requires_grad), "the gradient of a mask")


def scaled_softmax(input: torch.Tensor, scale: float = 1.0, mask: torch.Tensor | None = None,
                   causal: bool = False) -> torch.Tensor:
    """Return softmax of scaled, masked scores, with the bits of PyTorch's operators on a GPU, in one pass.

    These are ``y = input * scale``; ``y.masked_fill(mask, -inf)``, or ``y + mask`` for a mask of numbers; if
    `causal` ``y.masked_fill(later, -inf)``, where ``later`` is ``torch.ones(q, n, dtype=torch.bool).triu(1)``;
    ``softmax(y, -1)``. A row without a visible number is NaN. The gradient of `input` is 0 where a score is filled.

    Parameters
    ----------
    input : Tensor [..., q, n]
        fp32, bf16 or fp16.
    scale : float
        PyTorch's ``input / d`` on a GPU is ``input * s`` with ``s = float(1 / torch.tensor(d))``, in fp32.
    mask : Tensor, optional
        Booleans, True where a score is hidden; or numbers in the format of `input`, without a gradient. It
        broadcasts to the shape of `input`.
    causal : bool
        Whether query i sees the scores 0 to i alone.

    Examples
    --------
    >>> sbt.functional.scaled_softmax(torch.zeros(2, 2), causal=True)
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    if input.dim() < 1 + causal:
        raise InvalidArgument(f"input: scores [..., {'queries, ' * causal}n] are expected; got {[*input.shape]}")
    if mask is not None:
        check_mask(mask, input.dtype, input.shape)
    return ops.scaled_softmax(input, scale, mask, causal)


def embedding(input: torch.Tensor, weight: torch.Tensor, *, scale: float = 1.0,
              positions: torch.Tensor | None = None) -> torch.Tensor:
    """Return ``embedding(input, weight) * scale + positions``, with the bits of PyTorch's operators on a GPU.

    Parameters
    ----------
    input : Tensor [..., length]
        int64: words, from 0. On a GPU they are not checked: a word that does not exist gives NaN.
    weight : Tensor [words, n]
        fp32, bf16 or fp16. Its gradient is that with ``torch.use_deterministic_algorithms(True)``.
    scale : float
    positions : Tensor [length, n], optional
        In the format of `weight`.

    Examples
    --------
    >>> sbt.functional.embedding(torch.tensor([1, 0]), torch.tensor([[1.0], [2.0]]), scale=3)
    tensor([[6.],
            [3.]])
    """
    if weight.dim() != 2:
        raise InvalidArgument(f"weight: [words, columns] is expected; got {[*weight.shape]}")
    if positions is not None and (input.dim() == 0 or positions.shape != (input.shape[-1], weight.shape[-1])):
        raise InvalidArgument(f"positions: [length, columns] are expected; got {[*positions.shape]}")
    return ops.embed(input, weight, positions, scale)


def dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, *, seed: int, stream: int = 0,
            offset: int = 0) -> torch.Tensor:
    """Return `input` / (1 - p) where an element is kept, else 0.

    An element is dropped by its index and (seed, stream) alone: every device drops the same ones, the backward pass
    computes them again, and no mask is kept. PyTorch drops other elements. One seed for a training and one stream
    for each call of it give independent masks.

    Parameters
    ----------
    input : Tensor
        fp32, bf16 or fp16.
    p : float
        The probability that an element is dropped.
    training : bool
        False: `input` is returned.
    seed, stream : int
        From 0 to 2^63 - 1.
    offset : int
        Index of the first element, for a shard of a larger tensor.

    Examples
    --------
    >>> sbt.functional.dropout(torch.ones(8), 0.5, seed=1)
    tensor([2., 2., 2., 2., 2., 2., 0., 2.])
    """
    if not 0 <= p <= 1:
        raise InvalidArgument(f"p: a number from 0 to 1 is expected; got {p}")
    for what, number in (("seed", seed), ("stream", stream), ("offset", offset)):
        if not 0 <= number < 2**63:
            raise InvalidArgument(f"{what}: must be from 0 to 2^63 - 1; got {number}")
    if not training:
        return input
    return ops.dropout_by_index(input, p, seed, stream, offset)


def clip_fake_quantize(input: torch.Tensor, clip: torch.Tensor, *, bits: int = 8) -> torch.Tensor:
    """Return the nearest of the numbers i / L * clip, for integers i from -L to L, L = 2^(bits - 1) - 1.

    Gradients take the rounding for the identity. That of `input` is the result's where `input` lies within the clip,
    else 0. That of `clip` is the sum of the result's gradients above the clip, minus that below -clip.

    Parameters
    ----------
    input : Tensor
        fp32, bf16 or fp16.
    clip : Tensor of one element
        In the format of `input`, above 0; it may be trained.
    bits : int
        2 to 16.

    Examples
    --------
    >>> sbt.functional.clip_fake_quantize(torch.tensor([0.2, 0.4, 5.0]), torch.tensor(1.0), bits=3)
    tensor([0.3333, 0.3333, 1.0000])
    """
    if clip.numel() != 1:
        raise InvalidArgument(f"clip: one element is expected; got shape {[*clip.shape]}")
    return ops.clip_fake_quantize(input, clip, bits)
