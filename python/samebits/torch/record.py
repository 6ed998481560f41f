"""Records the operators of a PyTorch program: `record`."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import torch

import samebits
from samebits import _core
from samebits.errors import InvalidArgument
from samebits.torch import recorded_calls
from samebits.torch.launches import Launches
from samebits.torch.operators import PRODUCTS, Operator, OperatorMode, is_dense, numbers_of, tensors_of, without_modes
from samebits.torch.trace import NAMES, HashBuffer, Trace, bytes_of

__all__ = ["record"]

#: Rows and columns of a product that are kept to find its rule.
SAMPLE = 64
#: New objects after which Python looks for those that nobody uses; a step of a small GPT makes about so many.
_OBJECTS = 100_000
#: Bytes of a source that is always kept: numbers that a program makes tensors of.
SMALL = 64


def sample_of(d: torch.Tensor) -> torch.Tensor:
    """Return at most 64 rows and columns of a product, evenly spaced; of a batch, its first product."""
    d = d[0] if d.dim() == 3 else d
    return d[spaced(d.shape[0]), spaced(d.shape[1])]


def spaced(n: int) -> slice:
    """Return the places of a sample among `n`."""
    step = max(n // SAMPLE, 1)
    return slice(0, min(n, SAMPLE) * step, step)


def on_host(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return tensors in host memory; those of a device and format are copied together."""
    found = dict(tensors)
    groups: dict[tuple[torch.device, torch.dtype], list[str]] = {}
    for name, x in tensors.items():
        if not x.is_cpu:
            groups.setdefault((x.device, x.dtype), []).append(name)
    for names in groups.values():
        parts = torch.cat([tensors[name].flatten() for name in names]).cpu()
        for name, part in zip(names, parts.split([tensors[name].numel() for name in names]), strict=True):
            found[name] = part.view(tensors[name].shape).clone()
    return found


class Recorder(OperatorMode):
    """A context manager that records operators, made by `record`.

    Attributes
    ----------
    trace : Trace
        The recording.
    """

    def __init__(self, path: str | os.PathLike[str] | None, keep: str | list[str], names: dict[int, str],
                 kernels: bool) -> None:
        super().__init__()
        self._path, self._keep, self._names = path, keep, names
        self._patterns = ["*"] if keep == "all" else keep if isinstance(keep, list) else []
        self._reads: list[Any] = []  # of this operator: sources that it reads written
        self._hashes = HashBuffer()
        self._launches = Launches() if kernels else None
        self.trace = Trace()
        self._references: list[int] = []  # weak ones to memory blocks
        self._tensors = _core.TensorEncoder(NAMES, self.trace.blocks, self._references)

    def __enter__(self) -> Recorder:
        self.trace.machine = machine()
        if self._launches is not None:
            self._launches.start()
        super().__enter__()
        self._freezes = gc.get_freeze_count() == 0  # else the program or another recorder has frozen objects
        self._thresholds = gc.get_threshold()
        if self._freezes:  # what is recorded would let Python look through all objects again and again
            gc.freeze()
            if 0 < self._thresholds[0] < _OBJECTS:  # 0: the program has switched it off
                gc.set_threshold(_OBJECTS, *self._thresholds[1:])
        return self

    def __exit__(self, *failure: Any) -> None:
        if self._freezes:
            if gc.get_threshold()[0] == _OBJECTS:
                gc.set_threshold(*self._thresholds)
            gc.unfreeze()
        super().__exit__(*failure)
        if self._launches is not None:
            for number, kernels in self._launches.stop().items():
                self.trace.operators[number]["kernels"] = kernels
        self._hashes.finish()
        self.trace.tensors = on_host(self.trace.tensors)
        if self._path is not None and failure[0] is None:
            self.trace.save(self._path)

    def before(self, operator: Operator, args: Any, kwargs: Any, tensors: list[torch.Tensor]) -> Any:
        with without_modes():
            written = operator.written(args, kwargs)
            self._reads = []
            own = operator.name in recorded_calls.RECOMPUTED  # their tensors of no axis are no numbers
            self._tensors.begin(set() if own else numbers_of(tensors, written))
            encode = self._tensors.encode
            entry = {"op": operator.name, "args": encode(args, False, self), "kwargs": encode(kwargs, False, self)}
            if self._reads:
                entry["read"] = self._reads
            self._hashes.enqueue()
            return written, entry

    def while_running(self) -> contextlib.AbstractContextManager[Any]:
        return super().while_running() if self._launches is None else self._launches.of(len(self.trace.operators))

    def written_unseen(self, x: torch.Tensor) -> None:
        self._tensors.written_unseen(x)

    def after(self, operator: Operator, result: Any, state: Any) -> None:
        with without_modes():
            self._ended(operator, result, *state)

    def _ended(self, operator: Operator, result: Any, written: list[torch.Tensor], entry: dict[str, Any]) -> None:
        """Record what an operator has written. PyTorch counts its writes only when this call has returned."""
        number = len(self.trace.operators)
        tensors = self._tensors
        if operator.moves:
            tensors.begin(set())
        entry["out"] = tensors.encode(result, True, self)
        if written:
            tensors.encode(written, False, self)
        pairs: list[list[Any]] = []
        values: list[torch.Tensor] = []
        tensors.wrote(operator.valued(written), operator.counts, pairs, values)
        tensors.wrote(operator.valued(tensors_of((result,))), False, pairs, values)
        entry["wrote"] = pairs
        self._hashes.add(pairs, values)
        self._hashes.enqueue()
        if operator.is_deterministic():
            entry["deterministic"] = True
        if module := self.module():
            entry["module"] = module
        if operator.short in PRODUCTS and values:
            self._keep_tensor(f"sample.{number}", sample_of(values[0]))
        if (operator.random or self._patterns) and self._keeps(operator, entry) and not (
                operator.random and operator.is_attention):
            for i, x in enumerate(values):
                self._keep_tensor(f"{number}.{i}", x)
        if operator.random and not operator.is_attention:
            entry["random"] = True
        self.trace.operators.append(entry)

    def _keeps(self, operator: Operator, entry: dict[str, Any]) -> bool:
        """Whether an operator's results are kept."""
        names = (operator.name, entry.get("module", ""))
        matches = any(fnmatchcase(name, pattern) for name in names for pattern in self._patterns)
        return matches or (operator.random and self._keep != "hashes")

    def _keep_tensor(self, name: str, x: torch.Tensor) -> None:
        """Keep a copy, a large one in host memory."""
        copy = x.detach().clone(memory_format=torch.contiguous_format)
        self.trace.tensors[name] = copy if copy.numel() <= SAMPLE * SAMPLE else copy.cpu()

    # --- Called by the encoder -----------------------------------------------------------------------------

    def _other(self, x: Any) -> Any:
        if isinstance(x, float):
            return {"float": str(x)}
        if isinstance(x, torch.dtype | torch.device | torch.layout | torch.memory_format):
            return {"torch": str(x).removeprefix("torch.")}
        return {"other": type(x).__name__}  # a generator, a storage

    def _not_dense(self, x: torch.Tensor) -> Any:
        return {"tensor": f"{x.dtype}, {x.layout}, {x.device.type}"}

    def _number(self, x: torch.Tensor) -> Any:
        return {"number": self._tensors.encode(x.item(), False, self), "dtype": NAMES[x.dtype]}

    def _written_elsewhere(self, x: torch.Tensor, place: list[Any], unseen: bool) -> None:
        """Hash what was written since an operator last saw it, and not by an operator; keep a few bytes of it."""
        if unseen:  # all of the block may have been written
            x = bytes_of(x.untyped_storage())
            place = [place[0], 0, [*x.shape], [1], NAMES[x.dtype]]
        if x.nbytes <= SMALL:
            self._keep_tensor(f"{len(self.trace.operators)}.read{len(self._reads)}", x)
        self._reads.append([place, ""])
        self._hashes.add(self._reads[-1:], [x])

    def _add_source(self, x: torch.Tensor, storage: torch.UntypedStorage, block: dict[str, Any]) -> None:
        """Note a memory block that no operator made."""
        number = len(self.trace.blocks) - 1
        content = bytes_of(storage)
        block["source"] = self._names.get(storage._cdata, f"source {number}")
        self._hashes.add([block], [content])
        if content.numel() <= SMALL or self._keep != "hashes":
            self._keep_tensor(f"block.{number}", content)

    def __del__(self, free: Any = torch.UntypedStorage._free_weak_ref) -> None:
        for reference in self._references:
            free(reference)


def record(path: str | os.PathLike[str] | None = None, *,
           keep: Literal["hashes", "sources", "all"] | Sequence[str] = "sources", names: Any = None,
           kernels: bool = False) -> Recorder:
    """Record the operators that run in a ``with`` block: their arguments, and hashes of what they write.

    A dispatch mode sees the operators below autograd and autocast, of the forward pass, the backward pass
    and the optimizer. Those that only look at memory in another way (views) are left out. Kernels that
    bypass PyTorch's dispatcher are not seen.

    Parameters
    ----------
    path : path, optional
        The .safetensors file that is written at the end of the block.
    keep : str, or list of str
        ``hashes``: of each result; ``sources``: also the values of parameters, states and batches that
        the operators read first; ``all``: also every result; a list of patterns such as ``aten.mm.*`` or
        ``*.attn*``: sources, and results of the operators and modules whose names match.
    names : module or dict of str to Tensor, optional
        Names of sources: a module's parameters and buffers.
    kernels : bool
        Whether to note the name, grid and block of each CUDA kernel, with PyTorch's profiler, which must
        not run already.

    Returns
    -------
    Recorder
        The context manager; `trace` is the recording.

    Examples
    --------
    >>> with sbt.record() as r:
    ...     y = torch.ones(2) + 1
    >>> [entry["op"] for entry in r.trace.operators]
    ['aten.ones.default', 'aten.add.Tensor']
    """
    if isinstance(keep, str) and keep not in ("hashes", "sources", "all"):
        raise InvalidArgument(f"keep: hashes, sources, all or a list of patterns is expected, got {keep!r}")
    kept = keep if isinstance(keep, str) else [*keep]
    if isinstance(names, torch.nn.Module):
        names = {**dict(names.named_parameters()), **dict(names.named_buffers())}
    sources = {x.untyped_storage()._cdata: name for name, x in (names or {}).items() if is_dense(x)}
    return Recorder(path, kept, sources, kernels)


def machine(device: str | None = None) -> dict[str, Any]:
    """Return versions, the card (by default the current one), and whether TF32 is allowed."""
    found: dict[str, Any] = {"samebits": samebits.__version__, "torch": torch.__version__}
    if torch.cuda.is_available() and device != "cpu":
        p = torch.cuda.get_device_properties(device)
        found |= {"card": p.name, "multiprocessors": p.multi_processor_count, "cuda": torch.version.cuda,
                  "cudnn": torch.backends.cudnn.version(),
                  "tf32": torch.backends.cuda.matmul.allow_tf32}
    return found
