// What a broken process must still do: convert, and refuse compound calls by name.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "oracle/convert.hpp"
#include "samebits/convert.hpp"
#include "samebits/core/format.hpp"
#include "samebits/error.hpp"
#include "samebits/reductions.hpp"
#include "samebits/self_test.hpp"
#include "samebits/view.hpp"
#include "support/backends.hpp"
#include "support/refusal.hpp"

namespace samebits::support {

/// The checks that fail for a backend.
inline std::set<std::string> failed_checks(std::string_view backend) {
  std::set<std::string> failed;
  for (const self_test_result& r : self_test(backend)) {
    EXPECT_EQ(r.passed, r.detail.empty()) << r.check << ": " << r.detail;
    if (!r.passed) failed.emplace(r.check);
  }
  return failed;
}

/// Calls something that must throw environment_error and returns its message.
template <class Call>
std::string refusal(const Call& call) {
  const std::string why = refusal_of<environment_error>(call);
  EXPECT_FALSE(why.empty()) << "not refused";
  return why;
}

/// Every member of tree_sum that computes must throw and leave the sum as it was.
inline std::string tree_sum_refusal() {
  tree_sum sum;
  const double inputs[] = {1.0, 2.0};
  const std::string why = refusal([&] { sum.add(inputs); });
  EXPECT_FALSE(refusal([&] { sum.add(1.0); }).empty());
  EXPECT_FALSE(refusal([&] { sum.add_squares(inputs); }).empty());
  EXPECT_FALSE(refusal([&] { (void)sum.value(); }).empty());
  EXPECT_FALSE(refusal([&] { sum.add_partial_sum(3, 1.0); }).empty());
  EXPECT_EQ(sum.count(), 0u);
  return why;
}

inline void expect_tree_sum_works() {
  tree_sum sum;
  const double inputs[] = {1.0, 0x1p-1074, -1.0};  // the tree: (1 + 2^-1074) - 1
  sum.add(inputs);
  EXPECT_EQ(sum.value(), 0.0);
  sum.add(3.0);  // now (1 + 2^-1074) + (-1 + 3)
  EXPECT_EQ(sum.value(), 3.0);
}

/// Codes of every kind, subnormals among them, from 16-bit formats whole and from fp32, into every
/// format on every backend with several threads: each code is the oracle's, which uses integers.
inline void expect_conversions_hold() {
  constexpr std::int64_t count = 1 << 16;
  constexpr int threads = 3;
  for (const format_id from : {format_id::fp32, format_id::fp16, format_id::bf16}) {
    const auto in_bytes = static_cast<std::size_t>(storage_bytes(from));
    std::vector<unsigned char> in(count * in_bytes);
    std::vector<std::uint64_t> codes(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      // fp32: half of them subnormal, the others spread over everything
      codes[i] = from != format_id::fp32 ? i
                 : i % 2 == 0            ? i * 127
                                         : (i * 65537 + (i >> 8)) & 0xFFFFFFFFu;
      std::memcpy(in.data() + i * in_bytes, &codes[i], in_bytes);  // little-endian
    }
    for (int f = 0; f < format_count; ++f) {
      const format_id to = format_at(f);
      const auto out_bytes = static_cast<std::size_t>(storage_bytes(to));
      std::vector<std::uint64_t> expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        expected[i] = oracle::convert(oracle::format_named(name(from)),
                                      oracle::format_named(name(to)), codes[i], cast_rule{});
      }
      for (const std::string& backend : supported_backends()) {
        std::vector<unsigned char> out(count * out_bytes);
        convert(view_of_codes(from, in.data(), 1, count), view_of_codes(to, out.data(), 1, count),
                {}, find_executor(backend, threads));
        for (std::size_t i = 0; i < count; ++i) {
          std::uint64_t got = 0;
          std::memcpy(&got, out.data() + i * out_bytes, out_bytes);
          ASSERT_EQ(got, expected[i])
              << backend << ' ' << name(from) << " to " << name(to) << " code " << codes[i];
        }
      }
    }
  }
}

}  // namespace samebits::support
