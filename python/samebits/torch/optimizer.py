"""What the optimizers of `samebits.torch.optim` share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, cast

import torch

from samebits._core import flag
from samebits.errors import InvalidArgument
from samebits.optimizer_layout import SCALED
from samebits.torch import recorded_calls
from samebits.torch.optimizer_export import exported_state
from samebits.torch.optimizer_groups import (
    OPTIONS,
    KeptOptions,
    check_group,
    kept_options,
    refuse_changes,
    refuse_torch_options,
)
from samebits.torch.optimizer_state import begin_state, loaded_states, parameter_layout, whole_steps
from samebits.torch.parameter_batch import ParameterBatch, Places, Slot, StepCount
from samebits.torch.written_weights import UNKNOWN, Mark, mark_of

if TYPE_CHECKING:
    from samebits.option_types import OptimizerOptions
    from samebits.optimizer_layout import States, Weights
    from samebits.typing import UpdateProfile

    class TorchOptions(OptimizerOptions, total=False):
        """Keyword arguments of every optimizer: also those of torch's that are not needed."""

        amsgrad: bool
        capturable: bool
        differentiable: bool
        foreach: bool | None
        fused: bool | None


def _same(now: Sequence[Any], known: Sequence[Any]) -> bool:
    """Whether two sequences hold the same objects."""
    return len(now) == len(known) and not any(map(operator.is_not, now, known))


class Optimizer(torch.optim.Optimizer):
    """What the optimizers of `samebits.torch.optim` share.

    One call of the library updates all parameters on a device. `step` never waits for the GPU, with
    a GradScaler too, and can be captured into a CUDA graph after one step outside. The state
    ``step`` counts the applied steps of a parameter.
    """

    _rule = ""
    _step_supports_amp_scaling = True
    _takes_grad_mul = True  # samebits.torch.GradScaler sets `grad_mul`

    def __init__(self, params: Any, defaults: dict[str, Any], *, weights: Weights = "master32",
                 states: States | Sequence[States] = "fp32", profile: UpdateProfile = "strict",
                 block: int = 128, seed: int = 0, maximize: bool = False,
                 **torch_options: Any) -> None:
        """Check all arguments.

        Parameters
        ----------
        params : iterable of Parameter, of (str, Parameter) or of dict
            As in ``torch.optim``.
        lr : float or Tensor
            Learning rate; a tensor on the GPU is not read, so it can change between replays of a
            CUDA graph.
        betas, eps, weight_decay, momentum, dampening, nesterov
            As in `samebits.optim`.
        weights, states, profile, block, seed, maximize
            As in `samebits.optim`. All but `maximize` and `seed` may differ between parameter groups.

        Raises
        ------
        InvalidArgument, TypeError
            An argument was refused.
        """
        refuse_torch_options(type(self).__name__, torch_options)
        self._forget()
        super().__init__(params, {**defaults, "weights": weights, "states": states,
                                  "profile": profile, "block": block, "seed": seed,
                                  "maximize": flag(maximize, "maximize")})
        self._common("maximize"), self._common("seed")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a `param_group`; a group that no step could update is refused now."""
        super().add_param_group(param_group)
        try:
            check_group(self._rule, self.param_groups[-1])
        except Exception:
            self.param_groups.pop()
            raise

    def _forget(self) -> None:
        """Begin without batches: the next step makes them from `state`."""
        batches = getattr(self, "_batches", None) or ()
        for batch in batches:
            batch.keep_marks()
        # Of the parameters of dropped batches.
        self._marks: dict[torch.Tensor, Mark] = {
            **getattr(self, "_marks", {}),
            **{slot.parameter: slot.mark for batch in batches for slot in batch.slots}}
        captured = [b for b in batches if b.captured]
        # Memory of CUDA graphs that were captured from dropped batches.
        self._in_graphs: list[Any] = [*getattr(self, "_in_graphs", ()), *captured]
        if self._in_graphs:
            self._in_graphs += self._rates.values()
        self._batches: list[ParameterBatch] | None = None
        # What the batches were made of: parameters, their states, and options of the groups.
        self._known: list[torch.Tensor] = []
        self._sizes: list[int] = []  # of the groups
        self._known_states: list[Any] = []
        self._known_options: list[KeptOptions] = []
        self._new: list[tuple[int, int, torch.Tensor]] = []
        self._rates: dict[torch.device, torch.Tensor] = {}

    def _slot(self, number: int, at: int, parameter: torch.Tensor, state: dict[str, Any]) -> Slot:
        group = self.param_groups[at]
        layout = parameter_layout(self._rule, parameter, group)
        slot = Slot(parameter, number, at, layout, state)
        sharded = slot.memory.numel() != parameter.numel()
        if sharded and self._rule == "lamb":
            raise InvalidArgument("params: LAMB needs whole parameters; got a shard of a DTensor")
        if slot.first_index is None:
            stored = [layout.weights_stored, layout.master_stored, *(s.stored for s in layout.states)]
            if any(s in SCALED or s.endswith("stochastic") for s in stored):
                raise InvalidArgument("params: these formats need a DTensor that is sharded along "
                                      "its first dimension alone")
            slot.first_index = 0
        return slot

    def _find_batches(self) -> list[ParameterBatch]:
        """Return the batches, and note parameters that have none yet."""
        known = [p for group in self.param_groups for p in group["params"]]
        sizes = [len(group["params"]) for group in self.param_groups]
        if (self._batches is not None and _same(known, self._known) and sizes == self._sizes
                and _same(self._states_now(), self._known_states)):
            refuse_changes(self.param_groups, self._known_options,
                           chain.from_iterable(batch.slots for batch in self._batches))
            return self._batches
        self._forget()
        alike: dict[tuple[torch.device, int], list[Slot]] = {}
        for number, (at, parameter) in enumerate(
                (at, p) for at, group in enumerate(self.param_groups) for p in group["params"]):
            state = self.state.get(parameter)
            if not state:
                self._new.append((number, at, parameter))
                continue
            slot = self._slot(number, at, parameter, state)
            slot.mark = self._marks.get(parameter, UNKNOWN)
            steps = whole_steps(state.get("step"), f"parameter {number}: state step")
            alike.setdefault((slot.memory.device, steps), []).append(slot)
        self._batches = []
        for (device, steps), slots in alike.items():
            count = StepCount(device)
            count.steps.fill_(steps)
            self._add(slots, count)
        self._known, self._sizes, self._marks = known, sizes, {}
        self._known_options = [kept_options(group) for group in self.param_groups]
        return self._batches

    def _states_now(self) -> list[Any]:
        """Return the states that are not empty, and their counts of steps: replaced ones differ."""
        states = list(filter(None, self.state.values()))
        try:
            return states + list(map(operator.itemgetter("step"), states))
        except (KeyError, TypeError):  # some are no states of parameters, or lack the count
            return states + [s.get("step") for s in states if isinstance(s, dict)]

    def _add(self, slots: list[Slot], count: StepCount) -> None:
        """Add a batch."""
        assert self._batches is not None
        for slot in slots:
            slot.state["step"] = count.steps
        self._batches.append(ParameterBatch(slots, count))
        self._known_states = []  # noted again at the end of _split()

    def _begin_new(self) -> None:
        """Make states and batches of parameters that have a gradient for the first time."""
        begun: dict[torch.device, list[tuple[Slot, dict[str, Any]]]] = {}
        left = []
        for number, at, parameter in self._new:
            if parameter.grad is None:
                left.append((number, at, parameter))
                continue
            slot = self._slot(number, at, parameter, self.state[parameter])
            state = begin_state(parameter, slot.layout)
            slot.mark = mark_of(parameter)
            begun.setdefault(slot.memory.device, []).append((slot, state))
        self._new = left
        for device, pairs in begun.items():  # only now: a refused parameter leaves no states
            for slot, state in pairs:
                slot.state.update(state)
            self._add([slot for slot, _ in pairs], StepCount(device))

    def _split(self) -> list[tuple[ParameterBatch, list[torch.Tensor], Places]]:
        """Return the batches that have gradients, split so that all of their parameters have one."""
        batches = self._find_batches()
        if self._new:
            self._begin_new()
        work = []
        for batch in list(batches):
            gradients, places = batch.gradients()
            missing = [g is None for g in gradients]
            if all(missing):
                continue
            if any(missing):
                if batch.captured:
                    self._in_graphs.append(batch)
                batch.keep_marks()
                batches.remove(batch)
                self._add(list(compress(batch.slots, missing)), batch.count)
                present = [s for s, none in zip(batch.slots, missing, strict=True) if not none]
                self._add(present, batch.count.split())
                batch = batches[-1]
                gradients, places = batch.gradients()
            work.append((batch, cast("list[torch.Tensor]", gradients), places))
        if not self._known_states:
            self._known_states = self._states_now()
        return work

    @torch.compiler.disable  # there is nothing to fuse
    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        A GradScaler sets the attributes `grad_scale`, by which gradients are divided, and
        `found_inf`: the step is skipped if it is not 0. A step that is refused updates nothing.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss again; called once, before the step.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        recorded_calls.run(recorded_calls.STEP, lambda: recorded_calls.arguments_of_step(self), self._step,
                           lambda: recorded_calls.states_of(self))
        return loss

    def _step(self) -> None:
        sign, seed = -1.0 if self._common("maximize") else 1.0, self._common("seed")
        # Gradients stay in the list, because some are copies that nothing else holds.
        work = [(batch, g, batch.prepared(g, places)) for batch, g, places in self._split()]
        for batch, _, prepared in work:
            settings, rates = self._settings(batch.device)
            batch.count.decide(sign, getattr(self, "found_inf", None),
                               getattr(self, "grad_scale", None), getattr(self, "grad_mul", None))
            batch.step(prepared, settings, rates, seed)

    def _common(self, key: str) -> Any:
        """Return an option that must be the same for all groups."""
        values = {group[key] for group in self.param_groups}
        if len(values) > 1:
            raise InvalidArgument(f"{key}: must be the same for all parameter groups")
        return values.pop()

    def _settings(self, device: torch.device) -> tuple[list[tuple[Any, ...]], torch.Tensor | None]:
        """Return the settings of all groups, and the learning rates if one lies on a GPU."""
        rates = [group["lr"] for group in self.param_groups]
        on_device = [isinstance(r, torch.Tensor) and r.device.type == "cuda" for r in rates]
        known = [0.0 if there else float(r) for r, there in zip(rates, on_device, strict=True)]
        rows = [(self._rule, rate, group)
                for group, rate in zip(self.param_groups, known, strict=True)]
        if not any(on_device):
            return rows, None
        array = self._rates.get(device)
        if array is None or array.numel() != len(rates):
            if array is not None:
                self._in_graphs.append(array)
            array = self._rates[device] = torch.empty(len(rates), device=device)
        for at, (rate, there) in enumerate(zip(rates, on_device, strict=True)):
            if there:
                array[at].copy_(rate.reshape(()))
            else:
                array[at].fill_(known[at])
        return rows, array

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forget()
        for group in self.param_groups:
            for key in OPTIONS:
                group.setdefault(key, self.defaults[key])

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict`: all later steps have the bits of an uninterrupted run.

        Takes states of this class, of ``torch.optim``, of TransformerEngine's FusedAdam and of
        torchao's low-bit optimizers. States in another format are rounded to nearest. Options that
        the state lacks, such as `weights`, stay. If `weights` differs, load the state of the model
        before. Capture CUDA graphs of a step anew. Waits for the GPU. A state that is refused
        changes nothing.
        """
        loaded: dict[torch.Tensor, dict[str, Any]] = {}

        def prepare(_: Any, saved: dict[str, Any]) -> dict[str, Any] | None:
            """Make the states of parameters, which torch would cast; leave it the other entries."""
            counts = [[len(group["params"]) for group in groups]
                      for groups in (saved["param_groups"], self.param_groups)]
            if counts[0] != counts[1]:
                return None  # torch refuses it
            groups = [{**group, **found}  # options that the state lacks stay
                      for group, found in zip(self.param_groups, saved["param_groups"], strict=True)]
            for group, own in zip(groups, self.param_groups, strict=True):
                check_group(self._rule, {**group, "params": own["params"]}, "state_dict")
            loaded.update(loaded_states(self._rule, saved["state"], groups, self.param_groups))
            numbers = {number for group in groups for number in group["params"]}
            others = {key: value for key, value in saved["state"].items() if key not in numbers}
            return {**saved, "state": others, "param_groups": groups}

        def replace(_: Any) -> None:
            self.state.update(loaded)
            self._forget()
            self._marks.update((parameter, mark_of(parameter)) for parameter in loaded)

        # prepare is the last pre-hook, and replace the first post-hook: the caller's pre-hooks can
        # change what is loaded, and the caller's post-hooks see it.
        hooks = [self.register_load_state_dict_pre_hook(prepare),
                 self.register_load_state_dict_post_hook(replace, prepend=True)]
        try:
            super().load_state_dict(state_dict)
        finally:
            for hook in hooks:
                hook.remove()

    def torch_state_dict(self, layout: str = "torch") -> dict[str, Any]:
        """Return the state as an optimizer of another library has it.

        Parameters
        ----------
        layout : str
            ``torch``
                The optimizer of ``torch.optim`` with this name: states in fp32. Master weights and
                low parts are not in it.
            ``transformer_engine``
                TransformerEngine's FusedAdam, of AdamW and Adam: states in fp32, master weights in
                fp32, the low parts of ``split16`` in int16 (`store_param_remainders`).
            ``torchao``
                torchao's AdamWFp8 and AdamFp8, of AdamW and Adam; needs torchao. States in e4m3
                with `block` 256 keep their bits where torchao has blocks: in contiguous parameters
                of at least 4096 elements, a multiple of 256. Other states are in fp32.

        Raises
        ------
        InvalidArgument
            If the layout has no optimizer of this kind, torchao is missing, or the parameters of a
            group for TransformerEngine have different numbers of steps.
        """
        return exported_state(self, self._rule, layout)
