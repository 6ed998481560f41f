// fp32 into every narrower format, by every deterministic rule: each threshold with its neighbours
// on both sides and all NaN samples, then a sweep over the whole range in prime steps, or over all
// 2^32 codes with SAMEBITS_SWEEP_STRIDE=1 in the environment.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "exhaustive/sweep_program.hpp"
#include "oracle/thresholds.hpp"
#include "samebits/convert.hpp"
#include "samebits/scalar.hpp"
#include "support/backends.hpp"
#include "support/conversion_case.hpp"
#include "support/effort.hpp"
#include "support/rules.hpp"
#include "support/sweep.hpp"

namespace samebits {
namespace {

using namespace support;

class ConvertThresholds : public ::testing::TestWithParam<format_id> {
 protected:
  static conversion_case scalar_case(std::uint32_t input, const cast_rule& rule) {
    return {format_id::fp32, GetParam(), input, rule};
  }
  static conversion_case array_case(std::uint32_t input, const cast_rule& rule,
                                    const std::string& backend) {
    conversion_case c = scalar_case(input, rule);
    c.where = "convert on " + backend;
    return c;
  }
  static oracle::step_function steps_of(const cast_rule& rule) {
    return oracle::make_step_function(oracle_of(format_id::fp32), oracle_of(GetParam()), rule);
  }
};

std::vector<std::uint32_t> thinned(const std::vector<std::uint32_t>& codes) {
  std::vector<std::uint32_t> kept;
  for (std::size_t i = 0; i < codes.size(); i += effort_divisor) kept.push_back(codes[i]);
  return kept;
}

/// A view of codes as the four bytes, two or one that the destination needs.
std::uint64_t code_at(const std::vector<std::uint32_t>& words, format_id f, std::size_t i) {
  const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
  const auto width = static_cast<std::size_t>(storage_bytes(f));
  std::uint64_t code = 0;
  std::memcpy(&code, bytes + i * width, width);
  return code;
}

TEST_P(ConvertThresholds, EveryThresholdAndItsNeighbours) {
  std::uint64_t compared = 0;
  for (const cast_rule& rule : deterministic_rules()) {
    const oracle::step_function f = steps_of(rule);
    const std::vector<std::uint32_t> codes = thinned(code_steps(f).codes_around(2));
    const auto count = static_cast<std::int64_t>(codes.size());
    for (const std::string& backend : supported_backends()) {
      std::vector<std::uint32_t> results(codes.size());
      convert(view_of_codes(format_id::fp32, codes.data(), 1, count),
              view_of_codes(GetParam(), results.data(), 1, count),
              {rule.rounding, rule.overflow, rule.nan, {}}, {backend, 1});
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const std::uint64_t expected = oracle::evaluate(f, codes[i]);
        const std::uint64_t scalar = convert_code(format_id::fp32, GetParam(), codes[i], rule).code;
        const std::uint64_t array = code_at(results, GetParam(), i);
        if (scalar == expected && array == expected) continue;
        EXPECT_TRUE(same_code(scalar_case(codes[i], rule), scalar, expected));
        EXPECT_TRUE(same_code(array_case(codes[i], rule, backend), array, expected));
        return;  // one is enough to repeat; the rest would only bury it
      }
      compared += codes.size();
    }
  }
  RecordProperty("codes_compared", std::to_string(compared));
}

/// The four formats that tensors are stored in are swept ten times as densely as the rest.
std::uint64_t stride_into(format_id to) {
  const bool main = to == format_id::fp16 || to == format_id::bf16 || to == format_id::e4m3 ||
                    to == format_id::e5m2;
  return sweep_stride(main ? 251 : 2503);  // primes, times 16 where instrumented
}

TEST_P(ConvertThresholds, SweepInPrimeSteps) {
  const std::uint64_t stride = stride_into(GetParam());
  std::uint64_t compared = 0;
  std::uint64_t start = 0;
  for (const cast_rule& rule : deterministic_rules()) {
    const oracle::step_function f = steps_of(rule);
    for (const std::string& backend : supported_backends()) {
      start = (start + 97) % stride;  // other codes for every rule
      const sweep_result result =
          sweep(f, code_steps(f), GetParam(), {start, stride}, {backend, stride == 1 ? 0 : 1});
      compared += result.compared;
      if (!result.first_differing) continue;
      ADD_FAILURE() << result.differing << " of " << result.compared << " differ, the first: "
                    << same_code(array_case(*result.first_differing, rule, backend), result.got,
                                 result.expected)
                           .message();
    }
  }
  RecordProperty("codes_compared", std::to_string(compared));
}

std::string name_of(const ::testing::TestParamInfo<format_id>& info) {
  return std::string(name(info.param));
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

}  // namespace
}  // namespace samebits
