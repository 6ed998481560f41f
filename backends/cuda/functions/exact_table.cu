// Functions of the rule `exact` from a table of all 65,536 operands of 16 bits, for large arrays.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/functions/exact_definition_value.cuh"
#include "backends/cuda/functions/exact/exact_kernel.cuh"
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/functions/table_memory.hpp"

namespace samebits::cuda {
namespace {

namespace real = numerics::real;

constexpr int operand_count = 65536;
constexpr int table_threads = 1024;
constexpr int pack_elements = 8;  ///< of 16 bits: one load of 16 bytes
constexpr int packs = 2;          ///< vectors that a thread has in flight

/// Elements from which the table pays for itself.
constexpr std::uint64_t min_elements = std::uint64_t{1} << 24;

/// Writes the results of all 65,536 operands, one per thread.
template <real::exact_function F, class Code>
__global__ void __launch_bounds__(block_threads)
    table_entries_kernel(const exact_task t, Code* entries) {
  const std::uint32_t operand = blockIdx.x * block_threads + threadIdx.x;
  const float x = __uint_as_float(binary32_of(t.in.format, operand));
  entries[operand] = static_cast<Code>(exact_code(t, definition_value<F>(x), 0));
}

/// The results of a vector of operands.
template <class Code>
__device__ __forceinline__ packed<8 * sizeof(Code), pack_elements> looked_up(
    const packed<16, pack_elements>& x, const Code* table) {
  packed<8 * sizeof(Code), pack_elements> y{};
#pragma unroll
  for (int i = 0; i < pack_elements; ++i) y.set(i, table[x.code(i)]);
  return y;
}

/// Computes out[i] = entries[in[i]] for `count` elements of 16 bits. Persistent blocks, one per
/// multiprocessor. Shared memory: the table, 65,536 codes. Inputs: aligned to 16 bytes; outputs: to
/// 8 codes.
template <class Code>
__global__ void __launch_bounds__(table_threads, 1)
    table_kernel(const std::byte* in, std::byte* out, std::uint64_t count, const Code* entries) {
  extern __shared__ uint4 shared[];
  using operands = packed<16, pack_elements>;
  const std::uint64_t whole = count / pack_elements;
  const std::uint64_t step = std::uint64_t{gridDim.x} * table_threads;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * table_threads + threadIdx.x;
  operands x[packs] = {};
  const auto load = [&](std::uint64_t at) {
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (at + p * step < whole) x[p] = operands::load(in + (at + p * step) * sizeof(operands));
    }
  };
  load(first);
  constexpr int vectors = operand_count * sizeof(Code) / sizeof(uint4);
#pragma unroll
  for (int i = 0; i < vectors / table_threads; ++i) {
    const int at = i * table_threads + threadIdx.x;
    shared[at] = reinterpret_cast<const uint4*>(entries)[at];
  }
  __syncthreads();
  const auto* const table = reinterpret_cast<const Code*>(shared);
  for (std::uint64_t at = first; at < whole; at += packs * step) {
    operands now[packs];
#pragma unroll
    for (int p = 0; p < packs; ++p) now[p] = x[p];
    load(at + packs * step);
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (at + p * step < whole) {
        looked_up(now[p], table).store(out + (at + p * step) * pack_elements * sizeof(Code));
      }
    }
  }
  const std::uint64_t rest = whole * pack_elements + first;
  if (rest < count) {
    const std::uint64_t operand = load_code(in + 2 * rest, 2);
    store_code(out + sizeof(Code) * rest, sizeof(Code), table[operand]);
  }
}

/// Attributes of the current device.
int device_attribute(cudaDeviceAttr what) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "the current device");
  check(cudaDeviceGetAttribute(&value, what, device), "the current device");
  return value;
}

/// Whether a call is one row of 16-bit operands, long enough, with results of 16 or 8 bits.
bool is_tabulated(const backends::exact_call& call, const exact_task& t) {
  constexpr std::uintptr_t alignment = 16;
  const auto is_aligned = [](const exact_operand& v) {
    return v.vectors && reinterpret_cast<std::uintptr_t>(v.data) % alignment == 0;
  };
  return call.grad.data == nullptr && call.rule.round == rounding::nearest_even &&
         t.in.bytes == 2 && t.out.bytes <= 2 && t.rows == 1 && t.cols >= min_elements &&
         is_aligned(t.in) && is_aligned(t.out);
}

template <class Code>
void launch_table(const backends::exact_call& call, const exact_task& t, cudaStream_t stream) {
  constexpr const char* what = "cuda-native: evaluate";
  constexpr std::size_t bytes = operand_count * sizeof(Code);
  const table_memory memory(bytes, stream, what);
  auto* const entries = reinterpret_cast<Code*>(memory.data());
  real::with_function(call.f, [&]<real::exact_function F>() {
    launch_kernel(what, table_entries_kernel<F, Code>, operand_count / block_threads, block_threads,
                  0, stream, t, entries);
  });
  allow_shared_memory(what, table_kernel<Code>, bytes);
  launch_kernel(what, table_kernel<Code>,
                static_cast<unsigned>(device_attribute(cudaDevAttrMultiProcessorCount)),
                table_threads, bytes, stream, t.in.data, t.out.data, t.cols, entries);
}

}  // namespace

bool launch_exact_table(const backends::exact_call& call, void* stream) {
  const exact_task t = exact_task_of(call);
  if (!is_tabulated(call, t)) return false;
  const int bytes = operand_count * t.out.bytes;
  if (device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) < bytes) return false;
  if (t.out.bytes == 2) {
    launch_table<std::uint16_t>(call, t, static_cast<cudaStream_t>(stream));
  } else {
    launch_table<std::uint8_t>(call, t, static_cast<cudaStream_t>(stream));
  }
  return true;
}

}  // namespace samebits::cuda
