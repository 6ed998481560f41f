"""Inputs and results of a function under test: NumPy arrays here, torch tensors in another file.

`memory_on(None)` gives NumPy arrays, `memory_on("cuda")` and `memory_on("cpu")` torch tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from samebits.errors import Unsupported
from samebits.testing.number_formats import Codes, Format, Mask, array_of, codes_of

Array = np.typing.NDArray[Any]
Predicate = Callable[[Any], Any]

GUARD = 0xA5  # every byte beside inputs
EDGE = 64  # elements before and after an output


def fill_of(size: int) -> int:
    """Return the bytes of an output of `size` elements, and beside it, before a call.

    What is not written, or written outside, is right if it consists of these bytes. Outputs of odd
    sizes have other bytes than those of even sizes, so that no code is always right.
    """
    return GUARD ^ (0xFF if size % 2 else 0)


@dataclass(frozen=True)
class Layout:
    """Memory of one call's input: first element after a 64-byte border, and its stride."""

    offset: int = 0
    step: int = 1

    def place(self, array: Array) -> Array:
        """Return a copy of a one-dimensional array in this layout."""
        size = array.dtype.itemsize
        memory = np.full((self.offset + array.size * abs(self.step) + 1) * size + 64, GUARD,
                         np.uint8)
        start = -memory.ctypes.data % 64 + self.offset * size
        whole = memory[start:start + array.size * abs(self.step) * size].view(array.dtype)
        placed = whole[::self.step]
        placed[...] = array
        return placed


class Memory:
    """NumPy and ml_dtypes arrays; a subclass has torch tensors.

    Attributes
    ----------
    kind : str
        The type that messages expect of a result.
    device : str or None
        The argument `device` of the checks.
    """

    kind = "a NumPy array"
    device: str | None = None

    def place(self, codes: Codes, f: Format, layout: Layout = Layout()) -> Any:
        """Return codes as an input in the format's dtype. Only 1-D codes may have a layout."""
        array = array_of(codes, f)
        return layout.place(array) if array.ndim == 1 else array.copy()

    def output(self, size: int, f: Format) -> tuple[Any, Callable[[], bool]]:
        """Return an output of `size` elements, and whether the memory beside it is unchanged."""
        edge, fill = EDGE * f.dtype.itemsize, fill_of(size)
        memory = np.full(2 * edge + size * f.dtype.itemsize, fill, np.uint8)
        beside = memory[:edge], memory[memory.size - edge:]
        return (memory[edge:memory.size - edge].view(f.dtype),
                lambda: all((part == fill).all() for part in beside))

    def holds(self, result: Any) -> bool:
        """Return whether a result is of this kind."""
        return isinstance(result, (np.ndarray, np.generic))

    def codes(self, array: Any, f: Format) -> Codes:
        """Return the codes of an array; waits for the device.

        Raises
        ------
        TypeError
            The array has another dtype.
        """
        whole = np.asarray(array)
        return codes_of(np.ascontiguousarray(whole), f).reshape(whole.shape)

    def number(self, result: Any) -> Array:
        """Return a number, or an array of one, as a NumPy array; waits for the device."""
        return np.asarray(result)

    def allowed(self, where: Predicate, codes: Codes, f: Format) -> Mask:
        """Return for each code whether it satisfies the caller's predicate."""
        return np.asarray(where(array_of(codes, f)), np.bool_)


def memory_on(device: object) -> Memory:
    """Return the memory of a check: NumPy arrays without a device, torch tensors with one.

    Raises
    ------
    Unsupported
        torch is not installed, or does not find the device.
    """
    if device is None:
        return Memory()
    try:
        from torch import Tensor  # noqa: F401
    except ImportError:
        raise Unsupported(f"device: {str(device)!r} needs torch, which is not installed; leave "
                          "device out to test a kernel on NumPy arrays") from None
    from samebits.testing.torch_tensors import TorchMemory

    return TorchMemory(device)
