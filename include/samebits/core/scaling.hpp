// Scale rules and policies of quantizers: the enums, their names, and tables of their meaning.
//
// M is the largest finite value of the codes (e4m3 448, e5m2 57344, e2m1 6, e2m3 7.5, e3m2 28). a is a
// tile's amax after the policies. s is the stored dequantization scale (x is about q * s). S is the inverse scale, x an
// element, y the number that is cast to a code. Every division and product is one binary32
// operation, rounded to nearest even (contract §7).
//
//   scale_rule   scale                                          number that is cast
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
// Rules with two levels. A is the amax of the tensor, S2 its scale that all tiles share, and s the
// tile's scale in e4m3: rounded to nearest even, at most 448. The dequantization scale d of a tile
// takes both (x is about q * d).
//
//   scale_rule        tensor scale   s = e4m3 of                   y = x * r with          d
//   nvfp4_te          A              a * (S * (1 / M))             r = 1 / (s * (1 / S))   s * A * (1 / (448 * M))
//   nvfp4_static6     A              (a / M) * S                   as nvfp4_te             as nvfp4_te
//   nvfp4_4over6_mae  A              b or b * 1.5, b = (a / M) * S as nvfp4_te             s * A * (1 / (256 * M))
//   nvfp4_4over6_mse  A              as nvfp4_4over6_mae           as nvfp4_te             as nvfp4_4over6_mae
//   nvfp4_torchao     p = A/(448*M)  (a / M) / p, at least 2^-6    r = (1 / p) / s         p * s
//   nvfp4_vllm        S              S * (a * (1 / M))             r = ~(s * ~S)           s / S
//
// - S = (448 * M) / A, for nvfp4_4over6_* (256 * M) / A; infinite, FLT_MAX; for A = 0 or S = 0, 1. S
//   of nvfp4_vllm is usually the caller's.
// - r is at most FLT_MAX. ~ is the instruction rcp.approx.ftz; r of nvfp4_vllm and
//   nvfp4_static6 is 0 if s is 0.
// - nvfp4_4over6_*: both scales are tried; b * 1.5, which maps a to 4 instead of 6, is taken if its
//   sum of errors is smaller: |e| (mae) or e^2 (mse), e = ((q * s) * A) / (256 * M) - x, in binary32:
//   the elements of a row in order, then rows i and i + 8, 4, 2, 1. Tiles are 1 x 16, 16 x 1 (summed
//   as a row) or 16 x 16.
// - A tile of zeros and a tile left without elements: the formulas with a = 0.
// - A tile whose a * S is too small for e4m3 gets s = 0. Its codes are M or 0, its values all 0.
//
// Limits of scales:
// - The mx rules keep s within 2^-127 .. 2^127, the range of e8m0. If a is Inf, s is 2^127, or NaN
//   under nonfinite::propagate. If a is NaN, s is NaN. mx_floor and mx_even let elements saturate.
// - te and te_pow2 replace an infinite S as scale_overflow says. Their s, the reciprocal of S, may
//   be subnormal.
// - All other rules have s at least 2^-126 and r at most 2^126.
//
//   nonfinite        NaN in a tile            Inf in a tile            a tile left without elements
//   te               skipped                  s = 1                    s = 1
//   skip_nonfinite   skipped                  skipped                  s = 1
//   skip_nan         skipped                  a is Inf                 s = 1
//   propagate        a is NaN                 a is Inf                 does not happen
// In every policy the code of a NaN is NaN. The code of an Inf follows from y and the overflow
// policy.
//
// Libraries with each rule:
// - te: TransformerEngine (block and current scaling), torchao.
// - div: DeepSeek-V3 as written, vLLM.
// - rcp: DeepGEMM on CPU tensors.
// - pow2: DeepGEMM's UE8M0.
// - dg_cuda: DeepGEMM on CUDA tensors.
// - dg_tile: DeepGEMM's TileLang kernels without fast_math.
// - sgl_v2: sglang's second kernel in IEEE steps.
// - te_pow2: TransformerEngine's force_pow_2_scales.
// - mx_*: torchao's modes of MXFP8, MXFP6 and MXFP4; mx_rceil is also TransformerEngine's.
// - nvfp4_te: TransformerEngine's NVFP4, torchao's NVFP4 training.
// - nvfp4_static6: fouroversix without adaptive blocks.
// - nvfp4_4over6_*: four over six of TransformerEngine.
// - nvfp4_torchao: torchao's NVFP4Tensor (inference). Its single level is a tensor scale of 1.
// - nvfp4_vllm: vLLM, FlashInfer, TensorRT-LLM.
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"
#include "samebits/core/table.hpp"

namespace samebits {

/// Scale rule: the formulas from amax to scale and from element to code; see the first table above.
enum class scale_rule : std::uint8_t {
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
  mx_rceil,
  nvfp4_te,
  nvfp4_static6,
  nvfp4_4over6_mae,
  nvfp4_4over6_mse,
  nvfp4_torchao,
  nvfp4_vllm
};
template <>
inline constexpr auto table_of<scale_rule> = enum_table<scale_rule::nvfp4_vllm>(
    {"te", "div", "rcp", "pow2", "dg_cuda", "dg_tile", "sgl_v2", "te_pow2", "mx_floor", "mx_ceil",
     "mx_even", "mx_rceil", "nvfp4_te", "nvfp4_static6", "nvfp4_4over6_mae", "nvfp4_4over6_mse",
     "nvfp4_torchao", "nvfp4_vllm"});

/// Treatment of NaN and Inf in a tile's amax; see the second table above.
enum class nonfinite : std::uint8_t { te, skip_nonfinite, propagate, skip_nan };
template <>
inline constexpr auto table_of<nonfinite> =
    enum_table<nonfinite::skip_nan>({"te", "skip_nonfinite", "propagate", "skip_nan"});

/// Replacement of an infinite S: FLT_MAX, or the largest finite value of the input's format.
enum class scale_overflow : std::uint8_t { flt_max, input_max };
template <>
inline constexpr auto table_of<scale_overflow> =
    enum_table<scale_overflow::input_max>({"flt_max", "input_max"});

/// Returns whether the rule is one of the four MX rules.
SAMEBITS_HD constexpr bool is_mx(scale_rule m) {
  return m == scale_rule::mx_floor || m == scale_rule::mx_ceil || m == scale_rule::mx_even ||
         m == scale_rule::mx_rceil;
}

/// Number of rules whose only scales are those of the tiles; they come first.
inline constexpr int one_level_scale_rules = static_cast<int>(scale_rule::nvfp4_te);

/// Returns whether the rule has a scale of the tensor beside the scales of the tiles, which are in e4m3.
SAMEBITS_HD constexpr bool has_two_levels(scale_rule m) {
  return static_cast<int>(m) >= one_level_scale_rules;
}

/// Returns whether the rule tries two scales for each tile.
SAMEBITS_HD constexpr bool is_four_over_six(scale_rule m) {
  return m == scale_rule::nvfp4_4over6_mae || m == scale_rule::nvfp4_4over6_mse;
}

/// Returns whether every scale of the rule is a power of two, as e8m0 requires.
SAMEBITS_HD constexpr bool is_power_of_two(scale_rule m) {
  return m == scale_rule::pow2 || m == scale_rule::te_pow2 || is_mx(m);
}

}  // namespace samebits
