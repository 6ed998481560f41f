// Hashes of arrays: each block sums terms of one array, one atomic addition a warp.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/reductions/reductions.hpp"
#include "numerics/bits/hash.hpp"

namespace samebits::cuda {
namespace {

constexpr int hash_threads = 256;
constexpr int arrays_of_launch = 96;  ///< parameters of a kernel have at most 4 KiB
/// Codes that a block sums at least: what a block costs to start.
constexpr std::int64_t codes_of_block = 16 * hash_threads;

struct hash_task {
  code_array arrays[arrays_of_launch];
  std::uint64_t* results;
};

/// The sum of a thread's terms: vectors of 16 bytes, then the codes that are in no whole vector.
template <class Code>
__device__ std::uint64_t terms_of(const code_array& a) {
  constexpr std::uint64_t codes = 16 / sizeof(Code);
  const auto* const data = static_cast<const Code*>(a.data);
  const auto count = static_cast<std::uint64_t>(a.count);
  const std::uint64_t head =
      min(count, (16 - reinterpret_cast<std::uintptr_t>(data) % 16) % 16 / sizeof(Code));
  const std::uint64_t vectors = (count - head) / codes;
  const std::uint64_t own = std::uint64_t{blockIdx.x} * hash_threads + threadIdx.x;
  const std::uint64_t step = std::uint64_t{gridDim.x} * hash_threads;
  std::uint64_t sum = 0;
  const auto add = [&](Code code, std::uint64_t place) {
    sum += numerics::hash_term(numerics::one_nan(code, sizeof(Code), a.largest), place);
  };
  for (std::uint64_t v = own; v < vectors; v += step) {
    const uint4 loaded = __ldcs(reinterpret_cast<const uint4*>(data + head) + v);
    Code part[codes];
    memcpy(part, &loaded, 16);
#pragma unroll
    for (std::uint64_t i = 0; i < codes; ++i) add(part[i], head + v * codes + i);
  }
  for (std::uint64_t i = own; i < count - vectors * codes; i += step) {
    const std::uint64_t place = i < head ? i : i + vectors * codes;
    add(data[place], place);
  }
  return sum;
}

__global__ void __launch_bounds__(hash_threads)
    hash_kernel(const __grid_constant__ hash_task task) {
  const code_array& a = task.arrays[blockIdx.y];
  std::uint64_t sum = a.bytes == 1   ? terms_of<std::uint8_t>(a)
                      : a.bytes == 2 ? terms_of<std::uint16_t>(a)
                      : a.bytes == 4 ? terms_of<std::uint32_t>(a)
                                     : terms_of<std::uint64_t>(a);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0 && sum != 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(task.results + blockIdx.y),
              static_cast<unsigned long long>(sum));
  }
}

}  // namespace

void enqueue_hash(const backends::hash_call& call, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  check(cudaMemsetAsync(call.results, 0, call.arrays.size() * sizeof(std::uint64_t), on),
        "hash: zeros");
  for (std::size_t first = 0; first < call.arrays.size(); first += arrays_of_launch) {
    const auto part = call.arrays.subspan(
        first, std::min<std::size_t>(arrays_of_launch, call.arrays.size() - first));
    hash_task task{.arrays = {}, .results = call.results + first};
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      task.arrays[i] = part[i];
      longest = std::max(longest, part[i].count);
    }
    const auto blocks = std::clamp<std::int64_t>(longest / codes_of_block, 1, 1024);
    launch_kernel("hash", hash_kernel,
                  dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(part.size())),
                  hash_threads, 0, on, task);
  }
}

}  // namespace samebits::cuda
