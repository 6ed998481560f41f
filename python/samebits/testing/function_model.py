"""The right results of a function: samebits.functions on codes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from samebits import functions
from samebits.testing.number_formats import Codes, Format


@dataclass(frozen=True)
class FunctionModel:
    """A function of samebits.functions by a rule, on codes of one format."""

    function: Any
    f: Format
    rule: Any
    parameter: float | None = None

    @property
    def text(self) -> str:
        """The function, its format and its rule in one line."""
        parameter = "" if self.parameter is None else f" with {self.parameter}"
        return f"{self.function}{parameter} of {self.f.name} by {self.rule}"

    def but(self, **changes: str) -> FunctionModel:
        """Return this model with another function or rule."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def __call__(self, codes: Codes) -> Codes:
        """Return the codes of the results."""
        x = codes.astype(self.f.code_dtype)
        result = functions.evaluate(self.function, x, self.parameter, rule=self.rule,
                                    format=self.f.name)
        found: Codes = np.asarray(result).view(self.f.code_dtype).astype(np.uint64)
        return found
