"""Traces of short training runs, on which loss scalers err."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np

from samebits.testing.number_formats import Codes, Format, special_codes

Tensor = Sequence[int]  # codes of scaled gradients
Group = Sequence[Tensor]  # the tensors of one optimizer
Step = Sequence[Group]  # one group for each optimizer

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

    @property
    def optimizers(self) -> int:
        return len(self.steps[0]) if self.steps else 1

    def __repr__(self) -> str:
        options = (", unscale_first=True" if self.unscale_first else "") + (
            f", resume={self.resume}" if self.resume >= 0 else "")
        return f"Trace({self.settings!r}, {_listed(self.steps)}{options})"


def _listed(codes: Any) -> str:
    """Return nested sequences of codes as nested lists of hexadecimal numbers."""
    if isinstance(codes, int):
        return f"0x{codes:X}"
    return "[" + ", ".join(_listed(c) for c in codes) + "]"


def drawn_settings(policy: str, rng: np.random.Generator) -> dict[str, Any]:
    """Return random settings of a policy: short intervals, scales that are no powers of two too."""
    def one(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    start = one(65536.0, 65536.0, float(2.0 ** rng.integers(-4, 25)), 1000.0, 3.0, 2.0**127)
    interval = one(1, 2, 3, 5)
    factors = {"growth_factor": one(2.0, 2.0, 1.5, 4.0), "backoff_factor": one(0.5, 0.5, 0.25, 0.7)}
    hysteresis = one(1, 2, 3)
    table: dict[str, dict[str, Any]] = {
        "torch": {"init_scale": start, **factors, "growth_interval": interval},
        "apex": {"init_scale": start, **factors, "growth_interval": interval,
                 "hysteresis": hysteresis},
        "apex_amp": {"init_scale": one(65536.0, 1024.0, 3.0), "scale_window": interval},
        "megatron": {"initial_scale": one(65536.0, 1024.0, 2.0**32), "min_scale": 1.0, **factors,
                     "growth_interval": interval, "hysteresis": hysteresis},
        "deepspeed": {"init_scale": one(65536.0, 1024.0, 2.0**32), "scale_factor": one(2.0, 4.0),
                      "scale_window": interval, "min_scale": 1.0, "delayed_shift": hysteresis,
                      "raise_error_at_min_scale": False},
        "native": {"init_exponent": one(16, 4, 20), "growth_interval": interval},
    }
    return table[policy]


def traces(policy: str, fixed: Mapping[str, Any], source: Format, optimizers: int, examples: int,
           rng: np.random.Generator) -> Iterator[Trace]:
    """Yield random traces with up to `optimizers` optimizers; `fixed` settings do not vary."""
    for number in range(examples):
        settings = {**drawn_settings(policy, rng), **fixed}
        count = int(rng.integers(1, optimizers, endpoint=True))
        shapes = [[int(rng.choice(_SIZES)) for _ in range(rng.integers(1, 4))]
                  for _ in range(count)]
        if number % 16 == 7:
            shapes[0][-1] = _LARGE
        checkpoint = number % 4 == 3
        if checkpoint:  # the growth tracker counts when the state is saved
            settings.update({k: 3 for k in ("growth_interval", "scale_window")
                             if k in settings and k not in fixed})
        share = 0.05 if checkpoint else float(rng.choice(_BAD_SHARES))
        steps = [_step(shapes, source, rng.random() < share, rng)
                 for _ in range(rng.integers(6 if checkpoint else 2, 13))]
        if shapes[0][-1] == _LARGE:  # the last element of a large tensor
            steps[0][0][-1][-1] = _nonfinite(source, rng)
        resume = int(rng.integers(1, len(steps) - 2)) if checkpoint else -1
        yield Trace(settings, steps, bool(rng.random() < 0.5), resume)


def _step(shapes: list[list[int]], f: Format, bad: bool, rng: np.random.Generator,
          ) -> list[list[list[int]]]:
    """Return the gradients of a step; if `bad`, one to three of them are Inf or NaN."""
    large = rng.random() < 0.1
    codes = _finite(sum(map(sum, shapes)), f, large, rng)
    ends = iter(accumulate(size for sizes in shapes for size in sizes))
    groups = [[codes[end - size:end] for size, end in zip(sizes, ends)] for sizes in shapes]
    for _ in range(int(rng.integers(1, 4)) if bad else 0):
        group = groups[int(rng.integers(len(groups)))]
        tensor = group[int(rng.integers(len(group)))]
        tensor[int(rng.choice([0, tensor.size // 2, tensor.size - 1]))] = _nonfinite(f, rng)
    return [[tensor.tolist() for tensor in group] for group in groups]


def _finite(size: int, f: Format, large: bool, rng: np.random.Generator) -> Codes:
    """Return finite codes: magnitudes around 1, some special; near the largest if `large`."""
    low, high = (max(f.bias + d, 1) << f.mantissa_bits for d in (-20, 13))
    if large:
        low, high = f.max_magnitude - (3 << f.mantissa_bits), f.max_magnitude
    words = np.frombuffer(rng.bytes(8 * size), np.uint64)
    codes = np.uint64(low) + words % np.uint64(high - low + 1)
    special = _special(f)
    chosen = special[words % np.uint64(special.size)]
    signed: Codes = np.where(words >> np.uint64(60) == 0, chosen, codes)  # one of 16 is special
    return signed | (words >> np.uint64(59) & np.uint64(1)) * np.uint64(f.sign)


@cache
def _special(f: Format) -> Codes:
    """Return the finite ones of the special codes."""
    codes = special_codes(f)
    found: Codes = codes[(codes & np.uint64(f.sign - 1)) <= np.uint64(f.max_magnitude)]
    return found


def _nonfinite(f: Format, rng: np.random.Generator) -> int:
    inf = f.max_magnitude + 1
    found = (inf, inf | f.sign, f.canonical_nan, f.canonical_nan | f.sign, inf + 1)
    return int(found[int(rng.integers(len(found)))])
