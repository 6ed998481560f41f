// Array arithmetic for all operands of small formats, backend by backend: all pairs of 8-bit codes, all
// triples of fma, all 16-bit codes of unary operations, and 16-bit pairs: every 509th first operand, or
// all with SAMEBITS_SWEEP_STRIDE=1 in the environment. Every backend must return what the reference
// returns. engine.suites compares the reference with the definition, arithmetic_pairs, arithmetic_sweep
// and machine_arithmetic compare the definition with the oracle. These comparisons are part of the proof
// in docs/decisions/0021-arithmetic-by-the-processor.md.
//
// And two roundings instead of one, for all operands of 8 bits: the steps in binary16 and binary32 that
// GPUs compute e4m3 and e5m2 by. These comparisons are the proof in docs/decisions/0026.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "engine/core/target.hpp"
#include "exhaustive/sweep_program.hpp"
#include "samebits/array_arithmetic.hpp"
#include "samebits/convert.hpp"
#include "support/arithmetic_case.hpp"
#include "support/backends.hpp"
#include "support/rules.hpp"
#include "support/sweep.hpp"

namespace samebits {
namespace {

using namespace support;

using bytes = std::vector<std::byte>;

template <class Code>
std::vector<Code> counted() {
  std::vector<Code> codes(std::size_t{1} << 8 * sizeof(Code));
  std::iota(codes.begin(), codes.end(), Code{0});
  return codes;
}

/// The codes of an operand: first + row * down + column * along.
struct axis {
  std::int64_t first = 0, down = 0, along = 0;
};

/// Operands of one format, of 8 or 16 bits.
struct grid {
  format_id format;
  std::int64_t rows, cols;
  std::array<axis, 3> x = {};

  [[nodiscard]] operand at(std::size_t k, std::size_t i) const {
    const auto element = static_cast<std::int64_t>(i);
    return {format, code_at(view(k), element / cols, element % cols)};
  }
  [[nodiscard]] const_matrix_view view(std::size_t k) const {
    static const std::vector<std::uint8_t> bytes8 = counted<std::uint8_t>();
    static const std::vector<std::uint16_t> words = counted<std::uint16_t>();
    if (storage_bytes(format) == 1)
      return {bytes8.data() + x[k].first, format, rows, cols, x[k].down, x[k].along};
    return {words.data() + x[k].first, format, rows, cols, x[k].down, x[k].along};
  }
};

bytes computed(operation op, const grid& g, format_id to, const cast_rule& rule,
               const executor& where = {"reference", 1}) {
  bytes out(static_cast<std::size_t>(g.rows * g.cols * storage_bytes(to)));
  compute(op, {g.view(0), g.view(1), g.view(2)}, view_of_codes(to, out.data(), g.rows, g.cols),
          {rule.rounding, rule.overflow, rule.nan}, where);
  return out;
}

/// The first element that differs is a failure.
void expect_same(operation op, const grid& g, const cast_rule& rule, const std::string& where,
                 const bytes& got, const bytes& expected) {
  const auto wrong = first_difference(g.format, got, expected);
  if (!wrong) return;
  const arithmetic_case c{.op = op,
                          .x = {g.at(0, *wrong), g.at(1, *wrong), g.at(2, *wrong)},
                          .to = g.format,
                          .rule = rule,
                          .where = where};
  const auto result = [&](const bytes& codes) {
    return code_at(view_of_codes(g.format, codes.data(), 1, g.rows * g.cols), 0,
                   static_cast<std::int64_t>(*wrong));
  };
  FAIL() << same_result(c, {result(got), flags::none}, {result(expected), 0}).message();
}

void expect_reference(operation op, const grid& g, const cast_rule& rule, int threads = 1) {
  const bytes expected = computed(op, g, g.format, rule, {"reference", threads});
  for (const std::string& backend : supported_backends()) {
    if (backend == "reference") continue;
    expect_same(op, g, rule, backend, computed(op, g, g.format, rule, {backend, threads}),
                expected);
  }
}

/// Compares the reference with the scalar function.
void expect_definition(operation op, const grid& g, const cast_rule& rule) {
  const auto width = static_cast<std::size_t>(storage_bytes(g.format));
  bytes expected(static_cast<std::size_t>(g.rows * g.cols) * width);
  for (std::size_t i = 0; i * width < expected.size(); ++i) {
    const std::uint64_t code =
        compute(op, {g.at(0, i), g.at(1, i), g.at(2, i)}, g.format, rule).code;
    std::memcpy(&expected[i * width], &code, width);  // little-endian
  }
  expect_same(op, g, rule, "reference", computed(op, g, g.format, rule), expected);
}

/// The kernels' rules, and one that they leave to the definition.
constexpr cast_rule rules[] = {{rounding::nearest_even, overflow::ieee},
                               {rounding::nearest_even, overflow::saturate},
                               {rounding::nearest_even, overflow::saturate_finite}};

class EightBits : public ::testing::TestWithParam<format_id> {
 protected:
  static grid pairs() { return {GetParam(), 256, 256, {{{0, 1, 0}, {0, 0, 1}}}}; }
  /// All triples with a first factor.
  static grid triples(std::int64_t first) {
    return {GetParam(), 256, 256, {{{first}, {0, 1, 0}, {0, 0, 1}}}};
  }

  /// A result in a wider format, rounded once more, is that of one rounding.
  static void expect_one_rounding(operation op, const grid& g, format_id wider,
                                  const bytes& between) {
    for (const cast_rule& rule : {rules[0], rules[1]}) {
      bytes twice(between.size() / static_cast<std::size_t>(storage_bytes(wider)));
      convert(view_of_codes(wider, between.data(), g.rows, g.cols),
              view_of_codes(g.format, twice.data(), g.rows, g.cols), {rule.rounding, rule.overflow},
              {"reference", 1});
      expect_same(op, g, rule, "two roundings, the first into " + std::string(name(wider)), twice,
                  computed(op, g, g.format, rule));
    }
  }

  /// The exact fused result rounded to odd in binary32: of the neighbours the one whose last bit is
  /// 1; an exact zero is that of the upper one.
  static bytes fused_to_odd(const grid& g) {
    bytes odd = computed(operation::fma, g, format_id::fp32, {rounding::downward});
    const bytes up = computed(operation::fma, g, format_id::fp32, {rounding::upward});
    for (std::size_t i = 0; i < odd.size(); i += 4) {
      if ((odd[i] & std::byte{1}) == std::byte{0}) std::memcpy(&odd[i], &up[i], 4);
    }
    return odd;
  }
};

TEST_P(EightBits, AllPairs) {
  for (const operation op : all_operations()) {
    if (op == operation::fma) continue;
    for (const cast_rule& rule : rules) {
      expect_definition(op, pairs(), rule);
      expect_reference(op, pairs(), rule);
    }
  }
}

TEST_P(EightBits, AllTriplesOfFma) {
  for (std::int64_t first = 0; first < 256; first += std::int64_t{effort_divisor}) {
    expect_reference(operation::fma, triples(first), rules[0]);
    expect_reference(operation::fma, triples(first), rules[1]);
    if (HasFatalFailure()) return;
  }
}

TEST_P(EightBits, RoundedTwice) {
  for (const operation op :
       {operation::add, operation::sub, operation::mul, operation::div, operation::sqrt}) {
    const bool quotient = op == operation::div || op == operation::sqrt;
    const format_id wider = quotient ? format_id::fp32 : format_id::fp16;
    expect_one_rounding(op, pairs(), wider, computed(op, pairs(), wider, {}));
  }
}

TEST_P(EightBits, FusedStepsRoundedTwice) {
  for (std::int64_t first = 0; first < 256; first += std::int64_t{effort_divisor}) {
    const grid g = triples(first);
    const bool nearest = GetParam() == format_id::e4m3;
    expect_one_rounding(
        operation::fma, g, format_id::fp32,
        nearest ? computed(operation::fma, g, format_id::fp32, {}) : fused_to_odd(g));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EightBits, ::testing::Values(format_id::e4m3, format_id::e5m2),
                         [](const auto& param) { return std::string(name(param.param)); });

// What the tests above would see: a fused step that needs its rounding to odd.
TEST(OneRoundingTooMany, ShowsInE5m2) {
  const operands x{{format_id::e5m2, 0x4E}, {format_id::e5m2, 0x4E}, {format_id::e5m2, 0x01}};
  const auto nearest = compute(operation::fma, x, format_id::fp32, {}).code;
  EXPECT_EQ(convert_code(format_id::fp32, format_id::e5m2, nearest, {}).code, 0x60u);  // 512
  EXPECT_EQ(compute(operation::fma, x, format_id::e5m2, {}).code, 0x61u);              // 640
}

TEST(SixteenBits, AllCodesOfUnaryOperations) {
  for (const format_id format : {format_id::fp16, format_id::bf16}) {
    for (const operation op : {operation::sqrt, operation::rint}) {
      for (const cast_rule& rule : rules) {
        expect_reference(op, {format, 1, 65536, {{{0, 0, 1}}}}, rule);
      }
    }
  }
}

class SixteenBitPairs : public ::testing::TestWithParam<std::tuple<format_id, operation>> {};

/// All second operands for some first ones, whose rows together keep threads busy.
TEST_P(SixteenBitPairs, AreTheReferences) {
  const auto [format, op] = GetParam();
  const auto stride = static_cast<std::int64_t>(sweep_stride(509));
  for (std::int64_t first = 0; first < 65536; first += 64 * stride) {
    const std::int64_t rows = std::min<std::int64_t>(64, (65535 - first) / stride + 1);
    const grid g{format, rows, 65536, {{{first, stride, 0}, {0, 0, 1}}}};
    expect_reference(op, g, rules[0], stride == 1 ? 0 : 1);
    expect_reference(op, g, rules[1], stride == 1 ? 0 : 1);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, SixteenBitPairs,
                         ::testing::Combine(::testing::Values(format_id::fp16, format_id::bf16),
                                            ::testing::Values(operation::add, operation::sub,
                                                              operation::mul, operation::div)),
                         [](const auto& tested) {
                           return std::string(name(std::get<0>(tested.param))) + '_' +
                                  std::string(name(std::get<1>(tested.param)));
                         });

}  // namespace
}  // namespace samebits
