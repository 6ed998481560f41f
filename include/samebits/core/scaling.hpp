// Scale maths and policies of quantizers: the enums, their names, one table of meaning.
//
// M is the largest finite value of the codes (e4m3 448, e5m2 57344), a a tile's amax after the
// policies, s the dequantization scale that is stored (x is about q * s), x an element, y what is
// cast. Every division and product is one binary32 operation, rounded to nearest even (contract
// §7).
//
//   scale_math   scale                                          cast
//   te           S = M / a, s = 1 / S                           y = x * S
//   div          s = a / M                                      y = x / s
//   rcp          s = a / M, r = 1 / s                           y = x * r
//   pow2         s = the power of two at or above a / M, r=1/s  y = x * r
//   dg_cuda      s = a * (1 / M), r = 1 / s                     y = x * r
//   dg_tile      s = a / M, r = M / a                           y = x * r
//   sgl_v2       s = a * (1 / M), r = M / a                     y = x * r
//   te_pow2      S = the power of two at or below M / a, s=1/S  y = x * S
//
//   mx_floor     s = 2^(exponent of a - exponent of M)          y = x * (1 / s)
//   mx_ceil      ... of a, plus 1 if a is no power of two       y = x * (1 / s)
//   mx_even      ... of a rounded to the codes' precision       y = x * (1 / s)
//   mx_rceil     s = the power of two at or above a / M         y = x * (1 / s)
//
//   The mx maths keep s within 2^-127 .. 2^127, the range of e8m0. An a that is Inf gives 2^127, or
//   under nonfinite::propagate NaN, as does a NaN. mx_floor and mx_even let elements saturate.
//
//   An infinite S of te and te_pow2 becomes what scale_overflow says; s, its reciprocal, may be
//   subnormal. Every s but theirs and the mx maths' is at least 2^-126, and r at most 2^126.
//
//   nonfinite        NaN in a tile            Inf in a tile            a tile left without elements
//   te               skipped                  s = 1                    s = 1
//   skip_nonfinite   skipped                  skipped                  s = 1
//   skip_nan         skipped                  a is Inf                 s = 1
//   propagate        a is NaN                 a is Inf                 does not happen
//   In every policy the codes of NaN are NaN; those of Inf follow from y and the overflow policy.
//
//   Whose formulas they are: te TransformerEngine (block and current scaling), torchao; div
//   DeepSeek-V3 as written, vLLM; rcp DeepGEMM on CPU tensors; pow2 DeepGEMM's UE8M0; dg_cuda
//   DeepGEMM on CUDA tensors; dg_tile its TileLang kernels without fast_math; sgl_v2 sglang's
//   second kernel in IEEE steps; te_pow2 TransformerEngine's force_pow_2_scales; mx_* torchao's
//   modes of MXFP8, of which mx_rceil is TransformerEngine's.
#pragma once

#include <cstdint>
#include <string_view>

#include "samebits/core/config.hpp"

namespace samebits {

enum class scale_math : std::uint8_t {
  te,
  div,
  rcp,
  pow2,
  dg_cuda,
  dg_tile,
  sgl_v2,
  te_pow2,
  mx_floor,
  mx_ceil,
  mx_even,
  mx_rceil
};

enum class nonfinite : std::uint8_t { te, skip_nonfinite, propagate, skip_nan };

/// What an infinite S becomes: FLT_MAX, or the largest finite value of the format that is
/// quantized.
enum class scale_overflow : std::uint8_t { flt_max, input_max };

inline constexpr int scale_math_count = 12;
inline constexpr int nonfinite_count = 4;
inline constexpr int scale_overflow_count = 2;

constexpr std::string_view name(scale_math m) {
  switch (m) {
    case scale_math::te: return "te";
    case scale_math::div: return "div";
    case scale_math::rcp: return "rcp";
    case scale_math::pow2: return "pow2";
    case scale_math::dg_cuda: return "dg_cuda";
    case scale_math::dg_tile: return "dg_tile";
    case scale_math::sgl_v2: return "sgl_v2";
    case scale_math::te_pow2: return "te_pow2";
    case scale_math::mx_floor: return "mx_floor";
    case scale_math::mx_ceil: return "mx_ceil";
    case scale_math::mx_even: return "mx_even";
    case scale_math::mx_rceil: return "mx_rceil";
  }
  return "?";
}

SAMEBITS_HD constexpr bool is_mx(scale_math m) {
  return m == scale_math::mx_floor || m == scale_math::mx_ceil || m == scale_math::mx_even ||
         m == scale_math::mx_rceil;
}

/// Whether every scale is a power of two, which e8m0 holds.
SAMEBITS_HD constexpr bool is_power_of_two(scale_math m) {
  return m == scale_math::pow2 || m == scale_math::te_pow2 || is_mx(m);
}

constexpr std::string_view name(nonfinite n) {
  switch (n) {
    case nonfinite::te: return "te";
    case nonfinite::skip_nonfinite: return "skip_nonfinite";
    case nonfinite::propagate: return "propagate";
    case nonfinite::skip_nan: return "skip_nan";
  }
  return "?";
}

constexpr std::string_view name(scale_overflow o) {
  switch (o) {
    case scale_overflow::flt_max: return "flt_max";
    case scale_overflow::input_max: return "input_max";
  }
  return "?";
}

}  // namespace samebits
