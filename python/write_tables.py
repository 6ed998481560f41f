"""Writes modules of samebits from the tables of the built extension: types, functions, optimizers.

    python write_tables.py <folder of the extension and of the modules>

So a new name of a format, a rounding mode, ..., or a new function of elements, needs no change in Python.
A new operation of arithmetic needs a row in OPERATIONS, a new function with a parameter one in
PARAMETERS.
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
MODULE = '''"""{about}"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

{imports}
from samebits.rules import options_of

if TYPE_CHECKING:
    {types}from typing_extensions import Unpack

    from samebits.{source} import {options}

__all__ = {names!r}
'''
FUNCTION = '''

@options_of({call})
def {name}({arguments}, **options: Unpack[{options}]) -> {result}:
    """Return {doc}.
{parameters}
    Examples
    --------
    >>> {example}
    {shown}
    """
    return {call}("{key}", {operands}, **options)
'''
UNARY = {"about": "The functions of one number; written from the library's table. `samebits.functions` has them.",
         "imports": "from samebits._core import number\nfrom samebits.evaluation import evaluated",
         "types": "", "source": "option_types", "options": "FunctionOptions", "call": "evaluated",
         "arguments": "x: Any", "operands": "x", "result": "Any", "shown": "(2, 1)",
         "parameters": ""}
#: Functions with a parameter: the parameter, what they return, what the parameter is, an example and
#: its result.
PARAMETERS = {
    "pow": ("exponent: float", "x^exponent; the exponent is one number", "The exponent, one number.",
            "np.float32([2, 3]), 2.0", "[4.0, 9.0]"),
    "elu": ("alpha: float = 1.0", "x for x > 0, else alpha * (e^x - 1)",
            "Minus the limit at minus infinity.", "np.float32([1, -np.inf]), 2.0", "[1.0, -2.0]"),
    "leaky_relu": ("slope: float = 0.01", "x for x > 0, else slope * x", "The slope for x < 0.",
                   "np.float32([2, -4]), 0.25", "[2.0, -1.0]"),
}
ARITHMETIC = {"about": "Operations of arithmetic on arrays; written from the library's table.",
              "imports": "from samebits.arithmetic import Result, _compute", "types": "",
              "source": "option_types", "options": "ComputeOptions", "call": "_compute",
              "result": "Result", "parameters": ""}
#: For each operation: name in Python, operands, what it returns, an example and its result.
OPERATIONS = {
    "add": ("add", "a, b", "a + b, rounded once",
            'np.float32([1, 2]), np.float32([2**-24, 2]), to="bf16").flags.inexact', "True"),
    "sub": ("subtract", "a, b", "a - b, rounded once",
            'np.float32([3, 1]), np.float32([1, 2])).value.tolist()', "[2.0, -1.0]"),
    "mul": ("multiply", "a, b", "a * b, rounded once",
            'np.float16([3, 300]), np.float16([2, 300])).value.tolist()', "[6.0, inf]"),
    "div": ("divide", "a, b", "a / b, rounded once",
            'np.float32([1, 1]), np.float32([4, 0])).value.tolist()', "[0.25, inf]"),
    "sqrt": ("sqrt", "a", "the square root of a, rounded once",
            'np.float32([4, -1])).flags.invalid', "True"),
    "fma": ("fma", "a, b, c", "a * b + c, rounded once",
            'np.float32([2]), np.float32([3]), np.float32([1])).value.tolist()', "[7.0]"),
    "rem": ("remainder", "a, b",
            "the IEEE 754 remainder: a - n * b with n = a / b rounded to the nearest integer",
            'np.float32([5, 7]), np.float32([3, 4])).value.tolist()', "[-1.0, -1.0]"),
    "rint": ("rint", "a", "a rounded to an integer by the rounding mode",
            'np.float32([2.5, 3.5])).value.tolist()', "[2.0, 4.0]"),
    "min": ("minimum", "a, b", "the smaller operand; NaN if either operand is NaN",
            'np.float32([1, np.nan]), np.float32([2, 2])).value.tolist()', "[1.0, nan]"),
    "max": ("maximum", "a, b", "the larger operand; NaN if either operand is NaN",
            'np.float32([1, np.nan]), np.float32([2, 2])).value.tolist()', "[2.0, nan]"),
    "min_num": ("fmin", "a, b", "the smaller operand; if one operand is NaN, return the other operand",
            'np.float32([1, np.nan]), np.float32([2, 2])).value.tolist()', "[1.0, 2.0]"),
    "max_num": ("fmax", "a, b", "the larger operand; if one operand is NaN, return the other operand",
            'np.float32([1, np.nan]), np.float32([2, 2])).value.tolist()', "[2.0, 2.0]"),
}
OPTIMIZER = '''

@options_of(Optimizer.__init__)
class {name}(Optimizer):
    """{doc}.

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
#: Names of the optimizers that are no words.
NAMES = {"adamw": "AdamW", "sgd": "SGD", "lamb": "LAMB"}
ARRAY_EXAMPLE = '''\
    >>> from samebits.optim import {name}
    >>> w = np.float32([1, 2])
    >>> {name}(w, lr=0.5).step(np.float32([0.25, -4]))
    >>> (w > [1, 2]).tolist()
    [False, True]'''
TENSOR_EXAMPLE = '''\
    >>> from samebits.torch.optim import {name}
    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> w.sum().backward()
    >>> optimizer = {name}([w], lr=0.5)
    >>> optimizer.step()
    >>> (w < 1).tolist()
    [True, True]'''
ARRAYS = {"module": "optim", "source": "option_types",
          "imports": "from samebits.optimizer import Optimizer",
          "options": "OptimizerOptions", "params": "Any", "rate": "float", "types": "",
          "about": "The optimizers of samebits.optim; written from the library's rules."}
TENSORS = {"module": "torch.optim", "source": "torch.optimizer",
           "imports": "from samebits.torch.optimizer import Optimizer", "options": "TorchOptions", "params": "Iterable[Any]",
           "rate": "float | torch.Tensor",
           "types": "from collections.abc import Iterable\n\n    import torch\n    ",
           "about": "The optimizers of samebits.torch.optim; written from the library's rules."}

OPTION_TYPES = '''"""Keyword arguments that functions pass on, for type checkers; written from the signatures."""

from collections.abc import Sequence
from typing import Any, Literal

from typing_extensions import Required, TypedDict

from samebits.optimizer_layout import States, Weights
from samebits.quantize import QuantizedTensor
from samebits.typing import *
'''
#: The file and the function with the signature, and arguments that are left out.
SIGNATURES = {
    "ConvertOptions": ("convert", "_convert"),
    "ComputeOptions": ("arithmetic", "_compute"),
    "FunctionOptions": ("evaluation", "evaluated"),
    "ProductOptions": ("matmul", "_product"),
    "RowOptions": ("row_functions", "_options"),
    "AxisOptions": ("axis_reductions", "_reduced"),
    "RuleOptions": ("training_functions", "_options"),
    "LossOptions": ("training_functions", "_loss_options"),
    "AttentionOptions": ("attention", "_options"),
    "QuantizeOptions": ("quantize", "quantize"),
    "DequantizeOptions": ("quantize", "dequantize"),
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


def functions(kind: dict[str, str], rows: Iterable[dict[str, str]]) -> str:
    """Return a module with a function for each row."""
    each = [{**kind, **row} for row in rows]
    return MODULE.format(names=[row["name"] for row in each], **kind) + "".join(
        FUNCTION.format(**row) for row in each)


def unary(name: str, doc: str, rule: str) -> dict[str, str]:
    """Return the row of a function of one number."""
    values = "np.float32([[0.25], [2]])"
    return {"name": name, "key": name, "doc": doc,
            "example": f'sb.functions.{name}({values}, rule="{rule}").shape'}


def with_parameter(key: str) -> dict[str, str]:
    """Return the row of a function with a parameter."""
    argument, doc, what, values, shown = PARAMETERS[key]
    name = argument.partition(":")[0]
    return {"name": key, "key": key, "doc": doc, "shown": shown, "arguments": f"x: Any, {argument}",
            "parameters": f"\n    Parameters\n    ----------\n    {name} : float\n        {what}\n",
            "operands": f'x, None, number({name}, "{name}")',
            "example": f'sb.functions.{key}({values}, rule="torch_2_11").tolist()'}


def operation(key: str) -> dict[str, str]:
    """Return the row of an operation of arithmetic."""
    name, operands, doc, example, shown = OPERATIONS[key]
    return {"name": name, "key": key, "doc": doc, "example": f"sb.{name}({example}", "shown": shown,
            "arguments": ": Any, ".join([*operands.split(", "), ""]).rstrip(", "),
            "operands": f"({operands},)" if operands == "a" else f"({operands})"}


def optimizers(rules: dict[str, Any], module: dict[str, str], example: str) -> str:
    """Return a module with a class for each rule."""
    types = {"lr": module["rate"], "betas": "tuple[float, float]", "nesterov": "bool"}
    names = {rule: NAMES.get(rule, rule.capitalize()) for rule in rules}
    text = MODULE.format(names=list(names.values()), **module)
    for key, (doc, defaults) in rules.items():
        arguments = ", ".join(f"{name}: {types.get(name, 'float')} = " + f"{value!r}".removesuffix(".0")
                              for name, value in defaults.items())
        text += OPTIMIZER.format(
            **module, rule=key, name=names[key], doc=doc, arguments=arguments,
            settings=", ".join(f'"{name}": {name}' for name in defaults),
            example=example.format(name=names[key]))
    return text


def main(folder: str) -> None:
    sys.path.insert(0, folder)
    core = importlib.import_module("_core")
    types = {"".join(map(str.title, name.split("_"))): names
             for name, names in core.enumerations().items()}
    types["FormatAlias"] = core.format_aliases()
    types["RecipeName"] = [row["name"] for row in core.recipes()]
    rules = core.update_rules()
    option_types = "".join(options(name, Path(folder, f"{file}.py").read_text(), *function)
                           for name, (file, *function) in SIGNATURES.items())
    modules = {
        "option_types.pyi": OPTION_TYPES + option_types,
        "typing.py": TYPING + "\n".join(literal(*row) for row in types.items()) + FORMAT_LIKE,
        "unary_functions.py": functions(UNARY, [
            *(unary(*row) for row in core.unary_functions()), *map(with_parameter, PARAMETERS)]),
        "array_operations.py": functions(ARITHMETIC, map(operation, core.enumerations()["operation"])),
        "array_optimizers.py": optimizers(rules, ARRAYS, ARRAY_EXAMPLE),
        "torch_optimizers.py": optimizers(rules, TENSORS, TENSOR_EXAMPLE)}
    for name, text in modules.items():
        Path(folder, name).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
