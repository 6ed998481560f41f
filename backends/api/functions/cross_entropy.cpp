// cross_entropy() and its gradient: PyTorch's operators one after another. The operators on rows
// are calls of the library.
#include "samebits/cross_entropy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/functions/sum_checks.hpp"
#include "backends/dispatch/calls/row_functions.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "numerics/hardware/torch_operators/cross_entropy.hpp"
#include "numerics/hardware/torch_operators/nll_loss.hpp"
#include "samebits/axis_reductions.hpp"
#include "samebits/convert.hpp"
#include "samebits/row_functions.hpp"

namespace samebits {
namespace backends {
namespace {

/// A dense matrix of codes.
struct code_matrix {
  std::vector<std::byte> codes;
  matrix_view view;

  code_matrix(format_id format, std::int64_t rows, std::int64_t cols)
      : codes(static_cast<std::size_t>(rows * cols * storage_bytes(format))),
        view(view_of_codes(format, codes.data(), rows, cols)) {}
  code_matrix(const code_matrix&) = delete;
  code_matrix& operator=(const code_matrix&) = delete;
};

/// The numbers of a checked call, as binary32 bits of numbers in the format.
class loss_call {
 public:
  loss_call(const const_matrix_view& in, std::span<const std::int64_t> targets,
            const cross_entropy_options& options, format_id loss_format, const executor& where)
      : in_(checked(in, targets, options)),
        targets_(targets),
        options_(options),
        where_(where),
        rule_{options.upcast ? format_id::fp32 : in.format,
              options.reduction,
              std::bit_cast<std::uint64_t>(options.label_smoothing),
              in.cols,
              0,
              loss_format} {
    refuse_if<unsupported>(loss_format != rule_.format && options.label_smoothing != 0,
                           "cross entropy in another format than the logits': label_smoothing");
    if (in.space == memory_space::device) return;
    for (const std::int64_t target : targets) {
      rule_.counted += target == options.ignore_index ? 0 : 1;
    }
  }

  /// Returns `in`. Checks everything but the losses and the gradients.
  static const_matrix_view checked(const const_matrix_view& in,
                                   std::span<const std::int64_t> targets,
                                   const cross_entropy_options& options) {
    check_view(in, "in");
    check_value("reduction", options.reduction, "loss_reduction");
    check_torch_rule(options.rule, "cross_entropy", in.format);
    check_at_least("offset", options.offset, 0);
    check_at_least("multiprocessors", options.multiprocessors, 1);
    refuse_if(!(options.label_smoothing >= 0 && options.label_smoothing <= 1),
              "label_smoothing: must be from 0 to 1");
    refuse_if(options.log_probabilities && options.label_smoothing != 0,
              "label_smoothing: must be 0 with log_probabilities");
    refuse_if(options.log_probabilities && options.upcast,
              "upcast: must not be set with log_probabilities");
    refuse_if(static_cast<std::int64_t>(targets.size()) != in.rows, "targets: must be ", in.rows,
              ", one for each row, ", "got ", targets.size());
    if (in.space == memory_space::device) {
      if (!options.log_probabilities && options.label_smoothing == 0) return in;
      refuse<unsupported>("cross entropy of device memory: log_probabilities and label_smoothing");
    }
    check_indices(targets, "targets", in.cols, options.ignore_index);
    return in;
  }

  void check_losses(const matrix_view& loss) const {
    check_loss(loss, "loss");
    check_distinct(loss, "loss");
    check_apart(in_, "in", loss, "loss");
  }
  /// Checks the loss, or its gradient.
  void check_loss(const const_matrix_view& loss, const char* which) const {
    check_view(loss, which);
    check_shape(loss, which, 1, rule_.reduces() ? 1 : in_.rows);
    if (options_.upcast) {
      constexpr std::array formats = {format_id::fp32};
      check_format(loss, which, formats);
    } else if (loss.format != format_id::fp32) {
      check_format_of(loss, which, in_, "in");
    }
    check_space_of(loss, which, in_, "in");
  }

  /// Computes the losses, or the gradient, or both. Views without data are not wanted.
  void run(const matrix_view& loss, const const_matrix_view& grad, const matrix_view& out) const {
    const bool wants_gradient = !is_empty(out);
    if (in_.space == memory_space::device) {
      if (is_empty(loss) && !wants_gradient) return;
      return run_on_device(is_empty(loss) ? matrix_view{} : loss,
                           wants_gradient ? grad : const_matrix_view{}, out);
    }
    sums_of(where_, in_.space, "cross entropy");
    if (loss.data != nullptr) {
      values numbers = losses();
      store_numbers(loss, 0, 0, loss.cols, numbers.data());
    }
    if (!wants_gradient) return;
    values grads(at(grad.cols));
    load_numbers(grad, 0, 0, grad.cols, grads.data());
    gradient(grads, out);
  }
  void run_on_device(const matrix_view& loss, const const_matrix_view& grad,
                     const matrix_view& out) const {
    const device_scope on(memory_space::device,
                          {{loss, "loss"},
                           {out, "out"},
                           {in_, "in"},
                           {targets_.data(), "targets"},
                           {grad, "grad"},
                           {options_.known_grad, "known_grad"}},
                          where_.stream);
    const cross_entropy_call call{.rule = rule_,
                                  .ignore_index = options_.ignore_index,
                                  .offset = options_.offset % 8,
                                  .in = in_,
                                  .targets = targets_.data(),
                                  .loss = loss,
                                  .grad = grad,
                                  .out = out,
                                  .known_grad = options_.known_grad};
    backend_for(&backend::cross_entropy, call, memory_space::device, where_, "has no cross entropy")
        .cross_entropy.run(call, where_);
  }

  /// Checks the gradient of the loss, and that of the logits.
  void check_gradient(const const_matrix_view& grad, const matrix_view& out) const {
    check_loss(grad, "grad");
    check_like(out, "out", in_, "in");
    check_distinct(out, "out");
    check_overlap(in_, "in", out);
    check_apart(grad, "grad", out, "out");
    const const_matrix_view& known = options_.known_grad;
    if (known.data == nullptr) return;
    check_view(known, "known_grad");
    check_shape(known, "known_grad", 1, 1);
    check_format_of(known, "known_grad", grad, "grad");
    check_apart(out, "out", known, "known_grad");
    refuse_if(!rule_.reduces() || known.space != memory_space::device,
              "known_grad: needs device memory and a reduction");
    check_space_of(known, "known_grad", in_, "in");
  }

  /// The losses, one or one for each row.
  [[nodiscard]] values losses() const {
    std::optional<code_matrix> memory;
    const const_matrix_view logs = log_probabilities(memory);
    values picked(targets_.size()), losses(targets_.size());  // +0 of ignored rows
    for (std::int64_t row = 0; row < in_.rows; ++row) {
      if (ignored(row)) continue;
      load_numbers(logs, row, target(row), 1, &picked[at(row)]);
      losses[at(row)] = ptx::neg(picked[at(row)]);
    }
    if (rule_.reduces()) {
      losses = {torch::nll_loss(
          rule_, torch::nll_sum(in_.rows, [&](std::int64_t row) { return picked[at(row)]; }))};
    }
    if (!rule_.smooths()) return losses;
    const values smooth = smooth_losses(logs);
    for (std::size_t i = 0; i < losses.size(); ++i) {
      losses[i] = torch::smoothed_loss(rule_, losses[i], smooth[i]);
    }
    return losses;
  }

  /// Writes the gradient of the logits. grad: as losses() returns them.
  void gradient(const values& grad, const matrix_view& out) const {
    std::optional<code_matrix> memory, wide;
    const const_matrix_view logs =
        options_.log_probabilities ? const_matrix_view{} : log_probabilities(memory);
    const bool narrows = rule_.format != out.format;
    const matrix_view to = narrows ? wide.emplace(rule_.format, out.rows, out.cols).view : out;
    values numbers(at(in_.cols));
    for (std::int64_t row = 0; row < in_.rows; ++row) {
      const torch::loss_gradient of =
          torch::loss_gradient_of(rule_, grad[rule_.reduces() ? 0 : at(row)], ignored(row));
      std::fill(numbers.begin(), numbers.end(), of.others);
      if (!ignored(row)) numbers[at(target(row))] = of.target;
      store_numbers(to, row, 0, in_.cols, numbers.data());
    }
    if (options_.log_probabilities) return;
    log_softmax_gradient(to, logs, to, {.rule = options_.rule}, where_);
    if (narrows) convert(to, out, {}, where_);
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] std::int64_t target(std::int64_t row) const { return targets_[at(row)]; }
  [[nodiscard]] bool ignored(std::int64_t row) const {
    return target(row) == options_.ignore_index;
  }
  /// The log-probabilities of all rows; computed ones lie in `memory`.
  [[nodiscard]] const_matrix_view log_probabilities(std::optional<code_matrix>& memory) const {
    if (options_.log_probabilities) return in_;
    memory.emplace(rule_.format, in_.rows, in_.cols);
    const bool widens = rule_.format != in_.format;
    if (widens) convert(in_, memory->view, {}, where_);
    log_softmax(widens ? const_matrix_view(memory->view) : in_, memory->view,
                {.rule = options_.rule, .offset = options_.offset}, where_);
    return memory->view;
  }

  /// The negative sums of the rows' log-probabilities, reduced.
  [[nodiscard]] values smooth_losses(const const_matrix_view& logs) const {
    values smooth = sums(logs);
    for (std::int64_t row = 0; row < in_.rows; ++row) {
      smooth[at(row)] = ignored(row) ? 0 : ptx::neg(smooth[at(row)]);
    }
    if (!rule_.reduces()) return smooth;
    code_matrix one_row(rule_.format, 1, in_.rows);
    store_numbers(one_row.view, 0, 0, in_.rows, smooth.data());
    return {rule_.mean(sums(one_row.view)[0])};
  }
  /// torch.sum of a dense matrix over its columns.
  [[nodiscard]] values sums(const const_matrix_view& m) const {
    code_matrix codes(m.format, 1, m.rows);
    const std::int64_t sizes[] = {m.rows, m.cols}, strides[] = {m.cols, 1};
    const int axes[] = {1};
    reduce_axes({m.data, m.format, sizes, strides}, axes, codes.view,
                {.rule = options_.rule, .multiprocessors = options_.multiprocessors}, where_);
    values numbers(at(m.rows));
    load_numbers(codes.view, 0, 0, m.rows, numbers.data());
    return numbers;
  }

  const_matrix_view in_;
  std::span<const std::int64_t> targets_;
  cross_entropy_options options_;
  executor where_;
  torch::cross_entropy_rule rule_;
};

}  // namespace
}  // namespace backends

void cross_entropy(const const_matrix_view& in, std::span<const std::int64_t> targets,
                   const matrix_view& loss, const cross_entropy_options& options,
                   const executor& where) {
  const backends::loss_call call(in, targets, options, loss.format, where);
  call.check_losses(loss);
  call.run(loss, {}, {});
}

void cross_entropy_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                            std::span<const std::int64_t> targets, const matrix_view& out,
                            const cross_entropy_options& options, const executor& where) {
  const backends::loss_call call(in, targets, options, grad.format, where);
  call.check_gradient(grad, out);
  call.run({}, grad, out);
}

void cross_entropy_and_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                                std::span<const std::int64_t> targets, const matrix_view& loss,
                                const matrix_view& out, const cross_entropy_options& options,
                                const executor& where) {
  refuse_if(options.known_grad.data != nullptr, "known_grad: is of cross_entropy_gradient() alone");
  const backends::loss_call call(in, targets, options, loss.format, where);
  call.check_losses(loss);
  call.check_gradient(grad, out);
  backends::check_format_of(grad, "grad", loss, "loss");
  backends::check_apart(loss, "loss", out, "out");
  backends::check_apart(grad, "grad", loss, "loss");
  call.run(loss, grad, out);
}

}  // namespace samebits
