// Matrix products of every host backend against the reference, on matrices larger than a vector and
// a block of anything, and on several threads.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "samebits/matmul.hpp"
#include "samebits/types.hpp"
#include "support/backends.hpp"
#include "support/effort.hpp"
#include "tensor_cores/matmul_case.hpp"

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
    compare(matmul_case(1000 + seed, {40, 80, 500}, random_kinds::all),
            1 + static_cast<int>(seed % 4));
  }
}

TEST_P(MatmulSuite, IsTheReferenceOnTensorCores) {
  const std::uint64_t cases = 1200 / effort_divisor;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    compare(matmul_case(5000 + seed, {30, 70, 300}, random_kinds::tensor_cores),
            1 + static_cast<int>(seed % 3));
  }
}

/// Exits with 0 if a product on 64 threads is right where memory is left for the stacks of few.
[[noreturn]] void multiply_on_few_threads(const std::string& backend) {
  constexpr std::int64_t n = 256;  // 64 threads are worth it
  const std::vector<e4m3> ones(n * n, e4m3(1.0f));
  const auto x = view_of(ones.data(), n, n);
  std::vector<float> d(n * n);
  const auto sum = accumulator::tensor_core(tensor_unit::hopper_wgmma, 0);
  const auto to = view_of(d.data(), n, n);
  matmul(x, x, to, sum, {}, {backend, 1});  // what is done once is done
  d.assign(d.size(), 0.0f);
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const std::uint64_t room = std::uint64_t{48} << 20;
  const rlimit maximum = {pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + room,
                          RLIM_INFINITY};
  if (::setrlimit(RLIMIT_AS, &maximum) != 0) std::exit(2);
  ::alarm(60);  // if they wait for threads that never come
  matmul(x, x, to, sum, {}, {backend, 64});
  std::exit(d == std::vector<float>(n * n, 256.0f) ? 0 : 1);
}

TEST_P(MatmulSuite, NeedsNoMoreThreadsThanThereAre) {
  if (effort_divisor != 1) GTEST_SKIP() << "a sanitizer's memory knows no limit";
  if (GetParam() == "reference") GTEST_SKIP() << "throws as std::thread does";
  EXPECT_EXIT(multiply_on_few_threads(GetParam()), ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Host, MatmulSuite, ::testing::ValuesIn(supported_backends()),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace samebits
