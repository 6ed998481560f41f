"""Values of an optimizer's weights and states on torch tensors, stored and loaded by the library."""

from __future__ import annotations

from typing import Final

import torch

from samebits import _core
from samebits.torch.gradient_list import stream_of

__all__ = ["FORMATS", "store_or_load"]

FORMATS: Final[dict[torch.dtype, str]] = {
    torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16",
}


def store_or_load(stores: bool, values: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor,
                  stored: str, block: int) -> None:
    """Store values as codes with block scales, or load them; blocks follow the order of memory.

    All tensors are without gaps, values and codes in the same memory order.
    """
    _core.store_or_load(stores, values.data_ptr(), FORMATS[values.dtype], codes.data_ptr(),
                        scales.data_ptr(), stored, codes.numel(), block,
                        codes.device.type == "cuda", stream_of(codes.device))
