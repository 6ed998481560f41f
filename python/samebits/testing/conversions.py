"""Property tests of a conversion kernel: `check_conversion`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from samebits.errors import InvalidArgument
from samebits.testing import inputs
from samebits.testing.explain import explain
from samebits.testing.memory import Layout, Memory, Predicate, memory_on
from samebits.testing.model import NanPolicy, Overflow, Rounding, Rule
from samebits.testing.number_formats import Codes, Mask, codes_of, format_named
from samebits.testing.report import arguments_text, failure_text, repeat_line, rule_text
from samebits.testing.runs import CallFailed, Kernel, Runner
from samebits.testing.shrink import smallest_failure

LAYOUTS: tuple[Layout, ...] = tuple(Layout(offset) for offset in (0, 1, 2, 3, 4, 7, 8, 16))

_SIZES = (*range(34), *(n + d for n in (64, 128, 256, 512, 1024, 2048, 4096) for d in (-1, 0, 1)))
_FIRST_CALL = 1 << 15  # number of random codes besides the edges
_MAX_RANDOM = 4096  # elements of a random call
_BORDER_SIZES = (1, 2, 3, 5, 8, 13, 21, 34, 1024, 4096)


def check_conversion(
    fn: Kernel,
    source: object,
    target: object,
    *,
    rounding: Rounding = "nearest_even",
    overflow: Overflow = "ieee",
    nan: NanPolicy = "any",
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
    edges, random codes, 0 to 4097 elements, and arrays that start beside 64-byte borders. The check
    reports nothing before the last call, so that the explanation uses the results of all calls.

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
    memory = memory_on(device)
    if not layouts:
        raise InvalidArgument("layouts: at least one Layout is expected")
    if examples < 0:
        raise InvalidArgument(f"examples: 0 or a positive number is expected; got {examples}")
    rule = Rule(format_named(source), format_named(target), rounding, overflow, nan, seed,
                random_stream, offset, random_bits)
    runner = Runner(fn, rule, fills_out, memory)
    call = _call_text(runner)
    domain = _Domain(rule, where, memory)
    calls: Iterator[tuple[Codes, Layout]]
    if only is not None:
        codes = codes_of(np.atleast_1d(np.asarray(only)), rule.source)
        calls = iter([(codes, layout) for layout in layouts[:1]])
    else:
        calls = _calls(rule, domain, layouts, examples, np.random.default_rng(examples_seed))
    for codes, layout in calls:
        try:
            runner.observe(codes, layout)
        except CallFailed as error:
            raise AssertionError(f"{rule_text(rule)}: {error}\n"
                                 + repeat_line(call, codes, rule.source, layout)) from error
    seen = runner.seen()
    if not seen.wrong.any():
        return
    why = explain(seen, rule)
    smallest, layout = seen, layouts[0]
    if only is None:
        smallest, layout = smallest_failure(runner, seen, domain.allows)
    raise AssertionError(failure_text(rule, smallest, layout, why, call))


def _call_text(runner: Runner) -> str:
    """Return the text of the check's call with its options, without the closing parenthesis."""
    rule, default = runner.rule, Rule(runner.rule.source, runner.rule.target)
    fields = ("rounding", "overflow", "nan", "seed", "random_stream", "offset", "random_bits")
    options = [(field, getattr(rule, field), getattr(default, field)) for field in fields]
    options += [("fills_out", runner.fills_out, False), ("device", runner.memory.device, None)]
    return (f'check_conversion({runner.name}, "{rule.source.name}", "{rule.target.name}"'
            + arguments_text(options))


class _Domain:
    """The inputs that a kernel must support."""

    def __init__(self, rule: Rule, where: Predicate | None, memory: Memory) -> None:
        self.rule, self.where, self.memory = rule, where, memory

    def allows(self, codes: Codes) -> Mask:
        """Return for each code whether it is an input of the domain."""
        if self.where is None:
            return np.ones(codes.shape, np.bool_)
        return self.memory.allowed(self.where, codes, self.rule.source)

    def restrict(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """Replace codes outside the domain by codes of the domain, if possible of the same call."""
        allowed = self.allows(codes)
        if allowed.all():  # true for an empty array too
            return codes
        spare = codes[allowed]
        if spare.size == 0:
            spare = self._some(rng)
        return np.where(allowed, codes, rng.choice(spare, codes.size))

    def _some(self, rng: np.random.Generator) -> Codes:
        codes = inputs.hard_codes(self.rule.source, self.rule.target, _FIRST_CALL, rng)
        spare = codes[self.allows(codes)]
        if spare.size == 0:
            raise InvalidArgument("where: no input satisfies the predicate")
        return spare


def _calls(rule: Rule, domain: _Domain, layouts: Sequence[Layout], examples: int,
           rng: np.random.Generator) -> Iterator[tuple[Codes, Layout]]:
    """Yield the codes and layouts of all calls: sizes, edges, borders, random calls."""
    source, target = rule.source, rule.target
    for number, codes in enumerate(_cut(rule, domain, _SIZES, rng)):
        yield codes, layouts[number % len(layouts)]
    first = inputs.hard_codes(source, target, min(_FIRST_CALL, 512 * examples), rng)
    yield domain.restrict(first, rng), layouts[0]
    if source.storage_bits <= 16:  # every code once more, where an output has other bytes before
        yield domain.restrict(first[1:], rng), layouts[0]
    if rule.rounding == "stochastic":
        for size in _BORDER_SIZES:
            borders = inputs.border_codes(rule, size, rng)
            if borders.size:
                yield domain.restrict(borders, rng), layouts[0]
    sizes = rng.integers(1, _MAX_RANDOM, examples, endpoint=True).tolist()
    for codes in _cut(rule, domain, sizes, rng):
        yield codes, layouts[int(rng.integers(len(layouts)))]


def _cut(rule: Rule, domain: _Domain, sizes: Sequence[int],
         rng: np.random.Generator) -> list[Codes]:
    """Yield random codes of the domain for calls of these sizes."""
    pool = domain.restrict(inputs.random_codes(rule.source, rule.target, sum(sizes), rng), rng)
    return np.split(pool, np.cumsum(sizes))[:-1]
