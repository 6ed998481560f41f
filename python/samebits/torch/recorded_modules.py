"""Which module of a model runs, forward or backward, for recordings."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.graph import register_multi_grad_hook
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

_PLAIN = frozenset([torch.Tensor, torch.nn.Parameter, type(None)])
_is_compiling = torch.compiler.is_compiling
_node, _will_run = torch._C._current_autograd_node, torch._C._will_engine_execute_node


class Modules:
    """Knows which modules run. torch.compile sees empty hooks: with the others it would not compile.

    The names are those of torch.utils.module_tracker.ModuleTracker. Backward, a module runs from the gradients of
    its results to those of its arguments, or to the end of the backward pass.
    """

    def __init__(self) -> None:
        self._names = WeakIdKeyDictionary()  # of modules, some of which may be equal
        self._running: dict[str, None] = {}
        self._name = ""  # of the innermost module that runs
        self._hooks: list[Any] = []
        self._waits = False  # for the end of a backward pass

    def __enter__(self) -> None:
        self._hooks = [register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after)]

    def __exit__(self, *failure: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def name(self) -> str:
        """Return the name of the module that runs, or an empty text."""
        name = self._name
        return f"{name} backward" if name and torch._C._current_graph_task_id() != -1 else name

    def _before(self, module: torch.nn.Module, arguments: Any) -> None:
        if not _is_compiling():
            name = self._name_of(module)
            self._begin(name)
            self._at_gradients(arguments, lambda _: self._end(name))

    def _after(self, module: torch.nn.Module, _: Any, results: Any) -> None:
        if not _is_compiling():
            name = self._name_of(module)
            self._end(name)
            self._at_gradients(results, lambda _: self._begin_backward(name))

    def _begin(self, name: str) -> None:
        self._running[name] = None
        self._name = self._innermost()

    def _end(self, name: str) -> None:
        self._running.pop(name, None)
        self._name = self._innermost()

    def _innermost(self) -> str:
        """Return the longest name; of several the one that began last, backward a module may not end."""
        return max(reversed(self._running), key=len, default="")

    def _begin_backward(self, name: str) -> None:
        if not self._waits:
            self._waits = True
            torch.autograd.Variable._execution_engine.queue_callback(self._end_backward)
        self._begin(name)

    def _end_backward(self) -> None:
        self._waits, self._running, self._name = False, {}, ""

    def _at_gradients(self, values: Any, call: Any) -> None:
        """Call a function in each backward pass that has computed the gradients of values."""
        leaves = values if type(values) is tuple else (values,)
        if not _PLAIN.issuperset(map(type, leaves)):
            leaves = tree_leaves(values)
        found = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad]
        if len(found) == 1:  # as register_multi_grad_hook does, but for its time and its reference cycle
            self._hooks.append(found[0].register_hook(lambda _: call(_) if _will_run(_node()) else None))
        elif found:
            self._hooks.append(register_multi_grad_hook(found, call))

    def _name_of(self, module: torch.nn.Module) -> str:
        name = self._names.get(module)
        return self._named(module, type(module).__name__) if name is None else name

    def _named(self, module: torch.nn.Module, name: str) -> str:
        """Name a module and those in it."""
        is_new = module not in self._names
        self._names[module] = name
        if is_new:
            for child, inner in module.named_children():
                self._named(inner, f"{name}.{child}")
        return name
