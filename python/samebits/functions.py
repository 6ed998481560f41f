"""Functions of arrays: correctly rounded, or with the bits that CUDA or PyTorch returns on a GPU.

A rule says whose bits a function returns:

``exact``
    The exact real value, rounded once into the format of the result: exp, exp2, expm1, log, log2,
    log1p, tanh, erf, rsqrt, reciprocal, sigmoid, silu, gelu, gelu_tanh and softplus of fp32, fp16
    and bf16 arrays; the gradients of silu, gelu and gelu_tanh.
``cuda_13_0``
    CUDA's expf, tanhf and others as nvcc 13.0 compiles them for Hopper, of fp32 arrays.
``torch_2_11``
    PyTorch 2.11's operators on CUDA tensors, of fp32, fp16 and bf16 arrays.
``triton_3_6``
    Triton 3.6's ``tl.exp`` and others, of fp32, fp16 and bf16 arrays.
``torch_compile_2_11``
    Activations in kernels of torch.compile, PyTorch 2.11, of fp32, fp16 and bf16 arrays.

Arrays lie in host memory or in the memory of a GPU. `help()` of a function describes its options.

The argument is one array, or a list or dict of arrays. A list gives a list of results, a dict gives
a dict. `grad` and `out` are then lists or dicts too. Formats may differ from array to array. With
stochastic rounding, array i uses the random stream random_stream + i. If one array is refused, no
result is written. A result may be its own argument. Other arrays of a list share no memory.

softmax, log_softmax, LayerNorm, RMSNorm and their gradients are functions of rows; sum, mean and norm reduce
axes. Their options are those in their docstrings.

Every NaN in a result is the canonical NaN of the format.

Examples
--------
>>> import numpy as np
>>> import samebits as sb
>>> x = np.float32([-1, 0.5])
>>> sb.functions.exp(x)
array([0.36787945, 1.6487212 ], dtype=float32)
>>> sb.functions.exp(x, to="fp16")
array([0.368, 1.648], dtype=float16)
>>> sb.functions.exp(x, rule="torch_2_11")
array([0.36787948, 1.6487212 ], dtype=float32)
>>> sb.functions.gradient("gelu", np.ones_like(x), x, rule="torch_2_11")
array([-0.08331548,  0.8674951 ], dtype=float32)
>>> sb.functions.tanh({"a": x, "b": np.float16([1])})
{'a': array([-0.7615942 ,  0.46211717], dtype=float32), 'b': array([0.7617], dtype=float16)}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.attention import *
from samebits.axis_reductions import *
from samebits.evaluation import evaluated
from samebits.row_functions import *
from samebits.rules import dir_of, names_in, options_of
from samebits.training_functions import *
from samebits.unary_functions import *

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from samebits.option_types import FunctionOptions
    from samebits.typing import Function

__all__ = ["evaluate", "gradient"]
__all__ += names_in("samebits", (
    "attention", "axis_reductions", "row_functions", "training_functions", "unary_functions"))
__dir__ = dir_of(__name__)


@options_of(evaluated)
def evaluate(
    function: Function, x: Any, parameter: float | None = None, **options: Unpack[FunctionOptions]
) -> Any:
    """Return the function with this name, for example ``"gelu_tanh"``, of every element of `x`.

    Examples
    --------
    >>> sb.functions.evaluate("exp2", np.float32([3, -1])).tolist()
    [8.0, 0.5]
    """
    return evaluated(function, x, None, parameter, **options)


@options_of(evaluated)
def gradient(
    function: Function, grad: Any, x: Any, parameter: float | None = None, **options: Unpack[FunctionOptions]
) -> Any:
    """Return the gradient of `x`: `grad` times the derivative of the function at `x`.

    Rule ``exact`` rounds the exact derivative to fp32 and its product with `grad` into the result.
    Rule ``torch_2_11`` returns what PyTorch's backward pass computes. Other rules have no gradients,
    ``exact`` those of silu, gelu and gelu_tanh.

    Parameters
    ----------
    grad : array [...], list of arrays, or dict of str to array
        The gradient of the function's result.
        It has the shape of `x`, and its format unless the rule is ``exact``.

    Examples
    --------
    >>> x = np.float32([-1, 2])
    >>> sb.functions.gradient("relu", np.ones_like(x), x, rule="torch_2_11").tolist()
    [0.0, 1.0]
    """
    return evaluated(function, x, grad, parameter, **options)
