"""Records the operators of a PyTorch program: `record`."""

from __future__ import annotations

import math
import os
from typing import Any, Literal

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves
from torch.utils.module_tracker import ModuleTracker

import samebits
from samebits.errors import InvalidArgument
from samebits.torch.trace import Trace, hash_number, hash_text

__all__ = ["record"]

#: Operators whose results have no values yet.
_EMPTY = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_")
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_DTYPES = frozenset([torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
                     torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.bool, torch.uint8,
                     torch.int8, torch.int16, torch.int32, torch.int64])
#: Products, by the place of their operands a and b.
PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2)}
#: Rows and columns of a product that are kept to find its rule.
SAMPLE = 64
#: Bytes of a source that is always kept: numbers that a program makes tensors of.
SMALL = 64


def sample_of(d: torch.Tensor) -> torch.Tensor:
    """Return at most 64 rows and columns of a product, evenly spaced; of a batch, its first product."""
    d = d[0] if d.dim() == 3 else d
    return d[spaced(d.shape[0])][:, spaced(d.shape[1])]


def spaced(n: int) -> torch.Tensor:
    """Return the places of a sample among `n`."""
    return torch.arange(min(n, SAMPLE)) * n // min(n, SAMPLE)


class Recorder(TorchDispatchMode):
    """A context manager that records operators, made by `record`.

    Attributes
    ----------
    trace : Trace
        The recording.
    """

    def __init__(self, path: str | os.PathLike[str] | None, keep: str, names: dict[int, str]) -> None:
        super().__init__()
        self._path, self._keep, self._names = path, keep, names
        self._blocks: dict[int, tuple[StorageWeakRef, int]] = {}
        self._versions: dict[int, int] = {}  # of sources, when an operator last read them
        self._reads: list[Any] = []
        self._numbers: set[int] = set()
        self._hashes: list[tuple[Any, Any, torch.Tensor]] = []  # where each belongs; not waited for yet
        self._tracker = ModuleTracker()
        self.trace = Trace()

    def __enter__(self) -> Recorder:
        self.trace.machine = machine()
        self._tracker.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        super().__exit__(*failure)
        self._tracker.__exit__(*failure)
        for device in {number.device for _, _, number in self._hashes if number.is_cuda}:
            torch.cuda.synchronize(device)  # of whatever stream
        for of, key, number in self._hashes:
            of[key] = hash_text(int(number))
        self.trace.tensors = {name: x.cpu() for name, x in self.trace.tensors.items()}
        if self._path is not None and failure[0] is None:
            self.trace.save(self._path)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = _tensors((args, kwargs))
        if any(type(x) not in _PLAIN for x in tensors):
            return NotImplemented  # a wrapper passes its tensors on
        if torch.is_inference_mode_enabled():  # where operators made of others arrive whole
            TorchDispatchMode.__enter__(self)
            try:
                result = func.decompose(*args, **kwargs)
            finally:
                TorchDispatchMode.__exit__(self, None, None, None)
            if result is not NotImplemented:
                return result
        if func.is_view or func.namespace == "profiler":
            return func(*args, **kwargs)
        with _disable_current_modes():
            written = _tensors([x for argument, x in _arguments(func, args, kwargs) if argument.is_write])
            # Kernels get a CPU tensor of no axis as a number, unless they write it.
            on_gpu = any(x.is_cuda for x in tensors)
            kept = {id(x) for x in written}
            self._numbers = {id(x) for x in tensors if on_gpu and not x.is_cuda and x.dim() == 0} - kept
            self._reads = []
            entry = {"op": str(func), "args": self._encoded(args), "kwargs": self._encoded(kwargs)}
            if self._reads:
                entry["read"] = self._reads
        result = func(*args, **kwargs)
        with _disable_current_modes():
            self._ended(func, written, result, entry)
        return result

    def _ended(self, func: Any, written: list[torch.Tensor], result: Any, entry: dict[str, Any]) -> None:
        """Record what an operator has written."""
        name = func._schema.name.partition("::")[2]
        number = len(self.trace.operators)
        self._numbers = set()
        entry["out"] = self._encoded(result, made=True)
        values = [] if name in _EMPTY else [*{id(x): x for x in [*written, *_tensors(result)]}.values()]
        if "attention" in name:  # without dropout, seeds are memory that nobody wrote
            values = [x for x in values if x.is_floating_point()]
        values = [x for x in values if _is_dense(x)]
        entry["wrote"] = [self._hashed([self._encoded(x)["t"], ""], 1, x) for x in values]
        if torch.are_deterministic_algorithms_enabled():
            entry["deterministic"] = True
        modules = self._tracker.parents - {"Global"}
        if modules:
            entry["module"] = max(modules, key=len) + (" backward" if self._tracker.is_bw else "")
        if name in PRODUCTS and values:
            self._keep_tensor(f"sample.{number}", sample_of(values[0]))
        if self._keep == "all":
            for i, x in enumerate(values):
                self._keep_tensor(f"{number}.{i}", x)
        self.trace.operators.append(entry)

    def _keep_tensor(self, name: str, x: torch.Tensor) -> None:
        """Keep a copy, a large one in host memory."""
        copy = x.detach().clone(memory_format=torch.contiguous_format)
        self.trace.tensors[name] = copy if copy.numel() <= SAMPLE * SAMPLE else copy.cpu()

    def _hashed(self, of: Any, key: Any, x: torch.Tensor) -> Any:
        """Hash a tensor; of[key] gets the text at the end."""
        self._hashes.append((of, key, hash_number(x)))
        return of

    def _encoded(self, x: Any, made: bool = False) -> Any:
        """Return an argument or result for JSON. made: whether the operator has made it."""
        if isinstance(x, torch.Tensor):
            if id(x) in self._numbers:
                return {"number": self._encoded(x.item()), "dtype": str(x.dtype).removeprefix("torch.")}
            if not _is_dense(x):
                return {"tensor": f"{x.dtype}, {x.layout}, {x.device.type}"}
            place = [self._block(x, made), x.storage_offset(), list(x.shape), list(x.stride()),
                     str(x.dtype).removeprefix("torch.")]
            if not made and not x.is_inference():
                self._check_version(x, place)
            return {"t": place}
        if isinstance(x, list | tuple):
            return [self._encoded(y, made) for y in x]
        if isinstance(x, dict):
            return {key: self._encoded(y, made) for key, y in x.items()}
        if isinstance(x, float) and not math.isfinite(x):
            return {"float": str(x)}
        if isinstance(x, bool | int | float | str | None):
            return x
        if isinstance(x, torch.dtype | torch.device | torch.layout | torch.memory_format):
            return {"torch": str(x).removeprefix("torch.")}
        return {"other": type(x).__name__}  # a generator, a storage

    def _check_version(self, x: torch.Tensor, place: list[Any]) -> None:
        """Hash a source that was written since an operator last read it, perhaps not by an operator."""
        if "source" in self.trace.blocks[place[0]]:
            if self._versions.get(place[0], x._version) != x._version:
                self._reads.append(self._hashed([place, ""], 1, x))
            self._versions[place[0]] = x._version

    def _block(self, x: torch.Tensor, made: bool) -> int:
        """Return the number of a tensor's memory block; a new one that no operator made is a source."""
        storage = x.untyped_storage()
        known = self._blocks.get(storage._cdata)
        if known is not None and not known[0].expired():
            return known[1]
        number = len(self.trace.blocks)
        self._blocks[storage._cdata] = (StorageWeakRef(storage), number)
        block: dict[str, Any] = {"bytes": storage.nbytes()}
        if not made:
            content = torch.empty(0, dtype=torch.uint8, device=x.device).set_(storage)
            block["source"] = self._names.get(storage._cdata, f"source {number}")
            self._hashed(block, "hash", content)
            if self._keep != "hashes" or storage.nbytes() <= SMALL:
                self._keep_tensor(f"block.{number}", content)
        self.trace.blocks.append(block)
        return number


def record(path: str | os.PathLike[str] | None = None, *,
           keep: Literal["hashes", "sources", "all"] = "sources", names: Any = None) -> Recorder:
    """Record the operators that run in a ``with`` block: their arguments, and hashes of what they write.

    A dispatch mode sees the operators below autograd and autocast, of the forward pass, the backward pass
    and the optimizer. Those that only look at memory in another way (views) are left out. Kernels that
    bypass PyTorch's dispatcher are not seen.

    Parameters
    ----------
    path : path, optional
        The .safetensors file that is written at the end of the block.
    keep : str
        ``hashes``: of each result; ``sources``: also the values of parameters, states and batches that
        the operators read first; ``all``: also every result.
    names : module or dict of str to Tensor, optional
        Names of sources: a module's parameters and buffers.

    Returns
    -------
    Recorder
        The context manager; `trace` is the recording.

    Examples
    --------
    >>> import torch
    >>> import samebits.torch as sbt
    >>> with sbt.record() as r:
    ...     y = torch.ones(2) + 1
    >>> [entry["op"] for entry in r.trace.operators]
    ['aten.ones.default', 'aten.add.Tensor']
    """
    if keep not in ("hashes", "sources", "all"):
        raise InvalidArgument(f"keep: hashes, sources or all is expected, got {keep!r}")
    if isinstance(names, torch.nn.Module):
        names = {**dict(names.named_parameters()), **dict(names.named_buffers())}
    return Recorder(path, keep, {x.untyped_storage()._cdata: name for name, x in (names or {}).items()})


def _is_dense(x: torch.Tensor) -> bool:
    """Whether a tensor has plain numbers in memory, one code after another."""
    return (x.layout == torch.strided and not x.is_quantized and x.device.type in ("cpu", "cuda")
            and not x.is_complex() and x.element_size() in (1, 2, 4, 8) and x.dtype in _DTYPES)


def _tensors(x: Any) -> list[torch.Tensor]:
    return [y for y in tree_leaves(x) if isinstance(y, torch.Tensor)]


def _arguments(func: Any, args: Any, kwargs: Any) -> list[tuple[Any, Any]]:
    """Return the arguments that were passed, each with its entry in the operator's schema."""
    schema = func._schema.arguments
    return [*zip(schema, args, strict=False), *((a, kwargs[a.name]) for a in schema if a.name in kwargs)]


def machine() -> dict[str, Any]:
    """Return versions, the card, and whether TF32 is allowed."""
    found: dict[str, Any] = {"samebits": samebits.__version__, "torch": torch.__version__}
    if torch.cuda.is_available():
        p = torch.cuda.get_device_properties()
        found |= {"card": p.name, "multiprocessors": p.multi_processor_count, "cuda": torch.version.cuda,
                  "cudnn": torch.backends.cudnn.version(),
                  "tf32": torch.backends.cuda.matmul.allow_tf32}
    return found
