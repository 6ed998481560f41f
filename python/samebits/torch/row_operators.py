"""Operators of rows and losses for torch.compile, recordings and autograd: `torch.ops.samebits._softmax` and others.

They have the names and schemas of ATen's operators, whose rules (`samebits.torch.aten.rows`) they run on CPU
and CUDA tensors. Cross entropy has operators of its own, which read the logits once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from samebits.errors import Unsupported
from samebits.torch.aten import rows  # noqa: F401 - it registers the rules
from samebits.torch.aten.registry import RULES, Conditions
from samebits.torch.operators import tensors_of

if TYPE_CHECKING:
    from collections.abc import Callable


class _Operators:
    """What `define` has defined. Calls skip the dispatcher if no mode, transform or subclass needs to see them."""

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Callable[..., torch.Tensor]:
            """Return an operator. Several results are unpacked, as one tensor would be."""


ops = _Operators()
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _how(x: torch.Tensor) -> Conditions:
    if not x.is_cuda:
        return Conditions()
    return Conditions(torch.cuda.get_device_properties(x.device).multi_processor_count)


def define(name: str, schema: str | None, fake: Any, keep: Any = None, backward: Any = None) -> None:
    """Define an operator that runs the rule of its name.

    `fake` returns results of its shapes, `keep` what its backward pass reads. Without a schema it has that of ATen's
    operator, and without `backward` no derivative.
    """
    schema = schema or str(getattr(torch.ops.aten, name).default._schema).removeprefix(f"aten::{name}")
    direct = backward and _function_of(name, keep, backward)

    def run(x: torch.Tensor, *arguments: Any, **options: Any) -> Any:
        results = RULES[name](_how(x), x, *arguments, **options)
        return tuple(results) if isinstance(results, tuple) else results

    torch.library.define(f"samebits::{name}", schema)
    torch.library.impl(f"samebits::{name}", ("CPU", "CUDA"))(run)
    torch.library.register_fake(f"samebits::{name}")(fake)
    if "!" not in schema:  # it writes no argument
        torch.library.register_autograd(f"samebits::{name}", backward or _refuse_second_derivative, setup_context=keep)
    dispatched = getattr(torch.ops.samebits, name)

    def call(*arguments: Any, **options: Any) -> Any:
        if torch.compiler.is_compiling() or options or is_seen(arguments):
            return dispatched(*arguments, **options)
        if not torch.is_grad_enabled():
            return run(*arguments)
        if "!" in schema and any(x.requires_grad for x in tensors_of(arguments)):
            raise Unsupported(f"{name}: its arguments, which it writes, must not require gradients")
        return direct.apply(*arguments) if direct else dispatched(*arguments)

    setattr(ops, name, call)


def is_seen(arguments: Any) -> bool:
    """Whether a mode, a transform or a tensor's class wants to see an operator: the dispatcher calls them.

    The dispatcher and its autograd take about 50 us of the host, as much as some kernels of the GPU.
    """
    return (torch._C._len_torch_dispatch_stack() > 0 or torch._C._len_torch_function_stack() > 0
            or torch._C._functorch.peek_interpreter_stack() is not None or torch._C._get_tracing_state() is not None
            or any(isinstance(x, torch.Tensor) and (type(x) not in _PLAIN or x.is_meta or x.is_neg()) for x in arguments))


def _function_of(name: str, keep: Any, backward: Any) -> Any:
    """Return the autograd function of an operator, from what it keeps and its backward pass."""

    class Direct(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            ctx.set_materialize_grads(False)  # PyTorch would make zeros for results without a gradient
            x, *rest = (a.detach() if isinstance(a, torch.Tensor) else a for a in arguments)
            results = RULES[name](_how(x), x, *rest)
            keep(ctx, arguments, results)
            return results

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if all(grad is None for grad in grads):
                return (None,) * len(ctx.needs_input_grad)
            return backward(ctx, *grads)

    made: Any = type(Direct)
    return made(name, (Direct,), {})  # with the name that errors and anomalies show


def new(x: torch.Tensor, shape: Any = None, dtype: torch.dtype | None = None) -> torch.Tensor:
    return x.new_empty(x.shape if shape is None else shape, dtype=dtype or x.dtype)


def _fake_softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:
    return new(x, dtype=torch.float32 if half_to_float else None)


def _fake_softmax_backward(grad: torch.Tensor, y: torch.Tensor, dim: int, input_dtype: torch.dtype) -> torch.Tensor:
    return new(grad, dtype=input_dtype)


def fake_norm(statistics: int) -> Any:
    def shapes(x: torch.Tensor, shape: Any, *_: Any) -> tuple[torch.Tensor, ...]:
        of = rows.statistics_shape(x, shape)
        return (new(x), *(new(x, of, torch.float32) for _ in range(statistics)))
    return shapes


def _fake_norm_backward(grad: torch.Tensor, x: torch.Tensor, shape: Any, *rest: Any) -> tuple[Any, ...]:
    mask = rest[-1]
    return tuple(new(x, x.shape if i == 0 else shape) if wanted else None for i, wanted in enumerate(mask))


def _fake_loss(x: torch.Tensor, targets: torch.Tensor, reduction: str, *rest: Any) -> torch.Tensor:
    return new(x, x.shape[:1] if reduction == "none" else (), torch.float32 if any(rest[-2:]) else None)


def _fake_loss_and_gradient(grad: torch.Tensor, x: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _fake_loss(x, *rest), new(x)


def keep_arguments(first: int, end: int) -> Any:
    """Keep the arguments from `first` to `end`, tensors, and those behind as options."""
    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[first:end])
        ctx.options, ctx.count = inputs[end:], len(inputs)
    return keep


def gradients_by(name: str) -> Any:
    """Compute the gradients of the first arguments by an operator of the gradient and of what was kept."""
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        of = getattr(ops, name)(grad, *ctx.saved_tensors, *ctx.options)
        of = of if isinstance(of, tuple) else (of,)
        return *of, *[None] * (ctx.count - len(of))
    return backward


def _keep_softmax(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
    x, dim, _ = inputs
    ctx.options, ctx.count = (dim, x.dtype), len(inputs)
    ctx.save_for_backward(output)


def _keep_norm(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.shape, weight, *bias, _ = inputs
    _, *mean, rstd = output
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(x, *mean or [None], rstd, weight, *bias or [None])


def norm_gradients(wanted: Any, grad: Any, x: torch.Tensor, shape: Any, mean: Any, rstd: Any, weight: Any,
                   bias: Any) -> Any:
    """Return the wanted gradients of a norm's argument, weight and bias; of RMSNorm if there is no mean."""
    if mean is None:
        return *ops._fused_rms_norm_backward(grad, x, shape, rstd, weight, [*wanted[:2]]), None
    return ops.native_layer_norm_backward(grad, x, shape, mean, rstd, weight, bias, [*wanted])


def _norm_backward(ctx: Any, grad: torch.Tensor, *_: Any) -> Any:
    x, *tensors = ctx.saved_tensors
    needed = ctx.needs_input_grad
    dx, *others = norm_gradients((needed[0], *needed[2:4]), grad, x, ctx.shape, *tensors)
    return (dx, None, *others, None)[:len(needed)]


def _refuse_second_derivative(ctx: Any, *_: Any) -> Any:
    raise Unsupported("functions of samebits.torch.functional have no second derivative")


#: widens: the loss alone is fp32; upcast: the logits are converted to fp32
_LOSS = "str reduction, int ignore_index, float label_smoothing, bool widens, bool upcast"
define("_softmax", None, _fake_softmax, _keep_softmax, gradients_by("_softmax_backward_data"))
define("_log_softmax", None, _fake_softmax, _keep_softmax, gradients_by("_log_softmax_backward_data"))
define("_softmax_backward_data", None, _fake_softmax_backward)
define("_log_softmax_backward_data", None, _fake_softmax_backward)
define("native_layer_norm", None, fake_norm(2), _keep_norm, _norm_backward)
define("native_layer_norm_backward", None, _fake_norm_backward)
define("_fused_rms_norm", None, fake_norm(1), _keep_norm, _norm_backward)
define("_fused_rms_norm_backward", None, _fake_norm_backward)
define("cross_entropy", f"(Tensor x, Tensor targets, {_LOSS}) -> Tensor", _fake_loss, keep_arguments(0, 2),
       gradients_by("cross_entropy_backward"))
define("cross_entropy_backward", f"(Tensor grad, Tensor x, Tensor targets, {_LOSS}) -> Tensor",
       lambda grad, x, *_: new(x))
define("cross_entropy_and_gradient", f"(Tensor grad, Tensor x, Tensor targets, {_LOSS}) -> (Tensor, Tensor)",
       _fake_loss_and_gradient)
