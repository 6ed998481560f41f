// Tensor cores on exact integers: one instruction from its prose, with a table of units of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "oracle/format_table.hpp"

namespace samebits::oracle {

/// The arithmetic of one instruction, typed from the papers and measurements, not from the library.
struct tensor_unit_facts {
  int products = 0;            ///< that the instruction takes
  int step = 0;                ///< that are added at once
  int kept_bits = 0;           ///< below the largest exponent, before the sum
  int result_bits = 0;         ///< fraction bits of the sum
  bool to_nearest = false;     ///< else the sum is cut toward zero
  int subnormal_exponent = 0;  ///< that the largest exponent can have
  bool through_fp16 = false;   ///< 8-bit operands become fp16, and C is added last, as IEEE would
};

/// What is known of `unit` (as samebits names it) for operands of two formats, an fp32 or fp16
/// result, and the instruction of `products`. Throws std::invalid_argument where it has none.
tensor_unit_facts facts_of(std::string_view unit, const format& a, const format& b,
                           const format& result, int products);

/// A code of `result`: c plus the products of a[k] and b[k], by the instruction of `facts`.
/// a and b have facts.products codes.
std::uint64_t tensor_instruction(const tensor_unit_facts& facts, const format& a_format,
                                 std::span<const std::uint32_t> a, const format& b_format,
                                 std::span<const std::uint32_t> b, const format& result,
                                 std::uint32_t c);

}  // namespace samebits::oracle
