// Every code of every format of at most 16 bits into every format, by every deterministic rule,
// scalar and array.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "oracle/convert.hpp"
#include "oracle/thresholds.hpp"
#include "samebits/convert.hpp"
#include "samebits/scalar.hpp"
#include "support/backends.hpp"
#include "support/conversion_case.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

/// All codes of a source, in storage width one after the other; ignored bits take every value.
class all_codes {
 public:
  explicit all_codes(format_id f)
      : format_(f), count_(std::size_t{1} << spec_of(f).storage_bits), bytes_(count_ * width()) {
    for (std::size_t code = 0; code < count_; ++code) {
      std::memcpy(bytes_.data() + code * width(), &code, width());
    }
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const_matrix_view view() const {
    return view_of_codes(format_, std::as_const(bytes_).data(), 1,
                         static_cast<std::int64_t>(count_));
  }

 private:
  [[nodiscard]] std::size_t width() const {
    return static_cast<std::size_t>(storage_bytes(format_));
  }
  format_id format_;
  std::size_t count_;
  std::vector<std::byte> bytes_;
};

std::vector<std::uint64_t> expected_codes(format_id from, format_id to, const cast_rule& rule) {
  const oracle::format& source = oracle_of(from);
  const oracle::format& target = oracle_of(to);
  std::vector<std::uint64_t> expected(std::size_t{1} << spec_of(from).storage_bits);
  if (to == format_id::fp32 || to == format_id::fp64) {  // too fine for a table of steps
    for (std::size_t code = 0; code < expected.size(); ++code) {
      expected[code] = oracle::convert(source, target, code, rule);
    }
    return expected;
  }
  const oracle::step_function f = oracle::make_step_function(source, target, rule);
  for (std::size_t code = 0; code < expected.size(); ++code) {
    expected[code] = oracle::evaluate(f, static_cast<std::uint32_t>(code));
  }
  return expected;
}

class NarrowSources : public ::testing::TestWithParam<format_id> {
 protected:
  /// Adds a failure for the first code that differs.
  static void expect_same(format_id to, const cast_rule& rule, const all_codes& source) {
    const format_id from = GetParam();
    const std::vector<std::uint64_t> expected = expected_codes(from, to, rule);
    const auto width = static_cast<std::size_t>(storage_bytes(to));
    for (const std::string& backend : supported_backends()) {
      std::vector<std::byte> results(source.count() * width);
      convert(source.view(),
              view_of_codes(to, results.data(), 1, static_cast<std::int64_t>(source.count())),
              {rule.rounding, rule.overflow, rule.nan, {}}, {backend, 1});
      for (std::size_t code = 0; code < source.count(); ++code) {
        const std::uint64_t scalar = convert_code(from, to, code, rule).code;
        std::uint64_t array = 0;
        std::memcpy(&array, results.data() + code * width, width);
        if (scalar == expected[code] && array == expected[code]) continue;
        conversion_case c{from, to, code, rule};
        EXPECT_TRUE(same_code(c, scalar, expected[code]));
        c.where = "convert on " + backend;
        EXPECT_TRUE(same_code(c, array, expected[code]));
        return;
      }
    }
  }
};

TEST_P(NarrowSources, IntoEveryFormat) {
  const all_codes source(GetParam());
  std::uint64_t compared = 0;
  for (const format_id to : all_formats()) {
    for (const cast_rule& rule : deterministic_rules()) {
      expect_same(to, rule, source);
      if (HasFailure()) return;
      compared += source.count();
    }
  }
  RecordProperty("codes_compared", std::to_string(compared));
}

std::string name_of(const ::testing::TestParamInfo<format_id>& info) {
  return std::string(name(info.param));
}

INSTANTIATE_TEST_SUITE_P(UpTo16Bits, NarrowSources, ::testing::ValuesIn(formats_up_to(16)),
                         name_of);

}  // namespace
}  // namespace samebits
