// A weight under an optimizer: how it is kept, and what becomes of it: implementation.
#include "fpinspect/explore/update/weight_life.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "fpinspect/cli/arguments.hpp"
#include "samebits/optimizer.hpp"

namespace fpinspect {

// --- How an optimizer keeps weights: the table, and bytes -----------------------------------------

namespace {

using samebits::format_id;
using samebits::low_part;
using samebits::stored_format;

constexpr weight_mode modes[] = {
    {"fp32", stored_format::fp32},
    {"direct", stored_format::bf16_nearest},
    {"direct_fp16", stored_format::fp16_nearest},
    {"stochastic", stored_format::bf16_stochastic},
    {"kahan", stored_format::bf16_nearest, stored_format::none, low_part::kahan},
    {"split16", stored_format::bf16_nearest, stored_format::none, low_part::split},
    {"master32", stored_format::bf16_nearest, stored_format::fp32},
    {"fp8_copy", stored_format::e4m3_scaled, stored_format::fp32},
    {"master16_scaled", stored_format::e4m3_scaled, stored_format::fp16_scaled},
};

}  // namespace

std::span<const weight_mode> weight_modes() { return modes; }

std::vector<weight_mode> weight_modes_argument(std::string_view option,
                                               const std::vector<std::string>& names) {
  if (names.empty() || names == std::vector<std::string>{"all"}) {
    return {std::begin(modes), std::end(modes)};
  }
  std::vector<weight_mode> found;
  for (const std::string& name : names) {
    found.push_back(row_argument(option, name, weight_modes()));
  }
  return found;
}

format_id codes_of(stored_format stored) {
  switch (stored) {
    case stored_format::bf16_nearest:
    case stored_format::bf16_stochastic: return format_id::bf16;
    case stored_format::fp16_nearest:
    case stored_format::fp16_stochastic:
    case stored_format::fp16_scaled: return format_id::fp16;
    case stored_format::e4m3_scaled:
    case stored_format::e4m3_tensor: return format_id::e4m3;
    case stored_format::e5m2_scaled:
    case stored_format::e5m2_tensor: return format_id::e5m2;
    default: return format_id::fp32;
  }
}

double bytes_of(stored_format stored, int block) {
  const double scale = samebits::has_block_scales(stored) ? double{sizeof(float)} / block : 0;
  return samebits::code_bytes(stored) + scale;
}

double bytes_of(const weight_mode& mode, int block) {
  constexpr double low_bytes = 2;
  return bytes_of(mode.weights, block) + bytes_of(mode.master, block) +
         (mode.low == low_part::none ? 0 : low_bytes);
}

// --- What an optimizer makes of a weight, by optimizer_step() -------------------------------------

namespace {

using samebits::low_part;
using samebits::stored_format;

constexpr std::size_t block_count = equal_weights + 1;
static_assert(block_count <= scale_block);

/// An array of an optimizer's tensor: one block.
class stored_block {
 public:
  explicit stored_block(stored_format format) : format_(format) {}

  [[nodiscard]] samebits::stored_array array() {
    if (format_ == stored_format::none) return {};
    return {codes_.data(), format_, samebits::has_block_scales(format_) ? &scale_ : nullptr};
  }

 private:
  stored_format format_;
  std::vector<float> codes_ = std::vector<float>(block_count);  // aligned for all formats
  float scale_ = 1;
};

/// The first `n` values of an array.
std::vector<float> values_of(const samebits::stored_array& array, std::size_t n = block_count,
                             const samebits::store_options& options = {}) {
  std::vector<float> values(n);
  samebits::load(array, samebits::view_of(values), options);
  return values;
}

/// The arrays of the tensor in one mode.
struct kept_tensor {
  weight_mode mode;
  stored_block weights;
  stored_block master;
  std::vector<std::uint16_t> low = std::vector<std::uint16_t>(block_count);
  std::vector<float> first = std::vector<float>(block_count);
  std::vector<float> second = std::vector<float>(block_count);

  kept_tensor(const weight_mode& chosen, const update_plan& plan)
      : mode(chosen), weights(chosen.weights), master(chosen.master) {
    std::vector<float> start(block_count, plan.start);
    start.back() = plan.block_amax;
    if (mode.master != stored_format::none) {
      samebits::store(samebits::view_of(start), master.array());
      start = values_of(master.array());
    }
    samebits::stored_array begun = weights.array();
    // The first rounding takes no random bits.
    if (begun.format == stored_format::bf16_stochastic) begun.format = stored_format::bf16_nearest;
    samebits::store(samebits::view_of(start), begun, with_low());
  }

  /// What the model reads of the first weight.
  [[nodiscard]] double read() { return values_of(weights.array(), 1)[0]; }
  /// What the optimizer computes with in place of the first weight.
  [[nodiscard]] double kept() {
    if (mode.master != stored_format::none) return values_of(master.array(), 1)[0];
    return values_of(weights.array(), 1, with_low())[0];
  }

  [[nodiscard]] samebits::optimizer_tensor tensor(const std::vector<float>& gradient) {
    return {.weights = weights.array(),
            .gradient = {gradient.data(), stored_format::fp32},
            .master = master.array(),
            .low = mode.low == low_part::none ? nullptr : low.data(),
            .low_kind = mode.low,
            .states = {{{first.data(), stored_format::fp32}, {second.data(), stored_format::fp32}}},
            .count = block_count,
            .block = scale_block,
            .name = std::string(mode.name)};
  }

 private:
  [[nodiscard]] samebits::store_options with_low() {
    return {.low = mode.low == low_part::none ? nullptr : low.data(), .low_kind = mode.low};
  }
};

}  // namespace

std::vector<weight_life> lives_of(const update_plan& plan) {
  std::vector<kept_tensor> kept;
  kept.reserve(plan.modes.size());  // the list points to the arrays
  std::vector<float> gradient(block_count);
  std::vector<samebits::optimizer_tensor> tensors;
  for (const weight_mode& mode : plan.modes) {
    kept.emplace_back(mode, plan);
    tensors.push_back(kept.back().tensor(gradient));
  }
  const samebits::optimizer_list list(std::move(tensors));
  std::vector<weight_life> lives(kept.size());
  std::vector<double> last;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    last.push_back(kept[i].read());
    lives[i].read.push_back(last[i]);
  }
  for (std::uint64_t t = 1; t <= plan.shown.back(); ++t) {
    std::fill_n(gradient.begin(), equal_weights, plan.gradient(t));
    optimizer_step(list, {&plan.settings, 1}, {.applied_steps = t, .seed = plan.seed});
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const double read = kept[i].read();
      const bool stays = read == last[i] || (std::isnan(read) && std::isnan(last[i]));
      if (!stays) lives[i].last_change = t;
      last[i] = read;
      if (t == plan.shown[lives[i].read.size()]) lives[i].read.push_back(read);
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    lives[i].kept = kept[i].kept();
    const std::vector<float> equal = values_of(kept[i].weights.array(), equal_weights);
    lives[i].equal.assign(equal.begin(), equal.end());
  }
  return lives;
}

// --- The same formulas in binary64, to compare with -----------------------------------------------

namespace {

using samebits::optimizer_settings;
using samebits::update_rule;

struct exact_weight {
  double p;
  double m = 0;
  double v = 0;
  double direction = 0;  ///< lamb
};

/// Constants of one step.
struct step_constants {
  bool first;
  double c1;  ///< 1 - beta1^t
  double c2;  ///< 1 - beta2^t
};

/// Updates m and v; returns Adam's direction.
double adam_direction(exact_weight& w, double g, const optimizer_settings& s,
                      const step_constants& c) {
  w.m = s.beta1 * w.m + (1 - s.beta1) * g;
  w.v = s.beta2 * w.v + (1 - s.beta2) * (g * g);
  return w.m / c.c1 / (std::sqrt(w.v / c.c2) + s.epsilon);
}

void sgd_step(exact_weight& w, double g, const optimizer_settings& s, const step_constants& c) {
  g += s.weight_decay * w.p;
  if (s.momentum != 0) {
    w.m = c.first ? g : s.momentum * w.m + (1 - s.dampening) * g;
    g = s.nesterov ? g + s.momentum * w.m : w.m;
  }
  w.p -= s.learning_rate * g;
}

void lion_step(exact_weight& w, double g, const optimizer_settings& s) {
  const double x = s.beta1 * w.m + (1 - s.beta1) * g;
  const double sign = x > 0 ? 1 : x < 0 ? -1 : 0;
  w.p = w.p * (1 - s.learning_rate * s.weight_decay) - s.learning_rate * sign;
  w.m = s.beta2 * w.m + (1 - s.beta2) * g;
}

/// All rules but lamb.
void step_weight(exact_weight& w, double g, const optimizer_settings& s, const step_constants& c) {
  switch (s.rule) {
    case update_rule::sgd: return sgd_step(w, g, s, c);
    case update_rule::lion: return lion_step(w, g, s);
    case update_rule::adam: g += s.weight_decay * w.p; break;
    default: w.p *= 1 - s.learning_rate * s.weight_decay;
  }
  w.p -= s.learning_rate * adam_direction(w, g, s, c);
}

/// One step of lamb. The tensor has `equal_weights` weights like `w`, and `other`.
void lamb_step(exact_weight& w, exact_weight& other, double g, const optimizer_settings& s,
               const step_constants& c) {
  const auto direct = [&](exact_weight& x, double gradient) {
    x.direction = adam_direction(x, gradient, s, c) + s.weight_decay * x.p;
  };
  direct(w, g);
  direct(other, 0);
  const auto norm = [](double equal, double one) {
    return std::sqrt(double{equal_weights} * (equal * equal) + one * one);
  };
  const double weights = norm(w.p, other.p);
  const double directions = norm(w.direction, other.direction);
  const double trust = weights > 0 && directions > 0 ? weights / directions : 1;
  for (exact_weight* x : {&w, &other}) x->p -= s.learning_rate * trust * x->direction;
}

}  // namespace

std::vector<double> exact_life(const update_plan& plan) {
  exact_weight weight{plan.start};
  exact_weight other{plan.block_amax};
  const optimizer_settings& s = plan.settings;
  double power1 = 1;
  double power2 = 1;
  std::vector<double> shown = {weight.p};
  for (std::uint64_t t = 1; t <= plan.shown.back(); ++t) {
    power1 *= s.beta1;
    power2 *= s.beta2;
    const step_constants constants{t == 1, 1 - power1, 1 - power2};
    if (s.rule == update_rule::lamb) {
      lamb_step(weight, other, plan.gradient(t), s, constants);
    } else {
      step_weight(weight, plan.gradient(t), s, constants);
    }
    // The sign of a NaN depends on the processor.
    if (t == plan.shown[shown.size()]) shown.push_back(std::isnan(weight.p) ? NAN : weight.p);
  }
  return shown;
}

}  // namespace fpinspect
