// All pairs of 8-bit operands through every binary operation, all codes of 8 and 16 bits through
// every unary one, by every deterministic rule; values and flags against the exact oracle.
//
// The oracle computes each exact result once per pair, and rounds each different one once.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "samebits/arithmetic.hpp"
#include "support/arithmetic_case.hpp"
#include "support/effort.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

/// Compares every rule for one set of operands. The exact result is shared by all modes but the one
/// or ones that it depends on.
class oracle_sweep {
 public:
  oracle_sweep(operation op, format_id to) : memo_(to, deterministic_rules()) {
    case_.op = op;
    case_.to = to;
    EXPECT_EQ(memo_.rules().size(), 36u);  // 6 roundings, 3 overflows, 2 NaN policies
  }

  /// False after a failure was added.
  bool run(const operands& x) {
    case_.x = x;
    const bool every_mode = case_.op == operation::rint;
    const std::vector<oracle::rounded_result>* expected = nullptr;
    rounding last{};
    for (std::size_t i = 0; i < memo_.rules().size(); ++i) {
      case_.rule = memo_.rules()[i];
      const bool first_of_mode = i == 0 || case_.rule.rounding != last;
      if (i == 0 || (first_of_mode && (every_mode || case_.rule.rounding == rounding::downward ||
                                       last == rounding::downward))) {
        expected = &memo_.at(exact_result_of(case_));
      }
      last = case_.rule.rounding;
      const arithmetic_result got = compute(case_.op, x, case_.to, case_.rule);
      if (got.code == (*expected)[i].code &&
          static_cast<unsigned>(got.raised) == (*expected)[i].flags) {
        continue;
      }
      EXPECT_TRUE(same_result(case_, got, (*expected)[i]));
      return false;
    }
    return true;
  }

 private:
  arithmetic_case case_;
  outcome_memo memo_;
};

void expect_all_pairs(format_id a, format_id b, format_id to) {
  for (const operation op : all_operations()) {
    if (operand_count(op) != 2) continue;
    oracle_sweep sweep(op, to);
    for (std::uint64_t i = 0; i < 65536; i += effort_divisor) {
      if (!sweep.run({{a, i >> 8}, {b, i & 255}})) return;
    }
  }
}

TEST(ArithmeticPairs, E4m3) { expect_all_pairs(format_id::e4m3, format_id::e4m3, format_id::e4m3); }
TEST(ArithmeticPairs, E5m2) { expect_all_pairs(format_id::e5m2, format_id::e5m2, format_id::e5m2); }
TEST(ArithmeticPairs, MixedIntoE4m3) {
  expect_all_pairs(format_id::e4m3, format_id::e5m2, format_id::e4m3);
}
TEST(ArithmeticPairs, E4m3IntoFp16) {
  expect_all_pairs(format_id::e4m3, format_id::e4m3, format_id::fp16);
}

TEST(ArithmeticUnary, AllCodesIntoEveryFormat) {
  for (const operation op : {operation::sqrt, operation::rint}) {
    for (const format_id from : arithmetic_formats) {
      const int bits = spec_of(from).storage_bits;
      if (bits > 16) continue;
      for (const format_id to : arithmetic_formats) {
        oracle_sweep sweep(op, to);
        // Into other formats every third code of 16 bits.
        const std::uint64_t step = (bits == 16 && to != from ? 3 : 1) * effort_divisor;
        for (std::uint64_t code = 0; code >> bits == 0; code += step) {
          if (!sweep.run({{from, code}})) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace samebits
