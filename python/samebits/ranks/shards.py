"""Norms of tensors whose elements are spread over ranks, with the bits of the whole tensors.

A sum of squares is a tree over all elements of a tensor (docs/contract.md, section 6). A chunk,
4096 elements that begin at a multiple of 4096, is a subtree. The rank that holds a chunk's first
element owns the chunk. The other ranks send their elements of the chunk: the heads of their shards.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.convert import convert
from samebits.errors import InvalidArgument, RankError
from samebits.list_arguments import named
from samebits.ranks.communicator import Communicator, fields

__all__ = ["ShardNorms", "norm_of_shards"]

_CHUNK: Final[int] = 4096
_SQUARES: Final[int] = 6  # position of the sum of squares in a tensor's statistics

Values = npt.NDArray[np.float32]


class Extent(NamedTuple):
    """The elements [begin, begin + length) that a rank holds of a tensor."""

    begin: int
    length: int
    rank: int
    counts: bool  # False: a copy of a lower rank's shard


@dataclass(frozen=True)
class ShardNorms:
    """L2 norm of all tensors together, and of each tensor by name; the same on every rank."""

    total: float
    tensors: dict[str, float]


@dataclass
class Shard:
    """This rank's elements [begin, begin + count) of a tensor.

    With a `size`, the number of elements of the whole tensor, equal shards of several ranks are
    copies, which count once.
    """

    name: str
    flat: Any  # [count]
    begin: int
    size: int | None = None

    @property
    def count(self) -> int:
        return int(self.flat.shape[0])

    @property
    def head(self) -> int:
        """Number of elements before the first whole chunk; another rank owns their chunk."""
        return _head(self.begin, self.count)

    def pieces(self) -> tuple[Any, Any]:
        """Return the elements before the first and behind the last whole chunk."""
        chunks = (self.count - self.head) // _CHUNK * _CHUNK
        return self.flat[:self.head], self.flat[self.head + chunks:]

    def subtrees(self) -> Iterator[tuple[int, int]]:
        """Yield (first element of `flat`, number of chunks) of the largest whole subtrees."""
        at = self.head
        left = (self.count - at) // _CHUNK
        while left > 0:
            chunk = (self.begin + at) // _CHUNK
            largest = 1 << left.bit_length() - 1
            chunks = min(largest, chunk & -chunk) if chunk else largest
            yield at, chunks
            at += chunks * _CHUNK
            left -= chunks


def _head(begin: int, count: int) -> int:
    return min(count, -begin % _CHUNK)


def norm_of_shards(ranks: Communicator, shards: Any, first: Any, *, threads: int | None = None,
                   backend: str | None = None, stream: Any = None) -> ShardNorms:
    """Return the L2 norm of tensors whose elements are spread over ranks.

    Every rank gets the bits of `l2norm` over the whole tensors in one place. Waits for the device
    and the other ranks. A rank sends 16 bytes per tensor and 8 per subtree. A shard that does not
    begin at a multiple of 4096 also sends its elements up to the next one, in fp32.

    Parameters
    ----------
    ranks : Communicator
        Every rank calls the function.
    shards : array, list of arrays, or dict of str to array
        This rank's elements of each tensor, in fp32, fp16 or bf16, in the order of the tensor's
        elements. An array without elements means that other ranks hold the tensor. Every rank lists
        equally many tensors in the same order. A shard that is not contiguous is copied.
    first : int, list of int, or dict of str to int
        Index in the whole tensor of each shard's first element; ignored for shards without
        elements. If several ranks hold copies of a tensor, one rank passes it, the others pass an
        array without elements.
    threads, backend, stream
        As in `convert`.

    Returns
    -------
    ShardNorms

    Raises
    ------
    InvalidArgument
        This rank's arguments were refused; the other ranks raise RankError.
    RankError
        Raised on every rank, naming tensor and ranks, if shards overlap, leave a gap or differ in
        number.

    Examples
    --------
    >>> sbr.norm_of_shards(sbr.SingleRank(), {"w": np.float32([3, 4])}, {"w": 0}).total
    5.0
    """
    return norm_of(ranks, lambda: _shards(shards, first), threads, backend, stream)


def norm_of(ranks: Communicator, shards: Callable[[], list[Shard]], threads: int | None = None,
            backend: str | None = None, stream: Any = None) -> ShardNorms:
    """Return the norm of this rank's shards() with those of all ranks.

    An exception of shards() is an argument that this rank refuses.
    """
    fields(ranks)
    refusal: Exception | None = None
    try:
        mine = shards()
        sums = _subtree_sums(mine, threads, backend, stream)
        pieces = _on_host([piece for shard in mine for piece in shard.pieces()])
    except Exception as error:  # raised below, when the other ranks know
        refusal, mine, pieces, sums = error, [], [], []
    heads, tails = pieces[::2], pieces[1::2]
    longest = _compare(ranks, refusal, len(mine), sum(map(len, heads)))
    extents = _extents(ranks, mine)
    rests = tails if longest == 0 else _completed(ranks, mine, heads, tails, longest, extents)
    parts = [_part(shard, own, rest, any(e.rank == ranks.rank and e.counts for e in of_tensor))
             for shard, own, rest, of_tensor in zip(mine, sums, rests, extents, strict=True)]
    total, each = _core.sum_shards(ranks, parts)
    return ShardNorms(math.sqrt(total),
                      {shard.name: math.sqrt(x) for shard, x in zip(mine, each, strict=True)})


def _part(shard: Shard, sums: list[tuple[int, float]], rest: Values,
          counts: bool) -> tuple[int, list[tuple[int, float]], Values]:
    """Return the chunks that this rank owns, as samebits._core takes them."""
    if not counts or not (sums or rest.size):
        return 0, [], rest[:0]
    return shard.begin + shard.head, sums, rest


def _shards(shards: Any, first: Any) -> list[Shard]:
    """Return this rank's shards."""
    arrays, names = named(shards, "shards")
    if isinstance(first, Mapping):
        if list(map(str, first)) != names:
            raise InvalidArgument("first: the names of shards are expected, in the same order")
        first = list(first.values())
    begins = list(first) if isinstance(first, (Sequence, np.ndarray)) else [first]
    if len(begins) != len(arrays):
        raise InvalidArgument(f"first: one index per shard is expected, {len(arrays)}; got "
                              f"{len(begins)}")
    result = []
    for array, name, begin in zip(arrays, names, begins, strict=True):
        begin = _core.integer(begin, f"first[{name}]", 0, 2**62 - 1)
        check_shard(array, f"shards[{name}]")
        flat = (array.detach() if hasattr(array, "detach") else array).reshape(-1)
        result.append(Shard(name, flat, begin if flat.shape[0] else 0))
    return result


def check_shard(array: Any, name: str) -> None:
    """Refuse an argument that is no array in fp32, fp16 or bf16."""
    found = _core.describe(array, name)[1]
    if found not in ("fp32", "fp16", "bf16"):
        raise InvalidArgument(f"{name}: fp32, fp16 or bf16 is expected; got {found}")


def _subtree_sums(shards: Sequence[Shard], threads: int | None, backend: str | None,
                  stream: Any) -> list[list[tuple[int, float]]]:
    """Return (number of chunks, sum of squares) of the subtrees of each shard."""
    trees = [list(shard.subtrees()) for shard in shards]
    views, names = [], []
    for shard, subtrees in zip(shards, trees, strict=True):
        for at, chunks in subtrees:
            views.append(shard.flat[at:at + chunks * _CHUNK])
            names.append(shard.name)
    if not views:
        return [[] for _ in shards]
    statistics = iter(_core.inspect(views, names, None, False, (threads, backend, stream))[1])
    return [[(chunks, next(statistics)[_SQUARES]) for _, chunks in subtrees]
            for subtrees in trees]


def _on_host(pieces: list[Any]) -> list[Values]:
    """Return arrays as arrays of fp32 in host memory, by one copy from the device."""
    if not any(piece.shape[0] for piece in pieces):
        return [np.empty(0, np.float32) for _ in pieces]
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(pieces[0], torch.Tensor):
        return [np.asarray(convert(piece, "fp32")) for piece in pieces]
    together = torch.cat([piece.to(torch.float32) for piece in pieces]).cpu().numpy()
    ends = itertools.accumulate(piece.shape[0] for piece in pieces)
    return [together[end - piece.shape[0]:end] for piece, end in zip(pieces, ends, strict=True)]


def _gather(ranks: Communicator, message: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the messages of all ranks [size, ...]."""
    received = _core.gather(ranks, message.tobytes())
    return np.frombuffer(received, message.dtype).reshape(ranks.size, *message.shape)


def _compare(ranks: Communicator, refusal: Exception | None, tensors: int, heads: int) -> int:
    """Raise on every rank if one refuses its arguments or if the ranks' lists differ.

    Returns the largest number of head elements of a rank.
    """
    everyone = _gather(ranks, np.array([refusal is not None, tensors, heads], np.int64))
    if refusal is not None:
        raise refusal
    if everyone[:, 0].any():
        raise RankError(f"norm_of_shards(): rank {int(everyone[:, 0].argmax())} refused its "
                        "arguments; its own error says why")
    if (everyone[:, 1] != tensors).any():
        raise RankError(f"norm_of_shards(): the ranks list between {everyone[:, 1].min()} and "
                        f"{everyone[:, 1].max()} tensors; each must list all, those without "
                        "elements of its own too")
    return int(everyone[:, 2].max())


def _extents(ranks: Communicator, shards: Sequence[Shard]) -> list[list[Extent]]:
    """Return the shards of each tensor on all ranks, in the order of their elements.

    Raises RankError on every rank unless the shards of each tensor fit together.
    """
    own = np.array([(s.begin, s.count) for s in shards], np.int64).reshape(-1, 2)
    everyone = _gather(ranks, own)
    result = []
    for shard, of_tensor in zip(shards, everyone.swapaxes(0, 1), strict=True):
        extents: list[Extent] = []
        for begin, count, r in sorted((int(b), int(n), r) for r, (b, n) in enumerate(of_tensor)):
            copy = (shard.size is not None and bool(extents)
                    and extents[-1][:2] == (begin, count))
            if count:
                extents.append(Extent(begin, count, r, not copy))
        _check_cover(shard, [e for e in extents if e.counts])
        result.append(extents)
    return result


def _completed(ranks: Communicator, shards: Sequence[Shard], heads: Sequence[Values],
               tails: Sequence[Values], longest: int,
               extents: Sequence[Sequence[Extent]]) -> list[Values]:
    """Return the elements behind each shard's last whole chunk, to the end of their chunk.

    They are this rank's own elements, then those of the ranks that hold the next elements.
    """
    message = np.zeros(longest, np.float32)
    own = np.concatenate(heads)
    message[:own.size] = own
    values = _gather(ranks, message)
    used = [0] * ranks.size  # elements of each rank's message
    rests = []
    for shard, tail, of_tensor in zip(shards, tails, extents, strict=True):
        rest = [tail]
        for begin, length, r, counts in of_tensor:
            size = _head(begin, length)
            head = values[r, used[r]:used[r] + size]
            used[r] += size
            open_chunk = tail.size and begin // _CHUNK == (shard.begin + shard.count - 1) // _CHUNK
            if size and open_chunk and counts and begin > shard.begin:
                rest.append(head)
        rests.append(np.concatenate(rest))
    return rests


def _check_cover(shard: Shard, extents: Sequence[Extent]) -> None:
    """Raise RankError unless the shards of a tensor are [0, n) without gap or overlap."""
    end, before = 0, "the tensor begins at"
    for begin, length, r, _ in extents:
        if begin != end:
            what = "overlap" if begin < end else "leave a gap"
            raise RankError(f"norm_of_shards(): {shard.name}: the shards {what}: {before} {end}, "
                            f"rank {r} begins at {begin}")
        end, before = begin + length, f"rank {r} ends at"
    if shard.size not in (None, end):
        raise RankError(f"norm_of_shards(): {shard.name}: the ranks hold {end} of {shard.size} "
                        "elements; pass the group of all ranks that hold shards")
