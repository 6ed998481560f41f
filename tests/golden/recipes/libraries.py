# The calls of other libraries that recipes claim to reproduce, run as their files have them.
#
# Every function takes a checkout of the library and a device and returns a call
#   (bits [rows, cols], format, mode) -> codes uint8 [rows, cols], scales uint32 or uint8
# Files are run as they are. What they import and these calls do not use is left empty.
import ctypes
import hashlib
import importlib.util
import os
import sys
import types

import numpy
import torch

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
SIGNED = {numpy.dtype(numpy.uint32): numpy.int32, numpy.dtype(numpy.uint16): numpy.int16}


def tensor(bits, format_name, device):
    signed = torch.from_numpy(bits.view(SIGNED[bits.dtype]))
    return signed.to(device).view(DTYPES[format_name])


def codes_of(t):
    return t.contiguous().view(torch.uint8).cpu().numpy()


def scales_of(t):
    t = t.contiguous()
    if t.dtype == torch.float32:
        return t.view(torch.int32).cpu().numpy().view(numpy.uint32)
    return t.view(torch.uint8).cpu().numpy()


def execute(path, name, package=""):
    """The file as a module of that name."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    module.__package__ = package or module.__package__
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def empty(name, **members):
    module = types.ModuleType(name)
    module.__path__ = []
    vars(module).update(members)
    sys.modules[name] = module
    return module


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def deep_gemm(checkout, device, use_ue8m0):
    path = os.path.join(checkout, "deep_gemm/utils/math.py")
    math = execute(path, "deep_gemm_math")

    def call(bits, format_name, mode):
        codes, scales = math.per_token_cast_to_fp8(tensor(bits, format_name, device), use_ue8m0)
        return codes_of(codes), scales_of(scales)
    return call, [path]


def transformer_engine_blocks(checkout, device, tile):
    """Its Python reference."""
    folder = os.path.join(checkout, "tests/pytorch/references")
    empty("references")
    paths = [os.path.join(folder, n) for n in ("quantize_scale_calc.py",
                                              "blockwise_quantizer_reference.py")]
    execute(paths[0], "references.quantize_scale_calc")
    reference = execute(paths[1], "references.blockwise_quantizer_reference")

    def call(bits, format_name, mode):
        r = reference.BlockwiseQuantizerReference().quantize(
            tensor(bits, format_name, device), torch.float8_e4m3fn, pow_2_scales=True,
            quant_tile_shape=tile, munge_scale_shapes=False)
        return codes_of(r.data), scales_of(r.scale)
    return call, paths


def deepseek(checkout, device, native=False):
    """act_quant_kernel. Triton's division is IEEE 754's only where NumPy computes, with
    TRITON_INTERPRET=1 in the environment; but its cast to e4m3 is not right there. So y is stored
    in binary32 and PyTorch casts it; `native` stores codes, as act_quant does."""
    path = os.path.join(checkout, "inference/kernel.py")
    kernel = execute(path, "deepseek_kernel")

    def call(bits, format_name, mode):
        x = tensor(bits, format_name, device)
        if native:
            codes, scales = kernel.act_quant(x)
            return codes_of(codes), scales_of(scales)
        y = torch.empty(x.shape, dtype=torch.float32, device=device)
        scales = torch.empty(x.shape[0], x.shape[1] // 128, dtype=torch.float32, device=device)
        kernel.act_quant_kernel[(x.numel() // 128,)](x, y, scales, BLOCK_SIZE=128, scale_fmt=None)
        return codes_of(y.to(torch.float8_e4m3fn)), scales_of(scales)
    return call, [path]


def torchao_package(checkout):
    """torchao.float8 and torchao.prototype without what their __init__.py files import."""
    for name in ("torchao", "torchao.float8", "torchao.prototype", "torchao.prototype.mx_formats",
                 "torchao.prototype.blockwise_fp8_training"):
        if name not in sys.modules:
            empty(name).__path__ = [os.path.join(checkout, name.replace(".", "/"))]


def torchao_block(checkout, device):
    torchao_package(checkout)
    path = os.path.join(checkout, "torchao/prototype/blockwise_fp8_training/kernels.py")
    kernels = execute(path, "torchao.prototype.blockwise_fp8_training.kernels")
    kernel = kernels.triton_fp8_blockwise_act_quant_lhs_kernel
    kernel.configs = kernel.configs[:1]  # all compute the same; tuning takes minutes

    def call(bits, format_name, mode):
        x = tensor(bits, format_name, device)
        codes, scales = kernels.triton_fp8_blockwise_act_quant_lhs(x)
        return codes_of(codes), scales_of(scales)
    return call, [path]


def torchao_row(checkout, device):
    torchao_package(checkout)
    path = os.path.join(checkout, "torchao/float8/float8_utils.py")
    utils = execute(path, "torchao.float8.float8_utils")
    granularity = sys.modules["torchao.float8.config"].ScalingGranularity.AXISWISE

    def call(bits, format_name, mode):
        x = tensor(bits, format_name, device)
        s = utils.tensor_to_scale(x, torch.float8_e4m3fn, scaling_granularity=granularity,
                                  axiswise_dim=-1, round_scales_to_power_of_2=True)
        # As float8_training_tensor.py multiplies; the reciprocal is what its products take.
        codes = utils.to_fp8_saturated(x.to(torch.float32) * s, torch.float8_e4m3fn)
        return codes_of(codes), scales_of(s.reciprocal())
    return call, [path]


def unpacked(packed):
    """Codes of four bits, the first of each byte in its low half."""
    packed = packed.view(torch.uint8)
    return torch.stack((packed & 15, packed >> 4), -1).flatten(-2)


def torchao_mx(checkout, device, mode_name, to="float8_e4m3fn"):
    """MX in e4m3, in float4_e2m1fn_x2, or in fp6_e2m3 and fp6_e3m2, which are names."""
    torchao_package(checkout)
    path = os.path.join(checkout, "torchao/prototype/mx_formats/mx_tensor.py")
    mx = execute(path, "torchao.prototype.mx_formats.mx_tensor")
    chosen = mx.ScaleCalculationMode[mode_name]

    def call(bits, format_name, mode):
        scales, codes = mx.to_mx(tensor(bits, format_name, device), getattr(torch, to, to), 32,
                                 chosen)
        codes = unpacked(codes) if to.endswith("_x2") else codes
        return codes_of(codes), scales_of(scales)
    return call, [path]


def torchao_nvfp4(checkout, device):
    torchao_package(checkout)
    path = os.path.join(checkout, "torchao/prototype/mx_formats/nvfp4_tensor.py")
    nvfp4 = execute(path, "torchao.prototype.mx_formats.nvfp4_tensor")

    def call(bits, format_name, mode):
        x = tensor(bits, format_name, device)
        scale = nvfp4.per_tensor_amax_to_scale(x.abs().amax().float())
        scales, codes = nvfp4.nvfp4_quantize(x, 16, scale)
        return codes_of(unpacked(codes)), scales_of(scales)
    return call, [path]


FORMAT_NUMBERS = {"fp32": 0, "bf16": 1, "fp16": 2}


def pointer(t):
    return ctypes.c_void_p(t.data_ptr())


def msamp(source, device):
    """ScalingMeta and TypeCast. MS-AMP leaves the cast by a given S to TransformerEngine, so the
    source is CHECKOUT,FILE.so, where the latter exports with device pointers
      int cast(const void* x, int format, int64_t n, void* codes, float* S, float* reciprocal)."""
    checkout, _, path = source.partition(",")
    cast = ctypes.CDLL(path).cast
    formats = {DTYPES[f]: number for f, number in FORMAT_NUMBERS.items()}
    for name in ("msamp", "msamp.common", "msamp.common.tensor"):
        empty(name).__path__ = [os.path.join(checkout, name.replace(".", "/"))]

    def cast_to_fp8(x, scale, amax, scale_inv, qtype):
        codes = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
        torch.cuda.synchronize()
        if cast(pointer(x), formats[x.dtype], ctypes.c_int64(x.numel()), pointer(codes),
                pointer(scale), pointer(scale_inv)):
            raise RuntimeError(path)
        return codes

    empty("msamp.common.utils", DistUtil=None,
          TransformerEngineWrapper=types.SimpleNamespace(cast_to_fp8=cast_to_fp8))
    folder = os.path.join(checkout, "msamp/common/tensor")
    meta = execute(os.path.join(folder, "meta.py"), "msamp.common.tensor.meta")
    types_of = execute(os.path.join(folder, "cast.py"), "msamp.common.tensor.cast")
    e4m3 = meta.Dtypes.kfloat8_e4m3

    def call(bits, format_name, mode):
        codes, scales = [], []
        x = tensor(bits, format_name, "cuda")
        for part in (x.split(1) if mode == "rows" else [x]):
            state = meta.ScalingMeta(e4m3)
            codes.append(types_of.TypeCast.cast_to_fp8(part, state))
            scales.append(state.scale_inv.reshape(1, 1))
        return codes_of(torch.cat(codes)), scales_of(torch.cat(scales))
    return call, [os.path.join(folder, n) for n in ("meta.py", "cast.py")]


def program(path, tile, symbol="record", device="cuda"):
    """A shared library around a library's own kernels, built outside this project. It exports
      int record(const void* x, int format, int64_t rows, int64_t cols, int mode, void* codes,
                 void* scales)
    with pointers of that device, a number of FORMAT_NUMBERS and one of MODES; 0 if it ran. Scales
    of tiles 32 wide are bytes."""
    record = getattr(ctypes.CDLL(path), symbol)

    def call(bits, format_name, mode):
        x = tensor(bits, format_name, device)
        rows, cols = x.shape
        shape = ((rows, 1) if mode != "whole" else
                 (-(-rows // (tile[0] or rows)), -(-cols // (tile[1] or cols))))
        codes = torch.empty(x.shape, dtype=torch.uint8, device=device)
        scales = torch.empty(shape, dtype=torch.uint8 if tile[1] == 32 else torch.float32,
                             device=device)
        if device == "cuda":
            torch.cuda.synchronize()
        status = record(pointer(x), FORMAT_NUMBERS[format_name], ctypes.c_int64(rows),
                        ctypes.c_int64(cols), MODES[mode], pointer(codes), pointer(scales))
        if status:
            raise RuntimeError(f"{path}: status {status}")
        return codes_of(codes), scales_of(scales)
    return call, [path]


MODES = {"whole": 0, "rows": 1, "steps/max": 2, "steps/recent": 3}
