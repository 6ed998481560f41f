// Array arithmetic by the GPU's instructions: which layouts are supported, and the launch.
#include "backends/cuda/arithmetic/arithmetic.hpp"

#include <cstdint>
#include <optional>

#include "backends/cuda/arithmetic/word_steps.cuh"
#include "backends/cuda/arithmetic/words_kernel.cuh"
#include "backends/dispatch/visit.hpp"

namespace samebits::cuda {
namespace {

using backends::compute_call;

/// Minimum bytes of a row: a shorter row does not keep a block busy.
constexpr std::int64_t min_row_bytes = 512;

bool is_repeated(const const_matrix_view& v) { return v.cols > 1 && v.col_stride == 0; }
/// Whether the view repeats one code for every element.
bool is_one_code(const const_matrix_view& v) {
  return (v.cols == 1 || v.col_stride == 0) && (v.rows == 1 || v.row_stride == 0);
}
bool has_aligned_rows(const cells& c, std::uint64_t rows) {
  return is_aligned(c.data, 16) && (rows == 1 || c.row_bytes % 16 == 0);
}

/// Launch parameters of the call, or nothing if strides or alignment are not supported. A matrix
/// without gaps becomes one row.
std::optional<word_task> words_of(const compute_call& call) {
  const int operands = operand_count(call.op);
  const matrix_view& out = call.out;
  bool flat = is_flat(out);
  bool rows_are_dense = has_dense_rows(out);
  for (int k = 0; k < operands; ++k) {
    const const_matrix_view& v = call.operands[k];
    flat = flat && (is_flat(v) || is_one_code(v));
    rows_are_dense = rows_are_dense && (has_dense_rows(v) || is_repeated(v));
  }
  word_task t{};
  t.rows = flat ? 1 : static_cast<std::uint64_t>(out.rows);
  t.cols = static_cast<std::uint64_t>(flat ? out.rows * out.cols : out.cols);
  if (!rows_are_dense) return std::nullopt;
  if (!flat && out.cols * storage_bytes(out.format) < min_row_bytes) return std::nullopt;
  t.out = cells_of(out);
  if (!has_aligned_rows(t.out, t.rows)) return std::nullopt;
  for (int k = 0; k < operands; ++k) {
    const const_matrix_view& v = call.operands[k];
    const bool repeated = flat ? !is_flat(v) : is_repeated(v);
    t.in[k] = {cells_of(v), repeated};
    if (!repeated && !has_aligned_rows(t.in[k], t.rows)) return std::nullopt;
  }
  return t;
}

}  // namespace

bool try_enqueue_words(const compute_call& call, void* stream) {
  const std::optional<word_task> t = words_of(call);
  if (!t) return false;
  backends::with_list_format(call.out.format, [&]<format_id F>() {
    with_enumerator(call.op, [&]<operation Op>() {
      if constexpr (is_computed_by_gpu(Op)) {
        const bool saturates = call.rule.overflow == overflow::saturate;
        (saturates ? launch_words<word_step<Op, F, overflow::saturate>>
                   : launch_words<word_step<Op, F, overflow::ieee>>)(*t, static_cast<cudaStream_t>(
                                                                             stream));
      }
    });
  });
  return true;
}

}  // namespace samebits::cuda
