"""Results of PyTorch's CUDA kernels on a CPU: `recompute`.

docs/torch_rules.md states the rules and their evidence; `samebits.torch.aten` has an entry for each operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from samebits.errors import InvalidArgument, Unsupported
from samebits.torch.aten import functions, products, reductions, rows, updates  # noqa: F401 - they register rules
from samebits.torch.aten.elementwise import ELEMENTWISE, elementwise
from samebits.torch.aten.registry import RULES, Conditions, require
from samebits.torch.recorded_calls import RECOMPUTED

__all__ = ["Conditions", "recompute"]

#: Operators that round nothing: PyTorch's own code for CPUs runs.
_EXACT = frozenset("""
    _foreach_abs _foreach_clamp_max _foreach_clamp_min _foreach_copy _foreach_maximum _foreach_neg _foreach_zero
    _local_scalar_dense _reshape_alias _to_copy _unsafe_view abs all amax amin any arange bitwise_and bitwise_not
    bitwise_or cat clamp clamp_max
    clamp_min clone constant_pad_nd contiguous copy embedding empty empty_like empty_permuted empty_strided eq fill flip full
    full_like gather ge gt index index_select is_same_size isfinite isinf isnan le lift_fresh logical_and
    logical_not logical_or lt masked_fill max maximum min minimum ne neg new_empty new_empty_strided new_full
    new_ones new_zeros ones ones_like relu repeat roll scalar_tensor scatter select_backward set sign
    slice_backward squeeze stack t threshold_backward transpose tril triu unbind unsqueeze where zero zeros zeros_like
    """.split())
#: Exact on integers; those of fp64 are operations of IEEE 754, alike on all processors.
_ON_INTEGERS = frozenset("add sub rsub mul sum prod cumsum".split())
_ON_FP64 = frozenset("add sub rsub mul div reciprocal sqrt".split())


#: Exact, but for the sign of a zero.
_OF_ZEROS = frozenset("amax amin clamp clamp_max clamp_min max maximum min minimum relu".split())


def _is_exact(overload: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether CPUs and GPUs compute alike: by IEEE 754, on integers, or by moving elements."""
    if overload.is_view or overload.namespace == "samebits":
        return overload.is_view or name not in RULES  # operators of rows: by `how`
    tensors = [x for x in args if isinstance(x, torch.Tensor)]
    has_float = any(isinstance(x, float) for x in args)
    if name in _EXACT:
        if name in _OF_ZEROS:
            require(not any(bool(((x == 0) & x.signbit()).any()) for x in tensors if x.is_floating_point()),
                    f"aten.{name} of -0, whose sign it may change")
        if name == "_to_copy" and tensors[0].is_floating_point():
            _require_castable(tensors[0], kwargs.get("dtype"))
        return "reduce" not in overload._overloadname and not (name == "arange" and has_float)
    dtypes = {x.dtype for x in tensors}
    floating = {d for d in dtypes if d.is_floating_point or d.is_complex}
    if floating == {torch.float64}:  # a quotient by a number is a product by its reciprocal
        return name in _ON_FP64 and not (name == "div" and not isinstance(args[1], torch.Tensor))
    to = kwargs.get("dtype")
    return (bool(dtypes) and not floating and name in _ON_INTEGERS and not has_float
            and (to is None or not to.is_floating_point))


def _require_castable(x: torch.Tensor, to: torch.dtype | None) -> None:
    """Require numbers that an integer type holds: processors differ beyond."""
    if to is None or to.is_floating_point or to.is_complex or to == torch.bool:
        return
    limits = torch.iinfo(to)
    require(bool(((x > limits.min) & (x < limits.max)).all()), f"a cast of numbers beyond {to}")


def overload_of(operator: Any) -> Any:
    """Return an operator by its name."""
    if not isinstance(operator, str):
        return operator
    namespace, packet, overload = [*operator.split("."), ""][:3]
    try:
        return getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    except AttributeError:
        raise Unsupported(f"not covered: {operator}, which this process does not know") from None


def _item(x: Any, i: int) -> Any:
    return x[i] if isinstance(x, list | tuple) else x


def _of_lists(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], writes: bool) -> list[Any]:
    """Return the results of an operator of lists: an elementwise one for each tensor of the first list."""
    quotients = name == "_foreach_div" and isinstance(args[1], list | tuple)  # one number for all is as in div
    one = name if quotients else name.removeprefix("_foreach_")
    require(one in ELEMENTWISE and isinstance(args[0], list | tuple), f"aten.{name}")
    if one in ("addcdiv", "addcmul") and len(args) > 3 and isinstance(args[3], torch.Tensor):
        args = [*args[:3], args[3].tolist()]  # a tensor of numbers, one for each tensor
    return [elementwise(one, [_item(x, i) for x in args], {k: _item(v, i) for k, v in kwargs.items()},
                        first.dtype if writes else None) for i, first in enumerate(args[0])]


def recompute(operator: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None,
              how: Conditions = Conditions()) -> Any:
    """Return what PyTorch's CUDA kernel of an operator returns.

    Parameters
    ----------
    operator : OpOverload or str
        An ATen operator, such as ``torch.ops.aten.add.Tensor`` or ``"aten.add.Tensor"``.
    args, kwargs
        Its arguments, with CPU tensors of the shapes, strides and storage offsets of the GPU's.
        Operators that write an argument write it.
    how : Conditions

    Returns
    -------
    Tensor, or a sequence of them
        None for each result that has no rule, such as seeds of dropout.

    Raises
    ------
    Unsupported
        The operator has no rule, or none for these arguments; nothing was written.

    Examples
    --------
    >>> x = torch.tensor([1.0, 3.0])
    >>> sbt.recompute("aten.div.Tensor", (x, 3.0))
    tensor([0.3333, 1.0000])
    """
    try:
        return _recomputed(overload_of(operator), args, dict(kwargs or {}), how)
    except (InvalidArgument, TypeError) as error:  # formats or arguments that a rule does not have
        raise Unsupported(f"not covered: {operator}: {error}") from None


def reason_of(error: Exception, operator: str) -> str:
    """Return why an operator could not be recomputed; what is no Unsupported is PyTorch's or a rule's error."""
    text = str(error)
    if isinstance(error, Unsupported):
        return text.removeprefix("not covered: ")
    return f"{operator}: {type(error).__name__}: {text.partition(chr(10))[0]}"


def recompute_recorded(operator: str, args: Sequence[Any], kwargs: Mapping[str, Any], how: Conditions) -> Any:
    """Recompute an operator of PyTorch, or of this package: its own kernels follow the same rules everywhere."""
    return RECOMPUTED[operator](*args) if operator in RECOMPUTED else recompute(operator, args, kwargs, how)


def _recomputed(overload: Any, args: Sequence[Any], kwargs: dict[str, Any], how: Conditions) -> Any:
    name = overload._schema.name.partition("::")[2]
    writes = name.endswith("_") and not name.endswith("__") and name not in RULES
    name = name.removesuffix("_") if writes else name
    if _is_exact(overload, name, args, kwargs):
        kwargs = {key: value for key, value in kwargs.items() if key != "pin_memory"}
        return overload(*args, **kwargs | ({"device": "cpu"} if "device" in kwargs else {}))
    require(overload.namespace in ("aten", "samebits"), f"{overload}")
    require("out" not in overload._overloadname, f"aten.{name} with out=")
    if name.startswith("_foreach_") and name not in RULES:
        results = _of_lists(name, args, kwargs, writes)
        if not writes:
            return results
        for x, y in zip(args[0], results, strict=True):
            x.copy_(y)
        return None
    if name in ELEMENTWISE:
        result = elementwise(name, args, kwargs, args[0].dtype if writes else None)
    else:
        require(name in RULES, f"aten.{name}")
        result = RULES[name](how, *args, **kwargs)
    return args[0].copy_(result) if writes else result
