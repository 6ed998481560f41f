// `fpinspect tensor --quick`: counts, extremes, mean and root mean square of each tensor, in one
// pass over the file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fpinspect/output/output.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/verdict/gate/gate.hpp"
#include "samebits/backend.hpp"

namespace fpinspect {

/// Writes a line for each tensor, or JSON.
/// @param names  of the tensors in text
/// @param conditions  on `nan` and `inf`
void write_quick_statistics(std::span<const shown_tensor> tensors,
                            std::span<const std::string> names, const std::string& heading,
                            gate& conditions, const samebits::executor& where, const terminal& term,
                            output& out);
void write_quick_statistics_json(std::span<const shown_tensor> tensors,
                                 std::span<const std::string> names, gate& conditions,
                                 const samebits::executor& where, output& out);

/// The conditions of --fail-if that --quick knows.
/// @throws usage_error  for any other condition
std::vector<condition> quick_conditions(const std::vector<std::string>& texts);

}  // namespace fpinspect
