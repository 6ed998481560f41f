// What calls on device memory refuse, and the words: backends of other memory, what cuda-native
// lacks, arguments that are no device memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/device_copy.hpp"
#include "samebits/quantize_list.hpp"
#include "samebits/samebits.hpp"
#include "support/refusal.hpp"

namespace samebits::support {
namespace {

using support::refusal_of;

const executor native = on_stream(nullptr, "cuda-native");

matrix_view empty(format_id f) {
  return on_device(view_of_codes(f, static_cast<void*>(nullptr), 0, 4));
}

TEST(DeviceRefusals, NativeRefusesByNameWhatItLacks) {
  using enum format_id;
  const convert_options upward{.rounding = rounding::upward};
  EXPECT_EQ(refusal_of<unsupported>([&] { convert(empty(fp32), empty(e8m0), upward, native); }),
            "backend 'cuda-native' has no fp32 to e8m0 with upward, ieee, canonical");
  EXPECT_NO_THROW(convert(empty(fp32), empty(e8m0), upward));
  const matrix_view x = empty(fp32), y = empty(bf16);
  EXPECT_EQ(refusal_of<unsupported>([&] {
              compute(operation::add, {x, y}, x, {.overflow = overflow::saturate}, native);
            }),
            "backend 'cuda-native' has no add of fp32, bf16 into fp32 with nearest_even, saturate, "
            "canonical");
  EXPECT_EQ(
      refusal_of<unsupported>([&] { compute_with_flags(operation::sqrt, {x}, x, {}, {}, native); }),
      "backend 'cuda-native' has no sqrt of fp32 into fp32 with nearest_even, ieee, "
      "canonical, flags");
  EXPECT_NO_THROW(compute(operation::add, {x, y}, x));
}

TEST(DeviceRefusals, MemoryAndBackendMustAgree) {
  float x = 1.0f;
  e4m3 y{};
  std::uint32_t raised = 0;
  const matrix_view host = view_of(&x, 1, 1), device = on_device(host);
  const matrix_view code = view_of(&y, 1, 1);
  const executor reference = find_executor("reference");
  EXPECT_THROW(convert(host, code, {}, on_stream(nullptr, "cuda-emulated")), invalid_argument);
  EXPECT_THROW(convert(device, code), invalid_argument);
  EXPECT_THROW(convert(device, on_device(code), {}, reference), invalid_argument);
  EXPECT_THROW(compute(operation::sqrt, {host}, host, {}, on_stream(nullptr, "cuda-emulated")),
               invalid_argument);
  EXPECT_THROW(compute(operation::sqrt, {host}, device), invalid_argument);
  EXPECT_THROW(compute(operation::sqrt, {device}, device, {}, reference), invalid_argument);
  EXPECT_THROW(enqueue_compute_with_flags(operation::sqrt, {host}, host, &raised),
               invalid_argument);
  EXPECT_THROW(enqueue_compute_with_flags(operation::sqrt, {device}, device, nullptr),
               invalid_argument);
}

TEST(DeviceRefusals, FlagsOfNothing) {
  std::uint32_t raised = 0xFFFFFFFFu;
  const guarded_copy union_of(&raised, sizeof raised);
  const matrix_view nothing = empty(format_id::fp16);
  enqueue_compute_with_flags(operation::sqrt, {nothing}, nothing,
                             static_cast<std::uint32_t*>(union_of.data()));
  check_cuda(cudaDeviceSynchronize(), "the computation");
  union_of.copy_back();
  EXPECT_EQ(raised, 0u);
  EXPECT_EQ(compute_with_flags(operation::sqrt, {nothing}, nothing), flags::none);
}

TEST(DeviceRefusals, ListsOfOtherMemory) {
  std::vector<float> numbers(100);
  const matrix_view host = view_of(numbers);
  const guarded_copy memory(host);
  const tensor_list on_host(host), on_gpu(memory.placed(host));
  EXPECT_EQ(on_gpu.space(), memory_space::device);
  EXPECT_THROW(inspect(on_gpu, {}, {"reference"}), invalid_argument);
  EXPECT_THROW(inspect(on_host, {}, native), invalid_argument);
  EXPECT_THROW(accumulate(on_gpu, on_host, {}, native), invalid_argument);
  quantize_statistics counted;
  const quantize_item item{
      .in = memory.placed(host),
      .outputs = {.codes = on_device(view_of_codes(format_id::e4m3, memory.data(), 1, 100)),
                  .statistics = &counted}};
  EXPECT_NE(
      refusal_of([&] { quantize_list({item}, quantize_options{}); }).find("outputs.statistics"),
      std::string::npos);
}

TEST(DeviceRefusals, ArgumentsOfReductionsAreNamed) {
  std::vector<float> numbers(100);
  double on_host = 0;
  std::byte some[16] = {};
  const matrix_view host = view_of(numbers);
  const guarded_copy memory(host), out(&on_host, sizeof on_host), few(some, sizeof some);
  const matrix_view device = memory.placed(host);
  auto* const result = static_cast<double*>(out.data());
  auto* const unaligned = reinterpret_cast<double*>(static_cast<std::byte*>(out.data()) + 4);
  const std::span four(static_cast<std::byte*>(few.data()), 4);
  const auto expect_begins = [](const std::string& words, const std::string& begin) {
    EXPECT_EQ(words.substr(0, begin.size()), begin);
  };
  expect_begins(refusal_of([&] { enqueue_sum(host, result); }), "in: must lie in device memory");
  expect_begins(refusal_of([&] { enqueue_dot(host, host, result); }),
                "x: must lie in device memory");
  expect_begins(refusal_of([&] { (void)reduction_workspace(host); }),
                "in: must lie in device memory");
  expect_begins(refusal_of([&] { enqueue_sum(device, nullptr); }), "result: ");
  expect_begins(refusal_of([&] { enqueue_sum(device, unaligned); }), "result: ");
  expect_begins(refusal_of([&] { enqueue_sum(device, result, four); }),
                "workspace: needs 8 bytes, got 4");
  expect_begins(refusal_of([&] { sum(device, {"reference"}); }),
                "backend 'reference' works on host");
  expect_begins(refusal_of([&] { sum(host, native); }), "backend 'cuda-native' works on device");
}

}  // namespace
}  // namespace samebits::support
