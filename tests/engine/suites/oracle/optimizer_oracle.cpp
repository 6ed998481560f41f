// Optimizer steps, stores and loads against the oracle: every rule, profile and format.
#include <algorithm>
#include <bit>

#include "engine/cases/operations.hpp"
#include "engine/cases/optimizer.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "numerics/update/constants.hpp"
#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/optimizer.hpp"
#include "oracle/philox.hpp"
#include "samebits/core/step_report.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

using words = std::vector<std::uint32_t>;

constexpr std::uint32_t one = 0x3F800000u;
const oracle::format& fp32() { return oracle_of(format_id::fp32); }
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
bool is_signed(stored_format f) { return f == stored_format::dynamic8_signed; }

/// An array of a case in memory: codes, and scales of blocks.
struct array {
  stored_format format;
  matrix_view codes, scales;
  std::uint32_t block;
  std::uint64_t first_index;

  [[nodiscard]] std::uint32_t code(std::int64_t i) const {
    return static_cast<std::uint32_t>(code_at(codes, 0, i));
  }
  [[nodiscard]] std::uint32_t value(std::int64_t i, std::uint32_t scale) const {
    const std::uint64_t wide = is_dynamic(format)
                                   ? oracle::dynamic_value(is_signed(format), code(i))
                                   : oracle::convert(oracle_of(codes.format), fp32(), code(i), {});
    return oracle::multiply32(static_cast<std::uint32_t>(wide), scale);
  }
  [[nodiscard]] words values() const {
    words all;
    for (std::int64_t i = 0; format != stored_format::none && i < codes.cols; ++i) {
      const bool scaled = has_block_scales(format);
      all.push_back(
          value(i, scaled ? static_cast<std::uint32_t>(code_at(scales, 0, i / block)) : one));
    }
    return all;
  }
  void store(const words& all, std::uint64_t seed, std::uint64_t stream) const {
    const auto count = static_cast<std::int64_t>(all.size());
    if (has_block_scales(format)) {
      for (std::int64_t first = 0; first < count; first += block) {
        const words in_block(all.begin() + first, all.begin() + std::min(first + block, count));
        const oracle::scaled_block stored =
            is_dynamic(format) ? oracle::dynamic_block(is_signed(format), in_block)
                               : oracle::stored_block(oracle_of(codes.format), in_block);
        put_code(scales, 0, first / block, stored.scale);
        for (std::size_t i = 0; i < in_block.size(); ++i) {
          put_code(codes, 0, first + static_cast<std::int64_t>(i), stored.codes[i]);
        }
      }
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      cast_rule rule;
      random_bits random;
      if (is_stochastic(format)) {
        rule.rounding = rounding::stochastic;
        const std::uint64_t index = first_index + static_cast<std::uint64_t>(i);
        random = {oracle::random_word(seed, stream, index, 16), 16};
      }
      put_code(codes, 0, i,
               oracle::convert(fp32(), oracle_of(codes.format), all[static_cast<std::size_t>(i)],
                               rule, random));
    }
  }
};

/// The weights of a tensor, which may stand in two arrays.
struct weight_arrays {
  array weights, master, low;
  low_part kind;

  [[nodiscard]] words values() const {
    if (master.format != stored_format::none) return master.values();
    if (kind == low_part::none) return weights.values();
    words all;
    for (std::int64_t i = 0; i < weights.codes.cols; ++i) {
      const oracle::halves x = {weights.code(i), low.code(i)};
      all.push_back(kind == low_part::split ? oracle::joined(x) : oracle::compensated(x));
    }
    return all;
  }
  void store(const words& all, std::uint64_t seed, std::uint64_t stream) const {
    if (kind == low_part::none) {
      if (master.format != stored_format::none) master.store(all, seed, stream);
      return weights.store(all, seed, stream);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const oracle::halves x =
          kind == low_part::split ? oracle::split(all[i]) : oracle::kahan(all[i]);
      put_code(weights.codes, 0, static_cast<std::int64_t>(i), x.high);
      put_code(low.codes, 0, static_cast<std::int64_t>(i), x.low);
    }
  }
};

oracle::update_settings settings_of(const optimizer_settings& s) {
  return {s.rule,
          s.profile,
          bits(s.learning_rate),
          bits(s.beta1),
          bits(s.beta2),
          bits(s.eps),
          bits(s.weight_decay),
          bits(s.momentum),
          bits(s.dampening),
          s.nesterov};
}

oracle::update_inputs inputs_of(const optimizer_settings& s, std::uint64_t step, float grad_mul) {
  oracle::update_inputs inputs = {step, std::bit_cast<std::uint32_t>(grad_mul)};
  // unit.optimizer compares these with recordings of a GPU.
  const auto correction = [&](double beta) {
    return numerics::update_detail::fused_bias_correction(
        std::bit_cast<std::uint32_t>(static_cast<float>(beta)), step);
  };
  inputs.fused_correction1 = correction(s.beta1);
  inputs.fused_correction2 = correction(s.beta2);
  return inputs;
}

/// A step of tensor number `tensor`.
void update(const optimizer_case& c, const call_site& site, std::size_t tensor,
            const optimizer_settings& s, const oracle::update_inputs& inputs) {
  const optimizer_plan& t = c.tensors[tensor];
  const auto array_at = [&](stored_format f, std::size_t which) {
    const std::size_t at = tensor * optimizer_buffers::of_tensor + which;
    return array{f, site.views[at], site.views[at + 1], t.block, t.first_index};
  };
  using namespace optimizer_buffers;
  const weight_arrays w = {array_at(t.weights, weights), array_at(t.master, master),
                           array_at(stored_format::bf16_nearest, low), t.low};
  const array gradients = array_at(t.gradient, gradient);
  const array moments[] = {array_at(t.states[0], states), array_at(t.states[1], states + 2)};
  const bool bare = t.master == stored_format::none && t.low == low_part::none;
  const oracle::format* narrow =
      bare && t.weights == stored_format::bf16_nearest ? &oracle_of(format_id::bf16) : nullptr;
  const oracle::update_settings settings = settings_of(s);
  words p = w.values();
  words state[2] = {moments[0].values(), moments[1].values()};
  const auto number = [&](const words& all, std::size_t i) { return all.empty() ? 0 : all[i]; };
  const std::uint32_t scale =
      t.gradient_scale ? static_cast<std::uint32_t>(code_at(gradients.scales, 0, 0)) : one;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const std::uint32_t g = gradients.value(static_cast<std::int64_t>(i), scale);
    const oracle::updated x = oracle::update_element(
        settings, inputs, {p[i], number(state[0], i), number(state[1], i)}, g, narrow);
    p[i] = x.weight;
    if (!state[0].empty()) state[0][i] = x.first;
    if (!state[1].empty()) state[1][i] = x.second;
  }
  const auto stream = [&](stream_purpose purpose) {
    return random_stream_number(purpose, t.stream, inputs.step);
  };
  for (std::size_t k = 0; k < 2; ++k) {
    if (state[k].empty()) continue;
    moments[k].store(state[k], c.seed,
                     stream(k == 0 ? stream_purpose::first_state : stream_purpose::second_state));
    state[k] = moments[k].values();
  }
  if (s.rule == update_rule::lamb) {
    words directions;
    for (std::size_t i = 0; i < p.size(); ++i) {
      directions.push_back(
          oracle::lamb_direction(settings, inputs, {p[i], state[0][i], state[1][i]}));
    }
    p = oracle::lamb_weights(settings, p, directions);
  }
  w.store(p, c.seed, stream(stream_purpose::weights));
}

returned_values step_by_oracle(const optimizer_case& c, const call_site& site) {
  if (c.decision == step_decision::skipped) return {};
  const step_input in = input_of(c, site);
  const std::uint64_t step = in.decision == nullptr ? in.applied_steps : in.decision->applied_steps;
  const float grad_mul = in.decision == nullptr ? in.grad_mul : in.decision->grad_mul;
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    optimizer_settings s = c.groups[c.tensors[i].group];
    if (in.learning_rates != nullptr) {
      s.learning_rate = static_cast<double>(in.learning_rates[c.tensors[i].group]);
    }
    update(c, site, i, s, inputs_of(s, step, grad_mul));
  }
  return {};
}

TEST(OptimizerOracle, Steps) {
  expect_on_hosts(optimizer_operation(), "the oracle", step_by_oracle, 250);
}

returned_values store_by_oracle(const store_case& c, const call_site& site) {
  const array stored = {c.format, site.views[at_stored], site.views[at_stored_scales],
                        c.options.block, c.options.first_index};
  const weight_arrays w = {stored,
                           {stored_format::none, {}, {}, 0, 0},
                           {stored_format::bf16_nearest, site.views[at_low], {}, 0, 0},
                           c.low};
  words before = w.values(), values;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if ((before[i] & 0x7FFFFFFFu) > 0x7F800000u) before[i] = 0x7FFFFFFFu;
    put_code(site.views[at_loaded], 0, static_cast<std::int64_t>(i), before[i]);
  }
  for (std::int64_t i = 0; i < c.count; ++i) {
    const auto value = static_cast<std::uint32_t>(
        oracle::convert(oracle_of(c.values), fp32(), code_at(site.views[at_values], 0, i), {}));
    values.push_back(value);
  }
  w.store(values, c.options.seed, c.options.stream);
  return {};
}

TEST(OptimizerOracle, StoresAndLoads) {
  expect_on_hosts(store_operation(), "the oracle", store_by_oracle, 400);
}

}  // namespace
}  // namespace samebits::support
