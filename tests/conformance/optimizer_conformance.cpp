// Optimizer steps on every host backend and any number of threads: the reference's bytes.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "samebits/optimizer.hpp"
#include "support/backends.hpp"
#include "support/effort.hpp"
#include "support/optimizer_case.hpp"

namespace samebits {
namespace {

using namespace support;

/// What differs between two cases of equal formats; empty if nothing does.
std::string difference(const optimizer_case& got, const optimizer_case& expected) {
  for (std::size_t i = 0; i < got.tensors.size(); ++i) {
    const tensor_memory& t = got.tensors[i];
    if (t == expected.tensors[i]) continue;
    const optimizer_settings& s = got.groups[t.group];
    return "tensor " + std::to_string(i) + " of " + std::to_string(t.count) + " elements, rule " +
           std::to_string(static_cast<int>(s.rule)) + ", profile " +
           std::to_string(static_cast<int>(s.profile)) + ", weights " +
           std::to_string(static_cast<int>(t.weights.format)) + ", low " +
           std::to_string(static_cast<int>(t.low_kind));
  }
  return "";
}

void check(std::uint64_t seed, tensor_formats formats, std::int64_t max_count, int max_tensors) {
  random_words next(seed);
  optimizer_case given = draw_case(next, formats, max_count, max_tensors);
  optimizer_case expected = given;
  optimizer_step(expected.list(), expected.groups, expected.input, find_executor("reference"));
  for (const std::string& backend : supported_backends()) {
    for (const int threads : {1, 3}) {
      optimizer_case copy = given;
      optimizer_step(copy.list(), copy.groups, copy.input, find_executor(backend, threads));
      EXPECT_EQ(difference(copy, expected), "")
          << backend << ", threads " << threads << ", seed " << seed;
    }
  }
}

TEST(optimizer_conformance, backends_and_threads_give_the_bytes_of_the_reference) {
  for (std::uint64_t seed = 0; seed < 300 / effort_divisor; ++seed) {
    check(seed, tensor_formats::any, 700, 6);
    check(seed, tensor_formats::fp32, 40, 3);
  }
  for (std::uint64_t seed = 0; seed < 12; ++seed) check(seed, tensor_formats::any, 20'000, 3);
  check(1, tensor_formats::any, 60, 2000);
}

}  // namespace
}  // namespace samebits
