// What rounding into a format did to a value, in one word.
#pragma once

#include <cstdint>
#include <string_view>

#include "samebits/core/format.hpp"
#include "samebits/scalar.hpp"

namespace fpinspect {

enum class outcome : std::uint8_t { exact, rounded, subnormal, underflow, overflow, saturated };

std::string_view name(outcome what);

/// What the value was before.
enum class source_class : std::uint8_t { zero, finite, infinite, nan };

source_class class_of_code(samebits::format_id format, std::uint64_t code);
/// For text that samebits::parse() takes.
source_class class_of_text(std::string_view text);

/// The first of these that holds:
///   overflow   beyond max, now Inf or NaN
///   saturated  beyond max, now max
///   underflow  not zero, now zero
///   subnormal  not zero, now subnormal, exactly or not
///   rounded    changed
///   exact      as it was
/// An Inf or a NaN that the format has not got is beyond max.
outcome outcome_of(source_class source, samebits::format_id format,
                   const samebits::converted& result);

}  // namespace fpinspect
