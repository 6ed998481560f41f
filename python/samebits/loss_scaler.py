"""The loss scaler: training code calls it between the backward pass and the optimizer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from samebits import _core
from samebits.list_arguments import named
from samebits.ranks.agreement import RankObservation
from samebits.ranks.communicator import Communicator
from samebits.tensors import InspectReport, UnscaleReport

if TYPE_CHECKING:
    from samebits.typing import ScalingPolicy

__all__ = ["LossScaler", "StepDecision"]

POLICY_NAMES: Final[tuple[str, ...]] = tuple(_core.enumerations()["scaling_policy"])


@dataclass(frozen=True)
class StepDecision:
    """What a policy decided on one step.

    Attributes
    ----------
    applied : bool
        Whether the optimizer could step.
    cause : str
        none, or the cause of the skipped step: nonfinite, overflow, nan, loss, unscaled or
        ranks_differ.
    change : str
        Effect on the scale: kept, grown, backed_off or at_minimum (already at its lower bound).
    stop : bool
        Whether the policy ends the run.
    """

    applied: bool
    cause: str
    change: str
    stop: bool


def _text(value: object) -> str:
    """Return a setting's value as the library reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def settings_of(core: _core.LossScaler) -> dict[str, str]:
    """Return all settings of a scaler as text."""
    lines = core.save().split("state\n")[0].splitlines()[2:]
    return dict(line.split(" ", 1) for line in lines)


class LossScaler:
    """A loss scale that adapts to the gradients.

    Between two `update` calls each optimizer calls `unscale` or `observe`, then `step`; any other
    order raises `CallOrderError`. Optimizers that share a scaler are distinguished by name.
    Several threads may use one scaler; their calls take turns.

    Parameters
    ----------
    policy : str
        native, torch, apex, apex_amp, megatron or deepspeed: the library whose rule and defaults
        are used.
    **settings
        Settings that differ from the policy's defaults, such as ``growth_interval=1000``;
        docs/loss_scaling.md lists them.

    Raises
    ------
    InvalidArgument
        The policy has no such setting, or does not allow the value. The message lists the settings.

    Examples
    --------
    >>> scaler = sb.LossScaler("torch", init_scale=1024)
    >>> scaler.scale(0.5)
    512.0
    >>> gradients = {"w": np.float32([1024, 2048])}
    >>> scaler.unscale(gradients).nonfinite
    0
    >>> scaler.step(lambda: print("stepped with", gradients["w"]))
    stepped with [1. 2.]
    True
    >>> scaler.update().change
    'kept'
    """

    def __init__(self, policy: ScalingPolicy = "native", **settings: object) -> None:
        self._core = _core.LossScaler(
            policy, [(name, _text(value)) for name, value in settings.items()])

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self._core.policy()

    def scale(self, loss: float) -> float:
        """Return loss * scale, rounded to fp32. A loss that is not finite is remembered."""
        return self._core.scale(loss)

    def unscale(self, gradients: Any, optimizer: str = "", *, threads: int | None = None,
                backend: str | None = None, stream: Any = None) -> UnscaleReport:
        """Unscale gradients in place, and record whether the optimizer may step.

        Waits for the device.

        Parameters
        ----------
        gradients : array, list of arrays, or dict of str to array
            In fp32, fp16 or bf16; written.
        optimizer : str
            Name of the optimizer.
        threads, backend, stream
            As in `convert`.

        Raises
        ------
        IncompleteWrite, CudaError
            Some gradients may be unscaled: call `discard` and compute the gradients again.
        """
        arrays, names = named(gradients, "gradients")
        return UnscaleReport(*self._core.unscale(arrays, names, optimizer,
                                                 (threads, backend, stream)))

    def observe(self, seen: InspectReport | None = None, *, nonfinite: bool = False,
                loss_nonfinite: bool = False, unscaled_nonfinite: bool = False,
                amax_bits: int = 0xFFFFFFFF, optimizer: str = "") -> None:
        """Record an observation of scaled gradients, for callers who unscale themselves.

        Parameters
        ----------
        seen : InspectReport, optional
            Result of `inspect` on the scaled gradients; replaces `nonfinite` and `amax_bits`.
        nonfinite, loss_nonfinite, unscaled_nonfinite : bool
            Whether a scaled gradient was NaN or Inf; the loss before scaling was; unscaling made a
            finite gradient Inf.
        amax_bits : int
            Largest magnitude as binary32 bits; FFFFFFFF: not measured.
        optimizer : str
            Name of the optimizer.
        """
        if seen is not None:
            if not isinstance(seen, InspectReport):
                raise TypeError(
                    f"seen: the InspectReport of inspect() is expected; got a {type(seen).__name__}"
                )
            nonfinite, amax_bits = seen.first_bad is not None, seen.total.amax_bits
        self._core.observe(nonfinite, loss_nonfinite, unscaled_nonfinite, amax_bits, optimizer)

    def agree(self, ranks: Communicator, optimizer: str = "") -> RankObservation:
        """Combine an optimizer's observation, losses included, with those of all ranks.

        Call it on every rank between `unscale` or `observe` and `step`. Afterwards the scalers of
        all ranks take the same decisions. Waits for the other ranks.

        Parameters
        ----------
        ranks : samebits.ranks.Communicator
        optimizer : str
            Name of the optimizer.

        Returns
        -------
        RankObservation
            What all ranks observed together.

        Raises
        ------
        RankError
            Raised on every rank if the ranks' scalers have different settings or states.
        CallOrderError
            Neither `unscale` nor `observe` was called before.

        Examples
        --------
        >>> scaler = sb.LossScaler()
        >>> scaler.observe(nonfinite=True)
        >>> scaler.agree(sb.ranks.SingleRank()).bad_rank
        0
        """
        return RankObservation(*_core.agree(self._core, ranks, optimizer))

    def discard(self, optimizer: str = "") -> None:
        """Forget a failed `unscale` of an optimizer, whose gradients were thrown away."""
        self._core.discard(optimizer)

    def step(self, run: Callable[[], object] | None = None, optimizer: str = "") -> bool:
        """Call ``run()``, unless this optimizer's gradients were not finite.

        Returns whether the step is applied. An exception of ``run()`` passes through, and the call
        may then be repeated. Without `run`, the caller steps if the result is True.
        """
        return self._core.step(run, optimizer)

    def update(self) -> StepDecision:
        """End the iteration: the policy sets the next scale.

        Raises
        ------
        ScaleExhausted
            The policy ends the run. The scaler is ready for the next iteration nevertheless.
        """
        return StepDecision(*self._core.update())

    def get_scale(self) -> float:
        """Return the current scale."""
        return self._core.get_scale()

    def inverse_scale(self) -> float:
        """Return 1 / scale, rounded to fp32."""
        return self._core.inverse_scale()

    def updates(self) -> int:
        """Return the number of `update` calls so far."""
        return self._core.updates()

    def applied_steps(self, optimizer: str = "") -> int:
        """Return the number of applied steps of an optimizer."""
        return self._core.applied_steps(optimizer)

    def save(self) -> str:
        """Return settings, state and counts as text for a checkpoint.

        Raises
        ------
        CallOrderError
            Called after `unscale`, `observe` or a loss that is not finite, before `update`.
        """
        return self._core.save()

    @classmethod
    def load(cls, text: str) -> LossScaler:
        """Return a scaler from the text of `save`. The scaler continues with the same bits.

        Examples
        --------
        >>> sb.LossScaler.load(sb.LossScaler("megatron").save()).get_scale()
        4294967296.0
        """
        if not isinstance(text, str):
            raise TypeError(f"text: the text of save() is expected; got a {type(text).__name__}")
        scaler = cls.__new__(cls)
        scaler._core = _core.LossScaler(text)
        return scaler

    def state_dict(self, policy: ScalingPolicy | None = None) -> dict[str, float]:
        """Return the state with the keys of another library.

        Parameters
        ----------
        policy : str, optional
            The library; by default this scaler's own policy, or torch for a native scaler.

        Examples
        --------
        >>> sb.LossScaler("torch").state_dict()["scale"]
        65536.0
        """
        return dict(self._core.export_state(self._library(policy)))

    def load_state_dict(self, state: Mapping[str, float],
                        policy: ScalingPolicy | None = None) -> None:
        """Continue from another library's state_dict; docs/loss_scaling.md lists the keys.

        Parameters
        ----------
        state : mapping
            Keys and numbers of the library.
        policy : str, optional
            The library, as in `state_dict`.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"state: a mapping is expected; got a {type(state).__name__}")
        self._core.import_state(self._library(policy), list(state.items()))

    def _library(self, policy: ScalingPolicy | None) -> str:
        """Return the library whose state is meant."""
        own = "torch" if self.policy == "native" else self.policy
        return own if policy is None else policy

    def __repr__(self) -> str:
        return f"LossScaler({self.policy!r}, scale={self.get_scale():g})"

    def __reduce__(self) -> tuple[Callable[[str], LossScaler], tuple[str]]:
        return type(self).load, (self.save(),)


def _signature() -> inspect.Signature:
    """Return the signature of the constructor, with the settings of all policies."""
    own = inspect.signature(LossScaler.__init__)
    names = dict.fromkeys(name for policy in POLICY_NAMES
                          for name in settings_of(_core.LossScaler(policy, [])))
    return own.replace(parameters=[*list(own.parameters.values())[:2], *(
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names)])


LossScaler.__init__.__signature__ = _signature()  # type: ignore[attr-defined]
