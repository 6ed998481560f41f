// Arithmetic of contract §5: the exact result of an operation, rounded once, and its flags.
//
// Operands and destination may be rows of different formats with a NaN (here fp32, fp16, bf16, e4m3
// and e5m2). What this oracle takes the contract to say where it is silent stands beside the rule.
#pragma once

#include <cstdint>
#include <span>

#include "oracle/convert.hpp"
#include "oracle/exact.hpp"
#include "oracle/format_table.hpp"
#include "samebits/core/operation.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::oracle {

using samebits::operation;

// The flags byte.
inline constexpr unsigned flag_invalid = 1, flag_divide_by_zero = 2, flag_overflow = 4,
                          flag_underflow = 8, flag_inexact = 16;

struct operand {
  const format* from;
  std::uint64_t code;
};

struct rounded_result {
  std::uint64_t code;
  unsigned flags;

  friend bool operator==(const rounded_result&, const rounded_result&) = default;
};

/// A result before its rounding. A NaN has no sign. A square root that is not rational is given to
/// 160 bits and lies strictly between the numbers of 159: no grid point, midpoint or threshold of
/// random bits is in between.
struct exact_outcome {
  exact_value value;
  unsigned flags = 0;  ///< invalid; divide_by_zero; of rint inexact
};

/// The exact result. `mode` decides the sign of an exact zero sum and what rint rounds to; `bits`
/// is for rint in rounding::stochastic. Throws std::invalid_argument where the number of operands
/// is not the operation's.
exact_outcome exact_result(operation op, std::span<const operand> operands, rounding mode,
                           const random_bits& bits = {});

/// The product of any two values: NaN of zero and Inf.
exact_value exact_product(const exact_value& a, const exact_value& b);

/// An exact result among its neighbours in `to`; after that each rule is quick.
class placed_outcome {
 public:
  /// `to` must stay valid.
  placed_outcome(const format& to, exact_outcome x);

  /// Rounded once.
  [[nodiscard]] rounded_result by(const cast_rule& rule, const random_bits& bits = {}) const;

  /// The smallest K-bit R with which stochastic rounding goes away from zero (2^K: none does);
  /// tests aim at it and at the one below. 0 where nothing is rounded.
  [[nodiscard]] std::uint64_t smallest_away(int k) const;

 private:
  const format* to_;
  exact_outcome x_;
  grid_place on_grid_;
  grid_place unbounded_;  ///< in the spacing that an unbounded exponent would give
};

/// An exact result rounded once into `to`.
rounded_result round_outcome(const format& to, const exact_outcome& x, const cast_rule& rule,
                             const random_bits& bits = {});

/// Both.
rounded_result arithmetic(operation op, std::span<const operand> operands, const format& to,
                          const cast_rule& rule, const random_bits& bits = {});

/// A NaN that signals: of a format with Inf, with the first mantissa bit 0.
bool is_signaling(const format& f, std::uint64_t code);

/// What compare returns, numbered as one would read it.
enum class relation : std::uint8_t { less, equal, greater, unordered };

/// The values as numbers, -0 equal to +0; invalid for a signalling NaN alone.
struct compared {
  relation order;
  unsigned flags;
};
compared compare_values(const operand& a, const operand& b);

/// totalOrder(a, b): sign-magnitude integer order of two codes of one format.
bool total_order(const format& f, std::uint64_t a, std::uint64_t b);

struct integer_result {
  cpp_int value;
  unsigned flags;
};

/// To a signed or unsigned integer of `bits` bits.
integer_result to_integer(const operand& a, int bits, bool is_signed, rounding mode,
                          const random_bits& random = {});

rounded_result from_integer(const cpp_int& n, const format& to, const cast_rule& rule,
                            const random_bits& bits = {});

/// x * 2^n.
rounded_result scale_b(const operand& a, std::int32_t n, const format& to, const cast_rule& rule,
                       const random_bits& bits = {});

/// The exponent of |x|: 0 and NaN give INT32_MIN, Inf INT32_MAX.
integer_result log_b(const operand& a);

}  // namespace samebits::oracle
