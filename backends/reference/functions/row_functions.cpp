// Reference functions of rows: decodes a row, applies the definition, and rounds the results.
#include "backends/dispatch/row_functions.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/reference/reference.hpp"
#include "backends/threads/parts.hpp"
#include "backends/threads/tasks.hpp"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "numerics/hardware/torch_operators/row_softmax.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "numerics/hardware/triton_functions/triton_softmax.hpp"

namespace samebits::backends {
namespace {

namespace torch = numerics::torch_2_11;

/// A thread with fewer elements costs more than it saves.
constexpr std::int64_t elements_worth_a_thread_of_rows = 1 << 10;

std::byte* element_of(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  const std::int64_t bytes = spec_of(v.format).storage_bits / 8;
  // The caller stores only to rows of matrix_view.
  auto* const data = static_cast<std::byte*>(const_cast<void*>(v.data));
  return data + (row * v.row_stride + col * v.col_stride) * bytes;
}

std::uint32_t load(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  const std::byte* const at = element_of(v, row, col);
  if (v.format == format_id::fp32) {
    std::uint32_t code = 0;
    std::memcpy(&code, at, sizeof code);
    return code;
  }
  std::uint16_t code = 0;
  std::memcpy(&code, at, sizeof code);
  return torch::value_of<std::uint32_t>(v.format, code);
}

void store(const const_matrix_view& v, std::int64_t row, std::int64_t col, std::uint32_t value) {
  const std::uint32_t code = torch::code_of(v.format, value);
  std::byte* const at = element_of(v, row, col);
  if (v.format == format_id::fp32) {
    std::memcpy(at, &code, sizeof code);
  } else {
    const auto half = static_cast<std::uint16_t>(code);
    std::memcpy(at, &half, sizeof half);
  }
}

/// The binary32 bits of a row; none of a view without data.
void load_row(const const_matrix_view& v, std::int64_t row, std::uint32_t* x) {
  if (v.data == nullptr) return;
  for (std::int64_t i = 0; i < v.cols; ++i) x[i] = load(v, row, i);
}

/// Weights and biases of LayerNorm; none of a view without data.
class vector_of_words {
 public:
  explicit vector_of_words(const const_matrix_view& v)
      : words_(v.data == nullptr ? 0 : static_cast<std::size_t>(v.cols)) {
    load_row(v, 0, words_.data());
  }
  [[nodiscard]] const std::uint32_t* data() const {
    return words_.empty() ? nullptr : words_.data();
  }

 private:
  std::vector<std::uint32_t> words_;
};

/// Computes the rows of one thread in two rows of scratch memory.
class row_worker {
 public:
  row_worker(const row_call& call, const std::uint32_t* weight, const std::uint32_t* bias,
             std::uint32_t* scratch)
      : call_(call),
        n_(call.out.cols),
        weight_(weight),
        bias_(bias),
        in_(scratch),
        grad_(scratch + call.out.cols) {}

  void compute(std::int64_t row) const {
    load_row(call_.in, row, in_);
    load_row(call_.grad, row, grad_);
    apply(row);
    const std::uint32_t* const result = call_.grad.data != nullptr ? grad_ : in_;
    for (std::int64_t i = 0; i < n_; ++i) store(call_.out, row, i, result[i]);
  }

 private:
  /// Replaces grad_ by the gradient if there is one, else in_ by the result.
  void apply(std::int64_t row) const {
    if (call_.rule == function_rule::triton_3_6) {
      namespace triton = numerics::triton_3_6;
      triton::softmax_row(triton::sum_order(n_, call_.num_warps, call_.elements_per_thread), in_,
                          n_);
      return;
    }
    const format_id format = call_.out.format;
    const std::int64_t shift = (call_.offset + row * n_) % torch::vector_of(format);
    const torch::row_order forward = torch::softmax_order(format, n_, shift);
    const torch::row_order backward = torch::softmax_gradient_order(format, n_, shift);
    switch (call_.of) {
      case row_function::softmax: torch::softmax_row(forward, in_, n_); break;
      case row_function::log_softmax: torch::log_softmax_row(forward, in_, n_); break;
      case row_function::softmax_gradient:
        torch::softmax_gradient_row(backward, format, in_, grad_, n_);
        break;
      case row_function::log_softmax_gradient:
        torch::log_softmax_gradient_row(backward, in_, grad_, n_);
        break;
      case row_function::layer_norm: layer_norm_of(row); break;
      case row_function::layer_norm_gradient:
        torch::layer_norm_gradient_row(in_, {load(call_.mean, row, 0), load(call_.rstd, row, 0)},
                                       weight_, grad_, n_);
        break;
    }
  }

  void layer_norm_of(std::int64_t row) const {
    const bool vectors = torch::has_vectors_of_4(n_, call_.offset);
    const torch::row_statistics s =
        torch::layer_norm_row(in_, n_, {weight_, bias_}, call_.epsilon, vectors);
    if (call_.mean.data != nullptr) store(call_.mean, row, 0, s.mean);
    if (call_.rstd.data != nullptr) store(call_.rstd, row, 0, s.rstd);
  }

  const row_call& call_;
  std::int64_t n_;
  const std::uint32_t* weight_;
  const std::uint32_t* bias_;
  std::uint32_t* in_;
  std::uint32_t* grad_;
};

}  // namespace

void host_row_functions(const row_call& call, const executor& where) {
  const std::int64_t rows = call.out.rows;
  const std::int64_t cols = call.out.cols;
  const std::int64_t min_rows = std::max<std::int64_t>(elements_worth_a_thread_of_rows / cols, 1);
  const std::int64_t parts =
      std::clamp<std::int64_t>(rows / min_rows, 1, thread_count(where.threads));
  // All memory is allocated before the first element is written.
  const vector_of_words weight(call.weight);
  const vector_of_words bias(call.bias);
  std::vector<std::uint32_t> scratch(static_cast<std::size_t>(2 * parts * cols));
  for_each_task(parts, [&](std::int64_t i) {
    const row_worker worker(call, weight.data(), bias.data(), scratch.data() + 2 * i * cols);
    const element_range range = part_of(rows, parts, i);
    for (std::int64_t row = range.begin; row < range.end; ++row) worker.compute(row);
  });
}

}  // namespace samebits::backends
