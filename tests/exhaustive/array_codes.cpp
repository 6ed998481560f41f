// Array arithmetic on every backend for all operands of small formats, against the definition: all
// pairs of 8-bit codes, all triples of fma, all 16-bit codes of unary operations. And for 16-bit
// pairs, against the reference: every 509th first operand, or all with SAMEBITS_SWEEP_STRIDE=1 in the
// environment; arithmetic_sweep and fp16_pairs compare its definition with the oracle. These
// comparisons
// are part of the proof in docs/decisions/0021-arithmetic-by-the-processor.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "exhaustive/sweep_program.hpp"
#include "samebits/arithmetic.hpp"
#include "samebits/array_arithmetic.hpp"
#include "support/arithmetic_case.hpp"
#include "support/backends.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

/// Operands as arrays of codes.
struct columns {
  format_id format;
  std::array<std::vector<std::uint16_t>, 3> codes;

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(codes[0].size()); }
};

/// Codes in the width of their format.
std::vector<std::byte> packed(format_id format, const std::vector<std::uint16_t>& codes) {
  const auto width = static_cast<std::size_t>(storage_bytes(format));
  std::vector<std::byte> bytes(codes.size() * width);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    for (std::size_t k = 0; k < width; ++k) {
      bytes[i * width + k] = static_cast<std::byte>(codes[i] >> (8 * k));
    }
  }
  return bytes;
}

std::uint64_t code_at(format_id format, const std::vector<std::byte>& bytes, std::size_t i) {
  if (storage_bytes(format) == 1) return static_cast<std::uint64_t>(bytes[i]);
  return static_cast<std::uint64_t>(bytes[2 * i]) | static_cast<std::uint64_t>(bytes[2 * i + 1])
                                                        << 8;
}

/// The kernels' rules, and one that they leave to the definition.
const std::vector<cast_rule> rules{{rounding::nearest_even, overflow::ieee},
                                   {rounding::nearest_even, overflow::saturate},
                                   {rounding::nearest_even, overflow::saturate_finite}};

void expect_definition(operation op, const columns& x, const cast_rule& rule) {
  std::vector<std::uint64_t> expected(x.codes[0].size());
  const auto operands_at = [&](std::size_t i) {
    return operands{
        {x.format, x.codes[0][i]}, {x.format, x.codes[1][i]}, {x.format, x.codes[2][i]}};
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = compute(op, operands_at(i), x.format, rule).code;
  }
  std::array<std::vector<std::byte>, 3> in;
  for (std::size_t k = 0; k < in.size(); ++k) in[k] = packed(x.format, x.codes[k]);
  const auto view = [&](std::size_t k) {
    return view_of_codes(x.format, static_cast<const void*>(in[k].data()), 1, x.size());
  };
  for (const std::string& backend : supported_backends()) {
    std::vector<std::byte> out(in[0].size());
    compute(op, {view(0), view(1), view(2)},
            view_of_codes(x.format, static_cast<void*>(out.data()), 1, x.size()),
            {rule.rounding, rule.overflow, rule.nan}, {backend, 1});
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::uint64_t got = code_at(x.format, out, i);
      if (got == expected[i]) continue;
      const arithmetic_case c{
          .op = op, .x = operands_at(i), .to = x.format, .rule = rule, .where = backend};
      FAIL() << same_result(c, {got, flags::none}, {expected[i], 0}).message();
    }
  }
}

class EightBits : public ::testing::TestWithParam<format_id> {};

TEST_P(EightBits, AllPairs) {
  columns x{GetParam(), {}};
  for (unsigned i = 0; i < 65536; ++i) {
    x.codes[0].push_back(static_cast<std::uint16_t>(i & 0xFF));
    x.codes[1].push_back(static_cast<std::uint16_t>(i >> 8));
    x.codes[2].push_back(0);
  }
  for (const operation op : all_operations()) {
    if (op == operation::fma) continue;
    for (const cast_rule& rule : rules) {
      expect_definition(op, x, rule);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(EightBits, AllTriplesOfFma) {
  constexpr unsigned step = 16;  // first factors at a time
  for (unsigned first = 0; first < 256; first += step * effort_divisor) {
    columns x{GetParam(), {}};
    for (std::uint32_t i = 0; i < step * 65536; ++i) {
      x.codes[0].push_back(static_cast<std::uint16_t>(first + (i >> 16)));
      x.codes[1].push_back(static_cast<std::uint16_t>(i >> 8 & 0xFF));
      x.codes[2].push_back(static_cast<std::uint16_t>(i & 0xFF));
    }
    for (const overflow policy : {overflow::ieee, overflow::saturate}) {
      expect_definition(operation::fma, x, {rounding::nearest_even, policy});
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EightBits, ::testing::Values(format_id::e4m3, format_id::e5m2),
                         [](const auto& param) { return std::string(name(param.param)); });

TEST(SixteenBits, AllCodesOfUnaryOperations) {
  for (const format_id format : {format_id::fp16, format_id::bf16}) {
    columns x{format, {}};
    for (unsigned i = 0; i < 65536; ++i) x.codes[0].push_back(static_cast<std::uint16_t>(i));
    x.codes[1] = x.codes[2] = x.codes[0];
    for (const operation op : {operation::sqrt, operation::rint}) {
      for (const cast_rule& rule : rules) expect_definition(op, x, rule);
    }
  }
}

using pairs_of = std::tuple<format_id, operation>;
class SixteenBitPairs : public ::testing::TestWithParam<pairs_of> {
 protected:
  /// All second operands for some first ones, whose rows together keep threads busy.
  static std::vector<std::uint16_t> results(const std::vector<std::uint16_t>& first,
                                            overflow policy, const executor& where) {
    static const std::vector<std::uint16_t> second = [] {
      std::vector<std::uint16_t> all(65536);
      std::iota(all.begin(), all.end(), std::uint16_t{0});
      return all;
    }();
    const auto [format, op] = GetParam();
    const auto rows = static_cast<std::int64_t>(first.size());
    std::vector<std::uint16_t> out(first.size() * second.size());
    compute(op,
            {{first.data(), format, rows, 65536, 1, 0}, {second.data(), format, rows, 65536, 0, 1}},
            {out.data(), format, rows, 65536, 65536, 1}, {.overflow = policy}, where);
    return out;
  }
};

TEST_P(SixteenBitPairs, AreTheReferences) {
  const std::uint64_t stride = sweep_stride(509);
  const int threads = stride == 1 ? 0 : 1;
  for (std::uint64_t at = 0; at < 65536;) {
    std::vector<std::uint16_t> first;
    for (; first.size() < 64 && at < 65536; at += stride) {
      first.push_back(static_cast<std::uint16_t>(at));
    }
    for (const overflow policy : {overflow::ieee, overflow::saturate}) {
      const auto expected = results(first, policy, {"reference", threads});
      for (const std::string& backend : supported_backends()) {
        const auto got = results(first, policy, {backend, threads});
        const auto wrong = std::ranges::mismatch(got, expected);
        if (wrong.in1 == got.end()) continue;
        const auto i = static_cast<std::size_t>(wrong.in1 - got.begin());
        FAIL() << backend << ", " << name(policy) << ": of " << first[i / 65536] << ", "
               << i % 65536 << " got " << *wrong.in1 << ", expected " << *wrong.in2;
      }
    }
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
