"""Property tests of a kernel that computes a function: `check_function`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.testing.memory import Layout, Predicate
from samebits.testing.report import arguments_text, repeat_line
from samebits.testing.runs import Function, KernelCalls

_LAYOUTS: tuple[Layout, ...] = tuple(Layout(offset) for offset in (0, 1, 3, 4, 7, 8))


def check_function(
    fn: Function,
    function: str,
    format: object = "fp32",
    *,
    rule: str,
    parameter: float | None = None,
    nan: Literal["any", "canonical"] = "any",
    only: npt.ArrayLike | None = None,
    where: Predicate | None = None,
    layouts: Sequence[Layout] = _LAYOUTS,
    examples: int = 32,
    examples_seed: int = 0,
    fills_out: bool = False,
    device: object = None,
) -> None:
    """Compare every result of a kernel with a function of samebits.functions, bit for bit.

    The kernel is called with zeros, subnormals, Inf, NaNs, numbers beside the borders of formulas,
    numbers of many magnitudes and random codes. From fp16 and bf16 every code is an input. Two
    calls have all of these, 65536 elements or, from fp32, about 83,000; the others 0 to 16384.

    Parameters
    ----------
    fn : callable
        Called as ``fn(x)`` with a one-dimensional array [n]; returns the results [n] in the format
        of `x`, or their codes in unsigned integers.
    function : str
        The name of a function of `samebits.functions`, for example ``"gelu_tanh"``.
    format : str or dtype
        The format of `x` and of the results: fp32, fp16 or bf16.
    rule : str
        Whose bits are right, for example ``"torch_2_11"`` or ``"exact"``; see `samebits.functions`.
    parameter : float, optional
        The exponent of pow, the alpha of elu or the slope of leaky_relu.
    nan : str
        "any": every NaN code is right where a NaN is expected. "canonical": the canonical NaN only.
    only, where, layouts, examples, examples_seed, fills_out, device
        As in `check_conversion`.

    Raises
    ------
    AssertionError
        A result is wrong. The text shows the smallest failing case, the largest distance seen, the
        usual error that gives all results seen, and a line that repeats the case.
    InvalidArgument
        A name is unknown, or no input satisfies `where`.
    Unsupported
        The rule lacks the function in this format, or torch is not installed or lacks the device.

    Examples
    --------
    >>> check_function(lambda x: np.maximum(x, np.float32(0)), "relu", rule="torch_2_11",
    ...                where=lambda x: x != 0)
    """
    calls = KernelCalls(fn, format, format, where=where, device=device, fills_out=fills_out,
                        layouts=layouts)
    f = calls.source
    failed = calls.failure_of(
        _core.check_function, function, f.name, rule, parameter, nan == "any", calls.predicate,
        calls.one_call(only, 1), len(layouts), examples, examples_seed)
    if failed is None:
        return
    text, codes, layout, *_ = failed
    title = f"{function}{'' if parameter is None else f' with {parameter}'} of {f.name} by {rule}: "
    options = [("rule", rule, None), ("parameter", parameter, None), ("nan", nan, "any"),
               ("fills_out", fills_out, False), ("device", calls.memory.device, None)]
    call = (f'check_function({calls.name}, "{function}"' + f', "{f.name}"' * (f.name != "fp32")
            + arguments_text(options))
    line = repeat_line(call, np.array(codes, np.uint64), f, calls.layout(layout))
    raise AssertionError(f"{title}{text or calls.raised}\n{line}") from calls.raised
