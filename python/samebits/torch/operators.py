"""A dispatch mode that sees each operator as its kernel gets it: what `record` and `audit` share."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._C._dynamo import eval_frame
from torch._subclasses import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from samebits.torch.recorded_modules import Modules
from samebits.torch.trace import NAMES

#: Operators whose results have no values yet.
_EMPTY = frozenset(["empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
                    "resize_"])
PLAIN = frozenset([torch.Tensor, torch.nn.Parameter])
#: Arguments that have no tensors in them.
_PLAIN_VALUES = frozenset([bool, int, float, str, type(None), torch.dtype, torch.device, torch.layout,
                           torch.memory_format])
_NO_CONTEXT = contextlib.nullcontext()
_STRIDED = torch.strided
_NO_WRAPPER = torch.Tensor.__torch_dispatch__  # also of subclasses that have only Python methods
#: Products, by the place of their operands a and b.
PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2)}


@dataclass(frozen=True)
class Operator:
    """What is needed to know of an operator's kind."""

    name: str  # in a recording
    short: str  # without overload; of ATen's without namespace
    passes: bool  # not seen: it only looks at memory in another way
    writes: tuple[tuple[int, str], ...] = ()  # places and names of arguments that it writes
    random: bool = False  # it draws random numbers
    moves: bool = False  # it gives an argument other memory or another shape
    counts: bool = True  # tensors that it writes count it; below a dispatch mode, those in lists do not

    @classmethod
    def of(cls, func: Any) -> Operator:
        if isinstance(func, torch._ops.HigherOrderOperator):  # a program of torch.compile
            return cls(f"higher_order.{func.name()}", func.name(), False)
        schema = func._schema
        written = [(i, a) for i, a in enumerate(schema.arguments) if a.is_write]
        return cls(str(func), schema.name.removeprefix("aten::"), func.is_view or func.namespace == "profiler",
                   tuple((i, a.name) for i, a in written), torch.Tag.nondeterministic_seeded in func.tags,
                   torch.Tag.inplace_view in func.tags,
                   not any(isinstance(a.type, torch.ListType) for _, a in written))

    @functools.cached_property
    def is_attention(self) -> bool:
        return "attention" in self.short

    def written(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        """Return the arguments that the operator writes."""
        if not self.writes:
            return []
        return tensors_of([args[i] if i < len(args) else kwargs.get(name) for i, name in self.writes])

    def valued(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return those of the written tensors and results that have values."""
        if self.short in _EMPTY:
            return []
        if self.is_attention:  # without dropout, seeds are memory that nobody wrote
            return [x for x in tensors if x.is_floating_point()]
        return tensors

    def is_deterministic(self) -> bool:
        """Whether PyTorch now runs the operator by a deterministic algorithm."""
        return torch._C._get_deterministic_algorithms() and not (  # where it only warns, attention stays
            self.is_attention and torch.is_deterministic_algorithms_warn_only_enabled())


#: The modes whose blocks have been entered.
ACTIVE: list[OperatorMode] = []


class OperatorMode(TorchDispatchMode):
    """Calls `before` and `after` around each operator that is no view; below autograd and autocast."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self._operators: dict[Any, Operator] = {}
        self._dispatching = threading.RLock()  # backward passes of several devices have a thread each
        self._tracker = Modules()

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True  # torch.compile compiles while the mode is active

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # not by a wrapper, which takes as long as the rest: see below

    def __enter__(self) -> Any:
        config: Any = sys.modules.get("torch._inductor.config")  # compiled programs are operators
        self._patch = config.patch(wrap_inductor_compiled_regions=True) if config else _NO_CONTEXT
        self._patch.__enter__()
        self._tracker.__enter__()
        super().__enter__()
        ACTIVE.append(self)
        return self

    def __exit__(self, *failure: Any) -> None:
        ACTIVE.remove(self)
        super().__exit__(*failure)
        self._tracker.__exit__(*failure)
        self._patch.__exit__(None, None, None)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        operator = self._operators.get(func)
        if operator is not None and operator.passes and not torch.is_inference_mode_enabled():
            return func(*args, **(kwargs or {}))
        with self._dispatching:
            return self._dispatched(func, args, kwargs or {})

    def _dispatched(self, func: Any, args: Any, kwargs: Any) -> Any:
        operator = self._operators.get(func)
        if operator is None:
            operator = self._operators[func] = Operator.of(func)
        whole = torch.is_inference_mode_enabled() and isinstance(func, torch._ops.OpOverload)
        if operator.passes and not whole:
            return func(*args, **kwargs)
        tensors = tensors_of([*args, *kwargs.values()])
        if not PLAIN.issuperset(map(type, tensors)) and any(map(_is_wrapper, tensors)):
            fake = any(isinstance(x, FakeTensor) for x in tensors)  # others pass their tensors on
            return func(*args, **kwargs) if fake else NotImplemented
        if whole:  # there operators made of others arrive as one
            TorchDispatchMode.__enter__(self)
            try:
                result = func.decompose(*args, **kwargs)
            finally:
                TorchDispatchMode.__exit__(self, None, None, None)
            if result is not NotImplemented:
                return result
            if operator.passes:
                return func(*args, **kwargs)
        return self._seen(operator, args, kwargs, tensors, lambda: func(*args, **kwargs))

    def _seen(self, operator: Operator, args: Any, kwargs: Any, tensors: list[torch.Tensor],
              run: Callable[[], Any]) -> Any:
        """Run an operator, and see what it reads and writes."""
        state = self.before(operator, args, kwargs, tensors)
        try:
            with self.while_running():
                result = run()
        except BaseException:
            self.failed(operator, state)
            raise
        self.after(operator, result, state)
        return result

    def see(self, operator: Operator, arguments: Callable[[], list[Any]], run: Callable[[], Any]) -> None:
        """Run what PyTorch's dispatcher does not see as an operator; its tensors of no axis are no numbers."""
        with self._dispatching, _disable_current_modes():
            args = arguments()
            self._seen(operator, args, {}, tensors_of(args), run)

    def before(self, operator: Operator, args: Any, kwargs: Any, tensors: list[torch.Tensor]) -> Any:
        """Called before an operator runs, with this mode off; returns what `after` gets."""
        raise NotImplementedError

    def while_running(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context around an operator's run."""
        return _NO_CONTEXT

    def after(self, operator: Operator, result: Any, state: Any) -> None:
        """Called when an operator has run."""
        raise NotImplementedError

    def failed(self, operator: Operator, state: Any) -> None:
        """Called in place of `after` when an operator has raised an error."""

    def written_unseen(self, x: torch.Tensor) -> None:
        """Called when a kernel has written x, and is part of no operator."""

    def module(self) -> str:
        """Return the name of the module that runs, or an empty text."""
        return self._tracker.name()


# torch.compile runs the mode and what it calls as they are.
eval_frame.set_code_exec_strategy(OperatorMode.__torch_dispatch__.__code__, eval_frame._FrameExecStrategy(
    eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP))


def numbers_of(tensors: list[torch.Tensor], written: list[torch.Tensor]) -> set[int]:
    """Return the ids of tensors that kernels get as numbers: CPU tensors of no axis that they do not write."""
    numbers = {id(x) for x in tensors if x.dim() == 0 and x.is_cpu}
    on_gpu = bool(numbers) and any(x.is_cuda for x in tensors)
    return numbers - {id(x) for x in written} if on_gpu else set()


def _is_wrapper(x: torch.Tensor) -> bool:
    return type(x) not in PLAIN and type(x).__torch_dispatch__ is not _NO_WRAPPER


def is_dense(x: torch.Tensor) -> bool:
    """Whether a tensor's memory has its numbers, one code after another."""
    return ((type(x) in PLAIN or not _is_wrapper(x)) and x.dtype in NAMES and x.layout is _STRIDED
            and (x.is_cuda or x.is_cpu) and not x.is_neg() and not x._is_zerotensor())


def tensors_of(arguments: Sequence[Any]) -> list[torch.Tensor]:
    """Return the tensors among arguments, and in lists and dicts of them."""
    found: list[torch.Tensor] = []
    for x in arguments:
        kind = type(x)
        if kind in PLAIN:
            found.append(x)
        elif kind in _PLAIN_VALUES:
            continue
        elif isinstance(x, torch.Tensor):
            found.append(x)
        elif isinstance(x, list | tuple):
            found += x if PLAIN.issuperset(map(type, x)) else tensors_of(x)
        elif isinstance(x, dict):
            found += tensors_of([*x.values()])
    return found


def without_modes() -> Any:
    """Return a context without the modes around this one."""
    return _disable_current_modes() if torch._C._len_torch_dispatch_stack() else _NO_CONTEXT
