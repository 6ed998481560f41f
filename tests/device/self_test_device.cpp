// The self-test on a GPU: it passes, is asked for before a graph capture, and leaves a capture
// whole.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

#include "backends/self_test/self_test.hpp"
#include "device/captured_graph.hpp"
#include "samebits/error.hpp"
#include "samebits/self_test.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

using support::begin_capture;
using support::end_capture;
using support::own_stream;

class DeviceSelfTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { backend_.self_test->passed = 0; }  // as in a fresh process
  bool tested() const { return backend_.self_test->passed != 0; }
  void ask(cudaStream_t stream) const { backends::require_tested(backend_, stream); }

  std::string refusal(cudaStream_t stream) const {
    return support::refusal_of<environment_error>([&] { ask(stream); });
  }

  const backends::backend& backend_ = backends::by_name(GetParam());
};

TEST_P(DeviceSelfTest, EveryCheckPasses) {
  const auto results = self_test(GetParam());
  EXPECT_EQ(results.size(), static_cast<std::size_t>(backends::probe_count) + 2);  // and codes
  for (const self_test_result& r : results) {
    EXPECT_TRUE(r.passed) << r.check << ": " << r.detail;
  }
  EXPECT_FALSE(tested()) << "a report is not an initialisation";
}

TEST_P(DeviceSelfTest, TheFirstCallOutsideACaptureTests) {
  const own_stream stream(cudaStreamDefault);
  ask(stream.get());
  EXPECT_TRUE(tested());
  SetUp();
  ask(nullptr);
  EXPECT_TRUE(tested());
}

TEST_P(DeviceSelfTest, ACaptureNeedsItBefore) {
  const own_stream stream(cudaStreamDefault);
  begin_capture(stream.get());
  EXPECT_NE(refusal(stream.get()).find("initialize()"), std::string::npos);
  EXPECT_FALSE(tested());
  EXPECT_TRUE(end_capture(stream.get()));

  initialize(GetParam());
  EXPECT_TRUE(tested());
  begin_capture(stream.get());
  EXPECT_NO_THROW(ask(stream.get()));
  EXPECT_TRUE(end_capture(stream.get()));
}

TEST_P(DeviceSelfTest, TheLegacyStreamCannotBeAskedWhileAnotherIsCaptured) {
  const own_stream stream(cudaStreamDefault);
  begin_capture(stream.get());
  EXPECT_NE(refusal(nullptr).find("initialize()"), std::string::npos);
  EXPECT_TRUE(end_capture(stream.get()));
}

TEST_P(DeviceSelfTest, InitialisingBesideACaptureLeavesItWhole) {
  const own_stream stream(cudaStreamDefault);
  begin_capture(stream.get());
  EXPECT_NO_THROW(initialize(GetParam()));
  EXPECT_NO_THROW(ask(stream.get()));
  EXPECT_TRUE(end_capture(stream.get()));
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceSelfTest,
                         ::testing::Values("cuda-emulated", "cuda-native"));

}  // namespace
}  // namespace samebits
