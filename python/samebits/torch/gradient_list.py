"""The gradients of an optimizer as one list of the library, which one call works on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.torch import recorded_calls
from samebits.torch.kept_lists import KeptLists
from samebits.torch.operators import without_modes
from samebits.torch.tensors import in_memory_order, stream_of


class GradientReport:
    """What the gradients of one optimizer look like, in the memory of the gradients.

    The attributes are views of one tensor that the library writes.

    Attributes
    ----------
    data : Tensor [6] of float64
        All fields; numerics/loss_scale/gradient_report.hpp describes them.
    norm : Tensor [] of float64
        Norm of the unscaled gradients before clipping; NaN if not computed.
    found_inf : Tensor [] of float32
        1 if the optimizer must skip its step, else 0.
    factor : Tensor [] of float32
        1 / scale, times the clip factor.
    divisor : Tensor [] of float32
        What an optimizer divides scaled gradients by.
    flags : Tensor [4] of int32
        Bits of found_inf and amax, and two flags: NaN or Inf, and overflow by unscaling. The
        maximum over ranks is what all ranks together observed.
    """

    def __init__(self, data: torch.Tensor) -> None:
        self.data = data
        words = data.view(torch.float32)
        self.norm = data[0]
        self.found_inf = words[4]
        self.factor = words[8]
        self.divisor = words[9]
        self.flags = data.view(torch.int32)[4:8]

    def clear(self, words: torch.Tensor) -> None:
        """Write a report without findings: no Inf or NaN, norm NaN. `add` adds findings."""
        self.data.zero_()
        self.norm.fill_(math.nan)
        self.data.view(torch.int64)[1].fill_(-1)  # first bad
        self.factor.copy_(words[1])
        self.divisor.copy_(words[0])

    def add(self, found_inf: torch.Tensor) -> None:
        """Add the finding of another check, a flag in float32."""
        self.found_inf.copy_(torch.maximum(self.found_inf, found_inf))
        self.flags[2].copy_(torch.maximum(self.flags[2], found_inf.to(torch.int32)))


def clear_words(device: torch.device) -> torch.Tensor:
    """Return the words of a scale of 1: scale, inverse scale, bad loss, stop."""
    words = torch.ones(4, dtype=torch.float32, device=device)
    words[2:].zero_()
    return words


class _List(NamedTuple):
    core: _core.Gradients
    memory: tuple[torch.Tensor, ...]  # tables and workspace on the device; the tables on the host
    tables: int
    workspace: int
    threads: int  # of the CPU


class GradientLists:
    """Lists of one optimizer's gradients on one device, made when the gradients move.

    A list holds for the addresses of its gradients. Lists that a CUDA graph uses stay as long as
    this object.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._lists: KeptLists[_List] = KeptLists()

    @property
    def captured(self) -> bool:
        """Whether a CUDA graph uses a list of this object."""
        return self._lists.captured

    def unscale(self, gradients: Sequence[torch.Tensor | None], words: torch.Tensor,
                report: GradientReport, *, rewrites: bool = True, only_clips: bool = False,
                skips_overflow: bool = False, max_norm: float, first: int = 0) -> None:
        """Unscale gradients in place and write the report; on CUDA without waiting."""
        options: dict[str, Any] = {"rewrites": rewrites, "only_clips": only_clips, "skips_overflow": skips_overflow,
                                   "max_norm": max_norm, "first": first}
        recorded_calls.run(recorded_calls.UNSCALE if rewrites else recorded_calls.INSPECT,
                           lambda: [list(gradients), words, report.data, options],
                           lambda: self._unscale(gradients, words, report, **options))

    def _unscale(self, gradients: Sequence[torch.Tensor | None], words: torch.Tensor, report: GradientReport, *,
                 rewrites: bool, only_clips: bool, skips_overflow: bool, max_norm: float, first: int) -> None:
        device = report.data.device
        stream = stream_of(device)
        # Work of another stream has its own list, whose tables that stream copied.
        key = (stream, *[None if g is None else (g.data_ptr(), g.numel(), g.dtype)
                         for g in gradients])
        found = self._lists.find(key, device,
                                 lambda capturing: self._make(gradients, device, capturing))
        found.core.unscale(found.tables, found.workspace, words.data_ptr(), report.data.data_ptr(),
                           rewrites, only_clips, skips_overflow, max_norm, first, found.threads,
                           stream)
        if rewrites:
            torch.autograd.graph.increment_version([g for g in gradients if g is not None])

    def _make(self, gradients: Sequence[torch.Tensor | None], device: torch.device,
              capturing: bool) -> _List:
        core = _core.Gradients([None if g is None else in_memory_order(g) for g in gradients],
                               self._names)
        tables, workspace = core.sizes()
        if device.type != "cuda":
            elements = sum(g.numel() for g in gradients if g is not None)
            return _List(core, (), 0, 0, torch.get_num_threads() if elements > 2**16 else 1)
        on_host = self._lists.page_locked(tables, capturing)
        core.write_tables(on_host.data_ptr(), tables)
        with without_modes():  # addresses are nothing for a recording
            on_device = torch.empty(tables, dtype=torch.uint8, device=device)
            on_device.copy_(on_host[:tables], non_blocking=True)
            room = torch.empty(workspace, dtype=torch.uint8, device=device)
        return _List(core, (on_device, room, on_host), on_device.data_ptr(), room.data_ptr(), 1)


def one_device(gradients: Iterable[torch.Tensor], argument: str) -> torch.device:
    """Return the device of all gradients."""
    devices = {g.device for g in gradients}
    if len(devices) != 1:
        listed = ", ".join(sorted(map(str, devices)))
        raise InvalidArgument(f"{argument}: the gradients lie on {listed}, but one norm needs one "
                              "device; call it for the parameters of each device")
    return devices.pop()
