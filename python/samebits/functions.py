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

Every function of elements takes these keyword arguments:

rule : str
    One of these names; ``exact`` by default. A rule that lacks the function raises
    `samebits.Unsupported`.
to : str or dtype
    The format of the result: fp32, fp16, bf16, e4m3 or e5m2. By default that of `x`, which all
    rules but ``exact`` require.
rounding, overflow, seed, random_stream, offset, random_bits
    As in `samebits.convert`, for rule ``exact``: to nearest even, or stochastic into formats of 16
    and 8 bits with at most 16 random bits, the default.
out, format, threads, backend, stream
    As in `samebits.convert`. Arrays lie in host memory or in the memory of a GPU.

The argument is one array, or a list or dict of arrays. A list gives a list of results, a dict gives
a dict. `grad` and `out` are then lists or dicts too. Formats may differ from array to array. With
stochastic rounding, array i uses the random stream random_stream + i. If one array is refused, no
result is written. A result may be its own argument. Other arrays of a list share no memory.

softmax, log_softmax, LayerNorm and their gradients are functions of rows. Their options are rule,
out, format, threads and backend: see their docstrings.

Every NaN in a result is the canonical NaN of the format.

Examples
--------
>>> import numpy as np
>>> import samebits
>>> x = np.float32([-1, 0.5])
>>> samebits.functions.exp(x)
array([0.36787945, 1.6487212 ], dtype=float32)
>>> samebits.functions.exp(x, to="fp16")
array([0.368, 1.648], dtype=float16)
>>> samebits.functions.exp(x, rule="torch_2_11")
array([0.36787948, 1.6487212 ], dtype=float32)
>>> samebits.functions.gradient("gelu", np.ones_like(x), x, rule="torch_2_11")
array([-0.08331548,  0.8674951 ], dtype=float32)
>>> samebits.functions.tanh({"a": x, "b": np.float16([1])})
{'a': array([-0.7615942 ,  0.46211717], dtype=float32), 'b': array([0.7617], dtype=float16)}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from samebits import _core
from samebits.formats import choose
from samebits.list_arguments import named, paired, results_of
from samebits.row_functions import (
    LayerNorm,
    layer_norm,
    layer_norm_gradient,
    log_softmax,
    log_softmax_gradient,
    softmax,
    softmax_gradient,
)
from samebits.rules import STOCHASTIC, number, optional_format, random_of, rule_of, stream_handle

__all__ = [
    "LayerNorm",
    "cos",
    "elu",
    "erf",
    "erfc",
    "evaluate",
    "exp",
    "exp2",
    "expm1",
    "fast_exp",
    "fast_log",
    "gelu",
    "gelu_tanh",
    "gradient",
    "hardswish",
    "layer_norm",
    "layer_norm_gradient",
    "leaky_relu",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "log_softmax_gradient",
    "mish",
    "pow",
    "reciprocal",
    "relu",
    "rsqrt",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "softmax_gradient",
    "softplus",
    "tanh",
]

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class Options(TypedDict, total=False):
        """Keyword arguments of every function of elements."""

        rule: str
        to: object
        rounding: str
        overflow: str
        seed: int
        random_stream: int
        offset: int
        random_bits: int
        out: Any
        format: object
        threads: int | None
        backend: str | None
        stream: Any


_FUNCTIONS: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("function"))}
_RULES: Final[dict[str, int]] = {n: i for i, n in enumerate(_core.names("function_rule"))}


def _evaluate(
    function: str,
    x: Any,
    grad: Any = None,
    parameter: Any = None,
    *,
    rule: str = "exact",
    to: object = None,
    rounding: str = "nearest_even",
    overflow: str = "ieee",
    seed: int | None = None,
    random_stream: int = 0,
    offset: int = 0,
    random_bits: int = 16,
    out: Any = None,
    format: object = None,
    threads: int | None = None,
    backend: str | None = None,
    stream: Any = None,
) -> Any:
    cast = rule_of(rounding, overflow, "canonical")
    random = None
    if cast & 255 == STOCHASTIC:
        random = random_of(seed, random_stream, offset, None, random_bits)
    of = choose("function", function, _FUNCTIONS), choose("rule", rule, _RULES)
    value = None if parameter is None else number(parameter, "parameter")
    if isinstance(x, (list, tuple, Mapping)):
        names = named(x)[1]
        results = _evaluate_list(of, x, grad, out, optional_format(format), optional_format(to, "to"),
                                 value, cast, random, (threads, backend, stream_handle(stream)))
        return dict(zip(names, results, strict=True)) if isinstance(x, Mapping) else results
    return _core.evaluate(
        *of, x, grad, optional_format(format), value, to, cast, random, out, threads, backend,
        stream_handle(stream),
    )


def _evaluate_list(
    of: tuple[int, int], x: Any, grad: Any, out: Any, format: int, to: int, parameter: float | None,
    cast: int, random: Any, where: tuple[Any, ...],
) -> list[Any]:
    arrays, names = named(x, "x")
    grads = None if grad is None else paired(x, grad, "grad")[1]
    results = results_of("x", x, out, format, to)
    _core.evaluate_list(*of, arrays, grads, format, parameter, results, format if to < 0 else to,
                        names, cast, random, *where)
    return results


def evaluate(
    function: str, x: Any, parameter: float | None = None, **options: Unpack[Options]
) -> Any:
    """Return the function with this name, for example ``"gelu_tanh"``, of every element of `x`.

    Parameters
    ----------
    function : str
        The name of a function of this module.
    x : array [...], list of arrays, or dict of str to array
        The function's argument.
    parameter : float, optional
        The exponent of pow, the alpha of elu or the slope of leaky_relu.
    **options
        As in every function of elements.
    """
    return _evaluate(function, x, None, parameter, **options)


def gradient(
    function: str, grad: Any, x: Any, parameter: float | None = None, **options: Unpack[Options]
) -> Any:
    """Return the gradient of `x`: `grad` times the derivative of the function at `x`.

    Rule ``exact`` rounds the exact derivative to fp32 and its product with `grad` into the result.
    Rule ``torch_2_11`` returns what PyTorch's backward pass computes.

    Parameters
    ----------
    function : str
        The name of a function of this module, for example ``"gelu_tanh"``.
    grad : array [...], list of arrays, or dict of str to array
        The gradient of the function's result.
    x : as `grad`
        The function's argument, in the shape of `grad`, and in its format unless the rule is
        ``exact``.
    parameter : float, optional
        The exponent of pow, the alpha of elu or the slope of leaky_relu.
    **options
        As in every function of elements. `rule` is ``torch_2_11``, or ``exact`` for silu, gelu and
        gelu_tanh.
    """
    return _evaluate(function, x, grad, parameter, **options)


def pow(x: Any, exponent: float, **options: Unpack[Options]) -> Any:
    """Return x^exponent; the exponent is one number."""
    return _evaluate("pow", x, None, exponent, **options)


def elu(x: Any, alpha: float = 1.0, **options: Unpack[Options]) -> Any:
    """Return x for x > 0, else alpha * (e^x - 1)."""
    return _evaluate("elu", x, None, alpha, **options)


def leaky_relu(x: Any, slope: float = 0.01, **options: Unpack[Options]) -> Any:
    """Return x for x > 0, else slope * x."""
    return _evaluate("leaky_relu", x, None, slope, **options)


def exp(x: Any, **options: Unpack[Options]) -> Any:
    """Return e^x."""
    return _evaluate("exp", x, **options)


def exp2(x: Any, **options: Unpack[Options]) -> Any:
    """Return 2^x."""
    return _evaluate("exp2", x, **options)


def expm1(x: Any, **options: Unpack[Options]) -> Any:
    """Return e^x - 1."""
    return _evaluate("expm1", x, **options)


def log(x: Any, **options: Unpack[Options]) -> Any:
    """Return log(x)."""
    return _evaluate("log", x, **options)


def log2(x: Any, **options: Unpack[Options]) -> Any:
    """Return log2(x)."""
    return _evaluate("log2", x, **options)


def log10(x: Any, **options: Unpack[Options]) -> Any:
    """Return log10(x)."""
    return _evaluate("log10", x, **options)


def log1p(x: Any, **options: Unpack[Options]) -> Any:
    """Return log(1 + x)."""
    return _evaluate("log1p", x, **options)


def sin(x: Any, **options: Unpack[Options]) -> Any:
    """Return sin(x)."""
    return _evaluate("sin", x, **options)


def cos(x: Any, **options: Unpack[Options]) -> Any:
    """Return cos(x)."""
    return _evaluate("cos", x, **options)


def tanh(x: Any, **options: Unpack[Options]) -> Any:
    """Return tanh(x)."""
    return _evaluate("tanh", x, **options)


def erf(x: Any, **options: Unpack[Options]) -> Any:
    """Return erf(x)."""
    return _evaluate("erf", x, **options)


def erfc(x: Any, **options: Unpack[Options]) -> Any:
    """Return 1 - erf(x)."""
    return _evaluate("erfc", x, **options)


def rsqrt(x: Any, **options: Unpack[Options]) -> Any:
    """Return 1 / sqrt(x)."""
    return _evaluate("rsqrt", x, **options)


def reciprocal(x: Any, **options: Unpack[Options]) -> Any:
    """Return 1 / x."""
    return _evaluate("reciprocal", x, **options)


def sigmoid(x: Any, **options: Unpack[Options]) -> Any:
    """Return 1 / (1 + e^-x)."""
    return _evaluate("sigmoid", x, **options)


def silu(x: Any, **options: Unpack[Options]) -> Any:
    """Return x * sigmoid(x)."""
    return _evaluate("silu", x, **options)


def gelu(x: Any, **options: Unpack[Options]) -> Any:
    """Return x * (1 + erf(x / sqrt(2))) / 2."""
    return _evaluate("gelu", x, **options)


def gelu_tanh(x: Any, **options: Unpack[Options]) -> Any:
    """Return gelu(x) with an approximation of erf by tanh."""
    return _evaluate("gelu_tanh", x, **options)


def softplus(x: Any, **options: Unpack[Options]) -> Any:
    """Return log(1 + e^x)."""
    return _evaluate("softplus", x, **options)


def relu(x: Any, **options: Unpack[Options]) -> Any:
    """Return max(x, 0)."""
    return _evaluate("relu", x, **options)


def mish(x: Any, **options: Unpack[Options]) -> Any:
    """Return x * tanh(softplus(x))."""
    return _evaluate("mish", x, **options)


def hardswish(x: Any, **options: Unpack[Options]) -> Any:
    """Return x * min(max(x + 3, 0), 6) / 6."""
    return _evaluate("hardswish", x, **options)


def fast_exp(x: Any, **options: Unpack[Options]) -> Any:
    """Return CUDA's __expf(x)."""
    return _evaluate("fast_exp", x, **options)


def fast_log(x: Any, **options: Unpack[Options]) -> Any:
    """Return CUDA's __logf(x)."""
    return _evaluate("fast_log", x, **options)
