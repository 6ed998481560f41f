// Laws of tensor core instructions, without an oracle: what must hold between results.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "numerics/bits/decode.hpp"
#include "numerics/hardware/accumulate.hpp"
#include "support/effort.hpp"
#include "tensor_cores/tensor_cases.hpp"

namespace samebits {
namespace {

using namespace support;

constexpr std::uint64_t cases = 100000 / effort_divisor;

numerics::accumulate_rule rule_of(const tensor_instruction& i) {
  return numerics::accumulate_rule_of(i.row, i.a, i.b, i.result, i.products);
}

std::uint32_t result_of(const tensor_instruction& i, const tensor_case& x) {
  const auto rule = rule_of(i);
  std::array<numerics::tensor_operand, max_products> a{};
  std::array<numerics::tensor_operand, max_products> b{};
  for (std::size_t k = 0; k < static_cast<std::size_t>(i.products); ++k) {
    a[k] = numerics::tensor_operand_of(rule.a, rule.subnormal_exponent_a, x.a[k]);
    b[k] = numerics::tensor_operand_of(rule.b, rule.subnormal_exponent_b, x.b[k]);
  }
  return numerics::accumulate(rule, a.data(), b.data(), i.products, x.c);
}

/// f(instruction, case, words) for cases of every family.
template <class Function>
void for_each_case(std::uint64_t seed, const Function& f) {
  const auto all = all_tensor_instructions();
  word_stream words(seed);
  for (std::uint64_t n = 0; n < cases; ++n) {
    const tensor_instruction& i = all[n % all.size()];
    const auto family = static_cast<tensor_family>(n / all.size() % tensor_family_count);
    f(i, draw_tensor_case(i, family, words), words);
    if (::testing::Test::HasFailure()) return;
  }
}

std::uint32_t sign_of(format_id f) {
  return static_cast<std::uint32_t>(numerics::sign_mask(spec_of(f)) << spec_of(f).padding_bits);
}

double value_of(format_id f, std::uint32_t code) {
  return static_cast<double>(
      std::bit_cast<float>(numerics::decode<std::uint32_t>(spec_of(f), code)));
}

TEST(AccumulateLaws, OrderWithinAStepIsNoMatter) {
  for_each_case(11, [](const tensor_instruction& i, tensor_case x, word_stream& words) {
    const std::uint32_t before = result_of(i, x);
    const auto rule = rule_of(i);
    for (int n = 0; n < 8; ++n) {  // exchange two positions of one step
      const int from = words.below(i.products / rule.group) * rule.group;
      const auto p =
          static_cast<std::size_t>(numerics::product_at(rule, from + words.below(rule.group)));
      const auto q =
          static_cast<std::size_t>(numerics::product_at(rule, from + words.below(rule.group)));
      std::swap(x.a[p], x.a[q]);
      std::swap(x.b[p], x.b[q]);
    }
    EXPECT_EQ(result_of(i, x), before) << text_of(i);
  });
}

TEST(AccumulateLaws, NegatedTermsGiveTheNegatedSum) {
  for_each_case(12, [](const tensor_instruction& i, tensor_case x, word_stream&) {
    const std::uint32_t before = result_of(i, x);
    for (auto& a : x.a) a ^= sign_of(i.a);
    x.c ^= sign_of(i.result);
    const std::uint32_t magnitude = before & ~sign_of(i.result);
    const bool is_nan = magnitude > numerics::inf_code(spec_of(i.result));
    const bool stays = is_nan || magnitude == 0;
    // an IEEE addition of two zeros may give -0
    const bool late_zero = magnitude == 0 && i.row.path == tensor_path::by_fp16;
    if (late_zero) return;
    EXPECT_EQ(result_of(i, x), stays ? before : before ^ sign_of(i.result)) << text_of(i);
  });
}

TEST(AccumulateLaws, FactorsOfEqualFormatsExchange) {
  for_each_case(13, [](const tensor_instruction& i, tensor_case x, word_stream&) {
    if (i.a != i.b) return;
    const std::uint32_t before = result_of(i, x);
    std::swap(x.a, x.b);
    EXPECT_EQ(result_of(i, x), before) << text_of(i);
  });
}

TEST(AccumulateLaws, StaysWithinTheErrorBound) {
  std::uint64_t bounded = 0;
  for_each_case(14, [&](const tensor_instruction& i, const tensor_case& x, word_stream&) {
    const auto rule = rule_of(i);
    // one step of normal numbers, the sum far from both ends of the result
    if (i.result != format_id::fp32 || i.row.path != tensor_path::fused ||
        rule.group != i.products) {
      return;
    }
    double exact = value_of(i.result, x.c);
    double maximum = std::abs(exact);
    bool plain = true;
    for (std::size_t k = 0; k < static_cast<std::size_t>(i.products); ++k) {
      const double a = value_of(i.a, x.a[k]);
      const double b = value_of(i.b, x.b[k]);
      const auto is_normal = [](format_id f, double v) {
        return v == 0 || std::abs(v) >= std::ldexp(1.0, numerics::min_exponent(spec_of(f)));
      };
      plain =
          plain && std::isfinite(a) && std::isfinite(b) && is_normal(i.a, a) && is_normal(i.b, b);
      exact += a * b;
      maximum = std::max(maximum, std::abs(a * b));
    }
    if (!plain || !(maximum > 1e-30) || !(maximum < 1e30)) return;
    const double got = value_of(i.result, result_of(i, x));
    const double bound = (i.products + 1) * std::ldexp(maximum, -rule.alignment_bits) +
                         std::ldexp(std::abs(got), 1 - rule.rounded.mantissa_bits) +
                         std::ldexp(maximum, -45);  // of the binary64 sum here
    ++bounded;
    EXPECT_LE(std::abs(got - exact), bound) << text_of(i);
  });
  EXPECT_GT(bounded, cases / 20);
}

}  // namespace
}  // namespace samebits
