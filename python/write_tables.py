"""Writes modules of samebits from the tables of the built extension: names as types, functions, optimizers.

    python write_tables.py <folder of the extension and of the modules>

So a new name of a format, a rounding mode, ..., or a new function of elements, needs no change in Python.
A new rule of optimizers needs one row in samebits/optimizer_rules.py.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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

    from samebits.option_types import FunctionOptions

__all__ = {names!r}
'''
FUNCTION = '''

@options_of(evaluated)
def {name}(x: Any, **options: Unpack[FunctionOptions]) -> Any:
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

OPTIMIZERS = '''"""The optimizers of samebits.{module}; written from `samebits.optimizer_rules`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.{base} import Optimizer
from samebits.rules import options_of

if TYPE_CHECKING:
    {imports}from typing_extensions import Unpack

    from samebits.{types} import {options}

__all__ = {names!r}
'''
OPTIMIZER = '''

@options_of(Optimizer.__init__)
class {name}(Optimizer):
    """{doc}

    Examples
    --------
{example}
    """

    __module__ = "samebits.{module}"
    _rule = "{rule}"

    def __init__(self, params: {params}, {arguments},
                 **options: Unpack[{options}]) -> None:
        super().__init__(params, {{{settings}}}, **options)
'''
ARRAY_EXAMPLE = '''\
    >>> import numpy as np
    >>> from samebits.optim import {name}
    >>> w = np.float32([1, 2])
    >>> {name}(w, {example}).step(np.float32([0.25, -4]))
    >>> w
    array({arrays}, dtype=float32)'''
TENSOR_EXAMPLE = '''\
    >>> import torch
    >>> from samebits.torch.optim import {name}
    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> w.sum().backward()
    >>> optimizer = {name}([w], {example})
    >>> optimizer.step()
    >>> w.tolist()
    {tensors}'''
ARRAYS = {"module": "optim", "base": "optimizer", "types": "option_types",
          "options": "OptimizerOptions", "params": "Any", "rate": "float",
          "imports": ""}
TENSORS = {"module": "torch.optim", "base": "torch.optimizer", "types": "torch.optimizer",
           "options": "TorchOptions", "params": "Iterable[Any]",
           "rate": "float | torch.Tensor",
           "imports": "from collections.abc import Iterable\n\n    import torch\n    "}

OPTION_TYPES = '''"""Keyword arguments that functions pass on, for type checkers; written from the signatures."""

from collections.abc import Sequence
from typing import Any, Literal

from typing_extensions import Required, TypedDict

from samebits.optimizer_layout import States, Weights
from samebits.typing import *
'''
#: The file and the function with the signature, and arguments that are left out.
SIGNATURES = {
    "ConvertOptions": ("convert", "_convert"),
    "ComputeOptions": ("arithmetic", "_compute"),
    "FunctionOptions": ("evaluation", "evaluated"),
    "ProductOptions": ("matmul", "_product"),
    "RowOptions": ("row_functions", "_options"),
    "QuantizeOptions": ("quantize", "quantize", "out"),
    "OptimizerOptions": ("optimizer", "__init__"),
    "ReduceOptions": ("ranks/gradients", "reduce_gradients", "communication", "factor"),
    "ShardOptions": ("ranks/shards", "norm_of_shards"),
}


def literal(name: str, values: Iterable[str]) -> str:
    """Return a type of names; a unit's name in Python has no hyphens."""
    rows = "".join(f'    "{value.replace("-", "_")}",\n' for value in values)
    return f"{name}: TypeAlias = Literal[\n{rows}]\n"


def options(name: str, source: str, function: str, *left_out: str) -> str:
    """Return a type of the keyword-only arguments of a function."""
    found = next(node.args for node in ast.walk(ast.parse(source))
                 if isinstance(node, ast.FunctionDef) and node.name == function)
    rows = ""
    for argument, default in zip(found.kwonlyargs, found.kw_defaults, strict=True):
        assert argument.annotation is not None
        kind = ast.unparse(argument.annotation)
        if argument.arg not in left_out:
            rows += f"    {argument.arg}: {kind if default else f'Required[{kind}]'}\n"
    return f"\n\nclass {name}(TypedDict, total=False):\n{rows}"


def optimizers(rules: dict[str, Any], module: dict[str, str], example: str) -> str:
    """Return a module with a class for each rule."""
    types = {"lr": module["rate"], "betas": "tuple[float, float]", "nesterov": "bool"}
    text = OPTIMIZERS.format(names=[rule.name for rule in rules.values()], **module)
    for key, rule in rules.items():
        arguments = ", ".join(f"{name}: {types.get(name, 'float')} = {value!r}"
                              for name, value in rule.defaults.items())
        text += OPTIMIZER.format(
            **module, rule=key, name=rule.name, doc=rule.doc, arguments=arguments,
            settings=", ".join(f'"{name}": {name}' for name in rule.defaults),
            example=example.format(**rule._asdict()))
    return text


def main(folder: str) -> None:
    sys.path.insert(0, folder)
    core = importlib.import_module("_core")
    types = {"".join(map(str.title, name.split("_"))): names
             for name, names in core.enumerations().items()}
    types["FormatAlias"] = core.format_aliases()
    types["RecipeName"] = [row["name"] for row in core.recipes()]
    rows = core.unary_functions()
    rules = importlib.import_module("optimizer_rules").RULES
    rules = {name: rules[name] for name in core.names("update_rule")}
    option_types = "".join(options(name, Path(folder, f"{file}.py").read_text(), *function)
                           for name, (file, *function) in SIGNATURES.items())
    modules = {
        "option_types.pyi": OPTION_TYPES + option_types,
        "typing.py": TYPING + "\n".join(literal(*row) for row in types.items()) + FORMAT_LIKE,
        "unary_functions.py": FUNCTIONS.format(names=[row[0] for row in rows]) + "".join(
            FUNCTION.format(name=name, doc=doc, rule=rule) for name, doc, rule in rows),
        "array_optimizers.py": optimizers(rules, ARRAYS, ARRAY_EXAMPLE),
        "torch_optimizers.py": optimizers(rules, TENSORS, TENSOR_EXAMPLE)}
    for name, text in modules.items():
        Path(folder, name).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
