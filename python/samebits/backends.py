"""Backends, threads and self-tests."""

from __future__ import annotations

from dataclasses import dataclass

from samebits import _core

__all__ = [
    "Backend",
    "SelfTest",
    "backends",
    "get_num_threads",
    "initialize",
    "self_test",
    "set_num_threads",
]


@dataclass(frozen=True)
class Backend:
    """A compiled backend.

    Attributes
    ----------
    name, description : str
    memory : str
        host or device.
    supported : bool
        Whether this machine can run the backend.
    default : bool
        Whether calls without ``backend=`` use it for arrays in its memory.
    why_not : str
        Why this machine cannot run the backend; empty if `supported`.
    """

    name: str
    description: str
    memory: str
    supported: bool
    default: bool
    why_not: str


@dataclass(frozen=True)
class SelfTest:
    """Result of one check: does a backend compute in IEEE 754 steps?

    Attributes
    ----------
    backend, check : str
    passed : bool
    detail : str
        What the check observed, what that means, and what to do; empty if `passed`.
    """

    backend: str
    check: str
    passed: bool
    detail: str


def backends() -> tuple[Backend, ...]:
    """Return the compiled backends.

    The first call looks for a CUDA device if the build has CUDA.

    Examples
    --------
    >>> sb.backends()[0].name
    'reference'
    """
    return tuple(Backend(*row) for row in _core.backends())


def self_test(backend: str | None = None) -> tuple[SelfTest, ...]:
    """Run the self-test of a backend, or of every backend that can run here.

    Failed checks are results, not errors. Waits for the device.

    Parameters
    ----------
    backend : str, optional
        Name of one of `backends`.

    Examples
    --------
    >>> all(t.passed for t in sb.self_test("reference"))
    True
    """
    return tuple(SelfTest(*row) for row in _core.self_test(backend))


def initialize(backend: str | None = None) -> None:
    """Run the self-test of a backend, or of every backend that can run here; remember the success.

    Call `initialize` before capturing a CUDA graph: the self-test cannot run during a capture.

    Parameters
    ----------
    backend : str, optional
        Name of one of `backends`.

    Raises
    ------
    EnvironmentCheckFailed
        At least one check failed; the message names every failed check.

    Examples
    --------
    >>> sb.initialize("reference")
    """
    _core.initialize(backend)


def set_num_threads(threads: int | None) -> None:
    """Set the number of CPU threads of calls without ``threads=``.

    Results do not depend on the number of threads.

    Parameters
    ----------
    threads : int or None
        0: one per hardware thread. None, the initial setting: one thread up to 2^16 elements,
        else one per hardware thread.

    Examples
    --------
    >>> sb.set_num_threads(None)
    """
    _core.set_num_threads(threads)


def get_num_threads() -> int | None:
    """Return the number that `set_num_threads` set last; None at the start.

    Examples
    --------
    >>> sb.set_num_threads(4)
    >>> sb.get_num_threads()
    4
    >>> sb.set_num_threads(None)
    """
    threads = _core.get_num_threads()
    return None if threads < 0 else threads
