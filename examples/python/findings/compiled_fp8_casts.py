"""torch.compile saturates casts to FP8 on a GPU, where the same cast without it overflows.

    python examples/python/findings/compiled_fp8_casts.py

In torch 2.11 `x.to(torch.float8_e4m3fn)` turns numbers beyond 464 into NaN, and to e5m2 numbers
beyond 61440 into Inf. Compiled for a GPU, Triton's casts become the largest numbers, 448 and 57344.
"""

import torch

CASTS = [(torch.float8_e4m3fn, 500.0), (torch.float8_e5m2, 70000.0)]


def casts(device):
    """Yield (dtype, number, result of the eager cast, result of the compiled cast)."""
    for dtype, number in CASTS:
        x = torch.full((8,), number, device=device)
        torch.compiler.reset()
        compiled = torch.compile(lambda t, dtype=dtype: t.to(dtype))
        yield dtype, number, x.to(dtype)[0].item(), compiled(x)[0].item()


def main():
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        for dtype, number, eager, compiled in casts(device):
            print(f"{device}: {number} to {dtype}: eager {eager}, compiled {compiled}")


if __name__ == "__main__":
    main()
