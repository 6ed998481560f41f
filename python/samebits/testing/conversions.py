"""Property tests of a conversion kernel: `check_conversion`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.testing.memory import Layout, Predicate
from samebits.testing.report import arguments_text, repeat_line
from samebits.testing.runs import Function, KernelCalls
from samebits.typing import NanPolicy, Overflow, Rounding

LAYOUTS: tuple[Layout, ...] = tuple(Layout(offset) for offset in (0, 1, 2, 3, 4, 7, 8, 16))


def check_conversion(
    fn: Function,
    source: object,
    target: object,
    *,
    rounding: Rounding = "nearest_even",
    overflow: Overflow = "ieee",
    nan: NanPolicy | Literal["any"] = "any",
    seed: int = 0,
    random_stream: int = 0,
    offset: int = 0,
    random_bits: int = 32,
    only: npt.ArrayLike | None = None,
    where: Predicate | None = None,
    layouts: Sequence[Layout] = LAYOUTS,
    examples: int = 64,
    examples_seed: int = 0,
    fills_out: bool = False,
    device: object = None,
) -> None:
    """Compare every result of a conversion kernel with samebits, on inputs that kernels get wrong.

    The kernel is called with zeros, subnormals, Inf, NaNs, ties and their neighbours, exponent
    edges, random codes, 0 to 4097 elements, and arrays that start beside 64-byte borders. After a
    wrong result the check makes more calls, to tell similar errors apart.

    Parameters
    ----------
    fn : callable
        Called as ``fn(x)`` with a one-dimensional array [n]; returns the converted array [n].
        `x` is in the NumPy or ml_dtypes dtype of `source`. Without ml_dtypes, bf16 and formats of 8
        bits are unsigned integers. The result may be in the dtype of `target` or in unsigned
        integers.
    source, target : str or dtype
        Formats of `x` and of the results.
    rounding : str
        nearest_even, nearest_away, toward_zero, upward, downward, to_odd or stochastic.
    overflow : str
        ieee, saturate or saturate_finite.
    nan : str
        Right results where NaN is expected. "any": every NaN code. "canonical": the canonical NaN.
        "preserve_sign": the canonical NaN with the sign of the input.
    seed, random_stream, offset, random_bits : int
        Random bits of stochastic rounding: the element at position i of every call has the index
        ``offset + i``. Half of the inputs lie at the border of the decision for their own index.
    only : array of codes, optional
        Makes one call, on exactly these codes. The repeat line of a failure uses it.
    where : callable, optional
        Predicate of arrays in the source's dtype, for example ``np.isfinite``. Other inputs are
        neither generated nor compared.
    layouts : sequence of Layout
        Memory of the inputs. By default all inputs are contiguous; add ``Layout(step=2)`` for a
        kernel that supports strides.
    examples : int
        Number of random calls.
    examples_seed : int
        Seed of the inputs. The same seed gives the same inputs.
    fills_out : bool
        `fn` is called as ``fn(x, out)``. Writing beside `out` is a failure.
    device : str or torch.device, optional
        "cuda" or "cpu": the kernel gets and returns torch tensors there; so does `where`, on the
        CPU. By default they get NumPy arrays.

    Raises
    ------
    AssertionError
        A result is wrong. The text shows the smallest failing case, the usual error that gives all
        results seen, and a line that repeats the case.
    InvalidArgument
        A name is unknown, or no input satisfies `where`.
    Unsupported
        torch is not installed, or does not find the device.

    Examples
    --------
    >>> import ml_dtypes
    >>> check_conversion(lambda x: x.astype(ml_dtypes.bfloat16), "fp32", "bf16")
    """
    calls = KernelCalls(fn, source, target, where=where, device=device, fills_out=fills_out,
                        layouts=layouts)
    names = calls.source.name, calls.target.name
    how = (rounding, overflow, "canonical" if nan == "any" else nan, seed, random_stream, offset,
           None, random_bits)
    failed = calls.failure_of(
        _core.check_conversion, *names, how, nan == "any", calls.predicate,
        calls.one_call(only, 1), len(layouts), examples, examples_seed)
    if failed is None:
        return
    text, codes, layout, *_, element = failed
    if text is None:
        text = f"{names[0]} to {names[1]}: {calls.raised}"
    elif len(codes) > 1:
        first, rest = text.split("\n", 1)
        text = f"{first}\n  element  {element} of a call of {len(codes)} elements\n{rest}"
    options = arguments_text([
        ("rounding", rounding, "nearest_even"), ("overflow", overflow, "ieee"), ("nan", nan, "any"),
        ("seed", seed, 0), ("random_stream", random_stream, 0), ("offset", offset, 0),
        ("random_bits", random_bits, 32), ("fills_out", fills_out, False),
        ("device", calls.memory.device, None)])
    call = f'check_conversion({calls.name}, "{names[0]}", "{names[1]}"{options}'
    line = repeat_line(call, np.array(codes, np.uint64), calls.source, calls.layout(layout))
    raise AssertionError(f"{text}\n{line}") from calls.raised
