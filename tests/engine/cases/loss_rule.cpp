// Cross entropy, its gradient, and clipping by the definitions of numerics/, one row after another.
#include "engine/cases/loss_rule.hpp"

#include <algorithm>
#include <bit>

#include "engine/cases/torch_numbers.hpp"
#include "numerics/hardware/torch_operators/axis_plan.hpp"
#include "numerics/hardware/torch_operators/axis_reduction.hpp"
#include "numerics/hardware/torch_operators/cross_entropy.hpp"
#include "numerics/hardware/torch_operators/foreach_norm.hpp"
#include "numerics/hardware/torch_operators/nll_loss.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "numerics/hardware/torch_operators/row_softmax.hpp"

namespace samebits::support {
namespace {

namespace torch = numerics::torch_2_11;
namespace ptx = numerics::ptx;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// torch.sum, or vector_norm, of row `row` of a dense matrix [rows, x.size()].
std::uint32_t reduced(format_id format, axis_reduction of, const words& x, std::int64_t rows,
                      std::int64_t row, int multiprocessors) {
  if (x.empty()) return 0;
  const auto cols = static_cast<std::int64_t>(x.size());
  const std::int64_t shape[] = {rows, cols}, strides[] = {cols, 1};
  const torch::axis_plan plan =
      torch::plan_of({format, of, 2, shape, strides, 2, 0, multiprocessors});
  const std::int64_t shift = plan.vector == 0 ? 0 : row * cols % plan.vector;
  const std::uint32_t sum = torch::axis_sum(plan, of, shift, [&](std::int64_t i) {
    return x[index(torch::place_of(plan.axes, plan.reduced, i))];
  });
  return torch::stored(format, torch::axis_result(plan, of, sum));
}

bool ignored(const training_case& c, std::int64_t target) { return target == c.loss.ignore_index; }

torch::cross_entropy_rule rule_of(const training_case& c, const std::vector<std::int64_t>& targets,
                                  std::int64_t classes) {
  const auto counted =
      std::ranges::count_if(targets, [&](std::int64_t t) { return !ignored(c, t); });
  return {c.loss.upcast ? format_id::fp32 : c.format,
          c.loss.reduction,
          std::bit_cast<std::uint64_t>(c.loss.label_smoothing),
          classes,
          counted,
          c.widens ? format_id::fp32 : c.format};
}

words log_probabilities(const training_case& c, format_id format, const matrix_view& logits,
                        std::int64_t row) {
  const std::int64_t n = logits.cols;
  const std::int64_t shift = (c.loss.offset + row * n) % torch::vector_of(format);
  words x = row_of(logits, row);
  torch::log_softmax_row(torch::softmax_order(format, n, shift), x.data(), n);
  for (std::uint32_t& each : x) each = torch::stored(format, each);
  return x;
}

}  // namespace

void losses_by_rule(const training_case& c, const std::vector<std::int64_t>& targets,
                    const matrix_view& logits, const matrix_view& out) {
  const torch::cross_entropy_rule rule = rule_of(c, targets, logits.cols);
  const auto with_smoothing = [&](std::uint32_t likelihood, std::uint32_t smooth) {
    return rule.smooths() ? torch::smoothed_loss(rule, likelihood, smooth) : likelihood;
  };
  const auto sum_of = [&](const words& x, std::int64_t rows, std::int64_t row) {
    return reduced(rule.format, axis_reduction::sum, x, rows, row, c.loss.multiprocessors);
  };
  words picked, smooth;
  for (std::int64_t row = 0; row < logits.rows; ++row) {
    const std::int64_t target = targets[index(row)];
    const words logs = log_probabilities(c, rule.format, logits, row);
    picked.push_back(ignored(c, target) ? 0 : logs[index(target)]);
    smooth.push_back(ignored(c, target) ? 0 : ptx::neg(sum_of(logs, logits.rows, row)));
    if (rule.reduces()) continue;
    const std::uint32_t likelihood = ignored(c, target) ? 0 : ptx::neg(picked.back());
    put_value(out, 0, row, with_smoothing(likelihood, smooth.back()));
  }
  if (!rule.reduces()) return;
  const std::uint32_t likelihood = torch::nll_loss(
      rule, torch::nll_sum(logits.rows, [&](std::int64_t row) { return picked[index(row)]; }));
  put_value(out, 0, 0, with_smoothing(likelihood, rule.mean(sum_of(smooth, 1, 0))));
}

void loss_gradients_by_rule(const training_case& c, const std::vector<std::int64_t>& targets,
                            const matrix_view& grad, const matrix_view& logits,
                            const matrix_view& out) {
  const torch::cross_entropy_rule rule = rule_of(c, targets, logits.cols);
  for (std::int64_t row = 0; row < logits.rows; ++row) {
    const std::int64_t target = targets[index(row)];
    const torch::loss_gradient of_loss = torch::loss_gradient_of(
        rule, value_at(grad, 0, rule.reduces() ? 0 : row), ignored(c, target));
    words of_logs(index(logits.cols), of_loss.others);
    if (!ignored(c, target)) of_logs[index(target)] = of_loss.target;
    const words logs = log_probabilities(c, rule.format, logits, row);
    const std::int64_t n = logits.cols, shift = row * n % torch::vector_of(rule.format);
    torch::log_softmax_gradient_row(torch::softmax_gradient_order(rule.format, n, shift),
                                    logs.data(), of_logs.data(), n);
    put_row(out, row, of_logs);
  }
}

float clipped_by_rule(const training_case& c, const words& norms, float max_norm,
                      std::initializer_list<matrix_view> gradients) {
  words x;
  for (const std::uint32_t code : norms) x.push_back(torch::value_of(c.format, code));
  constexpr int any_card = 132;
  const std::uint32_t norm = reduced(c.format, axis_reduction::norm, x, 1, 0, any_card);
  const std::uint32_t factor =
      torch::clip_factor(c.format, norm, std::bit_cast<std::uint32_t>(max_norm));
  for (const matrix_view& m : gradients) {
    for_each_element(m, [&](std::int64_t row, std::int64_t col) {
      put_value(m, row, col, ptx::mul(value_at(m, row, col), factor));
    });
  }
  return std::bit_cast<float>(norm);
}

}  // namespace samebits::support
