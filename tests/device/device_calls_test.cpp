// What calls on device memory do about devices, host memory, captures and older errors: the engine's
// cases of each operation, and the calls that wait for their results.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "device/device_test.hpp"
#include "samebits/device_loss_scaler.hpp"
#include "samebits/samebits.hpp"
#include "support/refusal.hpp"

namespace samebits::support {
namespace {

constexpr const char* of_host_memory = "must be device memory, got an address of host memory";

/// Makes a device current until the end of the scope.
class current_device {
 public:
  explicit current_device(int device) : before_(number()) {
    check_cuda(cudaSetDevice(device), "cudaSetDevice");
  }
  ~current_device() { cudaSetDevice(before_); }
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;

  static int number() {
    int device = 0;
    check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    return device;
  }

 private:
  int before_;
};

/// Operations whose calls need nothing but the memory of a case, and check all of it.
std::vector<array_operation> operations() {
  constexpr const char* backend = "cuda-emulated";
  std::vector<array_operation> all = {
      convert_operation(backend), compute_operation(backend),     reduction_operation(),
      quantize_operation(),       dequantize_operation(),         codebook_operation(),
      quantize_list_operation(),  evaluate_operation(),           row_operation(),
      fused_operation(),          gated_quantize_operation(),     norm_quantize_operation(),
      norm_operation(),           training_operation_on_device(), store_operation()};
  for (int i = 0; i < list_call_count; ++i) {
    all.push_back(list_operation(static_cast<list_call>(i)));
  }
  return all;
}

/// Two arrays of numbers on a device.
class numbers {
 public:
  explicit numbers(int device) : device_(device) {
    const current_device on(device);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = (static_cast<float>(i % 97) - 40.0f) * 0.37f;
    }
    for (device_bytes* array : {&x_, &y_}) *array = device_bytes(values.data(), 4 * count);
  }
  [[nodiscard]] matrix_view x() const { return view(x_); }
  [[nodiscard]] matrix_view y() const { return view(y_); }
  /// Both arrays, once the device has done what was enqueued.
  [[nodiscard]] std::vector<float> contents() const {
    const current_device on(device_);
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<float> all = contents_of<float>(x_);
    for (const float value : contents_of<float>(y_)) all.push_back(value);
    return all;
  }
  static constexpr std::size_t count = 1024;

 private:
  static matrix_view view(const device_bytes& of) {
    return on_device(view_of(of.as<float>(), 4, count / 4));
  }

  int device_;
  device_bytes x_, y_;
};

struct device_call {
  const char* name;
  std::function<void(const executor&)> run;
};

/// Every call that waits for its result.
std::vector<device_call> awaited_calls(const numbers& n) {
  using w = const executor&;
  const matrix_view x = n.x(), y = n.y();
  const tensor_list list({{x, "tensor"}});
  const auto scaler = std::make_shared<device_loss_scaler>(list);
  return {{"amax", [=](w where) { (void)amax(x, where); }},
          {"counts", [=](w where) { (void)counts(x, where); }},
          {"dot", [=](w where) { (void)dot(x, y, {}, where); }},
          {"compute_with_flags",
           [=](w where) {
             (void)compute_with_flags(operation::mul, {x, y}, y, {}, {}, where);
           }},
          {"inspect", [=](w where) { (void)inspect(list, {}, where); }},
          {"unscale", [=](w where) { (void)unscale(list, 0.5f, where); }},
          {"clip", [=](w where) { (void)clip(list, 1.0, where); }},
          {"device_loss_scaler::state", [=](w where) { (void)scaler->on_host(where.stream); }}};
}

/// The calls on two arrays, as refusals name their memory.
std::vector<device_call> calls_on(const matrix_view& x, const matrix_view& y) {
  using w = const executor&;
  return {{"convert", [=](w where) { convert(x, y, {}, where); }},
          {"compute",
           [=](w where) {
             compute(operation::add, {x, y}, y, {}, where);
           }},
          {"compute_with_flags",
           [=](w where) {
             (void)compute_with_flags(operation::mul, {x, y}, y, {}, {}, where);
           }},
          {"dot", [=](w where) { (void)dot(x, y, {}, where); }},
          {"accumulate",
           [=](w where) {
             accumulate(tensor_list({{y, "y"}}), tensor_list({{x, "x"}}), {}, where);
           }},
          {"optimizer_step", [=](w where) {
             const optimizer_tensor tensor = {.weights = {x.data, stored_format::fp32},
                                              .gradient = {y.data, stored_format::fp32},
                                              .count = static_cast<std::int64_t>(numbers::count)};
             const optimizer_settings sgd = {.rule = update_rule::sgd};
             optimizer_step(optimizer_list({tensor}, memory_space::device), {&sgd, 1}, {}, where);
           }}};
}

/// A target that makes the calls of cases in another way.
class other_calls final : public device_target {
 public:
  using way = std::function<returned_values(const any_case& c, const call_site& site)>;
  explicit other_calls(way make) : device_target("cuda-emulated"), make_(std::move(make)) {}
  [[nodiscard]] returned_values run(const any_case& c, const call_site& site) const override {
    return make_(c, site);
  }

 private:
  way make_;
};

/// One buffer of each case lies in host memory: the call refuses it, or does not use it. After a refusal
/// the same call has the right results.
TEST(DeviceCalls, HostMemoryIsRefusedByNameAndNothingIsLost) {
  std::vector<std::byte> host(1 << 24);
  const auto border = 256 - reinterpret_cast<std::uintptr_t>(host.data()) % 256;
  for (const array_operation& op : operations()) {
    std::size_t number = 0, refused = 0;
    other_calls target([&](const any_case& c, const call_site& site) {
      if (site.views.empty()) return c.call(site);
      call_site wrong = site;
      matrix_view& v = wrong.views[number++ % wrong.views.size()];
      v.data = host.data() + border + reinterpret_cast<std::uintptr_t>(v.data) % 256;
      try {
        return c.call(wrong);
      } catch (const invalid_argument& e) {
        if (!contains(e.what(), of_host_memory)) throw;
      }
      ++refused;
      return c.call(site);
    });
    expect_as_reference(op, target, 200);
    EXPECT_GT(refused, 10u) << op.name;
  }
  const numbers there(0);
  const std::vector<float> before = there.contents();
  const matrix_view here = on_device(view_of(reinterpret_cast<float*>(host.data()), 4, 256));
  for (const auto& [x, y] : {std::pair{here, there.y()}, {there.x(), here}}) {
    for (const device_call& call : calls_on(x, y)) {
      const std::string text = refusal_of([&] { call.run({}); });
      EXPECT_TRUE(contains(text, of_host_memory)) << call.name << ": " << text;
    }
  }
  EXPECT_EQ(there.contents(), before);
}

TEST(DeviceCalls, PageLockedAndManagedMemoryWork) {
  const numbers there(0);
  convert(there.x(), there.y());
  const std::vector<float> expected = there.contents();
  void* locked = nullptr;
  void* managed = nullptr;
  check_cuda(cudaHostAlloc(&locked, 4 * numbers::count, cudaHostAllocMapped), "cudaHostAlloc");
  check_cuda(cudaMallocManaged(&managed, 4 * numbers::count), "cudaMallocManaged");
  for (void* const memory_of_both : {locked, managed}) {
    const auto copy = [](void* to, const void* from) {
      check_cuda(cudaMemcpy(to, from, 4 * numbers::count, cudaMemcpyDefault), "copy");
    };
    copy(memory_of_both, there.x().data);
    check_cuda(cudaMemset(there.y().data, 0, 4 * numbers::count), "cudaMemset");
    matrix_view in = there.x();
    in.data = memory_of_both;
    convert(in, there.y());
    EXPECT_EQ(there.contents(), expected);
  }
  check_cuda(cudaFreeHost(locked), "cudaFreeHost");
  check_cuda(cudaFree(managed), "cudaFree");
}

TEST(DeviceCalls, AWorkspaceOfHostMemoryIsRefused) {
  const numbers there(0);
  std::vector<std::byte> host(reduction_workspace(there.x()) + 16);
  const auto shift = reinterpret_cast<std::uintptr_t>(host.data()) % 16;
  const std::span<std::byte> aligned = std::span(host).subspan(shift == 0 ? 0 : 16 - shift);
  expect_refusal("workspace: must be device memory",
                 [&] { enqueue_sum(there.x(), static_cast<double*>(there.y().data), aligned); });
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

/// Leaves an error that the caller has not looked at, makes calls, and throws where it is gone.
void call_after_an_error(const std::function<void()>& calls) {
  if (cudaSetDevice(-1) != cudaErrorInvalidDevice) throw std::logic_error("device -1 is valid");
  calls();
  if (cudaGetLastError() != cudaErrorInvalidDevice) throw std::logic_error("the error is gone");
}

TEST(DeviceCalls, AnOlderErrorOfTheCallerIsNotReportedAndStays) {
  class after_errors final : public device_target {
   public:
    using device_target::device_target;
    void enqueue(const std::function<void()>& calls) const override { call_after_an_error(calls); }
  };
  for (const array_operation& op : operations()) {
    // A first call may set attributes of kernels, which clears errors.
    device_target first("cuda-emulated");
    expect_as_reference(op, first, 100);
    after_errors target("cuda-emulated");
    expect_as_reference(op, target, 100);
  }
  const numbers there(0);
  const own_stream stream;
  std::vector<device_call> calls = awaited_calls(there);
  for (const device_call& call : calls_on(there.x(), there.y())) calls.push_back(call);
  device_loss_scaler scaler(tensor_list({{there.x(), "tensor"}}));
  calls.push_back(
      {"device_loss_scaler::step", [&](const auto& where) { scaler.step(where.stream); }});
  for (const device_call& call : calls) {
    call.run(on_stream(stream.get()));
    EXPECT_NO_THROW(call_after_an_error([&] { call.run(on_stream(stream.get())); })) << call.name;
  }
}

/// Those that do not wait: CapturedProperty of device_property_test.
TEST(DeviceCalls, CallsThatWaitRefuseACaptureAndLeaveItWhole) {
  initialize();
  const numbers there(0);
  const own_stream stream;
  const std::vector<float> before = there.contents();
  for (const device_call& call : awaited_calls(there)) {
    begin_capture(stream.get());
    const std::string text = refusal_of([&] { call.run(on_stream(stream.get())); });
    EXPECT_TRUE(end_capture(stream.get())) << call.name;
    EXPECT_TRUE(contains(text, "is being captured")) << call.name << ": " << text;
  }
  EXPECT_EQ(there.contents(), before);
}

class TwoDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    if (count < 2) GTEST_SKIP() << "one GPU";
  }
  void TearDown() override { EXPECT_EQ(current_device::number(), 0); }
};

TEST_F(TwoDevices, CallsWorkOnTheDeviceOfTheirMemory) {
  /// Memory and a stream of device 1, which is current for them alone.
  class second_gpu final : public device_target {
   public:
    using device_target::device_target;
    void over(std::span<std::byte> memory, const std::function<void(std::byte*)>& work) override {
      const current_device on(1);
      device_target::over(memory, [&](std::byte* base) {
        const current_device as_before(0);
        work(base);
      });
    }
  };
  std::unique_ptr<second_gpu> target;
  {
    const current_device on(1);
    target = std::make_unique<second_gpu>("cuda-emulated");
  }
  for (const array_operation& op : operations()) expect_as_reference(op, *target, 100);
  const numbers first(0), second(1);
  const std::vector<device_call> expected = awaited_calls(first), got = awaited_calls(second);
  for (std::size_t i = 0; i < got.size(); ++i) {
    expected[i].run({});
    got[i].run({});
    EXPECT_EQ(second.contents(), first.contents()) << got[i].name;
    EXPECT_EQ(current_device::number(), 0) << got[i].name;
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
  const numbers first(0), second(1);
  const std::vector<float> before = first.contents();
  for (const auto& [x, y] : {std::pair{first.x(), second.y()}, {second.x(), first.y()}}) {
    for (const device_call& call : calls_on(x, y)) {
      const std::string text = refusal_of([&] { call.run({}); });
      EXPECT_TRUE(contains(text, "must lie on one device")) << call.name << ": " << text;
    }
  }
  EXPECT_EQ(first.contents(), before);
}

TEST_F(TwoDevices, StreamsOfAnotherDeviceAreRefused) {
  const numbers there(0);
  const std::vector<float> before = there.contents();
  const current_device on(1);
  const own_stream stream;
  std::vector<device_call> calls = calls_on(there.x(), there.y());
  for (device_call& call : awaited_calls(there)) calls.push_back(std::move(call));
  for (const device_call& call : calls) {
    const current_device as_before(0);
    const std::string text = refusal_of([&] { call.run(on_stream(stream.get())); });
    EXPECT_TRUE(contains(text, "is a stream of device 1")) << call.name << ": " << text;
  }
  EXPECT_EQ(there.contents(), before);
}

}  // namespace
}  // namespace samebits::support
