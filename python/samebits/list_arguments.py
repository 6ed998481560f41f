"""Arguments of operations on lists of arrays: an array, a list of arrays, or a dict of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samebits import _core
from samebits.errors import InvalidArgument


def named(tensors: Any, argument: str = "tensors") -> tuple[list[Any], list[str]]:
    """Return the arrays of an argument and their names.

    An argument is one array, a sequence of arrays, or a mapping from names to arrays.
    """
    if isinstance(tensors, Mapping):
        return list(tensors.values()), [str(name) for name in tensors]
    if isinstance(tensors, (list, tuple)):
        return list(tensors), [str(i) for i in range(len(tensors))]
    if hasattr(tensors, "__dlpack__") or hasattr(tensors, "__array_struct__"):
        return [tensors], ["0"]
    raise TypeError(f"{argument}: an array, a list of arrays or a dict of arrays is expected; "
                    f"got a {type(tensors).__name__}")


def paired(first: Any, second: Any, first_name: str,
           name: str) -> tuple[list[Any], list[Any], list[str]]:
    """Return the arrays of two arguments in the same order, and the names of the first argument."""
    arrays, names = named(first, first_name)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        if set(first) != set(second):
            raise InvalidArgument(f"{name}: its names are not those of {first_name}")
        return arrays, [second[key] for key in first], names
    others, _ = named(second, name)
    if len(others) != len(arrays):
        raise InvalidArgument(f"{name}: {len(arrays)} tensors are expected; got {len(others)}")
    return arrays, others, names


def results_of(argument: str, tensors: Any, out: Any, format: object, to: object) -> list[Any]:
    """Return the arrays that a call writes: those of `out`, or new ones if `out` is None.

    `to` is the format of the results, None for that of each argument. `format` is that of
    arguments whose dtype does not say it.
    """
    if out is not None:
        return paired(tensors, out, argument, "out")[1]
    results = []
    for x, name in zip(*named(tensors, argument), strict=True):
        shape, own = _core.describe(x, f"{argument}[{name}]", format)
        results.append(_core.empty_like(x, shape, own if to is None else to))
    return results
