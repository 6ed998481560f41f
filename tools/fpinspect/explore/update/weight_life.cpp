// What an optimizer makes of a weight that is kept in different ways: by optimizer_step().
#include "fpinspect/explore/update/weight_life.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "fpinspect/explore/demos/step.hpp"
#include "samebits/optimizer.hpp"
#include "samebits/scalar.hpp"

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
    const bool scaled = samebits::has_block_scales(format_);
    return {codes_.data(), format_, scaled ? &scale_ : nullptr};
  }
  [[nodiscard]] double value(std::size_t i) const {
    std::uint64_t code = 0;
    const auto bytes = static_cast<std::size_t>(samebits::code_bytes(format_));
    std::memcpy(&code, data() + i * bytes, bytes);
    const auto decoded = static_cast<float>(samebits::decode_double(codes_of(format_), code));
    const float value = samebits::has_block_scales(format_) ? decoded * scale_ : decoded;
    return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value;  // without sign
  }
  void set(std::size_t i, float value) {
    const std::uint64_t code = rounded(codes_of(format_), value / scale_).code;
    const auto bytes = static_cast<std::size_t>(samebits::code_bytes(format_));
    std::memcpy(data() + i * bytes, &code, bytes);
  }
  /// Sets the scale of fp16_scaled for a largest magnitude (contract, section 12).
  void set_scale(float amax) {
    if (format_ != stored_format::fp16_scaled || amax == 0) return;
    const int exponent = std::max(std::ilogb(amax), -126);
    scale_ = std::ldexp(1.0F, std::max(exponent - 14, -126));
  }

 private:
  [[nodiscard]] std::byte* data() { return reinterpret_cast<std::byte*>(codes_.data()); }
  [[nodiscard]] const std::byte* data() const {
    return reinterpret_cast<const std::byte*>(codes_.data());
  }

  stored_format format_;
  std::vector<float> codes_ = std::vector<float>(count);  // aligned for all formats
  float scale_ = 1;
};

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
    const float amax = std::max(std::abs(plan.start), std::abs(plan.block_amax));
    master.set_scale(amax);
    for (std::size_t i = 0; i < count; ++i) begin(i, i + 1 < count ? plan.start : plan.block_amax);
  }

  /// What the optimizer computes with.
  [[nodiscard]] double kept(std::size_t i) const {
    if (mode.master != stored_format::none) return master.value(i);
    const auto upper = static_cast<float>(weights.value(i));
    const std::uint32_t code = low[i];
    if (mode.low == low_part::split) {
      const auto bits = __builtin_bit_cast(std::uint32_t, upper);
      return __builtin_bit_cast(float, bits - (code >> 15 << 16) + code);
    }
    if (mode.low == low_part::none) return upper;
    return upper + static_cast<float>(samebits::decode_double(samebits::format_id::bf16, code));
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
  /// Stores a weight before the first step. A copy of a master weight is left to optimizer_step().
  void begin(std::size_t i, float value) {
    if (mode.master != stored_format::none) return master.set(i, value);
    weights.set(i, value);
    const auto upper = static_cast<float>(weights.value(i));
    if (mode.low == low_part::kahan) {
      low[i] = static_cast<std::uint16_t>(rounded(samebits::format_id::bf16, value - upper).code);
    } else if (mode.low == low_part::split) {
      low[i] = static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, value));
      // the upper half plus the sign of the lower one
      const auto bits = (__builtin_bit_cast(std::uint32_t, value) + 0x8000U) & 0xFFFF0000U;
      weights.set(i, __builtin_bit_cast(float, bits));
    }
  }
};

/// Writes the weights of all tensors that have master weights: a step with the learning rate 0.
void write_copies(const samebits::optimizer_list& list) {
  constexpr samebits::optimizer_settings nothing{.rule = samebits::update_rule::sgd,
                                                 .learning_rate = 0};
  optimizer_step(list, {&nothing, 1});
}

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
  write_copies(list);
  std::vector<weight_life> lives(kept.size());
  std::vector<double> last;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    last.push_back(kept[i].weights.value(0));
    lives[i].read.push_back(last[i]);
  }
  for (std::uint64_t t = 1; t <= plan.shown.back(); ++t) {
    std::fill_n(gradient.begin(), equal_weights, plan.gradient(t));
    optimizer_step(list, {&plan.settings, 1}, {.applied_steps = t, .seed = plan.seed});
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const double read = kept[i].weights.value(0);
      const bool stays = read == last[i] || (std::isnan(read) && std::isnan(last[i]));
      if (!stays) lives[i].last_change = t;
      last[i] = read;
      if (t == plan.shown[lives[i].read.size()]) lives[i].read.push_back(read);
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    lives[i].kept = kept[i].kept(0);
    for (std::size_t k = 0; k < equal_weights; ++k) {
      lives[i].equal.push_back(kept[i].weights.value(k));
    }
  }
  return lives;
}

}  // namespace fpinspect
