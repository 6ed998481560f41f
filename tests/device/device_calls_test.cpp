// What every call on device memory does about devices, host memory, captures and older errors.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/captured_graph.hpp"
#include "device/device_calls.hpp"
#include "samebits/self_test.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

using support::contains;
using support::refusal_of;

using support::call_memory;
using support::check_cuda;
using support::current_device;
using support::device_call;
using support::device_calls;
using support::own_stream;

std::unique_ptr<own_stream> stream_on(int device) {
  const current_device on(device);
  return std::make_unique<own_stream>();
}

/// What a call leaves on a device.
std::vector<std::byte> results_on(int device, const device_call& call) {
  const call_memory memory(device);
  const auto stream = stream_on(device);
  call.run(memory, on_stream(stream->get()));
  return memory.contents();
}

TEST(DeviceCalls, HostMemoryIsRefusedByNameAndNothingIsLost) {
  std::vector<float> host(call_memory::elements);
  for (const device_call& call : device_calls()) {
    for (void* call_memory::*const part : call.given) {
      call_memory memory(0);
      const std::vector<std::byte> before = memory.contents();
      memory.*part = host.data();
      const std::string text = refusal_of([&] { call.run(memory); });
      EXPECT_TRUE(contains(text, "must be device memory, got an address of host memory"))
          << call.name << ": " << text;
      EXPECT_EQ(memory.contents(), before) << call.name;
    }
  }
}

TEST(DeviceCalls, PageLockedAndManagedMemoryWork) {
  const std::vector<device_call> calls = device_calls();
  const device_call& convert = calls.front();
  const std::vector<std::byte> expected = results_on(0, convert);
  call_memory memory(0);
  std::vector<std::byte> values(call_memory::part_bytes);
  check_cuda(cudaMemcpy(values.data(), memory.x, values.size(), cudaMemcpyDeviceToHost), "copy");
  void* locked = nullptr;
  void* managed = nullptr;
  check_cuda(cudaHostAlloc(&locked, values.size(), cudaHostAllocMapped), "cudaHostAlloc");
  check_cuda(cudaMallocManaged(&managed, values.size()), "cudaMallocManaged");
  for (void* const memory_of_both : {locked, managed}) {
    check_cuda(cudaMemcpy(memory_of_both, values.data(), values.size(), cudaMemcpyDefault), "copy");
    memory.x = memory_of_both;
    convert.run(memory);
    EXPECT_EQ(memory.contents(), expected);
  }
  check_cuda(cudaFreeHost(locked), "cudaFreeHost");
  check_cuda(cudaFree(managed), "cudaFree");
}

TEST(DeviceCalls, AWorkspaceOfHostMemoryIsRefused) {
  const call_memory memory(0);
  std::vector<std::byte> host(reduction_workspace(memory.values()) + 16);
  const auto shift = reinterpret_cast<std::uintptr_t>(host.data()) % 16;
  const std::span<std::byte> aligned = std::span(host).subspan(shift == 0 ? 0 : 16 - shift);
  const std::string text = refusal_of(
      [&] { enqueue_sum(memory.values(), static_cast<double*>(memory.result), aligned); });
  EXPECT_TRUE(contains(text, "workspace: must be device memory")) << text;
}

// The address of a view without elements may be that behind an allocation.
TEST(DeviceCalls, ViewsWithoutElementsMayPointAnywhere) {
  std::vector<float> host(4);
  const matrix_view in = on_device(view_of_codes(format_id::fp32, host.data(), 4, 0));
  const matrix_view out = on_device(view_of_codes(format_id::bf16, host.data(), 4, 0));
  EXPECT_NO_THROW(convert(in, out));
  EXPECT_NO_THROW(compute(operation::add, {in, in}, in));
  EXPECT_EQ(amax(in), 0.0f);
  EXPECT_NO_THROW((void)inspect(tensor_list({{in, "empty"}})));
}

TEST(DeviceCalls, AnOlderErrorOfTheCallerIsNotReportedAndStays) {
  for (const device_call& call : device_calls()) {
    const call_memory memory(0);
    const auto stream = stream_on(0);
    const auto run = call.prepare(memory);
    initialize();
    run(on_stream(
        stream->get()));  // a first call may set attributes of kernels, which clears errors
    ASSERT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);  // that the caller does not look at
    EXPECT_NO_THROW(run(on_stream(stream->get()))) << call.name;
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice) << call.name;
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
}

TEST(DeviceCalls, CallsThatWaitRefuseACaptureAndLeaveItWhole) {
  initialize();
  int refused = 0;
  for (const device_call& call : device_calls()) {
    if (!call.awaited) continue;
    const call_memory memory(0);
    const auto stream = stream_on(0);
    const auto run = call.prepare(memory);
    const std::vector<std::byte> before = memory.contents();
    support::begin_capture(stream->get());
    const std::string text = refusal_of([&] { run(on_stream(stream->get())); });
    EXPECT_TRUE(support::end_capture(stream->get())) << call.name;
    EXPECT_TRUE(contains(text, "is being captured")) << call.name << ": " << text;
    EXPECT_EQ(memory.contents(), before) << call.name;
    ++refused;
  }
  EXPECT_GE(refused, 8);
}

TEST(DeviceCalls, EnqueuedCallsAreCapturedAndReplayed) {
  initialize();
  for (const device_call& call : device_calls()) {
    if (call.awaited) continue;
    const std::vector<std::byte> expected = results_on(0, call);
    const call_memory memory(0);
    const auto stream = stream_on(0);
    const auto run = call.prepare(memory);
    SCOPED_TRACE(call.name);
    const support::captured_graph graph(stream->get(), [&] { run(on_stream(stream->get())); });
    graph.replay();
    EXPECT_EQ(memory.contents(), expected);
  }
}

class TwoDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    if (count < 2) GTEST_SKIP() << "one GPU";
  }
  static int current() {
    int device = 0;
    check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    return device;
  }
};

TEST_F(TwoDevices, CallsWorkOnTheDeviceOfTheirMemory) {
  for (const device_call& call : device_calls()) {
    const std::vector<std::byte> expected = results_on(0, call);
    ASSERT_EQ(current(), 0);
    EXPECT_EQ(results_on(1, call), expected) << call.name;
    EXPECT_EQ(current(), 0) << call.name;
    const call_memory memory(1);  // on the default stream
    call.run(memory);
    EXPECT_EQ(memory.contents(), expected) << call.name;
    EXPECT_EQ(current(), 0) << call.name;
  }
}

// Managed memory lies on no one device, but the tables of a list do.
TEST_F(TwoDevices, ListsOfManagedMemoryWorkOnTheDeviceOfTheirTables) {
  constexpr std::int64_t count = 5000;
  void* managed = nullptr;
  check_cuda(cudaMallocManaged(&managed, count * sizeof(float)), "cudaMallocManaged");
  auto* const values = static_cast<float*>(managed);
  std::fill_n(values, count, 2.0f);
  const tensor_list list(
      {{on_device(view_of_codes(format_id::fp32, managed, 1, count)), "managed"}});
  {
    const current_device on(1);
    EXPECT_EQ(unscale(list, 0.5f).nonfinite, 0u);  // waits
  }
  EXPECT_TRUE(std::all_of(values, values + count, [](float x) { return x == 1.0f; }));
  check_cuda(cudaFree(managed), "cudaFree");
}

TEST_F(TwoDevices, MixturesAreRefusedByName) {
  const call_memory other(1);
  for (const device_call& call : device_calls()) {
    if (call.given.size() < 2) continue;
    for (void* call_memory::*const part : call.given) {
      call_memory memory(0);
      const std::vector<std::byte> before = memory.contents();
      memory.*part = other.*part;
      const std::string text = refusal_of([&] { call.run(memory); });
      EXPECT_TRUE(contains(text, "must lie on one device")) << call.name << ": " << text;
      EXPECT_EQ(memory.contents(), before) << call.name;
      EXPECT_EQ(current(), 0) << call.name;
    }
  }
}

TEST_F(TwoDevices, StreamsOfAnotherDeviceAreRefused) {
  const auto stream = stream_on(1);
  for (const device_call& call : device_calls()) {
    const call_memory memory(0);
    const std::vector<std::byte> before = memory.contents();
    const auto run = call.prepare(memory);
    const std::string text = refusal_of([&] { run(on_stream(stream->get())); });
    EXPECT_TRUE(contains(text, "is a stream of device 1")) << call.name << ": " << text;
    EXPECT_EQ(memory.contents(), before) << call.name;
    EXPECT_EQ(current(), 0) << call.name;
  }
}

}  // namespace
}  // namespace samebits
