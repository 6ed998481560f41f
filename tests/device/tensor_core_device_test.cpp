// Tensor cores of this GPU against the model, bit for bit: every instruction, every family of
// operands. Prints what was compared; SAMEBITS_TENSOR_CASES=N draws more or fewer of each family.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/tensor_core_check.hpp"

namespace samebits {
namespace {

std::uint64_t cases_wanted() {
  const char* text = std::getenv("SAMEBITS_TENSOR_CASES");
  return text == nullptr ? 49152 : std::strtoull(text, nullptr, 10);
}

class TensorCore : public ::testing::TestWithParam<std::string_view> {};

TEST_P(TensorCore, IsTheModel) {
  const tensor_core_gpu gpu = current_tensor_core_gpu();  // throws, and so fails, without a GPU
  std::vector<tensor_core_finding> findings;
  try {
    findings =
        check_tensor_cores({.instruction = GetParam(), .cases = cases_wanted(), .fit = false});
  } catch (const unsupported& error) {
    GTEST_SKIP() << error.what();
  }
  ASSERT_EQ(findings.size(), 1u);
  const tensor_core_finding& f = findings.front();
  std::printf("%s on %s: %llu results compared, %llu differ\n", f.instruction.c_str(),
              gpu.name.c_str(), static_cast<unsigned long long>(f.compared),
              static_cast<unsigned long long>(f.differed));
  EXPECT_EQ(f.differed, 0u) << f.first_difference;
}

INSTANTIATE_TEST_SUITE_P(Instructions, TensorCore,
                         ::testing::ValuesIn(tensor_core_instruction_names()),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace samebits
