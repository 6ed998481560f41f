"""Modules that compute rows and losses by this library, and `convert_model`, which puts them into a model."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from samebits.torch.aten.registry import FORMATS, require
from samebits.torch.functional import cross_entropy, layer_norm, log_softmax, rms_norm, softmax

__all__ = ["CrossEntropyLoss", "LayerNorm", "LogSoftmax", "RMSNorm", "Softmax", "SwappedModules", "convert_model"]


class Softmax(torch.nn.Softmax):
    """`torch.nn.Softmax` by `softmax`.

    Parameters
    ----------
    dim : int
        The last axis.

    Examples
    --------
    >>> sbt.Softmax(dim=-1)(torch.zeros(1, 2))
    tensor([[0.5000, 0.5000]])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return softmax of `input`."""
        require(self.dim is not None, "softmax over no named axis: dim=None")
        return softmax(input, int(self.dim))  # type: ignore[arg-type]


class LogSoftmax(torch.nn.LogSoftmax):
    """`torch.nn.LogSoftmax` by `log_softmax`.

    Parameters
    ----------
    dim : int
        The last axis.

    Examples
    --------
    >>> sbt.LogSoftmax(dim=-1)(torch.zeros(1, 2))
    tensor([[-0.6931, -0.6931]])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return log_softmax of `input`."""
        require(self.dim is not None, "log_softmax over no named axis: dim=None")
        return log_softmax(input, int(self.dim))  # type: ignore[arg-type]


class LayerNorm(torch.nn.LayerNorm):
    """`torch.nn.LayerNorm` by `layer_norm`, with the same state_dict.

    Parameters
    ----------
    normalized_shape, eps, elementwise_affine, bias, device, dtype
        As of `torch.nn.LayerNorm`.

    Examples
    --------
    >>> sbt.LayerNorm(2)(torch.tensor([[1.0, 3]])).tolist()[0][1] > 0.99
    True
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return LayerNorm of `input`."""
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(torch.nn.RMSNorm):
    """`torch.nn.RMSNorm` by `rms_norm`, with the same state_dict.

    Parameters
    ----------
    normalized_shape, eps, elementwise_affine, device, dtype
        As of `torch.nn.RMSNorm`.

    Examples
    --------
    >>> sbt.RMSNorm(2, elementwise_affine=False)(torch.tensor([[3.0, 4]]))
    tensor([[0.8485, 1.1314]])
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return RMSNorm of `x`."""
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)


class CrossEntropyLoss(torch.nn.CrossEntropyLoss):
    """`torch.nn.CrossEntropyLoss` by `cross_entropy`; `expected_gradient` is an attribute.

    Parameters
    ----------
    weight, size_average, ignore_index, reduce, reduction, label_smoothing
        As of `torch.nn.CrossEntropyLoss`; weights of classes are refused.

    Examples
    --------
    >>> sbt.CrossEntropyLoss()(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.6931)
    """

    expected_gradient: float | torch.Tensor | None = 1.0

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss of logits `input` and classes `target`."""
        require(self.weight is None, "cross entropy with weights of classes")
        reduction: Any = self.reduction
        return cross_entropy(input, target, ignore_index=self.ignore_index, reduction=reduction,
                             label_smoothing=self.label_smoothing, expected_gradient=self.expected_gradient)


#: By PyTorch's class, the class that takes its place.
_CLASSES: dict[type[torch.nn.Module], type[torch.nn.Module]] = {
    torch.nn.Softmax: Softmax, torch.nn.LogSoftmax: LogSoftmax, torch.nn.LayerNorm: LayerNorm,
    torch.nn.RMSNorm: RMSNorm, torch.nn.CrossEntropyLoss: CrossEntropyLoss}


class SwappedModules(NamedTuple):
    """What `convert_model` did, by the names of modules."""

    swapped: dict[str, str]  #: the class of each module that computes by this library now
    left: dict[str, str]  #: why a module of these kinds was left


def _reason(module: Any) -> str | None:
    """Return why a module cannot be swapped; None if it can."""
    if type(module) not in _CLASSES:
        return f"{type(module).__name__}, a subclass"
    if isinstance(module, torch.nn.Softmax | torch.nn.LogSoftmax) and module.dim != -1:
        return f"dim={module.dim}, which may not be the last axis"
    if isinstance(module, torch.nn.CrossEntropyLoss) and (module.weight is not None or module.label_smoothing):
        return "weights of classes" if module.weight is not None else "label smoothing has no kernel for GPUs"
    weight = getattr(module, "weight", None)
    return f"parameters of {weight.dtype}" if weight is not None and weight.dtype not in FORMATS else None


def convert_model(model: torch.nn.Module) -> SwappedModules:
    """Let the modules of a model that this library has compute by this library, in place.

    The modules are LayerNorm, RMSNorm, Softmax, LogSoftmax and CrossEntropyLoss. They stay the same objects and get
    another class: parameters, hooks, optimizers and checkpoints stay valid. Calls of ``torch.nn.functional`` in
    a model's own code are not changed. Call this function before the model is compiled.

    Parameters
    ----------
    model : torch.nn.Module

    Returns
    -------
    SwappedModules
        The names of what was swapped, and of what was left, with the reason.

    Notes
    -----
    A `torch.nn.TransformerEncoderLayer` no longer takes its fused path for inference, which calls no module.

    Examples
    --------
    >>> model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Softmax(dim=1))
    >>> sbt.convert_model(model)
    SwappedModules(swapped={'0': 'LayerNorm'}, left={'1': 'dim=1, which may not be the last axis'})
    """
    result = SwappedModules({}, {})
    chosen: list[torch.nn.Module] = []
    for name, module in model.named_modules(remove_duplicate=False):
        if not isinstance(module, tuple(_CLASSES)) or type(module) in _CLASSES.values():
            continue
        if (reason := _reason(module)) is not None:
            result.left[name] = reason
        else:
            result.swapped[name] = type(module).__name__
            chosen.append(module)
    for module in {id(m): m for m in chosen}.values():
        module.__class__ = _CLASSES[type(module)]
    for module in model.modules():
        if isinstance(module, torch.nn.TransformerEncoderLayer) and type(module.norm1) in _CLASSES.values():
            module.activation_relu_or_gelu = 0
    return result
