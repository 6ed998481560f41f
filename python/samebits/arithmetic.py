"""IEEE 754 arithmetic on arrays: each result is rounded once into the format `to`.

Operands are arrays in fp32, fp16, bf16, e4m3 or e5m2; their formats may differ. Their shapes
broadcast. Every operation returns a `Result`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from samebits import _core

if TYPE_CHECKING:
    from samebits.typing import FormatLike, NanPolicy, Overflow, Rounding

__all__ = ["Flags", "Result"]


@dataclass(frozen=True)
class Flags:
    """The exceptions of IEEE 754 that any element raised.

    Attributes
    ----------
    invalid, divide_by_zero, overflow, underflow, inexact : bool

    Examples
    --------
    >>> sb.Flags.of(16).inexact
    True
    """

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


#: `Flags.of` each byte that flags give.
_FLAGS: Final = [Flags.of(bits) for bits in range(32)]


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
    to: FormatLike | None = None,
    format: FormatLike | None = None,
    rounding: Rounding = "nearest_even",
    overflow: Overflow = "ieee",
    nan: NanPolicy = "canonical",
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
    """Compute an operation by its name; the public functions pass their options on.

    Parameters
    ----------
    a, b, c : array [...]
        Operands in fp32, fp16, bf16, e4m3 or e5m2; their shapes broadcast.
    to : str or dtype, optional
        Format of the result: fp32, fp16, bf16, e4m3 or e5m2. By default the format of the operands;
        required if the operands have different formats.
    format, rounding, overflow, nan, seed, random_stream, offset, random_bits, out
        As in `convert`. Stochastic rounding uses the index of the element in the result.
    each_flags : bool
        Whether to return the flags of each element.
    threads, backend, stream
        As in `convert`.

    Returns
    -------
    Result

    Raises
    ------
    InvalidArgument
        An argument was refused; nothing was written.
    """
    value, raised, each = _core.compute(
        operation, operands, format, to,
        (rounding, overflow, nan, seed, random_stream, offset, None, random_bits), out,
        each_flags, (threads, backend, stream))
    return Result(value, _FLAGS[raised], each)
