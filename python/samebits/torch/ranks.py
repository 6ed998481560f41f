"""Several ranks over torch.distributed: the communicator, sums of gradients, norms of shards."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.ranks import Communicator, DeviceBuffer, ShardNorms
from samebits.ranks import norm_of_shards as _norm_of_shards
from samebits.ranks import reduce_gradients as _reduce_gradients
from samebits.ranks.shards import Shard, check_shard, norm_of
from samebits.rules import options_of
from samebits.tensors import scale
from samebits.torch.tensors import is_dtensor, local, shard_begin

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from samebits.option_types import ReduceOptions, ShardOptions
    from samebits.typing import FormatLike

__all__ = ["ProcessGroup", "clip_shards_", "norm_of_shards", "reduce_gradients"]

_SIGN = -(2**31)


class ProcessGroup(Communicator):
    """The ranks of a process group of torch.distributed.

    With gloo or MPI the messages are in host memory. With NCCL they are in device memory, on the
    current stream; `samebits.ranks.reduce_gradients` then needs CUDA gradients, and does not wait
    for the GPU.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup, optional
        By default the group of all processes.
    device : str or torch.device, optional
        Memory of the messages and of the gradients: cpu or cuda. By default cuda if the group uses
        NCCL for CUDA tensors, else cpu. Without an index, cuda is the current device.

    Raises
    ------
    InvalidArgument
        This process is not in the group, or the group has no backend for the device.

    Examples
    --------
    >>> import torch.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> ranks = sbt.ProcessGroup()
    >>> ranks.rank, ranks.size, ranks.memory
    (0, 1, 'host')
    >>> dist.destroy_process_group()
    """

    def __init__(self, group: dist.ProcessGroup | None = None,
                 device: str | torch.device | None = None) -> None:
        if not dist.is_available() or not dist.is_initialized():
            raise InvalidArgument("group: torch.distributed has no process group; call "
                                  "torch.distributed.init_process_group() first")
        if dist.get_rank(group) < 0:
            raise InvalidArgument("group: this process is not in the group; build ProcessGroup on "
                                  "its members only")
        backends = _backends(group)
        if device is None:
            on_gpu = backends.get("cuda") == "nccl" and torch.cuda.is_available()
            device = "cuda" if on_gpu or "cpu" not in backends else "cpu"
        self._device = torch.device(device)
        if self._device.type not in ("cpu", "cuda") or self._device.type not in backends:
            raise InvalidArgument(f"device: {device!r} is not one of the group's devices, "
                                  f"{', '.join(sorted(backends))}")
        self._group = group

    @property
    def rank(self) -> int:
        """This process in the group."""
        return dist.get_rank(self._group)

    @property
    def size(self) -> int:
        """The number of processes in the group."""
        return dist.get_world_size(self._group)

    @property
    def memory(self) -> str:
        """Host, or device for CUDA messages."""
        return "device" if self._device.type == "cuda" else "host"

    @property
    def stream(self) -> int:
        """The current stream of the device."""
        if self._device.type != "cuda":
            return 0
        return int(torch.cuda.current_stream(self._device).cuda_stream)

    def _tensor(self, buffer: Any) -> torch.Tensor:
        """Return a buffer as a tensor of bytes that shares its memory."""
        if not isinstance(buffer, DeviceBuffer):
            return torch.from_numpy(buffer.view("u1"))
        index = self._device.index
        device = torch.device("cuda", torch.cuda.current_device() if index is None else index)
        return torch.as_tensor(buffer, device=device)

    def all_reduce_max(self, words: Any) -> None:
        """Replace each word by its maximum: int32 has the order of uint32 with the sign flipped."""
        if not words.nbytes:
            return
        signed = self._tensor(words).view(torch.int32)
        signed.bitwise_xor_(_SIGN)
        dist.all_reduce(signed, dist.ReduceOp.MAX, self._group)
        signed.bitwise_xor_(_SIGN)

    def all_gather(self, sent: Any, received: Any) -> None:
        """Gather the messages of all ranks."""
        if sent.nbytes:
            dist.all_gather_into_tensor(self._tensor(received), self._tensor(sent), self._group)

    def all_to_all(self, sent: Any, received: Any) -> None:
        """Send one block to each rank."""
        if sent.nbytes:
            dist.all_to_all_single(self._tensor(received), self._tensor(sent), group=self._group)

    def __repr__(self) -> str:
        return f"ProcessGroup(rank {self.rank} of {self.size}, {self._device})"


def _backends(group: dist.ProcessGroup | None) -> dict[str, str]:
    """Return the backend of each device of a group."""
    config = dist.get_backend_config(group)
    if ":" in config:
        return dict(pair.split(":", 1) for pair in config.split(","))  # type: ignore[misc]
    return {"cuda": config} if config == "nccl" else {"cpu": config, "cuda": config}


def _ranks(group: Any) -> Communicator:
    """Return the communicator of an argument `group`."""
    return group if isinstance(group, Communicator) else ProcessGroup(group)


def _gradients(parameters: Any) -> dict[str, torch.Tensor]:
    """Return the gradients of parameters by name or position."""
    if isinstance(parameters, torch.nn.Module):
        parameters = dict(parameters.named_parameters())
    if isinstance(parameters, torch.Tensor):
        parameters = [parameters]
    if not isinstance(parameters, (Mapping, Iterable)):
        raise TypeError("parameters: a module, parameters, or a dict of parameters is expected; "
                        f"got a {type(parameters).__name__}")
    pairs = (parameters.items() if isinstance(parameters, Mapping) else
             ((str(i), p) for i, p in enumerate(parameters)))
    return {str(name): p.grad for name, p in pairs if p.grad is not None}


@options_of(_reduce_gradients)
def reduce_gradients(parameters: Any, group: Any = None, *, communication: FormatLike = "bf16",
                     factor: float | None = None, **options: Unpack[ReduceOptions]) -> None:
    """Replace the gradients of replicated parameters by their mean over all ranks.

    Use it in place of DistributedDataParallel's reduction. The order of addition is fixed: every
    rank gets the same bits, with gloo and with NCCL. Steps are those of
    `samebits.ranks.reduce_gradients`. Parameters without a gradient are left out: every rank must
    have gradients of the same parameters.

    Parameters
    ----------
    parameters : torch.nn.Module, iterable of torch.Tensor, or dict of str to torch.Tensor
        Parameters whose ``grad`` is replaced, in fp32, fp16 or bf16.
    group : torch.distributed.ProcessGroup or Communicator, optional
        By default the group of all processes.
    factor : float, optional
        The sum is multiplied by it; by default 1 / number of ranks, which gives the mean.

    Examples
    --------
    >>> w = torch.nn.Parameter(torch.zeros(2))
    >>> w.grad = torch.tensor([1.001, -2.0])
    >>> sbt.reduce_gradients([w], samebits.ranks.SingleRank(), communication="bf16")
    >>> w.grad
    tensor([ 1., -2.])
    """
    ranks = _ranks(group)
    _reduce_gradients(ranks, _local_tensors(_gradients(parameters)), communication=communication,
                      factor=1 / ranks.size if factor is None else factor, **options)


@options_of(_norm_of_shards)
def norm_of_shards(parameters: Any, group: Any = None,
                   **options: Unpack[ShardOptions]) -> ShardNorms:
    """Return the L2 norm of the gradients of sharded parameters, the same bits on every rank.

    The norm has the bits of `samebits.l2norm` over the whole gradients, however FSDP2 cuts them.
    Waits for the GPU and the other ranks.

    Parameters
    ----------
    parameters : torch.nn.Module, iterable of torch.Tensor, or dict of str to torch.Tensor
        Parameters whose ``grad`` is read. The gradient of a sharded parameter is a DTensor that is
        sharded along dimension 0 or replicated. Other gradients are the same on every rank.
        Copies count once.
    group : torch.distributed.ProcessGroup or Communicator, optional
        All ranks that hold shards; by default the group of all processes.

    Raises
    ------
    InvalidArgument
        A DTensor has another placement; the other ranks raise RankError.
    RankError
        Shards overlap, leave a gap or differ in number. Raised on every rank.

    Examples
    --------
    >>> w = torch.nn.Parameter(torch.zeros(2))
    >>> w.grad = torch.tensor([3.0, 4.0])
    >>> sbt.norm_of_shards([w], samebits.ranks.SingleRank()).total
    5.0
    """
    return _norm(_ranks(group), _gradients(parameters), options)


def _norm(ranks: Communicator, gradients: dict[str, Any], options: ShardOptions) -> ShardNorms:
    """Return the norm of the gradients of all ranks."""
    return norm_of(ranks, lambda: [_shard(name, g) for name, g in gradients.items()], **options)


@options_of(_norm_of_shards, norm_of_shards)
def clip_shards_(parameters: Any, max_norm: float, group: Any = None,
                 **options: Unpack[ShardOptions]) -> ShardNorms:
    """Scale the gradients of sharded parameters so that their common L2 norm is at most `max_norm`.

    Takes the place of ``torch.nn.utils.clip_grad_norm_`` with FSDP2. The norm is that of
    `norm_of_shards`; every element has the bits of `samebits.clip` on the whole gradients.

    Parameters
    ----------
    max_norm : float
        At least 0. Gradients whose norm is NaN or Inf stay as they are.

    Returns
    -------
    ShardNorms
        Norms before clipping.

    Examples
    --------
    >>> w = torch.nn.Parameter(torch.zeros(2))
    >>> w.grad = torch.tensor([3.0, 4.0])
    >>> sbt.clip_shards_([w], 1.0, samebits.ranks.SingleRank()).total
    5.0
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    _core.clip_factor(0.0, max_norm)  # refuses max_norm before any message
    gradients = _gradients(parameters)
    norms = _norm(_ranks(group), gradients, options)
    factor = _core.clip_factor(norms.total, max_norm)
    if factor != 1 and math.isfinite(norms.total):
        scale(_local_tensors(gradients), factor, **options)
    return norms


def _local_tensors(gradients: dict[str, Any]) -> dict[str, Any]:
    """Return each gradient, and of a DTensor this rank's part."""
    return {name: local(g) for name, g in gradients.items()}


def _shard(name: str, gradient: Any) -> Shard:
    """Return this rank's elements of a gradient."""
    part, first = _part(gradient, name) if is_dtensor(gradient) else (gradient, 0)
    check_shard(part, f"parameters[{name}]")
    flat = part.detach().reshape(-1)
    return Shard(name, flat, first if flat.numel() else 0, gradient.numel())


def _part(gradient: Any, name: str) -> tuple[torch.Tensor, int]:
    """Return the local shard of a DTensor and the index of its first element."""
    from torch.distributed.tensor import Replicate, Shard

    for placement in gradient.placements:
        if type(placement) not in (Replicate, Shard):
            raise InvalidArgument(
                f"parameters[{name}]: a gradient with placement {placement}; its shards are no "
                "ranges of elements; call .redistribute() to Shard(0) or Replicate() first")
    part = gradient.to_local()
    begin = shard_begin(gradient) if part.numel() else 0
    if begin is None:
        raise InvalidArgument(
            f"parameters[{name}]: a gradient with placements {tuple(gradient.placements)}; only "
            "shards along dimension 0 are ranges of elements; call .redistribute() first")
    return part, begin
