// The tables that let host loops and kernels find the tensors of a tensor list.
//
// The work is split into chunks of up to 4096 elements, which are level 12 of the sum tree. Tensor
// t has ceil(count / 4096) chunks; an empty tensor has none. Chunks are numbered consecutively in
// list order. A launch of any shape iterates over the chunk numbers [0, chunks). row_of_chunk gives
// the tensor of a chunk in one load; first_chunk gives the chunk's position in the tensor.
//
//   tensor        0             1     2
//   chunk       [ 0 | 1 | 2 ] [ 3 ] [ 4 | 5 ]
//   first_chunk   0             3     4
//
// Both arrays are in the memory of the tensors. Kernel arguments therefore limit neither the number
// of tensors nor their sizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/sums/sum_tree.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics {

/// One tensor. Element i, counted row by row, is (i / cols * row_stride + i % cols * col_stride)
/// elements after `data`. In a dense tensor element i is i elements after `data`.
struct alignas(16) list_row {
  void* data;
  std::int64_t count;         ///< elements per row; >= 1
  std::int64_t cols;          ///< elements of a row; >= 1
  std::int64_t row_stride;    ///< elements
  std::int64_t col_stride;    ///< elements
  std::uint64_t first_chunk;  ///< number of chunks of all earlier tensors
  std::uint32_t group;
  format_id format;
  bool dense;
};
static_assert(sizeof(list_row) == 64, "kernels read it as four words of 16 bytes");

/// The tables of a list, passed to kernels by value.
template <class Row>
struct row_tables {
  const Row* rows;                    ///< [tensors]
  const std::uint32_t* row_of_chunk;  ///< [chunks]: the tensor's index
  std::uint64_t tensors;
  std::uint64_t chunks;
};
using tensor_tables = row_tables<list_row>;

/// Elements [first, first + count) of a tensor; 1 <= count <= chunk_elements.
struct list_chunk {
  std::uint32_t tensor;
  std::int64_t first;
  std::int64_t count;
};

/// Number of chunks of a tensor with `count` elements.
SAMEBITS_INLINE constexpr std::uint64_t chunks_of(std::int64_t count) {
  return static_cast<std::uint64_t>((count >> chunk_level) +
                                    ((count & (chunk_elements - 1)) != 0 ? 1 : 0));
}

/// The elements of chunk number `chunk`, which must belong to this tensor.
template <class Row>
SAMEBITS_INLINE constexpr list_chunk chunk_of(const Row& row, std::uint32_t tensor,
                                              std::uint64_t chunk) {
  const auto first = static_cast<std::int64_t>((chunk - row.first_chunk) << chunk_level);
  const std::int64_t left = row.count - first;
  return {tensor, first, left < chunk_elements ? left : chunk_elements};
}

/// The elements of chunk number `chunk` of the list.
template <class Row>
SAMEBITS_INLINE constexpr list_chunk chunk_at(const row_tables<Row>& list, std::uint64_t chunk) {
  const std::uint32_t tensor = list.row_of_chunk[chunk];
  return chunk_of(list.rows[tensor], tensor, chunk);
}

/// Distance in elements from `data` to element i.
SAMEBITS_INLINE constexpr std::int64_t offset_of(const list_row& row, std::int64_t i) {
  if (row.dense) return i;
  return i / row.cols * row.row_stride + i % row.cols * row.col_stride;
}

/// The address of element i.
SAMEBITS_INLINE std::byte* element_at(const list_row& row, std::int64_t i) {
  return static_cast<std::byte*>(row.data) +
         offset_of(row, i) * (spec_of(row.format).storage_bits / 8);
}

}  // namespace samebits::numerics
