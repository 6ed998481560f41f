"""GradScaler: torch.amp.GradScaler with other policies, clipping, and reports by name."""

from __future__ import annotations

import inspect
import math
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

import torch
from torch.amp.grad_scaler import GradScaler as TorchGradScaler
from torch.amp.grad_scaler import OptState, _refresh_per_optimizer_state

from samebits._core import flag, integer, number
from samebits.errors import InvalidArgument, ScaleExhausted
from samebits.loss_scaler import LossScaler
from samebits.rules import options_of
from samebits.torch.gradient_list import GradientReport
from samebits.torch.optimizer_gradients import OptimizerGradients, combine_over_ranks
from samebits.torch.resident_scaler import GradStep, ResidentScaler
from samebits.torch.scale_rules import (
    BACKOFF_FACTOR,
    GROWTH_FACTOR,
    GROWTH_INTERVAL,
    INIT_SCALE,
    ScaleRules,
)
from samebits.torch.tensors import moved

__all__ = ["GradScaler", "GradStep"]


@options_of(LossScaler.__init__)
class GradScaler(TorchGradScaler):
    """Scales losses, unscales gradients, and skips steps whose gradients are not finite.

    Takes the place of ``torch.amp.GradScaler``: the same arguments, methods and errors. With
    ``policy="torch"`` scale, skipped steps and parameters are torch's bit for bit. One pass
    unscales and checks all gradients of an optimizer, in fp32, fp16 and bf16. As in torch, `step`
    waits for the GPU unless the optimizer is fused. Besides, only the methods under Notes wait.

    Parameters
    ----------
    device, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        As in torch. Other policies than torch and apex have their own defaults and names for them.
    policy : str
        torch, native, apex, apex_amp, megatron or deepspeed: whose rule sets the scale.
    max_norm : float
        Clips the unscaled gradients of each optimizer to this norm, in the same passes; inf: does
        not clip. Any finite number, such as ``sys.float_info.max``, makes reports contain the norm.
    reports : int
        Number of iterations whose reports are kept until `reports` reads them.
    **settings
        Further settings of the policy, as in `samebits.LossScaler`.

    Notes
    -----
    - FP16 gradients are unscaled; torch refuses them. They lose what is below 2^-24.
    - Policy native learns from losses that are not finite, except in a distributed run, whose
      ranks would see different losses.
    - DTensor gradients are unscaled by local shard; all ranks of their mesh skip a step or none.
      Clip them yourself: ``max_norm`` is refused.
    - `get_scale`, `state_dict`, `load_state_dict`, the setters and
      ``update(new_scale)`` wait for the GPU.
    - A whole iteration can be captured into a CUDA graph after one iteration outside. `reports`
      then has a report of each replay.

    Examples
    --------
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> scaler = sbt.GradScaler("cpu", init_scale=1024.0, growth_interval=1)
    >>> scaler.name_parameters(model)
    >>> for x in (1.0, float("inf")):
    ...     optimizer.zero_grad()
    ...     scaler.scale(model(torch.full((1, 2), x)).sum()).backward()
    ...     scaler.step(optimizer)
    ...     scaler.update()
    >>> for r in scaler.reports():
    ...     print(r.step, r.applied, r.cause, r.first_bad, r.change, r.scale)
    0 True none None grown 1024.0
    1 False overflow weight backed_off 2048.0
    """

    _per_optimizer_states: dict[int, dict[str, Any]]  # torch's

    def __init__(self, device: str = "cuda", init_scale: float = INIT_SCALE,
                 growth_factor: float = GROWTH_FACTOR, backoff_factor: float = BACKOFF_FACTOR,
                 growth_interval: int = GROWTH_INTERVAL, enabled: bool = True, *,
                 policy: str = "torch", max_norm: float = math.inf, reports: int = 256,
                 **settings: object) -> None:
        super().__init__(device, number(init_scale, "init_scale"),
                         number(growth_factor, "growth_factor"),
                         number(backoff_factor, "backoff_factor"),
                         integer(growth_interval, "growth_interval"), flag(enabled, "enabled"))
        if not number(max_norm, "max_norm") >= 0:
            raise InvalidArgument(f"max_norm: a number >= 0 is expected; got {max_norm}")
        integer(reports, "reports", 1, 2**32 - 1)
        given = {"init_scale": init_scale, "growth_factor": growth_factor,
                 "backoff_factor": backoff_factor, "growth_interval": growth_interval}
        self._rules = ScaleRules(policy, given, settings)
        self._max_norm = float(max_norm)
        self._capacity = reports
        self._mirror()
        self._forget_tensors()

    def _forget_tensors(self) -> None:
        """Begin without tensors; the first loss says where they lie."""
        self._resident: ResidentScaler | None = None
        self._gradients = OptimizerGradients()
        self._arrived: deque[GradStep] = deque(maxlen=self._capacity)
        self._dropped = 0

    def _lazy_init_scale_growth_tracker(self, dev: torch.device | str) -> None:
        dev = torch.empty(0, device=dev).device  # "cuda" becomes the current device
        if dev.type not in ("cpu", "cuda"):
            raise InvalidArgument(f"outputs: a tensor on cpu or cuda is expected; got {dev}")
        self._resident = ResidentScaler(self._rules.scaler, dev, self._capacity)
        self._scale = self._resident.scale
        self._growth_tracker = self._resident.words[3]  # torch only asks whether there is one

    def _mirror(self) -> None:
        """Give the attributes of torch's class the values of the rules."""
        if not self._enabled:
            return
        keys = self._rules.torch_keys()
        self._init_scale = keys["scale"]
        self._init_growth_tracker = keys["_growth_tracker"]
        self._growth_factor = keys["growth_factor"]
        self._backoff_factor = keys["backoff_factor"]
        self._growth_interval = keys["growth_interval"]

    def _synchronized(self) -> ScaleRules:
        """Return the rules with the present state; waits for the GPU."""
        if self._resident is not None:
            self._resident.fetch(self._rules.scaler)
            if not self._resident.is_own(self._scale):
                self._adopt()
        return self._rules

    def _adopt(self) -> None:
        """Continue with the scale that the caller wrote into `_scale`, as some programs do."""
        assert self._resident is not None and self._scale is not None
        scale, self._scale = float(self._scale), self._resident.scale
        self._rules.load({**self._rules.torch_keys(), "scale": scale})
        self._continue()

    def _continue(self) -> None:
        """Continue from the state of the rules. Requires `_synchronized` before."""
        self._mirror()
        if self._resident is not None:
            self._drain()
            self._resident.store(self._rules.scaler)

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows to `new_factor`; waits for the GPU."""
        self._synchronized().change("growth_factor", new_factor)
        self._mirror()

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale backs off to `new_factor`; waits for the GPU."""
        self._synchronized().change("backoff_factor", new_factor)
        self._mirror()

    def set_growth_interval(self, new_interval: int) -> None:
        """Let the scale grow after `new_interval` good iterations; waits for the GPU."""
        self._synchronized().change("growth_interval", new_interval)
        self._mirror()

    def _get_growth_tracker(self) -> int:
        return int(self._synchronized().torch_keys()["_growth_tracker"]) if self._enabled else 0

    def state_dict(self) -> dict[str, Any]:
        """Return torch's five entries, and "samebits": settings, state and counts as text.

        Torch's scaler loads the five entries and ignores the text; `samebits.LossScaler.load` reads
        the text. Waits for the GPU. Call it after `update`.
        """
        if not self._enabled:
            return {}
        rules = self._synchronized()
        return {**rules.torch_keys(), "samebits": rules.scaler.save()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from the `state_dict` of this class or of torch's scaler; waits for the GPU.

        A state of this class and policy continues with the same bits. Otherwise the scale and, where
        the policy has one, the growth counter are taken. Only policy torch takes torch's settings.
        """
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved "
                "from a disabled instance of GradScaler."
            )
        self._synchronized().load(state_dict)
        self._continue()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        for name in ("_resident", "_gradients", "_arrived", "_dropped"):
            del state[name]
        state["_rules"] = (self._synchronized().policy, self._rules.scaler.save())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        policy, text = state["_rules"]
        self._rules = ScaleRules(policy, {}, {})
        self._rules.scaler = LossScaler.load(text)
        self._forget_tensors()

    def scale(self, outputs: Any) -> Any:
        """Return outputs times the scale, as torch's method."""
        if self._resident is not None and not self._resident.is_own(self._scale):
            self._synchronized()
        scaled = super().scale(outputs)
        # Ranks would see different losses, and their scales would part.
        if self._enabled and self._rules.policy == "native" and not _is_distributed():
            self._watch(outputs)
        return scaled

    def _watch(self, outputs: Any) -> None:
        """Remember whether a loss is NaN or Inf: 0 times such a loss is NaN, and NaN stays."""
        if isinstance(outputs, (list, tuple)):
            for output in outputs:
                self._watch(output)
        elif isinstance(outputs, torch.Tensor) and outputs.numel() and self._resident is not None:
            loss = outputs.detach()
            loss = loss.reshape(()) if loss.numel() == 1 else loss.abs().amax()
            bad_loss = self._resident.words[2]
            bad_loss.add_(moved(loss, bad_loss.device) * 0)

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Unscale, and clip where ``max_norm`` is finite, the optimizer's gradients in place.

        `step` does it where it was not called. Call it to inspect or change unscaled gradients.
        """
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        optimizer_state = self._per_optimizer_states[id(optimizer)]
        if optimizer_state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if optimizer_state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._observe(optimizer, optimizer_state, rewrites=True)
        optimizer_state["stage"] = OptState.UNSCALED

    def _check_inf_per_device(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        self._check_scale_growth_tracker("_check_inf_per_device")
        optimizer_state = self._per_optimizer_states[id(optimizer)]
        self._observe(optimizer, optimizer_state, rewrites=False)
        found: dict[str, Any] = optimizer_state["found_inf_per_device"]
        return found

    def step(self, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> float | None:
        """Step the optimizer, unless its gradients are not finite; unscale them before if needed.

        Waits for the GPU, unless the optimizer takes the scale and the decision as tensors, as
        torch's fused ones do. Arguments are passed on.
        """
        by_tensors = (self._enabled and "closure" not in kwargs
                      and getattr(optimizer, "_step_supports_amp_scaling", False))
        if by_tensors and "grad_scaler" in inspect.signature(optimizer.step).parameters:
            self._check_unscaled(optimizer)
            by_tensors = False
        if not by_tensors:
            return super().step(optimizer, *args, **kwargs)
        self._check_scale_growth_tracker("step")
        optimizer_state = self._per_optimizer_states[id(optimizer)]
        if optimizer_state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if optimizer_state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        assert self._scale is not None
        found = list(optimizer_state["found_inf_per_device"].values())
        reports = list(optimizer_state.get("reports", {}).values())
        amp: Any = optimizer  # torch sets these attributes without declaring them
        given = getattr(optimizer, "grad_scale", None)
        amp.grad_scale = given
        if optimizer_state["stage"] is not OptState.UNSCALED:
            divisor = reports[0].divisor if len(reports) == 1 else self._scale
            amp.grad_scale = divisor if given is None else divisor * given
            if given is None and len(reports) == 1 and getattr(optimizer, "_takes_grad_mul", False):
                amp.grad_mul = reports[0].factor
        amp.found_inf = found[0] if len(found) == 1 else sum(
            moved(t, self._scale.device) for t in found)
        result: float | None = optimizer.step(*args, **kwargs)
        optimizer_state["stage"] = OptState.STEPPED
        del amp.grad_scale
        del amp.found_inf
        amp.__dict__.pop("grad_mul", None)
        return result

    def _check_unscaled(self, optimizer: torch.optim.Optimizer) -> None:
        """Refuse an optimizer that would divide by the scale itself, and clip nothing."""
        stage = self._per_optimizer_states[id(optimizer)]["stage"]
        if self._max_norm != math.inf and stage is OptState.READY:
            raise InvalidArgument("max_norm: this optimizer asks the scaler for the scale, so its "
                                  "gradients would not be clipped; call unscale_() before step()")

    def update(self, new_scale: float | torch.Tensor | None = None) -> None:
        """Set the scale of the next iteration: by the policy, or to `new_scale`.

        Raises
        ------
        ScaleExhausted
            The policy ends the run. On CUDA raised by a later `update`, when the report arrives.
        """
        if not self._enabled:
            return
        self._check_scale_growth_tracker("update")
        assert self._resident is not None
        if new_scale is not None:
            self._set_scale(new_scale)
        else:
            reports = [report for state in self._per_optimizer_states.values()
                       for report in state.get("reports", {}).values()]
            if not reports:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._resident.update(self._rules.scaler, reports)
        self._resident.begin()
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)
        if any(report.stop for report in self._drain()):
            raise ScaleExhausted(f"policy {self._rules.policy} ends the run: the gradients are not "
                                 "finite, and the policy lowers the scale no further")

    def _set_scale(self, new_scale: float | torch.Tensor) -> None:
        if isinstance(new_scale, torch.Tensor):
            reason = (
                "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                "torch.FloatTensor with requires_grad=False."
            )
            if (new_scale.device.type != self._device or new_scale.numel() != 1
                    or new_scale.requires_grad):
                raise AssertionError(reason)
            new_scale = float(new_scale.item())
        keys = self._synchronized().torch_keys()
        self._rules.load({**keys, "scale": float(new_scale)})
        self._continue()

    def _observe(self, optimizer: torch.optim.Optimizer, optimizer_state: dict[str, Any],
                 rewrites: bool) -> None:
        """Unscale or read the gradients of an optimizer, and write a report for each device."""
        assert self._resident is not None
        if not self._resident.is_own(self._scale):
            self._synchronized()
        gradients = self._gradients.of(optimizer)
        if self._max_norm != math.inf:
            gradients.check_one_norm()
        reports: dict[torch.device, GradientReport] = {}
        for device in gradients.devices():
            reports[device] = self._resident.report(device)
            gradients.unscale(device, moved(self._resident.words, device), reports[device],
                              rewrites=rewrites, max_norm=self._max_norm,
                              skips_overflow=self._rules.policy == "native")
        for mesh in gradients.meshes:
            combine_over_ranks(mesh, reports, self._report_without_findings)
        optimizer_state["reports"] = reports
        optimizer_state["found_inf_per_device"] = {
            device: report.found_inf for device, report in reports.items()}

    def _report_without_findings(self, device: torch.device) -> GradientReport:
        assert self._resident is not None
        report = self._resident.report(device)
        report.clear(moved(self._resident.words, device))
        return report

    def name_parameters(self, model: torch.nn.Module) -> None:
        """Let reports name the parameters as ``model.named_parameters()`` does.

        Without it they have the names that the optimizer was given, or are named by group and
        position, such as "group 0, parameter 3".
        """
        self._gradients.name_parameters(model)

    def _drain(self) -> list[GradStep]:
        """Take over the reports that have arrived; does not wait."""
        if self._resident is None:
            return []
        new = self._resident.poll(self._gradients.name, self._max_norm != math.inf)
        self._dropped += max(0, len(self._arrived) + len(new) - self._capacity)
        self._arrived.extend(new)
        return new

    def reports(self) -> Iterator[GradStep]:
        """Iterate over the reports that have arrived and were not read; never waits.

        Reports arrive in order, on CUDA some time after their `update`.
        """
        self._drain()
        while self._arrived:
            yield self._arrived.popleft()

    def lost_reports(self) -> int:
        """Return the number of reports that were dropped because nobody read them in time."""
        self._drain()
        return self._dropped + (self._resident.lost if self._resident is not None else 0)


def _is_distributed() -> bool:
    return (torch.distributed.is_available() and torch.distributed.is_initialized()
            and torch.distributed.get_world_size() > 1)
