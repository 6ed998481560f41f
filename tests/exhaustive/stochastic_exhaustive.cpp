// Stochastic rounding of every fp16 code into e4m3 and e5m2 by every one of the 2^16 values that 16
// random bits take: how often a code goes away from zero is its exact probability, to the last one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "oracle/convert.hpp"
#include "oracle/specials.hpp"
#include "samebits/scalar.hpp"
#include "support/conversion_case.hpp"
#include "support/effort.hpp"
#include "support/grid_step.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

constexpr int k = 16;
constexpr std::size_t words = std::size_t{1} << k;

/// What one input must do: `kept` for R < words - ups, `away` for the ups values above. A value
/// that is not finite or lies on the grid has ups = 0.
struct outcome {
  std::uint64_t kept;
  std::uint64_t away;
  std::size_t ups;
};

outcome outcome_of(format_id to, std::uint64_t input, const cast_rule& rule) {
  const oracle::format& target = oracle_of(to);
  const oracle::exact_value x = oracle::decode(oracle_of(format_id::fp16), input);
  if (x.kind != oracle::value_kind::finite) {
    const std::uint64_t code = oracle::round_exact(target, x, rule, {0, k});
    return {code, code, 0};
  }
  const grid_step step = locate(target, x);
  const auto code_of = [&](std::uint64_t magnitude) {
    return magnitude > target.max_finite ? oracle::overflow_result(target, x.negative, rule)
                                         : oracle::with_sign(target, x.negative, magnitude);
  };
  return {code_of(step.lower), code_of(step.upper),
          static_cast<std::size_t>(scaled_fraction(step, k))};
}

template <format_id To>
class stochastic_sweep {
 public:
  explicit stochastic_sweep(const cast_rule& rule) : rule_(rule), got_(words), expected_(words) {}

  /// Converts one input with every word. False, after a failure was added, if any result differs.
  bool run(std::uint64_t input) {
    const auto code = static_cast<std::uint16_t>(input);
    for (std::uint32_t r = 0; r < words; ++r) {
      got_[r] = convert_code<To, format_id::fp16>(code, rule_, {r, k});
    }
    const outcome o = outcome_of(To, input, rule_);
    const std::size_t kept = words - o.ups;
    std::fill_n(expected_.begin(), kept, static_cast<storage_t<To>>(o.kept));
    std::fill_n(expected_.begin() + static_cast<std::ptrdiff_t>(kept), o.ups,
                static_cast<storage_t<To>>(o.away));
    if (o.ups != 0) {
      ++moving_;
      ups_ += o.kept == o.away ? o.ups
                               : static_cast<std::uint64_t>(std::count(
                                     got_.begin(), got_.end(), static_cast<storage_t<To>>(o.away)));
      expected_ups_ += o.ups;
    }
    const auto differs = std::mismatch(got_.begin(), got_.end(), expected_.begin()).first;
    if (differs == got_.end()) return true;
    const auto r = static_cast<std::uint32_t>(differs - got_.begin());
    conversion_case c{format_id::fp16, To, input, rule_, {r, k}};
    c.where = "convert_code<To, From>";
    EXPECT_TRUE(same_code(c, got_[r], expected_[r]));
    return false;
  }

  [[nodiscard]] std::uint64_t moving() const { return moving_; }
  [[nodiscard]] std::uint64_t ups() const { return ups_; }
  [[nodiscard]] std::uint64_t expected_ups() const { return expected_ups_; }

 private:
  cast_rule rule_;
  std::vector<storage_t<To>> got_;
  std::vector<storage_t<To>> expected_;
  std::uint64_t moving_ = 0;  ///< inputs that some words round away
  std::uint64_t ups_ = 0;
  std::uint64_t expected_ups_ = 0;
};

template <format_id To>
void expect_exact_probabilities() {
  stochastic_sweep<To> sweep({rounding::stochastic, overflow::ieee});
  for (std::uint64_t input = 0; input < 65536; input += effort_divisor) {
    if (!sweep.run(input)) return;
  }
  EXPECT_EQ(sweep.ups(), sweep.expected_ups());
  EXPECT_GT(sweep.moving(), 40000u / effort_divisor);
  ::testing::Test::RecordProperty("round_ups", std::to_string(sweep.ups()));
}

TEST(StochasticExhaustive, Fp16ToE4m3) { expect_exact_probabilities<format_id::e4m3>(); }
TEST(StochasticExhaustive, Fp16ToE5m2) { expect_exact_probabilities<format_id::e5m2>(); }

/// The other policies differ from ieee beyond max only.
TEST(StochasticExhaustive, OtherPoliciesNearMaxAndBeyond) {
  for (const overflow policy : {overflow::saturate, overflow::saturate_finite}) {
    stochastic_sweep<format_id::e4m3> to_e4m3({rounding::stochastic, policy});
    stochastic_sweep<format_id::e5m2> to_e5m2({rounding::stochastic, policy});
    for (const std::uint64_t sign : {0x0000u, 0x8000u}) {
      for (std::uint64_t input = 0x5E00; input <= 0x7FFF; input += 31) {  // from 384 upward
        if (!to_e4m3.run(sign + input) || !to_e5m2.run(sign + input)) return;
      }
    }
    EXPECT_EQ(to_e4m3.ups(), to_e4m3.expected_ups());
  }
}

/// The expected words above are themselves compared with the oracle's stochastic rounding.
TEST(StochasticExhaustive, TheDecisionIsTheOracles) {
  const cast_rule rule{rounding::stochastic};
  for (const format_id to : {format_id::e4m3, format_id::e5m2}) {
    for (std::uint64_t input = 0; input < 65536; ++input) {
      const outcome o = outcome_of(to, input, rule);
      const auto by_oracle = [&](std::size_t r) {
        return oracle::convert(oracle_of(format_id::fp16), oracle_of(to), input, rule,
                               {static_cast<std::uint32_t>(r), k});
      };
      ASSERT_EQ(by_oracle(0), o.kept) << input;
      ASSERT_EQ(by_oracle(words - o.ups - 1), o.kept) << input;
      if (o.ups == 0) continue;
      ASSERT_EQ(by_oracle(words - o.ups), o.away) << input;
      ASSERT_EQ(by_oracle(words - 1), o.away) << input;
    }
  }
}

/// Other widths, sampled: every fp16 code with random words and those beside its decision.
TEST(StochasticExhaustive, OtherWidthsSampled) {
  std::mt19937_64 engine(2024);
  const cast_rule rule{rounding::stochastic};
  for (const format_id to : {format_id::e4m3, format_id::e5m2, format_id::e2m1, format_id::e8m0}) {
    for (const int width : {1, 7, 8, 13, 32}) {
      const std::uint64_t limit = std::uint64_t{1} << width;
      for (std::uint64_t input = 0; input < 65536; ++input) {
        std::uint64_t decision = 0;
        const oracle::exact_value x = oracle::decode(oracle_of(format_id::fp16), input);
        if (x.kind == oracle::value_kind::finite) {
          decision = limit - scaled_fraction(locate(oracle_of(to), x), width);
        }
        for (const std::uint64_t r : {engine() % limit, decision % limit, (decision - 1) % limit}) {
          const random_bits bits{static_cast<std::uint32_t>(r), width};
          const conversion_case c{format_id::fp16, to, input, rule, bits};
          ASSERT_TRUE(same_code(c, convert_code(format_id::fp16, to, input, rule, bits).code,
                                expected_code(c)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace samebits
