// Functions of rows on host backends: loads the codes of each row and calls a kernel. The reference
// kernel decodes the codes, applies the definition, and rounds the results.
#include "backends/dispatch/calls/row_functions.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/reference/functions/function_range.hpp"
#include "backends/reference/reference.hpp"
#include "backends/threads/interruption.hpp"
#include "backends/threads/parts.hpp"
#include "backends/threads/tasks.hpp"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "numerics/hardware/torch_operators/row_softmax.hpp"
#include "numerics/hardware/torch_operators/scores.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "numerics/hardware/triton_functions/triton_softmax.hpp"

namespace samebits::backends {
namespace {

namespace torch = numerics::torch_2_11;
namespace ptx = numerics::ptx;
namespace binary32 = numerics::binary32;

/// The codes of a row; none of a view without data.
void load_row(const const_matrix_view& v, std::int64_t row, std::uint32_t* codes) {
  if (v.data != nullptr) load_words(v, row, 0, v.cols, codes);
}
void store_row(const const_matrix_view& v, std::int64_t row, const std::uint32_t* codes) {
  if (v.data != nullptr) store_words(v, row, 0, v.cols, codes);
}

/// Weights and biases of LayerNorm as binary32 bits; none of a view without data.
class vector_of_words {
 public:
  explicit vector_of_words(const const_matrix_view& v)
      : words_(v.data == nullptr ? 0 : static_cast<std::size_t>(v.cols + row_padding)) {
    if (v.data != nullptr) load_numbers(v, 0, 0, v.cols, words_.data());
  }
  [[nodiscard]] const std::uint32_t* data() const {
    return words_.empty() ? nullptr : words_.data();
  }

 private:
  std::vector<std::uint32_t> words_;
};

/// Computes the rows of one thread in padded rows of scratch memory: two, or three with scores.
class row_worker {
 public:
  static std::int64_t scratch_words(const row_call& call) {
    return (call.has_scores ? 3 : 2) * (call.out.cols + row_padding);
  }

  row_worker(const row_call& call, row_kernel kernel, const std::uint32_t* weight,
             const std::uint32_t* bias, std::uint32_t* scratch)
      : call_(call), orders_(orders_of(call)), kernel_(kernel), task_{} {
    task_.of = call.of;
    task_.rule = call.rule;
    task_.format = call.out.format;
    task_.n = call.out.cols;
    task_.vectors = orders_.vectors;
    task_.epsilon = call.epsilon;
    task_.weight = weight;
    task_.bias = bias;
    task_.x = scratch;
    task_.grad = scratch + call.out.cols + row_padding;
    if (!call.has_scores) return;
    task_.scores = &call.scores;
    task_.mask = task_.grad + call.out.cols + row_padding;
  }

  /// Not inlined: else GCC does not specialize the loops that load and store for contiguous elements.
  [[gnu::noinline]] void compute(std::int64_t row) {
    torch::row_statistics norms;
    load_row(call_.in, row, task_.x);
    load_row(call_.grad, row, task_.grad);
    if (call_.has_scores) load_mask(row);
    if (is_gradient(call_.of)) {
      load_row(call_.mean, row, &norms.mean);
      load_row(call_.rstd, row, &norms.rstd);
    }
    task_.order = orders_.of_row(row);
    task_.norms = &norms;
    kernel_(task_);
    store_row(call_.out, row, is_gradient(call_.of) ? task_.grad : task_.x);
    if (is_gradient(call_.of)) return;
    store_row(call_.mean, row, &norms.mean);
    store_row(call_.rstd, row, &norms.rstd);
  }

 private:
  void load_mask(std::int64_t row) {
    const torch::score_rule& scores = call_.scores;
    const bool gradient = is_gradient(call_.of);
    task_.visible = scores.visible(row, task_.n);
    if (gradient && scores.mask != torch::mask_use::fills) {
      std::fill_n(task_.mask, task_.n, 0u);
    } else {
      load_row(call_.mask, scores.mask_row_of(row), task_.mask);
    }
    if (gradient) std::fill(task_.mask + task_.visible, task_.mask + task_.n, 1u);
  }

  const row_call& call_;
  row_orders orders_;
  row_kernel kernel_;
  row_task task_;
};

void decode(const row_task& task, std::uint32_t* codes) {
  for (std::int64_t i = 0; i < task.n; ++i) codes[i] = torch::value_of(task.format, codes[i]);
}

/// Makes scores softmax's argument.
void mask_scores(const row_task& task) {
  const torch::tensor_numbers<std::uint32_t> numbers{task.format};
  for (std::int64_t i = 0; i < task.n; ++i) {
    const std::uint32_t y =
        torch::masked_score(*task.scores, numbers, task.x[i], numbers.value(task.mask[i]));
    task.x[i] = i < task.visible ? numbers.stored(y) : ptx::neg(binary32::inf);
  }
}

}  // namespace

void reference_row(const row_task& task) {
  const std::int64_t n = task.n;
  decode(task, task.x);
  if (is_gradient(task.of)) decode(task, task.grad);
  if (task.scores != nullptr && !is_gradient(task.of)) mask_scores(task);
  switch (task.of) {
    case row_function::softmax:
      if (task.rule == function_rule::triton_3_6) {
        numerics::triton_3_6::softmax_row(task.order, task.x, n);
      } else {
        torch::softmax_row(task.order, task.x, n);
      }
      break;
    case row_function::log_softmax: torch::log_softmax_row(task.order, task.x, n); break;
    case row_function::softmax_gradient:
      torch::softmax_gradient_row(task.order, task.format, task.x, task.grad, n);
      break;
    case row_function::log_softmax_gradient:
      torch::log_softmax_gradient_row(task.order, task.x, task.grad, n);
      break;
    case row_function::layer_norm:
      *task.norms =
          torch::layer_norm_row(task.x, n, {task.weight, task.bias}, task.epsilon, task.vectors);
      break;
    case row_function::layer_norm_gradient:
    case row_function::rms_norm_gradient:
      torch::layer_norm_gradient_row(task.x, *task.norms, task.weight, task.grad, n,
                                     task.of == row_function::rms_norm_gradient);
      break;
    case row_function::rms_norm:
      task.norms->rstd = torch::rms_norm_row(task.x, n, task.weight, task.epsilon, task.vectors);
      break;
    default: break;  // parts of device backends
  }
  std::uint32_t* const y = is_gradient(task.of) ? task.grad : task.x;
  for (std::int64_t i = 0; i < n; ++i) {
    if (task.scores != nullptr && is_gradient(task.of)) {
      y[i] =
          torch::score_gradient(*task.scores, torch::stored(task.format, y[i]), task.mask[i] != 0);
    }
    y[i] = torch::code_of(task.format, y[i]);
  }
}

void rows_on_threads(const row_call& call, const executor& where, row_kernel kernel,
                     std::int64_t min_elements, kernel_scope scope) {
  const std::int64_t rows = call.out.rows;
  const std::int64_t cols = call.out.cols;
  const std::int64_t min_rows = std::max<std::int64_t>(min_elements / cols, 1);
  const std::int64_t parts =
      std::clamp<std::int64_t>(rows / min_rows, 1, thread_count(where.threads));
  // All memory is allocated before the first element is written.
  const vector_of_words weight(call.weight);
  const vector_of_words bias(call.bias);
  const std::int64_t scratch_of_part = row_worker::scratch_words(call);
  std::vector<std::uint32_t> scratch(static_cast<std::size_t>(parts * scratch_of_part));
  interruption interrupt;
  for_each_task(parts, [&](std::int64_t i) {
    row_worker worker(call, kernel, weight.data(), bias.data(),
                      scratch.data() + i * scratch_of_part);
    interrupt.for_each_block(part_of(rows, parts, i), 16 * min_rows, [&](element_range range) {
      run_in(scope, [&] {
        for (std::int64_t row = range.begin; row < range.end; ++row) worker.compute(row);
      });
    });
  });
}

void reference_row_functions(const row_call& call, const executor& where) {
  rows_on_threads(call, where, reference_row, 1 << 10, in_any_state);
}

}  // namespace samebits::backends
