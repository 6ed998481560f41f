// The JSON of `tensor` for one tensor: implementation.
#include "fpinspect/tensors/tensor_json.hpp"

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

/// Writes the value and its code in the elements' format, which holds it exactly. Integers have no
/// code.
void magnitude(json_writer& json, const std::string& name, const element_reading& how,
               const std::optional<double>& value) {
  json.member(name, value);
  std::optional<std::string> code;
  if (value && !how.integer_values) {
    code = code_text(how.format, samebits::convert_code(format_id::fp64, how.format,
                                                        std::bit_cast<std::uint64_t>(*value))
                                     .code);
  }
  json.member(name + "_code", code);
}

void effect_members(json_writer& json, const samebits::cast_effect& effect,
                    const samebits::cast_statistics& stats) {
  const sqnr ratio = sqnr_of(effect, stats);
  json.member("underflow", effect.underflow);
  json.member("subnormal", effect.subnormal);
  json.member("overflow", effect.overflow);
  json.member("to_inf", effect.to_inf);
  json.member("to_nan", effect.to_nan);
  json.member("to_max", effect.to_max);
  json.member("changed", effect.changed);
  json.member("sqnr_db", ratio.db);
  json.member("sqnr_note", ratio.note());
  json.member("signal", effect.signal);
  json.member("noise", effect.noise);
  json.member("saturated_sqnr_db", sqnr_db(effect.saturated_signal, effect.saturated_noise));
  json.member("saturated_signal", effect.saturated_signal);
  json.member("saturated_noise", effect.saturated_noise);
}

void write_format_statistics(json_writer& json, const element_reading& how,
                             const samebits::cast_statistics& stats,
                             std::span<const format_id> formats) {
  json.member("zeros", stats.zeros);
  json.member("nan", stats.nan);
  json.member("inf", stats.inf);
  magnitude(json, "amax", how, stats.amax);
  magnitude(json, "min_nonzero", how, stats.min_nonzero);
  json.key("formats");
  json.begin_object();
  for (const format_id format : formats) {
    const samebits::cast_effect& effect = effect_of(stats, format);
    json.key(samebits::name(effect.format));
    json.begin_object(json_writer::layout::one_line);
    effect_members(json, effect, stats);
    json.end_object();
  }
  json.end_object();
  const double amax = stats.amax.value_or(0);
  json.member("fp16_loss_scale_log2", best_scale_log2(amax, format_id::fp16));
  json.key("loss_scales");
  json.begin_object();
  for (const format_id format : formats) {
    if (amax == 0) continue;
    const auto scale = best_scale_log2(amax, format);
    json.key(samebits::name(format));
    if (!scale) {
      json.value(std::nullopt);
      continue;
    }
    json.begin_object(json_writer::layout::one_line);
    json.member("log2", *scale);
    json.member("underflow", underflow_at(stats.binades, *scale, format));
    json.end_object();
  }
  json.end_object();
  json.key("exponents");
  json.begin_object(json_writer::layout::one_line);
  for (const auto& [exponent, counts] : stats.binades) {
    json.member(std::to_string(exponent), counts.all);
  }
  json.end_object();
}

void write_no_statistics(json_writer& json, const std::string& note) {
  for (const char* name : {"zeros", "nan", "inf", "amax", "min_nonzero"}) {
    json.member(name, std::nullopt);
  }
  json.key("formats");
  json.begin_object();
  json.end_object();
  json.member("fp16_loss_scale_log2", std::nullopt);
  json.member("note", note);
}

}  // namespace

void write_tensor_json(json_writer& json, const shown_tensor& tensor,
                       const samebits::cast_statistics& stats, std::span<const format_id> formats) {
  const tensor_info& info = tensor.info;
  json.begin_object();
  json.member("name", info.name);
  json.member("dtype", info.unread.empty() ? std::optional(samebits::tensor_file::name(info.type))
                                           : std::nullopt);
  json.member("from", tensor.how ? std::optional(type_text(info, *tensor.how)) : std::nullopt);
  json.member("shape", std::span<const std::uint64_t>(info.shape));
  json.member("count", info.count);
  if (tensor.how) {
    write_format_statistics(json, *tensor.how, stats, formats);
  } else {
    write_no_statistics(json, tensor.note);
  }
  json.end_object();
}

}  // namespace fpinspect
