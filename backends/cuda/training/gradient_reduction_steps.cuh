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
  template <format_id Wire, rounding Round>
  __device__ __forceinline__ static std::uint32_t contribution(scale_math math,
                                                               const numerics::tile_scale& scale,
                                                               std::uint32_t x,
                                                               std::uint32_t dither) {
    constexpr format_spec wire = spec_of(Wire);
    return numerics::contribution<Arithmetic>({wire, math, Round}, scale, x, dither);
  }
  __device__ __forceinline__ static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    return Arithmetic::sum(a, b);
  }
  template <format_id Wire, format_id Own>
  __device__ __forceinline__ static std::uint32_t result(const numerics::tile_scale& scale,
                                                         std::uint32_t total,
                                                         std::uint32_t factor) {
    constexpr format_spec wire = spec_of(Wire);
    constexpr format_spec own = spec_of(Own);
    return numerics::reduced<Arithmetic>({wire}, scale, own, total, factor);
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

  template <format_id Wire, rounding Round>
  __device__ __forceinline__ static std::uint32_t contribution(scale_math math,
                                                               const numerics::tile_scale& scale,
                                                               std::uint32_t x,
                                                               std::uint32_t dither) {
    constexpr format_spec wire = spec_of(Wire);
    if constexpr (Round == rounding::stochastic || wire.storage_bits == 32) {
      return numerics::contribution<hardware>({wire, math, Round}, scale, x, dither);
    } else if constexpr (wire.storage_bits == 16) {
      return half_pair<Wire, false>(x, x) & 0xFFFFu;
    } else {
      const std::uint32_t y = numerics::scaled<hardware>(math, scale, x);
      return unsaturated<Wire>(y, fp8_pair<Wire>(y, y) & 0xFFu);
    }
  }

  __device__ __forceinline__ static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    return hardware::sum(a, b);
  }

  template <format_id Wire, format_id Own>
  __device__ __forceinline__ static std::uint32_t result(const numerics::tile_scale& scale,
                                                         std::uint32_t total,
                                                         std::uint32_t factor) {
    std::uint32_t t = total;
    if constexpr (spec_of(Wire).storage_bits == 8) t = hardware::product(t, scale.stored);
    t = hardware::product(t, factor);  // NaN is canonical from here on
    if constexpr (spec_of(Own).storage_bits == 32) {
      return t;
    } else {
      return half_pair<Own, false>(t, t) & 0xFFFFu;
    }
  }
};

}  // namespace samebits::cuda
