"""Parts of the text of a failed check: codes, counts, and a line that repeats the case."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from samebits import _core
from samebits.testing.memory import Layout
from samebits.testing.number_formats import Codes, Format

_MAX_RUNS = 64  # runs of equal codes that a repeat line shows
_MAX_NAMED = 3  # usual errors in one text


def code_text(code: int, f: Format) -> str:
    """Return a code with its value.

    Examples
    --------
    >>> from samebits.testing.number_formats import format_named
    >>> code_text(0x3A800000, format_named("fp32")), code_text(0xC0, format_named("e4m3"))
    ('0x3A800000 = 0.0009765625', '0xC0 = -2')
    """
    return _core.code_text(f.name, code)


def array_text(codes: Codes, f: Format) -> str | None:
    """Return a Python expression of an array of codes; None if it would be too long.

    Examples
    --------
    >>> from samebits.testing.number_formats import format_named
    >>> array_text(np.array([1, 1, 1, 1, 1, 2], np.uint64), format_named("e4m3"))
    'np.repeat(np.array([0x01, 0x02], "u1"), [5, 1])'
    """
    digits = f.storage_bits // 4
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    if codes.size == 0:
        return f'np.array([], "u{f.storage_bits // 8}")'
    if starts.size > _MAX_RUNS:
        return None
    short = starts.size * 2 < codes.size
    shown = codes[starts] if short else codes
    listed = ", ".join(f"0x{c:0{digits}X}" for c in shown.tolist())
    array = f'np.array([{listed}], "u{f.storage_bits // 8}")'
    if not short:
        return array
    lengths = np.diff(np.concatenate([starts, [codes.size]])).tolist()
    return f"np.repeat({array}, {lengths})"


def repeat_line(call: str, codes: Codes, source: Format, layout: Layout) -> str:
    """Return the line that repeats a call on the same codes."""
    array = array_text(codes, source)
    if array is None:
        return f"  repeat:   {call})"
    where = "" if layout == Layout() else f", layouts=[{layout}]"
    return f"  repeat:   {call}, only={array}{where})"


def arguments_text(arguments: Sequence[tuple[str, object, object]]) -> str:
    """Return the keyword arguments, (name, value, default), that differ from their defaults."""
    return "".join(f", {name}={_literal(value)}" for name, value, default in arguments
                   if value != default)


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def explanation_text(sentences: Sequence[str], results: int, wrong: int) -> str:
    """Return the line of a text that names the usual errors that give all results seen."""
    evidence = f"all {results} results seen, {wrong} wrong"
    if not sentences:
        return f"  looks like: none of the usual errors (none fits {evidence})"
    return f"  looks like: {'; or '.join(sentences[:_MAX_NAMED])} (fits {evidence})"
