// The tables that let host loops and kernels find the tensors of an optimizer.
//
// The work is split into chunks of up to 4096 elements (numerics/tensor_list/list.hpp), numbered in
// list order. Blocks of elements that share a scale never cross a chunk's border.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/tensor_list/list.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::numerics {

/// One array of a tensor: contiguous codes.
struct update_array {
  std::byte* codes;
  std::uint32_t* scales;  ///< binary32 bits, one for each block; null in formats without scales
};

/// One tensor of an optimizer.
struct alignas(16) update_row {
  update_array weights;
  update_array master;
  update_array states[2];
  const std::byte* gradient;
  const std::uint32_t* gradient_scale;  ///< binary32 bits; null: 1
  std::byte* low;
  std::int64_t count;
  std::uint64_t first_index;  ///< index of element 0 in the unsharded parameter
  std::uint64_t first_chunk;  ///< number of chunks of all earlier tensors
  std::uint32_t stream;       ///< the parameter's number in random streams
  std::uint32_t group;
  std::uint32_t block;  ///< elements per scale
  stored_format weights_format;
  stored_format master_format;
  stored_format state_formats[2];
  stored_format gradient_format;
  low_part low_kind;
};

using update_tables = row_tables<update_row>;

/// The format to which torch_foreach rounds each step's result: that of 16-bit weights without
/// master or low part, else fp32.
SAMEBITS_INLINE constexpr stored_format step_format(const update_row& row) {
  const bool alone = row.master_format == stored_format::none && row.low_kind == low_part::none;
  return alone && row.weights_format == stored_format::bf16_nearest ? stored_format::bf16_nearest
                                                                    : stored_format::fp32;
}

}  // namespace samebits::numerics
