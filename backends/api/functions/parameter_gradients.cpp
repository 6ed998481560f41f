// norm_parameter_gradients() and embedding_gradient(): check arguments and choose a backend.
#include "samebits/parameter_gradients.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "backends/api/functions/sum_checks.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "numerics/hardware/torch_operators/embedding_gradient.hpp"

namespace samebits {
namespace backends {
namespace {

/// Checks a gradient that norm_parameter_gradients() writes, beside all that it reads.
void check_parameter(const norm_parameters_call& call, const matrix_view& out, const char* which) {
  if (out.data == nullptr) return;
  check_view(out, which);
  check_shape(out, which, 1, call.grad.cols);
  check_format_of(out, which, call.grad, "grad");
  check_distinct(out, which);
  const format_id format = call.grad.format;
  const std::int64_t rows = call.grad.rows;
  check_read(call.grad, "grad", rows, call.grad.cols, format, out, which);
  check_read(call.in, "in", rows, call.grad.cols, format, out, which);
  if (call.mean.data != nullptr) {
    check_read(call.mean, "mean", rows, 1, format_id::fp32, out, which);
  }
  check_read(call.rstd, "rstd", rows, 1, format_id::fp32, out, which);
}

/// Runs a call on device memory.
void run_on_device(norm_parameters_call call, const norm_parameter_options& options,
                   const executor& where) {
  if (call.grad.cols == 0) return;
  const device_scope on(memory_space::device,
                        {{call.grad, "grad"},
                         {call.in, "in"},
                         {call.mean, "mean"},
                         {call.rstd, "rstd"},
                         {call.weight, "weight"},
                         {call.bias, "bias"}},
                        where.stream);
  call.order = numerics::torch_2_11::norm_parameter_order(call.grad.rows, call.grad.cols,
                                                          options.multiprocessors);
  backend_for(&backend::norm_parameters, call, memory_space::device, where,
              "has no gradients of norms' parameters of so many rows")
      .norm_parameters.run(call, where);  // also without rows, whose gradients are zeros
}

/// Computes the sums of several blocks, and then the sums of these.
void add_blocks(norm_parameters_call call, int multiprocessors, const executor& where,
                const sum_kernels& sums) {
  const matrix_view results[] = {call.weight, call.bias};
  const std::int64_t blocks = call.order.blocks, cols = call.in.cols;
  const auto bytes = static_cast<std::size_t>(spec_of(call.in.format).storage_bits / 8);
  std::vector<std::byte> memory(static_cast<std::size_t>(2 * blocks * cols) * bytes);
  const auto partial = [&](std::size_t i) -> matrix_view {
    if (results[i].data == nullptr) return {};
    return {memory.data() + i * memory.size() / 2, call.in.format, blocks, cols, cols};
  };
  call.weight = partial(0);
  call.bias = partial(1);
  norm_parameters_on_threads(call, where, sums);
  const std::int64_t shape[] = {blocks, cols}, strides[] = {cols, 1};
  const int first_axis[] = {0};
  for (std::size_t i = 0; i < 2; ++i) {
    if (results[i].data == nullptr) continue;
    reduce_axes({partial(i).data, call.in.format, shape, strides}, first_axis, results[i],
                {.rule = function_rule::torch_2_11, .multiprocessors = multiprocessors}, where);
  }
}

}  // namespace
}  // namespace backends

void norm_parameter_gradients(const const_matrix_view& grad, const const_matrix_view& in,
                              const const_matrix_view& mean, const const_matrix_view& rstd,
                              const matrix_view& weight, const matrix_view& bias,
                              const norm_parameter_options& options, const executor& where) {
  using namespace backends;
  check_at_least("multiprocessors", options.multiprocessors, 2);
  check_view(grad, "grad");
  check_torch_rule(options.rule, "gradients of norms' parameters", grad.format);
  norm_parameters_call call{{}, grad, in, mean, rstd, weight, bias};
  check_parameter(call, weight, "weight");
  check_parameter(call, bias, "bias");
  if (weight.data != nullptr && bias.data != nullptr) check_apart(weight, "weight", bias, "bias");
  if (grad.space == memory_space::device) return run_on_device(call, options, where);
  const sum_kernels& sums = sums_of(where, grad.space, "gradients of norms' parameters");
  if (grad.cols == 0) return;
  if (grad.rows == 0) {
    if (weight.data != nullptr) fill_words(weight, 0);
    if (bias.data != nullptr) fill_words(bias, 0);
    return;
  }
  call.order =
      numerics::torch_2_11::norm_parameter_order(grad.rows, grad.cols, options.multiprocessors);
  if (call.order.blocks > 1) return add_blocks(call, options.multiprocessors, where, sums);
  norm_parameters_on_threads(call, where, sums);
}

namespace backends {
namespace {

/// The rows with a gradient, sorted by word: the call's rows and words.
struct sorted_rows {
  std::vector<std::int64_t> rows, words;

  sorted_rows(std::span<const std::int64_t> indices, std::int64_t words_count,
              std::int64_t padding) {
    check_indices(indices, "indices", words_count);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] != padding) rows.push_back(static_cast<std::int64_t>(i));
    }
    const auto word_of = [&](std::int64_t row) { return indices[static_cast<std::size_t>(row)]; };
    std::stable_sort(rows.begin(), rows.end(),
                     [&](std::int64_t a, std::int64_t b) { return word_of(a) < word_of(b); });
    words.resize(rows.size());
    std::transform(rows.begin(), rows.end(), words.begin(), word_of);
  }
};

/// Refuses a word whose parts PyTorch adds in any order.
void check_order(std::span<const std::int64_t> words) {
  using numerics::torch_2_11::parts_in_any_order, numerics::torch_2_11::rows_of_part;
  const auto most = static_cast<std::size_t>(parts_in_any_order * rows_of_part);
  for (std::size_t i = most; i < words.size(); ++i) {
    if (words[i] != words[i - most]) continue;
    refuse<unsupported>(
        "index ", words[i], " occurs more than ", most,
        " times: PyTorch adds its rows in any order, unless deterministic algorithms "
        "are on");
  }
}

void run_on_device(const device_embedding_call& call, bool deterministic, const executor& where) {
  refuse_if<unsupported>(
      !call.few && !deterministic,
      "gradient of an embedding in device memory: deterministic must be set for more than 3072 "
      "indices or a padding index");
  const device_scope on(memory_space::device,
                        {{call.out, "out"}, {call.grad, "grad"}, {call.indices, "indices"}},
                        where.stream);
  run_call(&backend::embedding_gradient, call, call.out, where,
           "has no gradients of embeddings of this size, or whose rows are not dense");
}

}  // namespace
}  // namespace backends

void embedding_gradient(const const_matrix_view& grad, std::span<const std::int64_t> indices,
                        const matrix_view& out, const embedding_options& options,
                        const executor& where) {
  using namespace backends;
  check_view(out, "out");
  check_distinct(out, "out");
  check_torch_rule(options.rule, "gradient of an embedding", out.format);
  check_read(grad, "grad", static_cast<std::int64_t>(indices.size()), out.cols, out.format, out,
             "out");
  const bool few = numerics::torch_2_11::few_indices(grad.rows, options.padding);
  if (out.space == memory_space::device) {
    return run_on_device({few, grad, indices.data(), options.padding, out}, options.deterministic,
                         where);
  }
  const sum_kernels& sums = sums_of(where, out.space, "gradients of embeddings");
  const sorted_rows sorted(indices, out.rows, options.padding);
  if (!few && !options.deterministic) check_order(sorted.words);
  if (is_empty(out)) return;
  fill_words(out, 0);  // +0
  embedding_gradient_on_threads({few, grad, sorted.rows, sorted.words, out}, where, sums);
}

}  // namespace samebits
