"""Communicator: the three operations between ranks that samebits uses."""

from __future__ import annotations

import abc
import ctypes
from typing import Any

import numpy as np

from samebits._core import integer
from samebits.formats import choose

__all__ = ["Communicator", "DeviceBuffer", "SingleRank"]


class DeviceBuffer:
    """Bytes in device memory that a `Communicator` sends or receives; valid during one operation.

    ``torch.as_tensor(buffer, device="cuda")`` and ``cupy.asarray(buffer)`` make arrays of uint8
    that share the memory.

    Attributes
    ----------
    address : int
    nbytes : int

    Examples
    --------
    >>> sbr.DeviceBuffer(0x7F0000000000, 64).__cuda_array_interface__["shape"]
    (64,)
    """

    def __init__(self, address: int, nbytes: int) -> None:
        self.address = address
        self.nbytes = nbytes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False),
                "strides": None, "version": 3}


class Communicator(abc.ABC):
    """The ranks of a run, as seen by one rank: the three operations that samebits uses.

    All ranks call the same operations in the same order with buffers of the same size. An exception
    of an operation passes through the samebits call that made it. No operation computes in floating
    point, so no network can change a bit.

    In host memory buffers are NumPy arrays, and an operation is complete when it returns. In device
    memory buffers are `DeviceBuffer` objects, and operations are enqueued on `stream`. Buffers are
    valid until the operation returns; do not write to `sent`.

    Examples
    --------
    Over mpi4py:

    >>> class MpiRanks(Communicator):
    ...     def __init__(self, world):
    ...         self.world = world
    ...     @property
    ...     def rank(self):
    ...         return self.world.Get_rank()
    ...     @property
    ...     def size(self):
    ...         return self.world.Get_size()
    ...     def all_reduce_max(self, words):
    ...         self.world.Allreduce(MPI.IN_PLACE, words, MPI.MAX)
    ...     def all_gather(self, sent, received):
    ...         self.world.Allgather(sent, received)
    ...     def all_to_all(self, sent, received):
    ...         self.world.Alltoall(sent, received)
    """

    @property
    @abc.abstractmethod
    def rank(self) -> int:
        """This rank, 0 .. size - 1."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number of ranks."""

    @property
    def memory(self) -> str:
        """Memory of the buffers: host or device."""
        return "host"

    @property
    def stream(self) -> int:
        """Stream (cudaStream_t) of operations on device memory."""
        return 0

    @abc.abstractmethod
    def all_reduce_max(self, words: Any) -> None:
        """Replace each word by its maximum over all ranks.

        `words` is an array [n] of numpy.uint32. In device memory: a `DeviceBuffer` of 4 * n bytes,
        which hold unsigned integers of 32 bits.
        """

    @abc.abstractmethod
    def all_gather(self, sent: Any, received: Any) -> None:
        """Gather the messages of all ranks: `sent` [n] bytes, `received` [size * n] bytes."""

    @abc.abstractmethod
    def all_to_all(self, sent: Any, received: Any) -> None:
        """Send block r of `sent` [size * n] to rank r; block r of `received` comes from rank r."""


class SingleRank(Communicator):
    """A communicator of one rank in host memory.

    Examples
    --------
    >>> sbr.SingleRank().size
    1
    """

    @property
    def rank(self) -> int:
        """0."""
        return 0

    @property
    def size(self) -> int:
        """1."""
        return 1

    def all_reduce_max(self, words: Any) -> None:
        """Keep the words: there is no other rank."""

    def all_gather(self, sent: Any, received: Any) -> None:
        """Copy the message."""
        received[:] = sent

    def all_to_all(self, sent: Any, received: Any) -> None:
        """Copy the block."""
        received[:] = sent


def fields(ranks: Any) -> tuple[int, int, int, int]:
    """Return rank, size, memory and stream of a communicator, for samebits._core."""
    if not isinstance(ranks, Communicator):
        raise TypeError("ranks: a samebits.ranks.Communicator is expected, such as "
                        f"samebits.torch.ProcessGroup(); got a {type(ranks).__name__}")
    return (integer(ranks.rank, "ranks.rank"), integer(ranks.size, "ranks.size"),
            ("host", "device").index(choose("ranks.memory", ranks.memory, ("host", "device"))),
            integer(ranks.stream, "ranks.stream"))


def _buffer(ranks: Communicator, address: int, nbytes: int) -> Any:
    """Return memory of samebits._core as the communicator takes it."""
    if ranks.memory == "device":
        return DeviceBuffer(address, nbytes)
    if nbytes == 0:
        return np.empty(0, np.uint8)
    return np.frombuffer(memoryview((ctypes.c_uint8 * nbytes).from_address(address)), np.uint8)


def exchange(ranks: Communicator, operation: str, sent: int, sent_bytes: int, received: int,
              received_bytes: int) -> None:
    """Call an operation of a communicator, for samebits._core."""
    into = _buffer(ranks, received, received_bytes)
    if operation == "all_reduce_max":
        ranks.all_reduce_max(into if isinstance(into, DeviceBuffer) else into.view(np.uint32))
    elif operation == "all_gather":
        ranks.all_gather(_buffer(ranks, sent, sent_bytes), into)
    else:
        ranks.all_to_all(_buffer(ranks, sent, sent_bytes), into)
