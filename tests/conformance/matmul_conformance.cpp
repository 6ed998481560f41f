// Matrix products of every host backend against the reference, on matrices larger than a vector and
// a block of anything, and on several threads.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "samebits/matmul.hpp"
#include "support/backends.hpp"
#include "support/effort.hpp"
#include "support/matmul_case.hpp"

namespace samebits {
namespace {

using namespace support;

class MatmulSuite : public ::testing::TestWithParam<std::string> {
 protected:
  void compare(const matmul_case& x, int threads) {
    const strided_buffer expected = x.run({"reference", 1});
    const strided_buffer got = x.run({GetParam(), threads});
    ASSERT_TRUE(got.guards_are_intact()) << x.text();
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      for (std::int64_t j = 0; j < x.cols(); ++j) {
        ASSERT_EQ(got.at(i, j), expected.at(i, j))
            << "element " << i << ", " << j << ", " << x.text();
      }
    }
  }
};

TEST_P(MatmulSuite, IsTheReference) {
  const std::uint64_t cases = 400 / effort_divisor;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    compare(matmul_case(1000 + seed, {40, 80, 500}, drawn_kinds::all),
            1 + static_cast<int>(seed % 4));
  }
}

TEST_P(MatmulSuite, IsTheReferenceOnTensorCores) {
  const std::uint64_t cases = 1200 / effort_divisor;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    compare(matmul_case(5000 + seed, {30, 70, 300}, drawn_kinds::tensor_cores),
            1 + static_cast<int>(seed % 3));
  }
}

INSTANTIATE_TEST_SUITE_P(Host, MatmulSuite, ::testing::ValuesIn(supported_backends()),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace samebits
