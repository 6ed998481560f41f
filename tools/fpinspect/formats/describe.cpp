// Codes and properties of formats as the subcommands print them: implementation.
#include "fpinspect/formats/describe.hpp"

#include <bitset>

#include "samebits/text.hpp"

namespace fpinspect {
namespace {

/// The last `count` bits.
std::string binary_digits(std::uint64_t bits, int count) {
  return std::bitset<64>(bits).to_string().substr(static_cast<std::size_t>(64 - count));
}

}  // namespace

std::string code_text(format_id format, std::uint64_t code) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "0x";
  for (int bit = spec_of(format).storage_bits - 4; bit >= 0; bit -= 4) {
    text += digits[code >> bit & 15];
  }
  return text;
}

json_object rule_json(const convert_options& rule) {
  json_object members = {
      {"round", name(rule.rounding)}, {"overflow", name(rule.overflow)}, {"nan", name(rule.nan)}};
  if (rule.rounding != rounding::stochastic) return members;
  const random_stream& random = rule.random;
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

code_fields fields_of(format_id format, std::uint64_t code) {
  const format_spec spec = spec_of(format);
  const std::uint64_t compact = code >> spec.padding_bits;
  const int magnitude_bits = spec.exponent_bits + spec.mantissa_bits;
  return {binary_digits(compact >> magnitude_bits, code_bits(format) - magnitude_bits),
          binary_digits(compact >> spec.mantissa_bits, spec.exponent_bits),
          binary_digits(compact, spec.mantissa_bits)};
}

std::optional<int> ulp_log2(format_id format, std::uint64_t code) {
  const auto value = finite_value(format, code);
  if (!value) return std::nullopt;
  const double floor = decode_double(format, min_normal(format));
  return exponent_of(std::max(std::fabs(*value), floor)) - spec_of(format).mantissa_bits;
}

json_object code_json(format_id format, std::uint64_t code) {
  return {{"code", code_text(format, code)},
          {"value", to_shortest(format, code)},
          {"number", finite_value(format, code)}};
}

std::string value_text(format_id format, std::uint64_t code) {
  const cast_rule keep_sign{.nan = nan_policy::preserve_sign};
  return to_shortest(format_id::fp64, convert_code(format, format_id::fp64, code, keep_sign).code);
}

std::string number_line(const std::string& label, format_id format, std::uint64_t code,
                        std::string_view note) {
  return without_end_blanks(cat(label, left(name(format), 6), left(code_text(format, code), 12),
                                left(value_text(format, code), 26), note)) +
         "\n";
}

void count_flags(flag_counts& counts, flags raised) {
  for (std::size_t f = 0; f < counts.size(); ++f)
    if (has(raised, named_flags[f].flag)) ++counts[f];
}

// --- Rounding a number to formats ----------------------------------------------------------------

namespace {

constexpr int random_word_bits = 32;
constexpr std::uint64_t random_words = std::uint64_t{1} << random_word_bits;

void add_result(std::vector<rounded_code>& results, std::size_t first, format_id format,
                const parse_result& rounded, mode_share mode) {
  for (std::size_t i = first; i < results.size(); ++i) {
    if (results[i].code == rounded.code) {
      results[i].modes.push_back(mode);
      return;
    }
  }
  results.push_back({format, rounded.code, rounded.inexact, rounded.overflow, {mode}});
}

void add_stochastic(std::vector<rounded_code>& results, std::size_t first, format_id format,
                    std::string_view text) {
  const auto with_word = [&](std::uint64_t word) {
    return parse(format, text, {.rounding = rounding::stochastic},
                 {static_cast<std::uint32_t>(word), random_word_bits});
  };
  const parse_result toward_zero = with_word(0);
  std::uint64_t low = 0;  // the smallest word that rounds away from zero is in (low, high]
  std::uint64_t high = random_words;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (with_word(middle).code == toward_zero.code ? low : high) = middle;
  }
  const auto share = [](std::uint64_t words) {
    return static_cast<double>(words) / static_cast<double>(random_words);
  };
  add_result(results, first, format, toward_zero, {rounding::stochastic, share(high)});
  if (high == random_words) return;
  add_result(results, first, format, with_word(high),
             {rounding::stochastic, share(random_words - high)});
}

}  // namespace

std::string_view name(outcome what) {
  constexpr std::string_view names[] = {"exact",     "rounded",  "subnormal",
                                        "underflow", "overflow", "saturated"};
  return names[static_cast<std::size_t>(what)];
}

number_class class_of_text(std::string_view text) {
  // to_odd keeps the class: it rounds only 0 to zero, and no finite value to an infinity.
  const cast_rule keep{.rounding = rounding::to_odd};
  return classify(format_id::fp64, parse(format_id::fp64, text, keep).code);
}

outcome outcome_of(number_class source, format_id format, const converted& result) {
  const number_class now = classify(format, result.code);
  const bool finite = now < number_class::infinite;
  if (source == number_class::nan) return finite ? outcome::saturated : outcome::exact;
  if (source == number_class::infinite) {
    if (now == number_class::infinite) return outcome::exact;
    return finite ? outcome::saturated : outcome::overflow;
  }
  if (result.overflow) return finite ? outcome::saturated : outcome::overflow;
  if (source != number_class::zero) {
    if (now == number_class::zero) return outcome::underflow;
    if (now == number_class::subnormal) return outcome::subnormal;
  }
  return result.inexact ? outcome::rounded : outcome::exact;
}

std::vector<rounded_code> round_by_all(std::string_view text, std::span<const format_id> formats,
                                       std::span<const rounding> modes) {
  std::vector<rounded_code> results;
  for (const format_id format : formats) {
    const std::size_t first = results.size();
    for (const rounding mode : modes) {
      if (mode == rounding::stochastic) {
        add_stochastic(results, first, format, text);
      } else {
        add_result(results, first, format, parse(format, text, {.rounding = mode}), {mode, 1.0});
      }
    }
  }
  return results;
}

}  // namespace fpinspect
