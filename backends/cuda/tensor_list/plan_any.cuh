// Elements of any tensor of a plan, whatever its format, strides and alignment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/codes.cuh"
#include "numerics/tensor_list/plan.hpp"
#include "samebits/core/format.hpp"

namespace samebits::cuda {

/// An element of any tensor, by its number in its chunk.
struct any_codes {
  const numerics::plan_row& row;
  std::int64_t first;
  format_spec format = spec_of(row.format);

  /// Not element_at(): looking the format up costs more than all else.
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
