"""Which module of a model runs, for recordings."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.module_tracker import ModuleTracker

__all__: list[str] = []


class Modules(ModuleTracker):
    """Knows which modules run. torch.compile sees empty hooks: with the others it would not compile."""

    def _fw_pre_hook(self, mod: Any, input: Any) -> None:
        if not torch.compiler.is_compiling():
            super()._fw_pre_hook(mod, input)

    def _fw_post_hook(self, mod: Any, input: Any, output: Any) -> None:
        if not torch.compiler.is_compiling():
            super()._fw_post_hook(mod, input, output)
