// A program linked with -ffast-math: start-up code sets FTZ and DAZ although no file was compiled
// so.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include "environment/broken_process.hpp"

namespace samebits::support {
namespace {

constexpr unsigned standard_mxcsr = 0x1F80;

class LinkedWithFastMath : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(at_start_ & 0x8040u, 0x8040u) << "the link did not set them"; }
  void TearDown() override { _mm_setcsr(at_start_); }
  const unsigned at_start_ = _mm_getcsr();
};

TEST_F(LinkedWithFastMath, CompoundCallsAreRefusedAndSayWhy) {
  for (const std::string& why : {refusal([] { initialize("reference"); }),
                                 refusal([] { initialize(); }), tree_sum_refusal()}) {
    EXPECT_TRUE(contains(why, "FTZ is set, DAZ is set")) << why;
    EXPECT_TRUE(contains(why, "-ffast-math")) << why;
    EXPECT_TRUE(contains(why, "reference")) << why;
  }
  for (const std::string& backend : supported_backends()) {
    EXPECT_EQ(failed_checks(backend),
              (std::set<std::string>{"control_register", "flush_to_zero", "denormals_are_zero"}))
        << backend;
  }
}

TEST_F(LinkedWithFastMath, ConversionsHold) { expect_conversions_hold(); }

TEST_F(LinkedWithFastMath, RepairingTheRegisterHelps) {
  _mm_setcsr(standard_mxcsr);
  EXPECT_NO_THROW(initialize());
  expect_tree_sum_works();
  for (const std::string& backend : supported_backends()) {
    EXPECT_TRUE(failed_checks(backend).empty());
  }
  _mm_setcsr(at_start_);
  EXPECT_TRUE(contains(tree_sum_refusal(), "FTZ is set, DAZ is set"));
}

}  // namespace
}  // namespace samebits::support
