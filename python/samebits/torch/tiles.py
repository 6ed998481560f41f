"""The part of an operator that is recomputed: a tile of a product, elements, rows, or one tensor of lists."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from samebits.torch.aten.elementwise import is_elementwise
from samebits.torch.copies import ALIGNMENT
from samebits.torch.operators import PRODUCTS, Operator, tensors_of

_FUNCTIONS = frozenset("""exp expm1 log log1p tanh sigmoid erf rsqrt silu softplus gelu gelu_backward silu_backward
                          _to_copy clone neg abs where masked_fill relu threshold_backward""".split())
#: Operators of rows, by the arguments that have the rows.
_ROWS = {"_softmax": (0,), "_log_softmax": (0,), "_safe_softmax": (0,), "_softmax_backward_data": (0, 1),
         "_log_softmax_backward_data": (0, 1), "native_layer_norm": (0,), "_fused_rms_norm": (0,)}


@dataclass(frozen=True)
class Place:
    """Where a part of a result lies.

    Attributes
    ----------
    origin : list of int
        The place of the part's first element in the whole result; empty: the result is whole.
    shape : list of int, optional
        The shape of the whole result, where `origin` counts its elements in the order of memory.
    alike : str
        Of products a text that is the same for those that the library computes alike.
    item : int, optional
        The tensor of lists.
    """

    origin: list[int] = field(default_factory=list)
    shape: list[int] | None = None
    alike: str = ""
    item: int | None = None


@dataclass(frozen=True)
class Tile:
    """Arguments of an operator on a part of its results; tensors are views of the operator's own."""

    args: list[Any]
    kwargs: dict[str, Any]
    of_result: Callable[[Any], Any] = lambda y: y  #: returns the same part of a result
    place: Place = field(default_factory=Place)


def tile_of(operator: Operator, args: Any, kwargs: Any, word: int, size: int) -> Tile:
    """Return a part of an operator, chosen by 64 random bits: of products size x size results, else size^2.

    Operators whose results depend on all of their arguments are taken whole.
    """
    name = operator.short if operator.name.startswith("aten.") else ""
    if name in PRODUCTS:
        return _of_product(name, args, kwargs, word, size)
    item = None
    if name.startswith(("_foreach_", "_fused_")) and isinstance(args[0], list | tuple) and args[0]:
        item = word % len(args[0])
        word //= len(args[0])
        args, kwargs = _item_of(args, kwargs, name, item)
        if name == "_foreach_norm":
            return Tile(args, kwargs, lambda y: y[item : item + 1], Place(item=item))
    plain = name.removeprefix("_foreach_").removesuffix("_")
    if is_elementwise(name) or plain in _FUNCTIONS or name.startswith(("_fused_ad", "_fused_sgd")):
        tile = _of_elements(args, kwargs, word, size * size)
    elif name in _ROWS and _has_rows(name, args):
        tile = _of_rows(args, kwargs, [args[i] for i in _ROWS[name]], word, size * size,
                        aligned=name == "_softmax_backward_data")
    else:
        tile = Tile([*args], dict(kwargs))
    if item is None:
        return tile
    return replace(tile, of_result=lambda y: [tile.of_result(y[item])], place=replace(tile.place, item=item))


def _has_rows(name: str, args: Any) -> bool:
    """Whether the first axis counts rows that follow each other in memory."""
    normalized = len(args[1]) if name.endswith("_norm") else 1
    return all(args[i].is_contiguous() and args[i].dim() > normalized for i in _ROWS[name])


def _start(word: int, n: int, size: int) -> int:
    """Return the first of at most `size` of n places; tiles begin at multiples of the size, the last one ends at n."""
    tiles = -(-n // size)
    return max(min(word % tiles * size, n - size), 0)


def _of_product(name: str, args: Any, kwargs: Any, word: int, size: int) -> Tile:
    a, b = (args[i] for i in PRODUCTS[name])
    alike = f"{name} {a.dtype} {[*a.shape]} {a.stride()} {[*b.shape]} {b.stride()}"
    row, col = _start(word, a.shape[-2], size), _start(word >> 20, b.shape[-1], size)
    rows, cols = slice(row, row + size), slice(col, col + size)
    if name == "bmm":
        i = (word >> 40) % a.shape[0]
        return Tile([a[i : i + 1, rows], b[i : i + 1, :, cols]], dict(kwargs),
                    lambda y: y[i : i + 1, rows, cols], Place([i, row, col], alike=alike))
    taken = [a[rows], b[:, cols], *args[PRODUCTS[name][1] + 1 :]]
    if name == "addmm":
        taken.insert(0, args[0].expand(a.shape[0], b.shape[1])[rows, cols])
    return Tile(taken, dict(kwargs), lambda y: y[rows, cols], Place([row, col], alike=alike))


def _item_of(args: Any, kwargs: Any, name: str, item: int) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of one tensor of an operator of lists."""
    n = len(args[0])

    def of(x: Any) -> Any:
        if isinstance(x, list | tuple):
            return [x[item]] if len(x) == n else x
        numbers = name in ("_foreach_addcdiv", "_foreach_addcmul", "_foreach_addcdiv_", "_foreach_addcmul_")
        return x[item : item + 1] if numbers and isinstance(x, torch.Tensor) else x
    return [of(x) for x in args], {key: of(x) for key, x in kwargs.items()}


#: Applies a function to each tensor of arguments.
_mapped = partial(tree_map_only, torch.Tensor)


def _of_elements(args: Any, kwargs: Any, word: int, size: int) -> Tile:
    """Return consecutive elements of tensors of one shape, else rows of the first axis."""
    tensors = [x for x in tensors_of([args, kwargs]) if x.dim() > 0 and x.shape != (1,)]
    shapes = {x.shape for x in tensors}
    if len(shapes) != 1 or not all(x.is_contiguous() for x in tensors):
        shape = torch.broadcast_shapes(*shapes) if shapes else torch.Size()
        return _of_rows(args, kwargs, [x for x in tensors if x.shape[:1] == shape[:1] and x.dim() == len(shape)],
                        word, size, shape)
    n = tensors[0].numel()
    start = _start(word, n, size)

    def cut(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1)[start : start + size] if x.shape in shapes else x
    return Tile(_mapped(cut, args), _mapped(cut, kwargs), lambda y: _mapped(cut, y),
                Place([start], [*tensors[0].shape]))


def _of_rows(args: Any, kwargs: Any, with_rows: list[torch.Tensor], word: int, size: int, shape: Any = None,
             aligned: bool = False) -> Tile:
    """Return some places of the first axis of tensors. aligned: the first has the alignment of the tensor's first."""
    shape = with_rows[0].shape if shape is None and with_rows else shape
    if not shape or len(shape) < 2 or shape[0] < 2:
        return Tile([*args], dict(kwargs))
    row = max(shape.numel() // shape[0], 1)
    count = max(size // row, 1)
    start, ids = _start(word, shape[0], count), {id(x) for x in with_rows}
    if aligned:  # its rule counts alignment from the first row
        start -= start % (ALIGNMENT // math.gcd(ALIGNMENT, row))

    def cut(x: torch.Tensor) -> torch.Tensor:
        return x[start : start + count] if id(x) in ids else x
    return Tile(_mapped(cut, args), _mapped(cut, kwargs), lambda y: _mapped(lambda z: z[start : start + count], y),
                Place([start]))
