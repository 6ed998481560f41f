// Collects what the verdict needs of tensors: implementation.
#include "fpinspect/verdict/collect.hpp"

#include "fpinspect/output/progress.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "samebits/convert.hpp"

namespace fpinspect {
namespace {

judged state_of(const shown_tensor& tensor) {
  constexpr int narrow = 8;
  if (!tensor.info.unread.empty()) return judged::not_read;
  if (!tensor.has_numbers() || tensor.info.count == 0) return judged::not_numbers;
  if (tensor.how.integer_values) return judged::integers;
  const bool is_narrow = spec_of(tensor.how.format).storage_bits <= narrow;
  return is_narrow ? judged::narrow_already : judged::yes;
}

tensor_evidence evidence_of(const shown_tensor& tensor, const std::string& name,
                            std::span<const role_rule> rules) {
  tensor_evidence result;
  const std::string plain = tensor.plain_name();
  result.name = name;
  result.what = role_of(plain, rules);
  result.state = state_of(tensor);
  result.info = tensor.info;
  result.is_unquantized = result.what == role::weights && is_of_unquantized_layer(plain);
  result.of_weight = is_weight_shaped(plain, result.what);
  if (tensor.has_numbers()) result.bits = spec_of(tensor.how.format).storage_bits;
  return result;
}

choice_effect effect_of(choice c, const cast_statistics& stats) {
  const format_id format = spec_of(c).format;
  const auto found = std::ranges::find(stats.casts, format, &cast_effect::format);
  return {c,
          stats.nonzero(),
          found->underflow,
          found->overflow,
          found->saturated_signal,
          found->saturated_noise};
}

/// The elements of optimizer state that become 0 in a format and are below 2^-24 of the tensor's
/// RMS, by their power of two: sums in binary32 with elements of the RMS's size drop them anyway.
std::uint64_t negligible_underflow(const tensor_evidence& tensor, const choice_effect& effect) {
  if (tensor.what != role::adam_m && tensor.what != role::adam_v) return 0;
  if (!(effect.signal > 0) || !std::isfinite(effect.signal)) return 0;
  constexpr int binary32_digits = 24;
  const double rms = std::sqrt(effect.signal / static_cast<double>(tensor.info.count));
  const binades& all = tensor.stats.binades;
  const auto end = all.lower_bound(std::ilogb(rms) - binary32_digits);
  return underflow_at(binades(all.begin(), end), 0, spec_of(effect.what).format);
}

/// The elements as a matrix that quantize() takes: fp64 is first rounded to fp32.
source_matrix quantizable_matrix(const shown_tensor& tensor, bool of_weight,
                                 const executor& where) {
  source_matrix in = matrix_of(tensor, judged_matrix_of(tensor.info, of_weight));
  if (is_quantizable(tensor.how.format)) return in;
  owned_matrix narrow(format_id::fp32, {in.view.rows, in.view.cols});
  const matrix_view view = narrow.view();
  samebits::convert(in.view, view, {}, where);
  return {std::move(narrow.bytes), view};
}

choice_effect recipe_effect(choice c, std::uint64_t nonzero, const const_matrix_view& in,
                            const executor& where) {
  const choice_spec& spec = spec_of(c);
  const recipe_preset* preset = find_recipe(spec.recipe);
  const quantize_statistics s = statistics_by(*preset, spec.format, in, where);
  const std::uint64_t scale_bits = scale_bits_of(preset->rules, {in.rows, in.cols});
  return {c, nonzero, s.underflowed, 0, s.signal, s.noise, scale_bits};
}

/// The choices that are tried on a tensor.
std::vector<choice> tried_choices(const tensor_evidence& tensor) {
  std::vector<choice> tried;
  for (const choice c : choices_for(tensor.what)) {
    if (!stays_as_stored(tensor, c)) tried.push_back(c);
  }
  return tried;
}

/// The number of passes over a tensor's elements: one for all formats, one for each recipe, and one
/// for gradients at the loss scale of all of them.
std::uint64_t passes_over(const tensor_evidence& tensor) {
  if (tensor.state != judged::yes) return 1;
  const std::vector<choice> tried = tried_choices(tensor);
  const auto passes = std::ranges::count_if(
      tried, [](choice c) { return is_recipe(c) || c == choice::fp16_scaled; });
  return 1 + static_cast<std::uint64_t>(passes);
}

void add_effects(tensor_evidence& to, const shown_tensor& tensor, const executor& where,
                 progress& line) {
  source_matrix in;
  if (to.takes_fp8()) in = quantizable_matrix(tensor, to.of_weight, where);
  for (const choice c : tried_choices(to)) {
    if (c == choice::fp16_scaled) continue;
    to.effects.push_back(is_recipe(c) ? recipe_effect(c, to.stats.nonzero(), in.view, where)
                                      : effect_of(c, to.stats));
    choice_effect& effect = to.effects.back();
    effect.negligible = negligible_underflow(to, effect);
    if (!is_recipe(c)) continue;
    line.add(tensor.info.bytes);
    if (tensor.how.format == format_id::fp64) {  // the way by fp32 counts too
      const choice_effect first = effect_of(choice::fp32, to.stats);
      effect.underflow += first.underflow;
      effect.overflow += first.overflow;
      effect.noise += first.noise;
    }
  }
}

choice_effect fp16_scaled_effect(const shown_tensor& tensor, int log2, const executor& where) {
  const statistics_request request = {.casts = {format_id::fp16}, .scale_log2 = log2};
  return effect_of(choice::fp16_scaled, statistics_of(tensor, request, where));
}

/// What fp16 does to the gradients at the loss scale of all of them.
void add_scaled_effects(std::span<tensor_evidence> all, std::span<const shown_tensor> tensors,
                        int scale_log2, const executor& where, progress& line) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensor_evidence& to = all[i];
    const bool concerned = to.what == role::gradients && to.state == judged::yes;
    if (!concerned || stays_as_stored(to, choice::fp16_scaled)) continue;
    to.effects.push_back(fp16_scaled_effect(tensors[i], scale_log2, where));
    line.add(tensors[i].info.bytes);
  }
}

/// Finds the loss scales at which fp16 meets the need in each gradient. Reads elements only for
/// scales at which their counts by binade cannot tell the SQNR.
void add_enough_scales(std::span<tensor_evidence> all, std::span<const shown_tensor> tensors,
                       const need& wanted, const executor& where) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensor_evidence& to = all[i];
    const binades& magnitudes = to.stats.binades;
    if (to.what != role::gradients || to.state != judged::yes || magnitudes.empty()) continue;
    const auto is_enough = [&](int log2) {
      const std::uint64_t lost = underflow_at(magnitudes, log2, format_id::fp16);
      if (!wanted.allows(lost, to.stats.nonzero())) return false;
      if (sqnr_bound_at(magnitudes, log2) >= wanted.db) return true;
      return fp16_scaled_effect(tensors[i], log2, where).meets(wanted);
    };
    const auto best = best_scale_log2(*to.stats.amax, format_id::fp16);
    int low = best.value_or(smallest_scale_log2) + 1;
    while (low > smallest_scale_log2 && is_enough(low - 1)) --low;
    to.enough_log2 = low;
  }
}

/// The formats that are measured in a tensor: those that the verdict tries on it, and those that the
/// user wants to see.
std::vector<format_id> measured_formats(const tensor_evidence& tensor, const element_reading& how,
                                        std::span<const format_id> wanted) {
  std::vector<format_id> tried;
  if (tensor.state == judged::yes) {
    for (const choice c : tried_choices(tensor)) {
      if (!is_recipe(c) && c != choice::fp16_scaled) tried.push_back(spec_of(c).format);
    }
    // Recipes take fp64 by way of fp32.
    if (how.format == format_id::fp64) tried.push_back(format_id::fp32);
  }
  std::vector<format_id> formats;
  for (const auto& some : {std::span<const format_id>(tried), wanted}) {
    for (const format_id format : some) add_once(formats, format);
  }
  return formats;
}

}  // namespace

std::vector<tensor_evidence> collect(std::span<const shown_tensor> tensors,
                                     std::span<const std::string> names,
                                     std::span<const role_rule> rules,
                                     std::span<const format_id> formats, const need& wanted,
                                     const executor& where) {
  std::vector<tensor_evidence> all;
  constexpr std::uint64_t most_columns = 1 << 20;  // 4 MiB of maxima for each thread
  std::uint64_t bytes = 0;
  std::uint64_t work = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    all.push_back(evidence_of(tensors[i], names[i], rules));
    bytes += tensors[i].info.bytes;
    work += tensors[i].info.bytes * passes_over(all.back());
  }
  progress line(bytes, work);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const shown_tensor& tensor = tensors[i];
    tensor_evidence& to = all[i];
    const std::uint64_t passes = passes_over(to);
    if (tensor.has_numbers()) {
      to.stats = statistics_of(tensor,
                               {.casts = measured_formats(to, tensor.how, formats),
                                .binades = true,
                                .column_amax = has_columns(tensor.info, most_columns)},
                               where);
      to.outlier = outlier_among(to.stats.column_amax);
      if (to.state == judged::yes && to.has_nonfinite()) to.state = judged::not_finite;
    }
    line.add(tensor.info.bytes * (1 + passes - passes_over(to)));
    if (to.state == judged::yes) add_effects(to, tensor, where, line);
  }
  add_enough_scales(all, tensors, wanted, where);
  if (const auto scale = loss_scale_of(all, wanted)) {
    add_scaled_effects(all, tensors, scale->best.log2, where, line);
  }
  return all;
}

}  // namespace fpinspect
