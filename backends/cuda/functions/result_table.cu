// Functions of 16-bit operands from a table of all 65,536 results, for large arrays.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/functions/function_kernel.cuh"
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/functions/table_kernel.cuh"
#include "backends/cuda/self_test/self_test_stream.hpp"

namespace samebits::cuda {
namespace {

using backends::evaluate_call;

constexpr const char* table_errors = "evaluate by a table";

/// Elements from which loading the table into shared memory pays.
constexpr std::uint64_t min_elements = std::uint64_t{1} << 21;

/// Tables of the process from which on functions with a parameter get no new one: a program that
/// changes the parameter in each call would else fill the memory.
constexpr std::size_t max_tables = 256;

int device_attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, attribute, device), table_errors);
  return value;
}

/// The device, the function with its parameter, the formats of operands and results, and the
/// overflow policy of a table. The rounding is always to nearest even.
using table_key = std::tuple<int, function_rule, function, std::uint32_t,
                             numerics::torch_2_11::power_kernel, format_id, format_id, overflow>;

table_key key_of(const evaluate_call& call, int device) {
  const numerics::function_plan& plan = call.plan;
  return {device,         plan.rule,       plan.of,           plan.parameter, plan.power.kernel,
          call.in.format, call.out.format, call.rule.overflow};
}

/// Writes the operands of a table in order, one per thread.
__global__ void __launch_bounds__(block_threads) operands_kernel(std::uint16_t* operands) {
  const unsigned i = blockIdx.x * block_threads + threadIdx.x;
  operands[i] = static_cast<std::uint16_t>(i);
}

matrix_view table_view(std::byte* codes, format_id format) {
  return {codes, format, 1, table_operands, table_operands, 1, memory_space::device};
}

/// Computes a table of the current device by the definition, on a stream of its own, and waits for
/// it. Null if the device has too little memory. Results of 16 bits replace the operands; those of
/// 8 bits lie before them.
template <class Code>
std::byte* new_table(const evaluate_call& call) {
  constexpr std::size_t bytes = table_operands * sizeof(Code);
  constexpr std::size_t operands_at = sizeof(Code) == 2 ? 0 : bytes;
  const capture_apart apart;
  void* memory = nullptr;
  if (cudaMalloc(&memory, operands_at + 2 * table_operands) != cudaSuccess) {
    (void)cudaGetLastError();
    return nullptr;
  }
  auto* const table = static_cast<std::byte*>(memory);
  const own_stream stream;
  launch_kernel(table_errors, operands_kernel, table_operands / block_threads, block_threads, 0,
                stream.get(), reinterpret_cast<std::uint16_t*>(table + operands_at));
  evaluate_call all = call;
  all.in = table_view(table + operands_at, call.in.format);
  all.out = table_view(table, call.out.format);
  launch_definition(all, stream.get());
  check(cudaStreamSynchronize(stream.get()), table_errors);
  allow_shared_memory(table_errors, table_kernel<Code>, bytes);
  return table;
}

/// The table of a call on a device; null if there is none. The first call of its kind computes the
/// table, which then stays until the process ends: kernels and captured graphs may use it at any
/// time.
const std::byte* results_of(const evaluate_call& call, int device,
                            std::byte* (*compute)(const evaluate_call& call)) {
  static std::mutex using_tables;
  static std::map<table_key, const std::byte*> tables;
  const std::lock_guard lock(using_tables);
  const table_key key = key_of(call, device);
  const auto known = tables.find(key);
  if (known != tables.end()) return known->second;
  if (has_parameter(call.plan.of) && tables.size() >= max_tables) return nullptr;
  const std::byte* const results = compute(call);
  if (results != nullptr) tables.emplace(key, results);
  return results;
}

/// Whether a call is one row of 16-bit operands, long enough, with results of 16 or 8 bits.
bool is_tabulated(const evaluate_call& call, const function_task& t) {
  return call.grad.data == nullptr && call.rule.rounding == rounding::nearest_even &&
         t.in.bytes == 2 && t.out.bytes <= 2 && t.rows == 1 && t.cols >= min_elements && t.vectors;
}

template <class Code>
bool launch_by_table(const evaluate_call& call, const function_task& t, cudaStream_t stream) {
  constexpr int bytes = table_operands * sizeof(Code);
  int device = 0;
  check(cudaGetDevice(&device), table_errors);
  if (device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device) < bytes) return false;
  const std::byte* const results = results_of(call, device, new_table<Code>);
  if (results == nullptr) return false;
  launch_kernel(table_errors, table_kernel<Code>,
                static_cast<unsigned>(device_attribute(cudaDevAttrMultiProcessorCount, device)),
                table_threads, bytes, stream, t.in.data, t.out.data, t.cols,
                reinterpret_cast<const Code*>(results));
  return true;
}

}  // namespace

bool launch_table(const evaluate_call& call, void* stream) {
  const function_task t = function_task_of(call, table_pack);
  if (!is_tabulated(call, t)) return false;
  const auto on = static_cast<cudaStream_t>(stream);
  return t.out.bytes == 2 ? launch_by_table<std::uint16_t>(call, t, on)
                          : launch_by_table<std::uint8_t>(call, t, on);
}

}  // namespace samebits::cuda
