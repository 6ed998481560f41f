// The steps of a gradient reduction for one element, with formats as compile-time constants.
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/fp8.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "backends/cuda/instructions/hardware.cuh"
#include "numerics/sums/rank_sum.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/scaling.hpp"

namespace samebits::cuda {

/// The steps by an Arithmetic policy (numerics/sums/rank_sum.hpp).
template <class Arithmetic>
struct element_steps {
  /// The value of a code as binary32 bits.
  template <format_id F>
  __device__ __forceinline__ static std::uint32_t value(std::uint32_t code) {
    constexpr format_spec f = spec_of(F);
    return numerics::decode<std::uint32_t>(f, code);
  }
  /// The code that a rank sends for an element x.
  template <format_id Communication, rounding Round>
  __device__ __forceinline__ static std::uint32_t contribution(scale_rule rule,
                                                               const numerics::tile_scale& scale,
                                                               std::uint32_t x,
                                                               std::uint32_t dither) {
    constexpr format_spec communication = spec_of(Communication);
    return numerics::contribution<Arithmetic>({communication, rule, Round}, scale, x, dither);
  }
  __device__ __forceinline__ static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    return Arithmetic::sum(a, b);
  }
  template <format_id Communication, format_id Own>
  __device__ __forceinline__ static std::uint32_t result(const numerics::tile_scale& scale,
                                                         std::uint32_t total,
                                                         std::uint32_t factor) {
    constexpr format_spec communication = spec_of(Communication);
    constexpr format_spec own = spec_of(Own);
    return numerics::reduced<Arithmetic>({communication}, scale, own, total, factor);
  }
};

/// The steps by the GPU's instructions. Conversions use instructions too, where proved equal. A NaN
/// may keep its payload until it is rounded.
template <>
struct element_steps<hardware> {
  template <format_id F>
  __device__ __forceinline__ static std::uint32_t value(std::uint32_t code) {
    if constexpr (spec_of(F).storage_bits == 8) {
      return __float_as_uint(fp8_values<F>(static_cast<std::uint16_t>(code)).x);
    } else {
      return widen<F>(code);
    }
  }

  template <format_id Communication, rounding Round>
  __device__ __forceinline__ static std::uint32_t contribution(scale_rule rule,
                                                               const numerics::tile_scale& scale,
                                                               std::uint32_t x,
                                                               std::uint32_t dither) {
    constexpr format_spec communication = spec_of(Communication);
    if constexpr (Round == rounding::stochastic || communication.storage_bits == 32) {
      return numerics::contribution<hardware>({communication, rule, Round}, scale, x, dither);
    } else if constexpr (communication.storage_bits == 16) {
      return half_pair<Communication, false>(x, x) & 0xFFFFu;
    } else {
      const std::uint32_t y = numerics::scaled<hardware>(rule, scale, x);
      return unsaturated<Communication>(y, fp8_pair<Communication>(y, y) & 0xFFu);
    }
  }

  __device__ __forceinline__ static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    return hardware::sum(a, b);
  }

  template <format_id Communication, format_id Own>
  __device__ __forceinline__ static std::uint32_t result(const numerics::tile_scale& scale,
                                                         std::uint32_t total,
                                                         std::uint32_t factor) {
    std::uint32_t t = total;
    if constexpr (spec_of(Communication).storage_bits == 8)
      t = hardware::product(t, scale.dequantization_scale);
    t = hardware::product(t, factor);  // NaN is canonical from here on
    if constexpr (spec_of(Own).storage_bits == 32) {
      return t;
    } else {
      return half_pair<Own, false>(t, t) & 0xFFFFu;
    }
  }
};

}  // namespace samebits::cuda
