// Rounding a number to formats: the outcome in one word, and all codes that it becomes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
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

/// A rounding mode, and the share of its random words that give a code: 1 unless the mode is
/// stochastic.
struct mode_share {
  samebits::rounding mode;
  double share;
};

/// A code of a format, and the rounding modes that round the number to this code.
struct rounded_code {
  samebits::format_id format;
  std::uint64_t code;
  bool inexact;
  bool overflow;
  std::vector<mode_share> modes;
};

/// Returns the different codes that a number becomes, format by format. The shares of stochastic
/// rounding are exact: bisection finds the smallest of the 2^32 random words that rounds away from
/// zero.
/// @param text  a number that samebits::parse() accepts
std::vector<rounded_code> round_by_all(std::string_view text,
                                       std::span<const samebits::format_id> formats,
                                       std::span<const samebits::rounding> modes);

}  // namespace fpinspect
