// Attention: the checked calls that a backend receives, and what its kernels compute.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "numerics/hardware/torch_operators/attention_plan.hpp"
#include "samebits/attention.hpp"

namespace samebits::backends {

/// Forward, or backward if there is a gradient of `out`. Tensors without data are not wanted;
/// backends write to the results alone.
struct attention_call {
  numerics::torch_2_11::attention_plan plan;
  const_tensor_view q = {}, k = {}, v = {}, out = {}, lse = {};
  const_tensor_view grad = {}, dq = {}, dk = {}, dv = {};
};

/// One head of a tensor, [length, head dimension], or of a log-sum-exp, [length, 1].
inline const_matrix_view head_of(const const_tensor_view& t, std::int64_t head) {
  if (t.data == nullptr) return {};
  const std::int64_t heads = t.shape[1];
  const std::int64_t first = head / heads * t.strides[0] + head % heads * t.strides[1];
  const auto* data = static_cast<const std::byte*>(t.data) + first * storage_bytes(t.format);
  const bool is_lse = t.shape.size() == 3;
  return {
      data, t.format, t.shape[2], is_lse ? 1 : t.shape[3], t.strides[2], is_lse ? 1 : t.strides[3]};
}

/// Products of one tensor core instruction.
inline constexpr int attention_step = 16;

/// One instruction for each row of A and column of B: sums[row][column] += A * B.
struct attention_product {
  format_id format;
  const std::uint32_t* a;  ///< [rows][a_words]
  const std::uint32_t* b;  ///< [b_words]
  std::uint32_t* sums;     ///< [rows][columns], binary32 bits
  std::int64_t rows;
};

/// The softmax of one block of keys for the queries of a panel, one per column.
struct attention_block {
  const numerics::torch_2_11::attention_rule* rule;
  format_id format;
  std::uint32_t* scores;  ///< [keys][columns], in; then scratch memory
  int keys;               ///< a multiple of attention_step
  int dimension;
  bool first;                    ///< block of a query
  const std::uint32_t* visible;  ///< [columns]: the query sees so many keys of the block
  std::uint32_t* max;            ///< [columns]
  std::uint32_t* sums;           ///< [query_threads][columns]
  std::uint32_t* out;            ///< [dimension][columns], rescaled here
  std::uint32_t* probabilities;  ///< out: steps of B
};

/// The gradients of the scores of a block of queries, for the keys of a panel, one per column.
struct gradient_block {
  const numerics::torch_2_11::attention_rule* rule;
  format_id format;
  const std::uint32_t* scores;   ///< [queries][columns]
  const std::uint32_t* grads;    ///< [queries][columns], gradients of the probabilities
  int queries;                   ///< present ones
  const std::uint32_t* keys;     ///< [columns], key numbers
  const std::uint32_t* visible;  ///< [queries]: the query sees keys with lower numbers
  const std::uint32_t* lse;      ///< [queries]
  const std::uint32_t* dots;     ///< [queries], output_dot()
  std::uint32_t* probabilities;  ///< out: steps of B
  std::uint32_t* gradients;      ///< out: steps of B
  std::uint32_t* codes;          ///< out: the gradients' codes, [queries][stride]
  std::int64_t stride;
};

/// The kernels of a backend. A is [step][row][a_words], B is [step][b_words]. Functions that return
/// bool return whether a number is one that this backend does not multiply: Inf or NaN.
struct attention_kernels {
  int columns;
  int a_words;  ///< of one step of a row
  int b_words;  ///< of one step of all columns
  /// Packs the numbers of one step of a row of A, or of a column of B.
  bool (*pack_a)(format_id format, const std::uint32_t* codes, std::uint32_t* words);
  bool (*pack_b)(format_id format, const std::uint32_t* codes, std::uint32_t* words, int column);
  void (*multiply)(const attention_product& p);
  bool (*block)(const attention_block& b);
  bool (*gradients)(const gradient_block& b);
};

/// At most so many columns, and keys of a block.
inline constexpr int most_attention_columns = 16, most_block_keys = 256;

}  // namespace samebits::backends
