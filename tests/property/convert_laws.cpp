// Laws between conversions. They need no oracle for results, so they also test the oracle.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "oracle/exact.hpp"
#include "samebits/scalar.hpp"
#include "support/conversion_case.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;
using oracle::cpp_rational;
using oracle::value_kind;

constexpr int case_count = 100000;

const std::vector<rounding> deterministic(deterministic_modes.begin(), deterministic_modes.end());

case_space deterministic_space() { return {all_formats(), all_formats(), deterministic}; }

oracle::exact_value exact(format_id f, std::uint64_t code) {
  return oracle::decode(oracle_of(f), code);
}

bool is_zero(const oracle::exact_value& x) {
  return x.kind == value_kind::finite && x.numerator == 0;
}

/// Every finite value of `narrow` is a value of `wide`; a zero perhaps without its sign.
bool contains(format_id wide, format_id narrow) {
  const oracle::format& w = oracle_of(wide);
  const oracle::format& n = oracle_of(narrow);
  if (w.zero == oracle::zeros::none) return wide == narrow;
  const auto max = [](const oracle::format& f) {
    return oracle::rational_of(oracle::decode(f, f.max_finite));
  };
  return w.mantissa_bits >= n.mantissa_bits && w.sign_bits >= n.sign_bits &&
         w.min_subnormal_exponent <= n.min_subnormal_exponent && max(w) >= max(n);
}

std::vector<std::pair<format_id, format_id>> containing_pairs() {  // narrow, wide
  std::vector<std::pair<format_id, format_id>> pairs;
  for (const format_id narrow : all_formats()) {
    for (const format_id wide : all_formats()) {
      if (contains(wide, narrow)) pairs.emplace_back(narrow, wide);
    }
  }
  return pairs;
}

TEST(ConvertLaws, Containments) {
  EXPECT_TRUE(contains(format_id::fp32, format_id::e8m0));
  EXPECT_TRUE(contains(format_id::fp16, format_id::e5m2fnuz));
  EXPECT_TRUE(contains(format_id::e4m3, format_id::e3m2));
  EXPECT_FALSE(contains(format_id::bf16, format_id::fp16));
  EXPECT_FALSE(contains(format_id::e4m3fnuz, format_id::e4m3));
  EXPECT_FALSE(contains(format_id::fp16, format_id::bf16));
  EXPECT_FALSE(contains(format_id::e8m0, format_id::e2m1));
  // Counted by hand in the order of format_id, each format itself included.
  EXPECT_GE(containing_pairs().size(), 13u + 12 + 11 + 8 + 9 + 4 + 3 + 2 + 2 + 1 + 4 + 4 + 1);
}

TEST(ConvertLaws, WideningIsExactAndNarrowingBackGivesTheCode) {
  for (const auto& [narrow, wide] : containing_pairs()) {
    if (spec_of(narrow).storage_bits > 16) continue;
    const std::uint64_t codes = std::uint64_t{1} << spec_of(narrow).storage_bits;
    for (std::uint64_t code = 0; code < codes; ++code) {
      const oracle::exact_value x = exact(narrow, code);
      if (x.kind != value_kind::finite) continue;
      for (const rounding mode : deterministic_modes) {
        const converted there = convert_code(narrow, wide, code, {mode});
        ASSERT_FALSE(there.inexact) << name(wide) << ' ' << code_text(narrow, code);
        ASSERT_FALSE(there.overflow) << name(wide) << ' ' << code_text(narrow, code);
        const bool sign_lost = is_zero(x) && oracle_of(wide).zero != oracle::zeros::both;
        const std::uint64_t same = oracle::meaningful_bits(oracle_of(narrow), code);
        const converted back = convert_code(wide, narrow, there.code, {mode});
        ASSERT_EQ(back.code, sign_lost ? 0 : same) << name(wide) << ' ' << code_text(narrow, code);
        ASSERT_FALSE(back.inexact);
      }
      const std::uint64_t nearest = convert_code(narrow, wide, code).code;
      ASSERT_EQ(oracle::rational_of(exact(wide, nearest)), oracle::rational_of(x));
    }
  }
}

TEST(ConvertLaws, WideningOf32BitFormats) {
  for (const auto& [narrow, wide] :
       std::vector<std::pair<format_id, format_id>>{{format_id::fp32, format_id::fp64},
                                                    {format_id::tf32, format_id::fp64},
                                                    {format_id::tf32, format_id::fp32}}) {
    const rc::Gen<conversion_case> generator = cases({{narrow}, {wide}, whole_space().modes});
    expect_holds("there and back", case_count, [&, from = narrow, to = wide] {
      const conversion_case c = *generator;
      const oracle::exact_value x = exact(from, c.input);
      const converted there = convert_code(from, to, c.input, c.rule, c.random);
      RC_ASSERT(!there.inexact);
      RC_ASSERT(!there.overflow);
      if (x.kind != value_kind::finite) return;
      RC_ASSERT(oracle::rational_of(exact(to, there.code)) == oracle::rational_of(x));
      const converted back = convert_code(to, from, there.code, c.rule, c.random);
      RC_ASSERT(back.code == oracle::meaningful_bits(oracle_of(from), c.input));
    });
  }
}

TEST(ConvertLaws, ConvertingAgainChangesNothing) {
  const rc::Gen<conversion_case> generator = cases(whole_space());
  expect_holds("a result is its own conversion", case_count, [&] {
    const conversion_case c = *generator;
    const std::uint64_t once = convert_code(c.from, c.to, c.input, c.rule, c.random).code;
    const converted twice = convert_code(c.to, c.to, once, c.rule, c.random);
    RC_ASSERT(twice.code == once);
    RC_ASSERT(!twice.inexact);
  });
}

TEST(ConvertLaws, Monotone) {
  const rc::Gen<conversion_case> generator = cases(deterministic_space());
  expect_holds("x <= y gives a result <= the other", case_count, [&] {
    const conversion_case c = *generator;
    const std::uint64_t other = *codes(c.from, c.to);
    const oracle::exact_value x = exact(c.from, c.input);
    const oracle::exact_value y = exact(c.from, other);
    if (x.kind != value_kind::finite || y.kind != value_kind::finite) return;
    if (oracle_of(c.to).sign_bits == 0 && x.negative != y.negative) return;  // e8m0 rounds |x|
    const converted fx = convert_code(c.from, c.to, c.input, c.rule);
    const converted fy = convert_code(c.from, c.to, other, c.rule);
    const oracle::exact_value rx = exact(c.to, fx.code);
    const oracle::exact_value ry = exact(c.to, fy.code);
    if (rx.kind != value_kind::finite || ry.kind != value_kind::finite) return;
    auto order = oracle::rational_of(x).compare(oracle::rational_of(y));
    auto result = oracle::rational_of(rx).compare(oracle::rational_of(ry));
    if (oracle_of(c.to).sign_bits == 0 && x.negative) order = -order;
    if (order <= 0) RC_ASSERT(result <= 0);
    if (order >= 0) RC_ASSERT(result >= 0);
  });
}

/// The code without its sign.
std::uint64_t magnitude(format_id f, std::uint64_t code) {
  const oracle::format& row = oracle_of(f);
  const int bits = row.code_bits - row.sign_bits;
  return code & (~std::uint64_t{0} >> (64 - bits));
}

std::uint64_t flipped(format_id f, std::uint64_t code) {
  return code ^ (std::uint64_t{1} << (oracle_of(f).code_bits - 1));
}

TEST(ConvertLaws, NegationMirrorsAndSwapsTheDirections) {
  case_space space = whole_space();
  std::erase(space.from, format_id::e8m0);
  std::erase(space.to, format_id::e8m0);
  const rc::Gen<conversion_case> generator = cases(space);
  expect_holds("f(-x) = -f'(x)", case_count, [&] {
    const conversion_case c = *generator;
    const oracle::exact_value x = exact(c.from, c.input);
    const bool fnuz_zero_or_nan = oracle_of(c.from).zero == oracle::zeros::positive_only &&
                                  (is_zero(x) || x.kind == value_kind::nan);
    if (fnuz_zero_or_nan) return;
    cast_rule mirrored = c.rule;
    if (c.rule.rounding == rounding::upward) mirrored.rounding = rounding::downward;
    if (c.rule.rounding == rounding::downward) mirrored.rounding = rounding::upward;
    const converted here = convert_code(c.from, c.to, c.input, c.rule, c.random);
    const converted there =
        convert_code(c.from, c.to, flipped(c.from, c.input), mirrored, c.random);
    RC_ASSERT(here.inexact == there.inexact);
    RC_ASSERT(here.overflow == there.overflow);
    const oracle::exact_value result = exact(c.to, here.code);
    const bool unsigned_result =
        (oracle_of(c.to).zero == oracle::zeros::positive_only && is_zero(result)) ||
        (result.kind == value_kind::nan && (c.rule.nan == nan_policy::canonical ||
                                            oracle_of(c.to).nan == oracle::nan_codes::sign_only)) ||
        (x.kind == value_kind::nan && oracle_of(c.to).nan == oracle::nan_codes::none);
    RC_ASSERT(there.code == (unsigned_result ? here.code : flipped(c.to, here.code)));
  });
}

TEST(ConvertLaws, PoliciesMatterBeyondMaxOnly) {
  const rc::Gen<conversion_case> generator = cases(whole_space());
  expect_holds("within range the policies agree", case_count, [&] {
    const conversion_case c = *generator;
    const oracle::exact_value x = exact(c.from, c.input);
    if (x.kind != value_kind::finite) return;
    const converted here = convert_code(c.from, c.to, c.input, c.rule, c.random);
    for (const overflow policy : overflow_policies) {
      const converted there =
          convert_code(c.from, c.to, c.input, {c.rule.rounding, policy, c.rule.nan}, c.random);
      RC_ASSERT(there.overflow == here.overflow);
      if (!here.overflow) RC_ASSERT(there.code == here.code);
      if (here.overflow && policy != overflow::ieee) {
        RC_ASSERT(magnitude(c.to, there.code) == oracle_of(c.to).max_finite);
      }
    }
  });
}

TEST(ConvertLaws, DirectedModesEncloseAndNearestIsOneOfThem) {
  case_space space = deterministic_space();
  std::erase(space.to, format_id::e8m0);
  const rc::Gen<conversion_case> generator = cases(space);
  expect_holds("downward <= x <= upward", case_count, [&] {
    const conversion_case c = *generator;
    const oracle::exact_value x = exact(c.from, c.input);
    if (x.kind != value_kind::finite) return;
    const auto by = [&](rounding mode) {
      return convert_code(c.from, c.to, c.input, {mode, overflow::saturate});
    };
    const converted down = by(rounding::downward);
    const converted up = by(rounding::upward);
    const converted zero = by(rounding::toward_zero);
    const converted odd = by(rounding::to_odd);
    if (!down.overflow && !zero.overflow && !up.overflow) {
      const bool saturated = oracle_of(c.to).max_finite == magnitude(c.to, down.code) ||
                             oracle_of(c.to).max_finite == magnitude(c.to, up.code);
      if (!saturated) {
        RC_ASSERT(oracle::rational_of(exact(c.to, down.code)) <= oracle::rational_of(x));
        RC_ASSERT(oracle::rational_of(exact(c.to, up.code)) >= oracle::rational_of(x));
      }
    }
    RC_ASSERT(zero.code == (x.negative ? up.code : down.code));
    RC_ASSERT(down.inexact == up.inexact);
    RC_ASSERT((down.code == up.code) ==
              (!down.inexact || down.overflow || up.overflow || zero.overflow));
    for (const converted& other : {by(rounding::nearest_even), by(rounding::nearest_away), odd}) {
      RC_ASSERT(other.code == down.code || other.code == up.code);
    }
  });
}

/// Rounding to odd first keeps what a second rounding needs, if two more bits survive everywhere.
TEST(ConvertLaws, RoundingToOddFirstIsHarmless) {
  using enum format_id;
  struct route {
    format_id from, over, to;
  };
  for (const route r :
       {route{fp64, fp32, fp16}, route{fp64, fp32, bf16}, route{fp64, fp32, tf32},
        route{fp64, fp32, e4m3}, route{fp64, fp32, e5m2}, route{fp64, fp32, e2m1},
        route{fp64, tf32, bf16}, route{fp64, tf32, e5m2}, route{fp64, tf32, e4m3},
        route{fp32, tf32, bf16}, route{fp32, tf32, e4m3fnuz}, route{fp32, fp16, e4m3},
        route{fp32, fp16, e5m2}, route{fp32, bf16, e4m3}, route{fp32, bf16, e5m2fnuz},
        route{fp32, bf16, e2m3}, route{fp64, fp16, e3m2}}) {
    ASSERT_GE(oracle_of(r.over).mantissa_bits, oracle_of(r.to).mantissa_bits + 2);
    ASSERT_LE(oracle_of(r.over).min_subnormal_exponent + 2, oracle_of(r.to).min_subnormal_exponent);
    const rc::Gen<conversion_case> generator = cases({{r.from}, {r.to}, deterministic});
    expect_holds("to_odd, then any mode = that mode at once", 4096, [&] {
      conversion_case c = *generator;
      const std::uint64_t odd =
          convert_code(r.from, r.over, c.input,
                       {rounding::to_odd, c.rule.overflow, nan_policy::preserve_sign})
              .code;
      c.where = "to_odd into " + std::string(name(r.over)) + " first";
      // Inf saturates on the way under `saturate`; it then is beyond max like any other value.
      if (exact(r.from, c.input).kind == value_kind::infinite &&
          c.rule.overflow == overflow::saturate) {
        return;
      }
      require(same_code(c, convert_code(r.over, r.to, odd, c.rule).code,
                        convert_code(r.from, r.to, c.input, c.rule).code));
    });
  }
}

TEST(ConvertLaws, MoreRandomBitsNeverRoundDown) {
  case_space space = whole_space();
  space.modes = {rounding::stochastic};
  const rc::Gen<conversion_case> generator = cases(space);
  expect_holds("R = 0 truncates, and the result grows with R", case_count, [&] {
    const conversion_case c = *generator;
    const std::uint64_t limit = std::uint64_t{1} << c.random.count;
    const auto with = [&](std::uint64_t r) {
      return convert_code(c.from, c.to, c.input, {rounding::stochastic, overflow::saturate},
                          {static_cast<std::uint32_t>(r), c.random.count});
    };
    const converted none = with(0);
    const converted some = with(c.random.value);
    const converted maximum = with(limit - 1);
    const converted truncated =
        convert_code(c.from, c.to, c.input, {rounding::toward_zero, overflow::saturate});
    RC_ASSERT(none.code == truncated.code);
    RC_ASSERT(some.code == none.code || some.code == maximum.code);
    if (some.code != none.code) {
      RC_ASSERT(with(limit - 1 - (limit - 1 - c.random.value) / 2).code == maximum.code);
    }
  });
}

}  // namespace
}  // namespace samebits
