// The JSON of `tensor` for one tensor: implementation.
#include "fpinspect/tensors/tensor_views.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "fpinspect/formats/describe.hpp"
#include "fpinspect/quantize/sqnr.hpp"
#include "samebits/scalar.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::tensor_file::tensor_info;

const samebits::cast_effect& effect_of(const samebits::cast_statistics& stats, format_id format) {
  return *std::find_if(
      stats.casts.begin(), stats.casts.end(),
      [&](const samebits::cast_effect& effect) { return effect.format == format; });
}

/// The code of a value in the elements' format, which holds it exactly. Integers have no code.
json_value code_json(const element_reading& how, const std::optional<double>& value) {
  if (!value || how.integer_values) return std::nullopt;
  const auto bits = std::bit_cast<std::uint64_t>(*value);
  return code_text(how.format, samebits::convert_code(format_id::fp64, how.format, bits).code);
}

json_value effect_json(const samebits::cast_effect& effect,
                       const samebits::cast_statistics& stats) {
  const sqnr ratio = sqnr_of(effect, stats);
  return json_line({{"underflow", effect.underflow},
                    {"subnormal", effect.subnormal},
                    {"overflow", effect.overflow},
                    {"to_inf", effect.to_inf},
                    {"to_nan", effect.to_nan},
                    {"to_max", effect.to_max},
                    {"changed", effect.changed},
                    {"sqnr_db", ratio.db},
                    {"sqnr_note", ratio.note()},
                    {"signal", effect.signal},
                    {"noise", effect.noise},
                    {"saturated_sqnr_db", sqnr_db(effect.saturated_signal, effect.saturated_noise)},
                    {"saturated_signal", effect.saturated_signal},
                    {"saturated_noise", effect.saturated_noise}});
}

json_value loss_scale_json(const samebits::cast_statistics& stats, format_id format) {
  const auto scale = best_scale_log2(*stats.amax, format);
  if (!scale) return std::nullopt;
  return json_line({{"log2", *scale}, {"underflow", underflow_at(stats.binades, *scale, format)}});
}

json_object statistics_json(const element_reading& how, const samebits::cast_statistics& stats,
                            std::span<const format_id> formats) {
  json_object effects;
  json_object loss_scales;
  json_object exponents;
  for (const format_id format : formats) {
    effects.add(samebits::name(format), effect_json(effect_of(stats, format), stats));
    if (stats.amax.value_or(0) == 0) continue;
    loss_scales.add(samebits::name(format), loss_scale_json(stats, format));
  }
  for (const auto& [exponent, counts] : stats.binades) {
    exponents.add(std::to_string(exponent), counts.all);
  }
  return {{"zeros", stats.zeros},
          {"nan", stats.nan},
          {"inf", stats.inf},
          {"amax", stats.amax},
          {"amax_code", code_json(how, stats.amax)},
          {"min_nonzero", stats.min_nonzero},
          {"min_nonzero_code", code_json(how, stats.min_nonzero)},
          {"formats", effects},
          {"fp16_loss_scale_log2", best_scale_log2(stats.amax.value_or(0), format_id::fp16)},
          {"loss_scales", loss_scales},
          {"exponents", exponents.on_one_line()}};
}

json_object no_statistics_json(const std::string& note) {
  return {{"zeros", std::nullopt},
          {"nan", std::nullopt},
          {"inf", std::nullopt},
          {"amax", std::nullopt},
          {"min_nonzero", std::nullopt},
          {"formats", json_object()},
          {"fp16_loss_scale_log2", std::nullopt},
          {"note", note}};
}

json_value from_json(const shown_tensor& tensor) {
  return tensor.has_numbers() ? std::optional(type_text(tensor.info, tensor.how)) : std::nullopt;
}

}  // namespace

json_object tensor_json(const shown_tensor& tensor) {
  return {{"name", tensor.info.name},
          {"from", from_json(tensor)},
          {"shape", tensor.info.shape},
          {"count", tensor.info.count}};
}

json_object details_json(const shown_tensor& tensor, const samebits::cast_statistics& stats,
                         std::span<const format_id> formats) {
  const tensor_info& info = tensor.info;
  json_object members = {
      {"name", info.name},
      {"dtype",
       info.unread.empty() ? std::optional(samebits::tensor_file::name(info.type)) : std::nullopt},
      {"from", from_json(tensor)},
      {"shape", info.shape},
      {"count", info.count}};
  return members.add(tensor.has_numbers() ? statistics_json(tensor.how, stats, formats)
                                          : no_statistics_json(tensor.note));
}

}  // namespace fpinspect
