// The loss scale of each step of a training run, read from CSV.
#pragma once

#include <string>
#include <vector>

#include "fpinspect/scaler/scaler_plot.hpp"

namespace fpinspect {

/// Reads CSV with a header that has the columns step, scale and applied, as `fpinspect scaler`
/// writes it, in any order. Other columns are ignored. "-" is standard input.
/// @returns the steps in the order of the file, at least one; each scale is finite and >= 0; `cause`
///   is not read
/// @throws file_error  for any other text; the message names the line
std::vector<scaler_row> read_scale_trace(const std::string& path);

}  // namespace fpinspect
