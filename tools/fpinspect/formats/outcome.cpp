// Rounding a number to formats: implementation.
#include "fpinspect/formats/outcome.hpp"

#include "samebits/core/rounding.hpp"
#include "samebits/text.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::rounding;

constexpr int random_word_bits = 32;
constexpr std::uint64_t random_words = std::uint64_t{1} << random_word_bits;

void add_result(std::vector<rounded_code>& results, std::size_t first, format_id format,
                const samebits::parse_result& rounded, mode_share mode) {
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
    return samebits::parse(format, text, {.rounding = rounding::stochastic},
                           {static_cast<std::uint32_t>(word), random_word_bits});
  };
  const samebits::parse_result toward_zero = with_word(0);
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
  switch (what) {
    case outcome::exact: return "exact";
    case outcome::rounded: return "rounded";
    case outcome::subnormal: return "subnormal";
    case outcome::underflow: return "underflow";
    case outcome::overflow: return "overflow";
    case outcome::saturated: return "saturated";
  }
  return "?";
}

source_class class_of_code(samebits::format_id format, std::uint64_t code) {
  switch (samebits::classify(format, code)) {
    case samebits::number_class::zero: return source_class::zero;
    case samebits::number_class::infinite: return source_class::infinite;
    case samebits::number_class::nan: return source_class::nan;
    case samebits::number_class::subnormal:
    case samebits::number_class::normal: break;
  }
  return source_class::finite;
}

source_class class_of_text(std::string_view text) {
  // to_odd keeps the class: it rounds only 0 to zero, and no finite value to an infinity.
  const samebits::cast_rule keep{.rounding = samebits::rounding::to_odd};
  constexpr auto fp64 = samebits::format_id::fp64;
  return class_of_code(fp64, samebits::parse(fp64, text, keep).code);
}

outcome outcome_of(source_class source, samebits::format_id format,
                   const samebits::converted& result) {
  const samebits::number_class now = samebits::classify(format, result.code);
  const bool finite = now < samebits::number_class::infinite;
  if (source == source_class::nan) return finite ? outcome::saturated : outcome::exact;
  if (source == source_class::infinite) {
    if (now == samebits::number_class::infinite) return outcome::exact;
    return finite ? outcome::saturated : outcome::overflow;
  }
  if (result.overflow) return finite ? outcome::saturated : outcome::overflow;
  if (source == source_class::finite) {
    if (now == samebits::number_class::zero) return outcome::underflow;
    if (now == samebits::number_class::subnormal) return outcome::subnormal;
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
        add_result(results, first, format, samebits::parse(format, text, {.rounding = mode}),
                   {mode, 1.0});
      }
    }
  }
  return results;
}

}  // namespace fpinspect
