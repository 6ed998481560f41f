// Operands of tensor core instructions, by family, that tell the parameters of an instruction
// apart.
#pragma once

#include <array>
#include <string_view>

#include "tensor_core_probe/device.hpp"

namespace samebits::backends::tensor_cores {

/// Families of random operands. No family depends on the parameters that a search must find.
enum class family : std::uint8_t {
  bits,                ///< any codes
  finite,              ///< any finite codes
  near_one,            ///< exponents around 0
  spread,              ///< exponents far apart, as far as the formats allow
  sparse,              ///< near one, half of the operands zeros of either sign
  cancel,              ///< pairs of products that cancel, and small ones
  edge,                ///< one large term; the others at the last bits that are kept
  ties,                ///< sums at and beside half of the result's last bit
  floor,               ///< small enough for the minimum exponent of a step to matter
  tiny,                ///< minimum exponents and subnormals
  huge,                ///< maximum exponents
  carry,               ///< significands of ones, equal signs
  great_sum,           ///< C far above the products
  small_sum,           ///< C far below the products
  zero_by_huge,        ///< zeros times max finite, and small products
  special,             ///< Inf and NaN among a few others
  alignment,           ///< one large term, or two that cancel, and a small one at every distance
  grouping,            ///< two large terms that cancel, in one step or in two, and ones
  signed_zeros,        ///< zeros of either sign, and negative sums that vanish
  subnormal_by_great,  ///< subnormals times large numbers, opposites, and small products
};
/// Number of families.
inline constexpr int family_count = 20;

std::string_view name(family f);

/// One case: the codes of a row of A, of a column of B, and of C.
struct case_codes {
  std::array<std::uint32_t, max_products> a;
  std::array<std::uint32_t, max_products> b;
  std::uint32_t c;
};

/// A deterministic stream of random words (splitmix64), the same on every machine.
class word_stream {
 public:
  explicit word_stream(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// 0 <= result < count
  int below(int count);

 private:
  std::uint64_t state_;
};

/// A random case of a family, for operands of that shape.
case_codes draw_case(const shape& i, family how, word_stream& words);

}  // namespace samebits::backends::tensor_cores
