"""The rule by which the loss scale changes, with the names and the state of torch's GradScaler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from samebits.errors import InvalidArgument
from samebits.formats import choose
from samebits.loss_scaler import POLICY_NAMES, LossScaler, settings_of


class _Default(float):
    """A default value of torch's constructor: an argument that is this object was not given."""


class _DefaultCount(int):
    """A default count, as `_Default`."""


INIT_SCALE: Final = _Default(2.0**16)
GROWTH_FACTOR: Final = _Default(2.0)
BACKOFF_FACTOR: Final = _Default(0.5)
GROWTH_INTERVAL: Final = _DefaultCount(2000)

# What policies call the arguments of torch's constructor, where the names differ.
_SETTINGS: Final[dict[str, dict[str, str]]] = {
    "native": {"init_scale": "init_exponent"},
    "megatron": {"init_scale": "initial_scale"},
    "apex_amp": {"growth_interval": "scale_window"},
    "deepspeed": {"growth_factor": "scale_factor", "growth_interval": "scale_window"},
}
# The keys of a policy's own state for torch's "scale" and "_growth_tracker".
_STATE_KEYS: Final[dict[str, tuple[str, str | None]]] = {
    "torch": ("scale", "_growth_tracker"),
    "native": ("scale", "_growth_tracker"),  # it reads and writes torch's
    "apex": ("scale", "_growth_tracker"),
    "apex_amp": ("loss_scale", "unskipped"),
    "megatron": ("scale", "growth_tracker"),
    "deepspeed": ("cur_scale", None),
}
_TORCH_KEYS: Final = ("scale", "growth_factor", "backoff_factor", "growth_interval",
                      "_growth_tracker")


class ScaleRules:
    """A policy, its settings and a state.

    Parameters
    ----------
    policy : str
        A policy of `samebits.LossScaler`.
    given : mapping
        Settings by the names of the arguments of torch's constructor. Defaults of torch count only
        for the policies whose defaults they are, torch and apex.
    settings : mapping
        Settings by the policy's own names.
    """

    def __init__(self, policy: Any, given: Mapping[str, float],
                 settings: Mapping[str, object]) -> None:
        self.policy = policy = choose("policy", policy, POLICY_NAMES)
        own = dict(settings)
        own.update(self._own(name, value) for name, value in given.items()
                   if policy in ("torch", "apex")
                   or not isinstance(value, (_Default, _DefaultCount)))
        self.scaler = LossScaler(policy, **own)

    def _own_name(self, name: str) -> str:
        """Return the policy's name of an argument of torch's constructor."""
        return _SETTINGS.get(self.policy, {}).get(name, name)

    def _own(self, name: str, value: float) -> tuple[str, float]:
        """Return the policy's own setting for an argument of torch's constructor."""
        own = self._own_name(name)
        if own == "init_exponent":
            mantissa, exponent = math.frexp(value)
            if mantissa != 0.5:
                raise InvalidArgument("init_scale: policy native needs a power of two; got "
                                      f"{value}")
            return own, exponent - 1
        return own, int(value) if name == "growth_interval" else float(value)

    def change(self, name: str, value: float) -> None:
        """Change a setting, by the name of torch's argument; the state stays."""
        settings = settings_of(self.scaler._core)
        own, number = self._own(name, value)
        if own not in settings:
            raise InvalidArgument(f"{name}: policy {self.policy} has no setting of this kind")
        changed = LossScaler(self.policy, **{**settings, own: number}).save().split("state\n")[0]
        state = self.scaler.save().split("state\n")[1]
        self.scaler = LossScaler.load(changed + "state\n" + state)

    def torch_keys(self) -> dict[str, Any]:
        """Return the entries of the state_dict of torch's scaler."""
        settings = settings_of(self.scaler._core)

        def setting(name: str, otherwise: float) -> float:
            value = settings.get(self._own_name(name))
            return otherwise if value is None else float.fromhex(value)

        tracker = _STATE_KEYS[self.policy][1]
        return {
            "scale": self.scaler.get_scale(),
            "growth_factor": setting("growth_factor", 2.0),
            "backoff_factor": setting("backoff_factor", 0.5),
            "growth_interval": int(settings[self._own_name("growth_interval")]),
            "_growth_tracker": 0 if tracker is None else int(self.scaler.state_dict()[tracker]),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a state_dict, with the text of this class's state or without."""
        text = state.get("samebits")
        saved = LossScaler.load(text) if text is not None else None
        if saved is not None and saved.policy == self.policy:
            before, self.scaler = self.scaler, saved
            own_keys = self.torch_keys()
            if all(own_keys[key] == state[key] for key in _TORCH_KEYS):
                return
            self.scaler = before  # entries changed after the text was written count more
        entries = {key: float(state[key]) for key in _TORCH_KEYS}
        if self.policy in ("torch", "native"):
            self.scaler.load_state_dict(entries, "torch")
            return
        scale, tracker = _STATE_KEYS[self.policy]
        own = self.scaler.state_dict()
        own[scale] = entries["scale"]
        if tracker is not None:
            own[tracker] = entries["_growth_tracker"]
        self.scaler.load_state_dict(own)
