// The conformance suite of conversion over the backends that take device memory.
//
// A case's host memory, guards and gaps included, is copied to the device, converted there and
// copied back, so that the suite sees what was written and what was not.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/suites/convert_suite.hpp"
#include "samebits/error.hpp"
#include "samebits/self_test.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

/// A copy on the device of the bytes a view spans, at the same distance from 16-byte borders.
class device_copy {
 public:
  explicit device_copy(const const_matrix_view& v)
      : host_(const_cast<void*>(v.data)), bytes_(span_bytes(v)) {
    check(cudaMalloc(&base_, bytes_ + 16), "cudaMalloc");
    data_ = static_cast<std::byte*>(base_) + reinterpret_cast<std::uintptr_t>(v.data) % 16;
    check(cudaMemcpy(data_, host_, bytes_, cudaMemcpyHostToDevice), "copy to the device");
  }
  ~device_copy() { cudaFree(base_); }
  device_copy(const device_copy&) = delete;
  device_copy& operator=(const device_copy&) = delete;

  [[nodiscard]] void* data() const { return data_; }
  void copy_back() {
    check(cudaMemcpy(host_, data_, bytes_, cudaMemcpyDeviceToHost), "copy from the device");
  }

 private:
  static std::size_t span_bytes(const const_matrix_view& v) {
    if (v.rows == 0 || v.cols == 0) return 0;
    const std::int64_t last = (v.rows - 1) * v.row_stride + (v.cols - 1) * v.col_stride;
    return static_cast<std::size_t>((last + 1) * storage_bytes(v.format));
  }

  void* host_;
  std::size_t bytes_;
  void* base_ = nullptr;
  std::byte* data_ = nullptr;
};

std::atomic<std::uint64_t> compared_calls = 0;
std::atomic<std::uint64_t> compared_native_calls = 0;

void convert_on_device(const std::string& backend, const const_matrix_view& in,
                       const matrix_view& out, const convert_options& options) {
  const bool in_place = in.data == out.data;
  device_copy from(in);
  device_copy to(in_place ? in : static_cast<const_matrix_view>(out));
  const_matrix_view device_in = on_device(in);
  matrix_view device_out = on_device(out);
  device_in.data = in_place ? to.data() : from.data();
  device_out.data = to.data();
  convert(device_in, device_out, options, on_stream(nullptr, backend));
  check(cudaDeviceSynchronize(), "the conversion");
  to.copy_back();
  ++compared_calls;
  if (backend == "cuda-native") ++compared_native_calls;
}

std::vector<convert_target> device_targets() {
  std::vector<convert_target> targets;
  for (const backend_info& backend : compiled_backends()) {
    if (backend.space != memory_space::device) continue;
    const std::string name(backend.name);
    std::string identifier = name;
    for (char& c : identifier) c = c == '-' ? '_' : c;
    targets.push_back(
        {identifier, backend.supported,
         [name](const const_matrix_view& in, const matrix_view& out, const convert_options& options,
                int) { convert_on_device(name, in, out, options); },
         name == "cuda-native"});
  }
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Device, ConvertSuite, ::testing::ValuesIn(device_targets()),
                         name_of_target);

TEST(DeviceConformance, ThisMachineRunsEveryBackend) {
  for (const backend_info& backend : compiled_backends()) {
    EXPECT_TRUE(backend.supported) << backend.name << ": " << backend.why_unsupported;
  }
}

/// A whole run must have converted, not skipped: on each backend, the partial one too.
class enough_calls : public ::testing::Environment {
 public:
  void TearDown() override {
    const auto& run = *::testing::UnitTest::GetInstance();
    if (run.test_to_run_count() != run.total_test_count() || smallest_effort()) return;
    EXPECT_GT(compared_calls, 10'000u);
    EXPECT_GT(compared_native_calls, 1'000u);
  }
};
const auto* const environment = ::testing::AddGlobalTestEnvironment(new enough_calls);

TEST(DeviceConvert, NativeRefusesByNameWhatItLacks) {
  void* const nothing = nullptr;
  const const_matrix_view in = on_device(view_of_codes(format_id::fp32, nothing, 0, 4));
  const matrix_view out = on_device(view_of_codes(format_id::e8m0, nothing, 0, 4));
  try {
    convert(in, out, {.rounding = rounding::upward}, on_stream(nullptr, "cuda-native"));
    FAIL() << "accepted";
  } catch (const unsupported& e) {
    EXPECT_STREQ(e.what(),
                 "backend 'cuda-native' has no fp32 to e8m0 with upward, ieee, canonical");
  }
  EXPECT_NO_THROW(convert(in, out, {.rounding = rounding::upward}, {}));
}

TEST(DeviceConvert, MemoryAndBackendMustAgree) {
  float x = 1.0f;
  e4m3 y{};
  EXPECT_THROW(
      convert(view_of(&x, 1, 1), view_of(&y, 1, 1), {}, on_stream(nullptr, "cuda-emulated")),
      invalid_argument);
  EXPECT_THROW(convert(on_device(view_of(&x, 1, 1)), view_of(&y, 1, 1)), invalid_argument);
  EXPECT_THROW(convert(on_device(view_of(&x, 1, 1)), on_device(view_of(&y, 1, 1)), {},
                       find_executor("reference")),
               invalid_argument);
}

TEST(DeviceConvert, IsCapturedIntoAGraphAndReplayed) {
  initialize();  // an untested backend refuses inside a capture
  constexpr std::int64_t n = 100'000;
  std::vector<float> x(n);
  for (std::int64_t i = 0; i < n; ++i)
    x[static_cast<std::size_t>(i)] = 0.01f * static_cast<float>(i);
  std::vector<bf16> expected(n), got(n);
  const convert_options options{.rounding = rounding::stochastic, .random = {.seed = 5}};
  convert(view_of(x), view_of(expected), options);

  device_copy in(view_of(x));
  device_copy out(view_of(got));
  const_matrix_view device_in = on_device(view_of(x));
  matrix_view device_out = on_device(view_of(got));
  device_in.data = in.data();
  device_out.data = out.data();
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  convert(device_in, device_out, options, on_stream(stream));
  check(cudaStreamEndCapture(stream, &graph), "end capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  for (int replay = 0; replay < 2; ++replay) check(cudaGraphLaunch(exec, stream), "replay");
  check(cudaStreamSynchronize(stream), "synchronize");
  out.copy_back();
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(got[i].bits(), expected[i].bits()) << i;
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST(DeviceConvert, MoreThan2To31Elements) {
  const std::int64_t period = by_effort(16'777'213, 65'521);  // a prime
  const std::int64_t count = by_effort(std::int64_t{1} << 31, 4 * period) + 4'099;
  std::vector<bf16> block(static_cast<std::size_t>(period));
  for (std::size_t i = 0; i < block.size(); ++i) {
    block[i] = bf16::from_bits(static_cast<std::uint16_t>(i * 40'503u >> 3));
  }
  void* in = nullptr;
  void* out = nullptr;
  const auto bytes = static_cast<std::size_t>(count);
  check(cudaMalloc(&in, bytes * 2), "cudaMalloc");
  check(cudaMalloc(&out, bytes), "cudaMalloc");
  for (std::int64_t at = 0; at < count; at += period) {
    const std::int64_t n = std::min(period, count - at);
    check(cudaMemcpy(static_cast<std::byte*>(in) + at * 2, block.data(),
                     static_cast<std::size_t>(n) * 2, cudaMemcpyHostToDevice),
          "copy to the device");
  }
  const const_matrix_view from = on_device(view_of_codes(format_id::bf16, in, 1, count));
  const matrix_view to = on_device(view_of_codes(format_id::e4m3, out, 1, count));
  for (const char* backend : {"cuda-emulated", "cuda-native"}) {
    for (const rounding mode : {rounding::nearest_even, rounding::stochastic}) {
      const bool stochastic = mode == rounding::stochastic;
      if (stochastic && std::string_view(backend) == "cuda-native") continue;
      const convert_options options{.rounding = mode, .random = {.seed = 9, .bits = 16}};
      check(cudaMemset(out, 0x55, bytes), "cudaMemset");
      convert(from, to, options, on_stream(nullptr, backend));
      std::vector<e4m3> expected(block.size()), got(block.size());
      for (std::int64_t at = 0; at < count; at += period) {
        const std::int64_t n = std::min(period, count - at);
        convert_options here = options;
        here.random.offset = static_cast<std::uint64_t>(at);
        if (stochastic || at == 0 || n != period) {
          convert(view_of(block.data(), 1, n), view_of(expected.data(), 1, n), here);
        }
        check(cudaMemcpy(got.data(), static_cast<std::byte*>(out) + at, static_cast<std::size_t>(n),
                         cudaMemcpyDeviceToHost),
              "copy from the device");
        ASSERT_EQ(std::memcmp(got.data(), expected.data(), static_cast<std::size_t>(n)), 0)
            << backend << ", " << name(mode) << ", elements from " << at;
      }
    }
  }
  cudaFree(in);
  cudaFree(out);
}

}  // namespace
}  // namespace samebits::support
