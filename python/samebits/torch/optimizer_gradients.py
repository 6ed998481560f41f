"""The gradients of optimizers, and the names of their parameters."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from samebits.errors import InvalidArgument
from samebits.torch.gradient_list import GradientLists, GradientReport
from samebits.torch.tensors import is_plain, is_without_gaps, local


class _Optimizer:
    """What is remembered of an optimizer: its first parameter's number, and gradient lists."""

    def __init__(self, first: int, names: list[str]) -> None:
        self.first = first
        self.count = len(names)
        self.lists: defaultdict[torch.device, GradientLists] = defaultdict(
            lambda: GradientLists(names))


@dataclass
class Gradients:
    """The gradients of one optimizer now.

    Attributes
    ----------
    lists : dict of device to list
        Gradients in fp32, fp16 and bf16; None for the other parameters.
    others : dict of device to dict of dtype to list
        Gradients that no list of the library can hold.
    meshes : dict of mesh to None
        Meshes over which parameters are sharded, in the order of the parameters: all ranks combine
        their findings in this order.
    """

    known: _Optimizer
    lists: dict[torch.device, list[torch.Tensor | None]] = field(default_factory=dict)
    others: dict[torch.device, dict[torch.dtype, list[torch.Tensor]]] = field(default_factory=dict)
    meshes: dict[Any, None] = field(default_factory=dict)

    def devices(self) -> list[torch.device]:
        """Return the devices of the gradients."""
        return list({**self.lists, **self.others})

    def add(self, at: int, parameter: torch.Tensor, grad: torch.Tensor) -> None:
        """Add the gradient of parameter number `at`, of any kind."""
        if grad.is_sparse:
            # Duplicate indices of FP16 may overflow when they are added.
            if grad.dtype is torch.float16:
                grad = parameter.grad = grad.coalesce()
            grad = grad._values()
        mesh = getattr(grad, "device_mesh", None)
        if mesh is not None:
            self.meshes[mesh] = None
            grad = local(grad)
        if is_without_gaps(grad):
            self.lists.setdefault(grad.device, [None] * self.known.count)[at] = grad
        else:
            self.others.setdefault(grad.device, {}).setdefault(grad.dtype, []).append(grad)

    def check_one_norm(self) -> None:
        """Refuse gradients that one norm on one device does not cover."""
        remedy = "use max_norm=math.inf and clip between unscale_() and step()"
        if self.meshes:
            raise InvalidArgument("max_norm: gradients that are DTensor need the norm of all "
                                  "shards; " + remedy)
        if self.others:
            dtype = next(iter(next(iter(self.others.values()))))
            raise InvalidArgument(f"max_norm: gradients in {dtype}, or with gaps, are not clipped; "
                                  + remedy)
        if len(self.lists) > 1:
            raise InvalidArgument("max_norm: the gradients of an optimizer lie on "
                                  f"{', '.join(map(str, self.lists))}, but one norm needs one "
                                  "device; use one optimizer for each device")

    def unscale(self, device: torch.device, words: torch.Tensor, report: GradientReport, *,
                rewrites: bool, max_norm: float, skips_overflow: bool) -> None:
        """Unscale, or only read, the gradients on one device, and write the report."""
        grads = self.lists.get(device)
        if grads is None:
            report.clear(words)
        else:
            self.known.lists[device].unscale(
                grads, words, report, rewrites=rewrites, skips_overflow=skips_overflow,
                max_norm=max_norm, first=self.known.first)
        for alike in self.others.get(device, {}).values():
            flag = torch.zeros((), dtype=torch.float32, device=device)
            inverse = words[1] if rewrites else torch.ones_like(flag)
            torch._amp_foreach_non_finite_check_and_unscale_(alike, flag, inverse)
            report.add(flag)


class OptimizerGradients:
    """Numbers and names of the parameters of all optimizers, and lists of their gradients."""

    def __init__(self) -> None:
        self._places: list[tuple[int, str]] = []
        self._names: dict[int, str] = {}
        self._optimizers: weakref.WeakKeyDictionary[torch.optim.Optimizer, _Optimizer] = (
            weakref.WeakKeyDictionary())

    def name_parameters(self, model: torch.nn.Module) -> None:
        """Name parameters as ``model.named_parameters()`` does."""
        self._names.update((id(p), name) for name, p in model.named_parameters())

    def name(self, number: int) -> str | None:
        """Return the name of a parameter; None for -1."""
        if number < 0:
            return None
        identity, place = self._places[number]
        return self._names.get(identity, place)

    def _known(self, optimizer: torch.optim.Optimizer) -> _Optimizer:
        count = sum(len(group["params"]) for group in optimizer.param_groups)
        known = self._optimizers.get(optimizer)
        if known is None or known.count != count:
            places = []
            for g, group in enumerate(optimizer.param_groups):
                names = group.get("param_names")
                for p, parameter in enumerate(group["params"]):
                    place = f"group {g}, parameter {p}" if names is None else str(names[p])
                    places.append((id(parameter), place))
            known = _Optimizer(len(self._places), [place for _, place in places])
            self._places += places
            self._optimizers[optimizer] = known
        return known

    def of(self, optimizer: torch.optim.Optimizer) -> Gradients:
        """Return the gradients of an optimizer."""
        known = self._known(optimizer)
        gradients = Gradients(known)
        lists: dict[int, list[torch.Tensor | None]] = {}  # by device index; -1 is the CPU
        at = -1
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                at += 1
                if not isinstance(parameter, torch.Tensor):
                    raise AssertionError(
                        f"expected param to be torch.Tensor, got {type(parameter).__name__}"
                    )
                grad = parameter.grad
                if grad is None:
                    if hasattr(parameter, "device_mesh"):  # other ranks may have its gradient
                        gradients.meshes[parameter.device_mesh] = None
                    continue
                # Most gradients are of this kind; this loop is the host's time of a step.
                if type(grad) is not torch.Tensor or not is_plain(grad):
                    gradients.add(at, parameter, grad)
                    continue
                index = grad.get_device()
                if index not in lists:
                    lists[index] = gradients.lists.setdefault(grad.device, [None] * known.count)
                lists[index][at] = grad
        return gradients


def combine_over_ranks(mesh: Any, reports: dict[torch.device, GradientReport],
                       new_report: Callable[[torch.device], GradientReport]) -> None:
    """Give all ranks of a mesh the findings of all of them.

    A rank without a gradient on the mesh's kind of device takes part with a report without findings.
    """
    if not any(device.type == mesh.device_type for device in reports):
        device = torch.empty(0, device=mesh.device_type).device
        reports[device] = new_report(device)
    for device, report in reports.items():
        for dim in range(mesh.ndim if device.type == mesh.device_type else 0):
            torch.distributed.all_reduce(report.flags, torch.distributed.ReduceOp.MAX,
                                         group=mesh.get_group(dim))
