"""Clip the gradients of a model, and look at them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

import torch

from samebits.errors import InvalidArgument
from samebits.tensors import InspectReport, inspect
from samebits.torch.gradient_list import GradientLists, GradientReport, clear_words, one_device
from samebits.torch.tensors import in_memory_order, is_without_gaps, local

__all__ = ["clip_grad_norm_", "inspect_gradients"]

_KEPT: Final = 8
_lock = threading.Lock()
# Lists by the number of their gradients, and the words of a scale of 1 by device.
_lists: OrderedDict[tuple[torch.device, int], GradientLists] = OrderedDict()
_words: dict[torch.device, torch.Tensor] = {}


def clip_grad_norm_(parameters: torch.Tensor | Iterable[torch.Tensor], max_norm: float,
                    norm_type: float = 2.0, error_if_nonfinite: bool = False,
                    foreach: bool | None = None) -> torch.Tensor:
    """Scale the gradients of parameters so that their common L2 norm is at most `max_norm`.

    Takes the place of ``torch.nn.utils.clip_grad_norm_``. The norm is the sum of squares in
    binary64, over the library's fixed tree, and its root. So it has the same bits on a CPU and a
    GPU; torch's norm, in another order and precision, has others. The factor is
    min(1, max_norm / (norm + 1e-6)), as in torch. On CUDA nothing waits.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Their gradients, in fp32, fp16 or bf16 and on one device, are scaled in place. Each gradient
        is read in the order in which it lies in memory.
    max_norm : float
    norm_type : float
        2; other norms are refused.
    error_if_nonfinite : bool
        Whether a norm that is NaN or Inf raises RuntimeError; this waits for the GPU. If not, such
        gradients stay as they are; torch makes them 0 or NaN.
    foreach : bool, optional
        Ignored, as one pass always works on all gradients.

    Returns
    -------
    Tensor [] of float64
        Norm before clipping, on the device of the gradients; 0 without gradients.

    Examples
    --------
    >>> w = torch.nn.Parameter(torch.zeros(2))
    >>> w.grad = torch.tensor([3.0, 4.0])
    >>> sbt.clip_grad_norm_([w], 1.0)
    tensor(5., dtype=torch.float64)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    if float(norm_type) != 2.0:
        raise InvalidArgument(f"norm_type: 2 is expected; got {norm_type}. Use "
                              "torch.nn.utils.clip_grad_norm_ for other norms")
    if not max_norm >= 0:
        raise InvalidArgument(f"max_norm: a number >= 0 is expected; got {max_norm}")
    listed = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
    grads = [p.grad for p in listed if p.grad is not None]
    for i, grad in enumerate(grads):
        if hasattr(grad, "device_mesh"):
            raise InvalidArgument(f"parameters: gradient {i} is a DTensor; the norm of its shards "
                                  "needs all ranks: samebits.torch.clip_shards_, norm_of_shards")
        _check(grad, f"parameters: gradient {i}")
    if not grads:
        return torch.zeros((), dtype=torch.float64)
    device = one_device(grads, "parameters")
    words = _words.get(device)
    if words is None:
        words = clear_words(device)
        if device.type == "cpu" or not torch.cuda.is_current_stream_capturing():
            _words[device] = words  # words of a capture are written by its replays only
    report = GradientReport(torch.zeros(6, dtype=torch.float64, device=device))
    _lists_of(device, len(grads)).unscale(grads, words, report, only_clips=True,
                                          max_norm=float(max_norm))
    if error_if_nonfinite and not bool(report.norm.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return report.norm


def _lists_of(device: torch.device, count: int) -> GradientLists:
    """Return the lists of so many gradients."""
    key = (device, count)
    with _lock:
        if key not in _lists:
            unused = [k for k, lists in _lists.items() if not lists.captured]
            if len(unused) >= _KEPT:
                del _lists[unused[0]]
            _lists[key] = GradientLists([str(i) for i in range(count)])
        _lists.move_to_end(key)
        return _lists[key]


def _check(grad: torch.Tensor, what: str) -> None:
    """Refuse a gradient that no list of the library can hold."""
    if is_without_gaps(grad):
        return
    strides = f" with strides {tuple(grad.stride())}" if grad.layout is torch.strided else ""
    raise InvalidArgument(f"{what} is {grad.dtype} in {grad.layout}{strides}; fp32, fp16 or bf16 "
                          "without gaps is expected")


def inspect_gradients(module: torch.nn.Module | Iterable[tuple[str, torch.Tensor]], *,
                      distribution: bool = True) -> InspectReport:
    """Read all gradients of a module once: NaN, Inf, amax, norms, and the first bad one by name.

    Waits for the GPU.

    Parameters
    ----------
    module : Module, or iterable of pairs of str and Tensor
        Parameters that have gradients, in fp32, fp16 or bf16; shards of DTensors are read by rank.
    distribution : bool
        Whether to count zeros, subnormals and exponents besides NaN and Inf.

    Returns
    -------
    samebits.InspectReport
        Its `tensors` have the names of ``module.named_parameters()``.

    Examples
    --------
    >>> model = torch.nn.Linear(2, 1)
    >>> (model(torch.ones(1, 2)).sum() * float("inf")).backward()
    >>> report = sbt.inspect_gradients(model)
    >>> report.first_bad, report.tensors["weight"].inf
    ('weight', 2)
    """
    named: Any = module.named_parameters() if isinstance(module, torch.nn.Module) else module
    gradients = {name: local(p.grad) for name, p in named if p.grad is not None}
    for name, grad in gradients.items():
        _check(grad, f"module: the gradient of {name}")
    return inspect({name: in_memory_order(g) for name, g in gradients.items()},
                   distribution=distribution)
