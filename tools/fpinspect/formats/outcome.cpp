// The outcome of rounding a value to a format: implementation.
#include "fpinspect/formats/outcome.hpp"

#include "samebits/core/rounding.hpp"
#include "samebits/text.hpp"

namespace fpinspect {

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

}  // namespace fpinspect
