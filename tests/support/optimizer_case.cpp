// Random tensors, settings and inputs of an optimizer step: implementation.
#include "support/optimizer_case.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "numerics/update/stored.hpp"

namespace samebits::support {
namespace {

using enum stored_format;

template <class T, std::size_t N>
T one_of(random_words& next, const T (&choices)[N]) {
  return choices[next() % N];
}

std::size_t bytes_of(stored_format f) { return static_cast<std::size_t>(code_bytes(f)); }

/// An array of random codes: values that draw_word() gives, rounded to the format, or any bits.
array_memory draw_array(random_words& next, stored_format f, std::int64_t count,
                        std::uint32_t block) {
  array_memory a;
  a.format = f;
  const auto n = static_cast<std::size_t>(count);
  a.codes.resize(n * bytes_of(f));
  if (has_block_scales(f)) {
    a.scales.resize((n + block - 1) / block);
    for (float& s : a.scales)
      s = std::bit_cast<float>(one_of(next, {0x3F800000u, 0x2F000000u, draw_word(next)}));
  }
  if (f == none) return a;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t word = draw_word(next);
    const bool any = next() % 8 == 0;
    const std::uint32_t code =
        any ? word : numerics::stored_code(f, word, numerics::binary32::one, 0);
    std::memcpy(a.codes.data() + i * bytes_of(f), &code, bytes_of(f));
  }
  return a;
}

/// Chooses the combination of weights, master and low part.
void draw_weights(random_words& next, tensor_memory& t, tensor_formats formats) {
  stored_format weights = fp32;
  stored_format master = none;
  if (formats == tensor_formats::any) {
    switch (next() % 5) {
      case 0: weights = one_of(next, {fp32, bf16_nearest, fp16_nearest}); break;
      case 1: weights = one_of(next, {bf16_stochastic, fp16_stochastic}); break;
      case 2:
        weights = one_of(next, {bf16_nearest, fp16_nearest, e4m3_scaled, e5m2_scaled});
        master = one_of(next, {fp32, fp32, fp16_scaled});
        break;
      case 3:
        weights = bf16_nearest;
        t.low_kind = low_part::split;
        break;
      default: weights = bf16_nearest; t.low_kind = low_part::kahan;
    }
  }
  t.weights = draw_array(next, weights, t.count, t.block);
  t.master = draw_array(next, master, t.count, t.block);
  if (t.low_kind != low_part::none) t.low = draw_array(next, bf16_nearest, t.count, t.block);
}

bool is_of_torch(const optimizer_settings& s) {
  return s.profile == update_profile::torch_foreach || s.profile == update_profile::torch_fused;
}

tensor_memory draw_tensor(random_words& next, tensor_formats formats, std::int64_t max_count,
                          const std::vector<optimizer_settings>& groups) {
  tensor_memory t;
  t.count = static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(max_count + 1));
  t.block = one_of(next, {128u, 256u});
  t.group = static_cast<std::uint32_t>(next() % groups.size());
  t.stream = static_cast<std::uint32_t>(next() % (1u << 24));
  const optimizer_settings& s = groups[t.group];
  if (s.rule != update_rule::lamb) t.first_index = (next() >> (next() % 60)) / 256 * 256;
  draw_weights(next, t, formats);
  const bool any = formats == tensor_formats::any;
  stored_format gradient =
      any ? one_of(next, {fp32, bf16_nearest, fp16_nearest, e4m3_tensor, e5m2_tensor}) : fp32;
  stored_format states[2] = {fp32, fp32};
  if (any) {
    for (stored_format& f : states) {
      f = one_of(next, {fp32, bf16_nearest, fp16_nearest, bf16_stochastic, fp16_stochastic,
                        fp16_scaled, e4m3_scaled, e5m2_scaled, dynamic8_signed, dynamic8_unsigned});
    }
    // Refused for second states.
    if (states[1] == fp16_nearest || states[1] == fp16_stochastic) states[1] = fp16_scaled;
  }
  const bool bare = t.master.format == none && t.low_kind == low_part::none;
  if (is_of_torch(s) && bare) {  // one format for all arrays
    const stored_format f = any ? one_of(next, {fp32, bf16_nearest}) : fp32;
    t.weights = draw_array(next, f, t.count, t.block);
    gradient = states[0] = states[1] = f;
  }
  t.gradient = draw_array(next, gradient, t.count, t.block);
  if (any && next() % 3 == 0) t.gradient_scale = {std::bit_cast<float>(draw_word(next))};
  for (int i = 0; i < state_count(s); ++i) {
    t.states[static_cast<std::size_t>(i)] = draw_array(next, states[i], t.count, t.block);
  }
  return t;
}

}  // namespace

std::uint32_t array_memory::code(std::int64_t i) const {
  std::uint32_t code = 0;
  std::memcpy(&code, codes.data() + static_cast<std::size_t>(i) * bytes_of(format),
              bytes_of(format));
  return code;
}

std::uint32_t array_memory::scale(std::int64_t i, std::uint32_t block) const {
  if (scales.empty()) return numerics::binary32::one;
  return std::bit_cast<std::uint32_t>(scales[static_cast<std::size_t>(i / block)]);
}

stored_array array_memory::view(std::int64_t first, std::uint32_t block) {
  if (format == none) return {};
  stored_array v = {codes.data() + static_cast<std::size_t>(first) * bytes_of(format), format};
  if (!scales.empty()) v.scales = scales.data() + first / block;
  return v;
}

bool operator==(const array_memory& a, const array_memory& b) {
  const std::size_t bytes = a.scales.size() * sizeof(float);
  return a.codes == b.codes && a.scales.size() == b.scales.size() &&
         (bytes == 0 || std::memcmp(a.scales.data(), b.scales.data(), bytes) == 0);
}

optimizer_tensor tensor_memory::part(std::int64_t first, std::int64_t elements) {
  const stored_array g = gradient.view(first, block);
  const bool empty = count == 0;
  return {.weights = weights.view(first, block),
          .gradient = {g.codes, gradient.format,
                       gradient_scale.empty() ? nullptr : gradient_scale.data()},
          .master = master.view(first, block),
          .low = low_kind == low_part::none || empty ? nullptr : low.view(first, block).codes,
          .low_kind = low_kind,
          .states = {states[0].view(first, block), states[1].view(first, block)},
          .count = elements,
          .first_index = first_index + static_cast<std::uint64_t>(first),
          .stream = stream,
          .group = group,
          .block = block};
}

bool operator==(const tensor_memory& a, const tensor_memory& b) {
  return a.weights == b.weights && a.master == b.master && a.low == b.low && a.states == b.states &&
         a.gradient == b.gradient;
}

optimizer_list optimizer_case::list() {
  std::vector<optimizer_tensor> all;
  for (tensor_memory& t : tensors) all.push_back(t.whole());
  return optimizer_list(all);
}

optimizer_settings draw_settings(random_words& next) {
  optimizer_settings s;
  do {
    s.rule = static_cast<update_rule>(next() % enum_count<update_rule>);
    s.profile = static_cast<update_profile>(next() % enum_count<update_profile>);
  } while (!has_profile(s.rule, s.profile));
  s.learning_rate = one_of(next, {1e-3, 3e-4, 0.1, 0.0, 0.37});
  s.beta1 = one_of(next, {0.9, 0.95, 0.8, 0.6});
  s.beta2 = one_of(next, {0.999, 0.99, 0.95, 0.3});
  s.eps = one_of(next, {1e-8, 1e-6, 0.01, 0.0});
  s.weight_decay = one_of(next, {0.0, 0.01, 0.1, 3.0});
  s.momentum = one_of(next, {0.0, 0.9, 0.99});
  s.nesterov = s.momentum != 0 && next() % 2 == 0;
  s.dampening = s.nesterov ? 0.0 : one_of(next, {0.0, 0.1, 1.0});
  return s;
}

std::uint32_t draw_word(random_words& next) {
  const auto bits = static_cast<std::uint32_t>(next());
  const std::uint32_t sign = bits & 0x80000000u;
  switch (next() % 12) {
    case 0: return bits;
    case 1:
      return sign | one_of(next, {0u, 1u, 0x007FFFFFu, 0x00800000u, 0x7F7FFFFFu, 0x7F800000u,
                                  0x7FC00000u, 0x7F800001u, 0x3F800000u});
    case 2: return sign | (bits & 0x007FFFFFu);
    case 3: return sign | 0x3F7F8000u | (bits & 0xFFFFu);  // beside ties of 16-bit formats
    default: return sign | (0x30000000u + (bits & 0x0FFFFFFFu));
  }
}

optimizer_case draw_case(random_words& next, tensor_formats formats, std::int64_t max_count,
                         int max_tensors) {
  optimizer_case c;
  const auto groups = 1 + next() % 3;
  for (std::uint64_t i = 0; i < groups; ++i) c.groups.push_back(draw_settings(next));
  const auto tensors = next() % static_cast<std::uint64_t>(max_tensors + 1);
  for (std::uint64_t i = 0; i < tensors; ++i) {
    c.tensors.push_back(draw_tensor(next, formats, max_count, c.groups));
  }
  c.input.applied_steps = one_of<std::uint64_t>(next, {1, 1, 2, 6, 17, 1000, 123457});
  c.input.grad_mul = one_of(next, {1.0f, 0x1p-16f, 0.3f, 0x1p-130f});
  c.input.seed = next();
  return c;
}

}  // namespace samebits::support
