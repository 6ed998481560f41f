// Functions of the C interface on single codes: properties, conversion, neighbours, text.
#include "samebits/scalar.hpp"

#include <cstdint>
#include <string>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "samebits/arithmetic.hpp"
#include "samebits/c/scalar.h"
#include "samebits/error.hpp"
#include "samebits/text.hpp"

namespace api = samebits::c_api;
using samebits::format_id;

namespace {

format_id format_of(int32_t format, const char* which = "format") {
  return api::enumerator<format_id>(format, which);
}

double epsilon_of(format_id f) {
  const std::uint64_t one =
      samebits::convert_code(format_id::fp32, f, 0x3F800000, samebits::cast_rule{}).code;
  return samebits::decode_double(f, samebits::next_up(f, one)) - 1.0;
}

samebits_format_info info_of(format_id f) {
  const samebits::format_spec s = samebits::spec_of(f);
  const int sign = s.special == samebits::specials::scale ? 0 : 1;
  return {.name = s.name,
          .bits = sign + s.exponent_bits + s.mantissa_bits,
          .storage_bits = s.storage_bits,
          .padding_bits = s.padding_bits,
          .exponent_bits = s.exponent_bits,
          .mantissa_bits = s.mantissa_bits,
          .bias = s.bias,
          .specials = static_cast<int32_t>(s.special),
          .has_arithmetic = samebits::has_arithmetic(f) ? 1 : 0,
          .max_finite = samebits::max_finite(f),
          .min_normal = samebits::min_normal(f),
          .min_positive = samebits::min_positive(f),
          .canonical_nan = samebits::canonical_nan(f),
          .max_value = samebits::decode_double(f, samebits::max_finite(f)),
          .min_normal_value = samebits::decode_double(f, samebits::min_normal(f)),
          .min_positive_value = samebits::decode_double(f, samebits::min_positive(f)),
          .epsilon = epsilon_of(f)};
}

std::string text_of(format_id f, uint64_t code, int32_t style) {
  api::check_enumerator(SAMEBITS_ENUM_TEXT_STYLE, style, "style");
  if (style == SAMEBITS_TEXT_STYLE_EXACT_DECIMAL) return samebits::to_exact_decimal(f, code);
  if (style == SAMEBITS_TEXT_STYLE_HEX_FLOAT) return samebits::to_hex_float(f, code);
  return samebits::to_shortest(f, code);
}

}  // namespace

samebits_status samebits_get_format_info(int32_t format, samebits_format_info* info) {
  return api::guarded([&] { api::required(info, "info") = info_of(format_of(format)); });
}

samebits_status samebits_convert_code(int32_t from, int32_t to, uint64_t code,
                                      const samebits_cast_rule* rule, samebits_converted* result) {
  return api::guarded([&] {
    const api::value_rule r = api::rule(rule);
    const samebits::converted c = samebits::convert_code(
        format_of(from, "from"), format_of(to, "to"), code, r.rule, r.random);
    api::required(result, "result") = {
        .code = c.code, .inexact = c.inexact ? 1 : 0, .overflow = c.overflow ? 1 : 0};
  });
}

samebits_status samebits_code_value(int32_t format, uint64_t code, double* value) {
  return api::guarded(
      [&] { api::required(value, "value") = samebits::decode_double(format_of(format), code); });
}

samebits_status samebits_get_code_info(int32_t format, uint64_t code, samebits_code_info* info) {
  return api::guarded([&] {
    const format_id f = format_of(format);
    api::required(info, "info") = {
        .number_class = static_cast<int32_t>(samebits::classify(f, code)),
        .negative = samebits::is_negative(f, code) ? 1 : 0,
        .next_up = samebits::next_up(f, code),
        .next_down = samebits::next_down(f, code)};
  });
}

samebits_status samebits_random_word(uint64_t seed, uint64_t stream, uint64_t index, int32_t bits,
                                     uint32_t* value) {
  return api::guarded([&] {
    if (bits < 1 || bits > 32) {
      throw samebits::invalid_argument("bits: must be in 1..32, got " + std::to_string(bits));
    }
    api::required(value, "value") = samebits::random_word(seed, stream, index, bits);
  });
}

samebits_status samebits_format_code(int32_t format, uint64_t code, int32_t style, char* buffer,
                                     size_t size, size_t* length) {
  return api::guarded(
      [&] { api::write_text(text_of(format_of(format), code, style), buffer, size, length); });
}

samebits_status samebits_parse_code(int32_t format, const char* text,
                                    const samebits_cast_rule* rule, samebits_parsed* result) {
  return api::guarded([&] {
    const api::value_rule r = api::rule(rule);
    const samebits::parse_result p =
        samebits::parse(format_of(format), &api::required(text, "text"), r.rule, r.random);
    api::required(result, "result") = {.code = p.code,
                                       .error_offset = p.error_offset,
                                       .ok = p.ok ? 1 : 0,
                                       .inexact = p.inexact ? 1 : 0,
                                       .overflow = p.overflow ? 1 : 0,
                                       .reserved = 0};
  });
}
