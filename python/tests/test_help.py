"""help(), dir() and signatures of every public name of the package."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import samebits

MODULES = ["samebits", "samebits.functions", "samebits.optim", "samebits.ranks", "samebits.torch",
           "samebits.torch.functional", "samebits.torch.optim"]
#: Nobody makes an object of this class; its subclasses describe their arguments.
BASES = {"Optimizer"}


def module_of(name: str) -> Any:
    if ".torch" in name:
        pytest.importorskip("torch")
    return importlib.import_module(name)


def public(module: Any) -> Iterator[tuple[str, Any]]:
    """The public functions and classes of a module."""
    for name in module.__all__:
        value = getattr(module, name)
        if callable(value):
            yield name, value


def methods(kind: type[Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods that a class of this package defines."""
    for name, member in inspect.getmembers(kind, inspect.isroutine):
        module = getattr(getattr(member, "__func__", member), "__module__", None) or ""
        if not name.startswith("_") and module.startswith("samebits"):
            yield name, member


def is_plain(value: Any) -> bool:
    """Whether a class only holds results or is an error: nobody makes one, or it needs no example."""
    return isinstance(value, type) and (
        hasattr(value, "__dataclass_fields__") or issubclass(value, (BaseException, tuple))
        or inspect.isabstract(value))


@pytest.mark.parametrize("name", MODULES)
def test_dir_shows_the_public_names(name: str) -> None:
    module = module_of(name)
    shown = [n for n in dir(module) if not (n.startswith("__") and n.endswith("__"))]
    assert shown == sorted(n for n in module.__all__ if not n.startswith("__"))


@pytest.mark.parametrize("name", MODULES)
def test_signatures_have_real_names(name: str) -> None:
    """Keyword completion reads the signature; ``**options`` would hide the names."""
    for label, value in public(module_of(name)):
        for where, call in [(label, value), *(methods(value) if isinstance(value, type) else ())]:
            if issubclass(value, BaseException) if isinstance(value, type) else False:
                continue
            kinds = {p.kind for p in inspect.signature(call).parameters.values()}
            passed_on = {("GradScaler", "step"), ("Optimizer", "Optimizer")}  # to torch's classes
            assert (label, where) in passed_on or inspect.Parameter.VAR_KEYWORD not in kinds, f"{label}: {where}"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_describe_every_parameter_and_show_an_example(name: str) -> None:
    module = module_of(name)
    wrong = []
    for label, value in public(module):
        text = inspect.getdoc(value) or ""
        if not text:
            wrong.append(f"{label}: no docstring")
        if is_plain(value) or label in BASES:
            continue
        examples = doctest.DocTestParser().get_examples(text)
        if not any(label in example.source for example in examples):
            wrong.append(f"{label}: no example")
        wrong += [f"{label}: {p}" for p in inspect.signature(value).parameters
                  if p != "self" and p not in text and not label.endswith("Scaler")]
        for method, member in methods(value) if isinstance(value, type) else ():
            described = "".join(inspect.getdoc(getattr(base, method)) or ""
                                for base in value.__mro__ if hasattr(base, method))
            wrong += [f"{label}.{method}: {p}" for p in inspect.signature(member).parameters
                      if p not in ("self", "args", "kwargs") and p not in described]
            if not described:
                wrong.append(f"{label}.{method}: no docstring")
    assert not wrong, "\n".join(wrong)


def test_settings_of_a_loss_scaler_are_keywords() -> None:
    names = inspect.signature(samebits.LossScaler).parameters
    assert {"policy", "init_scale", "growth_interval", "scale_window", "headroom_bits"} <= set(names)
    for policy in ("native", "torch", "apex", "apex_amp", "megatron", "deepspeed"):
        with pytest.raises(samebits.InvalidArgument) as caught:
            samebits.LossScaler(policy, nonsense=1)  # type: ignore[arg-type]
        for setting in str(caught.value).rpartition(": ")[2].rstrip(".").split(", "):
            assert setting.split()[-1] in names, str(caught.value)
