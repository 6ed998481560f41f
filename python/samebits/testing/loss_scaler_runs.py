"""Short training runs of a loss scaler: random ones, and what a scaler does in one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from samebits import _core
from samebits.convert import convert
from samebits.errors import ScaleExhausted
from samebits.loss_scaler import settings_of
from samebits.testing.memory import Memory, memory_on
from samebits.testing.number_formats import Codes, Format, array_of, drawn_codes, values
from samebits.testing.runs import CallFailed

Tensor = Sequence[int]  # codes of scaled gradients
Group = Sequence[Tensor]  # the tensors of one optimizer
Step = Sequence[Group]  # one group for each optimizer
Random = np.random.Generator

LOSS: Final = 1.5  # of every step

#: Values of the settings, the simplest first: short intervals, scales that are no powers of two.
CHOICES: Final[dict[str, tuple[Any, ...]]] = {
    "init_scale": (65536.0, 4.0, 3.0, 1000.0, 2.0**24, 2.0**127),
    "initial_scale": (65536.0, 1024.0, 2.0**32), "init_exponent": (16, 4, 20), "min_scale": (1.0,),
    "growth_factor": (2.0, 1.5, 4.0), "backoff_factor": (0.5, 0.25, 0.7),
    "scale_factor": (2.0, 4.0), "growth_interval": (1, 2, 3, 5), "scale_window": (1, 2, 3, 5),
    "hysteresis": (1, 2, 3), "delayed_shift": (1, 2, 3), "raise_error_at_min_scale": (False,)}

_SIZES = (1, 1, 2, 3, 5, 8, 33, 257)
_LARGE = 4097  # elements of the largest tensor, in one trace of sixteen
_BAD_SHARES = (0.0, 0.1, 0.3, 0.3, 0.6)


@dataclass(frozen=True)
class Trace:
    """Settings of a loss scaler, and the scaled gradients of each step.

    Attributes
    ----------
    settings : mapping of str to number
        Arguments of `make_scaler`.
    steps : sequence
        steps[i][j][k] holds the codes of tensor k of optimizer j in step i.
    unscale_first : bool
        Whether `unscale_` is called before `step`, as training code that clips does.
    resume : int
        Before this step a new scaler loads the old one's state_dict; -1: never.

    Examples
    --------
    >>> Trace({"init_scale": 4.0}, [[[[0x3F800000]]]])
    Trace({'init_scale': 4.0}, [[[[0x3F800000]]]])
    """

    settings: Mapping[str, Any]
    steps: Sequence[Step]
    unscale_first: bool = False
    resume: int = -1

    def __post_init__(self) -> None:
        steps = tuple(tuple(tuple(tuple(map(int, tensor)) for tensor in group)
                            for group in step) for step in self.steps)
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "settings", dict(self.settings))

    def __repr__(self) -> str:
        options = (", unscale_first=True" if self.unscale_first else "") + (
            f", resume={self.resume}" if self.resume >= 0 else "")
        return f"Trace({self.settings!r}, {_listed(self.steps)}{options})"


def _listed(codes: Any) -> str:
    """Return nested sequences of codes as nested lists of hexadecimal numbers."""
    return f"0x{codes:X}" if isinstance(codes, int) else f"[{', '.join(map(_listed, codes))}]"


def drawn_settings(policy: Any, fixed: Mapping[str, Any], rng: Random) -> dict[str, Any]:
    """Return random settings of a policy; `fixed` ones do not vary."""
    names = [name for name in settings_of(_core.LossScaler(policy, [])) if name in CHOICES]
    found = {n: CHOICES[n][int(rng.integers(len(CHOICES[n])))] for n in names}
    if policy == "deepspeed":  # whose scale is in binary64
        found["init_scale"] = min(found["init_scale"], 2.0**24)
    return {**found, **fixed}


def traces(policy: str, fixed: Mapping[str, Any], f: Format, optimizers: int, examples: int,
           rng: Random) -> Iterator[Trace]:
    """Yield random traces with up to `optimizers` optimizers."""
    for number in range(examples):
        settings = drawn_settings(policy, fixed, rng)
        shapes = [[int(rng.choice(_SIZES)) for _ in range(rng.integers(1, 4))]
                  for _ in range(rng.integers(1, optimizers, endpoint=True))]
        if number % 16 == 7:
            shapes[0][-1] = _LARGE
        checkpoint = number % 4 == 3
        if checkpoint:  # the growth tracker counts when the state is saved
            settings.update({k: 3 for k in ("growth_interval", "scale_window")
                             if k in settings and k not in fixed})
        share = 0.05 if checkpoint else float(rng.choice(_BAD_SHARES))
        steps = [_step(shapes, f, rng.random() < share, rng)
                 for _ in range(rng.integers(6 if checkpoint else 2, 13))]
        if shapes[0][-1] == _LARGE:  # the last element of a large tensor
            steps[0][0][-1][-1] = _nonfinite(f, rng)
        resume = int(rng.integers(1, len(steps) - 2)) if checkpoint else -1
        yield Trace(settings, steps, bool(rng.random() < 0.5), resume)


def _step(shapes: list[list[int]], f: Format, bad: bool, rng: Random) -> Any:
    """Return the gradients of a step; if `bad`, one to three of them are Inf or NaN."""
    codes = drawn_codes(f, f, sum(map(sum, shapes)), int(rng.integers(1 << 63)))
    codes = np.where(np.isfinite(values(codes, f)), codes, np.uint64(f.one))
    tensors = iter(np.split(codes, np.cumsum([size for sizes in shapes for size in sizes])))
    groups = [[next(tensors) for _ in sizes] for sizes in shapes]
    for _ in range(int(rng.integers(1, 4)) if bad else 0):
        group = groups[int(rng.integers(len(groups)))]
        tensor = group[int(rng.integers(len(group)))]
        tensor[int(rng.choice([0, tensor.size // 2, tensor.size - 1]))] = _nonfinite(f, rng)
    return groups


def _nonfinite(f: Format, rng: Random) -> int:
    inf = f.max_magnitude + 1
    found = (inf, inf | f.sign, f.canonical_nan, f.canonical_nan | f.sign, inf + 1)
    return int(found[int(rng.integers(len(found)))])


# ---- Scalers ----

class StepResult(NamedTuple):
    """What a scaler did in one step."""

    scale: float
    next_scale: float
    scaled_loss: float | None  # LOSS times the scale; None for scalers that do not scale losses
    gradients: tuple[Group | None, ...]  # unscaled, of each optimizer; None if it did not step


class _Callable:
    """``scaler(gradients)`` unscales in place, sets the next scale, returns whether to step."""

    max_optimizers = 1

    def __init__(self, scaler: Any) -> None:
        self.scaler = scaler

    def get_scale(self) -> float:
        scaler = self.scaler
        return float(scaler.get_scale() if hasattr(scaler, "get_scale") else scaler.scale)

    def step(self, groups: list[list[Any]], unscale_first: bool) -> tuple[float | None, list[Any]]:
        """Do a step; return the scaled loss, and each optimizer's gradients or None if skipped."""
        return None, [groups[0] if self.scaler(groups[0]) else None]

    def resume(self, other: Any) -> None:
        """Continue with another scaler, which loads the state of this one, if both can."""
        if hasattr(self.scaler, "state_dict") and hasattr(other, "load_state_dict"):
            other.load_state_dict(self.scaler.state_dict())
            self.scaler = other


class _Library(_Callable):
    """The interface of samebits.LossScaler: unscale(gradients, name), step(None, name), update."""

    max_optimizers = 2

    def step(self, groups: list[list[Any]], unscale_first: bool) -> tuple[float | None, list[Any]]:
        loss, found = float(self.scaler.scale(LOSS)), []
        for number, arrays in enumerate(groups):
            self.scaler.unscale(arrays, str(number))
            found.append(arrays if self.scaler.step(None, str(number)) else None)
        with contextlib.suppress(ScaleExhausted):  # the scaler is ready for the next step
            self.scaler.update()
        return loss, found

    def resume(self, other: Any) -> None:
        if hasattr(self.scaler, "save") and hasattr(other, "load"):
            self.scaler = other.load(self.scaler.save())
        else:
            super().resume(other)


class _Torch(_Callable):
    """The interface of torch.amp.GradScaler, called with optimizers that record gradients."""

    max_optimizers = 2

    def __init__(self, scaler: Any) -> None:
        super().__init__(scaler)
        self.optimizers: list[Any] = []

    def step(self, groups: list[list[Any]], unscale_first: bool) -> tuple[float | None, list[Any]]:
        import torch

        loss = float(self.scaler.scale(torch.tensor(LOSS, device=groups[0][0].device)))
        if not self.optimizers:
            self.optimizers = [self._optimizer(group) for group in groups]
        for optimizer, group in zip(self.optimizers, groups):
            optimizer.recorded = None
            for p, gradient in zip(optimizer.param_groups[0]["params"], group):
                p.grad = gradient
        for optimizer in self.optimizers if unscale_first else ():
            self.scaler.unscale_(optimizer)
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)
        self.scaler.update()
        return loss, [optimizer.recorded for optimizer in self.optimizers]

    @staticmethod
    def _optimizer(group: list[Any]) -> Any:
        import torch

        optimizer: Any = torch.optim.SGD(
            [torch.zeros_like(g, requires_grad=True) for g in group], lr=0.0)

        def record(*arguments: Any, **options: Any) -> None:
            optimizer.recorded = [p.grad.clone() for p in optimizer.param_groups[0]["params"]]
        optimizer.step = record
        return optimizer


def interface_of(scaler: Any, name: str) -> _Callable:
    """Return the interface that a scaler has; CallFailed if it has none."""
    def has(*names: str) -> bool:
        return all(hasattr(scaler, n) for n in (*names, "step", "update", "get_scale"))
    if has("scale", "unscale_"):
        return _Torch(scaler)
    if has("unscale"):
        return _Library(scaler)
    if callable(scaler) and (hasattr(scaler, "get_scale") or hasattr(scaler, "scale")):
        return _Callable(scaler)
    raise CallFailed(f"{name} returned {type(scaler).__name__}; expected a scaler with torch's "
                     "scale, unscale_, step, update and get_scale, or a callable "
                     "scaler(gradients) with an attribute scale")


def run_trace(make_scaler: Callable[..., Any], trace: Trace, f: Format, memory: Memory,
              name: str = "") -> list[StepResult]:
    """Return what a scaler does on a trace; `name` stands for it in errors."""
    scaler, found = interface_of(make_scaler(**trace.settings), name), []
    if isinstance(scaler, _Torch) and memory.device is None:
        memory = memory_on("cpu")

    def plain_codes(tensor: Any) -> Tensor:  # every NaN becomes the canonical one
        plain = convert(array_of(memory.codes(tensor, f), f), f.name, format=f.name)
        return tuple(plain.view(f.code_dtype).tolist())
    for number, step in enumerate(trace.steps):
        if number == trace.resume:
            scaler.resume(make_scaler(**trace.settings))
        scale = scaler.get_scale()
        groups = [[memory.place(np.array(t, np.uint64), f) for t in group] for group in step]
        loss, done = scaler.step(groups, trace.unscale_first)
        found.append(StepResult(scale, scaler.get_scale(), loss, tuple(
            None if group is None else tuple(plain_codes(t) for t in group) for group in done)))
    return found
