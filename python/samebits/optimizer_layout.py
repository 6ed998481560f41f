"""Optimizer steps: names of rules and formats, and the arrays that a parameter needs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.formats import choose

#: How weights are kept: the argument `weights`.
Weights = Literal["master32", "direct", "stochastic", "split16", "kahan", "fp8_copy",
                  "master16_scaled"]
#: How states are kept: the argument `states`.
States = Literal["fp32", "bf16", "fp16", "bf16_stochastic", "fp16_stochastic", "fp16_scaled", "e4m3",
                 "e5m2", "dynamic8"]
#: The stored format of states with signs.
STATES: Final[dict[str, str]] = {
    "fp32": "fp32", "bf16": "bf16_nearest", "fp16": "fp16_nearest",
    "bf16_stochastic": "bf16_stochastic", "fp16_stochastic": "fp16_stochastic",
    "fp16_scaled": "fp16_scaled", "e4m3": "e4m3_scaled", "e5m2": "e5m2_scaled",
    "dynamic8": "dynamic8_signed",
}
#: The format of the codes of a stored format, and whether it has block scales.
_STORED_CODES: Final[dict[str, tuple[str, bool]]] = _core.stored_formats()
SCALED: Final = frozenset(name for name, (_, scaled) in _STORED_CODES.items() if scaled)
#: Names of the states in PyTorch's optimizers.
_MOMENTS: Final = ("exp_avg", "exp_avg_sq")
_STATE_KEYS: Final = {"sgd": ("momentum_buffer",)}
#: States that are never negative.
UNSIGNED: Final = frozenset(("exp_avg_sq",))
#: The stored format of gradients of a format.
GRADIENTS: Final = {name: STATES[name] for name in ("fp32", "bf16", "fp16")}


@dataclass(frozen=True)
class StateArray:
    """An array beside a parameter.

    Attributes
    ----------
    key : str
        Its name among the states.
    stored : str
        Its stored format; "int16" for the low part of split weights.
    begins_as : str
        Values before the first step: zero, or parameter (the parameter's values).
    """

    key: str
    stored: str
    begins_as: str = "zero"

    @property
    def codes(self) -> Any:
        """Format of the codes; "int16" and "uint8" are no formats, but dtypes."""
        return _STORED_CODES[self.stored][0] if self.stored in _STORED_CODES else self.stored

    @property
    def scale_key(self) -> str | None:
        """Name of the array of block scales; None in formats without scales."""
        return self.key + "_scale" if self.stored in SCALED else None


@dataclass(frozen=True)
class Layout:
    """The arrays of one parameter, by their part in a step.

    The parameter itself takes the part whose array is None: `weights`, or `master` for FP8 copies.
    `block` is the number of elements with one scale.
    """

    block: int
    states: tuple[StateArray, ...]
    weights_stored: str
    weights: StateArray | None = None
    master_stored: str = "none"
    master: StateArray | None = None
    low_kind: str = "none"
    low: StateArray | None = None

    @property
    def has_finer_weights(self) -> bool:
        """Whether an array beside the parameter has bits of its values that the parameter lacks."""
        return self.master is not None or self.low is not None

    def arrays(self) -> list[StateArray]:
        """Return the arrays beside the parameter."""
        parts = (self.weights, self.master, *self.states, self.low)
        return [a for a in parts if a is not None]

    def blocks(self, elements: int) -> int:
        """Return the number of block scales of so many elements."""
        return -(-elements // self.block)

    def row(self, parameter: int, address_of: Mapping[str, int], numbers: tuple[Any, ...],
            gradient: str) -> tuple[Any, ...]:
        """Return the row of samebits._core.OptimizerTensors.

        Parameters
        ----------
        parameter : int
            Address of the parameter.
        address_of : mapping of str to int
            Address of each array, and of its scales.
        numbers : tuple
            Count, first index, stream and group.
        gradient : str
            Stored format of the gradient.
        """
        def part(array: StateArray | None, stored: str) -> tuple[int, int, str] | None:
            if stored == "none":
                return None
            if array is None:
                return parameter, 0, stored
            scales = address_of[array.scale_key] if array.scale_key else 0
            return address_of[array.key], scales, stored

        states = [*(part(s, s.stored) for s in self.states), None, None]
        low = address_of[self.low.key] if self.low else 0
        return (part(self.weights, self.weights_stored), part(self.master, self.master_stored),
                *states[:2], low, self.low_kind, gradient, *numbers, self.block)


def _stored(states: str, key: str) -> str:
    """Return the stored format of a state."""
    return "dynamic8_unsigned" if states == "dynamic8" and key in UNSIGNED else STATES[states]


def layout_of(rule: str, parameter: str, group: Mapping[str, Any]) -> Layout:
    """Return the arrays of a parameter.

    Parameters
    ----------
    rule : str
        The rule of the optimizer.
    parameter : str
        Format of the parameter: fp32, bf16 or fp16.
    group : mapping
        All options of its group.
    """
    count = _core.check_optimizer((rule, 0.0, group), group["block"], 0)
    keys = _STATE_KEYS.get(rule, _MOMENTS)[:count]
    weights, states = choose("weights", group["weights"], get_args(Weights)), group["states"]
    if not isinstance(states, (str, list, tuple)):
        raise TypeError(f"states: a string or several are expected; got a {type(states).__name__}")
    each = [states] * len(keys) if isinstance(states, str) else list(states)
    if len(each) != len(keys):
        raise InvalidArgument(f"states: one format or {len(keys)} are expected; got {len(each)}")
    each = [choose("states", name, STATES) for name in each]
    for key, name in zip(keys, each, strict=True):
        if key in UNSIGNED and STATES[name] in ("fp16_nearest", "fp16_stochastic"):
            raise InvalidArgument(f"states: {name} has no numbers between 0 and 2^-24, so steps of small "
                                  f"{key} would be divided by eps alone; use fp16_scaled or bf16, for "
                                  f"example states=({each[0]!r}, 'fp16_scaled')")
    block = int(group["block"])
    arrays = tuple(StateArray(k, _stored(s, k)) for k, s in zip(keys, each, strict=True))
    if parameter not in ("fp32", "bf16", "fp16"):
        raise InvalidArgument(f"parameters: fp32, bf16 or fp16 is expected; got {parameter}")
    if parameter == "fp32":
        if weights == "fp8_copy":
            copy = StateArray("fp8", "e4m3_scaled", "parameter")
            return Layout(block, arrays, "e4m3_scaled", copy, "fp32")
        return Layout(block, arrays, "fp32")
    if weights in ("split16", "kahan"):
        if parameter != "bf16":
            raise InvalidArgument(f"weights: {weights} needs parameters in bf16; got {parameter}")
        low = StateArray("low", "int16" if weights == "split16" else "bf16_nearest")
        kind = "split" if weights == "split16" else "kahan"
        return Layout(block, arrays, "bf16_nearest", low_kind=kind, low=low)
    if weights == "fp8_copy":
        raise InvalidArgument(f"weights: fp8_copy needs parameters in fp32; got {parameter}")
    if weights == "stochastic":
        return Layout(block, arrays, f"{parameter}_stochastic")
    if weights == "direct":
        return Layout(block, arrays, f"{parameter}_nearest")
    stored = "fp32" if weights == "master32" else "fp16_scaled"
    master = StateArray("master", stored, "parameter")
    return Layout(block, arrays, f"{parameter}_nearest", master_stored=stored, master=master)


def check_group(rule: str, group: Mapping[str, Any], learning_rate: Any,
                formats: Iterable[str]) -> dict[str, Layout]:
    """Refuse a group of parameters that no step could update.

    Parameters
    ----------
    rule : str
        The rule of the optimizer.
    group : mapping
        All options of the group.
    learning_rate : number
        The learning rate.
    formats : iterable of str
        The formats of the parameters.

    Returns
    -------
    dict of str to Layout
        The arrays of a parameter of each format.
    """
    settings = (rule, learning_rate, group)
    _core.check_optimizer(settings, group["block"], group["seed"])
    layouts = {f: layout_of(rule, f, group) for f in formats}
    # A step of tensors without elements, each with a gradient in its own format, checks the formats.
    rows = [layout.row(0, defaultdict(int), (0, 0, 0, 0), GRADIENTS[f])
            for f, layout in layouts.items()]
    tensors = _core.OptimizerTensors(rows, [""] * len(rows), False)
    try:
        tensors.with_gradients(bytes(8 * len(rows))).step([settings], 1, 1.0, 0, 0, 0, (1, None, None))
    except InvalidArgument as error:  # without the place in the list
        raise InvalidArgument(re.sub(r"^tensors\[\d+\][.:]? ?", "", str(error))) from None
    return layouts
