// Matrix products where the machine has memory for few threads.
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

namespace samebits {
namespace {

using namespace support;

class MatmulThreads : public ::testing::TestWithParam<std::string> {};

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

TEST_P(MatmulThreads, NeedsNoMoreThreadsThanThereAre) {
  if (effort_divisor != 1) GTEST_SKIP() << "a sanitizer's memory knows no limit";
  if (GetParam() == "reference") GTEST_SKIP() << "throws as std::thread does";
  EXPECT_EXIT(multiply_on_few_threads(GetParam()), ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Host, MatmulThreads, ::testing::ValuesIn(supported_backends()),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace samebits
