// Conversion against the oracle, by every deterministic rule, scalar and on every host backend: every
// code of 8 and 16 bits into every format; from fp32 each threshold with its neighbours, all NaN
// samples, and the whole range in prime steps, or all 2^32 codes with SAMEBITS_SWEEP_STRIDE=1 in the
// environment. Stochastic rounding of fp16 codes. Arrays of more than 2^31 elements.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "engine/core/target.hpp"
#include "exhaustive/sweep_program.hpp"
#include "oracle/arithmetic.hpp"
#include "oracle/convert.hpp"
#include "oracle/thresholds.hpp"
#include "samebits/samebits.hpp"
#include "support/backends.hpp"
#include "support/conversion_case.hpp"
#include "support/rules.hpp"
#include "support/sweep.hpp"

namespace samebits {
namespace {

using namespace support;

/// Codes in the width of their format, little-endian as the library is.
template <class Code>
std::vector<std::byte> packed(format_id f, const std::vector<Code>& codes) {
  const auto width = static_cast<std::size_t>(storage_bytes(f));
  std::vector<std::byte> bytes(codes.size() * width);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    std::memcpy(bytes.data() + i * width, &codes[i], width);
  }
  return bytes;
}

/// Converts as many codes as are expected. The first difference is a failure: one is enough to repeat.
void expect_converted(conversion_case c, const void* in, const std::vector<std::byte>& expected,
                      const std::string& backend, int threads) {
  std::vector<std::byte> out(expected.size());
  const auto count = static_cast<std::int64_t>(out.size()) / storage_bytes(c.to);
  const const_matrix_view from = view_of_codes(c.from, in, 1, count);
  convert(from, view_of_codes(c.to, out.data(), 1, count),
          {c.rule.rounding, c.rule.overflow, c.rule.nan, {}}, {backend, threads});
  const auto wrong = first_difference(c.to, out, expected);
  if (!wrong) return;
  const auto code = [&](const std::vector<std::byte>& codes) {
    return code_at(view_of_codes(c.to, codes.data(), 1, count), 0,
                   static_cast<std::int64_t>(*wrong));
  };
  c.input = code_at(from, 0, static_cast<std::int64_t>(*wrong));
  c.where = "convert on " + backend;
  FAIL() << same_code(c, code(out), code(expected)).message();
}

/// Converts by the scalar function and on every host backend.
void expect_codes(conversion_case c, const std::vector<std::uint32_t>& inputs,
                  const std::vector<std::uint64_t>& expected) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    c.input = inputs[i];
    const std::uint64_t got = convert_code(c.from, c.to, c.input, c.rule).code;
    if (got != expected[i]) FAIL() << same_code(c, got, expected[i]).message();
  }
  const std::vector<std::byte> in = packed(c.from, inputs), right = packed(c.to, expected);
  for (const std::string& backend : supported_backends()) {
    expect_converted(c, in.data(), right, backend, 1);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// Converts every stride-th fp32 code from `first` on.
void expect_swept(const conversion_case& c, const code_steps& steps, std::uint64_t first,
                  std::uint64_t stride, const std::string& backend) {
  constexpr std::uint64_t chunk = 1 << 16, codes = std::uint64_t{1} << 32;  // fits caches
  std::vector<std::uint32_t> in;
  std::vector<std::byte> expected;
  for (; first < codes; first += chunk * stride) {
    in.resize(std::min(chunk, (codes - first + stride - 1) / stride));
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<std::uint32_t>(first + i * stride);
    }
    expected.resize(in.size() * static_cast<std::size_t>(storage_bytes(c.to)));
    steps.fill(first, stride, in.size(), expected.data());
    expect_converted(c, in.data(), expected, backend, stride == 1 ? 0 : 1);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

std::string name_of(const ::testing::TestParamInfo<format_id>& info) {
  return std::string(name(info.param));
}

class NarrowSources : public ::testing::TestWithParam<format_id> {};

/// tf32, fp32 and fp64 hold every number of these sources. So they have no steps, and the oracle
/// converts once for all roundings.
TEST_P(NarrowSources, IntoEveryFormat) {
  const format_id from = GetParam();
  const oracle::format& source = oracle_of(from);
  std::vector<std::uint32_t> codes(std::size_t{1} << spec_of(from).storage_bits);
  std::iota(codes.begin(), codes.end(), 0u);
  for (const format_id to : all_formats()) {
    const bool holds_all = spec_of(to).mantissa_bits >= 10 && spec_of(to).exponent_bits >= 8;
    std::vector<std::uint64_t> expected;
    for (const overflow policy : overflow_policies) {
      for (const nan_policy nan : nan_policies) {
        expected.clear();
        for (const rounding mode : deterministic_modes) {
          const cast_rule rule{mode, policy, nan};
          if (!holds_all) {
            const auto f = oracle::make_step_function(source, oracle_of(to), rule);
            expected.clear();
            for (const auto code : codes) expected.push_back(oracle::evaluate(f, code));
          } else if (expected.empty()) {
            for (const auto code : codes) {
              expected.push_back(oracle::convert(source, oracle_of(to), code, rule));
            }
          }
          expect_codes({from, to, 0, rule}, codes, expected);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(UpTo16Bits, NarrowSources, ::testing::ValuesIn(formats_up_to(16)),
                         name_of);

class ConvertThresholds : public ::testing::TestWithParam<format_id> {};

/// The four formats that tensors are stored in are swept ten times as densely as the rest.
std::uint64_t stride_into(format_id to) {
  const bool main = to == format_id::fp16 || to == format_id::bf16 || to == format_id::e4m3 ||
                    to == format_id::e5m2;
  return sweep_stride(main ? 1009 : 10007);  // primes, times 16 where instrumented
}

TEST_P(ConvertThresholds, NeighboursAndPrimeSteps) {
  const format_id to = GetParam();
  const std::uint64_t stride = stride_into(to);
  std::uint64_t start = 0;
  for (const cast_rule& rule : deterministic_rules()) {
    const oracle::step_function f =
        oracle::make_step_function(oracle_of(format_id::fp32), oracle_of(to), rule);
    const code_steps steps(f);
    std::vector<std::uint32_t> codes;
    const std::vector<std::uint32_t> around = steps.codes_around(2);
    for (std::size_t i = 0; i < around.size(); i += effort_divisor) codes.push_back(around[i]);
    const conversion_case c{format_id::fp32, to, 0, rule};
    expect_codes(c, codes, steps.at(codes));
    if (HasFatalFailure()) return;
    for (const std::string& backend : supported_backends()) {
      start = (start + 97) % stride;  // other codes for every rule
      expect_swept(c, steps, start, stride, backend);
      if (HasFatalFailure()) return;
    }
  }
}

/// Expectations with one threshold one code off: what a wrong conversion looks like.
TEST(PlantedThreshold, IsFoundAmongNeighboursAndInSteps) {
  oracle::step_function f =
      oracle::make_step_function(oracle_of(format_id::fp32), oracle_of(format_id::e4m3), {});
  const std::uint32_t wrong = 0x80000000u + f.negative.at(60).first++;
  const code_steps steps(f);
  const conversion_case c{format_id::fp32, format_id::e4m3, 0, {}};
  ::testing::TestPartResultArray failures;
  {
    const ::testing::ScopedFakeTestPartResultReporter here(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    expect_codes(c, {wrong}, steps.at({wrong}));
    expect_swept(c, steps, wrong % 1009, 1009, "reference");
  }
  EXPECT_EQ(failures.size(), 2);
}

/// All but fp64 and fp32, into which every fp32 value goes as it is.
std::vector<format_id> narrower_than_fp32() {
  std::vector<format_id> formats = all_formats();
  std::erase(formats, format_id::fp64);
  std::erase(formats, format_id::fp32);
  return formats;
}

INSTANTIATE_TEST_SUITE_P(From32, ConvertThresholds, ::testing::ValuesIn(narrower_than_fp32()),
                         name_of);

/// How stochastic rounding by K random bits converts an fp16 code: `kept` for R below `away_from`,
/// `away` from there on.
struct decision {
  std::uint64_t away_from, kept, away;
};

template <format_id To>
decision decision_of(std::uint64_t input, const cast_rule& rule, int k) {
  const oracle::format &from = oracle_of(format_id::fp16), &to = oracle_of(To);
  const std::uint64_t end = std::uint64_t{1} << k;
  const auto by_oracle = [&](std::uint64_t r) {
    return oracle::convert(from, to, input, rule, {static_cast<std::uint32_t>(r), k});
  };
  const std::uint64_t first =
      oracle::placed_outcome(to, {oracle::decode(from, input)}).smallest_away(k);
  const decision d{first, by_oracle(0), by_oracle(end - 1)};
  EXPECT_TRUE(first == 0 || by_oracle(first - 1) == d.kept) << input;
  EXPECT_TRUE(first == end || by_oracle(first) == d.away) << input;
  return d;
}

/// Each input with both words beside its decision, and every `step`-th word.
template <format_id To>
void expect_decisions(std::uint64_t first, std::uint64_t end, std::uint64_t inputs_step,
                      std::uint64_t words_step, overflow policy, int k = 16) {
  const cast_rule rule{rounding::stochastic, policy};
  const std::uint64_t words = std::uint64_t{1} << k;
  std::uint64_t moving = 0, inputs = 0;
  for (std::uint64_t input = first; input < end; input += inputs_step) {
    const decision d = decision_of<To>(input, rule, k);
    moving += d.away_from > 0 && d.away_from < words;
    const auto is_right = [&](std::uint64_t r) {
      const random_bits bits{static_cast<std::uint32_t>(r), k};
      const std::uint64_t got =
          convert_code<To, format_id::fp16>(static_cast<std::uint16_t>(input), rule, bits);
      const std::uint64_t expected = r < d.away_from ? d.kept : d.away;
      if (got == expected) return true;
      conversion_case c{format_id::fp16, To, input, rule, bits};
      c.where = "convert_code<To, From>";
      ADD_FAILURE() << same_code(c, got, expected).message();
      return false;
    };
    if (!is_right(d.away_from % words) || !is_right((d.away_from - 1) % words)) return;
    for (std::uint64_t r = inputs++ % words_step; r < words; r += words_step) {
      if (!is_right(r)) return;
    }
  }
  EXPECT_GT(moving, inputs / 4);
}

/// With SAMEBITS_SWEEP_STRIDE=1 in the environment: by every word.
TEST(Stochastic, EveryCodeOfFp16) {
  const std::uint64_t step = sweep_stride(257);
  expect_decisions<format_id::e4m3>(0, 65536, effort_divisor, step, overflow::ieee);
  expect_decisions<format_id::e5m2>(0, 65536, effort_divisor, step, overflow::ieee);
}

/// The other policies differ from ieee beyond max only: from 384 upward, of both signs.
TEST(Stochastic, OtherPoliciesNearMaxAndBeyond) {
  for (const overflow policy : {overflow::saturate, overflow::saturate_finite}) {
    for (const std::uint64_t first : {0x5E00u, 0xDE00u}) {
      expect_decisions<format_id::e4m3>(first, first + 0x2200, 31, 251, policy);
      expect_decisions<format_id::e5m2>(first, first + 0x2200, 31, 251, policy);
    }
  }
}

TEST(Stochastic, OtherWidths) {
  for (const int k : {1, 7, 8, 13, 32}) {
    const std::uint64_t step = (std::uint64_t{1} << k) / 3 + 1;
    expect_decisions<format_id::e4m3>(0, 65536, 7, step, overflow::ieee, k);
    expect_decisions<format_id::e5m2>(0, 65536, 7, step, overflow::ieee, k);
    expect_decisions<format_id::e2m1>(0, 65536, 31, step, overflow::ieee, k);
    expect_decisions<format_id::e8m0>(0, 65536, 31, step, overflow::ieee, k);
  }
}

/// Needs 7 GiB. The reference converts spans of one period each for comparison.
TEST(ConvertHuge, MoreThan2To31Elements) {
  constexpr std::int64_t period = 16'777'213;  // a prime
  constexpr std::int64_t count = (std::int64_t{1} << 31) + 4'099;
  std::vector<bf16> in(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto code = static_cast<std::uint32_t>(i % period) * 40'503u >> 3;
    in[static_cast<std::size_t>(i)] = bf16::from_bits(static_cast<std::uint16_t>(code));
  }
  std::vector<e4m3> out(count), expected(period);
  for (const std::string& backend : supported_backends()) {
    for (const rounding mode : {rounding::nearest_even, rounding::stochastic}) {
      convert_options options{.rounding = mode, .random = {.seed = 9, .bits = 16}};
      std::memset(static_cast<void*>(out.data()), 0x55, out.size());
      convert(view_of(in.data(), 1, count), view_of(out.data(), 1, count), options,
              find_executor(backend, 0));
      for (std::int64_t at = 0; at < count; at += period) {
        const std::int64_t n = std::min(period, count - at);
        options.random.offset = static_cast<std::uint64_t>(at);
        convert(view_of(in.data() + at, 1, n), view_of(expected.data(), 1, n), options,
                find_executor("reference", 0));
        ASSERT_EQ(std::memcmp(out.data() + at, expected.data(), static_cast<std::size_t>(n)), 0)
            << backend << ", " << name(mode) << ", elements from " << at;
      }
    }
  }
}

}  // namespace
}  // namespace samebits
