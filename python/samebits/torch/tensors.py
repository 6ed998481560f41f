"""Torch tensors: which path a call takes, shards of DTensors, memory, and NumPy arrays."""

from __future__ import annotations

import math
import sys
from typing import Any, Final

import numpy as np
import torch

from samebits.arrays import check_torch
from samebits.errors import InvalidArgument
from samebits.formats import NAMES, array_attribute, dtype_of, format_index

__all__ = ["from_numpy", "to_numpy"]

#: The formats of gradients, parameters and operands.
FORMATS: Final[dict[torch.dtype, str]] = {
    torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_MODES = torch._C._len_torch_dispatch_stack


def needs_operator(x: Any) -> bool:
    """Return whether a call must go through its registered operator.

    torch.compile, dispatch modes such as FakeTensorMode, and wrappers of tensors see operators
    only. All other calls go to the library directly, which is faster.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x: a torch.Tensor is expected; got a {type(x).__name__}; pass "
                        "torch.as_tensor(x)")
    return torch.compiler.is_compiling() or type(x) not in _PLAIN or _MODES() > 0


def needs_gradient(x: torch.Tensor) -> bool:
    """Return whether autograd must record a call on `x`."""
    return x.requires_grad and torch.is_grad_enabled()


def is_dtensor(x: Any) -> bool:
    """Return whether `x` is a shard of a distributed tensor."""
    tensors = sys.modules.get("torch.distributed.tensor")  # not loaded: there are none
    return tensors is not None and isinstance(x, tensors.DTensor)


@torch.compiler.assume_constant_result
def constant_format_name(format: object, argument: str = "to") -> str:
    """Return the name of a format, as a constant of a compiled call."""
    return NAMES[format_index(format, argument)]


def local(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor itself, or a DTensor's local shard."""
    to_local = getattr(tensor, "to_local", None)
    return tensor if to_local is None else to_local()


def shard_begin(x: Any) -> int | None:
    """Return the index of a shard's first element in the whole DTensor, None if the shard is no range."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    shape, offset = compute_local_shape_and_global_offset(x.shape, x.device_mesh, x.placements)
    if any(offset[1:]) or tuple(shape[1:]) != tuple(x.shape[1:]):
        return None
    return int(offset[0]) * math.prod(x.shape[1:]) if offset else 0


def moved(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return a tensor on a device. Waits only for a copy to the CPU, which the CPU reads next."""
    return tensor.to(device, non_blocking=device.type == "cuda")


def stream_of(device: torch.device) -> int | None:
    """Return the current stream of a device; None for the CPU."""
    if device.type != "cuda":
        return None
    return int(torch.cuda.current_stream(device).cuda_stream)


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a list of the library can hold a tensor, and the tensor is contiguous."""
    return (tensor.dtype in FORMATS and tensor.layout is torch.strided and tensor.is_contiguous()
            and not tensor.is_neg())


def is_without_gaps(tensor: torch.Tensor) -> bool:
    """Whether a list can hold a tensor: in fp32, fp16 or bf16, strided, without gaps."""
    return is_plain(tensor) or (
        tensor.dtype in FORMATS and tensor.layout is torch.strided and not tensor.is_neg()
        and bool(torch.ops.aten.is_non_overlapping_and_dense(tensor)))


def in_memory_order(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements of a tensor without gaps as a vector, in the order of memory."""
    return tensor.detach().as_strided((tensor.numel(),), (1,))


def torch_dtype(name: str) -> torch.dtype:
    """Return the dtype of results in a format: unsigned integers for formats that torch lacks."""
    dtype: torch.dtype = getattr(torch, array_attribute(name), torch.uint8)
    return dtype


def to_numpy(x: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a CPU tensor as a NumPy array that shares its memory, bf16 and FP8 included.

    Parameters
    ----------
    x : torch.Tensor [...]
        In host memory, of any strides.

    Returns
    -------
    numpy.ndarray [...]
        Of NumPy's or ml_dtypes' dtype. Without ml_dtypes: unsigned integers that hold the codes.

    Raises
    ------
    InvalidArgument
        The tensor lies on a GPU, or its memory does not hold its elements.

    Examples
    --------
    >>> sbt.to_numpy(torch.tensor([1.0, -2.5], dtype=torch.bfloat16))
    array([1, -2.5], dtype=bfloat16)
    """
    check_torch(x, "x")
    x = x.detach()
    if x.device.type != "cpu":
        raise InvalidArgument(f"x: a tensor on {x.device}; pass x.cpu()")
    if not (x.dtype.is_floating_point and x.dtype.itemsize <= 2 and x.dtype != torch.float16):
        return x.numpy()
    codes = x.view(torch.uint8 if x.dtype.itemsize == 1 else torch.uint16).numpy()
    return codes.view(dtype_of(x.dtype))


def from_numpy(x: np.ndarray[Any, Any]) -> torch.Tensor:
    """Return a NumPy array as a CPU tensor that shares its memory, bf16 and FP8 included.

    Parameters
    ----------
    x : numpy.ndarray [...]
        Its dtype, of NumPy or ml_dtypes, is one that torch has too. Negative strides are refused.
        A read-only array is not copied: do not write to the returned tensor.

    Examples
    --------
    >>> import ml_dtypes, numpy as np
    >>> sbt.from_numpy(np.array([1.0, 448.0], ml_dtypes.float8_e4m3fn))
    tensor([  1., 448.], dtype=torch.float8_e4m3fn)
    """
    if not isinstance(x, np.ndarray):
        raise TypeError(f"x: a NumPy array is expected; got a {type(x).__name__}")
    if x.dtype.kind in "biuc" or x.dtype.name in ("float16", "float32", "float64"):
        return torch.from_numpy(x)
    dtype = torch_dtype(NAMES[format_index(x.dtype, "x")])
    if dtype == torch.uint8:
        raise InvalidArgument(f"x: torch has no dtype for {x.dtype}; pass x.view(np.uint8), the "
                              "codes")
    codes = torch.from_numpy(x.view(f"u{x.dtype.itemsize}"))
    return codes.view(dtype)
