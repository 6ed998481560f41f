// Scale maths and non-finite policies of quantizers: the enums, their names, one table of meaning.
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
//
//   nonfinite        NaN in a tile            Inf in a tile            a tile left without elements
//   te               skipped                  s = 1                    s = 1
//   skip_nonfinite   skipped                  skipped                  s = 1
//   propagate        a is NaN                 a is Inf                 does not happen
//   In every policy the codes of NaN are NaN; those of Inf follow from y and the overflow policy.
//
//   Whose formulas they are: te TransformerEngine (block and current scaling), torchao; div
//   DeepSeek-V3 as written, vLLM; rcp DeepGEMM on CPU tensors; pow2 DeepGEMM's UE8M0, MXFP8 rounded
//   up.
#pragma once

#include <cstdint>
#include <string_view>

namespace samebits {

enum class scale_math : std::uint8_t { te, div, rcp, pow2 };

enum class nonfinite : std::uint8_t { te, skip_nonfinite, propagate };

inline constexpr int scale_math_count = 4;
inline constexpr int nonfinite_count = 3;

constexpr std::string_view name(scale_math m) {
  switch (m) {
    case scale_math::te: return "te";
    case scale_math::div: return "div";
    case scale_math::rcp: return "rcp";
    case scale_math::pow2: return "pow2";
  }
  return "?";
}

constexpr std::string_view name(nonfinite n) {
  switch (n) {
    case nonfinite::te: return "te";
    case nonfinite::skip_nonfinite: return "skip_nonfinite";
    case nonfinite::propagate: return "propagate";
  }
  return "?";
}

}  // namespace samebits
