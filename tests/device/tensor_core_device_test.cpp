// Tensor cores of this GPU against the model, bit for bit: every instruction, every family of
// operands. Prints what was compared; SAMEBITS_TENSOR_CASES=N draws more or fewer of each family.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "support/effort.hpp"
#include "tensor_core_probe/check.hpp"
#include "tensor_core_probe/tiles.hpp"

extern "C" const samebits::backends::tensor_cores::device* samebits_tensor_core_device();

namespace samebits {
namespace {

using namespace backends::tensor_cores;

std::uint64_t cases_wanted() {
  const char* text = std::getenv("SAMEBITS_TENSOR_CASES");
  return text == nullptr ? support::by_effort<std::uint64_t>(49152, 64)
                         : std::strtoull(text, nullptr, 10);
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

/// Compared with the rule of another unit: what the device reports of differences must be what the
/// host finds, and its results those of the row.
void compare_with_wrong_rule(instruction what, tensor_unit own, tensor_unit wrong) {
  const shape s = shape_of(what);
  const auto rule_by = [&](tensor_unit unit) {
    const auto row = find_tensor_row(unit, *tensor_operands_of(s.a, s.b));
    return numerics::accumulate_rule_of(*row, s.a, s.b, s.result, s.products);
  };
  const device& on = *samebits_tensor_core_device();
  const auto found = unit_of(what, on.capability());
  if (!found || found->unit != own) GTEST_SKIP() << on.name() << " is no Hopper";
  constexpr std::uint32_t tiles = 5;  // each meets each
  constexpr int near_one = 2;
  const random_tiles operands = draw_tiles(what, near_one, 1, tiles);
  const job j = {
      what, rule_by(wrong), tiles, operands.a.data(), operands.b.data(), operands.c.data()};
  const outcome got = on.run(j);
  const std::size_t results = results_of(j);
  ASSERT_EQ(got.own.size(), results);
  std::uint64_t differing = 0;
  for (std::size_t index = 0; index < results; ++index) {
    for (std::size_t partner = 0; partner < tiles; ++partner) {
      const case_codes x = case_at(j, {index, partner});
      const std::uint32_t by_row = result_of(rule_by(own), x);
      differing += by_row != result_of(j.rule, x) ? 1u : 0u;
      if (partner != index / (results / tiles)) continue;
      EXPECT_EQ(got.own[index], by_row);
    }
  }
  EXPECT_GT(differing, 100u);
  EXPECT_EQ(got.differing, differing);
  EXPECT_EQ(got.first.size(), static_cast<std::size_t>(max_differences));
  for (const difference& d : got.first) {
    const case_codes x = case_at(j, d.at);
    EXPECT_EQ(d.got, result_of(rule_by(own), x));
    EXPECT_EQ(d.expected, result_of(j.rule, x));
  }
}

TEST(TensorCoreDevice, ReportsWhatDiffers) {
  compare_with_wrong_rule(instruction::mma_f16_k16, tensor_unit::hopper_mma_sync,
                          tensor_unit::ampere_mma);
}
TEST(TensorCoreDevice, ReportsWhatDiffersOfWarpgroups) {
  compare_with_wrong_rule(instruction::wgmma_e4m3, tensor_unit::hopper_wgmma, tensor_unit::ada_mma);
}

INSTANTIATE_TEST_SUITE_P(Instructions, TensorCore,
                         ::testing::ValuesIn(tensor_core_instruction_names()),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace samebits
