// Functions of 16-bit operands from a table of all 65,536 results, for large arrays.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/functions/function_kernel.cuh"
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/self_test/self_test_stream.hpp"

namespace samebits::cuda {
namespace {

using backends::evaluate_call;

constexpr int table_operands = 65536;
constexpr int table_threads = 1024;  ///< of a block
constexpr int table_pack = 8;        ///< elements of a vector: operands of 16 bytes
/// Vectors that a thread has in flight. 2^28 elements on an H200, share of copy: 1: 0.91, 2: 0.95,
/// 4: 0.92.
constexpr int table_packs = 2;

/// The results of a vector of operands.
template <class Code>
__device__ __forceinline__ packed<8 * sizeof(Code), table_pack> looked_up(
    const packed<16, table_pack>& x, const Code* table) {
  packed<8 * sizeof(Code), table_pack> y{};
#pragma unroll
  for (int i = 0; i < table_pack; ++i) y.set(i, table[x.code(i)]);
  return y;
}

/// Copies the table into shared memory.
template <class Code>
__device__ __forceinline__ void load_table(const uint4* from, uint4* shared) {
  constexpr int vectors = table_operands * sizeof(Code) / sizeof(uint4);
#pragma unroll
  for (int i = 0; i < vectors / table_threads; ++i) {
    shared[i * table_threads + threadIdx.x] = from[i * table_threads + threadIdx.x];
  }
}

/// Computes out[i] = results[in[i]] for `count` elements of 16 bits. Persistent blocks, one per
/// multiprocessor. Inputs: aligned to 16 bytes; outputs and results: to 8 codes. Each element is
/// loaded before its thread stores its vector, so out may be in. Shared memory: 65,536 codes. Cost:
/// about 4 instructions an element, and 3.4 cycles for 32 elements, as 3.4 of 32 random words lie in
/// one bank.
template <class Code>
__global__ void __launch_bounds__(table_threads, 1)
    table_kernel(const std::byte* in, std::byte* out, std::uint64_t count, const Code* results) {
  extern __shared__ uint4 shared[];
  using operands = packed<16, table_pack>;
  const std::uint64_t whole = count / table_pack;
  const std::uint64_t step = std::uint64_t{gridDim.x} * table_threads;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * table_threads + threadIdx.x;
  operands x[table_packs] = {};
  const auto load = [&](std::uint64_t at) {
#pragma unroll
    for (int p = 0; p < table_packs; ++p) {
      if (at + p * step < whole) x[p] = operands::load(in + (at + p * step) * sizeof(operands));
    }
  };
  load(first);
  load_table<Code>(reinterpret_cast<const uint4*>(results), shared);
  __syncthreads();
  const auto* const table = reinterpret_cast<const Code*>(shared);
  for (std::uint64_t at = first; at < whole; at += table_packs * step) {
    operands now[table_packs];
#pragma unroll
    for (int p = 0; p < table_packs; ++p) now[p] = x[p];
    load(at + table_packs * step);
#pragma unroll
    for (int p = 0; p < table_packs; ++p) {
      if (at + p * step < whole) {
        looked_up(now[p], table).store(out + (at + p * step) * table_pack * sizeof(Code));
      }
    }
  }
  const std::uint64_t rest = whole * table_pack + first;
  if (rest < count) {
    const std::uint64_t operand = load_code(in + 2 * rest, 2);
    store_code(out + sizeof(Code) * rest, sizeof(Code), table[operand]);
  }
}

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
