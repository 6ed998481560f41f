"""Triton's interpreter casts to and from bf16 and FP8 with other bits than Triton on a GPU.

    python examples/python/findings/triton_interpreter_casts.py      # needs torch and Triton

Each row is one element, cast by `.to()` in a kernel under TRITON_INTERPRET=1.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402


@triton.jit
def cast_kernel(x, y, TYPE: tl.constexpr):
    tl.store(y, tl.load(x).to(TYPE))


TYPES = {torch.bfloat16: tl.bfloat16, torch.float8_e4m3fn: tl.float8e4nv,
         torch.float8_e5m2: tl.float8e5, torch.float32: tl.float32, torch.float16: tl.float16}
CASES = [(1.005, torch.float32, torch.bfloat16), (2.0**-130, torch.float32, torch.bfloat16),
         (512.0, torch.float32, torch.float8_e4m3fn), (1.125, torch.float32, torch.float8_e5m2),
         (126.24, torch.float32, torch.float8_e4m3fn),
         (float("nan"), torch.float8_e4m3fn, torch.float32),
         (2.0**-15, torch.float8_e5m2, torch.float16)]


def interpreted(value, source, target):
    """Return the result of the cast in Triton's interpreter."""
    x = torch.tensor([value]).to(source)
    y = torch.empty(1, dtype=target)
    cast_kernel[(1,)](x, y, TYPES[target])
    return y.float().item()


def on_gpu(value, source, target):
    """Return what the GPU's instructions give: nearest even; FP8 saturates."""
    x = torch.tensor([value]).to(source).float()
    if target is torch.float8_e4m3fn:
        x = x.clamp(-448, 448)
    return x.to(target).float().item()


def main():
    for value, source, target in CASES:
        names = " -> ".join(str(d).removeprefix("torch.") for d in (source, target))
        print(f"{value:<24.9g} {names:26} interpreter {interpreted(value, source, target):<12.6g} "
              f"GPU {on_gpu(value, source, target):.6g}")


if __name__ == "__main__":
    main()
