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


def _entries(sections: dict[str, str]) -> list[str]:
    """Return the entries of a section on parameters."""
    return re.split(r"\n(?=\S)", sections["Parameters"]) if "Parameters" in sections else []


def _head(entry: str) -> str:
    """Return the text of an entry in which the names are that it describes."""
    return entry.partition("\n")[0].partition(" : ")[0]


def _names(entry: str) -> list[str]:
    return re.findall(r"\w+", _head(entry))


def _documented(target: Callable[..., Any], sources: Iterable[Callable[..., Any]], shown: list[str],
                returns_alike: bool) -> str:
    """Return a docstring with what others say of its parameters, and the first of them of all else."""
    intro, own = _sections(target.__doc__)
    others = [_sections(source.__doc__)[1] for source in sources]
    if not returns_alike:
        others[0].pop("Returns", None)
    entries = _entries(own)
    missing = set(shown).difference(*map(_names, entries))
    for entry in (entry for sections in others for entry in _entries(sections)):
        if found := [name for name in _names(entry) if name in missing]:
            entries.append(entry if found == _names(entry) else ", ".join(found) + entry[len(_head(entry)):])
            missing.difference_update(found)
    place = {name: i for i, name in enumerate(shown)}
    entries.sort(key=lambda entry: min((place[name] for name in _names(entry) if name in place), default=0))
    texts = {**others[0], **own, "Parameters": "\n".join(entries), "Examples": own.get("Examples", "")}
    return "\n\n".join([intro, *(f"{name}\n{'-' * len(name)}\n{texts[name]}" for name in _ORDER
                                if texts.get(name))]) + "\n"


def options_of(implementation: Callable[..., Any],
               *others: Callable[..., Any]) -> Callable[[_Target], _Target]:
    """Let a function or class show what its docstring, and ``**options``, leave to another function.

    The docstring gets what those of `implementation` and `others` say of its parameters, and what the first says of
    errors and of a result of the same type. Of ``**options`` the signature shows the keyword-only arguments of
    `implementation`.
    """
    def decorate(target: _Target) -> _Target:
        function: Any = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]
        own = inspect.signature(function)
        model = inspect.signature(implementation)
        shown = [p for p in own.parameters.values() if p.kind != p.VAR_KEYWORD]
        if len(shown) < len(own.parameters):
            shown += [p for p in model.parameters.values()
                      if p.kind == p.KEYWORD_ONLY and p.name not in own.parameters]
        function.__signature__ = own.replace(parameters=shown)
        if implementation.__doc__:  # not with python -OO
            target.__doc__ = _documented(target, (implementation, *others), [p.name for p in shown],
                                         model.return_annotation in (own.return_annotation, "Any"))
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
