// Gradient of an embedding's weights: the order in which PyTorch 2.11 adds the rows of one word.
// Source: PyTorch's Embedding.cu and EmbeddingBackwardKernel.cu.
#pragma once

#include <cstdint>

#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics::torch_2_11 {

/// Whether the kernel for few indices runs. It adds each block of 32 indices to the word's row in
/// the tensor's format; the other kernel adds parts of 10 rows of a word in binary32.
SAMEBITS_HD constexpr bool few_indices(std::int64_t indices, std::int64_t padding) {
  return indices <= 3072 && padding < 0;
}

/// Rows that the kernel for many indices adds in a part.
inline constexpr std::int64_t rows_of_part = 10;
/// Up to this many parts of a word are added without an order, by atomics: two sums can be
/// exchanged.
inline constexpr std::int64_t parts_in_any_order = 2;

/// Whether the word's row number `i` belongs to the part that begins with its row number `first`.
/// rows: the word's rows, rising.
SAMEBITS_HD constexpr bool in_part(bool few, const std::int64_t* rows, std::int64_t first,
                                   std::int64_t i) {
  return few ? rows[i] / 32 == rows[first] / 32 : i - first < rows_of_part;
}

/// The sum of the word's parts so far and one more, binary32 bits.
SAMEBITS_HD constexpr std::uint32_t with_part(bool few, format_id format, std::uint32_t total,
                                              std::uint32_t part) {
  if (!few) return ptx::add(total, part);
  return stored(format, ptx::add(total, stored(format, part)));
}

/// The gradient of one element of a word's row, binary32 bits, of at least one row. value(row): the
/// element in this row.
template <class Value>
SAMEBITS_HD constexpr std::uint32_t embedding_sum(bool few, format_id format,
                                                  const std::int64_t* rows, std::int64_t count,
                                                  const Value& value) {
  std::uint32_t total = 0, part = 0;
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!in_part(few, rows, first, i)) {
      total = with_part(few, format, total, part);
      part = 0;
      first = i;
    }
    part = ptx::add(part, value(rows[i]));
  }
  return with_part(few, format, total, part);
}

}  // namespace samebits::numerics::torch_2_11
