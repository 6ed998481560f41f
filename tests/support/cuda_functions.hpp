// CUDA's functions by name, with the sums of their results (function_sum.hpp).
//
// The sums come from a program that computes the functions in the processor's binary32 arithmetic
// and shares no code with the library. PyTorch 2.11 on an H100 and an H200 (CUDA 13.0, 2026-11-22)
// returned its results: expf on all 2^32 operands, the others on every 16th. NaNs of
// different codes counted as equal there; in the sums a NaN is 7FFFFFFF. From log10f on, the sums
// come from the PTX of nvcc 13.0.88, translated instruction by instruction to C++.
// device_cuda_functions_test compares the library's own results with a GPU's.
#pragma once

#include "numerics/hardware/cuda_functions/erf.hpp"
#include "numerics/hardware/cuda_functions/erfc.hpp"
#include "numerics/hardware/cuda_functions/exp.hpp"
#include "numerics/hardware/cuda_functions/expm1.hpp"
#include "numerics/hardware/cuda_functions/log.hpp"
#include "numerics/hardware/cuda_functions/log1p.hpp"
#include "numerics/hardware/cuda_functions/rsqrt_function.hpp"
#include "numerics/hardware/cuda_functions/sin.hpp"
#include "numerics/hardware/cuda_functions/tanh.hpp"
#include "support/function_sum.hpp"

namespace samebits::support {

inline constexpr summed_function cuda_functions[] = {
    {"expf", numerics::cuda_13_0::exp, 0x76CACCF32646939D, 0x69A4B3EDE0CEE354},
    {"exp2f", numerics::cuda_13_0::exp2, 0x38548E9475762B69, 0xF284DC67F593E4EB},
    {"expm1f", numerics::cuda_13_0::expm1, 0x523B53206C14A9C2, 0x2ABCAF85392BAFC9},
    {"logf", numerics::cuda_13_0::log, 0x30B2477EB22F3C53, 0xC12F12F1C9F612C0},
    {"log2f", numerics::cuda_13_0::log2, 0x502EA131E6535932, 0xE9D2927658C6559B},
    {"log1pf", numerics::cuda_13_0::log1p, 0xD9136C0A6CD2FD0C, 0xA36C0D973F69F145},
    {"tanhf", numerics::cuda_13_0::tanh, 0xA9BB1D8CE168DA38, 0x8A5E24320BA53F77},
    {"erff", numerics::cuda_13_0::erf, 0x71BFFC5730A33DC6, 0x2B0C7CF12E72F4D1},
    {"rsqrtf", numerics::cuda_13_0::rsqrt, 0xFF6A44BF217D0420, 0x93DEFF8F3D9ABF63},
    {"log10f", numerics::cuda_13_0::log10, 0xFAB9BAE96D1B9A66, 0x7BFC66CF94CBAD99},
    {"erfcf", numerics::cuda_13_0::erfc, 0x861CDB73BBB64B59, 0x52BDDD077096C371},
    {"sinf", numerics::cuda_13_0::sin, 0x38AA86EBA04CD2AE, 0x8414DA0AE4D30597},
    {"cosf", numerics::cuda_13_0::cos, 0xCB562DE3593F98C8, 0x46D05910875C77F0},
    {"__expf", numerics::cuda_13_0::fast_exp, 0x78EB435BD6558C8C, 0x69A4D5295A4CE197},
    {"__logf", numerics::cuda_13_0::fast_log, 0x0F4AA73A8882DC37, 0xC12D157275310142},
};

}  // namespace samebits::support
