"""convert() on torch tensors: an operator for torch.compile, and gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import torch

import samebits
from samebits.errors import InvalidArgument
from samebits.formats import NAMES, format_index
from samebits.rules import check_seed, options_of
from samebits.torch.aten.registry import RULES
from samebits.torch.row_operators import define, new, ops
from samebits.torch.tensors import (
    constant_format_name,
    is_dtensor,
    needs_gradient,
    needs_operator,
    torch_dtype,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from samebits.option_types import ConvertOptions
    from samebits.typing import FormatLike

__all__ = ["convert"]

#: The operator's options, in its order, and their values if they are not given.
DEFAULTS: Final[dict[str, Any]] = {
    "format": None, "rounding": "nearest_even", "overflow": "ieee", "nan": "canonical", "seed": 0,
    "random_stream": 0, "offset": 0, "pitch": None, "random_bits": 32}
RULES["convert_v1"] = lambda _how, x, to, *options: samebits.convert(
    x, to, **dict(zip(DEFAULTS, options, strict=True)))


def _remember_dtype(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.dtype = inputs[0].dtype


def _pass_through(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    return (convert(gradient, ctx.dtype), *[None] * 10)


# The version is part of the name: torch.compile keeps compiled calls of an operator by its name.
define("convert_v1", "(Tensor x, str to, str? format, str rounding, str overflow, str nan, int seed, "
       "int random_stream, int offset, int? pitch, int random_bits) -> Tensor",
       lambda x, to, *_: new(x, dtype=torch_dtype(NAMES[format_index(to, "to")])), _remember_dtype, _pass_through)


class _Convert(torch.autograd.Function):
    """The gradient of a call that is not compiled."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, to: FormatLike, options: dict[str, Any]) -> Any:
        ctx.dtype = x.dtype
        return samebits.convert(x, to, **options)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return convert(gradients[0], ctx.dtype), None, None


@options_of(samebits.convert)
def convert(x: torch.Tensor, to: FormatLike, **options: Unpack[ConvertOptions]) -> torch.Tensor:
    """Convert every element of a tensor to a format; each element is rounded once.

    The bits are those of `samebits.convert`, on CPU and GPU. The gradient passes straight through:
    it is the result's gradient, rounded to nearest even into the dtype of `x`.

    Parameters
    ----------
    x : torch.Tensor [...]
        On the CPU or a GPU, of any strides. A DTensor is converted shard by shard.
    to : str or dtype
        The format of the result: a name or a torch dtype.

    Returns
    -------
    torch.Tensor [...]
        C-contiguous, on the device of `x`, computed on torch's current stream.

    Examples
    --------
    >>> x = torch.tensor([1.0, 0.1, 500.0], requires_grad=True)
    >>> y = sbt.convert(x, "e4m3", overflow="saturate")
    >>> y.dtype, sbt.convert(y, "fp32").tolist()
    (torch.float8_e4m3fn, [1.0, 0.1015625, 448.0])
    >>> sbt.convert(x, "bf16").sum().backward()
    >>> x.grad.tolist()
    [1.0, 1.0, 1.0]
    """
    if is_dtensor(x):
        return _convert_shard(x, to, options)
    if options.get("out") is not None:
        return samebits.convert(x, to, **options)
    if needs_operator(x):
        return _call_operator(x, to, options)
    if needs_gradient(x) and torch_dtype(NAMES[format_index(to, "to")]).is_floating_point:
        return _Convert.apply(x, to, options)  # type: ignore[no-untyped-call]
    return samebits.convert(x, to, **options)


def _call_operator(x: torch.Tensor, to: object, options: Any) -> torch.Tensor:
    left = dict(options)
    values = operator_values(left, DEFAULTS)
    refuse_options("convert", left)
    return ops.convert_v1(x, constant_format_name(to), *values)


def refuse_options(function: str, options: Mapping[str, Any]) -> None:
    """Refuse options that operators lack, and unknown ones."""
    for name, value in options.items():
        if name not in ("out", "statistics", "tensor_scale", "threads", "backend", "stream"):
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        if value is not None and value is not False:
            raise InvalidArgument(f"{name}: not supported by compiled calls; leave it out")


def operator_values(options: dict[str, Any], defaults: Mapping[str, Any]) -> list[Any]:
    """Return the values of an operator's options, and remove the options."""
    if options.get("rounding") == "stochastic":
        check_seed(options.get("seed"))
    values = {name: options.pop(name, default) for name, default in defaults.items()}
    if values["format"] is not None:
        values["format"] = constant_format_name(values["format"], "format")
    values["seed"] = values["seed"] or 0
    return list(values.values())


def _convert_shard(x: Any, to: FormatLike, options: Any) -> Any:
    if options.get("rounding") == "stochastic" or options.get("out") is not None:
        raise InvalidArgument("x: a DTensor is converted without `out` and without stochastic "
                              "rounding; pass x.to_local() and the shard's offset=")
    local = convert(x.to_local(), to, **options)
    whole = torch.empty(x.shape, device="meta")
    return torch.distributed.tensor.DTensor.from_local(
        local, x.device_mesh, x.placements, shape=x.shape, stride=whole.stride(), run_check=False)
