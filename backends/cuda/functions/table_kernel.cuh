// The kernel of functions of 16-bit operands by a table of all results in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/launch.cuh"

namespace samebits::cuda {

inline constexpr int table_operands = 65536;
inline constexpr int table_threads = 1024;  ///< of a block
inline constexpr int table_pack = 8;        ///< elements of a vector: operands of 16 bytes
/// Vectors that a thread has in flight. 2^28 elements on an H200, share of copy: 1: 0.91, 2: 0.95,
/// 4: 0.92.
inline constexpr int table_packs = 2;

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
template <class Code, int Threads>
__device__ __forceinline__ void load_table(const uint4* from, uint4* shared) {
  constexpr int vectors = table_operands * sizeof(Code) / sizeof(uint4);
#pragma unroll
  for (int i = 0; i < vectors / Threads; ++i) {
    shared[i * Threads + threadIdx.x] = from[i * Threads + threadIdx.x];
  }
}

/// Computes out[i] = results[in[i]] for `count` elements of 16 bits. Persistent blocks, one per
/// multiprocessor. Inputs: aligned to 16 bytes; outputs and results: to 8 codes. Each element is
/// loaded before its thread stores its vector, so out may be in. Shared memory: 65,536 codes. Cost:
/// about 4 instructions an element, and 3.4 cycles for 32 elements, as 3.4 of 32 random words lie in
/// one bank.
template <class Code, int Packs = table_packs, int Threads = table_threads>
__global__ void __launch_bounds__(Threads, 1)
    table_kernel(const std::byte* in, std::byte* out, std::uint64_t count, const Code* results) {
  extern __shared__ uint4 shared[];
  using operands = packed<16, table_pack>;
  const std::uint64_t whole = count / table_pack;
  const std::uint64_t step = std::uint64_t{gridDim.x} * Threads;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * Threads + threadIdx.x;
  operands x[Packs] = {};
  const auto load = [&](std::uint64_t at) {
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      if (at + p * step < whole) x[p] = operands::load(in + (at + p * step) * sizeof(operands));
    }
  };
  load(first);
  load_table<Code, Threads>(reinterpret_cast<const uint4*>(results), shared);
  __syncthreads();
  const auto* const table = reinterpret_cast<const Code*>(shared);
  for (std::uint64_t at = first; at < whole; at += Packs * step) {
    operands now[Packs];
#pragma unroll
    for (int p = 0; p < Packs; ++p) now[p] = x[p];
    load(at + Packs * step);
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
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

}  // namespace samebits::cuda
