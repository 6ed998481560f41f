"""Parameters that were stepped equally often, as one list of the library."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeGuard

import torch

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.optimizer_layout import GRADIENTS, Layout, StateArray
from samebits.torch.kept_lists import KeptLists
from samebits.torch.tensors import FORMATS, local, moved, shard_begin, stream_of, torch_dtype
from samebits.torch.written_weights import UNKNOWN, adopt_written, marks_of, versions_of


class StepCount:
    """The number of applied steps of some parameters, in their memory, and the coming decision.

    Attributes
    ----------
    report : Tensor [64] of uint8
        A samebits::step_report, of which a step reads three fields.
    steps : Tensor [] of int64
        Number of applied steps.
    """

    def __init__(self, device: torch.device, report: torch.Tensor | None = None) -> None:
        self.report = (torch.zeros(64, dtype=torch.uint8, device=device) if report is None
                       else report.clone())
        self.steps = self.report[8:16].view(torch.int64)[0]
        self._grad_mul = self.report[48:52].view(torch.float32)[0]
        self._applied = self.report[60:61].view(torch.bool)[0]
        # What was written last and need not be written again; None: a tensor said it, or a graph may.
        self._written_factor: float | None = None
        self._written_applied = False
        self._in_graph = False

    def split(self) -> StepCount:
        """Return a count of its own for some of the parameters."""
        return StepCount(self.report.device, self.report)

    def decide(self, sign: float, found_inf: torch.Tensor | None, grad_scale: torch.Tensor | None,
               grad_mul: torch.Tensor | None) -> None:
        """Write the decision of a step, on CUDA without waiting.

        Parameters
        ----------
        sign : float
            1, or -1 to maximize.
        found_inf : Tensor [] of float32, optional
            Not 0: the step is skipped.
        grad_scale : Tensor [], optional
            What the gradients must be divided by.
        grad_mul : Tensor [], optional
            What the gradients must be multiplied by; wins over `grad_scale`.
        """
        device = self.report.device
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            self._in_graph = True
        by_tensor = grad_mul is not None or grad_scale is not None
        if grad_mul is not None:
            self._grad_mul.copy_(moved(grad_mul, device).reshape(()))
        elif grad_scale is not None:
            torch.reciprocal(moved(grad_scale, device).reshape(()), out=self._grad_mul)
        elif self._written_factor != sign:
            self._grad_mul.fill_(sign)
        if by_tensor and sign < 0:
            self._grad_mul.neg_()
        self._written_factor = None if by_tensor or self._in_graph else sign
        if found_inf is not None:
            torch.eq(moved(found_inf, device).reshape(()), 0, out=self._applied)
            self.steps.add_(self._applied)
        else:
            if not self._written_applied:
                self._applied.fill_(True)
            self.steps.add_(1)
        self._written_applied = found_inf is None and not self._in_graph

    def take_back(self) -> None:
        """Take back the count of a decided step that was refused."""
        self.steps.add_(self._applied, alpha=-1)


class Slot:
    """One parameter: its memory, formats, states and settings.

    Attributes
    ----------
    parameter : Tensor
    memory : Tensor
        What a step updates: the parameter without autograd, of a DTensor the local shard. Of a
        parameter with gaps in memory a copy without gaps.
    has_gaps : bool
        Whether `memory` is a copy.
    first_index : int or None
        Index of the first element in the unsharded parameter; None if a shard is no range of it.
    number : int
        Number of the parameter, for random streams.
    mark : Mark
        The parameter's mark when its values last agreed with the arrays beside it.
    """

    def __init__(self, parameter: torch.Tensor, number: int, group: int, layout: Layout,
                 state: dict[str, Any]) -> None:
        self.parameter = parameter
        self.memory = local(parameter.detach())
        self._order = memory_order(self.memory)
        self.has_gaps = _has_gaps(self.memory)
        if self.has_gaps:
            self.memory = torch.empty_like(self.memory)
        self.first_index = shard_begin(parameter) if hasattr(parameter, "placements") else 0
        self.number = number
        self.group = group
        self.layout = layout
        self.state = state
        self.mark = UNKNOWN
        # Keys of the arrays whose addresses a step takes.
        self.keys = [key for a in layout.arrays() for key in (a.key, a.scale_key) if key is not None]

    def refuse_change(self) -> torch.Tensor:
        """Return the parameter's memory; refuse other bytes than those that the states were made for."""
        now = local(self.parameter.detach())
        if (now.device != self.memory.device or now.dtype != self.memory.dtype
                or now.shape != self.memory.shape or memory_order(now) != self._order
                or now.is_neg()):
            raise InvalidArgument(
                f"parameter {self.number}: device, dtype, shape or memory order changed since the "
                "optimizer's last step; make a new optimizer or load its state again")
        return now

    def check_states(self) -> None:
        """Refuse states that do not fit the parameter."""
        memory = self.memory
        for array in self.layout.arrays():
            fits = is_array(self.state.get(array.key), memory, codes_dtype(array), memory.shape)
            if fits and memory_order(self.state[array.key]) != memory_order(memory):
                fits = False
            if fits and array.scale_key is not None:
                blocks = torch.Size((self.layout.blocks(memory.numel()),))
                scales = self.state.get(array.scale_key)
                fits = is_array(scales, memory, torch.float32, blocks) and scales.is_contiguous()
            if not fits:
                raise InvalidArgument(
                    f"parameter {self.number}: state {array.key}: {codes_dtype(array)} with the "
                    "device, shape and memory order of the parameter is expected"
                    + (", and one float32 scale for each block" if array.scale_key else ""))

    def in_order(self, grad: torch.Tensor) -> torch.Tensor:
        """Return a gradient of any kind in the memory order of the parameter."""
        if grad.layout is not torch.strided:
            raise InvalidArgument("gradients: sparse gradients are not supported")
        placements = getattr(self.parameter, "placements", None)
        if getattr(grad, "placements", None) != placements:
            raise InvalidArgument(f"gradients: parameter {self.number} has the placements "
                                  f"{placements} of a DTensor, its gradient others")
        grad = local(grad)
        if grad.shape != self.memory.shape:
            raise InvalidArgument(f"gradients: parameter {self.number} has the shape "
                                  f"{tuple(self.memory.shape)}, its gradient {tuple(grad.shape)}")
        if grad.numel() != 0 and grad.data_ptr() == 0:
            raise InvalidArgument(f"gradients: the memory of gradient {self.number} was freed")
        if grad.dtype not in FORMATS:
            raise InvalidArgument(f"gradients: float32, bfloat16 or float16 is expected; got "
                                  f"{grad.dtype}")
        if grad.stride() == self.memory.stride() and not grad.is_neg():
            return grad
        return torch.empty_like(self.memory, dtype=grad.dtype).copy_(grad)

    def row(self, gradient: torch.dtype) -> tuple[Any, ...]:
        """Return the parameter's row of samebits._core.OptimizerTensors."""
        addresses = {key: value.data_ptr() for key, value in self.state.items()
                     if isinstance(value, torch.Tensor)}
        numbers = (self.memory.numel(), self.first_index, self.number, self.group)
        return self.layout.row(self.memory.data_ptr(), addresses, numbers,
                               GRADIENTS[FORMATS[gradient]])


def codes_dtype(array: StateArray) -> torch.dtype:
    """Return the dtype of an array beside a parameter."""
    other = {"int16": torch.int16, "uint8": torch.uint8}.get(array.codes)
    return other or torch_dtype(array.codes)


def memory_order(tensor: torch.Tensor) -> list[int]:
    """Return the strides of all dimensions with more than one element."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


def _has_gaps(memory: torch.Tensor) -> bool:
    """Whether a parameter has gaps in memory; refuse one whose elements may share memory."""
    if memory.numel() == 0:
        return False
    reached = 1  # elements of memory up to the last one of the dimensions before
    for stride, size in sorted((stride, size) for size, stride in
                               zip(memory.shape, memory.stride(), strict=True) if size > 1):
        if stride < reached:
            raise InvalidArgument("params: a parameter whose elements do not share memory is expected; "
                                  f"got shape {tuple(memory.shape)} with strides {memory.stride()}")
        reached += stride * (size - 1)
    return reached != memory.numel()


def is_array(value: Any, memory: torch.Tensor, dtype: torch.dtype, shape: torch.Size) -> TypeGuard[
        torch.Tensor]:
    """Whether a state is a tensor of a dtype and shape on the device of the parameter."""
    return (isinstance(value, torch.Tensor) and value.dtype == dtype and value.shape == shape
            and value.device == memory.device)


Places = tuple[bytes, bytes]  # addresses and kinds: _core.tensor_places()


class _List(NamedTuple):
    core: _core.OptimizerList
    memory: tuple[torch.Tensor, ...]  # tables on the device and on the host


class ParameterBatch:
    """Parameters on one device with one count of applied steps."""

    def __init__(self, slots: list[Slot], count: StepCount) -> None:
        self.slots = slots
        self.count = count
        self.device = count.report.device
        self.parameters = [slot.parameter for slot in slots]
        self._sharded = any(hasattr(p, "to_local") for p in self.parameters)
        self._gaps = [slot for slot in slots if slot.has_gaps]
        self._states = [(slot.state, key) for slot in slots for key in slot.keys]
        self._held: list[torch.Tensor] = []  # keeps the addresses of replaced states from others
        # Of parameters and of states, for which the lists hold.
        self._places: tuple[Places | None, Places | None] = (None, None)
        self._plain: bytes | None = None  # kinds of gradients that need no copy
        # The description of weights and states, for gradients of these dtypes.
        self._tensors: _core.OptimizerTensors | None = None
        self._dtypes: list[torch.dtype] = []
        self._lists: KeptLists[_List] = KeptLists()
        self._old_lists: list[KeptLists[_List]] = []  # graphs use them
        self._has_finer_weights = any(slot.layout.has_finer_weights for slot in slots)
        # Versions and addresses of all parameters: their marks. None: those of the slots hold.
        self._agreed: tuple[list[float], bytes] | None = None
        self._threads = 1
        if self.device.type == "cpu" and sum(s.memory.numel() for s in slots) > 2**16:
            self._threads = torch.get_num_threads()

    @property
    def captured(self) -> bool:
        """Whether a CUDA graph uses memory of this object."""
        return self._lists.captured or bool(self._old_lists)

    def _memory(self) -> list[torch.Tensor]:
        """Return what a step updates: parameters, local shards, and copies without gaps."""
        if not self._sharded and not self._gaps:
            return self.parameters
        return [slot.memory if slot.has_gaps else local(slot.parameter.detach())
                for slot in self.slots]

    def gradients(self) -> tuple[list[torch.Tensor | None], Places]:
        """Return the gradients of all parameters, in the memory order of the parameters."""
        found = [p.grad for p in self.parameters]
        places = _core.tensor_places(found, True)
        if places is not None and places[1] == self._plain:
            return found, places
        self._refuse_changes()
        ordered = [None if grad is None else slot.in_order(grad)
                   for slot, grad in zip(self.slots, found, strict=True)]
        places = _core.tensor_places(ordered, True)
        if places is None:
            raise InvalidArgument("gradients: tensors with memory of their own are expected")
        self._plain = None if any(map(operator.is_not, ordered, found)) else places[1]
        return ordered, places

    def _refuse_changes(self) -> None:
        """Refuse parameters with other bytes than those that the states were made for."""
        now = self._memory()
        known, places = self._places[0], _core.tensor_places(now)
        if known is None or places is None or known[1] != places[1]:
            for slot in self.slots:
                slot.refuse_change()

    def _described(self, dtypes: list[torch.dtype]) -> _core.OptimizerTensors:
        """Return the description of weights and states; refuse those that do not fit."""
        if self._tensors is not None and self._dtypes == dtypes:
            return self._tensors
        for slot in self.slots:
            memory = slot.refuse_change()
            if not slot.has_gaps:
                slot.memory = memory
            slot.check_states()
        self._held = [state[key].detach() for state, key in self._states]
        rows = [slot.row(dtype) for slot, dtype in zip(self.slots, dtypes, strict=True)]
        names = [f"parameter {slot.number}" for slot in self.slots]
        self._tensors = _core.OptimizerTensors(rows, names, self.device.type == "cuda")
        self._dtypes = dtypes
        return self._tensors

    def prepared(self, gradients: Sequence[torch.Tensor], places: Places) -> _List:
        """Return what a step with these gradients needs; refuse memory that does not fit."""
        for slot in self._gaps:
            slot.memory.copy_(slot.refuse_change())
        now = _core.tensor_places(self._memory()), _core.tensor_places(self._states)
        if None in now or now != self._places:
            if self._lists.captured:
                self._old_lists.append(self._lists)
            self._lists, self._tensors = KeptLists(), None
            self._places = now
        return self._lists.find((stream_of(self.device), *places), self.device,
                                lambda capturing: self._make(gradients, places[0], capturing))

    def keep_marks(self) -> None:
        """Write the marks of all parameters to their slots, for another batch."""
        if self._agreed is not None:
            for slot, mark in zip(self.slots, marks_of(*self._agreed), strict=True):
                slot.mark = mark

    def _adopt_written(self) -> None:
        """Make master weights and low parts agree with parameters that other code has written."""
        assert self._places[0] is not None
        now = versions_of(self.parameters, self._sharded), self._places[0][0]
        if now == self._agreed:
            return
        self.keep_marks()
        self._agreed = now
        for slot, memory, mark in zip(self.slots, self._memory(), marks_of(*now), strict=True):
            if slot.layout.has_finer_weights and slot.mark != mark:
                adopt_written(memory.detach(), slot.state, slot.layout)

    def step(self, prepared: _List, settings: list[tuple[Any, ...]],
             learning_rates: torch.Tensor | None, seed: int) -> None:
        """Update all parameters that have a gradient, as the count has decided."""
        if self._has_finer_weights:
            self._adopt_written()
        try:
            prepared.core.step(settings, 1, 1.0, self.count.report.data_ptr(),
                               0 if learning_rates is None else learning_rates.data_ptr(), seed,
                               (self._threads, None, stream_of(self.device)))
        except Exception:
            self.count.take_back()
            raise
        for slot in self._gaps:
            local(slot.parameter.data).copy_(slot.memory)  # counts no write of the parameter
        torch.autograd.graph.increment_version(self.parameters)
        if self._agreed is not None:
            self._agreed = [version + 1 for version in self._agreed[0]], self._agreed[1]

    def _make(self, gradients: Sequence[torch.Tensor], addresses: bytes,
              capturing: bool) -> _List:
        tensors = self._described([g.dtype for g in gradients])
        core = tensors.with_gradients(addresses)
        size = core.tables_size()
        if size == 0:
            return _List(core, ())
        on_host = self._lists.page_locked(size, capturing)
        on_device = torch.empty(size, dtype=torch.uint8, device=self.device)
        core.write_tables(on_host.data_ptr(), size, on_device.data_ptr())
        on_device.copy_(on_host[:size], non_blocking=True)
        return _List(core, (on_device, on_host))
