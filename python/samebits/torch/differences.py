"""Where two results differ, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Difference:
    """Elements of two results that differ; NaNs are alike.

    Attributes
    ----------
    count, elements : int
        How many elements differ, and how many were compared.
    first, last : list of int
        The first and the last that differ, in the order of memory.
    bit : int, optional
        The bit that differs, if it is one bit of one element; bit 0 is the lowest.
    """

    count: int
    elements: int
    first: list[int]
    last: list[int]
    bit: int | None = None

    def __str__(self) -> str:
        if self.bit is not None:
            return f"one bit: bit {self.bit} of element {self.first}"
        last = f", the last at {self.last}" if self.count > 1 else ""
        return f"{self.count} of {self.elements} results, the first at {self.first}{last}"


def difference(x: torch.Tensor, y: torch.Tensor, origin: Sequence[int] = (),
               shape: Sequence[int] | None = None) -> Difference | None:
    """Return where two tensors of one shape and dtype differ, or None; `origin` is added to the places.

    shape: the tensors are consecutive elements of larger ones of this shape, from the element `origin` on.
    """
    integer = _INTEGERS[x.element_size()]
    codes = [z.contiguous().reshape(-1).view(integer) for z in (x, y)]
    changed = codes[0] != codes[1]
    if x.dtype.is_floating_point:
        changed &= ~(x.isnan() & y.isnan()).reshape(-1)
    found = changed.nonzero().reshape(-1)
    if not len(found):
        return None
    start, origin = (0, [*origin, *[0] * x.dim()]) if shape is None else (origin[0], [0] * len(shape))
    first, last = ([int(n) + at for n, at in zip(torch.unravel_index(found[i] + start, shape or x.shape), origin,
                                                 strict=False)] for i in (0, -1))
    bits = int(codes[0][found[0]] ^ codes[1][found[0]]) & (2 ** (8 * x.element_size()) - 1)
    one_bit = len(found) == 1 and bits.bit_count() == 1
    return Difference(len(found), x.numel(), first, last, bits.bit_length() - 1 if one_bit else None)
