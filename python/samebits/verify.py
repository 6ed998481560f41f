"""Verification: compares every backend with the reference, bit for bit, on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits import _core

if TYPE_CHECKING:
    from samebits.typing import VerifyExtent

__all__ = ["Verification", "verify"]


@dataclass(frozen=True)
class Verification:
    """One comparison of one backend.

    Attributes
    ----------
    backend, what : str
        The backend, and what was compared. For a backend that cannot run here, `what` is
        "skipped: " and the reason.
    compared, differed : int
        Number of results compared; number of these that differ, plus 1 for writes outside a view.
    first_difference : str
        Input, result, expected result and rule; empty if no result differed.
    """

    backend: str
    what: str
    compared: int
    differed: int
    first_difference: str


def verify(backend: str | None = None, *, extent: VerifyExtent = "quick", threads: int = 0,
           on_result: Callable[[Verification], object] | None = None) -> list[Verification]:
    """Compare backends with the reference bit for bit.

    Takes seconds to minutes. Waits for the device and needs some 300 MB of its memory.

    Parameters
    ----------
    backend : str, optional
        The only backend to compare; by default all but the reference.
    extent : str
        quick: some 10^9 results for each backend. exhaustive: some 6 * 10^11.
    threads : int
        CPU threads; 0: one per hardware thread.
    on_result : callable, optional
        Called with each entry as soon as it is complete.

    Examples
    --------
    An exception ends the verification:

    >>> def first(v):
    ...     print(v.backend, v.differed)
    ...     raise StopIteration
    >>> sb.verify("reference", on_result=first)
    Traceback (most recent call last):
    StopIteration
    """
    if on_result is not None and not callable(on_result):
        raise TypeError(f"on_result: a function is expected; got a {type(on_result).__name__}")
    return _core.verify(backend, extent, threads, Verification, on_result)
