// Codes and properties of formats as the subcommands print them: implementation.
#include "fpinspect/formats/describe.hpp"

#include <cmath>

#include "fpinspect/cli/text/text.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"

namespace fpinspect {
namespace {

std::string binary_digits(std::uint64_t bits, int count) {
  std::string text;
  for (int i = count - 1; i >= 0; --i) text += ((bits >> i) & 1) != 0 ? '1' : '0';
  return text;
}

}  // namespace

std::string code_text(samebits::format_id format, std::uint64_t code) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "0x";
  for (int bit = samebits::spec_of(format).storage_bits - 4; bit >= 0; bit -= 4) {
    text += digits[code >> bit & 15];
  }
  return text;
}

std::uint64_t significant_bits(samebits::format_id format, std::uint64_t code) {
  const samebits::format_spec spec = samebits::spec_of(format);
  const int padding = spec.padding_bits;
  const int bits = padding == 0 ? packed_bits(format) : spec.storage_bits - padding;
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - bits);
  return code & (all << padding);
}

std::string rule_text(const samebits::convert_options& rule) {
  return cat(samebits::name(rule.rounding), ", ", samebits::name(rule.overflow), ", ",
             samebits::name(rule.nan));
}

json_object rule_json(const samebits::convert_options& rule) {
  json_object members = {{"round", samebits::name(rule.rounding)},
                         {"overflow", samebits::name(rule.overflow)},
                         {"nan", samebits::name(rule.nan)}};
  if (rule.rounding != samebits::rounding::stochastic) return members;
  const samebits::random_stream& random = rule.random;
  return members.add({{"seed", random.seed},
                      {"stream", random.stream},
                      {"offset", random.offset},
                      {"random_bits", random.bits}});
}

std::string code_fields::separated() const {
  std::string text = sign;
  for (const std::string& field : {exponent, mantissa}) {
    if (field.empty()) continue;
    if (!text.empty()) text += '|';
    text += field;
  }
  return text;
}

code_fields fields_of(samebits::format_id format, std::uint64_t code) {
  const samebits::format_spec spec = samebits::spec_of(format);
  const std::uint64_t compact = code >> spec.padding_bits;
  const int sign_bits = spec.special == samebits::specials::scale ? 0 : 1;
  return {binary_digits(compact >> (spec.exponent_bits + spec.mantissa_bits), sign_bits),
          binary_digits(compact >> spec.mantissa_bits, spec.exponent_bits),
          binary_digits(compact, spec.mantissa_bits)};
}

std::optional<double> finite_value(samebits::format_id format, std::uint64_t code) {
  if (!samebits::is_finite(format, code)) return std::nullopt;
  return samebits::decode_double(format, code);
}

std::string value_text(samebits::format_id format, std::uint64_t code) {
  using samebits::format_id;
  const samebits::cast_rule keep_sign{.nan = samebits::nan_policy::preserve_sign};
  return samebits::to_shortest(
      format_id::fp64, samebits::convert_code(format, format_id::fp64, code, keep_sign).code);
}

std::string number_line(const std::string& label, samebits::format_id format, std::uint64_t code,
                        std::string_view note) {
  return without_end_blanks(cat(label, left(samebits::name(format), 6),
                                left(code_text(format, code), 12),
                                left(value_text(format, code), 26), note)) +
         "\n";
}

int exponent_of(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);  // |x| = m * 2^exponent, m in [1/2, 1)
  return exponent - 1;
}

std::string power_text(int exponent) { return cat("2^", exponent); }

int packed_bits(samebits::format_id format) {
  const samebits::format_spec spec = samebits::spec_of(format);
  if (spec.storage_bits > 8) return spec.storage_bits;
  const int sign_bits = spec.special == samebits::specials::scale ? 0 : 1;
  return sign_bits + spec.exponent_bits + spec.mantissa_bits;
}

}  // namespace fpinspect
