"""Writes two modules of samebits from the tables of the built extension: names as types, and functions.

    python write_tables.py <folder of the extension> <typing.py> <unary_functions.py>

So a new name of a format, a rounding mode, ..., or a new function of elements, needs no change in Python.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path

TYPING = '''"""The names that arguments take, as types for type checkers; written from the library's tables."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

'''
FORMAT_LIKE = '''

class DType(Protocol):
    """A dtype of torch."""

    @property
    def is_floating_point(self) -> bool: ...


#: A format: its name, a dtype of NumPy, ml_dtypes or torch, or a scalar type.
FormatLike: TypeAlias = Format | FormatAlias | "np.dtype[Any] | type[Any] | DType"
'''
FUNCTIONS = '''"""The functions of one number; written from the library's table. `samebits.functions` has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.evaluation import evaluated
from samebits.rules import options_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from samebits.evaluation import Options

__all__ = {names!r}
'''
FUNCTION = '''

@options_of(evaluated)
def {name}(x: Any, **options: Unpack[Options]) -> Any:
    """Return {doc}.

    Examples
    --------
    >>> import numpy as np
    >>> import samebits
    >>> samebits.functions.{name}(np.float32([[0.25], [2]]), rule="{rule}").shape
    (2, 1)
    """
    return evaluated("{name}", x, **options)
'''


def literal(name: str, values: Iterable[str]) -> str:
    """Return a type of names; a unit's name in Python has no hyphens."""
    rows = "".join(f'    "{value.replace("-", "_")}",\n' for value in values)
    return f"{name}: TypeAlias = Literal[\n{rows}]\n"


def main(folder: str, typing_file: str, functions_file: str) -> None:
    sys.path.insert(0, folder)
    core = importlib.import_module("_core")
    types = {"".join(map(str.title, name.split("_"))): names
             for name, names in core.enumerations().items()}
    types["FormatAlias"] = core.format_aliases()
    types["RecipeName"] = [row["name"] for row in core.recipes()]
    Path(typing_file).write_text(
        TYPING + "\n".join(literal(*row) for row in types.items()) + FORMAT_LIKE)
    rows = core.unary_functions()
    Path(functions_file).write_text(
        FUNCTIONS.format(names=[row[0] for row in rows])
        + "".join(FUNCTION.format(name=name, doc=doc, rule=rule) for name, doc, rule in rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
