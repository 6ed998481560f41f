// The reference compiled with -ffp-contract=fast -mfma: no macro tells, the self-test does.
#include <gtest/gtest.h>

#include "environment/broken_process.hpp"

namespace samebits::support {
namespace {

class ContractedBuild : public ::testing::Test {
 protected:
  void SetUp() override {
    if (__builtin_cpu_supports("fma") == 0) GTEST_SKIP() << "this processor has no FMA";
  }
};

TEST_F(ContractedBuild, CompoundCallsAreRefusedAndSayWhy) {
  EXPECT_EQ(failed_checks("reference"), std::set<std::string>{"contraction"});
  for (const std::string& why : {refusal([] { initialize("reference"); }),
                                 refusal([] { initialize(); }), tree_sum_refusal()}) {
    EXPECT_TRUE(contains(why, "contraction: ")) << why;
    EXPECT_TRUE(contains(why, "-ffp-contract=off")) << why;
  }
  tree_sum_refusal();  // the second time too
}

TEST_F(ContractedBuild, ConversionsHold) { expect_conversions_hold(); }

}  // namespace
}  // namespace samebits::support
