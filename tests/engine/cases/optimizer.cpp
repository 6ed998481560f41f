// Steps of an optimizer: any rule, profile, format and size.
#include "engine/cases/optimizer.hpp"

#include <bit>
#include <cstring>
#include <string>

#include "engine/cases/operations.hpp"
#include "numerics/update/stored.hpp"
#include "samebits/core/step_report.hpp"

namespace samebits::support {
namespace {

using enum stored_format;

template <class T>
T one_of(std::initializer_list<T> values, const word_source& next) {
  return std::data(values)[next() % values.size()];
}

/// The format of codes as numbers; dynamic codes and absent arrays are bytes.
format_id format_of_codes(stored_format f) {
  switch (code_bytes(f)) {
    case 4: return format_id::fp32;
    case 2: return f == bf16_nearest || f == bf16_stochastic ? format_id::bf16 : format_id::fp16;
    default: return f == e5m2_scaled || f == e5m2_tensor ? format_id::e5m2 : format_id::e4m3;
  }
}

/// The array at two buffers.
stored_array stored_at(stored_format format, const call_site& site, std::size_t buffer) {
  if (format == none) return {};
  return {site.views[buffer].data, format,
          has_block_scales(format) ? site.pointer<float>(buffer + 1) : nullptr};
}

/// Settings of any rule and profile.
optimizer_settings draw_settings(const word_source& next) {
  optimizer_settings s;
  do {
    s.rule = any_enumerator<update_rule>(next);
    s.profile = any_enumerator<update_profile>(next);
  } while (!has_profile(s.rule, s.profile));
  s.learning_rate = one_of({1e-3, 3e-4, 0.1, 0.0, 0.37}, next);
  s.beta1 = one_of({0.9, 0.95, 0.8, 0.6}, next);
  s.beta2 = one_of({0.999, 0.99, 0.95, 0.3}, next);
  s.eps = one_of({1e-8, 1e-6, 0.01, 0.0}, next);
  s.weight_decay = one_of({0.0, 0.01, 0.1, 3.0}, next);
  s.momentum = one_of({0.0, 0.9, 0.99}, next);
  s.nesterov = s.momentum != 0 && next() % 2 == 0;
  s.dampening = s.nesterov ? 0.0 : one_of({0.0, 0.1, 1.0}, next);
  return s;
}

/// A binary32 code: NaN, Inf, zeros, subnormals, extremes, any bits, or ordinary numbers.
std::uint32_t draw_word(const word_source& next) {
  const auto bits = static_cast<std::uint32_t>(next());
  const std::uint32_t sign = bits & 0x80000000u;
  switch (next() % 12) {
    case 0: return bits;
    case 1:
      return sign | one_of({0u, 1u, 0x007FFFFFu, 0x00800000u, 0x7F7FFFFFu, 0x7F800000u, 0x7FC00000u,
                            0x7F800001u, 0x3F800000u},
                           next);
    case 2: return sign | (bits & 0x007FFFFFu);
    case 3: return sign | 0x3F7F8000u | (bits & 0xFFFFu);  // beside ties of 16-bit formats
    default: return sign | (0x30000000u + (bits & 0x0FFFFFFFu));
  }
}

/// Chooses the combination of weights, master and low part.
void draw_weights(optimizer_plan& t, const word_source& next) {
  switch (next() % 5) {
    case 0: t.weights = one_of({fp32, bf16_nearest, fp16_nearest}, next); break;
    case 1: t.weights = one_of({bf16_stochastic, fp16_stochastic}, next); break;
    case 2:
      t.weights = one_of({bf16_nearest, fp16_nearest, e4m3_scaled, e5m2_scaled}, next);
      t.master = one_of({fp32, fp32, fp16_scaled}, next);
      break;
    default: t.weights = bf16_nearest; t.low = one_of({low_part::split, low_part::kahan}, next);
  }
}

bool is_of_torch(const optimizer_settings& s) {
  return s.profile == update_profile::torch_foreach || s.profile == update_profile::torch_fused;
}

bool is_bare(const optimizer_plan& t) { return t.master == none && t.low == low_part::none; }

optimizer_plan draw_plan(bool any, std::int64_t max_count,
                         const std::vector<optimizer_settings>& groups, const word_source& next) {
  optimizer_plan t;
  t.count = below(max_count + 1, next);
  t.block = one_of({128u, 256u}, next);
  t.group = static_cast<std::uint32_t>(next() % groups.size());
  t.stream = static_cast<std::uint32_t>(next() % (1u << 24));
  const optimizer_settings& s = groups[t.group];
  if (s.rule != update_rule::lamb) t.first_index = (next() >> (next() % 60)) / 256 * 256;
  if (below(3, next) == 0) t.shift = static_cast<int>(below(8, next));
  std::array<stored_format, 2> states = {fp32, fp32};
  if (any) {
    draw_weights(t, next);
    t.gradient = one_of({fp32, bf16_nearest, fp16_nearest, e4m3_tensor, e5m2_tensor}, next);
    t.gradient_scale = next() % 3 == 0;
    for (stored_format& f : states) {
      f = one_of({fp32, bf16_nearest, fp16_nearest, bf16_stochastic, fp16_stochastic, fp16_scaled,
                  e4m3_scaled, e5m2_scaled, dynamic8_signed, dynamic8_unsigned},
                 next);
    }
    // Refused for second states.
    if (states[1] == fp16_nearest || states[1] == fp16_stochastic) states[1] = fp16_scaled;
  }
  if (is_of_torch(s) && is_bare(t)) {  // one format for all arrays
    const stored_format f = any ? one_of({fp32, bf16_nearest}, next) : fp32;
    t.weights = t.gradient = states[0] = states[1] = f;
  }
  for (int i = 0; i < state_count(s); ++i) {
    t.states[static_cast<std::size_t>(i)] = states[static_cast<std::size_t>(i)];
  }
  const auto scaled = [](stored_format f) { return has_block_scales(f); };
  const bool any_first = !scaled(t.weights) && !scaled(t.master) && !scaled(t.states[0]) &&
                         !scaled(t.states[1]) && s.rule != update_rule::lamb;
  if (any_first && below(4, next) == 0)
    t.first_index += static_cast<std::uint64_t>(below(256, next));
  return t;
}

optimizer_case draw_step(const word_source& next) {
  optimizer_case c;
  const bool many_groups = next() % 32 == 0;  // of which kernels need several rounds
  const auto groups = many_groups ? 40 : 1 + next() % 3;
  for (std::uint64_t i = 0; i < groups; ++i) c.groups.push_back(draw_settings(next));
  const bool any = next() % 4 != 0;
  const std::int64_t sizes[] = {40, 40, 40, 40, 40, 40, 700, 3000};
  const bool long_list = next() % 256 == 0, large = next() % 64 == 0;
  const std::int64_t max_count = long_list ? 60 : large ? 20'000 : support::one_of(sizes, next);
  const auto tensors = below(long_list ? 2000 : large ? 3 : many_groups ? 80 : 5, next);
  for (std::int64_t i = 0; i < tensors; ++i) {
    c.tensors.push_back(draw_plan(any, max_count, c.groups, next));
  }
  c.applied_steps = one_of<std::uint64_t>({1, 1, 2, 6, 17, 1000, 123457}, next);
  c.grad_mul = one_of({1.0f, 0x1p-16f, 0.3f, 0x1p-130f}, next);
  c.seed = next();
  if (below(4, next) == 0) c.decision = static_cast<step_decision>(1 + below(2, next));
  c.learning_rates = below(4, next) == 0;
  return c;
}

/// Adds codes and scales of an array: values that draw_word() gives, rounded to the format, or any
/// bits.
void add_array(buffers& all, const std::string& name, stored_format f, const optimizer_plan& t,
               const word_source& next) {
  const std::int64_t count = f == none ? 0 : t.count;
  const format_id format = format_of_codes(f);
  const std::int64_t bytes = storage_bytes(format);
  strided_buffer codes(format, {1, count, count, 1, t.shift * bytes % 8});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t word = draw_word(next);
    const bool any = next() % 8 == 0;
    const std::uint32_t code =
        any ? word : numerics::stored_code(f, word, numerics::binary32::one, 0);
    codes.store(i, code & (~std::uint64_t{0} >> (64 - 8 * bytes)));
  }
  all.push_back({name, buffer_use::given, std::move(codes)});
  if (name == "low") return;
  const std::int64_t scales = name == "gradient"    ? (t.gradient_scale ? 1 : 0)
                              : has_block_scales(f) ? (count + t.block - 1) / t.block
                                                    : 0;
  strided_buffer factors(format_id::fp32, dense_layout(1, scales));
  for (std::int64_t i = 0; i < scales; ++i) {
    const bool any = name == "gradient";
    factors.store(
        i, any ? draw_word(next) : one_of({0x3F800000u, 0x2F000000u, draw_word(next)}, next));
  }
  all.push_back({name + " scales", buffer_use::given, std::move(factors)});
}

buffers memory_of_step(const optimizer_case& c) {
  const word_source next = words_from(c.content);
  buffers all;
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    const optimizer_plan& t = c.tensors[i];
    add_array(all, "weights", t.weights, t, next);
    add_array(all, "gradient", t.gradient, t, next);
    add_array(all, "master", t.master, t, next);
    add_array(all, "low", t.low == low_part::none ? none : bf16_nearest, t, next);
    add_array(all, "states[0]", t.states[0], t, next);
    add_array(all, "states[1]", t.states[1], t, next);
    for (std::size_t k = all.size() - optimizer_buffers::of_tensor; k < all.size(); ++k) {
      all[k].name = "tensor " + std::to_string(i) + " " + all[k].name;
    }
  }
  step_report report;
  report.applied = c.decision == step_decision::applied;
  report.applied_steps = c.applied_steps + 3;
  report.grad_mul = c.grad_mul / 4;
  std::byte bytes[sizeof report];
  std::memcpy(bytes, &report, sizeof report);
  strided_buffer decision(format_id::e4m3, dense_layout(1, sizeof report));
  for (std::size_t i = 0; i < sizeof report; ++i) {
    decision.store(static_cast<std::int64_t>(i), std::to_integer<std::uint64_t>(bytes[i]));
  }
  all.push_back({"decision", buffer_use::fixed, std::move(decision)});
  const auto groups = static_cast<std::int64_t>(c.groups.size());
  strided_buffer rates(format_id::fp32, dense_layout(1, groups));
  for (std::int64_t i = 0; i < groups; ++i) {
    rates.store(i, std::bit_cast<std::uint32_t>(one_of({0.0f, 0.02f, 1e-5f, 3.0f}, next)));
  }
  all.push_back({"learning rates", buffer_use::fixed, std::move(rates)});
  return all;
}

optimizer_tensor tensor_at(const optimizer_plan& plan, const call_site& site, std::size_t tensor) {
  const std::size_t base = tensor * optimizer_buffers::of_tensor;
  const auto array = [&](stored_format f, std::size_t which) {
    return stored_at(f, site, base + which);
  };
  using namespace optimizer_buffers;
  const bool scaled = plan.gradient_scale && plan.count > 0;
  return {.weights = array(plan.weights, weights),
          .gradient = {site.views[base + gradient].data, plan.gradient,
                       scaled ? site.pointer<float>(base + gradient + 1) : nullptr},
          .master = array(plan.master, master),
          .low = plan.low == low_part::none ? nullptr : site.views[base + low].data,
          .low_kind = plan.low,
          .states = {array(plan.states[0], states), array(plan.states[1], states + 2)},
          .count = plan.count,
          .first_index = plan.first_index,
          .stream = plan.stream,
          .group = plan.group,
          .block = plan.block};
}

returned_values step_on(const optimizer_case& c, const call_site& site) {
  std::vector<optimizer_tensor> tensors;
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    tensors.push_back(tensor_at(c.tensors[i], site, i));
  }
  site.target.enqueue([&, list = optimizer_list(std::move(tensors), site.target.space())] {
    optimizer_step(list, c.groups, input_of(c, site), site.target.where(c.threads));
  });
  return {};
}

store_case draw_store(const word_source& next) {
  store_case c;
  c.format = one_of({fp32, bf16_nearest, fp16_nearest, bf16_stochastic, fp16_stochastic,
                     fp16_scaled, e4m3_scaled, e5m2_scaled, dynamic8_signed, dynamic8_unsigned},
                    next);
  if (c.format == bf16_nearest) c.low = static_cast<low_part>(below(enum_count<low_part>, next));
  c.values = one_of({format_id::fp32, format_id::bf16, format_id::fp16}, next);
  c.count = below(next() % 8 == 0 ? 3000 : 300, next);
  c.options.block = one_of({128u, 256u}, next);
  c.options.first_index = (next() >> (next() % 60)) / 256 * 256;
  c.options.seed = next();
  c.options.stream = next();
  return c;
}

buffers memory_of_store(const store_case& c) {
  const word_source next = words_from(c.content);
  const optimizer_plan t{.count = c.count, .block = c.options.block};
  buffers all;
  const stored_format values = c.values == format_id::fp32   ? fp32
                               : c.values == format_id::bf16 ? bf16_nearest
                                                             : fp16_nearest;
  add_array(all, "values", values, t, next);
  all.back() = {"loaded", buffer_use::result,
                strided_buffer(format_id::fp32, dense_layout(1, c.count))};
  add_array(all, "array", c.format, t, next);
  add_array(all, "low", c.low == low_part::none ? none : bf16_nearest, t, next);
  return all;
}

returned_values store_on(const store_case& c, const call_site& site) {
  const executor where = site.target.where(c.threads);
  const stored_array array = stored_at(c.format, site, at_stored);
  store_options options = c.options;
  options.low_kind = c.low;
  if (c.low != low_part::none) options.low = site.views[at_low].data;
  site.target.enqueue([&] {
    load(array, site.views[at_loaded], options, where);
    store(site.views[at_values], array, options, where);
  });
  return {};
}

}  // namespace

step_input input_of(const optimizer_case& c, const call_site& site) {
  step_input input{.applied_steps = c.applied_steps, .grad_mul = c.grad_mul, .seed = c.seed};
  const std::size_t last = c.tensors.size() * optimizer_buffers::of_tensor;
  if (c.decision != step_decision::none) input.decision = site.pointer<const step_report>(last);
  if (c.learning_rates) input.learning_rates = site.pointer<const float>(last + 1);
  return input;
}

void describe(optimizer_case& c, case_fields& fields) {
  fields.fewer(c.tensors);
  for (optimizer_plan& t : c.tensors) {
    fields.line();
    fields.show("count", t.count, "group", t.group, "weights", t.weights, "master", t.master, "low",
                t.low, "gradient", t.gradient, "states", t.states);
    const std::int64_t count = t.count;
    for (const std::int64_t fewer : {std::int64_t{1}, count / 2, count - 1}) {
      if (fields.change(fewer >= 0 && fewer < count)) t.count = fewer;
    }
    const optimizer_plan plain;
    fields.reset("first index", t.first_index, plain.first_index, "shift", t.shift, plain.shift,
                 "stream", t.stream, plain.stream, "gradient scale", t.gradient_scale, false,
                 "block", t.block, plain.block);
    optimizer_plan in_fp32 = t;
    in_fp32.weights = in_fp32.gradient = fp32;
    in_fp32.master = none;
    in_fp32.low = low_part::none;
    for (stored_format& f : in_fp32.states) f = f == none ? none : fp32;
    if (fields.change(t != in_fp32)) t = in_fp32;
  }
  for (optimizer_settings& s : c.groups) {
    fields.line();
    fields.show("rule", s.rule, "profile", s.profile, "lr", s.learning_rate, "beta1", s.beta1,
                "beta2", s.beta2, "eps", s.eps, "momentum", s.momentum);
    const optimizer_settings plain;
    fields.reset("decay", s.weight_decay, plain.weight_decay, "dampening", s.dampening,
                 plain.dampening, "nesterov", s.nesterov, plain.nesterov);
  }
  fields.line();
  fields.reset("applied steps", c.applied_steps, 1U, "grad_mul", c.grad_mul, 1.0F, "seed", c.seed,
               0U, "decision", c.decision, step_decision::none, "learning rates", c.learning_rates,
               false);
}

void describe(store_case& c, case_fields& fields) {
  fields.show("count", c.count, "format", c.format, "low", c.low, "block", c.options.block);
  fields.sizes(0, c.count, [&](std::int64_t, std::int64_t count) { c.count = count; });
  fields.reset("values", c.values, format_id::fp32, "first index", c.options.first_index, 0U,
               "seed", c.options.seed, 0U, "stream", c.options.stream, 0U);
}

array_operation optimizer_operation() {
  return make_operation<optimizer_case>("optimizer_step", {draw_step, memory_of_step, step_on},
                                        512);
}

array_operation large_optimizer_steps() {
  const optimizer_plan t{.weights = bf16_nearest,
                         .master = fp32,
                         .gradient = bf16_nearest,
                         .states = {fp32, fp32},
                         .count = 256 * 4096 + 5};
  return listed_operation<optimizer_case>(
      "optimizer_step", {{}, memory_of_step, step_on},
      {{.tensors = {t}, .groups = {{.rule = update_rule::lamb, .weight_decay = 0.1}}}});
}

array_operation store_operation() {
  return make_operation<store_case>("store and load", {draw_store, memory_of_store, store_on}, 512);
}

}  // namespace samebits::support
