"""Names of rounding modes and policies, and the arguments that several functions share."""

from __future__ import annotations

import operator
from typing import Any, Final

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.formats import choose, format_index

ROUNDINGS: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("rounding"))}
OVERFLOWS: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("overflow"))}
NAN_POLICIES: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("nan_policy"))}
STOCHASTIC: Final[int] = ROUNDINGS["stochastic"]

#: Names of (rounding, overflow, nan) -> rounding | overflow << 8 | nan << 16 for samebits._core.
RULES: Final[dict[tuple[str, str, str], int]] = {
    (r, o, n): ri | oi << 8 | ni << 16
    for r, ri in ROUNDINGS.items()
    for o, oi in OVERFLOWS.items()
    for n, ni in NAN_POLICIES.items()
}


def rule_of(rounding: str, overflow: str, nan: str) -> int:
    """Return the number of a rule, as in `RULES`; for an unknown name, raise InvalidArgument."""
    rule = RULES.get((rounding, overflow, nan))
    if rule is not None:
        return rule
    return (
        choose("rounding", rounding, ROUNDINGS)
        | choose("overflow", overflow, OVERFLOWS) << 8
        | choose("nan", nan, NAN_POLICIES) << 16
    )


def check_seed(seed: int | None) -> None:
    """Refuse stochastic rounding without a seed.

    A default would round each element by the same random bits in every step of a training run.
    """
    if seed is None:
        raise InvalidArgument("seed: stochastic rounding needs a seed; pass seed=, and another seed "
                              "or random_stream= in each step of a training run")


def random_of(
    seed: int | None, random_stream: int, offset: int, pitch: int | None, random_bits: int
) -> tuple[int, int, int, int, int]:
    """Return the random stream as the core takes it; a pitch of -1 means none."""
    check_seed(seed)
    seed, random_stream, offset, random_bits = (
        integer(value, name)
        for value, name in ((seed, "seed"), (random_stream, "random_stream"), (offset, "offset"),
                            (random_bits, "random_bits")))
    pitch = None if pitch is None else integer(pitch, "pitch")
    for name, value in (("seed", seed), ("random_stream", random_stream), ("offset", offset)):
        if not 0 <= value < 2**64:
            raise InvalidArgument(f"{name}: an integer of 0 .. 2^64 - 1 is expected; got {value}")
    if not 1 <= random_bits <= 32:
        raise InvalidArgument(f"random_bits: 1 .. 32 is expected; got {random_bits}")
    if pitch is not None and not 0 <= pitch < 2**63:
        raise InvalidArgument(f"pitch: an integer of 0 .. 2^63 - 1 is expected; got {pitch}")
    return seed, random_stream, offset, -1 if pitch is None else pitch, random_bits


def integer(value: Any, argument: str) -> int:
    """Return an argument that is an integer of Python, NumPy or another library."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{argument}: an integer is expected; got {value!r}") from None


def number(value: Any, argument: str) -> float:
    """Return an argument that is one number: of Python, or with one element of NumPy or torch."""
    try:
        if isinstance(value, (str, bytes)):  # float() reads them
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise TypeError(f"{argument}: a number is expected; got a {kind}") from None


def optional_format(name: object, argument: str = "format") -> int:
    """Return the number of a format, or -1 for None."""
    return -1 if name is None else format_index(name, argument)


def stream_handle(stream: Any) -> int | None:
    """Return a stream as a number. `stream` is a number, an object with ``__cuda_stream__``, or
    None, which stays None."""
    if stream is None:
        return None
    if isinstance(stream, int):
        if not 0 <= stream < 2**64:
            raise InvalidArgument(f"stream: a cudaStream_t is expected; got {stream}")
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is None:
        raise TypeError(
            "stream: an integer (cudaStream_t) or an object with __cuda_stream__ is expected; "
            f"got a {type(stream).__name__}"
        )
    return int((protocol() if callable(protocol) else protocol)[1])
