"""The random Hadamard transform of 16 elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from samebits import _core
from samebits.formats import NAMES, choose, dtype_of, format_index
from samebits.packing import shape_of

if TYPE_CHECKING:
    from samebits.typing import FormatLike, TensorUnit

__all__ = ["TRANSFORMER_ENGINE_SIGNS", "random_hadamard"]

UNITS: Final = [name.replace("-", "_") for name in _core.enumerations()["tensor_unit"]]
#: TransformerEngine's signs: bit i is set if element i of a group is negated.
TRANSFORMER_ENGINE_SIGNS: Final = 0xD7E8


def random_hadamard(x: Any, *, signs: int = TRANSFORMER_ENGINE_SIGNS,
                    unit: TensorUnit = "blackwell_mma_sync", to: FormatLike = "bf16",
                    format: FormatLike | None = None, threads: int | None = None) -> Any:
    """Multiply each group of 16 elements of a row by diag(signs) and the Hadamard matrix / 4.

    TransformerEngine transforms the operands of the weights' gradient so, along the axis over which
    that product sums, before it quantizes them to NVFP4.

    Parameters
    ----------
    x : array [..., cols]
        In bf16, in host memory; cols a multiple of 16.
    signs : int
        Bit i is set if element i of a group is negated.
    unit : str
        The tensor core whose sum of 16 products is taken.
    to : str or dtype
        bf16 or fp32.
    format, threads
        As in `convert`.

    Returns
    -------
    numpy.ndarray [..., cols]

    Examples
    --------
    >>> x = sb.convert(np.eye(1, 16, dtype=np.float32), "bf16")
    >>> sb.random_hadamard(x, to="fp32")[0, :4]
    array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    name = NAMES[format_index(to, "to")]
    out = np.empty(shape_of(x, "x"), dtype_of(name))
    unit = choose("unit", unit, UNITS)
    _core.random_hadamard(x, format, _core.integer(signs, "signs", 0, 0xFFFF),
                          unit.replace("_", "-"), out, name, threads)
    return out
