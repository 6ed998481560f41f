// The outcome of rounding a value to a format, in one word.
#pragma once

#include <cstdint>
#include <string_view>

#include "samebits/core/format.hpp"
#include "samebits/scalar.hpp"

namespace fpinspect {

enum class outcome : std::uint8_t { exact, rounded, subnormal, underflow, overflow, saturated };

std::string_view name(outcome what);

/// The class of the value before rounding.
enum class source_class : std::uint8_t { zero, finite, infinite, nan };

source_class class_of_code(samebits::format_id format, std::uint64_t code);
/// For text that samebits::parse() accepts.
source_class class_of_text(std::string_view text);

/// The first of these outcomes that applies:
///   overflow   beyond max, became Inf or NaN
///   saturated  beyond max, became max
///   underflow  non-zero, became zero
///   subnormal  non-zero, became subnormal, exactly or not
///   rounded    changed
///   exact      unchanged
/// Inf or NaN counts as beyond max if the format lacks it.
outcome outcome_of(source_class source, samebits::format_id format,
                   const samebits::converted& result);

}  // namespace fpinspect
