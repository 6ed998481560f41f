// Random operands of arithmetic, made on the device: the same numbers for the same seed and index.
#pragma once

#include <cstdint>

#include "numerics/bits/random.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"

namespace samebits::support {

/// Codes with the exponent field moved into what the format has.
struct field_code {
  format_spec format;

  SAMEBITS_INLINE std::uint32_t mask() const {
    return format.storage_bits == 32 ? ~0u : (1u << format.storage_bits) - 1;
  }
  SAMEBITS_INLINE int top_field() const {
    return (1 << (format.storage_bits - 1 - format.mantissa_bits)) - 1;
  }
  SAMEBITS_INLINE int field(std::uint32_t code) const {
    return static_cast<int>(code >> format.mantissa_bits) & top_field();
  }
  SAMEBITS_INLINE std::uint32_t with_field(std::uint32_t code, int field) const {
    const int e = field < 0 ? 0 : field > top_field() ? top_field() : field;
    const auto all = static_cast<std::uint32_t>(top_field()) << format.mantissa_bits;
    return (code & mask() & ~all) | static_cast<std::uint32_t>(e) << format.mantissa_bits;
  }
  /// The last bits of the mantissa cleared, so that results are often exact, ties or thresholds.
  SAMEBITS_INLINE std::uint32_t with_few_bits(std::uint32_t code, std::uint32_t kept) const {
    const std::uint32_t low = (1u << format.mantissa_bits) - 1;
    return code & ~(low >> (kept % static_cast<std::uint32_t>(format.mantissa_bits + 1)));
  }
  /// Zeros, Inf or the largest magnitudes, NaN, the borders of subnormals.
  SAMEBITS_INLINE std::uint32_t special(std::uint32_t r) const {
    const std::uint32_t sign = 1u << (format.storage_bits - 1);
    const std::uint32_t minimum = 1u << format.mantissa_bits;
    const auto top = static_cast<std::uint32_t>(top_field()) << format.mantissa_bits;
    const std::uint32_t codes[8] = {0,       1,       minimum - 1, minimum,
                                    top - 1, top + 0, top + 1,     sign - 1};
    return codes[r % 8] | (r / 8 % 2 != 0 ? sign : 0);
  }
};

struct random_operands {
  std::uint32_t code[3];
};

/// Operand `index` of a drawing: of eight families by turns.
SAMEBITS_INLINE random_operands draw(const format_spec (&from)[3], operation op, std::uint64_t seed,
                                     std::uint64_t index) {
  const auto block = numerics::philox4x32_10(seed, static_cast<std::uint64_t>(op), index);
  const field_code f[3] = {{from[0]}, {from[1]}, {from[2]}};
  random_operands x;
  for (int k = 0; k < 3; ++k) x.code[k] = block.word[k] & f[k].mask();
  const std::uint32_t r = block.word[3];
  const auto near = [&](int shift, int around) {
    return static_cast<int>(r >> shift & 63u) % (2 * around + 1) - around;
  };
  const int family = static_cast<int>(r % 8);
  if (family <= 1) return x;  // any codes
  const int bias[3] = {from[0].bias, from[1].bias, from[2].bias};
  const int a = f[0].field(x.code[0]) - bias[0];
  const bool factors = op == operation::mul || op == operation::fma;
  if (family <= 4) {  // operands of about the same magnitude
    const int b = factors ? near(3, 12) : a + near(3, from[0].mantissa_bits + 2);
    x.code[1] = f[1].with_field(x.code[1], b + bias[1]);
    const int product = a + f[1].field(x.code[1]) - bias[1];
    x.code[2] = f[2].with_field(x.code[2], product + near(8, from[0].mantissa_bits + 3) + bias[2]);
    if (family == 4) {
      for (int k = 0; k < 3; ++k) x.code[k] = f[k].with_few_bits(x.code[k], r >> (13 + 5 * k));
    }
    return x;
  }
  if (family <= 6) {  // results near the least or the largest magnitudes of the first format
    const int goal = family == 5 ? 1 - bias[0] + near(3, from[0].mantissa_bits + 2)
                                 : f[0].top_field() - bias[0] - 1 + near(3, 2);
    const int b = op == operation::div ? a - goal : factors ? goal - a : goal;
    if (op != operation::div && !factors) x.code[0] = f[0].with_field(x.code[0], goal + bias[0]);
    x.code[1] = f[1].with_field(x.code[1], b + bias[1]);
    x.code[2] = f[2].with_field(x.code[2], goal + near(8, from[0].mantissa_bits + 3) + bias[2]);
    if ((r >> 13 & 1u) != 0) {
      for (int k = 0; k < 3; ++k) x.code[k] = f[k].with_few_bits(x.code[k], r >> (14 + 5 * k));
    }
    return x;
  }
  const std::uint32_t which = r >> 3 & 7u;
  for (int k = 0; k < 3; ++k) {
    if ((which >> k & 1u) != 0) x.code[k] = f[k].special(r >> (6 + 4 * k));
  }
  return x;
}

}  // namespace samebits::support
