"""Property tests of a kernel that computes a function: `check_function`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from samebits.errors import InvalidArgument
from samebits.testing.function_errors import explain_function
from samebits.testing.function_inputs import function_codes
from samebits.testing.function_model import FunctionModel
from samebits.testing.function_runs import Runner, Seen
from samebits.testing.memory import Layout, Memory, Predicate, memory_on
from samebits.testing.number_formats import Codes, Format, Integers, Mask, codes_of, format_named
from samebits.testing.report import arguments_text, code_text, count_text, repeat_line
from samebits.testing.runs import CallFailed, Function, Kernel
from samebits.testing.shrink import smallest_failure

_LAYOUTS: tuple[Layout, ...] = tuple(Layout(offset) for offset in (0, 1, 3, 4, 7, 8))
_SIZES = (*range(18), *(n + d for n in (32, 128, 256, 1024, 4096) for d in (-1, 0, 1)))
_MAX_RANDOM = 1 << 14  # elements of a random call


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
    numbers of many magnitudes and random codes, in calls of 0 to 16384 elements. From fp16 and bf16
    every code is an input.

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
    model = FunctionModel(function, f, rule, parameter)
    model(np.zeros(1, np.uint64))  # refuses unknown names and functions that the rule lacks
    memory = memory_on(device)
    runner = Runner(Kernel(fn, f, f, fills_out, memory), model, nan == "any")
    call = _call_text(runner, nan)
    domain = _Domain(f, where, memory)
    calls: Iterator[tuple[Codes, Layout]]
    if only is not None:
        calls = iter([(codes_of(np.atleast_1d(np.asarray(only)), f), layouts[0])])
    else:
        calls = _calls(domain, layouts, examples, np.random.default_rng(examples_seed))
    for codes, layout in calls:
        try:
            runner.observe(codes, layout)
        except CallFailed as error:
            raise AssertionError(f"{model.text}: {error}\n"
                                 + repeat_line(call, codes, f, layout)) from error
    seen = runner.seen()
    if not seen.wrong.any():
        return
    smallest, layout = seen, layouts[0]
    if only is None:
        smallest, layout = smallest_failure(runner, seen, domain.allows)
    why = explain_function(seen, runner)
    raise AssertionError(_failure_text(runner, why, seen, smallest, layout, call))


class _Domain:
    """The inputs that a kernel must support."""

    def __init__(self, f: Format, where: Predicate | None, memory: Memory) -> None:
        self.f, self.where, self.memory = f, where, memory

    def allows(self, codes: Codes) -> Mask:
        """Return for each code whether it is an input of the domain."""
        if self.where is None:
            return np.ones(codes.shape, np.bool_)
        return self.memory.allowed(self.where, codes, self.f)

    def some(self, rng: np.random.Generator) -> Codes:
        """Return the first call's codes: edges and random ones."""
        codes = function_codes(self.f, rng)
        codes = codes[self.allows(codes)]
        if codes.size == 0:
            raise InvalidArgument("where: no input satisfies the predicate")
        return codes


def _calls(domain: _Domain, layouts: Sequence[Layout], examples: int,
           rng: np.random.Generator) -> Iterator[tuple[Codes, Layout]]:
    """Yield the codes and layouts of all calls: sizes, edges and every magnitude, random calls."""
    pool = domain.some(rng)
    for number, size in enumerate(_SIZES):
        yield rng.choice(pool, size), layouts[number % len(layouts)]
    yield pool, layouts[0]
    yield pool[1:], layouts[0]  # where an output has other bytes before
    for size in rng.integers(1, _MAX_RANDOM, examples, endpoint=True).tolist():
        yield rng.choice(domain.some(rng), size), layouts[int(rng.integers(len(layouts)))]


def _call_text(runner: Runner, nan: str) -> str:
    """Return the text of the check's call with its options, without the closing parenthesis."""
    model, kernel = runner.model, runner.kernel
    format = "" if model.f.name == "fp32" else f', "{model.f.name}"'
    options = [("parameter", model.parameter, None), ("nan", nan, "any"),
               ("fills_out", kernel.fills_out, False), ("device", kernel.memory.device, None)]
    return (f'check_function({kernel.name}, "{model.function}"{format}, rule="{model.rule}"'
            + arguments_text(options))


def _distances(seen: Seen, f: Format) -> Integers:
    """Return how many codes lie between wrong results and right ones; NaN are left out."""
    def place(codes: Codes) -> Integers:
        size = (codes & np.uint64(f.sign - 1)).astype(np.int64)
        return np.where(codes & np.uint64(f.sign), -size, size)
    limit = np.uint64((f.max_magnitude + 1))  # Inf
    numbers = ((seen.got & np.uint64(f.sign - 1)) <= limit) & (
        (seen.expected & np.uint64(f.sign - 1)) <= limit) & seen.wrong
    found: Integers = np.abs(place(seen.got) - place(seen.expected))[numbers]
    return found


def _failure_text(runner: Runner, why: str, seen: Seen, smallest: Seen, layout: Layout,
                  call: str) -> str:
    model = runner.model
    i = int(np.argmax(smallest.wrong))
    code, got, expected = (int(a[i]) for a in (smallest.codes, smallest.got, smallest.expected))
    wanted = code_text(expected, model.f)
    if runner.any_nan and wanted.endswith("NaN"):
        wanted += " or another NaN"
    lines = [f"{model.text}: {count_text(int(smallest.wrong.sum()), smallest.codes.size)} "
             "(smallest case found)"]
    if smallest.codes.size > 1:
        lines.append(f"  element   {i} of a call of {smallest.codes.size} elements")
    lines += [f"  input     {code_text(code, model.f)}",
              f"  got       {code_text(got, model.f)}   expected {wanted}"]
    distances = _distances(seen, model.f)
    if distances.size:
        lines.append(f"  distance  at most {int(distances.max())} codes from the right one; "
                     f"{count_text(int(seen.wrong.sum()), seen.codes.size)}")
    lines += [f"  {why}", repeat_line(call, smallest.codes, model.f, layout)]
    return "\n".join(lines)
