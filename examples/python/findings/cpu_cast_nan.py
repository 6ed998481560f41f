"""torch's CPU casts to bf16: the code of NaN depends on strides, and on the place in the tensor.

    python examples/python/findings/cpu_cast_nan.py

The vector code and the scalar code of the same cast make different NaNs, one of them negative.
"""

import torch


def nan_codes(source, count, step):
    """Return the codes, as text, that a tensor of positive NaN gets as bf16; `step`: its stride."""
    x = torch.full((count * step,), float("nan"), dtype=source)[::step]
    codes = x.to(torch.bfloat16).view(torch.int16).tolist()
    return [f"{c & 0xFFFF:04X}" for c in codes]


CASES = [(torch.float32, 20, 1), (torch.float32, 20, 2), (torch.float64, 20, 1),
         (torch.float16, 20, 1)]


def main():
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}")
    for source, count, step in CASES:
        codes = nan_codes(source, count, step)
        runs = [f"{codes.count(c)} x {c}" for c in dict.fromkeys(codes)]
        print(f"{source} -> bfloat16, {count} elements, stride {step}: {', '.join(runs)}")


if __name__ == "__main__":
    main()
