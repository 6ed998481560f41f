"""Master weights and low parts of 16-bit parameters that other code has written since the last step."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import torch

from samebits import _core
from samebits.optimizer_layout import Layout
from samebits.torch.tensors import in_memory_order, local


class Mark(NamedTuple):
    """Versions and address of a parameter: other ones mean that its values may have changed."""

    version: float
    address: int


#: Differs from the mark of every parameter.
UNKNOWN: Final = Mark(float("nan"), -1)

_version = operator.attrgetter("_version")


def versions_of(parameters: Sequence[torch.Tensor], sharded: bool) -> list[float]:
    """Return how often torch wrote each parameter; of DTensors, with the writes to the shard."""
    try:
        versions = list(map(_version, parameters))
    except RuntimeError:  # tensors of torch.inference_mode() have no versions
        return [float("nan") for _ in parameters]
    if sharded:
        versions = [v if (shard := local(p)) is p else v + _version(shard)
                    for v, p in zip(versions, parameters, strict=True)]
    return versions


def marks_of(versions: list[float], addresses: bytes) -> Iterable[Mark]:
    """Return the marks of parameters, whose addresses are those of _core.tensor_places()."""
    return map(Mark, versions, memoryview(addresses).cast("q"))


def mark_of(parameter: torch.Tensor) -> Mark:
    """Return the mark of a parameter whose values agree with the arrays beside it."""
    with torch.no_grad():
        return Mark(versions_of([parameter], True)[0], local(parameter).data_ptr())


def adopt_written(weights: torch.Tensor, state: Mapping[str, Any], layout: Layout) -> None:
    """Make a parameter's master weights or low parts agree with the parameter, without waiting.

    Only elements whose stored value and master cannot come from one step change: the stored value
    becomes the master, or the low part becomes 0.

    Parameters
    ----------
    weights : Tensor
        The parameter's values, in fp16 or bf16 without gaps.
    state : mapping
        The arrays beside the parameter, in the same order of memory.
    layout : Layout
        Their formats.
    """
    if weights.numel() == 0:
        return
    if layout.master_stored == "fp32":
        master = state["master"]
        # Two NaNs may differ in bits: then a NaN replaces a NaN.
        written = master.to(weights.dtype).view(torch.int16) != weights.view(torch.int16)
        torch.where(written, weights, master, out=master)
    elif layout.master is not None:
        _adopt_scaled(weights, state["master"], state["master_scale"], layout.block)
    elif layout.low_kind == "split":
        # Low parts are at most half an ulp of any other value. These two would join to a NaN.
        size, low = weights.abs().view(torch.int16), state["low"]
        low.masked_fill_(((size == 0) & (low < 0)) | ((size == 0x7F80) & (low > 0)), 0)
    elif layout.low_kind == "kahan":
        # A step keeps at most half an ulp. The factor makes exactly half an ulp round to the weight.
        low = state["low"]
        error = (1 - 2.0**-9) * low.float()
        low.masked_fill_((weights.float() + error).to(weights.dtype) != weights, 0)


def _adopt_scaled(weights: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor,
                  block: int) -> None:
    """Store blocks of fp16 masters with power-of-two scales anew if one of their weights was written.

    A step rounds one number p to both the master and the weight. So the weight of a master lies
    between those of the ends of the interval whose numbers have the master's code.
    """
    def in_blocks(values: torch.Tensor) -> torch.Tensor:
        flat = in_memory_order(values)
        return torch.nn.functional.pad(flat, (0, -flat.numel() % block)).view(-1, block)

    stored, old, scale = in_blocks(weights).float(), in_blocks(codes), scales[:, None]
    size = old.abs()
    spacing = (size.view(torch.int16) + 1).view(torch.float16).float() - size.float()
    masters, half = old.float() * scale, 0.5 * spacing * scale
    first, last = ((masters + x).to(weights.dtype).float() for x in (-half, half))
    kept = ((first <= stored) & (stored <= last)) | (stored.isnan() & masters.isnan())
    anew = ~kept.all(1, keepdim=True)
    values = torch.where(kept, masters, stored).view(-1)[:codes.numel()]
    new, new_scales = torch.empty_like(values, dtype=codes.dtype), torch.empty_like(scales)
    _core.store_or_load(True, values, new, new_scales, "fp16_scaled", block)
    flat = in_memory_order(codes)
    torch.where(anew.expand_as(old).reshape(-1)[:codes.numel()], new, flat, out=flat)
    torch.where(anew[:, 0], new_scales, scales, out=scales)
