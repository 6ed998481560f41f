// The scale of a tile (contract §7), step by step in exact arithmetic.
//
// Where §7 leaves something open, this oracle reads it so:
// - "Nothing left" holds of skip_nonfinite too, and of a tile of no elements: s = 1.
// - That s = 1, and te's for a = Inf, end the chain: eps, upper bound and scale rules do not apply.
// - propagate: a NaN amax passes eps and upper bound (a NaN is never dropped); Inf obeys the bound.
//   pow2 then runs as written: the exponent field 255 of t is clamped to 254, so s = 2^127.
// - The zero test follows eps and bound, so an upper bound of 0 makes every tile a zero tile.
// - skip_nan skips NaN alone: "nothing left" holds of it, and Inf obeys the bound.
// - s is raised to 2^-126 before r is taken in every scale rule but te and te_pow2: where r = RN(M
//   / a) belongs to an s that was raised, r is the reciprocal of the raised one, at most 2^126.
// - te_pow2 cuts S down to a power of two after S = Inf is replaced; S = NaN stays.
// - mx rules: the exponent of s is clamped to -127 .. 127; an Inf that is no NaN by then gives 127,
//   under propagate NaN and Inf give s = r = NaN. mx_rceil is over a quotient rounded to binary32.
// - S = Inf becomes FLT_MAX, or the input's largest value, before s = RN(1/S) is taken; an s of Inf
// (propagate alone) stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "oracle/format_table.hpp"
#include "samebits/core/scaling.hpp"

namespace samebits::oracle {

using samebits::nonfinite;
using samebits::scale_rule;

/// Binary32 quotients and products, rounded to nearest even.
struct binary32_steps {
  std::uint32_t (*quotient)(std::uint32_t, std::uint32_t);
  std::uint32_t (*product)(std::uint32_t, std::uint32_t);
};
extern const binary32_steps by_rationals;

/// How a tile's scale is taken. All numbers are binary32 codes.
struct scale_settings {
  scale_rule rule = scale_rule::te;
  samebits::nonfinite nonfinite = samebits::nonfinite::te;
  std::uint32_t eps = 0;                                    ///< finite, not negative
  std::optional<std::uint32_t> upper_bound = std::nullopt;  ///< not negative, may be Inf
  std::uint32_t infinite_factor = 0x7F7FFFFF;               ///< what S = Inf becomes; finite, > 0
  std::uint32_t tensor_scale = 0x3F800000;                  ///< read by rules with two levels
  /// rcp.approx.ftz, a unit that the caller has a model of; read by nvfp4_vllm.
  std::uint32_t (*reciprocal_unit)(std::uint32_t) = nullptr;
};

/// The binary32 codes that a tile's quantization needs.
struct tile_scale {
  std::uint32_t s = 0x3F800000;       ///< the stored dequantization scale
  std::uint32_t factor = 0x3F800000;  ///< S, r, or for div the s that x is divided by

  friend bool operator==(const tile_scale&, const tile_scale&) = default;
};

/// M, the largest finite value of e4m3, e5m2, e2m1, e2m3 or e3m2, in binary32.
std::uint32_t largest_of(const format& to);

/// The scale of a tile whose policies are behind it: any binary32 magnitude a; 0 gives ones. `to`
/// is e4m3, e5m2, e2m1, e2m3 or e3m2.
tile_scale scale_of_amax(scale_rule rule, const format& to, std::uint32_t a,
                         std::uint32_t infinite_factor = 0x7F7FFFFF,
                         const binary32_steps& steps = by_rationals);

/// The scale of a tile from its existing elements' binary32 codes: amax, non-finite policy, eps,
/// upper bound, zero test, scale. The elements are in rows of `columns`.
tile_scale scale_of_tile(const scale_settings& settings, const format& to,
                         std::span<const std::uint32_t> elements, std::size_t columns = 1);

/// The amax of elements that is left by a policy; 0 if nothing is.
std::uint32_t amax_left(std::span<const std::uint32_t> elements, nonfinite policy);

/// Whether every scale of the rule is a power of two.
bool scales_are_powers_of_two(scale_rule rule);

/// What an e8m0 scale output holds for that tile: 00 where a = 0, else the code of s. The rule's
/// scales are powers of two.
std::uint8_t e8m0_of_tile(const scale_settings& settings, const format& to,
                          std::span<const std::uint32_t> elements);

/// The scale of a tile that is given as S: s = 1 / S; elements are scaled as by te.
tile_scale scale_of_inverse(std::uint32_t inverse_scale);

/// y of the element x: RN(x * factor), or RN(x / factor) for div.
std::uint32_t scaled(scale_rule rule, const tile_scale& scale, std::uint32_t x);

}  // namespace samebits::oracle
