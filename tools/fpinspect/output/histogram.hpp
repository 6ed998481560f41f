// The exponents of a tensor as a column chart, with the ranges of formats below it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "fpinspect/output/terminal.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

/// The chart as text. Each line is at most as wide as the terminal and ends with a newline. Empty
/// if there are no counts. A column is one binade, or 2, 4, 8, ... binades if the chart would be
/// too wide.
///
/// @param counts  number of elements by floor(log2(|x|))
std::string histogram(const std::map<int, std::uint64_t>& counts,
                      std::span<const samebits::format_id> formats, const terminal& term);

/// The legend of the marks below the chart: one line with a newline.
std::string histogram_legend(const terminal& term);

}  // namespace fpinspect
