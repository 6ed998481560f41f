// Optimizer steps: every rule, profile and format against the oracle, on any executor; shards, loss
// scales, skipped steps.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "numerics/update/constants.hpp"
#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/optimizer.hpp"
#include "oracle/philox.hpp"
#include "samebits/optimizer.hpp"
#include "support/backends.hpp"
#include "support/optimizer_case.hpp"
#include "support/property.hpp"

namespace samebits {
namespace {

using namespace support;
using words = std::vector<std::uint32_t>;

const oracle::format& codes_of(stored_format f) {
  using enum stored_format;
  switch (f) {
    case bf16_nearest:
    case bf16_stochastic: return oracle::format_named("bf16");
    case fp16_nearest:
    case fp16_stochastic:
    case fp16_scaled: return oracle::format_named("fp16");
    case e4m3_scaled:
    case e4m3_tensor: return oracle::format_named("e4m3");
    case e5m2_scaled:
    case e5m2_tensor: return oracle::format_named("e5m2");
    default: return oracle::format_named("fp32");
  }
}

bool is_signed(stored_format f) { return f == stored_format::dynamic8_signed; }

std::uint32_t value_of(const array_memory& a, std::int64_t i, std::uint32_t scale) {
  if (is_dynamic(a.format)) {
    return oracle::multiply32(oracle::dynamic_value(is_signed(a.format), a.code(i)), scale);
  }
  const auto wide = static_cast<std::uint32_t>(
      oracle::convert(codes_of(a.format), oracle::format_named("fp32"), a.code(i), {}));
  return oracle::multiply32(wide, scale);
}

words values_of(const array_memory& a, const tensor_memory& t) {
  words all;
  for (std::int64_t i = 0; a.format != stored_format::none && i < t.count; ++i) {
    all.push_back(value_of(a, i, a.scale(i, t.block)));
  }
  return all;
}

/// What an array must hold after values were stored in it.
void store(array_memory& a, const tensor_memory& t, const words& values, std::uint64_t seed,
           std::uint64_t stream) {
  const oracle::format& to = codes_of(a.format);
  const auto put = [&](std::size_t i, std::uint32_t code) {
    const auto bytes = static_cast<std::size_t>(code_bytes(a.format));
    std::memcpy(a.codes.data() + i * bytes, &code, bytes);
  };
  if (has_block_scales(a.format)) {
    for (std::size_t first = 0; first < values.size(); first += t.block) {
      const std::size_t end = std::min<std::size_t>(first + t.block, values.size());
      const auto at = [&](std::size_t i) {
        return values.begin() + static_cast<std::ptrdiff_t>(i);
      };
      const words in_block(at(first), at(end));
      const oracle::scaled_block block = is_dynamic(a.format)
                                             ? oracle::dynamic_block(is_signed(a.format), in_block)
                                             : oracle::stored_block(to, in_block);
      a.scales[first / t.block] = std::bit_cast<float>(block.scale);
      for (std::size_t i = first; i < end; ++i) put(i, block.codes[i - first]);
    }
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    cast_rule rule;
    random_bits bits;
    if (is_stochastic(a.format)) {
      rule.rounding = rounding::stochastic;
      bits = {oracle::random_word(seed, stream, t.first_index + i, 16), 16};
    }
    put(i, static_cast<std::uint32_t>(
               oracle::convert(oracle::format_named("fp32"), to, values[i], rule, bits)));
  }
}

words weights_of(const tensor_memory& t) {
  if (t.master.format != stored_format::none) return values_of(t.master, t);
  if (t.low_kind == low_part::none) return values_of(t.weights, t);
  words all;
  for (std::int64_t i = 0; i < t.count; ++i) {
    const oracle::halves x = {t.weights.code(i), t.low.code(i)};
    all.push_back(t.low_kind == low_part::split ? oracle::joined(x) : oracle::compensated(x));
  }
  return all;
}

void store_weights(tensor_memory& t, const words& values, std::uint64_t seed,
                   std::uint64_t stream) {
  if (t.low_kind == low_part::none) {
    if (t.master.format != stored_format::none) store(t.master, t, values, seed, stream);
    return store(t.weights, t, values, seed, stream);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const oracle::halves x =
        t.low_kind == low_part::split ? oracle::split(values[i]) : oracle::kahan(values[i]);
    std::memcpy(t.weights.codes.data() + i * 2, &x.high, 2);
    std::memcpy(t.low.codes.data() + i * 2, &x.low, 2);
  }
}

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

oracle::update_settings oracle_settings(const optimizer_settings& s) {
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

oracle::update_inputs oracle_inputs(const optimizer_settings& s, const step_input& in) {
  oracle::update_inputs inputs = {in.applied_steps, std::bit_cast<std::uint32_t>(in.grad_mul)};
  // unit.optimizer compares these with recordings of a GPU.
  const auto correction = [&](double beta) {
    return numerics::update_detail::fused_bias_correction(
        std::bit_cast<std::uint32_t>(static_cast<float>(beta)), in.applied_steps);
  };
  inputs.fused_correction1 = correction(s.beta1);
  inputs.fused_correction2 = correction(s.beta2);
  return inputs;
}

/// A step of one tensor by the oracle.
void update_by_oracle(tensor_memory& t, const optimizer_settings& s, const step_input& in) {
  const oracle::update_settings settings = oracle_settings(s);
  const oracle::update_inputs inputs = oracle_inputs(s, in);
  const bool bare = t.master.format == stored_format::none && t.low_kind == low_part::none;
  const oracle::format* narrow = bare && t.weights.format == stored_format::bf16_nearest
                                     ? &codes_of(t.weights.format)
                                     : nullptr;
  words p = weights_of(t);
  words state[2] = {values_of(t.states[0], t), values_of(t.states[1], t)};
  const std::uint32_t one = 0x3F800000u;
  const auto number = [&](const words& all, std::size_t i) { return all.empty() ? 0 : all[i]; };
  for (std::size_t i = 0; i < p.size(); ++i) {
    const std::uint32_t scale =
        t.gradient_scale.empty() ? one : std::bit_cast<std::uint32_t>(t.gradient_scale[0]);
    const std::uint32_t g = value_of(t.gradient, static_cast<std::int64_t>(i), scale);
    const oracle::updated x = oracle::update_element(
        settings, inputs, {p[i], number(state[0], i), number(state[1], i)}, g, narrow);
    p[i] = x.weight;
    if (!state[0].empty()) state[0][i] = x.first;
    if (!state[1].empty()) state[1][i] = x.second;
  }
  for (std::size_t k = 0; k < 2; ++k) {
    const auto purpose = k == 0 ? stream_purpose::first_state : stream_purpose::second_state;
    if (state[k].empty()) continue;
    store(t.states[k], t, state[k], in.seed,
          random_stream_number(purpose, t.stream, in.applied_steps));
    state[k] = values_of(t.states[k], t);
  }
  if (s.rule == update_rule::lamb) {
    words directions;
    for (std::size_t i = 0; i < p.size(); ++i) {
      directions.push_back(
          oracle::lamb_direction(settings, inputs, {p[i], state[0][i], state[1][i]}));
    }
    p = oracle::lamb_weights(settings, p, directions);
  }
  store_weights(t, p, in.seed,
                random_stream_number(stream_purpose::weights, t.stream, in.applied_steps));
}

std::string text_of(const optimizer_settings& s) {
  return "rule " + std::to_string(static_cast<int>(s.rule)) + " profile " +
         std::to_string(static_cast<int>(s.profile));
}

void require_equal(const optimizer_case& got, const optimizer_case& expected, const char* what) {
  for (std::size_t i = 0; i < got.tensors.size(); ++i) {
    const tensor_memory& a = got.tensors[i];
    const tensor_memory& b = expected.tensors[i];
    if (a == b) continue;
    const char* array = !(a.states[0] == b.states[0])   ? "states[0]"
                        : !(a.states[1] == b.states[1]) ? "states[1]"
                                                        : "weights";
    RC_FAIL(std::string(what) + ": tensor " + std::to_string(i) + ", " +
            text_of(expected.groups[a.group]) + ", weights format " +
            std::to_string(static_cast<int>(a.weights.format)) + ", low " +
            std::to_string(static_cast<int>(a.low_kind)) + ": " + array + " differ");
  }
}

executor draw_executor(random_words& next) {
  const std::vector<std::string> names = supported_backends();
  return find_executor(names[next() % names.size()], static_cast<int>(next() % 4));
}

random_words engine() { return random_words(*rc::gen::arbitrary<std::uint64_t>()); }

void check_against_oracle(tensor_formats formats, std::int64_t max_count) {
  random_words next = engine();
  optimizer_case given = draw_case(next, formats, max_count, 4);
  optimizer_case expected = given;
  for (tensor_memory& t : expected.tensors)
    update_by_oracle(t, expected.groups[t.group], given.input);
  optimizer_step(given.list(), given.groups, given.input, draw_executor(next));
  require_equal(given, expected, "oracle");
}

TEST(optimizer, steps_equal_the_oracle) {
  expect_holds("fp32 tensors", 300, [] { check_against_oracle(tensor_formats::fp32, 40); });
  expect_holds("any formats", 300, [] { check_against_oracle(tensor_formats::any, 40); });
  expect_holds("several blocks", 20, [] { check_against_oracle(tensor_formats::any, 600); });
}

words canonical(words values) {
  for (std::uint32_t& x : values) {
    if ((x & 0x7FFFFFFFu) > 0x7F800000u) x = 0x7FFFFFFFu;
  }
  return values;
}

/// Loads the values of all arrays of a tensor, then stores its gradient in each. No array is the
/// gradient itself.
void check_stores(random_words& next, tensor_memory& t) {
  const words values = canonical(values_of(t.gradient, t));
  const format_id format = *find_format(codes_of(t.gradient.format).name);
  tensor_memory expected = t;
  const auto check = [&](array_memory& a, array_memory& stored, low_part low) {
    if (a.format == stored_format::none) return;
    store_options options = {t.block, t.first_index, next(), next()};
    if (low != low_part::none) options.low = t.low.codes.data();
    options.low_kind = low;
    const words before = low == low_part::none ? values_of(a, t) : weights_of(t);
    words loaded(values.size());
    load(a.view(0, t.block), view_of_codes(format_id::fp32, loaded.data(), 1, t.count), options,
         draw_executor(next));
    RC_ASSERT(loaded == canonical(before));
    samebits::store(view_of_codes(format, t.gradient.codes.data(), 1, t.count), a.view(0, t.block),
                    options, draw_executor(next));
    if (low != low_part::none) return store_weights(expected, values, 0, 0);
    store(stored, expected, values, options.seed, options.stream);
  };
  check(t.weights, expected.weights, t.low_kind);
  check(t.master, expected.master, low_part::none);
  for (std::size_t i = 0; i < 2; ++i) check(t.states[i], expected.states[i], low_part::none);
  RC_ASSERT(t == expected);
}

TEST(optimizer, stores_and_loads_equal_the_oracle) {
  expect_holds("stores and loads", 300, [] {
    random_words next = engine();
    const std::int64_t max_count = next() % 8 == 0 ? 3000 : 300;
    for (tensor_memory& t : draw_case(next, tensor_formats::any, max_count, 3).tensors) {
      if (code_bytes(t.gradient.format) > 1) check_stores(next, t);
    }
  });
}

TEST(optimizer, shards_have_the_bits_of_whole_parameters) {
  expect_holds("shards", 60, [] {
    random_words next = engine();
    optimizer_case given = draw_case(next, tensor_formats::any, 9000, 3);
    const auto is_lamb = [](const optimizer_settings& s) { return s.rule == update_rule::lamb; };
    if (std::any_of(given.groups.begin(), given.groups.end(), is_lamb)) return;
    optimizer_case whole = given;
    optimizer_step(whole.list(), whole.groups, whole.input, draw_executor(next));
    std::vector<optimizer_tensor> shards;
    for (tensor_memory& t : given.tensors) {
      std::int64_t first = 0;
      while (first < t.count) {
        const auto blocks = static_cast<std::int64_t>(1 + next() % 20);
        const std::int64_t count = std::min(blocks * 256, t.count - first);
        shards.push_back(t.part(first, count));
        first += count;
      }
    }
    std::shuffle(shards.begin(), shards.end(), next);
    optimizer_step(optimizer_list(shards), given.groups, given.input, draw_executor(next));
    require_equal(given, whole, "shards");
  });
}

TEST(optimizer, powers_of_two_as_loss_scales_do_not_change_bits) {
  expect_holds("loss scales", 60, [] {
    random_words next = engine();
    optimizer_case small = draw_case(next, tensor_formats::fp32, 200, 3);
    optimizer_case large = small;
    for (std::size_t i = 0; i < small.tensors.size(); ++i) {
      auto* const g = reinterpret_cast<float*>(small.tensors[i].gradient.codes.data());
      auto* const h = reinterpret_cast<float*>(large.tensors[i].gradient.codes.data());
      for (std::int64_t k = 0; k < small.tensors[i].count; ++k) {
        g[k] = std::bit_cast<float>(0x38000000u + static_cast<std::uint32_t>(next() % 0x0FFFFFFFu));
        h[k] = g[k] * 0x1p20f;
      }
    }
    small.input.grad_mul = 0x1p-3f;
    large.input.grad_mul = 0x1p-23f;
    optimizer_step(small.list(), small.groups, small.input, draw_executor(next));
    optimizer_step(large.list(), large.groups, large.input, draw_executor(next));
    for (std::size_t i = 0; i < small.tensors.size(); ++i) {
      RC_ASSERT(small.tensors[i].weights == large.tensors[i].weights);
      RC_ASSERT(small.tensors[i].states == large.tensors[i].states);
    }
  });
}

TEST(optimizer, skipped_steps_change_no_byte) {
  expect_holds("skipped", 60, [] {
    random_words next = engine();
    optimizer_case given = draw_case(next, tensor_formats::any, 700, 3);
    const optimizer_case before = given;
    step_report decision;
    decision.applied = false;
    decision.applied_steps = 3;
    given.input.decision = &decision;
    optimizer_step(given.list(), given.groups, given.input, draw_executor(next));
    require_equal(given, before, "skipped");
  });
}

}  // namespace
}  // namespace samebits
