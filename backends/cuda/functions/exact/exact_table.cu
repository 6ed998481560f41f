// Functions of the rule `exact` from a table of all 65,536 operands of 16 bits, for large arrays.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/functions/exact/exact_definition_value.cuh"
#include "backends/cuda/functions/exact/exact_kernel.cuh"
#include "backends/cuda/functions/exact/table_kernel.cuh"
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/self_test/self_test_stream.hpp"

namespace samebits::cuda {
namespace {

namespace real = numerics::real;

constexpr const char* what = "cuda-native: evaluate";

/// Elements from which loading the table into shared memory pays.
constexpr std::uint64_t min_elements = std::uint64_t{1} << 23;

/// Writes the results of all 65,536 operands by the definition, one per thread.
template <real::exact_function F, class Code>
__global__ void __launch_bounds__(block_threads) results_kernel(const exact_task t, Code* results) {
  const std::uint32_t operand = blockIdx.x * block_threads + threadIdx.x;
  const float x = __uint_as_float(binary32_of(t.in.format, operand));
  results[operand] = static_cast<Code>(exact_code(t, definition_value<F>(x), 0));
}

int device_attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, attribute, device), what);
  return value;
}

/// The device, the function, the formats of operands and results, and the overflow policy of a
/// table. The rounding is always to nearest even.
using table_key = std::tuple<int, real::exact_function, format_id, format_id, overflow>;

/// Computes a table of the current device on a stream of its own, and waits for it. Null if the
/// device has too little memory.
template <class Code>
void* new_table(const backends::evaluate_call& call, const exact_task& t) {
  constexpr std::size_t bytes = table_operands * sizeof(Code);
  const capture_apart apart;
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    return nullptr;
  }
  const own_stream stream;
  real::with_function(call.exact, [&]<real::exact_function F>() {
    launch_kernel(what, results_kernel<F, Code>, table_operands / block_threads, block_threads, 0,
                  stream.get(), t, static_cast<Code*>(memory));
  });
  check(cudaStreamSynchronize(stream.get()), what);
  allow_shared_memory(what, table_kernel<Code>, bytes);
  return memory;
}

/// The table of a call on a device; null if there is none. The first call of its kind computes the
/// table, which then stays until the process ends: kernels and captured graphs may use it at any
/// time.
void* table_of(const backends::evaluate_call& call, const exact_task& t, int device) {
  static std::mutex using_tables;
  static std::map<table_key, void*> tables;
  const std::lock_guard lock(using_tables);
  void*& table = tables[{device, call.exact, call.in.format, call.out.format, call.rule.overflow}];
  if (table == nullptr) {
    table = t.out.bytes == 2 ? new_table<std::uint16_t>(call, t) : new_table<std::uint8_t>(call, t);
  }
  return table;
}

template <class Code>
void launch_table(const exact_task& t, const void* table, int device, cudaStream_t stream) {
  launch_kernel(what, table_kernel<Code>,
                static_cast<unsigned>(device_attribute(cudaDevAttrMultiProcessorCount, device)),
                table_threads, table_operands * sizeof(Code), stream, t.in.data, t.out.data, t.cols,
                static_cast<const Code*>(table));
}

/// Whether a call is one row of 16-bit operands, long enough, with results of 16 or 8 bits, on a
/// device whose shared memory holds a table.
bool is_tabulated(const backends::evaluate_call& call, const exact_task& t, int device) {
  constexpr std::uintptr_t alignment = 16;
  const auto is_aligned = [](const function_operand& v) {
    return v.vectors && reinterpret_cast<std::uintptr_t>(v.data) % alignment == 0;
  };
  return call.grad.data == nullptr && call.rule.rounding == rounding::nearest_even &&
         t.in.bytes == 2 && t.out.bytes <= 2 && t.rows == 1 && t.cols >= min_elements &&
         is_aligned(t.in) && is_aligned(t.out) &&
         device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device) >=
             table_operands * t.out.bytes;
}

}  // namespace

bool launch_exact_table(const backends::evaluate_call& call, const exact_task& t, void* stream) {
  int device = 0;
  check(cudaGetDevice(&device), what);
  if (!is_tabulated(call, t, device)) return false;
  const void* const table = table_of(call, t, device);
  if (table == nullptr) return false;
  const auto on = static_cast<cudaStream_t>(stream);
  if (t.out.bytes == 2) {
    launch_table<std::uint16_t>(t, table, device, on);
  } else {
    launch_table<std::uint8_t>(t, table, device, on);
  }
  return true;
}

}  // namespace samebits::cuda
