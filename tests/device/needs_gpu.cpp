// Linked into every GoogleTest program of this folder: without a GPU the program fails before its
// first test, so that no test can pass by comparing nothing.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace {

class needs_gpu : public ::testing::Environment {
 public:
  void SetUp() override {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    ASSERT_EQ(error, cudaSuccess) << "no usable GPU: " << cudaGetErrorString(error);
    ASSERT_GT(count, 0) << "no usable GPU";
  }
};

const auto* const environment = ::testing::AddGlobalTestEnvironment(new needs_gpu);

}  // namespace
