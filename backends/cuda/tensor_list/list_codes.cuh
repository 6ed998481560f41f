// Vectors of neighbouring elements of a tensor: loads, stores and conversion from and to binary32.
#pragma once

#include <cstdint>

#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/instructions/fp8.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "backends/cuda/instructions/hardware.cuh"
#include "numerics/tensor_list/list_ops.hpp"
#include "samebits/core/format.hpp"

namespace samebits::cuda {

/// A format as a compile-time constant.
template <format_id F>
struct fixed {
  static constexpr format_id value = F;
};

/// Calls f with fp32, fp16 or bf16 as a compile-time constant.
template <class Function>
__device__ __forceinline__ void with_wide(format_id f, const Function& function) {
  switch (f) {
    case format_id::fp32: return function(fixed<format_id::fp32>{});
    case format_id::fp16: return function(fixed<format_id::fp16>{});
    default: return function(fixed<format_id::bf16>{});
  }
}
/// Calls f with any format of a list as a compile-time constant.
template <class Function>
__device__ __forceinline__ void with_any(format_id f, const Function& function) {
  switch (f) {
    case format_id::e4m3: return function(fixed<format_id::e4m3>{});
    case format_id::e5m2: return function(fixed<format_id::e5m2>{});
    default: return with_wide(f, function);
  }
}

/// N neighbouring elements as codes: 4, 8 or 16 bytes.
template <format_id F, int N>
using code_vector = packed<spec_of(F).storage_bits, N>;

/// Values of a code_vector as binary32 bits. A NaN may keep its payload: every later step makes NaN
/// canonical.
template <int N>
struct value_vector {
  std::uint32_t x[N];
};

/// The values of a vector of codes.
template <format_id F, int N>
__device__ __forceinline__ value_vector<N> values_of(
    const packed<spec_of(F).storage_bits, N>& codes) {
  value_vector<N> v;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if constexpr (F == format_id::fp32) {
      v.x[i] = codes.w[i];
    } else if constexpr (spec_of(F).storage_bits == 16) {
      v.x[i] = widen<F>(codes.w[i / 2] >> (i % 2 * 16) & 0xFFFFu);
    } else if (i % 2 == 0) {
      const float2 pair = fp8_values<F>(static_cast<std::uint16_t>(codes.w[i / 4] >> (i % 4 * 8)));
      v.x[i] = __float_as_uint(pair.x);
      v.x[i + 1] = __float_as_uint(pair.y);
    }
  }
  return v;
}

/// Rounds to fp32, fp16 or bf16 codes: to nearest even, overflow to Inf, canonical NaN. The values
/// must come from a binary32 step.
template <format_id F, int N>
__device__ __forceinline__ code_vector<F, N> codes_of(const value_vector<N>& v) {
  code_vector<F, N> codes;
  if constexpr (F == format_id::fp32) {
#pragma unroll
    for (int i = 0; i < N; ++i) codes.w[i] = v.x[i];
  } else {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      codes.w[i] = half_pair<F, false>(v.x[2 * i], v.x[2 * i + 1]);
    }
  }
  return codes;
}

/// Loads one element as binary32 bits; p must be aligned to the element.
template <format_id F>
__device__ __forceinline__ std::uint32_t load_value(const std::byte* p) {
  if constexpr (F == format_id::fp32) {
    return *reinterpret_cast<const std::uint32_t*>(p);
  } else if constexpr (spec_of(F).storage_bits == 16) {
    return widen<F>(*reinterpret_cast<const std::uint16_t*>(p));
  } else {
    return __float_as_uint(fp8_values<F>(static_cast<std::uint16_t>(*p)).x);
  }
}
/// Rounds binary32 bits to one fp32, fp16 or bf16 element; p must be aligned to the element.
template <format_id F>
__device__ __forceinline__ void store_value(std::byte* p, std::uint32_t x) {
  if constexpr (F == format_id::fp32) {
    *reinterpret_cast<std::uint32_t*>(p) = x;
  } else {
    *reinterpret_cast<std::uint16_t*>(p) = static_cast<std::uint16_t>(half_pair<F, false>(x, x));
  }
}

/// Updates the maximum magnitude `seen` with a word of codes. For 16-bit formats each half has its
/// own maximum.
template <format_id F>
__device__ __forceinline__ std::uint32_t larger_codes(std::uint32_t seen, std::uint32_t codes) {
  if constexpr (spec_of(F).storage_bits == 32) return max(seen, codes & 0x7FFFFFFFu);
  return __vmaxu2(seen, codes & 0x7FFF7FFFu);
}
/// The maximum magnitude, as a code, from a word that larger_codes() left.
template <format_id F>
__device__ __forceinline__ std::uint32_t largest_code(std::uint32_t seen) {
  if constexpr (spec_of(F).storage_bits == 32) return seen;
  return max(seen & 0xFFFFu, seen >> 16);
}

}  // namespace samebits::cuda
