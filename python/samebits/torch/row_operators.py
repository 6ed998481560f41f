"""Operators of rows and losses for torch.compile, recordings and autograd: `torch.ops.samebits._softmax` and others.

They have the names and schemas of ATen's operators, whose rules (`samebits.torch.aten.rows`) they run on CPU
and CUDA tensors. Cross entropy has operators of its own, which read the logits once.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from samebits.errors import Unsupported
from samebits.torch.aten import rows  # noqa: F401 - it registers the rules
from samebits.torch.aten.registry import RULES, Conditions

__all__: list[str] = []

#: widens: the loss alone is fp32; upcast: the logits are converted to fp32
_LOSS = "str reduction, int ignore_index, float label_smoothing, bool widens, bool upcast"
_OF_ATEN = ("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data", "native_layer_norm",
            "native_layer_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward")
_OWN = {
    "cross_entropy": f"(Tensor x, Tensor targets, {_LOSS}) -> Tensor",
    "cross_entropy_backward": f"(Tensor grad, Tensor x, Tensor targets, {_LOSS}) -> Tensor",
    "cross_entropy_and_gradient": f"(Tensor grad, Tensor x, Tensor targets, {_LOSS}) -> (Tensor, Tensor)",
}
#: The operators that `define` has defined. Calls skip the dispatcher if no mode, transform or subclass needs them.
ops: Any = SimpleNamespace()
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_direct: dict[str, Any] = {}  # autograd functions, by operator; None: it has no derivative


def _how(x: torch.Tensor) -> Conditions:
    if not x.is_cuda:
        return Conditions()
    return Conditions(torch.cuda.get_device_properties(x.device).multi_processor_count)


def define(name: str, schema: str | None = None) -> None:
    """Define an operator that runs the rule of its name; without a schema it has that of ATen's operator."""
    schema = schema or str(getattr(torch.ops.aten, name).default._schema).removeprefix(f"aten::{name}")

    def run(x: torch.Tensor, *arguments: Any, **options: Any) -> Any:
        results = RULES[name](_how(x), x, *arguments, **options)
        return tuple(results) if isinstance(results, tuple) else results

    torch.library.define(f"samebits::{name}", schema)
    torch.library.impl(f"samebits::{name}", ("CPU", "CUDA"))(run)
    dispatched = getattr(torch.ops.samebits, name)

    def call(*arguments: Any, **options: Any) -> Any:
        if torch.compiler.is_compiling() or options or is_seen(arguments):
            return dispatched(*arguments, **options)
        if not torch.is_grad_enabled():
            return run(*arguments)
        direct = _direct[name]
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


for _name in _OF_ATEN:
    define(_name)
for _name, _schema in _OWN.items():
    define(_name, _schema)


def new(x: torch.Tensor, shape: Any = None, dtype: torch.dtype | None = None) -> torch.Tensor:
    return x.new_empty(x.shape if shape is None else shape, dtype=dtype or x.dtype)


def _fake_softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:
    return new(x, dtype=torch.float32 if half_to_float else None)


def _fake_softmax_backward(grad: torch.Tensor, y: torch.Tensor, dim: int, input_dtype: torch.dtype) -> torch.Tensor:
    return new(grad, dtype=input_dtype)


def _fake_norm(statistics: int) -> Any:
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


def _keep_softmax(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
    x, ctx.dim, _ = inputs
    ctx.dtype = x.dtype
    ctx.save_for_backward(output)


def _softmax_backward(ctx: Any, grad: torch.Tensor) -> Any:
    y, = ctx.saved_tensors
    return ops._softmax_backward_data(grad, y, ctx.dim, ctx.dtype), None, None


def _log_softmax_backward(ctx: Any, grad: torch.Tensor) -> Any:
    y, = ctx.saved_tensors
    return ops._log_softmax_backward_data(grad, y, ctx.dim, ctx.dtype), None, None


def _keep_norm(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.shape, weight, *rest = inputs
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(x, weight, *rest[:-1], *output[1:])  # LayerNorm's bias stands between


def _layer_norm_backward(ctx: Any, grad: torch.Tensor, *_: Any) -> Any:
    x, weight, bias, mean, rstd = ctx.saved_tensors
    mask = [ctx.needs_input_grad[i] for i in (0, 2, 3)]
    dx, dw, db = ops.native_layer_norm_backward(grad, x, ctx.shape, mean, rstd, weight, bias, mask)
    return dx, None, dw, db, None


def _rms_norm_backward(ctx: Any, grad: torch.Tensor, *_: Any) -> Any:
    x, weight, rstd = ctx.saved_tensors
    mask = [ctx.needs_input_grad[i] for i in (0, 2)]
    dx, dw = ops._fused_rms_norm_backward(grad, x, ctx.shape, rstd, weight, mask)
    return dx, None, dw, None


def _keep_logits(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
    x, targets, *ctx.options = inputs
    ctx.save_for_backward(x, targets)


def _cross_entropy_backward(ctx: Any, grad: torch.Tensor) -> Any:
    return ops.cross_entropy_backward(grad, *ctx.saved_tensors, *ctx.options), *[None] * 6


def refuse_second_derivative(ctx: Any, *_: Any) -> Any:
    raise Unsupported("functions of samebits.torch.functional have no second derivative")


def register(parts: dict[str, tuple[Any, Any, Any]]) -> None:
    """Register, by operator: shapes of its results; what it keeps; its backward pass."""
    for name, (fake, keep, backward) in parts.items():
        torch.library.register_fake(f"samebits::{name}")(fake)
        torch.library.register_autograd(f"samebits::{name}", backward, setup_context=keep)
        _direct[name] = None if backward is refuse_second_derivative else _function_of(name, keep, backward)


register({
    "_softmax": (_fake_softmax, _keep_softmax, _softmax_backward),
    "_log_softmax": (_fake_softmax, _keep_softmax, _log_softmax_backward),
    "_softmax_backward_data": (_fake_softmax_backward, None, refuse_second_derivative),
    "_log_softmax_backward_data": (_fake_softmax_backward, None, refuse_second_derivative),
    "native_layer_norm": (_fake_norm(2), _keep_norm, _layer_norm_backward),
    "native_layer_norm_backward": (_fake_norm_backward, None, refuse_second_derivative),
    "_fused_rms_norm": (_fake_norm(1), _keep_norm, _rms_norm_backward),
    "_fused_rms_norm_backward": (_fake_norm_backward, None, refuse_second_derivative),
    "cross_entropy": (_fake_loss, _keep_logits, _cross_entropy_backward),
    "cross_entropy_backward": (lambda grad, x, *_: new(x), None, refuse_second_derivative),
    "cross_entropy_and_gradient": (_fake_loss_and_gradient, None, refuse_second_derivative),
})
