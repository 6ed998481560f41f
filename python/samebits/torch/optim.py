"""Optimizers that keep weights and states in many formats, with the same bits on CPU and GPU.

Each takes the place of the optimizer of ``torch.optim`` with its name. The optimizers also accept some
arguments of ``torch.optim`` that they do not need. `capturable` has no effect: every step can be captured
into a CUDA graph. `amsgrad`, `differentiable`, `foreach` and `fused` must be false; they are not supported.

After the first step, a parameter keeps its device, dtype, shape and memory order, and a group its
`weights`, `states` and `block`. A parameter's memory, its dict in `state` and the tensors in the dict
may be replaced. A parameter whose dict is empty begins anew.

16-bit parameters may be written between steps, as by ``load_state_dict`` of the model. An element whose
value is not its master's rounding takes the written value as its new master; all others keep their
master. Writes that torch does not count are undone by the next step: those through ``.data``, after which
call ``torch.autograd.graph.increment_version``, and those between replays of a CUDA graph.

Examples
--------
>>> import torch
>>> from samebits.torch.optim import AdamW
>>> model = torch.nn.Linear(4, 2, dtype=torch.bfloat16)
>>> optimizer = AdamW(model.parameters(), lr=1e-3, weights="stochastic", states="bf16")
>>> model(torch.ones(1, 4, dtype=torch.bfloat16)).sum().backward()
>>> optimizer.step()
>>> {key: value.dtype for key, value in optimizer.state[model.bias].items()}
{'exp_avg': torch.bfloat16, 'exp_avg_sq': torch.bfloat16, 'step': torch.int64}
"""

from __future__ import annotations

from samebits import torch_optimizers
from samebits.rules import dir_of
from samebits.torch.optimizer import Optimizer
from samebits.torch_optimizers import *  # noqa: F403

__all__ = ["Optimizer"]
__all__ += torch_optimizers.__all__
__dir__ = dir_of(__name__)
