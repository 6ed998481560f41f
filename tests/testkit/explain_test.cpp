// Tests of explanations: each planted error is found with ten seeds, shrunk, and named;
// correct kernels pass, whatever NaN they return.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "planted_kernels.hpp"
#include "samebits/scalar.hpp"
#include "samebits/testkit/conversion.hpp"
#include "support/effort.hpp"

namespace samebits::testkit {
namespace {

using enum format_id;

constexpr check_effort effort{.batches = 4, .batch_size = 1000};
const int seeds = support::planted_seeds();

struct planted_error {
  const char* name;
  conversion_under_test conversion;
  planted_element element;
  const char* sentence;   ///< how the explanation begins
  std::int64_t size = 1;  ///< max size of the shrunk call
};

std::ostream& operator<<(std::ostream& out, const planted_error& e) { return out << e.name; }

std::uint64_t code_of(double x, format_id f) {
  return convert_code(fp64, f, std::bit_cast<std::uint64_t>(x)).code;
}

planted_element through(format_id between) {
  return [between](const conversion_under_test& c, const codes& in, std::size_t i) {
    const cast_rule keep{rounding::nearest_even, overflow::ieee, nan_policy::preserve_sign};
    return convert_code(between, c.to, convert_code(c.from, between, in[i], keep).code, c.rule)
        .code;
  };
}

/// Returns a right kernel with other random bits.
template <class Random>
planted_element other_random(Random random) {
  return [random](const conversion_under_test& c, const codes& in, std::size_t i) {
    return convert_code(c.from, c.to, in[i], c.rule, random(c, i)).code;
  };
}

std::vector<planted_error> rounding_errors() {
  return {
      {"ties_away", pair(fp32, e4m3, saturating),
       other_rule({rounding::nearest_away, overflow::saturate}),
       "ties away from zero instead of to even"},
      {"ties_away_bf16", pair(fp32, bf16), other_rule({rounding::nearest_away}),
       "ties away from zero instead of to even"},
      {"truncated", pair(fp32, bf16),
       [](const conversion_under_test& c, const codes& in, std::size_t i) {
         return is_nan(c.from, in[i]) ? 0x7FC0 : in[i] >> 16;
       },
       "rounded toward zero (truncated) instead of to nearest even"},
      {"truncated_e4m3", pair(fp32, e4m3, saturating),
       other_rule({rounding::toward_zero, overflow::saturate}),
       "rounded toward zero (truncated) instead of to nearest even"},
      {"up", pair(fp32, e5m2, saturating), other_rule({rounding::upward, overflow::saturate}),
       "rounded up (toward +Inf) instead of to nearest even"},
      {"down", pair(fp16, e4m3, saturating), other_rule({rounding::downward, overflow::saturate}),
       "rounded down (toward -Inf) instead of to nearest even"},
      {"not_stochastic", random_pair(fp32, bf16, 16),
       other_rule({rounding::nearest_even, overflow::saturate}),
       "rounded to nearest even instead of stochastically"},
      {"truncated_stochastic", random_pair(fp32, e4m3, 16),
       other_rule({rounding::toward_zero, overflow::saturate}),
       "rounded toward zero (truncated) instead of stochastically"},
      {"through_fp16", pair(fp32, e4m3, saturating), through(fp16),
       "rounded twice: to fp16, then to e4m3"},
      {"through_bf16", pair(fp32, e5m2, saturating), through(bf16),
       "rounded twice: to bf16, then to e5m2"},
      {"through_fp32", pair(fp64, bf16), through(fp32), "rounded twice: to fp32, then to bf16"},
      {"other_format", pair(fp32, e4m3, saturating),
       [](const conversion_under_test& c, const codes& in, std::size_t i) {
         return convert_code(c.from, e4m3fnuz, in[i], c.rule).code;
       },
       "codes of e4m3fnuz instead of e4m3"},
  };
}

/// Returns a right kernel that replaces some elements by a zero of their sign.
template <class Flushed>
planted_element flushing(Flushed flushed) {
  return
      [flushed](const conversion_under_test& c, const codes& in, std::size_t i) -> std::uint64_t {
        if (!flushed(c, in[i], right(c, in, i))) return right(c, in, i);
        return code_of(is_negative(c.from, in[i]) ? -0.0 : 0.0, c.to);
      };
}

/// Returns a right kernel with other results for NaNs.
template <class OfNan>
planted_element with_nan(OfNan of_nan) {
  return [of_nan](const conversion_under_test& c, const codes& in, std::size_t i) -> std::uint64_t {
    return is_nan(c.from, in[i]) ? of_nan(c, in[i]) : right(c, in, i);
  };
}

std::vector<planted_error> special_errors() {
  const auto subnormal_input = [](const conversion_under_test& c, std::uint64_t in, std::uint64_t) {
    return classify(c.from, in) == number_class::subnormal;
  };
  const auto subnormal_result = [](const conversion_under_test& c, std::uint64_t,
                                   std::uint64_t out) {
    return classify(c.to, out) == number_class::subnormal;
  };
  return {
      {"daz", pair(fp32, bf16), flushing(subnormal_input), "subnormal inputs flushed to zero"},
      {"daz_fp16", pair(fp16, e5m2), flushing(subnormal_input), "subnormal inputs flushed to zero"},
      {"ftz", pair(fp32, e4m3, saturating), flushing(subnormal_result),
       "subnormal results flushed to zero"},
      {"saturates", pair(fp32, e5m2), other_rule(saturating),
       "saturated to the largest finite number on overflow instead of: Inf on overflow"},
      {"saturates_fp16", pair(fp32, fp16), other_rule(saturating),
       "saturated to the largest finite number on overflow instead of: Inf on overflow"},
      {"does_not_saturate", pair(fp32, e5m2, saturating), other_rule({}),
       "Inf on overflow instead of: saturated"},
      {"nan_on_overflow", pair(fp32, e4m3, saturating), other_rule({}),
       "NaN on overflow instead of: saturated"},
      {"another_nan", pair(fp32, bf16, {}, nan_result::by_rule),
       with_nan([](const conversion_under_test&, std::uint64_t) { return 0x7FC0u; }),
       "another NaN code"},
      {"sign_of_nan", pair(fp32, e5m2, {}, nan_result::by_rule),
       other_rule({rounding::nearest_even, overflow::ieee, nan_policy::preserve_sign}),
       "another NaN code: the sign of the NaN is kept or dropped"},
      {"nan_rounded", pair(fp32, bf16),
       [](const conversion_under_test&, const codes& in, std::size_t i) {
         return (in[i] + 0x7FFF + (in[i] >> 16) % 2) >> 16 & 0xFFFF;
       },
       "a NaN is rounded like a number"},
      {"nan_clamped", pair(fp32, e4m3, saturating),
       with_nan([](const conversion_under_test&, std::uint64_t) { return 0xFEu; }),
       "a NaN becomes the most negative finite number"},
      {"minus_zero", pair(fp32, e4m3, saturating),
       [](const conversion_under_test& c, const codes& in, std::size_t i) {
         return in[i] == 0x80000000 ? 0 : right(c, in, i);
       },
       "-0 lost: an input of -0 becomes +0"},
      {"minus_zero_result", pair(fp32, bf16),
       [](const conversion_under_test& c, const codes& in, std::size_t i) {
         const std::uint64_t code = right(c, in, i);
         return code == 0x8000 ? 0 : code;
       },
       "-0 lost: every result of -0 becomes +0"},
  };
}

std::vector<planted_error> random_errors() {
  const auto k_is = [](int k) {
    return other_random(
        [k](const conversion_under_test& c, std::size_t i) { return random_of(c, i, k); });
  };
  const auto shifted = [](std::size_t by) {
    return other_random([by](const conversion_under_test& c, std::size_t i) {
      return random_of(c, i + by, c.random.bits);
    });
  };
  return {
      {"k_15_of_16", random_pair(fp32, bf16, 16), k_is(15), "K = 15 random bits instead of 16", 32},
      {"k_15_of_16_e4m3", random_pair(fp32, e4m3, 16), k_is(15), "K = 15 random bits instead of 16",
       32},
      {"k_15_of_16_narrow", random_pair(bf16, e4m3, 16), k_is(15),
       "K = 15 random bits instead of 16", 65536},
      {"k_31_of_32", random_pair(fp32, e4m3, 32), k_is(31), "K = 31 random bits instead of 32",
       65536},
      {"k_17_of_16", random_pair(fp32, e4m3, 16), k_is(17), "K = 17 random bits instead of 16", 32},
      {"index_plus_1", random_pair(fp32, bf16, 16), shifted(1), "random index too large by one"},
      {"index_minus_1", random_pair(fp32, e4m3, 32), shifted(~std::size_t{0}),
       "random index too small by one"},
      {"greater", random_pair(fp32, bf16, 16),
       other_random([](const conversion_under_test& c, std::size_t i) {
         const random_bits r = random_of(c, i, 16);
         return random_bits{r.value == 0 ? 0 : r.value - 1, 16};
       }),
       "rounded away where v * 2^K + R > 2^K instead of >="},
  };
}

/// Returns a right kernel that reads another element.
template <class Source>
planted_element reading(Source source) {
  return [source](const conversion_under_test& c, const codes& in, std::size_t i) {
    const std::size_t from = source(i);
    return right(c, in, from < in.size() ? from : i);
  };
}

std::vector<planted_error> position_errors() {
  return {
      {"next", pair(fp32, e4m3, saturating), reading([](std::size_t i) { return i + 1; }),
       "the neighbour's element: out[i] comes from in[i + 1]", 2},
      {"previous", pair(fp32, bf16), reading([](std::size_t i) { return i - 1; }),
       "the neighbour's element: out[i] comes from in[i - 1]", 2},
      {"tail", pair(fp32, e4m3, saturating),
       [](const conversion_under_test& c, const codes& in,
          std::size_t i) -> std::optional<std::uint64_t> {
         if (i >= in.size() / 4 * 4) return std::nullopt;
         return right(c, in, i);
       },
       "tail not written", 3},
  };
}

class Explain : public ::testing::TestWithParam<planted_error> {};

TEST_P(Explain, EverySeedFindsShrinksAndNamesTheError) {
  const planted_error& planted = GetParam();
  for (int seed = 1; seed <= seeds; ++seed) {
    check_effort with_seed = effort;
    with_seed.seed = static_cast<std::uint64_t>(seed);
    conversion_under_test c = planted.conversion;
    c.random.seed += static_cast<std::uint64_t>(seed);
    const check_result result = check_raw(c, kernel_of(c, planted.element), with_seed);
    ASSERT_TRUE(result.failure()) << "seed " << seed << ": " << result.message();
    EXPECT_LE(result.failure()->size, planted.size) << result.message();
    RecordProperty("cases", std::to_string(result.compared()));
    const std::string named = std::string("looks like: ") + planted.sentence;
    EXPECT_NE(result.message().find(named), std::string::npos) << seed << ": " << result.message();
  }
}

std::string name_of(const ::testing::TestParamInfo<planted_error>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Rounding, Explain, ::testing::ValuesIn(rounding_errors()), name_of);
INSTANTIATE_TEST_SUITE_P(Special, Explain, ::testing::ValuesIn(special_errors()), name_of);
INSTANTIATE_TEST_SUITE_P(Random, Explain, ::testing::ValuesIn(random_errors()), name_of);
INSTANTIATE_TEST_SUITE_P(Position, Explain, ::testing::ValuesIn(position_errors()), name_of);

TEST(RightKernel, PassesWithEverySeed) {
  for (const conversion_under_test& pair_of_formats :
       {pair(fp32, e4m3, saturating), pair(fp32, bf16), random_pair(fp32, bf16, 16),
        random_pair(bf16, e4m3, 32)}) {
    for (int seed = 1; seed <= seeds; ++seed) {
      check_effort with_seed = effort;
      with_seed.seed = static_cast<std::uint64_t>(seed);
      conversion_under_test c = pair_of_formats;
      c.random.seed += static_cast<std::uint64_t>(seed);
      const check_result result = check_raw(c, kernel_of(c, right), with_seed);
      EXPECT_TRUE(result) << result.message();
    }
  }
}

TEST(ExplainNone, TwoErrorsAtOnceFitNoRow) {
  const conversion_under_test c = pair(fp32, e4m3, saturating);
  const auto both = [](const conversion_under_test& k, const codes& in, std::size_t i) {
    if (in[i] == 0x80000000) return std::uint64_t{0x7E};
    return convert_code(k.from, k.to, in[i], {rounding::nearest_away, overflow::saturate}).code;
  };
  const check_result result = check_raw(c, kernel_of(c, both), effort);
  ASSERT_TRUE(result.failure());
  EXPECT_NE(result.message().find("looks like: none of the usual errors"), std::string::npos)
      << result.message();
}

TEST(NanResult, AnyNanIsRightUnlessTheRuleIsAskedFor) {
  const auto quiet = with_nan([](const conversion_under_test&, std::uint64_t in) {
    return (in >> 16 & 0xFFFF) | 0x7FC0u;  // keeps sign and payload, as processors do
  });
  const auto run = [&](nan_result nan) {
    const conversion_under_test c = pair(fp32, bf16, {}, nan);
    return check_raw(c, kernel_of(c, quiet), effort);
  };
  const check_result any = run(nan_result::any);
  EXPECT_TRUE(any) << any.message();
  const check_result by_rule = run(nan_result::by_rule);
  ASSERT_TRUE(by_rule.failure());
  EXPECT_TRUE(is_nan(fp32, by_rule.failure()->input));
  EXPECT_EQ(by_rule.failure()->expected, canonical_nan(bf16));
}

TEST(NanResult, ANumberIsNeverRightForANan) {
  const conversion_under_test c = pair(fp32, bf16);
  const auto zero =
      with_nan([](const conversion_under_test&, std::uint64_t) { return std::uint64_t{0}; });
  const check_result result = check_raw(c, kernel_of(c, zero), effort);
  ASSERT_TRUE(result.failure());
  EXPECT_NE(result.message().find("looks like: a NaN becomes 0"), std::string::npos);
}

}  // namespace
}  // namespace samebits::testkit
