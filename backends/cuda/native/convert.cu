// cuda-native: conversion by hardware instructions, where they were proved equal to the definition.
//
// The hardware rounds to nearest even and writes the canonical NaN (PTX ISA, cvt; compared over all
// inputs by the conformance and exhaustive runs). It has FP8 with saturation only, so
// overflow::ieee into FP8 replaces what lies beyond the largest value that still rounds to max
// finite.
#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/convert_ops.cuh"
#include "backends/cuda/cuda.hpp"
#include "backends/cuda/error.hpp"
#include "backends/cuda/launch.cuh"
#include "backends/cuda/native/fp8.cuh"
#include "backends/cuda/native/halves.cuh"
#include "backends/visit.hpp"

namespace samebits::cuda {
namespace {

using backends::convert_call;
using backends::fixed_format;
using backends::fixed_rounding;
using enum format_id;

/// A saturated FP8 code of binary32 bits x, corrected to overflow::ieee.
template <format_id To>
__device__ __forceinline__ std::uint32_t unsaturate(std::uint32_t x, std::uint32_t code) {
  const std::uint32_t magnitude = x & 0x7FFFFFFFu;
  if constexpr (To == e4m3) {
    return magnitude > 0x43E80000u ? 0x7Fu : code;  // beyond 464, NaN among them
  } else {
    const bool beyond = magnitude >= 0x47700000u && magnitude <= 0x7F800000u;  // from 61440 to Inf
    return beyond ? code + 1 : code;  // 7B to 7C, with its sign
  }
}

template <format_id From, format_id To, bool Saturate>
struct native_op
    : emulated_op<fixed_format<From>, fixed_format<To>, fixed_rounding<rounding::nearest_even>, 0> {
  using base =
      emulated_op<fixed_format<From>, fixed_format<To>, fixed_rounding<rounding::nearest_even>, 0>;
  static constexpr int pack = 128 / larger(base::in_bits, base::out_bits);
  static constexpr int packs = 4;
  static constexpr pace order = pace::at_once;

  __device__ __forceinline__ packed<base::out_bits, pack> apply(
      const packed<base::in_bits, pack>& x, std::uint64_t) const {
    packed<base::out_bits, pack> y{};
#pragma unroll
    for (int i = 0; i < pack; i += 2) {
      const std::uint32_t a = widen<From>(x.code(i));
      const std::uint32_t b = widen<From>(x.code(i + 1));
      std::uint32_t pair;
      if constexpr (base::out_bits == 16) {
        pair = half_pair<To, Saturate>(a, b);
      } else if constexpr (Saturate) {
        pair = fp8_pair<To>(a, b);
      } else {
        const std::uint32_t saturated = fp8_pair<To>(a, b);
        pair = unsaturate<To>(a, saturated & 0xFF) | unsaturate<To>(b, saturated >> 8) << 8;
      }
      y.w[i * base::out_bits / 32] |= pair << (i * base::out_bits % 32);
    }
    return y;
  }
};

template <format_id From, format_id To, bool Saturate>
bool launch_pair(const convert_call& call, cudaStream_t stream) {
  using op_type = native_op<From, To, Saturate>;
  const op_type op{{Saturate, {}}};
  const auto d = dense_layout(call, op_type::pack, 1);
  if (!d) return false;
  dense_kernel<<<dense_grid<op_type>(*d), block_threads, 0, stream>>>(op, *d);
  return true;
}

template <format_id From, format_id To>
bool launch_policy(const convert_call& call, cudaStream_t stream) {
  return call.rule.on_overflow == overflow::saturate ? launch_pair<From, To, true>(call, stream)
                                                     : launch_pair<From, To, false>(call, stream);
}

template <format_id From>
bool launch_from(const convert_call& call, cudaStream_t stream) {
  switch (call.out.format) {
    case e4m3: return launch_policy<From, e4m3>(call, stream);
    case e5m2: return launch_policy<From, e5m2>(call, stream);
    case fp16:
      if constexpr (From == fp32) return launch_policy<fp32, fp16>(call, stream);
      break;
    case bf16:
      if constexpr (From == fp32) return launch_policy<fp32, bf16>(call, stream);
      break;
    default: break;
  }
  return false;
}

}  // namespace

bool native_has(const convert_call& call) {
  const format_id from = call.in.format, to = call.out.format;
  const bool fp8 = (to == e4m3 || to == e5m2) && (from == fp32 || from == fp16 || from == bf16);
  const bool half = (to == fp16 || to == bf16) && from == fp32;
  return (fp8 || half) && call.rule.round == rounding::nearest_even &&
         call.rule.on_overflow != overflow::saturate_finite &&
         call.rule.on_nan == nan_policy::canonical;
}

void launch_native(const convert_call& call, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  const bool done = call.in.format == fp32   ? launch_from<fp32>(call, s)
                    : call.in.format == fp16 ? launch_from<fp16>(call, s)
                                             : launch_from<bf16>(call, s);
  // Strided and unaligned views take the definition's general kernel: the same bits.
  if (!done) return launch_emulated(call, stream);
  check(cudaGetLastError(), "cuda-native: convert");
}

}  // namespace samebits::cuda
