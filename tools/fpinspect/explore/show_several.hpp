// One number rounded into several formats by several rounding modes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fpinspect/cli/options.hpp"
#include "fpinspect/output/output.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace fpinspect {

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

/// Whether `show` was called with several formats or with rounding modes.
bool shows_several(const show_arguments& arguments);
/// Runs `show` with several formats or with rounding modes.
void run_show_several(const show_arguments& arguments, output& out);

}  // namespace fpinspect
