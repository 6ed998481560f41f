"""The evaluation of a function by its name, which all functions of `samebits.functions` share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from samebits import _core
from samebits.list_arguments import named, paired, results_of

if TYPE_CHECKING:
    from samebits.typing import FormatLike, FunctionRule, Overflow, Rounding


def evaluated(
    function: str,
    x: Any,
    grad: Any = None,
    parameter: Any = None,
    *,
    rule: FunctionRule = "exact",
    to: FormatLike | None = None,
    rounding: Rounding = "nearest_even",
    overflow: Overflow = "ieee",
    seed: int | None = None,
    random_stream: int = 0,
    offset: int = 0,
    random_bits: int = 16,
    out: Any = None,
    format: FormatLike | None = None,
    threads: int | None = None,
    backend: str | None = None,
    stream: Any = None,
) -> Any:
    """Return a function, or its gradient, of every element.

    Parameters
    ----------
    function : str
        The name of a function of `samebits.functions`, for example ``"gelu_tanh"``.
    x : array [...], list of arrays, or dict of str to array
        The function's argument. A list gives a list of results, a dict gives a dict.
    parameter : float, optional
        The exponent of pow, the alpha of elu or the slope of leaky_relu.
    rule : str
        Whose bits the function returns: exact, cuda_13_0, torch_2_11, triton_3_6 or
        torch_compile_2_11. A rule that lacks the function raises `samebits.Unsupported`.
    to : str or dtype, optional
        The format of the result: fp32, fp16, bf16, e4m3 or e5m2. By default that of `x`, which all
        rules but ``exact`` require.
    rounding, overflow, seed, random_stream, offset, random_bits
        As in `samebits.convert`, for rule ``exact``: to nearest even, or stochastic into formats of
        16 and 8 bits with at most 16 random bits, the default.
    out, format, threads, backend, stream
        As in `samebits.convert`.

    Returns
    -------
    array [...], list of arrays, or dict of str to array

    Raises
    ------
    InvalidArgument, Unsupported
        An argument was refused, or the rule lacks the function; nothing was written.
    """
    how = (rule, ... if parameter is None else parameter, rounding, overflow, seed, random_stream,
           offset, None, random_bits)
    where = threads, backend, stream
    if not isinstance(x, (list, tuple, Mapping)):
        return _core.evaluate(function, x, grad, format, to, how, out, where)
    arrays, names = named(x, "x")
    grads = None if grad is None else paired(x, grad, "x", "grad")[1]
    results = results_of("x", x, out, format, to)
    _core.evaluate_list(function, arrays, grads, format, results, format if to is None else to, names,
                        how, where)
    return dict(zip(names, results, strict=True)) if isinstance(x, Mapping) else results
