"""Autocast: the precision in which each operation runs when training in FP16, BF16 or FP8."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from samebits import _core
from samebits.formats import choose

if TYPE_CHECKING:
    from typing import Literal

    from samebits.typing import AutocastRule, FormatLike, TrainingPrecision

__all__ = ["OperationFormats", "autocast_formats", "autocast_rule"]


@dataclass(frozen=True)
class OperationFormats:
    """Formats of an operation's operands, of its incoming gradient, and of its result."""

    operands: str
    gradients: str
    result: str


def autocast_rule(operation: str, *, library: Literal["torch", "apex"] = "torch") -> AutocastRule:
    """Return what autocast does with the operands of an operation.

    Parameters
    ----------
    operation : str
        ATen's name, such as "matmul".
    library : str
        torch, or apex for Apex at level O1.

    Returns
    -------
    str
        low_precision, fp32, fp32_result, widest, as_given or banned.

    Examples
    --------
    >>> sb.autocast_rule("matmul"), sb.autocast_rule("softmax")
    ('low_precision', 'fp32_result')
    """
    return cast("AutocastRule", _core.autocast_rule(
        operation, choose("library", library, ("torch", "apex")) == "apex"))


def autocast_formats(operation: str, precision: TrainingPrecision,
                     widest: FormatLike) -> OperationFormats | None:
    """Return the formats of an operation by PyTorch's rule; None for a banned operation.

    Parameters
    ----------
    operation : str
        ATen's name.
    precision : str
        mixed_fp16, mixed_bf16 or mixed_fp8.
    widest : str or dtype
        The widest format of the operands: fp64, fp32, fp16 or bf16.

    Examples
    --------
    >>> sb.autocast_formats("matmul", "mixed_bf16", "fp32").operands
    'bf16'
    """
    row: Any = _core.autocast_formats(operation, precision, widest)
    return None if row is None else OperationFormats(*row)
