// Vectors of V neighbouring codes of a tensor's array: loads and stores.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/launch.cuh"

namespace samebits::cuda {

/// V codes of 1, 2 or 4 bytes, packed from the low bits of word 0 upwards; or V binary32 words.
template <int V>
struct code_words {
  std::uint32_t w[V];
};

/// Code k of packed codes.
template <int V>
__device__ __forceinline__ std::uint32_t packed_code(const code_words<V>& codes, int bytes, int k) {
  if (bytes == 4) return codes.w[k];
  if (bytes == 2) return codes.w[k / 2] >> (k % 2 * 16) & 0xFFFFu;
  return codes.w[k / 4] >> (k % 4 * 8) & 0xFFu;
}

/// Sets code k of packed codes, after code k - 1.
template <int V>
__device__ __forceinline__ void set_packed_code(code_words<V>& codes, int bytes, int k,
                                                std::uint32_t code) {
  const int bit = k * bytes % 4 * 8;
  std::uint32_t& word = codes.w[k * bytes / 4];
  word = bit == 0 ? code : word | code << bit;
}

/// Loads codes one by one; the codes from `count` on are 0. Not inlined, to keep its registers out
/// of the loop over whole vectors.
template <int V>
__device__ __noinline__ code_words<V> load_some_codes(const std::byte* p, int bytes, int count) {
  code_words<V> codes = {};
#pragma unroll 1
  for (int k = 0; k < count; ++k) {
    set_packed_code(codes, bytes, k, load_aligned(p + k * bytes, bytes));
  }
  return codes;
}

/// Stores the first `count` codes one by one.
template <int V>
__device__ __noinline__ void store_some_codes(std::byte* p, int bytes, int count,
                                              const code_words<V> codes) {
#pragma unroll 1
  for (int k = 0; k < count; ++k) {
    store_aligned(p + k * bytes, bytes, packed_code(codes, bytes, k));
  }
}

/// Calls f.operator()<Words>() for the words of V packed codes.
template <int V, class Function>
__device__ __forceinline__ void with_words(int bytes, const Function& f) {
  if (bytes == 4) return f.template operator()<V>();
  if (bytes == 2) return f.template operator()<V / 2>();
  f.template operator()<V / 4>();
}

/// Loads V codes. p is aligned to 16 bytes, or to the vector if the vector is smaller.
template <int V>
__device__ __forceinline__ code_words<V> load_codes(const std::byte* p, int bytes) {
  code_words<V> codes = {};
  with_words<V>(bytes, [&]<int Words>() {
    const auto x = packed<32, Words>::load_once(p);
#pragma unroll
    for (int k = 0; k < Words; ++k) codes.w[k] = x.w[k];
  });
  return codes;
}

/// Stores V codes; p as for load_codes().
template <int V>
__device__ __forceinline__ void store_codes(const code_words<V>& codes, std::byte* p, int bytes) {
  with_words<V>(bytes, [&]<int Words>() {
    packed<32, Words> x;
#pragma unroll
    for (int k = 0; k < Words; ++k) x.w[k] = codes.w[k];
    x.store_once(p);
  });
}

}  // namespace samebits::cuda
