"""IEEE 754 arithmetic on arrays: each result is rounded once into the format `to`.

Operands are arrays in fp32, fp16, bf16, e4m3 or e5m2; their formats may differ. Their shapes
broadcast. Every operation has these keyword arguments and returns a `Result`:

to : str or dtype, optional
    Format of the result: fp32, fp16, bf16, e4m3 or e5m2. By default the format of the operands;
    required if the operands have different formats.
format, rounding, overflow, nan, seed, random_stream, offset, random_bits, out
    As in `convert`. Stochastic rounding uses the index of the element in the result.
each_flags : bool
    Whether to return the flags of each element.
threads, backend, stream
    As in `convert`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.rules import STOCHASTIC, optional_format, random_of, rule_of, stream_handle

__all__ = [
    "Flags",
    "Result",
    "add",
    "divide",
    "fma",
    "fmax",
    "fmin",
    "maximum",
    "minimum",
    "multiply",
    "remainder",
    "rint",
    "sqrt",
    "subtract",
]

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class Options(TypedDict, total=False):
        """Keyword arguments of every operation."""

        to: object
        format: object
        rounding: str
        overflow: str
        nan: str
        seed: int
        random_stream: int
        offset: int
        random_bits: int
        out: Any
        each_flags: bool
        threads: int | None
        backend: str | None
        stream: Any


_OPERATIONS: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("operation"))}


@dataclass(frozen=True)
class Flags:
    """The exceptions of IEEE 754 that any element raised."""

    invalid: bool
    divide_by_zero: bool
    overflow: bool
    underflow: bool
    inexact: bool

    @classmethod
    def of(cls, bits: int) -> Flags:
        """Return the flags of a byte: 1 invalid, 2 divide by zero, 4 overflow, 8 underflow,
        16 inexact."""
        return cls(*(bool(bits & 1 << i) for i in range(5)))


@dataclass(frozen=True, eq=False)
class Result:
    """Result of an operation.

    Attributes
    ----------
    value : array [...]
        The results, in the format `to`.
    flags : Flags
        The flags that any element raised.
    each : array [...] of uint8, or None
        With ``each_flags=True``: the flags of each element, as `Flags.of` reads them.
    """

    value: Any
    flags: Flags
    each: npt.NDArray[np.uint8] | None = None


def _compute(
    operation: str,
    operands: tuple[Any, ...],
    *,
    to: object = None,
    format: object = None,
    rounding: str = "nearest_even",
    overflow: str = "ieee",
    nan: str = "canonical",
    seed: int | None = None,
    random_stream: int = 0,
    offset: int = 0,
    random_bits: int = 32,
    out: Any = None,
    each_flags: bool = False,
    threads: int | None = None,
    backend: str | None = None,
    stream: Any = None,
) -> Result:
    """Compute an operation by its name; the public functions pass their options on."""
    rule = rule_of(rounding, overflow, nan)
    each = None
    if each_flags:
        shapes = [_core.describe(x, n, optional_format(format))[0]
                  for x, n in zip(operands, "abc", strict=False)]
        try:
            each = np.empty(np.broadcast_shapes(*shapes), np.uint8)
        except ValueError:
            raise InvalidArgument("the shapes of the operands do not broadcast: "
                                  + ", ".join(map(str, shapes))) from None
    value, raised = _core.compute(
        _OPERATIONS[operation], operands, optional_format(format), optional_format(to, "to"), rule,
        random_of(seed, random_stream, offset, None, random_bits)
        if rule & 255 == STOCHASTIC else None,
        out, each, threads, backend, stream_handle(stream),
    )
    return Result(value, Flags.of(raised), each)


def add(a: Any, b: Any, **options: Unpack[Options]) -> Result:
    """Return a + b, rounded once.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> r = sb.add(np.float32([1, 2]), np.float32([2**-24, 2]), to="bf16")
    >>> r.flags.inexact
    True
    """
    return _compute("add", (a, b), **options)


def subtract(a: Any, b: Any, **options: Unpack[Options]) -> Result:
    """Return a - b, rounded once."""
    return _compute("sub", (a, b), **options)


def multiply(a: Any, b: Any, **options: Unpack[Options]) -> Result:
    """Return a * b, rounded once."""
    return _compute("mul", (a, b), **options)


def divide(a: Any, b: Any, **options: Unpack[Options]) -> Result:
    """Return a / b, rounded once."""
    return _compute("div", (a, b), **options)


def sqrt(a: Any, **options: Unpack[Options]) -> Result:
    """Return the square root of a, rounded once."""
    return _compute("sqrt", (a,), **options)


def fma(a: Any, b: Any, c: Any, **options: Unpack[Options]) -> Result:
    """Return a * b + c, rounded once."""
    return _compute("fma", (a, b, c), **options)


def remainder(a: Any, b: Any, **options: Unpack[Options]) -> Result:
    """Return the IEEE 754 remainder: a - n * b with n = a / b rounded to the nearest integer."""
    return _compute("rem", (a, b), **options)


def rint(a: Any, **options: Unpack[Options]) -> Result:
    """Return a rounded to an integer by the rounding mode."""
    return _compute("rint", (a,), **options)


def minimum(a: Any, b: Any, **options: Unpack[Options]) -> Result:
    """Return the smaller operand; NaN if either operand is NaN."""
    return _compute("min", (a, b), **options)


def maximum(a: Any, b: Any, **options: Unpack[Options]) -> Result:
    """Return the larger operand; NaN if either operand is NaN."""
    return _compute("max", (a, b), **options)


def fmin(a: Any, b: Any, **options: Unpack[Options]) -> Result:
    """Return the smaller operand; if one operand is NaN, return the other operand."""
    return _compute("min_num", (a, b), **options)


def fmax(a: Any, b: Any, **options: Unpack[Options]) -> Result:
    """Return the larger operand; if one operand is NaN, return the other operand."""
    return _compute("max_num", (a, b), **options)
