// Tests of check_conversion with launchers: arguments of the kernel, detection of its writes, and
// errors.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "samebits/scalar.hpp"
#include "samebits/testkit/cuda.hpp"

namespace samebits::testkit {
namespace {

const conversion_under_test conversion{.from = format_id::fp32, .to = format_id::e4m3};
constexpr check_effort few{.batches = 3, .batch_size = 300};

void convert_elements(const float* in, std::uint8_t* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = encode<format_id::e4m3>(in[i]);
}

/// Returns whether a pointer lies in a block of cudaMalloc, near its start.
bool is_on_device(const void* pointer) {
  for (void* block : the_device.blocks) {
    const auto distance = static_cast<const char*>(pointer) - static_cast<const char*>(block);
    if (distance >= 0 && distance <= 256 + 16 * 4) return true;
  }
  return false;
}

TEST(CudaAdapter, TheKernelWorksOnDeviceMemoryAndPasses) {
  int launches = 0;
  bool on_device = true;
  bool on_stream = true;
  the_device.copies = 0;
  const auto launch = [&](const float* in, std::uint8_t* out, std::int64_t n, cudaStream_t stream) {
    ++launches;
    on_device &= is_on_device(in) && is_on_device(out);
    on_stream &= stream != nullptr;
    convert_elements(in, out, n);
  };
  const check_result result = check_conversion(conversion, launch, few);
  EXPECT_TRUE(result) << result.message();
  EXPECT_TRUE(on_device);
  EXPECT_TRUE(on_stream);
  EXPECT_GT(result.compared(), 100'000u);
  EXPECT_EQ(the_device.copies, 4 * launches) << "both arrays there and back";
  EXPECT_TRUE(the_device.blocks.empty());
  EXPECT_EQ(the_device.streams, 0);
}

TEST(CudaAdapter, WritesAroundTheArraysAreSeen) {
  const auto launch = [](const float* in, std::uint8_t* out, std::int64_t n, cudaStream_t) {
    convert_elements(in, out, n);
    out[n] = 0;
  };
  const check_result result = check_conversion(conversion, launch, few);
  EXPECT_NE(result.message().find("wrote outside its output"), std::string::npos);
  const auto input = [](const float* in, std::uint8_t* out, std::int64_t n, cudaStream_t) {
    convert_elements(in, out, n);
    if (n > 5) const_cast<float&>(in[5]) = 0;
  };
  EXPECT_NE(check_conversion(conversion, input, few).message().find("wrote to its input"),
            std::string::npos);
}

TEST(CudaAdapter, AWrongElementIsShrunkBySmallerLaunches) {
  const auto launch = [](const float* in, std::uint8_t* out, std::int64_t n, cudaStream_t) {
    convert_elements(in, out, n);
    if (n > 32) out[32] ^= 1;
  };
  const check_result result = check_conversion(conversion, launch, few);
  ASSERT_TRUE(result.failure());
  EXPECT_EQ(result.failure()->size, 33);
}

TEST(CudaAdapter, AFailedLaunchIsAFailure) {
  const auto launch = [](const float*, std::uint8_t*, std::int64_t, cudaStream_t) {
    the_device.launch_error = cudaErrorLaunchFailure;
  };
  const check_result result = check_conversion(conversion, launch, few);
  EXPECT_NE(result.message().find("threw: the launch: cudaErrorLaunchFailure"), std::string::npos)
      << result.message();
}

TEST(CudaAdapter, WithoutADeviceItThrows) {
  the_device.stream_error = cudaErrorLaunchFailure;
  const auto launch = [](const float*, std::uint8_t*, std::int64_t, cudaStream_t) {};
  EXPECT_THROW(check_conversion(conversion, launch, few), cuda_error);
  the_device.stream_error = cudaSuccess;
}

}  // namespace
}  // namespace samebits::testkit
