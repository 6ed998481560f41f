"""Judge the casts of torch and Triton: `python examples/python/judge_torch_casts.py`.

Each row is a cast on a device and the rule that gives all its results. Where no rule of the
contract does, the row says what is different. Needs torch; the rows of Triton and of CUDA need a
GPU. With TRITON_INTERPRET=1 the rows of Triton judge its interpreter, on CPU tensors. `--smallest`
shows the smallest input of each difference as well, `--only NAME` only rows of that name.
"""

import os
import sys

import torch

from samebits.testing import Layout, check_conversion

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None
else:
    @triton.jit
    def cast_kernel(x, y, n, TYPE: tl.constexpr, ROUNDING: tl.constexpr, BLOCK: tl.constexpr):
        """Convert contiguous elements by `.to()`. One program converts BLOCK elements."""
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < n)
        if ROUNDING is None:
            tl.store(y + at, value.to(TYPE), mask=at < n)
        else:
            tl.store(y + at, value.to(TYPE, fp_downcast_rounding=ROUNDING), mask=at < n)

CONTIGUOUS = [Layout(offset) for offset in (0, 1, 3, 8)]
LAYOUTS = [*CONTIGUOUS, Layout(1, step=2)]
FORMATS = {"bf16": torch.bfloat16, "fp16": torch.float16, "e4m3": torch.float8_e4m3fn,
           "e5m2": torch.float8_e5m2, "e4m3fnuz": torch.float8_e4m3fnuz,
           "e5m2fnuz": torch.float8_e5m2fnuz, "fp32": torch.float32, "fp64": torch.float64}
CASTS = [("fp32", "bf16"), ("fp32", "fp16"), ("fp32", "e4m3"), ("fp32", "e5m2"),
         ("fp32", "e4m3fnuz"), ("fp32", "e5m2fnuz"), ("fp16", "bf16"), ("fp16", "e4m3"),
         ("fp16", "e5m2"), ("bf16", "fp16"), ("bf16", "e4m3"), ("bf16", "e5m2"), ("fp64", "fp32"),
         ("fp64", "fp16"), ("fp64", "bf16"), ("fp64", "e4m3"), ("e4m3", "fp32"), ("e5m2", "fp16"),
         ("fp16", "fp32")]
RULES = {("nearest_even", "ieee"): "the contract's default: nearest even, overflow by IEEE 754",
         ("nearest_even", "saturate"): "nearest even, saturated",
         ("nearest_even", "saturate_finite"): "nearest even, finite numbers saturated",
         ("toward_zero", "ieee"): "toward zero, overflow by IEEE 754",
         ("toward_zero", "saturate"): "toward zero, saturated"}
NANS = {"canonical": "the canonical NaN", "preserve_sign": "the canonical NaN with its sign"}


def failure(cast, source, target, device, **rule):
    """Return the text of the failed check, or None if every result is right."""
    layouts = getattr(cast, "layouts", LAYOUTS)
    try:
        check_conversion(cast, source, target, device=device, examples=8, layouts=layouts, **rule)
    except AssertionError as error:
        return str(error)
    return None


def judge(cast, source, target, device, smallest=False):
    """Return the rule that a cast follows, or its difference from the contract."""
    first = None
    for (rounding, overflow), words in RULES.items():
        rule = {"rounding": rounding, "overflow": overflow}
        text = failure(cast, source, target, device, **rule)
        if text is None:
            return words + nan_words(cast, source, target, device, rule)
        first = first or text
    if " raised " in first:
        return "not supported: " + first.split(" raised ")[1].splitlines()[0][:90]
    why = first.split("looks like: ")[1].split(" (fits")[0].split(" (none")[0]
    return f"DIFFERENT: {why}" + ("\n" + first if smallest else "")


def nan_words(cast, source, target, device, rule):
    """Return what the cast makes of NaN; the default of the contract is the canonical NaN."""
    if "fnuz" in target:
        return ""  # these formats have one NaN
    for nan, words in NANS.items():
        if failure(cast, source, target, device, nan=nan, **rule) is None:
            return f"; NaN: {words}"
    return "; NaN: another code, such as " + nan_code(cast, source, target, device)


def nan_code(cast, source, target, device):
    """Return the code of the result for torch's own NaN."""
    nan = torch.tensor([float("nan")], dtype=FORMATS[source], device=device)
    words = cast(nan).cpu().view(torch.uint8).tolist()
    return "".join(f"{w:02X}" for w in reversed(words))


def torch_cast(target):
    return lambda x: x.to(FORMATS[target])


def compiled_cast(target):
    dtype = FORMATS[target]
    torch.compiler.reset()
    compiled = torch.compile(lambda x: x.to(dtype), dynamic=True, fullgraph=True)

    def cast(x):
        return compiled(x)

    cast.layouts = [Layout()]  # torch compiles again for each storage offset
    return cast


def triton_cast(target, rounding):
    """Return a cast by `.to()` inside a Triton kernel."""
    dtype = {"e4m3": tl.float8e4nv, "e5m2": tl.float8e5, "bf16": tl.bfloat16, "fp16": tl.float16,
             "fp32": tl.float32}[target]

    def cast(x):
        y = torch.empty(x.shape, dtype=FORMATS[target], device=x.device)
        if x.numel():
            grid = (triton.cdiv(x.numel(), 1024),)
            cast_kernel[grid](x, y, x.numel(), dtype, rounding, BLOCK=1024)
        return y

    cast.layouts = CONTIGUOUS
    return cast


def rows():
    """Yield (name, source, target, device, cast)."""
    devices = ["cpu"] + ["cuda"] * torch.cuda.is_available()
    for device in devices:
        for source, target in CASTS:
            yield "torch .to()", source, target, device, torch_cast(target)
    for device in devices:
        for source, target in [("fp32", "bf16"), ("fp32", "e4m3"), ("fp32", "e5m2")]:
            yield "torch.compile", source, target, device, compiled_cast(target)
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if triton and (interpreted or torch.cuda.is_available()):
        for source, target in [(s, t) for s, t in CASTS if "fnuz" not in t and s != "fp64"]:
            narrower = FORMATS[target].itemsize < FORMATS[source].itemsize
            for rounding in (None, "rtne", "rtz") if narrower else (None,):
                name = "Triton .to()" + (f" {rounding}" if rounding else "")
                device = "cpu" if interpreted else "cuda"
                yield name, source, target, device, triton_cast(target, rounding)


def main():
    print(f"torch {torch.__version__}, Triton {triton.__version__ if triton else 'not installed'}")
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    for name, source, target, device, cast in rows():
        if only not in name:
            continue
        verdict = judge(cast, source, target, device, "--smallest" in sys.argv)
        print(f"{device:5} {name:18} {source:5} -> {target:9} {verdict}", flush=True)


if __name__ == "__main__":
    main()
