// Tensor core cases: every kind of instruction, and operands that tell its parameters apart.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "samebits/format.hpp"
#include "samebits/tensor_unit.hpp"

namespace samebits::support {

inline constexpr int most_products = 32;

/// One instruction of a unit.
struct tensor_instruction {
  tensor_arithmetic row;
  format_id a;
  format_id b;
  format_id result;  ///< fp32 or fp16
  int products;
};

/// "hopper-wgmma e4m3 x e5m2 + fp32, 32 products"
std::string text_of(const tensor_instruction& i);

/// Every unit with every legal pairing, result and number of products.
std::vector<tensor_instruction> all_tensor_instructions();

/// How operands are drawn.
enum class tensor_family : std::uint8_t {
  bits,          ///< any codes
  finite,        ///< any finite codes
  near_one,      ///< exponents around 0
  spread,        ///< exponents far apart, as far as the formats go
  sparse,        ///< near one, half of them zeros of either sign
  cancel,        ///< pairs of products that cancel, and small ones
  edge,          ///< one large term; the others at the last bits that are kept
  ties,          ///< sums at and beside half of the result's last bit
  floor,         ///< small enough for the least exponent of a step to count
  tiny,          ///< least exponents and subnormals
  huge,          ///< greatest exponents
  carry,         ///< significands of ones, equal signs
  great_sum,     ///< the sum so far far above the products
  small_sum,     ///< and far below
  zero_by_huge,  ///< zeros times the greatest, and small products
  special,       ///< Inf and NaN among a few others
};
inline constexpr int tensor_family_count = 16;

struct tensor_case {
  std::array<std::uint32_t, most_products> a;
  std::array<std::uint32_t, most_products> b;
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

tensor_case draw_tensor_case(const tensor_instruction& i, tensor_family family, word_stream& words);

}  // namespace samebits::support
