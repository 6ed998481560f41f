"""Settings of PyTorch under which this library knows a GPU's bits: `pin`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from operator import attrgetter
from typing import Any

import torch

from samebits.errors import Unsupported

__all__ = ["pin"]

_WORKSPACES = (":4096:8", ":16:8")


_CUDA = torch.backends.cuda
#: The name of a setting, how to read it, how to write it, and its value.
Setting = tuple[str, Callable[[], Any], Callable[[Any], None], Any]


def _attribute(owner: str, name: str) -> Setting:
    """Return a setting of PyTorch that is an attribute, and is off."""
    module = attrgetter(owner)(torch)
    return f"torch.{owner}.{name}", partial(getattr, module, name), partial(setattr, module, name), False


def _attention(kernel: str, value: bool) -> Setting:
    """Return whether PyTorch may choose a kernel of attention."""
    name = f"enable_{kernel}_sdp"
    return f"torch.backends.cuda.{name}", getattr(_CUDA, f"{kernel}_sdp_enabled"), getattr(_CUDA, name), value


#: What is set, in this order.
_SETTINGS: list[Setting] = [
    ("torch.set_deterministic_debug_mode", torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, 2),
    _attribute("backends.cuda.matmul", "allow_tf32"), _attribute("backends.cudnn", "allow_tf32"),
    _attribute("backends.cuda.matmul", "allow_fp16_reduced_precision_reduction"),
    _attribute("backends.cuda.matmul", "allow_bf16_reduced_precision_reduction"),
    _attribute("backends.cuda.matmul", "allow_fp16_accumulation"),
    _attention("flash", True), _attention("math", True), _attention("cudnn", False), _attention("mem_efficient", False)]


class Pin(ExitStack):
    """The settings that `pin` has made; also a context manager.

    Attributes
    ----------
    settings : dict
        The names of the settings, with their values.
    """

    def __init__(self) -> None:
        super().__init__()
        try:
            for name, get, put, value in _SETTINGS:
                before = get()
                put(value)
                self.callback(put, before)
        except (AttributeError, RuntimeError) as error:  # set in two ways, of which PyTorch reads one
            self.restore()
            raise Unsupported(f"{name} cannot be pinned: {error}") from None
        self.settings = {name: value for name, _, _, value in _SETTINGS}

    def restore(self) -> None:
        """Set what was set before; a second call does nothing."""
        self.close()

    def __str__(self) -> str:
        return "\n".join(f"{name} = {value}" for name, value in self.settings.items())


def pin(*modules: torch.nn.Module, cudnn_attention: bool = False) -> Pin:
    """Set PyTorch so that the calls that docs/torch_rules.md covers have known bits on a GPU.

    Deterministic algorithms are on; TF32, 16-bit accumulation and reductions in reduced precision are off;
    attention is FlashAttention's or the math path. Call it before the program makes its tensors. As a context
    manager it restores all settings at the end of the block.

    Parameters
    ----------
    modules : torch.nn.Module, optional
        Models that are about to run. One with a part that `torch.compile` compiles is refused.
    cudnn_attention : bool
        Whether cuDNN's attention is allowed: its gradients have a rule up to 256 keys, and no fixed order beyond.

    Returns
    -------
    Pin
        ``settings`` lists what was set; `restore` sets what was set before.

    Raises
    ------
    Unsupported
        Nothing was set: the rules are not those of this PyTorch or card, the environment variable
        ``CUBLAS_WORKSPACE_CONFIG`` is missing, a module is compiled, or a setting cannot be read.

    Examples
    --------
    >>> with sbt.pin() as pinned:
    ...     torch.are_deterministic_algorithms_enabled()
    True
    >>> pinned.settings["torch.backends.cuda.matmul.allow_tf32"]
    False
    >>> torch.are_deterministic_algorithms_enabled()
    False
    """
    refused = unpinnable(*modules)
    if refused:
        raise Unsupported("not pinned: " + "; ".join(refused))
    pinned = Pin()
    if cudnn_attention:
        _CUDA.enable_cudnn_sdp(True)
        pinned.settings["torch.backends.cuda.enable_cudnn_sdp"] = True
    return pinned


def unpinnable(*modules: torch.nn.Module) -> list[str]:
    """Return why the bits of this process cannot be pinned: a text for each reason."""
    found = []
    if not torch.__version__.startswith("2.11."):
        found.append(f"torch {torch.__version__}: the rules are those of torch 2.11")
    if torch.cuda.is_available():
        card = torch.cuda.get_device_properties()
        if (card.major, card.minor) != (9, 0):
            found.append(f"{card.name}: the rules are those of H100 and H200")
        workspace = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
        if workspace not in _WORKSPACES:
            found.append(f"CUBLAS_WORKSPACE_CONFIG is {workspace!r}: set it to {' or '.join(_WORKSPACES)} in the "
                         "environment that starts the process")
    for model in modules:
        for name, module in model.named_modules():
            if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
                found.append(f"{name or type(model).__name__} is compiled by torch.compile, whose kernels have no rule")
                break
    return found
