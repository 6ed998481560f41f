// Element access for any tensor of a list, whatever its format, strides and alignment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/codes.cuh"
#include "numerics/tensor_list/list.hpp"
#include "samebits/core/format.hpp"

namespace samebits::cuda {

/// Loads and stores elements of a chunk by their numbers in the chunk. `first` is the chunk's first
/// element.
struct any_codes {
  const numerics::list_row& row;
  std::int64_t first;
  format_spec format = spec_of(row.format);

  /// Address of element i. Used instead of element_at(), whose look-up of the format costs more
  /// than all else.
  __device__ std::byte* at(std::int64_t i) const {
    return static_cast<std::byte*>(row.data) +
           numerics::offset_of(row, first + i) * (format.storage_bits / 8);
  }
  __device__ std::uint32_t load(std::int64_t i) const {
    return static_cast<std::uint32_t>(load_code(at(i), format.storage_bits / 8));
  }
  __device__ void store(std::int64_t i, std::uint32_t code) const {
    store_code(at(i), format.storage_bits / 8, code);
  }
};

}  // namespace samebits::cuda
