"""The rules of optimizer steps: one row makes a class of `samebits.optim` and `samebits.torch.optim`.

write_tables.py, which writes the classes, imports this module without the package.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

__all__ = ["RULES", "OptimizerRule"]


class OptimizerRule(NamedTuple):
    """What a class of a rule needs.

    Attributes
    ----------
    name : str
        Name of the classes.
    doc : str
        What a step computes.
    defaults : dict
        The arguments that the rule reads, in their order, and their defaults.
    states : tuple of str
        Names of the states, as PyTorch's optimizers call them.
    example : str
        Arguments of the docstrings' examples.
    arrays, tensors : str
        Results of the examples: of [1, 2] with the gradient [0.25, -4], and of [1, 1] with [1, 1].
    """

    name: str
    doc: str
    defaults: dict[str, Any]
    states: tuple[str, ...]
    example: str
    arrays: str
    tensors: str


_MOMENTS: Final = ("exp_avg", "exp_avg_sq")

RULES: Final[dict[str, OptimizerRule]] = {
    "adamw": OptimizerRule(
        "AdamW", "Adam with decoupled weight decay.",
        {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 1e-2}, _MOMENTS,
        "lr=0.5", "[0.495, 2.49 ]", "[0.4950000047683716, 0.4950000047683716]"),
    "adam": OptimizerRule(
        "Adam", "Adam; weight decay is added to the gradient (L2).",
        {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0}, _MOMENTS,
        "lr=0.5", "[0.5, 2.5]", "[0.5, 0.5]"),
    "sgd": OptimizerRule(
        "SGD", "Gradient descent with momentum, dampening and Nesterov's momentum on request.",
        {"lr": 1e-3, "momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False},
        ("momentum_buffer",), "lr=0.5, momentum=0.5", "[0.875, 4.   ]", "[0.5, 0.5]"),
    "lion": OptimizerRule(
        "Lion", "The sign of an average of gradients, with decoupled weight decay.",
        {"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0}, ("exp_avg",),
        "lr=0.5", "[0.5, 2.5]", "[0.5, 0.5]"),
    "lamb": OptimizerRule(
        "LAMB", "Adam's direction, scaled by the norms of weights and direction of each tensor.",
        {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 1e-2}, _MOMENTS,
        "lr=0.5", "[0.19760513, 2.7785645 ]", "[0.5, 0.5]"),
}
