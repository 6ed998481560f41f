"""What several functions share: keyword arguments, their documentation, and the check of a seed."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from samebits.errors import InvalidArgument

_Target = TypeVar("_Target", bound=Callable[..., Any])
#: The order of a docstring's sections.
_ORDER: Final = ("Parameters", "Returns", "Raises", "Notes", "Examples")


def _sections(text: str | None) -> tuple[str, dict[str, str]]:
    """Return a docstring's text before its first section, and its sections."""
    intro, *parts = re.split(r"^(\w+)\n-+\n", inspect.cleandoc(text or ""), flags=re.MULTILINE)
    return intro.rstrip(), dict(zip(parts[::2], map(str.rstrip, parts[1::2]), strict=True))


def _names(entry: str) -> set[str]:
    """Return the names that an entry of a section on parameters describes."""
    return set(re.findall(r"\w+", entry.partition("\n")[0].partition(" : ")[0]))


def _documented(target: Callable[..., Any], implementation: Callable[..., Any],
                shown: Iterable[str]) -> str:
    """Return a docstring with what that of the implementation says of parameters and errors."""
    intro, own = _sections(target.__doc__)
    _, others = _sections(implementation.__doc__)
    entries = re.split(r"\n(?=\S)", own["Parameters"]) if "Parameters" in own else []
    missing = set(shown).difference(*map(_names, entries))
    entries += [e for e in re.split(r"\n(?=\S)", others.pop("Parameters")) if _names(e) & missing]
    examples = own.get("Examples", "")
    texts = {**others, **own, "Parameters": "\n".join(entries), "Examples": examples}
    return "\n\n".join([intro, *(f"{name}\n{'-' * len(name)}\n{texts[name]}" for name in _ORDER
                                if texts.get(name))]) + "\n"


def options_of(implementation: Callable[..., Any]) -> Callable[[_Target], _Target]:
    """Let a function or class with ``**options`` show the keyword arguments that it takes.

    The signature gets the keyword-only arguments of `implementation`, and the docstring what that
    of `implementation` says of them.
    """
    def decorate(target: _Target) -> _Target:
        function: Any = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]
        own = inspect.signature(function)
        shown = [p for p in own.parameters.values() if p.kind != p.VAR_KEYWORD]
        shown += [p for p in inspect.signature(implementation).parameters.values()
                  if p.kind == p.KEYWORD_ONLY and p.name not in own.parameters]
        function.__signature__ = own.replace(parameters=shown)
        if implementation.__doc__:  # not with python -OO
            target.__doc__ = _documented(target, implementation, [p.name for p in shown])
        return target

    return decorate


def dir_of(module: str) -> Callable[[], list[str]]:
    """Return a module's ``__dir__``: it shows the names of ``__all__``, and those of Python."""
    def names() -> list[str]:
        known = vars(sys.modules[module])
        own = (name for name in known if name.startswith("__") and name.endswith("__"))
        return sorted({*known["__all__"], *own})

    return names


def names_in(package: str, modules: Iterable[str]) -> list[str]:
    """Return the names in ``__all__`` of modules of a package, which has imported the modules."""
    return [name for module in modules for name in sys.modules[f"{package}.{module}"].__all__]


def check_seed(seed: int | None) -> None:
    """Refuse stochastic rounding without a seed.

    A default would round each element by the same random bits in every step of a training run.
    """
    if seed is None:
        raise InvalidArgument("seed: stochastic rounding needs a seed; pass seed=, and another seed "
                              "or random_stream= in each step of a training run")
