"""Functions that samebits._core calls: error messages, arrays of other libraries, new arrays."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.formats import INDEX, NAMES, NOT_FORMATS, array_attribute, dtype_of, format_index

__all__ = ["format_index"]  # samebits._core looks format_index up in this module

#: The arguments that functions support, for error messages.
_TAKEN = "a NumPy or ml_dtypes array, an object with __dlpack__, or one with a buffer"


def _describe(value: Any) -> str:
    """Return what an argument is: its dtype if it has one, else its type."""
    dtype = getattr(value, "dtype", None)
    return f"dtype {dtype}" if dtype is not None else f"a {type(value).__name__}"


def _as_fp32(value: Any, name: str) -> str:
    """Return what to type for an array in fp32."""
    is_torch = type(value).__module__.partition(".")[0] == "torch"
    if "complex" in str(getattr(value, "dtype", "")):  # a cast would drop the imaginary part
        return f"torch.view_as_real({name})" if is_torch else f"{name}.real and {name}.imag"
    return f"{name}.to(torch.float32)" if is_torch else f"{name}.astype(np.float32)"


#: Why an argument is refused, and the message.
_REFUSALS: Final = {
    "codes": "{name}: {what} holds codes of any format; say which by format=, or pass {fp32} if "
             "these are numbers",
    "format": "{name}: {what} cannot hold {format}; pass {name}.view(np.uint{bits}) of its codes, "
              "or an array of dtype {format}",
    "byte order": "{name}: {what} is not in this machine's byte order; pass "
                  "{name}.astype({name}.dtype.newbyteorder('='))",
    "read-only": "{name}: a read-only array or a scalar cannot be written; pass a writable array",
    "strides": "{name}: the strides are no multiple of the element size, as in a field of records; "
               "pass np.ascontiguousarray({name})",
    "device": "{name}: the array lies neither in host nor in CUDA memory",
    "dims": "{name}: the array has more than 64 axes",
    "no data": "{name}: the tensor has no data; fake and meta tensors have none",
    "dtype": "{name}: {what} is no format of samebits; formats are {formats}; pass {fp32}, or codes "
             "as unsigned integers with format=",
}


def refuse(why: str, value: Any, name: str, format_index: int) -> NoReturn:
    """Raise InvalidArgument: the message names the argument, what it is, and what to pass instead.

    `why` is a key of _REFUSALS; `format_index` is the format that is expected, -1 for none.
    """
    dtype = getattr(value, "dtype", None)
    dtype_name = getattr(dtype, "name", "")
    if dtype_name in NOT_FORMATS:
        raise InvalidArgument(f"{name}: {dtype_name} is {NOT_FORMATS[dtype_name]}")
    if not getattr(dtype, "isnative", True):
        why = "byte order"
    format = NAMES[format_index]
    raise InvalidArgument(_REFUSALS[why].format(
        name=name, what=_describe(value), fp32=_as_fp32(value, name), formats=", ".join(NAMES),
        format=format, bits=8 * dtype_of(format).itemsize))


def is_scalar(value: Any) -> bool:
    """Return whether a value is a scalar of NumPy or ml_dtypes."""
    return isinstance(value, np.generic)


def adopt(value: Any, name: str) -> npt.NDArray[Any]:
    """Return a NumPy array that shares the memory of a buffer, or a read-only one that holds a
    NumPy scalar."""
    if is_scalar(value):
        copy = np.asarray(value)
        copy.flags.writeable = False  # a result would be lost in the copy
        return copy
    if isinstance(value, (str, int, float, complex, list, tuple)):
        kind = type(value).__name__
        raise TypeError(f"{name}: {'an' if kind == 'int' else 'a'} {kind} is no array; pass "
                        + ("a NumPy array, which receives the result" if name.startswith("out")
                           else f"np.asarray({name}, np.float32)"))
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError):
        raise TypeError(f"{name}: {_TAKEN} is expected; got a {type(value).__name__}") from None


def dlpack_capsule(value: Any, stream: int, name: str) -> Any:
    """Return the DLPack capsule of an object.

    If the object's library refuses, raise InvalidArgument with the message of that library.
    """
    if type(value).__module__.partition(".")[0] == "torch":
        check_torch(value, name)
        value = value.detach()
    kind = int(value.__dlpack_device__()[0])
    arguments = {"stream": stream or 1} if kind == 2 else {}
    try:
        try:
            return value.__dlpack__(max_version=(1, 3), **arguments)
        except TypeError:
            return value.__dlpack__(**arguments)
    except (BufferError, RuntimeError, ValueError, TypeError) as error:
        raise InvalidArgument(
            f"{name}: {type(value).__name__} refuses __dlpack__: {error}"
        ) from error


def _is_wrapper(type_: type[Any]) -> bool:
    """Return whether tensors of a type, such as DTensor and FakeTensor, wrap other tensors."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    dispatch = getattr(type_, "__torch_dispatch__", None)
    return tensor is not None and dispatch is not tensor.__torch_dispatch__


def exchange_capsule(type_: type[Any]) -> Any:
    """Return the DLPack exchange table of a type of torch tensors with memory of their own, else
    None."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if tensor is None or not issubclass(type_, tensor) or _is_wrapper(type_):
        return None
    return getattr(type_, "__dlpack_c_exchange_api__", None)


def mark_written(tensors: Any) -> None:
    """Raise the version of torch tensors, so that autograd notices values that were overwritten."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    many = tensors if isinstance(tensors, list) else [tensors]
    # isinstance() of torch's classes is slow for None.
    torch.autograd.graph.increment_version(
        [t for t in many if t is not None and isinstance(t, torch.Tensor) and not t.is_inference()])


def check_torch(tensor: Any, name: str) -> None:
    """Refuse a torch tensor whose memory does not hold its elements, and say what to pass."""
    if tensor.is_conj():
        raise InvalidArgument(
            f"{name}: a torch tensor with the conjugate bit set; pass {name}.resolve_conj()"
        )
    if tensor.is_neg():
        raise InvalidArgument(
            f"{name}: a torch tensor with the negative bit set; pass {name}.resolve_neg()"
        )
    if str(getattr(tensor, "layout", "torch.strided")) != "torch.strided":
        raise InvalidArgument(f"{name}: a sparse torch tensor; pass {name}.to_dense()")
    if getattr(tensor, "is_meta", False):
        raise InvalidArgument(f"{name}: a torch tensor on the device meta has no data")
    if _is_wrapper(type(tensor)):
        kind = type(tensor).__name__
        remedy = f"; pass {name}.to_local()" if hasattr(tensor, "to_local") else ""
        raise InvalidArgument(f"{name}: a {kind} wraps other tensors and has no memory{remedy}")


def empty_like(like: Any, shape: tuple[int, ...], format_index: int) -> Any:
    """Return a new C-contiguous array in a format, of the same library and device as `like`."""
    name = NAMES[format_index]
    return _empty(like, shape, dtype_of(name), array_attribute(name))


def empty_bytes(like: Any, count: int) -> Any:
    """Return a new array of unsigned bytes, of the same library and device as `like`."""
    return _empty(like, (count,), np.dtype(np.uint8), "uint8")


def _empty(like: Any, shape: tuple[int, ...], dtype_of_numpy: np.dtype[Any], attribute: str) -> Any:
    if isinstance(like, np.ndarray) or not hasattr(like, "__dlpack__"):
        return np.empty(shape, dtype_of_numpy)
    code = f"uint{8 * dtype_of_numpy.itemsize}"
    if type(like).__module__.partition(".")[0] == "torch":
        torch = sys.modules["torch"]
        dtype = getattr(torch, attribute, None) or getattr(torch, code)
        return torch.empty(shape, dtype=dtype, device=like.device)
    if not hasattr(like, "__array_namespace__"):
        if int(like.__dlpack_device__()[0]) == 1:
            return np.empty(shape, dtype_of_numpy)
        raise InvalidArgument(
            f"out: cannot make an array like {type(like).__name__}; pass out="
        )
    namespace = like.__array_namespace__()
    dtype = getattr(namespace, attribute, None) or getattr(namespace, code)
    return namespace.empty(shape, dtype=dtype, device=like.device)


_core.register_numpy(
    np.ndarray,
    importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API,  # as NumPy's import_array()
    np.dtype(np.float64),
    sys.modules[__name__],
    INDEX,
)
