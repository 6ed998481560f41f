// What an optimizer makes of a weight that is kept in different ways: by optimizer_step().
#include "fpinspect/explore/update/weight_life.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "samebits/optimizer.hpp"

namespace fpinspect {
namespace {

using samebits::low_part;
using samebits::stored_format;

constexpr std::size_t count = equal_weights + 1;
static_assert(count <= scale_block);

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
  std::vector<float> codes_ = std::vector<float>(count);  // aligned for all formats
  float scale_ = 1;
};

/// The first `n` values of an array.
std::vector<float> values_of(const samebits::stored_array& array, std::size_t n = count,
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
  std::vector<std::uint16_t> low = std::vector<std::uint16_t>(count);
  std::vector<float> first = std::vector<float>(count);
  std::vector<float> second = std::vector<float>(count);

  kept_tensor(const weight_mode& chosen, const update_plan& plan)
      : mode(chosen), weights(chosen.weights), master(chosen.master) {
    std::vector<float> start(count, plan.start);
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
            .count = count,
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
  std::vector<float> gradient(count);
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

}  // namespace fpinspect
