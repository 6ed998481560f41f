"""Property tests of a kernel that computes a function: `check_function`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.testing.domain import Domain
from samebits.testing.memory import Layout, Predicate, memory_on
from samebits.testing.number_formats import Format, codes_of, format_named
from samebits.testing.report import arguments_text, code_text, count_text, repeat_line
from samebits.testing.runs import Calls, Function, Kernel

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
    only : array of codes, optional
        Makes one call, on exactly these codes. The repeat line of a failure uses it.
    where : callable, optional
        Predicate of arrays in the format's dtype, for example ``np.isfinite``. Other inputs are
        neither generated nor compared.
    layouts, examples, examples_seed, fills_out, device
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
    if not layouts:
        raise InvalidArgument("layouts: at least one Layout is expected")
    if examples < 0:
        raise InvalidArgument(f"examples: 0 or a positive number is expected; got {examples}")
    f = format_named(format)
    memory = memory_on(device)
    kernel = Kernel(fn, f, f, fills_out, memory)
    calls, domain = Calls(kernel, layouts), Domain(where, f, memory)
    one_call = None if only is None else codes_of(np.ravel(np.asarray(only)), f).tolist()
    failed: Any
    with domain.refused():
        failed = _core.check_function(
            calls, function, f.name, rule, parameter, nan == "any", domain.predicate, one_call,
            len(layouts), examples, examples_seed)
    calls.raise_interruption()
    if failed is None:
        return
    why, codes, layout, *wrong = failed
    title = f"{function}{'' if parameter is None else f' with {parameter}'} of {f.name} by {rule}: "
    text = title + (f"{calls.raised}" if why is None else
                    _wrong_text(f, codes, *wrong, any_nan=nan == "any") + f"\n  {why}")
    options = [("rule", rule, None), ("parameter", parameter, None), ("nan", nan, "any"),
               ("fills_out", fills_out, False), ("device", memory.device, None)]
    call = (f'check_function({kernel.name}, "{function}"' + f', "{f.name}"' * (f.name != "fp32")
            + arguments_text(options))
    line = repeat_line(call, np.array(codes, np.uint64), f, calls.layout(layout))
    raise AssertionError(f"{text}\n{line}") from calls.raised


def _wrong_text(f: Format, codes: list[int], wrong: int, element: int, got: int, expected: int,
                seen: tuple[int | None, int, int], *, any_nan: bool) -> str:
    """Return the text of the first of `wrong` elements of a call.

    `seen` has the largest distance from a right number, the number of wrong results, and of all.
    """
    wanted = code_text(expected, f)
    if any_nan and wanted.endswith("NaN"):
        wanted += " or another NaN"
    lines = [f"{count_text(wrong, len(codes))} (smallest case found)"]
    if len(codes) > 1:
        lines.append(f"  element   {element} of a call of {len(codes)} elements")
    lines += [f"  input     {code_text(codes[element], f)}",
              f"  got       {code_text(got, f)}   expected {wanted}"]
    if seen[0] is not None:
        lines.append(f"  distance  at most {seen[0]} codes from the right one; "
                     f"{count_text(*seen[1:])}")
    return "\n".join(lines)
