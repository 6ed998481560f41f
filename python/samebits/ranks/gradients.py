"""Sums of gradients over ranks, in a fixed order of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits import _core
from samebits.ranks.communicator import Communicator

if TYPE_CHECKING:
    from typing import Literal

    from samebits.typing import FormatLike, ScaleRule

__all__ = ["reduce_gradients"]


def reduce_gradients(ranks: Communicator, gradients: Any, *, communication: FormatLike = "bf16",
                     factor: float = 1.0, scale: ScaleRule = "pow2",
                     rounding: Literal["nearest_even", "stochastic"] = "nearest_even",
                     seed: int | None = None, random_stream: int = 0, offset: int = 0,
                     random_bits: int = 32, elements_at_once: int = 1 << 22,
                     backend: str | None = None) -> None:
    """Replace the gradients on every rank by their sum over all ranks, in a fixed order of steps.

    Every rank gets the same bits, on any network. Each rank rounds its gradients once into the
    communication dtype; sums are added in fp32, in the order of ranks.

    Parameters
    ----------
    ranks : Communicator
        Every rank calls the function.
    gradients : array, list of arrays, or dict of str to array
        In fp32, fp16 or bf16, in the communicator's memory; written. Every rank lists the same
        shapes and formats in the same order.
    communication : str or dtype
        The communication dtype: fp32, fp16, bf16, e4m3 or e5m2. The last two use one scale per
        tensor for all ranks.
    factor : float
        The sum is multiplied by it; ``1 / ranks.size`` gives the mean.
    scale : str
        Scale rule of e4m3 and e5m2.
    rounding : str
        Into the communication dtype: nearest_even or stochastic.
    seed, random_stream, offset, random_bits : int
        Random bits of stochastic rounding, which needs a seed: another one in each step. Rank k
        uses the stream `random_stream` + k.
    elements_at_once : int
        Largest number of elements in one message. Bounds the memory, never changes a bit.
    backend : str, optional
        CUDA backend, for gradients in device memory.

    Raises
    ------
    InvalidArgument
        This rank's arguments were refused; the other ranks raise RankError.
    RankError
        The ranks' lists or options differ, or another rank refused its arguments. Nothing was
        written on any rank.
    IncompleteWrite
        The communicator failed after some gradients had been replaced.

    Examples
    --------
    >>> gradient = np.float32([1.001, -2])
    >>> sbr.reduce_gradients(sbr.SingleRank(), gradient, communication="bf16")
    >>> gradient.tolist()
    [1.0, -2.0]
    """
    how = (communication, factor, scale, rounding, seed, random_stream, offset, None, random_bits,
           elements_at_once)
    _core.reduce_gradients(ranks, gradients, how, backend)
