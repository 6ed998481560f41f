"""Property tests of a quantizer: `check_quantize`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from samebits.testing.explanation import Explanation
from samebits.testing.memory import Memory, Predicate, memory_on
from samebits.testing.model import Rule
from samebits.testing.number_formats import FORMATS, codes_of, format_named, values
from samebits.testing.quantize_errors import (QuantizeCall, explain_quantize, same_codes,
                                              same_result)
from samebits.testing.quantize_inputs import matrices, shapes, source_array, source_codes, to_source
from samebits.testing.quantize_model import Floats, Quantized, QuantizeRule, scales_shape
from samebits.testing.reference import quantized, recipe_rule
from samebits.testing.report import arguments_text, array_text, code_text, input_note
from samebits.testing.runs import CallFailed, called, checked_codes, name_of

_MAX_STEPS = 300  # calls that shrink a failure


def check_quantize(
    fn: Callable[..., Any],
    recipe: Any = None,
    *,
    source: object = "fp32",
    to: object = "e4m3",
    tile: tuple[int, int] | None = None,
    scale: str | None = None,
    eps: float | None = None,
    upper_bound: float | None = None,
    nonfinite: str | None = None,
    scale_overflow: str | None = None,
    overflow: str | None = None,
    scale_format: str | None = None,
    nan: str = "any",
    only: npt.ArrayLike | None = None,
    where: Predicate | None = None,
    shapes: Sequence[tuple[int, int]] | None = None,
    examples: int = 64,
    examples_seed: int = 0,
    device: object = None,
) -> None:
    """Compare all codes and scales of a quantizer with `samebits.quantize`.

    The matrices have tiles that are cut at the edges, tiles of zeros, NaN and Inf, elements that
    lie on ties once they are scaled, and amaxes around eps, subnormal and near the largest number.

    Parameters
    ----------
    fn : callable
        Called as ``fn(x)`` with an array [rows, cols]. Returns the pair (codes [rows, cols],
        scales [tile rows, tile cols]), or an object with these attributes. Scales are the
        dequantization scales: value = code * scale.
    recipe : str or Recipe, optional
        A preset's name or a recipe.
    source, to : str or dtype
        Format of `x`: fp32, fp16 or bf16. Format of the codes: e4m3 or e5m2.
    tile, scale, eps, upper_bound, nonfinite, scale_overflow, overflow, scale_format
        As in `samebits.quantize`: each replaces the rule of the recipe.
    nan : str
        "any": any NaN is right where NaN is expected. "canonical": only the canonical NaN.
    only : array of codes [rows, cols], optional
        Makes one call, on exactly this matrix of source codes.
    where : callable, optional
        Predicate of arrays in the source's dtype, for example ``np.isfinite``.
    shapes : sequence of (rows, cols), optional
        Shapes of the matrices. By default shapes around the borders of tiles.
    examples : int
        Number of random matrices beside one of each shape.
    examples_seed : int
        Seed of the inputs.
    device : str or torch.device, optional
        "cuda" or "cpu": the quantizer gets and returns torch tensors there; so does `where`, on the
        CPU. By default they get NumPy arrays.

    Raises
    ------
    AssertionError
        A code or scale is wrong. The text shows the smallest failing matrix that was found, the
        usual error that gives all results seen, and a line that repeats the case.
    InvalidArgument
        A name is unknown.
    Unsupported
        torch is not installed, or does not find the device.

    Examples
    --------
    >>> import samebits as sb
    >>> check_quantize(lambda x: sb.quantize(x, "TE_CURRENT"), "TE_CURRENT", examples=2)
    """
    memory = memory_on(device)
    options = {"tile": tile, "scale": scale, "eps": eps, "upper_bound": upper_bound,
               "nonfinite": nonfinite, "scale_overflow": scale_overflow, "overflow": overflow,
               "scale_format": scale_format}
    given = {k: v for k, v in options.items() if v is not None}
    rule = recipe_rule(recipe, **given).but(source=format_named(source), to=format_named(to))
    test = _QuantizeTest(fn, rule, nan == "any", _recipe_name(recipe) if recipe else "", memory,
                         where)
    rng = np.random.default_rng(examples_seed)
    if only is not None:
        codes = codes_of(np.atleast_2d(np.asarray(only)), rule.source)
        with np.errstate(all="ignore"):
            inputs = [values(codes, rule.source).astype(np.float32)]
    else:
        chosen = _shapes(rule) if shapes is None else [(int(r), int(c)) for r, c in shapes]
        inputs = [test.allowed(x, rng) for x in matrices(rule, chosen, examples, rng)]
    head = [("source", rule.source.name, "fp32"), ("to", rule.to.name, "e4m3"),
            *((k, v, None) for k, v in given.items()), ("nan", nan, "any"),
            ("device", memory.device, None)]
    call = f"check_quantize({name_of(fn)}" + (f', "{_recipe_name(recipe)}"' if recipe else "") + (
        arguments_text(head))
    test.check(inputs, call, shrinks=only is None)


def _shapes(rule: QuantizeRule) -> list[tuple[int, int]]:
    return shapes(rule.tile)


def _recipe_name(recipe: Any) -> str:
    return recipe if isinstance(recipe, str) else str(getattr(recipe, "name", "") or recipe)


class _QuantizeTest:
    """Calls a quantizer, compares its results, and shrinks a failure."""

    def __init__(self, fn: Callable[..., Any], rule: QuantizeRule, any_nan: bool,
                 recipe: str, memory: Memory, where: Predicate | None) -> None:
        self.fn, self.rule, self.any_nan, self.recipe = fn, rule, any_nan, recipe
        self.memory, self.where = memory, where

    def in_domain(self, x: Floats) -> npt.NDArray[np.bool_]:
        """Return which elements satisfy the caller's predicate."""
        if self.where is None:
            return np.ones(x.shape, np.bool_)
        return self.memory.allowed(self.where, source_codes(x, self.rule.source), self.rule.source)

    def allowed(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Replace elements outside the domain by other elements of x, or by random numbers."""
        if self.where is None:
            return x
        inside = self.in_domain(x)
        spare = x[inside]
        if spare.size == 0:
            spare = to_source(rng.standard_normal(64).astype(np.float32), self.rule.source)
        return np.where(inside, x, rng.choice(spare, x.shape)).astype(np.float32)

    def check(self, inputs: list[Floats], call: str, *, shrinks: bool) -> None:
        calls = []
        for x in inputs:
            try:
                calls.append(self.call(x))
            except CallFailed as error:
                raise AssertionError(f"{self.rule_text()}: {error}\n"
                                     + self.repeat(call, x)) from error
        wrong = [c for c in calls if not self.right(c)]
        if not wrong:
            return
        why = explain_quantize(calls, self.rule, self.any_nan)
        smallest = min(wrong, key=lambda c: c.x.size)
        if shrinks:
            smallest = self.shrink(smallest)
        raise AssertionError(self.failure_text(smallest, why, call))

    def call(self, x: Floats) -> QuantizeCall:
        """Call the function on a matrix.

        Raises
        ------
        CallFailed
            If the function raises, or returns other shapes or dtypes.
        """
        name, source = name_of(self.fn), self.rule.source
        codes = source_codes(x, source)
        array = self.memory.place(codes, source)

        def results() -> tuple[Quantized, bool]:
            got = self.results(name, self.fn(array), x.shape)
            return got, bool((self.memory.codes(array, source) == codes).all())

        got, unchanged = called(name, f"shape {x.shape}", results)
        if not unchanged:
            raise CallFailed(f"{name} changed its input")
        return QuantizeCall(x, got, quantized(source_array(x, source), self.rule))

    def results(self, name: str, result: Any, shape: tuple[int, ...]) -> Quantized:
        """Return the codes and scales of the function's result."""
        if hasattr(result, "codes") and hasattr(result, "scales"):
            result = (result.codes, result.scales)
        if not isinstance(result, tuple) or len(result) != 2:
            raise CallFailed(f"{name} returned {type(result).__name__}; expected (codes, scales)")
        parts = (("codes", result[0], shape, self.rule.to),
                 ("scales", result[1], scales_shape((shape[0], shape[1]), self.rule.tile),
                  FORMATS[self.rule.scale_format]))
        return Quantized(*(checked_codes(name, part, expected, f, self.memory, what, shape)
                           for what, part, expected, f in parts))

    def right(self, call: QuantizeCall) -> bool:
        return same_result(call.got, call.expected, self.rule, self.any_nan)

    # ---- Shrinking ----

    def shrink(self, failed: QuantizeCall) -> QuantizeCall:
        """Return a smaller call that fails."""
        steps = 0

        def failing(x: Floats) -> QuantizeCall | None:
            nonlocal steps
            steps += 1
            if steps > _MAX_STEPS or x.size == 0:
                return None
            if not self.in_domain(x).all():
                return None
            try:
                call = self.call(x)
            except CallFailed:
                return None
            return None if self.right(call) else call

        found: QuantizeCall | None = failed
        while found is not None:
            failed = found
            found = next((c for c in map(failing, self.simpler(failed.x)) if c is not None), None)
        return failed

    def simpler(self, x: Floats) -> list[Floats]:
        """Return simpler matrices: fewer rows and columns, more zeros, simpler numbers."""
        rows, cols = x.shape
        used = x != 0  # NaN too
        found = [x[used.any(1)], x[:, used.any(0)], x[:rows // 2], x[rows // 2:],
                 x[:, :cols // 2], x[:, cols // 2:], x[1:], x[:-1], x[:, 1:], x[:, :-1]]
        found = [np.ascontiguousarray(y) for y in found if 0 < y.size < x.size]
        places = np.flatnonzero(used)
        parts = 1
        while parts <= min(len(places), 16):
            for part in np.array_split(places, parts):
                found.append(_with(x, part, np.zeros(len(part), np.float32)))
            parts *= 2
        if len(places) <= 16:
            for i in places.tolist():
                found += [_with(x, np.array([i]), np.array([v], np.float32)) for v in
                          _simpler_numbers(x.flat[i], self.rule.source.mantissa_bits)]
        return [y for y in found if y.shape != x.shape or y.tobytes() != x.tobytes()]

    # ---- Texts ----

    def rule_text(self) -> str:
        r = self.rule
        rows, cols = r.tile
        text = f"{self.recipe}, " if self.recipe else ""
        text += f"{r.source.name} -> {r.to.name}, tile ({rows}, {cols}), scale {r.scale}"
        text += f", eps {r.eps:g}" if r.eps else ""
        return text + (f", scales in {r.scale_format}" if r.scale_format != "fp32" else "")

    def repeat(self, call: str, x: Floats) -> str:
        source = self.rule.source
        codes = source_codes(x, source)
        text = array_text(codes.ravel(), source)
        if text is None:
            return f"  repeat:   {call})"
        return f"  repeat:   {call}, only={text}.reshape({x.shape[0]}, {x.shape[1]}))"

    def failure_text(self, call: QuantizeCall, why: Explanation, head: str) -> str:
        r, scale_format = self.rule, FORMATS[self.rule.scale_format]
        wrong_codes = ~same_codes(call.got.codes, call.expected.codes, r.to, self.any_nan)
        wrong_scales = ~same_codes(call.got.scales, call.expected.scales, scale_format,
                                   self.any_nan)
        lines = [f"{self.rule_text()}: {wrong_codes.sum()} of {call.x.size} codes and "
                 f"{wrong_scales.sum()} of {wrong_scales.size} scales are wrong "
                 "(smallest case found)"]
        lines += self.scale_lines(call, wrong_scales) + self.code_lines(call, wrong_codes)
        return "\n".join([*lines, f"  {why.text}", self.repeat(head, call.x)])

    def scale_lines(self, call: QuantizeCall, wrong: npt.NDArray[np.bool_]) -> list[str]:
        if not wrong.any():
            return []
        i, j = (int(n) for n in np.argwhere(wrong)[0])
        f = FORMATS[self.rule.scale_format]
        tile = [t or n for n, t in zip(call.x.shape, self.rule.tile)]
        part = call.x[i * tile[0]:(i + 1) * tile[0], j * tile[1]:(j + 1) * tile[1]]
        magnitudes = part.view(np.uint32) & np.uint32(0x7FFFFFFF)
        amax = code_text(int(magnitudes.max()), FORMATS["fp32"])
        size = f"{part.shape[0]} x {part.shape[1]} elements"
        return [f"  tile      ({i}, {j}) of {size}, amax {amax}",
                f"  scale     {code_text(int(call.got.scales[i, j]), f)}   "
                f"expected {code_text(int(call.expected.scales[i, j]), f)}"]

    def code_lines(self, call: QuantizeCall, wrong: npt.NDArray[np.bool_]) -> list[str]:
        if not wrong.any():
            return []
        i, j = (int(n) for n in np.argwhere(wrong)[0])
        tile = [t or n for n, t in zip(call.x.shape, self.rule.tile)]
        word = int(call.x[i, j].view(np.uint32))
        lines = [f"  element   ({i}, {j}): {code_text(word, FORMATS['fp32'])}"]
        if self.rule.scale_format == "fp32":
            scale = call.expected.scales[i // tile[0], j // tile[1]]
            s = np.uint32(scale).view(np.float32)
            with np.errstate(all="ignore"):
                y = int(np.float32(call.x[i, j] / s).view(np.uint32))
            note = input_note(y, Rule(FORMATS["fp32"], self.rule.to), 0)
            lines.append(f"  scale     {code_text(int(scale), FORMATS['fp32'])}; x / scale = "
                         f"{code_text(y, FORMATS['fp32'])}" + (f", {note}" if note else ""))
        return [*lines, f"  got       {code_text(int(call.got.codes[i, j]), self.rule.to)}   "
                f"expected {code_text(int(call.expected.codes[i, j]), self.rule.to)}"]


def _with(x: Floats, places: npt.NDArray[np.int64], numbers: Floats) -> Floats:
    """Return a copy with some elements replaced."""
    y = x.copy()
    y.flat[places] = numbers
    return y


def _simpler_numbers(x: Any, mantissa_bits: int) -> list[np.float32]:
    """Return numbers that are simpler than x: 1, positive, fewer bits."""
    x = np.float32(x)
    if not np.isfinite(x):
        return [np.float32(1)]
    mantissa, exponent = np.frexp(x)
    found = [np.float32(1), abs(x), np.ldexp(np.float32(np.sign(x)), exponent - 1)]
    for bits in (2, 4, 8, 12, 16, 20):
        if bits < mantissa_bits:
            cut = np.trunc(np.ldexp(mantissa, bits))
            found.append(np.ldexp(np.float32(cut), exponent - bits))
    key = _complexity(x)
    return [np.float32(v) for v in found if _complexity(np.float32(v)) < key]


def _complexity(x: np.float32) -> tuple[int, int, int]:
    word = int(np.float32(x).view(np.uint32))
    return ((word & 0x7FFFFF).bit_count(), abs((word >> 23 & 0xFF) - 127), word >> 31)
