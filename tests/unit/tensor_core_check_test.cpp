// check_tensor_cores() on a GPU that is simulated on the host. cli.verify checks recorded results.
#include "tensor_core_probe/check.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "tensor_cores/simulated_tensor_cores.hpp"

namespace samebits {
namespace {

using backends::tensor_cores::accumulate_rule;
using backends::tensor_cores::job;
using backends::tensor_cores::outcome;

/// The GPU that is simulated.
struct simulated_gpu {
  int capability = 90;
  std::string reason;  ///< why it cannot be asked
  bool slips = false;  ///< one wrong result in every job, off the diagonals
  /// What its instructions are, given their rows.
  accumulate_rule (*truth)(accumulate_rule row) = [](accumulate_rule row) { return row; };
};
simulated_gpu gpu;

outcome run_simulated(const job& j) {
  outcome out = support::simulated_outcome(j, gpu.truth(j.rule));
  if (gpu.slips) {
    ++out.differing;
    const std::uint32_t right = out.own[1];
    out.first.push_back({{1, 0}, right ^ 2, right});
  }
  return out;
}

constexpr backends::tensor_cores::device device = {[] { return gpu.reason; },
                                                   [] { return std::string("a simulated GPU"); },
                                                   [] { return gpu.capability; }, run_simulated};

class TensorCoreCheck : public ::testing::Test {
 protected:
  void TearDown() override { gpu = {}; }
};

TEST_F(TensorCoreCheck, AsksEveryInstructionOfHopper) {
  std::vector<std::string> heard;
  const auto findings = check_tensor_cores(
      {.cases = 1, .on_result = [&](const auto& f) { heard.push_back(f.instruction); }});
  ASSERT_EQ(findings.size(), tensor_core_instruction_names().size());
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const tensor_core_finding& f = findings[i];
    const bool wgmma = f.instruction.starts_with("wgmma");
    EXPECT_EQ(f.instruction, tensor_core_instruction_names()[i]);
    EXPECT_EQ(f.instruction, heard[i]);
    EXPECT_EQ(f.unit, wgmma ? tensor_unit::hopper_wgmma : tensor_unit::hopper_mma_sync);
    EXPECT_EQ(f.compared, 20u * 8 * (wgmma ? 64 : 16));
    EXPECT_EQ(f.differed, 0u) << f.first_difference;
    EXPECT_TRUE(f.confirmed);
    EXPECT_EQ(f.known, evidence::hardware);
    EXPECT_FALSE(f.fit);
  }
}

TEST_F(TensorCoreCheck, CountsACaseAs128Results) {
  for (const char* name : {"mma_bf16_k8", "wgmma_tf32"}) {
    const auto f = check_tensor_cores({.instruction = name, .cases = 1024, .seed = 5}).at(0);
    EXPECT_EQ(f.compared, 20u * 1024 * 128);
    EXPECT_EQ(f.differed, 0u);
  }
}

TEST_F(TensorCoreCheck, TakesTheUnitOfTheGpu) {
  const struct {
    int capability;
    const char* instruction;
    tensor_unit unit;
    bool confirmed;
  } expected[] = {
      {75, "mma_f16_k8", tensor_unit::turing_mma, false},  // literature alone
      {80, "mma_bf16_k16", tensor_unit::ampere_mma, true},
      {86, "mma_tf32_k8", tensor_unit::ampere_mma, true},
      {80, "mma_f16_f16_k16", tensor_unit::ampere_mma, false},
      {89, "mma_e4m3_k32", tensor_unit::ada_mma, true},
      {89, "mma_f16_e4m3_k32", tensor_unit::ada_mma, false},
      {90, "mma_e4m3_k32", tensor_unit::hopper_mma_sync, true},
      {100, "mma_e5m2_k32", tensor_unit::blackwell_mma_sync, true},
      {103, "mma_e5m2_k32", tensor_unit::blackwell_mma_sync, false},  // another GPU
      {120, "mma_f16_k16", tensor_unit::blackwell_rtx_mma, false},
      {121, "mma_f16_k16", tensor_unit::blackwell_rtx_mma, false},
  };
  for (const auto& e : expected) {
    gpu.capability = e.capability;
    const auto f = check_tensor_cores({.instruction = e.instruction, .cases = 1}).at(0);
    EXPECT_EQ(f.unit, e.unit) << e.capability << " " << e.instruction;
    EXPECT_EQ(f.confirmed, e.confirmed) << e.capability << " " << e.instruction;
  }
  EXPECT_EQ(current_tensor_core_gpu().major, 12);
  EXPECT_EQ(current_tensor_core_gpu().minor, 1);
  gpu.capability = 75;
  EXPECT_EQ(check_tensor_cores({.cases = 1}).size(), 2u);
  EXPECT_THROW(check_tensor_cores({.instruction = "wgmma_f16"}), unsupported);
  EXPECT_THROW(check_tensor_cores({.unit = tensor_unit::volta_mma}), unsupported);
}

TEST_F(TensorCoreCheck, FindsWhatAnotherUnitIs) {
  gpu.truth = [](accumulate_rule row) {
    row.group = 8;
    row.alignment_bits = 24;
    row.floor = -132;
    return row;
  };
  const auto f = check_tensor_cores({.instruction = "mma_bf16_k16", .cases = 256, .keep = 3}).at(0);
  EXPECT_GT(f.differed, f.compared / 10);
  EXPECT_LT(f.fit->row_explains, f.fit->searched);
  EXPECT_EQ(f.kept.size(), 20u * 3);
  EXPECT_NE(f.first_difference.find(": hopper-mma-sync bf16 bf16 fp32 16 "), std::string::npos);
  ASSERT_EQ(f.fit->best.size(), 1u);
  EXPECT_EQ(f.fit->exact.size(), 1u) << f.fit->open;
  EXPECT_EQ(f.fit->best[0].explained, f.fit->searched);
  EXPECT_EQ(backends::tensor_cores::text_of(f.fit->best[0].rule),
            "group 8, kept 24 toward_zero, bits 23 toward_zero, floor -132, sum in the first step, "
            "consecutive");

  // What it kept says the same without the GPU.
  const auto again = check_tensor_core_results(f.kept).at(0);
  EXPECT_EQ(again.compared, f.kept.size());
  EXPECT_GT(again.differed, 0u);
  EXPECT_EQ(again.instruction, "mma_bf16_k16");
  EXPECT_GE(again.fit->exact.size(), 1u);
}

TEST_F(TensorCoreCheck, MissesNoSingleDifference) {
  gpu.truth = [](accumulate_rule row) {
    --row.floor;  // seen by few results of one or two families
    return row;
  };
  const auto f = check_tensor_cores({.instruction = "mma_tf32_k4", .cases = 256}).at(0);
  EXPECT_GT(f.differed, 0u);
  EXPECT_LT(f.differed, f.compared / 50);
  EXPECT_EQ(f.fit->exact.size(), 1u);
  EXPECT_EQ(f.fit->best.at(0).rule.floor, -134);
}

TEST_F(TensorCoreCheck, SearchesWithTheVeryDifferences) {
  gpu.slips = true;
  const auto f = check_tensor_cores({.instruction = "mma_f16_f16_k16", .cases = 16}).at(0);
  EXPECT_EQ(f.differed, 20u);
  EXPECT_EQ(f.fit->searched, 20u * 8 + 20u);
  EXPECT_EQ(f.fit->row_explains, 20u * 8);
  EXPECT_TRUE(f.fit->exact.empty());
  ASSERT_FALSE(f.fit->best.empty());
  EXPECT_GE(f.fit->best[0].explained, f.fit->row_explains);
  EXPECT_EQ(f.fit->open, "");
}

TEST_F(TensorCoreCheck, RefusesWhatItCannotDo) {
  EXPECT_THROW(check_tensor_cores({.instruction = "mma_f32"}), invalid_argument);
  EXPECT_THROW(check_tensor_cores({.cases = 0}), invalid_argument);
  EXPECT_THROW(check_tensor_cores({.keep = 9}), invalid_argument);
  gpu.reason = "it sleeps";
  EXPECT_THROW(check_tensor_cores({.cases = 1}), unsupported);
  EXPECT_THROW(current_tensor_core_gpu(), unsupported);
}

TEST(TensorCoreResult, IsALineOfText) {
  const std::string line = "hopper-wgmma tf32 tf32 fp32 8 7F800000 1 3F800000 0 " +
                           std::string("0 0 0 0 0 0 0 0 0 0 0 0 40000000 80000000");
  const auto r = parse_tensor_core_result(line);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->unit, tensor_unit::hopper_wgmma);
  EXPECT_EQ(r->operands.products, 8);
  EXPECT_EQ(r->x.c, 0x7F800000u);
  EXPECT_EQ(r->d, 1u);
  EXPECT_EQ(r->x.a[7], 0x40000000u);
  EXPECT_EQ(r->x.b[7], 0x80000000u);
  EXPECT_EQ(text_of(*r), line);
  EXPECT_EQ(parse_tensor_core_result("hopper-wgmma fp16 fp16 fp32 16 0 0 1 2")->x.b[0], 2u);
  EXPECT_EQ(parse_tensor_core_result("hopper-wgmma fp16 fp16 fp32 16 0 0 1 2 ")->x.b[0], 2u);
  EXPECT_EQ(parse_tensor_core_result("hopper-wgmma fp16 fp16 fp32 16 0 3")->d, 3u);
  for (const char* wrong :
       {"", "hopper-wgmma", "hopper fp16 fp16 fp32 16 0 0", "hopper-wgmma fp16 bf16 fp32 16 0 0",
        "hopper-wgmma fp16 fp16 fp32 8 0 0", "hopper-wgmma bf16 bf16 fp16 16 0 0",
        "hopper-wgmma fp16 fp16 bf16 16 0 0", "hopper-wgmma fp16 fp16 fp32 16 0 0 1",
        "hopper-wgmma fp16 fp16 fp32 16 0 0 1 x", "hopper-wgmma fp16 fp16 fp32 16 0 0 1 2 -",
        "hopper-wgmma fp16 fp16 fp32 16 0 0 1 2 123456789", "hopper-wgmma fp16 fp16 fp32 16 0",
        "hopper-wgmma tf32 tf32 fp32 8 0 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"}) {
    EXPECT_FALSE(parse_tensor_core_result(wrong)) << wrong;
  }
  tensor_core_result bad = *r;
  for (const int products : {4, 0}) {  // wgmma has no narrow instruction: 0 products are none
    bad.operands.products = products;
    EXPECT_THROW(check_tensor_core_results(std::vector{bad}), invalid_argument);
  }
}

}  // namespace
}  // namespace samebits

extern "C" const samebits::backends::tensor_cores::device* samebits_tensor_core_device();
const samebits::backends::tensor_cores::device* samebits_tensor_core_device() {
  return &samebits::device;
}
