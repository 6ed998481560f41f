// Cross entropy, its gradient, and clipping in plain form: sums by the definitions of numerics/, all
// other steps with the processor's floats, rounded to the tensor's format.
#include "engine/cases/loss_rule.hpp"

#include <bit>
#include <cmath>

#include "engine/cases/torch_numbers.hpp"
#include "numerics/hardware/torch_operators/axis_plan.hpp"
#include "numerics/hardware/torch_operators/axis_reduction.hpp"
#include "numerics/hardware/torch_operators/nll_loss.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "numerics/hardware/torch_operators/row_softmax.hpp"

namespace samebits::support {
namespace {

namespace torch = numerics::torch_2_11;
using words = std::vector<std::uint32_t>;
using floats = std::vector<float>;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
float number(std::uint32_t x) { return std::bit_cast<float>(x); }
std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

float at(const matrix_view& m, std::int64_t row, std::int64_t col) {
  return number(value_at(m, row, col));
}
void put(const matrix_view& m, std::int64_t row, std::int64_t col, float x) {
  put_value(m, row, col, bits(x));
}

/// torch.sum, or vector_norm, of row `row` of a dense matrix [rows, x.size()].
float reduced(format_id format, axis_reduction of, const floats& x, std::int64_t rows,
              std::int64_t row, int multiprocessors) {
  if (x.empty()) return 0;
  const auto cols = static_cast<std::int64_t>(x.size());
  const std::int64_t shape[] = {rows, cols}, strides[] = {cols, 1};
  const torch::axis_plan plan =
      torch::plan_of({format, of, 2, shape, strides, 2, 0, multiprocessors});
  const std::int64_t shift = plan.vector == 0 ? 0 : row * cols % plan.vector;
  const std::uint32_t sum = torch::axis_sum(plan, of, shift, [&](std::int64_t i) {
    return bits(x[index(torch::place_of(plan.axes, plan.reduced, i))]);
  });
  return number(torch::stored(format, torch::axis_result(plan, of, sum)));
}

class plain_loss {
 public:
  plain_loss(const training_case& c, const matrix_view& logits,
             const std::vector<std::int64_t>& targets)
      : c_(c),
        logits_(logits),
        targets_(targets),
        format_(c.loss.upcast ? format_id::fp32 : c.format) {
    float count = 0;
    for (const std::int64_t t : targets) count += t == c.loss.ignore_index ? 0.0f : 1.0f;
    count_ = count;
  }

  void losses(const matrix_view& out) const {
    floats picked, smooth;
    for (std::int64_t row = 0; row < logits_.rows; ++row) {
      const floats logs = log_probabilities(row);
      picked.push_back(ignored(row) ? 0 : logs[index(targets_[index(row)])]);
      const float sum =
          reduced(format_, axis_reduction::sum, logs, logits_.rows, row, c_.loss.multiprocessors);
      smooth.push_back(ignored(row) ? 0 : -sum);
    }
    if (c_.loss.reduction == loss_reduction::none) {
      for (std::int64_t row = 0; row < logits_.rows; ++row) {
        const float likelihood = ignored(row) ? 0 : -picked[index(row)];
        put(out, 0, row, with_smoothing(likelihood, smooth[index(row)]));
      }
      return;
    }
    float likelihood = number(
        torch::nll_sum(logits_.rows, [&](std::int64_t row) { return bits(picked[index(row)]); }));
    if (is_mean()) likelihood /= count_;
    const float sum = reduced(format_, axis_reduction::sum, smooth, 1, 0, c_.loss.multiprocessors);
    put(out, 0, 0, with_smoothing(of_loss(likelihood), averaged(sum)));
  }

  void gradients(const matrix_view& grad, const matrix_view& out) const {
    const auto smoothing = c_.loss.label_smoothing;
    for (std::int64_t row = 0; row < logits_.rows; ++row) {
      const float g = at(grad, 0, c_.loss.reduction == loss_reduction::none ? row : 0);
      const float all = smoothing == 0 || ignored(row) ? 0 : -averaged(of_class(g));
      words of_logs(index(logits_.cols), bits(all)), logs;
      if (!ignored(row)) {
        const float own = -averaged(smoothing == 0 ? g : of_target(g));
        of_logs[index(targets_[index(row)])] = bits(stored(smoothing == 0 ? own : own + all));
      }
      for (const float x : log_probabilities(row)) logs.push_back(bits(x));
      const std::int64_t n = logits_.cols, shift = row * n % torch::vector_of(format_);
      torch::log_softmax_gradient_row(torch::softmax_gradient_order(format_, n, shift), logs.data(),
                                      of_logs.data(), n);
      for (std::int64_t col = 0; col < n; ++col) put(out, row, col, number(of_logs[index(col)]));
    }
  }

 private:
  [[nodiscard]] bool ignored(std::int64_t row) const {
    return targets_[index(row)] == c_.loss.ignore_index;
  }
  [[nodiscard]] bool is_mean() const { return c_.loss.reduction == loss_reduction::mean; }
  [[nodiscard]] float stored(float x) const { return number(torch::stored(format_, bits(x))); }
  [[nodiscard]] float of_loss(float x) const {
    return c_.widens ? x : stored(x);  // a binary32 number
  }
  [[nodiscard]] float averaged(float x) const {
    return is_mean() ? of_loss(x / of_loss(count_)) : x;
  }
  [[nodiscard]] float of_target(float x) const {
    return stored(x * static_cast<float>(1 - c_.loss.label_smoothing));
  }
  [[nodiscard]] float of_class(float x) const {
    const double classes = static_cast<double>(logits_.cols);
    return stored(x * static_cast<float>(c_.loss.label_smoothing / classes));
  }
  [[nodiscard]] float with_smoothing(float likelihood, float smooth) const {
    if (c_.loss.label_smoothing == 0) return likelihood;
    return of_target(likelihood) + of_class(smooth);
  }
  [[nodiscard]] floats log_probabilities(std::int64_t row) const {
    const std::int64_t n = logits_.cols;
    const std::int64_t shift = (c_.loss.offset + row * n) % torch::vector_of(format_);
    words x;
    for (std::int64_t col = 0; col < n; ++col) x.push_back(bits(at(logits_, row, col)));
    torch::log_softmax_row(torch::softmax_order(format_, n, shift), x.data(), n);
    floats logs;
    for (const std::uint32_t word : x) logs.push_back(stored(number(word)));
    return logs;
  }

  const training_case& c_;
  const matrix_view& logits_;
  const std::vector<std::int64_t>& targets_;
  format_id format_;  ///< in which PyTorch computes
  float count_;
};

}  // namespace

void losses_in_plain_form(const training_case& c, const std::vector<std::int64_t>& targets,
                          const matrix_view& logits, const matrix_view& out) {
  plain_loss(c, logits, targets).losses(out);
}

void loss_gradients_in_plain_form(const training_case& c, const std::vector<std::int64_t>& targets,
                                  const matrix_view& grad, const matrix_view& logits,
                                  const matrix_view& out) {
  plain_loss(c, logits, targets).gradients(grad, out);
}

float clipped_in_plain_form(const training_case& c, const std::vector<std::uint32_t>& norms,
                            float max_norm, std::initializer_list<matrix_view> gradients) {
  floats x;
  for (const std::uint32_t code : norms) x.push_back(number(torch::value_of(c.format, code)));
  constexpr int any_card = 132;
  const float norm = reduced(c.format, axis_reduction::norm, x, 1, 0, any_card);
  const auto stored = [&](float y) { return number(torch::stored(c.format, bits(y))); };
  const float unclamped = stored(stored(1 / stored(norm + 1e-6f)) * max_norm);
  const float factor = unclamped > 1 ? 1 : unclamped;
  for (const matrix_view& m : gradients) {
    for (std::int64_t row = 0; row < m.rows; ++row) {
      for (std::int64_t col = 0; col < m.cols; ++col) put(m, row, col, at(m, row, col) * factor);
    }
  }
  return norm;
}

}  // namespace samebits::support
