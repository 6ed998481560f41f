"""Exceptions of samebits, one class for each kind of failure."""

from __future__ import annotations

__all__ = [
    "CallOrderError",
    "CudaError",
    "EnvironmentCheckFailed",
    "Error",
    "IncompleteWrite",
    "InternalError",
    "InvalidArgument",
    "RankError",
    "ScaleExhausted",
    "Unsupported",
]


class Error(Exception):
    """Base class of every exception that samebits defines."""


class InvalidArgument(Error, ValueError):
    """An argument was refused; nothing was written.

    The message names the argument, what it was, and what to pass instead. An argument of a wrong
    type raises ``TypeError``.
    """


class Unsupported(Error, NotImplementedError):
    """The call is valid, but this build, backend or machine cannot do it; nothing was written."""


class EnvironmentCheckFailed(Error, RuntimeError):
    """The process or the GPU does not compute in IEEE 754 steps; nothing was written."""


class CallOrderError(Error, RuntimeError):
    """The methods of an object were called in the wrong order; nothing changed."""


class RankError(Error, RuntimeError):
    """The arguments or states of several processes differ; nothing was written."""


class ScaleExhausted(Error, RuntimeError):
    """A loss-scaling policy ends the run."""


class IncompleteWrite(Error, RuntimeError):
    """A call failed after it had begun to write: some elements are new, others old."""


class CudaError(Error, RuntimeError):
    """A CUDA call failed.

    Attributes
    ----------
    code : int
        The ``cudaError_t``.
    """

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class InternalError(Error, RuntimeError):
    """An error in samebits itself; please report it."""
