"""What the optimizers of `samebits.optim` share."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.formats import dtype_of
from samebits.list_arguments import named
from samebits.optimizer_layout import GRADIENTS, Layout, StateArray, check_group
from samebits.safetensors import read_safetensors, write_safetensors

if TYPE_CHECKING:
    from samebits.optimizer_layout import States, Weights
    from samebits.typing import UpdateProfile

_VERSION = "1"
#: Dtypes of arrays that are no formats, and formats of the same size for them in a file of `save`.
_AS_FORMAT: Final[dict[str, Any]] = {"int16": "fp16", "uint8": "e8m0"}


def _format(array: Any, name: str) -> Any:
    """Return the format of a C-contiguous NumPy array."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: a NumPy array is expected; got a {type(array).__name__}")
    if not array.flags.c_contiguous:
        raise InvalidArgument(f"{name}: a C-contiguous array is expected")
    return _core.describe(array, name)[1]


def _dtype(state: StateArray) -> np.dtype[Any]:
    """Return the dtype of an array beside a parameter."""
    return np.dtype(state.codes) if state.codes in _AS_FORMAT else dtype_of(state.codes)


def _begin(state: StateArray, layout: Layout, parameter: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return an array beside a parameter, and its scales, before the first step."""
    codes = np.zeros(parameter.shape, _dtype(state))
    scales = np.zeros(layout.blocks(parameter.size), np.float32)
    if state.begins_as == "parameter":
        _core.store_or_load(True, parameter, codes, scales, state.stored, layout.block)
    return {state.key: codes, **({state.scale_key: scales} if state.scale_key else {})}


def _in_file(array: np.ndarray[Any, Any], name: str) -> tuple[np.ndarray[Any, Any], str]:
    """Return an array and its format in a file of `save`, which has other dtypes as formats."""
    other = _AS_FORMAT.get(array.dtype.name)
    codes = array if other is None else array.view(dtype_of(other))
    return codes, _format(codes, name)


class Optimizer:
    """Parameters, states and the number of applied steps."""

    _rule = ""
    _lock: threading.Lock

    def __init__(self, params: Any, group: dict[str, Any], *, weights: Weights = "master32",
                 states: States | Sequence[States] = "fp32", profile: UpdateProfile = "strict",
                 block: int = 128, seed: int = 0, maximize: bool = False) -> None:
        """Check all arguments, and make the states.

        Parameters
        ----------
        params : array, list of arrays, or dict of str to array
            Parameters in fp32, bf16 or fp16, C-contiguous; each step changes them in place.
        lr : float
            Learning rate, finite and >= 0.
        betas : (float, float)
            Of AdamW, Adam, LAMB and Lion: weights of the old averages, in [0, 1).
        eps : float
            Of AdamW, Adam and LAMB: added to the root of the second moment.
        weight_decay : float
            Finite and >= 0.
        momentum, dampening : float
            Of SGD: weight of the old average, 0 or in [2^-126, 1); part of the gradient that the
            average leaves out, in [0, 1].
        nesterov : bool
            Of SGD: whether a step looks ahead, which needs momentum and no dampening.
        weights : str
            How 16-bit parameters are kept. Parameters in fp32 need no mode; only ``fp8_copy``
            changes them.

            ``master32``
                With fp32 master weights.
            ``direct``
                Alone, rounded to nearest: small updates are lost.
            ``stochastic``
                Alone, rounded stochastically.
            ``split16``
                bf16 with 16 more bits, together fp32.
            ``kahan``
                bf16 with their rounding error in bf16.
            ``master16_scaled``
                With fp16 master weights that have power-of-two scales for blocks.
            ``fp8_copy``
                fp32 parameters with a copy in e4m3 that has scales for blocks.
        states : str or sequence of str
            Format of all states, or of each: fp32, bf16, fp16, bf16_stochastic, fp16_stochastic,
            fp16_scaled, e4m3, e5m2 or dynamic8. The last four have a scale for each block of
            elements; dynamic8 has the 8-bit codes of bitsandbytes' optimizers. fp16 and
            fp16_stochastic are refused for the second moments of AdamW, Adam and LAMB, of which the
            small ones would become 0.
        profile : str
            Whose operations a step takes: strict, fma, torch_foreach, torch_fused, apex_te or
            lightseq. See docs/optimizers.md.
        block : int
            Elements with one scale: 128 or 256.
        seed : int
            Seed of stochastic rounding.
        maximize : bool
            Whether a step follows the gradient instead of its opposite.

        Raises
        ------
        InvalidArgument, TypeError
            An argument was refused. Nothing is left for the first step to refuse but its gradients.
        """
        self._lock = threading.Lock()
        arrays, self._names = named(params, "params")
        self._group = {**group, "profile": profile}
        self._sign = -1.0 if _core.flag(maximize, "maximize") else 1.0
        formats = [_format(array, f"params[{name}]")
                   for name, array in zip(self._names, arrays, strict=True)]
        layouts = check_group(
            self._rule, {**self._group, "weights": weights, "states": states, "block": block,
                         "seed": seed}, group["lr"], dict.fromkeys(formats))
        self._block, self._seed = int(block), int(seed)
        self._steps = 0
        self._params = dict(zip(self._names, arrays, strict=True))
        self._layouts = {}
        self.state: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
        for (name, array), format in zip(self._params.items(), formats, strict=True):
            if not array.flags.writeable:
                raise InvalidArgument(f"params[{name}]: a writable array is expected")
            self._layouts[name] = layouts[format]
            self.state[name] = {}
            for state in layouts[format].arrays():
                self.state[name].update(_begin(state, layouts[format], array))

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    @property
    def applied_steps(self) -> int:
        """Number of applied steps."""
        return self._steps

    def step(self, gradients: Any, *, grad_mul: float = 1.0, applied: bool = True,
             lr: float | None = None, threads: int | None = None,
             backend: str | None = None) -> None:
        """Update all parameters by one step.

        Parameters
        ----------
        gradients : as `params`
            In fp32, bf16 or fp16, C-contiguous, of the parameters' shapes.
        grad_mul : float
            Factor of all gradients, rounded to fp32: 1 / loss scale, times the clip factor.
        applied : bool
            False: the step is skipped. Nothing changes, and the step does not count.
        lr : float, optional
            Learning rate from this step on.
        threads, backend
            As in `samebits.convert`.

        Raises
        ------
        InvalidArgument, TypeError
            An argument was refused; nothing was written.
        """
        with self._lock:
            self._step(gradients, grad_mul, applied, lr, threads, backend)

    def _step(self, gradients: Any, grad_mul: float, applied: bool, lr: float | None,
              threads: int | None, backend: str | None) -> None:
        rate = self._group["lr"] if lr is None else lr
        factor = self._sign * _core.number(grad_mul, "grad_mul")
        applied = _core.flag(applied, "applied")
        settings = (self._rule, rate, self._group)
        arrays, names = named(gradients, "gradients")
        given = dict(zip(names, arrays, strict=True))
        if set(given) != set(self._params):
            raise InvalidArgument("gradients: one for each parameter is expected")
        rows = []
        for number_, (name, parameter) in enumerate(self._params.items()):
            gradient = given[name]
            kind = _format(gradient, f"gradients[{name}]")
            if gradient.shape != parameter.shape or kind not in GRADIENTS:
                raise InvalidArgument(
                    f"gradients[{name}]: shape {parameter.shape} in fp32, bf16 or fp16 is "
                    f"expected; got {gradient.shape} in {kind}")
            self._check_states(name)
            rows.append(self._layouts[name].row(
                parameter.ctypes.data,
                {key: array.ctypes.data for key, array in self.state[name].items()},
                (parameter.size, 0, number_, 0), GRADIENTS[kind]))
        names = self._names if applied else []  # a step without tensors checks the settings
        tensors = _core.OptimizerTensors(rows if applied else [], names, False)
        addresses = np.array([given[name].ctypes.data for name in names], np.uint64)
        listed = tensors.with_gradients(addresses.tobytes())
        listed.step([settings], self._steps + 1, factor, 0, 0, self._seed,
                    (threads, backend, None))
        self._group["lr"] = rate
        self._steps += int(applied)

    def _check_states(self, name: str) -> None:
        """Refuse arrays in `state` that do not fit the parameter."""
        parameter, states = self._params[name], self.state[name]
        layout = self._layouts[name]
        for array in layout.arrays():
            expected = [(array.key, parameter.shape, _dtype(array))]
            if array.scale_key is not None:
                blocks = (layout.blocks(parameter.size),)
                expected.append((array.scale_key, blocks, np.dtype(np.float32)))
            for key, shape, dtype in expected:
                found = states.get(key)
                if (not isinstance(found, np.ndarray) or found.shape != shape or found.dtype != dtype
                        or not found.flags.c_contiguous or not found.flags.writeable):
                    raise InvalidArgument(f"state[{name}][{key}]: a writable, C-contiguous array of "
                                          f"{dtype} with shape {shape} is expected")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters, states, applied steps and seed to the .safetensors file `path`."""
        with self._lock:
            tensors = {}
            for name, parameter in self._params.items():
                tensors[f"{name}.parameter"] = _in_file(parameter, name)
                for key, array in self.state[name].items():
                    tensors[f"{name}.{key}"] = _in_file(array, key)
            write_safetensors(path, tensors, {
                "samebits_optimizer": _VERSION, "rule": self._rule,
                "applied_steps": str(self._steps), "block": str(self._block),
                "seed": str(self._seed)})

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continue from `path`, written by `save`: later steps have the bits of an
        uninterrupted run.

        Rule, block, names, shapes and formats must be those of this object. Use the same settings;
        the file has only the seed.
        """
        tensors, metadata = read_safetensors(path)
        expected = {"samebits_optimizer": _VERSION, "rule": self._rule, "block": str(self._block)}
        for key, value in expected.items():
            if metadata.get(key) != value:
                raise InvalidArgument(f"{os.fspath(path)}: {key} {value} is expected; got "
                                      f"{metadata.get(key)}")
        into = {f"{name}.parameter": parameter for name, parameter in self._params.items()}
        for name, states in self.state.items():
            into.update({f"{name}.{key}": array for key, array in states.items()})
        if set(into) != set(tensors):
            odd = sorted(set(into) ^ set(tensors))[0]
            raise InvalidArgument(f"{os.fspath(path)}: {odd} is only in the "
                                  f"{'file' if odd in tensors else 'optimizer'}")
        for name, array in into.items():
            saved, saved_format = tensors[name]
            expected_format = _in_file(array, name)[1]
            if saved.shape != array.shape or saved_format != expected_format:
                raise InvalidArgument(
                    f"{os.fspath(path)}: {name}: shape {array.shape} in {expected_format} is "
                    f"expected; got {saved.shape} in {saved_format}")
        with self._lock:
            for name, array in into.items():
                array[...] = tensors[name][0].view(array.dtype)
            self._steps = int(metadata["applied_steps"])
            self._seed = int(metadata.get("seed", self._seed))
