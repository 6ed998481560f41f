// The function units of the GPU against their model: each instruction's results, as a kernel reads
// them through PTX, equal those of numerics/hardware/function_units/ on the host and in the kernel.
//
// Covers all 2^32 operands; under the smallest effort every 257th. Skipped on GPUs whose compute
// capability is not 9.0, which may have other units.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/lg2.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "numerics/hardware/function_units/rsqrt.hpp"
#include "numerics/hardware/function_units/sqrt.hpp"
#include "samebits/core/config.hpp"
#include "tests/support/effort.hpp"

namespace samebits {
namespace {

namespace hopper = numerics::hopper;
constexpr std::uint64_t operands = std::uint64_t{1} << 32;
constexpr std::uint32_t slice = 1u << 26;  // operands of one kernel launch: 256 MiB of results

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(error) + ", " +
                           cudaGetErrorString(error));
}

// One struct for each instruction: its text in PTX, its result in a kernel, and the model of it.
#define SAMEBITS_TEST_INSTRUCTION(function, instruction)                                    \
  struct function {                                                                         \
    static constexpr const char* text = instruction;                                        \
    SAMEBITS_HD static std::uint32_t model(std::uint32_t x) { return hopper::function(x); } \
    __device__ static std::uint32_t hardware(std::uint32_t x) {                             \
      float y = 0;                                                                          \
      asm volatile(instruction " %0, %1;" : "=f"(y) : "f"(__uint_as_float(x)));             \
      return __float_as_uint(y);                                                            \
    }                                                                                       \
  }
SAMEBITS_TEST_INSTRUCTION(ex2_approx_ftz, "ex2.approx.ftz.f32");
SAMEBITS_TEST_INSTRUCTION(ex2_approx, "ex2.approx.f32");
SAMEBITS_TEST_INSTRUCTION(lg2_approx_ftz, "lg2.approx.ftz.f32");
SAMEBITS_TEST_INSTRUCTION(lg2_approx, "lg2.approx.f32");
SAMEBITS_TEST_INSTRUCTION(rcp_approx_ftz, "rcp.approx.ftz.f32");
SAMEBITS_TEST_INSTRUCTION(rcp_approx, "rcp.approx.f32");
SAMEBITS_TEST_INSTRUCTION(rsqrt_approx_ftz, "rsqrt.approx.ftz.f32");
SAMEBITS_TEST_INSTRUCTION(rsqrt_approx, "rsqrt.approx.f32");
SAMEBITS_TEST_INSTRUCTION(sqrt_approx_ftz, "sqrt.approx.ftz.f32");
SAMEBITS_TEST_INSTRUCTION(sqrt_approx, "sqrt.approx.f32");
#undef SAMEBITS_TEST_INSTRUCTION

/// Results that differ from the hardware's, and the first operand that was seen to have one.
struct difference {
  unsigned long long count;
  std::uint32_t operand;
};

/// Writes the hardware's results at operands first + i * stride, i < count, and counts those that
/// differ from the model in this kernel. One thread computes several operands.
template <class Instruction>
__global__ void run_kernel(std::uint32_t first, std::uint32_t stride, std::uint32_t count,
                           std::uint32_t* results, difference* found) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    const std::uint32_t x = first + i * stride;
    results[i] = Instruction::hardware(x);
    if (results[i] == Instruction::model(x)) continue;
    if (atomicAdd(&found->count, 1ull) == 0) found->operand = x;
  }
}

/// Device memory for the results of one slice.
class device_results {
 public:
  device_results() {
    check(cudaMalloc(&results_, slice * sizeof(std::uint32_t)), "cudaMalloc");
    check(cudaMalloc(&found_, sizeof(difference)), "cudaMalloc");
  }
  ~device_results() {
    cudaFree(results_);
    cudaFree(found_);
  }
  device_results(const device_results&) = delete;
  device_results& operator=(const device_results&) = delete;

  /// Runs the instruction on one slice; copies the results to `results`.
  template <class Instruction>
  difference run(std::uint32_t first, std::uint32_t stride, std::vector<std::uint32_t>& results) {
    check(cudaMemset(found_, 0, sizeof(difference)), "cudaMemset");
    run_kernel<Instruction><<<2048, 256>>>(
        first, stride, static_cast<std::uint32_t>(results.size()), results_, found_);
    check(cudaGetLastError(), "run_kernel");
    difference found{};
    check(cudaMemcpy(&found, found_, sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
    check(cudaMemcpy(results.data(), results_, results.size() * sizeof(results[0]),
                     cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    return found;
  }

 private:
  std::uint32_t* results_ = nullptr;
  difference* found_ = nullptr;
};

/// The model's results on the host against the hardware's, on all cores.
template <class Instruction>
difference compare_on_host(std::uint32_t first, std::uint32_t stride,
                           const std::vector<std::uint32_t>& results) {
  std::atomic<unsigned long long> count = 0;
  std::atomic<std::uint32_t> operand = 0;
  const std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> workers;
  for (std::size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      const std::size_t end = results.size() * (t + 1) / threads;
      for (std::size_t i = results.size() * t / threads; i < end; ++i) {
        const std::uint32_t x = first + static_cast<std::uint32_t>(i) * stride;
        if (results[i] == Instruction::model(x)) continue;
        if (count.fetch_add(1) == 0) operand = x;
      }
    });
  }
  workers.clear();  // joins
  return {count, operand};
}

void add(difference& total, const difference& part) {
  if (total.count == 0) total.operand = part.operand;
  total.count += part.count;
}

template <class Instruction>
class FunctionUnits : public testing::Test {};

using instructions =
    testing::Types<ex2_approx_ftz, ex2_approx, lg2_approx_ftz, lg2_approx, rcp_approx_ftz,
                   rcp_approx, rsqrt_approx_ftz, rsqrt_approx, sqrt_approx_ftz, sqrt_approx>;

struct instruction_names {
  template <class Instruction>
  static std::string GetName(int) {
    std::string name = Instruction::text;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
  }
};
TYPED_TEST_SUITE(FunctionUnits, instructions, instruction_names);

bool is_hopper() {
  int device = 0, major = 0, minor = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "major");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "minor");
  return major == 9 && minor == 0;
}

TYPED_TEST(FunctionUnits, ReturnTheModelsBits) {
  if (!is_hopper()) GTEST_SKIP() << "the model is that of compute capability 9.0";
  const std::uint32_t stride = support::by_effort(1u, 257u);
  const std::uint64_t total = (operands + stride - 1) / stride;
  device_results device;
  std::vector<std::uint32_t> results;
  difference in_kernel{}, on_host{};
  for (std::uint64_t done = 0; done < total; done += slice) {
    const auto first = static_cast<std::uint32_t>(done * stride);
    results.resize(std::min<std::uint64_t>(slice, total - done));
    add(in_kernel, device.template run<TypeParam>(first, stride, results));
    add(on_host, compare_on_host<TypeParam>(first, stride, results));
  }
  EXPECT_EQ(in_kernel.count, 0u) << TypeParam::text << " in a kernel, at " << in_kernel.operand;
  EXPECT_EQ(on_host.count, 0u) << TypeParam::text << " on the host, at " << on_host.operand;
  std::printf("%s: compared %llu, in a kernel %llu differ, on the host %llu differ\n",
              TypeParam::text, static_cast<unsigned long long>(total), in_kernel.count,
              on_host.count);
}

}  // namespace
}  // namespace samebits
