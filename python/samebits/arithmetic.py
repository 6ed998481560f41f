"""IEEE 754 arithmetic on arrays: each result is rounded once into the format `to`.

Operands are arrays in fp32, fp16, bf16, e4m3 or e5m2; their formats may differ. Their shapes
broadcast. Every operation returns a `Result`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.rules import options_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from samebits.option_types import ComputeOptions
    from samebits.typing import FormatLike, NanPolicy, Overflow, Rounding

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


@dataclass(frozen=True)
class Flags:
    """The exceptions of IEEE 754 that any element raised.

    Attributes
    ----------
    invalid, divide_by_zero, overflow, underflow, inexact : bool

    Examples
    --------
    >>> import samebits as sb
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
    each = None
    if _core.flag(each_flags, "each_flags"):
        shapes = [_core.describe(x, n, format)[0] for x, n in zip(operands, "abc", strict=False)]
        try:
            each = np.empty(np.broadcast_shapes(*shapes), np.uint8)
        except ValueError:
            raise InvalidArgument("the shapes of the operands do not broadcast: "
                                  + ", ".join(map(str, shapes))) from None
    value, raised = _core.compute(
        operation, operands, format, to,
        (rounding, overflow, nan, seed, random_stream, offset, None, random_bits), out, each,
        (threads, backend, stream))
    return Result(value, Flags.of(raised), each)


@options_of(_compute)
def add(a: Any, b: Any, **options: Unpack[ComputeOptions]) -> Result:
    """Return a + b, rounded once.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> sb.add(np.float32([1, 2]), np.float32([2**-24, 2]), to="bf16").flags.inexact
    True
    """
    return _compute("add", (a, b), **options)


@options_of(_compute)
def subtract(a: Any, b: Any, **options: Unpack[ComputeOptions]) -> Result:
    """Return a - b, rounded once.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> sb.subtract(np.float32([3, 1]), np.float32([1, 2])).value.tolist()
    [2.0, -1.0]
    """
    return _compute("sub", (a, b), **options)


@options_of(_compute)
def multiply(a: Any, b: Any, **options: Unpack[ComputeOptions]) -> Result:
    """Return a * b, rounded once.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> sb.multiply(np.float16([3, 300]), np.float16([2, 300])).value.tolist()
    [6.0, inf]
    """
    return _compute("mul", (a, b), **options)


@options_of(_compute)
def divide(a: Any, b: Any, **options: Unpack[ComputeOptions]) -> Result:
    """Return a / b, rounded once.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> sb.divide(np.float32([1, 1]), np.float32([4, 0])).value.tolist()
    [0.25, inf]
    """
    return _compute("div", (a, b), **options)


@options_of(_compute)
def sqrt(a: Any, **options: Unpack[ComputeOptions]) -> Result:
    """Return the square root of a, rounded once.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> sb.sqrt(np.float32([4, -1])).flags.invalid
    True
    """
    return _compute("sqrt", (a,), **options)


@options_of(_compute)
def fma(a: Any, b: Any, c: Any, **options: Unpack[ComputeOptions]) -> Result:
    """Return a * b + c, rounded once.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> sb.fma(np.float32([2]), np.float32([3]), np.float32([1])).value.tolist()
    [7.0]
    """
    return _compute("fma", (a, b, c), **options)


@options_of(_compute)
def remainder(a: Any, b: Any, **options: Unpack[ComputeOptions]) -> Result:
    """Return the IEEE 754 remainder: a - n * b with n = a / b rounded to the nearest integer.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> sb.remainder(np.float32([5, 7]), np.float32([3, 4])).value.tolist()
    [-1.0, -1.0]
    """
    return _compute("rem", (a, b), **options)


@options_of(_compute)
def rint(a: Any, **options: Unpack[ComputeOptions]) -> Result:
    """Return a rounded to an integer by the rounding mode.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> sb.rint(np.float32([2.5, 3.5])).value.tolist()
    [2.0, 4.0]
    """
    return _compute("rint", (a,), **options)


@options_of(_compute)
def minimum(a: Any, b: Any, **options: Unpack[ComputeOptions]) -> Result:
    """Return the smaller operand; NaN if either operand is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> sb.minimum(np.float32([1, np.nan]), np.float32([2, 2])).value.tolist()
    [1.0, nan]
    """
    return _compute("min", (a, b), **options)


@options_of(_compute)
def maximum(a: Any, b: Any, **options: Unpack[ComputeOptions]) -> Result:
    """Return the larger operand; NaN if either operand is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> sb.maximum(np.float32([1, np.nan]), np.float32([2, 2])).value.tolist()
    [2.0, nan]
    """
    return _compute("max", (a, b), **options)


@options_of(_compute)
def fmin(a: Any, b: Any, **options: Unpack[ComputeOptions]) -> Result:
    """Return the smaller operand; if one operand is NaN, return the other operand.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> sb.fmin(np.float32([1, np.nan]), np.float32([2, 2])).value.tolist()
    [1.0, 2.0]
    """
    return _compute("min_num", (a, b), **options)


@options_of(_compute)
def fmax(a: Any, b: Any, **options: Unpack[ComputeOptions]) -> Result:
    """Return the larger operand; if one operand is NaN, return the other operand.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits as sb
    >>> sb.fmax(np.float32([1, np.nan]), np.float32([2, 2])).value.tolist()
    [2.0, 2.0]
    """
    return _compute("max_num", (a, b), **options)
