"""torch's CPU casts: the code of NaN depends on strides, and on the place in the tensor.

    python examples/python/findings/cpu_cast_nan.py

The vector code and the scalar code of the same cast make different NaNs, one of them negative.
"""

import torch


WORDS = {torch.bfloat16: torch.int16, torch.float32: torch.int32}


def nan_codes(source, target, count, step):
    """Return the codes, as text, of a tensor of positive NaN after a cast; `step`: its stride."""
    x = torch.full((count * step,), float("nan"), dtype=source)[::step]
    codes = x.to(target).view(WORDS[target]).tolist()
    bits = 8 * target.itemsize
    return [f"{c % 2**bits:0{bits // 4}X}" for c in codes]


CASES = [(torch.float32, torch.bfloat16, 20, 1), (torch.float32, torch.bfloat16, 20, 2),
         (torch.float64, torch.bfloat16, 20, 1), (torch.float16, torch.bfloat16, 20, 1),
         (torch.float16, torch.float32, 20, 1), (torch.bfloat16, torch.float32, 20, 1)]


def main():
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}")
    for source, target, count, step in CASES:
        codes = nan_codes(source, target, count, step)
        runs = [f"{codes.count(c)} x {c}" for c in dict.fromkeys(codes)]
        names = " -> ".join(str(d).removeprefix("torch.") for d in (source, target))
        print(f"{names:20} {count} elements, stride {step}: {', '.join(runs)}")


if __name__ == "__main__":
    main()
