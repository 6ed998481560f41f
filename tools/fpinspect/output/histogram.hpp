// The exponents of a tensor as a column chart, with the ranges of formats below it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "fpinspect/output/terminal.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

/// Lines of at most the terminal's width, each with a line end; nothing for no counts. One column
/// per binade, or per 2, 4, 8, ... binades where there are too many for the width.
///
/// counts  elements by floor(log2(|x|))
std::string histogram(const std::map<int, std::uint64_t>& counts,
                      std::span<const samebits::format_id> formats, const terminal& term);

/// What the marks below the chart mean: one line with its end.
std::string histogram_legend(const terminal& term);

}  // namespace fpinspect
