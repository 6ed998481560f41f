// Array arithmetic by the GPU's instructions: which layouts are supported, and fp32, fp16 and bf16.
#include "backends/cuda/arithmetic/arithmetic.hpp"

#include <cstdint>
#include <optional>

#include "backends/cuda/arithmetic/word_dispatch.cuh"
#include "backends/dispatch/visit.hpp"

namespace samebits::cuda {
namespace {

using backends::compute_call;

/// Minimum bytes of a row: a shorter row does not keep a block busy.
constexpr std::int64_t min_row_bytes = 512;

bool is_dense(const const_matrix_view& v) { return v.cols == 1 || v.col_stride == 1; }
bool is_repeated(const const_matrix_view& v) { return v.cols > 1 && v.col_stride == 0; }
/// Whether the view repeats one code for every element.
bool is_one_code(const const_matrix_view& v) {
  return (v.cols == 1 || v.col_stride == 0) && (v.rows == 1 || v.row_stride == 0);
}
/// Whether the view has no gaps, so that it counts as one row.
bool is_flat(const const_matrix_view& v) {
  return is_dense(v) && (v.rows == 1 || v.row_stride == v.cols);
}

std::uint64_t row_bytes_of(const const_matrix_view& v) {
  return static_cast<std::uint64_t>(v.row_stride) *
         static_cast<std::uint64_t>(storage_bytes(v.format));
}

bool is_aligned(const void* data, std::uint64_t row_bytes, std::uint64_t rows) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && (rows == 1 || row_bytes % 16 == 0);
}

/// Launch parameters of the call, or nothing if strides or alignment are not supported. A matrix
/// without gaps becomes one row.
std::optional<word_task> words_of(const compute_call& call) {
  const int operands = operand_count(call.op);
  const matrix_view& out = call.out;
  bool flat = is_flat(out);
  bool rows_are_dense = is_dense(out);
  for (int k = 0; k < operands; ++k) {
    const const_matrix_view& v = call.operands[k];
    flat = flat && (is_flat(v) || is_one_code(v));
    rows_are_dense = rows_are_dense && (is_dense(v) || is_repeated(v));
  }
  word_task t{};
  t.rows = flat ? 1 : static_cast<std::uint64_t>(out.rows);
  t.cols = static_cast<std::uint64_t>(flat ? out.rows * out.cols : out.cols);
  if (!rows_are_dense) return std::nullopt;
  if (!flat && out.cols * storage_bytes(out.format) < min_row_bytes) return std::nullopt;
  t.out = static_cast<std::byte*>(out.data);
  t.out_row_bytes = row_bytes_of(out);
  if (!is_aligned(t.out, t.out_row_bytes, t.rows)) return std::nullopt;
  for (int k = 0; k < operands; ++k) {
    const const_matrix_view& v = call.operands[k];
    const bool repeated = flat ? !is_flat(v) : is_repeated(v);
    t.in[k] = {static_cast<const std::byte*>(v.data), row_bytes_of(v), repeated};
    if (!repeated && !is_aligned(t.in[k].data, t.in[k].row_bytes, t.rows)) return std::nullopt;
  }
  return t;
}

}  // namespace

void launch_wide_words(const compute_call& call, const word_task& t, cudaStream_t stream) {
  const overflow policy = call.rule.overflow;
  backends::visit_quantized(call.out.format,
                            [&]<format_id F>() { launch_format<F>(call.op, policy, t, stream); });
}

bool try_enqueue_words(const compute_call& call, void* stream) {
  const std::optional<word_task> t = words_of(call);
  if (!t) return false;
  const bool fp8 = spec_of(call.out.format).storage_bits == 8;
  (fp8 ? launch_fp8_words : launch_wide_words)(call, *t, static_cast<cudaStream_t>(stream));
  return true;
}

}  // namespace samebits::cuda
