// Array conversion of more than 2^31 elements on every host backend; needs 7 GiB, so on demand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "samebits/samebits.hpp"
#include "support/backends.hpp"

namespace samebits {
namespace {

constexpr std::int64_t period = 16'777'213;  // a prime
constexpr std::int64_t count = (std::int64_t{1} << 31) + 4'099;

/// Spans of one period each are converted by the reference for comparison.
void expect_equal_spans(const std::vector<bf16>& in, const std::vector<e4m3>& out,
                        const convert_options& options, const std::string& backend) {
  std::vector<e4m3> expected(period);
  for (std::int64_t at = 0; at < count; at += period) {
    const std::int64_t n = std::min(period, count - at);
    convert_options here = options;
    here.random.offset = static_cast<std::uint64_t>(at);
    if (options.rounding == rounding::stochastic || at == 0) {
      convert(view_of(in.data() + at, 1, n), view_of(expected.data(), 1, n), here,
              find_executor("reference", 0));
    }
    ASSERT_EQ(std::memcmp(out.data() + at, expected.data(), static_cast<std::size_t>(n)), 0)
        << backend << ", " << name(options.rounding) << ", elements from " << at;
  }
}

TEST(ConvertHuge, MoreThan2To31Elements) {
  std::vector<bf16> in(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto code = static_cast<std::uint32_t>(i % period) * 40'503u >> 3;
    in[static_cast<std::size_t>(i)] = bf16::from_bits(static_cast<std::uint16_t>(code));
  }
  std::vector<e4m3> out(count);
  for (const std::string& backend : support::supported_backends()) {
    for (const rounding mode : {rounding::nearest_even, rounding::stochastic}) {
      const convert_options options{.rounding = mode, .random = {.seed = 9, .bits = 16}};
      std::memset(static_cast<void*>(out.data()), 0x55, out.size());
      convert(view_of(in.data(), 1, count), view_of(out.data(), 1, count), options,
              find_executor(backend, 0));
      expect_equal_spans(in, out, options, backend);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace samebits
