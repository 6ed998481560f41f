"""Optimizers and loss scaling: operators that write their arguments."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

import samebits
from samebits.torch.aten.elementwise import divide, multiply
from samebits.torch.aten.registry import RULES, Conditions, require, rule, stored


def _fused(optimizer: Any, _how: Conditions, *lists: Any, lr: Any, beta1: float, beta2: float, weight_decay: float,
           eps: float, amsgrad: bool, maximize: bool, grad_scale: Any = None, found_inf: Any = None) -> None:
    require(not amsgrad, "amsgrad")
    tensors = [x for one in lists[:4] for x in one]
    require(all(x.is_contiguous() and x.dtype == torch.float32 for x in tensors),
            "a fused optimizer of other tensors than contiguous ones in fp32")
    if found_inf is not None and found_inf.item() == 1:
        return
    for parameter, grad, average, square, steps in zip(*lists[:4], lists[5], strict=True):
        if grad_scale is not None:
            grad.copy_(divide(grad, grad_scale))
        one = optimizer(parameter.numpy(), lr=float(lr), betas=(beta1, beta2), eps=eps, weight_decay=weight_decay,
                        maximize=maximize, profile="torch_fused")
        one.state["0"] = {"exp_avg": average.numpy(), "exp_avg_sq": square.numpy()}
        one._steps = int(steps.item()) - 1
        one.step(grad.numpy())


RULES["_fused_adamw_"] = partial(_fused, samebits.optim.AdamW)
RULES["_fused_adam_"] = partial(_fused, samebits.optim.Adam)


@rule("_amp_foreach_non_finite_check_and_unscale_")
def _unscale(_how: Conditions, grads: Any, found_inf: Any, inverse: Any) -> None:
    for grad in grads:
        if not bool(torch.isfinite(grad).all()):
            found_inf.fill_(1.0)
        if inverse.item() != 1:
            grad.copy_(stored(multiply(grad, inverse), grad.dtype))


@rule("_amp_update_scale_")
def _update_scale(_how: Conditions, scale: Any, tracker: Any, found_inf: Any, growth: float, backoff: float,
                  interval: int) -> Any:
    """The products of scale and factor are binary64, rounded once."""
    if found_inf.item() > 0:
        scale.copy_((scale.double() * backoff).float())
        tracker.fill_(0)
    elif int(tracker.item()) + 1 == interval:
        grown = (scale.double() * growth).float()
        if bool(torch.isfinite(grown)):
            scale.copy_(grown)
        tracker.fill_(0)
    else:
        tracker.add_(1)
    return scale
