// The self-test on a GPU: it passes, is asked for before a graph capture, and leaves a capture
// whole.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

#include "backends/self_test/self_test.hpp"
#include "device/device_copy.hpp"
#include "samebits/error.hpp"
#include "samebits/self_test.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

using support::check_cuda;

class stream_of_test {
 public:
  stream_of_test() { check_cuda(cudaStreamCreate(&stream_), "cudaStreamCreate"); }
  ~stream_of_test() { cudaStreamDestroy(stream_); }
  stream_of_test(const stream_of_test&) = delete;
  stream_of_test& operator=(const stream_of_test&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }

  void begin_capture() const {
    check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), "begin capture");
  }
  /// Ends the capture, which must not have been invalidated.
  void end_capture() const {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream_, &graph);
    EXPECT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }

 private:
  cudaStream_t stream_ = nullptr;
};

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
  const stream_of_test stream;
  ask(stream.get());
  EXPECT_TRUE(tested());
  SetUp();
  ask(nullptr);
  EXPECT_TRUE(tested());
}

TEST_P(DeviceSelfTest, ACaptureNeedsItBefore) {
  const stream_of_test stream;
  stream.begin_capture();
  EXPECT_NE(refusal(stream.get()).find("initialize()"), std::string::npos);
  EXPECT_FALSE(tested());
  stream.end_capture();

  initialize(GetParam());
  EXPECT_TRUE(tested());
  stream.begin_capture();
  EXPECT_NO_THROW(ask(stream.get()));
  stream.end_capture();
}

TEST_P(DeviceSelfTest, TheLegacyStreamCannotBeAskedWhileAnotherIsCaptured) {
  const stream_of_test stream;
  stream.begin_capture();
  EXPECT_NE(refusal(nullptr).find("initialize()"), std::string::npos);
  stream.end_capture();
}

TEST_P(DeviceSelfTest, InitialisingBesideACaptureLeavesItWhole) {
  const stream_of_test stream;
  stream.begin_capture();
  EXPECT_NO_THROW(initialize(GetParam()));
  EXPECT_NO_THROW(ask(stream.get()));
  stream.end_capture();
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceSelfTest,
                         ::testing::Values("cuda-emulated", "cuda-native"));

}  // namespace
}  // namespace samebits
