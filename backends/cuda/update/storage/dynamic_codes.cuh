// Dynamic 8-bit codes (numerics/update/dynamic_codes.hpp) of vectors of V elements of one thread.
// The tables are in global memory and stay in the first-level cache.
#pragma once

#include <cstdint>

#include "backends/cuda/update/storage/code_words.cuh"
#include "backends/cuda/update/update_arithmetic.cuh"
#include "numerics/update/dynamic_codes.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::cuda {

/// The values of packed codes of a block with this scale.
template <int V>
__device__ __forceinline__ code_words<V> dynamic_values(stored_format f, const code_words<V>& x,
                                                        std::uint32_t scale) {
  const numerics::dynamic_table& table = numerics::dynamic_table_of(f);
  code_words<V> y;
#pragma unroll
  for (int k = 0; k < V; ++k) {
    y.w[k] = update_hardware::product(table.values[packed_code(x, 1, k)], scale);
  }
  return y;
}

/// The packed codes of values.
template <int V>
__device__ __forceinline__ code_words<V> dynamic_codes(stored_format f, const code_words<V>& x,
                                                       std::uint32_t factor) {
  const numerics::dynamic_table& table = numerics::dynamic_table_of(f);
  code_words<V> y = {};
#pragma unroll
  for (int k = 0; k < V; ++k) {
    set_packed_code(y, 1, k,
                    numerics::dynamic_code(table, update_hardware::product(x.w[k], factor)));
  }
  return y;
}

}  // namespace samebits::cuda
