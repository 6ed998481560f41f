// cross_entropy() and its gradient: PyTorch's operators one after another. The operators on rows
// are calls of the library; those on one number a row are computed here, each rounded to the
// format.
#include "samebits/cross_entropy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "backends/api/functions/sum_checks.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "numerics/hardware/torch_operators/nll_loss.hpp"
#include "samebits/axis_reductions.hpp"
#include "samebits/error.hpp"
#include "samebits/row_functions.hpp"

namespace samebits {
namespace backends {
namespace {

/// The numbers of a checked call, as binary32 bits of numbers in the format.
class loss_call {
 public:
  loss_call(const const_matrix_view& in, std::span<const std::int64_t> targets,
            const cross_entropy_options& options, const executor& where)
      : in_(in), targets_(targets), options_(options), where_(where), count_(counted()) {}

  /// Checks everything but the loss and its gradient, which check_loss() checks.
  static void check(const const_matrix_view& in, std::span<const std::int64_t> targets,
                    const cross_entropy_options& options) {
    check_view(in, "in");
    check_value("reduction", options.reduction, "loss_reduction");
    check_sum_rule(options.rule, "cross_entropy", in.format);
    check_at_least("offset", options.offset, 0);
    check_at_least("multiprocessors", options.multiprocessors, 1);
    if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
      throw invalid_argument("label_smoothing: must be from 0 to 1");
    }
    if (options.log_probabilities && options.label_smoothing != 0) {
      throw invalid_argument("label_smoothing: must be 0 with log_probabilities");
    }
    if (static_cast<std::int64_t>(targets.size()) != in.rows) {
      throw invalid_argument("targets: must be " + std::to_string(in.rows) +
                             ", one for each row, " + "got " + std::to_string(targets.size()));
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const std::int64_t target = targets[i];
      if (target == options.ignore_index || (target >= 0 && target < in.cols)) continue;
      throw invalid_argument("targets: must be from 0 to " + std::to_string(in.cols - 1) +
                             " or ignore_index, got " + std::to_string(target) + " at position " +
                             std::to_string(i));
    }
  }

  /// Checks the loss, or its gradient.
  void check_loss(const const_matrix_view& loss, const char* which) const {
    check_view(loss, which);
    const std::int64_t cols = reduced() ? 1 : in_.rows;
    if (loss.rows != 1 || loss.cols != cols) {
      throw invalid_argument(std::string(which) + ": shape must be " + shape_text(1, cols) +
                             ", got " + shape_text(loss.rows, loss.cols));
    }
    if (loss.format != in_.format || loss.space != in_.space) {
      throw invalid_argument(std::string(which) +
                             ": must have the format of in and lie in the same memory");
    }
  }

  /// The losses, one or one for each row.
  [[nodiscard]] values losses() const {
    std::vector<std::byte> memory;
    const const_matrix_view of_rows = log_probabilities(memory);
    values picked(targets_.size());
    for (std::int64_t row = 0; row < in_.rows; ++row) {
      std::uint32_t code = 0;
      if (!ignored(row)) load_words(of_rows, row, target(row), 1, &code);
      picked[at(row)] = torch::value_of(in_.format, code);
    }
    const values likelihood = negative_likelihood(picked);
    return smoothing() == 0 ? likelihood : smoothed(likelihood, of_rows);
  }

  /// Writes the gradient of the logits. grad: as losses() returns them.
  void gradient(const values& grad, const matrix_view& out) const {
    std::vector<std::byte> memory;
    const const_matrix_view logs =
        options_.log_probabilities ? const_matrix_view{} : log_probabilities(memory);
    values codes(static_cast<std::size_t>(in_.cols));
    for (std::int64_t row = 0; row < in_.rows; ++row) {
      const row_gradient of = gradient_of(grad[reduced() ? 0 : at(row)], ignored(row));
      std::fill(codes.begin(), codes.end(), code(of.others));
      if (!ignored(row)) codes[at(target(row))] = code(of.target);
      store_words(out, row, 0, in_.cols, codes.data());
    }
    if (options_.log_probabilities) return;
    log_softmax_gradient(out, logs, out, {.rule = options_.rule}, where_);
  }

 private:
  [[nodiscard]] bool reduced() const { return options_.reduction != loss_reduction::none; }
  [[nodiscard]] bool mean() const { return options_.reduction == loss_reduction::mean; }
  [[nodiscard]] double smoothing() const { return options_.label_smoothing; }
  [[nodiscard]] std::int64_t target(std::int64_t row) const { return targets_[at(row)]; }
  [[nodiscard]] bool ignored(std::int64_t row) const {
    return target(row) == options_.ignore_index;
  }
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] std::uint32_t code(std::uint32_t x) const { return torch::code_of(in_.format, x); }
  [[nodiscard]] std::uint32_t stored(std::uint32_t x) const { return torch::stored(in_.format, x); }
  /// Number of rows that are not ignored, a binary32 number.
  [[nodiscard]] std::uint32_t counted() const {
    std::int64_t count = 0;
    for (std::int64_t row = 0; row < in_.rows; ++row) count += ignored(row) ? 0 : 1;
    return from_double(static_cast<double>(count));
  }
  /// The log-probabilities of all rows; computed ones lie in `memory`.
  [[nodiscard]] const_matrix_view log_probabilities(std::vector<std::byte>& memory) const {
    if (options_.log_probabilities) return in_;
    memory.resize(at(in_.rows * in_.cols * spec_of(in_.format).storage_bits / 8));
    const matrix_view logs{memory.data(), in_.format, in_.rows, in_.cols, in_.cols};
    log_softmax(in_, logs, {.rule = options_.rule, .offset = options_.offset}, where_);
    return logs;
  }

  /// torch.nn.functional.nll_loss of the picked log-probabilities.
  [[nodiscard]] values negative_likelihood(const values& picked) const {
    if (!reduced()) {
      values all(picked.size());
      for (std::int64_t row = 0; row < in_.rows; ++row) {
        all[at(row)] = ignored(row) ? 0 : ptx::neg(picked[at(row)]);
      }
      return all;
    }
    const std::uint32_t sum =
        torch::nll_sum(in_.rows, [&](std::int64_t row) { return picked[at(row)]; });
    return {stored(mean() ? ptx::div(sum, count_) : sum)};
  }

  /// likelihood * (1 - smoothing) + smooth * (smoothing / classes), where `smooth` reduces the
  /// negative sums of the rows' log-probabilities.
  [[nodiscard]] values smoothed(const values& likelihood, const const_matrix_view& logs) const {
    values smooth = sums({in_.rows, in_.cols}, logs.data);
    for (std::int64_t row = 0; row < in_.rows; ++row) {
      smooth[at(row)] = ignored(row) ? 0 : ptx::neg(smooth[at(row)]);
    }
    if (reduced()) {
      std::vector<std::byte> codes(smooth.size() * sizeof(std::uint32_t));
      const matrix_view row{codes.data(), in_.format, 1, in_.rows, in_.rows};
      for (std::uint32_t& x : smooth) x = code(x);
      store_words(row, 0, 0, in_.rows, smooth.data());
      smooth = sums({1, in_.rows}, codes.data());
      if (mean()) smooth[0] = stored(ptx::div(smooth[0], stored(count_)));
    }
    for (std::size_t i = 0; i < smooth.size(); ++i) {
      smooth[i] = stored(ptx::add(scaled(likelihood[i], 1 - smoothing()),
                                  scaled(smooth[i], smoothing_of_class())));
    }
    return smooth;
  }
  [[nodiscard]] double smoothing_of_class() const {
    return smoothing() / static_cast<double>(in_.cols);
  }
  [[nodiscard]] std::uint32_t scaled(std::uint32_t x, double factor) const {
    return stored(ptx::mul(x, from_double(factor)));
  }
  struct matrix_shape {
    std::int64_t rows, cols;
  };
  /// torch.sum of a dense matrix over its columns.
  [[nodiscard]] values sums(matrix_shape shape, const void* codes) const {
    values results(at(shape.rows));
    const matrix_view out{results.data(), in_.format, 1, shape.rows, shape.rows};
    const std::int64_t sizes[] = {shape.rows, shape.cols}, strides[] = {shape.cols, 1};
    const int axes[] = {1};
    reduce_axes({codes, in_.format, sizes, strides}, axes, out,
                {.rule = options_.rule, .multiprocessors = options_.multiprocessors}, where_);
    values decoded(results.size());
    load_words(out, 0, 0, shape.rows, decoded.data());
    for (std::uint32_t& x : decoded) x = torch::value_of(in_.format, x);
    return decoded;
  }

  /// The gradients of a row's log-probabilities: at the target, and elsewhere.
  struct row_gradient {
    std::uint32_t target, others;
  };
  [[nodiscard]] row_gradient gradient_of(std::uint32_t grad, bool is_ignored) const {
    const auto part = [&](std::uint32_t x) {
      return ptx::neg(mean() ? stored(ptx::div(x, stored(count_))) : x);
    };
    if (smoothing() == 0) return {is_ignored ? 0 : part(grad), 0};
    const std::uint32_t smooth = is_ignored ? 0 : part(scaled(grad, smoothing_of_class()));
    const std::uint32_t likelihood = part(scaled(grad, 1 - smoothing()));
    return {stored(ptx::add(likelihood, smooth)), smooth};
  }

  const_matrix_view in_;
  std::span<const std::int64_t> targets_;
  cross_entropy_options options_;
  executor where_;
  std::uint32_t count_;
};

}  // namespace
}  // namespace backends

void cross_entropy(const const_matrix_view& in, std::span<const std::int64_t> targets,
                   const matrix_view& loss, const cross_entropy_options& options,
                   const executor& where) {
  using namespace backends;
  loss_call::check(in, targets, options);
  const loss_call call(in, targets, options, where);
  call.check_loss(loss, "loss");
  check_distinct(loss, "loss");
  check_apart(in, "in", loss, "loss");
  sums_of(where, in.space, "cross entropy");
  values losses = call.losses();
  for (std::uint32_t& x : losses) x = torch::code_of(loss.format, x);
  store_words(loss, 0, 0, loss.cols, losses.data());
}

void cross_entropy_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                            std::span<const std::int64_t> targets, const matrix_view& out,
                            const cross_entropy_options& options, const executor& where) {
  using namespace backends;
  loss_call::check(in, targets, options);
  const loss_call call(in, targets, options, where);
  call.check_loss(grad, "grad");
  check_view(out, "out");
  check_distinct(out, "out");
  if (out.rows != in.rows || out.cols != in.cols || out.format != in.format) {
    throw invalid_argument("out: must have the shape and format of in, " +
                           shape_text(in.rows, in.cols) + ", got " +
                           shape_text(out.rows, out.cols));
  }
  if (out.space != in.space) {
    throw invalid_argument("out: must lie in the same memory as in, host or device");
  }
  check_overlap(in, "in", out);
  check_apart(grad, "grad", out, "out");
  sums_of(where, in.space, "cross entropy");
  if (is_empty(out)) return;
  values grads(static_cast<std::size_t>(grad.cols));
  load_words(grad, 0, 0, grad.cols, grads.data());
  for (std::uint32_t& x : grads) x = torch::value_of(grad.format, x);
  call.gradient(grads, out);
}

}  // namespace samebits
