"""DLPack passes a torch tensor with the negative bit with the wrong sign, without an error.

    python examples/python/findings/negative_bit.py

The imaginary part of a conjugated tensor is a float tensor whose sign is in a flag, not in memory.
DLPack has no such flag. `Tensor.numpy()` refuses these tensors; DLPack does not.
"""

import numpy as np
import torch

import samebits as sb


def flagged():
    """Return the tensor [-1, -2, -3] with the negative bit."""
    z = torch.complex(torch.zeros(3), torch.tensor([1.0, 2.0, 3.0]))
    x = z.conj().imag
    assert x.is_neg()
    return x


def attempt(read):
    """Return what a reader makes of the tensor: numbers, or the beginning of its error."""
    try:
        return [float(v) for v in read(flagged())]
    except (RuntimeError, ValueError, TypeError, BufferError, NotImplementedError) as error:
        return f"{type(error).__name__}: {str(error)[:70]}"


READERS = {"x.tolist()": lambda x: x.tolist(), "x.numpy()": lambda x: x.numpy(),
           "np.from_dlpack(x)": np.from_dlpack, "torch.from_dlpack(x)": torch.from_dlpack,
           "np.from_dlpack(x.resolve_neg())": lambda x: np.from_dlpack(x.resolve_neg()),
           'samebits.convert(x, "fp64")': lambda x: sb.convert(x, "fp64")}


def main():
    for name, read in READERS.items():
        print(f"{name:34} {attempt(read)}")


if __name__ == "__main__":
    main()
