// Vectors of results that dequantization writes by the GPU's instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/tensor_list/list_codes.cuh"
#include "samebits/core/format.hpp"

namespace samebits::cuda {

/// Vectors of 16 bytes that a thread writes: their loads are in flight together.
inline constexpr int vectors_in_flight = 4;

/// Elements of a vector.
template <format_id F>
inline constexpr int vector_elements_of = 128 / spec_of(F).storage_bits;

/// Multiplies the numbers of the codes in a word by a scale, and stores the results. numbers: by
/// code, in shared memory. out: aligned to 16 bytes.
template <format_id F, int CodeBits, class Word>
__device__ __forceinline__ void store_numbers(const std::uint32_t* numbers, Word word,
                                              std::uint32_t scale, std::byte* out) {
  constexpr int length = vector_elements_of<F>;
  value_vector<length> values;
#pragma unroll
  for (int i = 0; i < length; ++i) {
    const int shift = CodeBits == 8 ? 8 * i : 8 * (i / 2) + (i % 2 == 0 ? 4 : 0);
    const auto code = static_cast<unsigned>(word >> shift) & ((1u << CodeBits) - 1);
    values.x[i] = hardware::product(numbers[code], scale);
  }
  codes_of<F>(values).store_once(out);
}

}  // namespace samebits::cuda
