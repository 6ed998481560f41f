"""NF4, FP4, dynamic 8-bit codes and int8 rows, as bitsandbytes has them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.arrays import empty_bytes, empty_like, mark_written
from samebits.errors import InvalidArgument
from samebits.formats import INDEX, NAMES, dtype_of, format_index
from samebits.packing import shape_of
from samebits.rules import options_of

if TYPE_CHECKING:
    from samebits.typing import Codebook, CodebookSteps, FormatLike

__all__ = ["Int8Rows", "QuantizedBlocks", "quantize_blocks", "quantize_int8"]

#: Elements of a block of double quantization.
NESTED_BLOCK = 256


@dataclass(eq=False)
class QuantizedBlocks:
    """Codes and absmaxes of blocks of consecutive elements.

    Attributes
    ----------
    codes : array [bytes] of uint8
        nf4 and fp4: two codes a byte, the first in the high half. With an odd number of elements the last low
        half holds the code of 0.
        dynamic8: one.
    absmax : array [blocks] of fp32, or QuantizedBlocks
        Scales of the blocks; with double quantization their dynamic8 codes, without the offset.
    shape : tuple of int
        Shape of the tensor.
    book : str
        nf4, fp4 or dynamic8.
    block : int
        Elements of a block.
    offset : float
        With double quantization: what was subtracted from the absmaxes.
    steps : str
        cuda or cpu.
    """

    codes: Any
    absmax: Any
    shape: tuple[int, ...]
    book: Codebook = "nf4"
    block: int = 64
    offset: float = 0.0
    steps: CodebookSteps = "cuda"

    def absmaxes(self) -> Any:
        """Return the absmaxes of the blocks: restored, if they are quantized themselves.

        Examples
        --------
        >>> sb.quantize_blocks(np.float32([1, 2, -4]), block=2).absmaxes()
        array([2., 4.], dtype=float32)
        """
        if not isinstance(self.absmax, QuantizedBlocks):
            return self.absmax
        return self.absmax.dequantize() + float(np.float32(self.offset))

    def dequantize(self, to: FormatLike = "fp32", *, out: Any = None, threads: int | None = None,
                   backend: str | None = None, stream: Any = None) -> Any:
        """Return the values: number * absmax, rounded to fp32 and then to `to`.

        Parameters
        ----------
        to : str or dtype
            fp32, fp16 or bf16.
        out : array [...], optional
            Receives the values; C-contiguous, in the memory of the codes.
        threads, backend, stream
            As in `convert`.

        Returns
        -------
        array [...]
            `out`, or a new array of the same library and device as the codes.

        Examples
        --------
        >>> sb.quantize_blocks(np.float32([1, 2, -4, 0]), block=4).dequantize()
        array([ 0.9844492,  1.7628393, -4.       ,  0.       ], dtype=float32)
        """
        index = format_index(to, "to")
        if out is None:
            out = empty_like(self.codes, tuple(self.shape), index)
        elif shape_of(out, "out") != tuple(self.shape):
            raise InvalidArgument(f"out: shape {self.shape} is expected; got {shape_of(out, 'out')}")
        else:
            mark_written(out)
        absmax, nested = self.absmax, None
        if isinstance(absmax, QuantizedBlocks):
            absmax, nested = absmax.absmax, (absmax.codes, absmax.block, self.offset)
        _core.dequantize_blocks(self.codes, absmax, nested, self.book, self.block, self.steps, out,
                                NAMES[index], (threads, backend, stream))
        return out


def quantize_blocks(x: Any, book: Codebook = "nf4", *, block: int = 64, double: bool = False,
                    offset: float | None = None, steps: CodebookSteps = "cuda",
                    format: FormatLike | None = None, threads: int | None = None,
                    backend: str | None = None, stream: Any = None) -> QuantizedBlocks:
    """Quantize a tensor in blocks of consecutive elements into codes of a codebook.

    Parameters
    ----------
    x : array [...]
        In fp32, fp16 or bf16, C-contiguous, in host or CUDA memory.
    book : str
        nf4; fp4, which is bitsandbytes' and not e2m1; or dynamic8.
    block : int
        Elements that share an absmax.
    double : bool
        Double quantization: the absmaxes, without their mean, become dynamic8 codes in blocks of
        256.
    offset : float, optional
        What double quantization subtracts. Default: the mean of the absmaxes, their exact sum
        rounded to binary64, divided, and rounded to fp32; the call waits for a GPU. bitsandbytes
        takes torch's mean, whose order of sums is not fixed.
    steps : str
        cuda or cpu: of which backend of bitsandbytes.
    format, threads, backend, stream
        As in `convert`.

    Returns
    -------
    QuantizedBlocks

    Examples
    --------
    >>> q = sb.quantize_blocks(np.float32([1, 2, -4, 0]), block=4)
    >>> q.codes, q.absmax
    (array([172,   7], dtype=uint8), array([4.], dtype=float32))
    """
    if double and stream is not None:
        raise InvalidArgument("stream: double quantization runs on the current stream")
    shape = shape_of(x, "x")
    block = _core.integer(block, "block", 1, 2**31)
    size = math.prod(shape)
    blocks = -(-size // block)
    codes = empty_bytes(x, size if book == "dynamic8" else (size + 1) // 2)
    absmax = empty_like(x, (blocks,), INDEX["fp32"])
    _core.quantize_blocks(x, format, book, block, steps, codes, absmax, (threads, backend, stream))
    if not double:
        return QuantizedBlocks(codes, absmax, shape, book, block, steps=steps)
    if offset is None:
        offset = math.fsum(absmax.tolist()) / max(1, blocks)
    offset = float(np.float32(_core.number(offset, "offset")))
    nested = quantize_blocks(absmax - offset, "dynamic8", block=NESTED_BLOCK, steps=steps,
                             threads=threads, backend=backend, stream=stream)
    return QuantizedBlocks(codes, nested, shape, book, block, offset, steps)


@dataclass(eq=False)
class Int8Rows:
    """Whole numbers of -127 .. 127 with one absmax for each row.

    Attributes
    ----------
    codes : array [..., cols] of int8
    absmax : array [rows] of fp32
    """

    codes: npt.NDArray[np.int8]
    absmax: npt.NDArray[np.float32]

    @options_of(QuantizedBlocks.dequantize)
    def dequantize(self, to: FormatLike = "fp32", *, threads: int | None = None) -> Any:
        """Return the values: (code * absmax) * (1 / 127), rounded to fp32 twice and then to `to`.

        Returns
        -------
        numpy.ndarray [..., cols]

        Examples
        --------
        >>> sb.quantize_int8(np.float32([[1, 2, -4, 0]])).dequantize()
        array([[ 1.007874,  2.015748, -4.      ,  0.      ]], dtype=float32)
        """
        name = NAMES[format_index(to, "to")]
        out = np.empty(self.codes.shape, dtype_of(name))
        _core.dequantize_int8(self.codes.reshape(-1).view(np.uint8), self.absmax, out, name, threads)
        return out


def quantize_int8(x: Any, *, steps: CodebookSteps = "cuda", format: FormatLike | None = None,
                  threads: int | None = None) -> Int8Rows:
    """Quantize each row into int8 by its absmax, as LLM.int8() does without outliers.

    Parameters
    ----------
    x : array [..., cols]
        In fp32, fp16 or bf16, in host memory.
    steps : str
        cuda: 127 / absmax by the GPU's unit of 1 / x. cpu: (1 / absmax) * 127.
    format, threads
        As in `convert`.

    Returns
    -------
    Int8Rows

    Examples
    --------
    >>> q = sb.quantize_int8(np.float32([[1, 2, -4, 0]]))
    >>> q.codes, q.absmax
    (array([[  32,   64, -127,    0]], dtype=int8), array([4.], dtype=float32))
    """
    shape = shape_of(x, "x")
    codes = np.empty(shape, np.int8)
    absmax = np.empty(math.prod(shape[:-1]), np.float32)
    _core.quantize_int8(x, format, steps, codes.reshape(-1).view(np.uint8), absmax, threads)
    return Int8Rows(codes, absmax)
