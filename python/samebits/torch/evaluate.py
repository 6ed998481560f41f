"""Functions of samebits.functions on torch tensors: an operator for torch.compile, and gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from samebits import functions
from samebits.errors import InvalidArgument, Unsupported
from samebits.evaluation import evaluated
from samebits.rules import options_of
from samebits.torch.aten.registry import RULES
from samebits.torch.row_operators import define, gradients_by, keep_arguments, new, ops
from samebits.torch.tensors import is_dtensor, needs_gradient, needs_operator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from samebits.option_types import FunctionOptions
    from samebits.typing import Function

__all__ = ["evaluate"]

RULES.update({
    "evaluate_v1": lambda _how, x, function, parameter, rule: functions.evaluate(function, x, parameter, rule=rule),
    "evaluate_gradient_v1": lambda _how, grad, x, function, parameter, rule: functions.gradient(
        function, grad, x, parameter, rule=rule)})


def _refuse_second_derivative(ctx: Any, *_: Any) -> Any:
    raise Unsupported("samebits.torch.evaluate has no second derivative")


# The version is part of the name: torch.compile keeps compiled calls of an operator by its name.
define("evaluate_v1", "(Tensor x, str function, float? parameter, str rule) -> Tensor", lambda x, *_: new(x),
       keep_arguments(0, 1), gradients_by("evaluate_gradient_v1"))
define("evaluate_gradient_v1", "(Tensor grad, Tensor x, str function, float? parameter, str rule) -> Tensor",
       lambda _, x, *__: new(x), lambda *_: None, _refuse_second_derivative)


@options_of(evaluated)
def evaluate(x: Any, function: Function, parameter: float | None = None,
             **options: Unpack[FunctionOptions]) -> Any:
    """Compute a function of every element of a tensor, or of each tensor of a list.

    The bits are those of `samebits.functions`, on CPU and GPU. With the rule ``torch_2_11`` the
    gradient has the bits of PyTorch's backward pass on a GPU. Rule ``exact`` has gradients of silu,
    gelu and gelu_tanh. In all other cases the backward pass raises `samebits.Unsupported`.
    No rule has second derivatives: their backward pass raises `samebits.Unsupported` too.

    Parameters
    ----------
    x : torch.Tensor [...], list of tensors, or dict of str to tensor
        fp32; also fp16 and bf16 if the rule has them. On the CPU or a GPU, of any strides; those of
        a list all on one device.

    Returns
    -------
    torch.Tensor [...], list of tensors, or dict of str to tensor
        C-contiguous, on the device of `x`, computed on torch's current stream.

    Examples
    --------
    >>> x = torch.tensor([-1.0, 0.5], requires_grad=True)
    >>> y = sbt.evaluate(x, "silu", rule="torch_2_11")
    >>> y.detach()
    tensor([-0.2689,  0.3112])
    >>> y.sum().backward()
    >>> x.grad
    tensor([0.0723, 0.7400])
    """
    tensors = list(x.values()) if isinstance(x, Mapping) else x
    listed = isinstance(tensors, (list, tuple))
    each = tensors if listed else [x]
    if any(is_dtensor(t) for t in each):
        raise InvalidArgument("x: a DTensor; pass x.to_local()")
    if options.get("out") is not None or not any(needs_operator(t) or needs_gradient(t)
                                                 for t in each):
        return functions.evaluate(function, x, parameter, **options)
    results = [_call_operator(t, function, parameter, options) for t in each]
    if isinstance(x, Mapping):
        return dict(zip(x, results, strict=True))
    return results if listed else results[0]


def _call_operator(x: torch.Tensor, function: str, parameter: float | None,
                   options: Any) -> torch.Tensor:
    for name, value in options.items():
        if name != "rule" and value is not None:
            raise InvalidArgument(
                f"{name}: not supported by calls that are compiled or that autograd records; leave "
                "it out")
    return ops.evaluate_v1(x, function, parameter, options.get("rule", "exact"))
