"""Optimizer steps on NumPy arrays, with the bits of the steps on a GPU.

Several threads may use one optimizer; their calls take turns.

A step overwrites 16-bit parameters by their master weights. So it undoes values that you write into
a parameter after the optimizer was made: NumPy does not count writes, and a step cannot see them,
unlike in `samebits.torch.optim`. Write ``state[name]["master"]`` (master32), too, or make a new
optimizer. With ``split16`` and ``kahan``, set ``state[name]["low"]`` of the written elements to 0.

Examples
--------
>>> import numpy as np
>>> from samebits.optim import AdamW
>>> w = np.float32([1, 2])
>>> optimizer = AdamW(w, lr=0.5)
>>> optimizer.step(np.float32([0.25, -4]))
>>> w
array([0.495, 2.49 ], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits import _core, array_optimizers
from samebits.array_optimizers import *  # noqa: F403
from samebits.rules import dir_of

if TYPE_CHECKING:
    from samebits.typing import StreamPurpose

__all__ = ["random_stream"]
__all__ += array_optimizers.__all__
__dir__ = dir_of(__name__)


def random_stream(purpose: StreamPurpose, tensor: int, step: int) -> int:
    """Return the number of the random stream of one purpose, tensor and step.

    No two of them are equal, so quantizers and dropout share no random bits with optimizer steps of
    the same seed. Pass the result as ``random_stream=`` of `samebits.convert`, for example.

    Parameters
    ----------
    purpose : str
        quantizer or dropout; weights, first_state and second_state are those of optimizer steps.
    tensor : int
        The tensor's number in the model, below 2^24.
    step : int
        Number of the step; modulo 2^32.

    Examples
    --------
    >>> hex(sb.optim.random_stream("quantizer", 7, 3))
    '0x400000700000003'
    """
    return _core.random_stream_number(purpose, tensor, step)
