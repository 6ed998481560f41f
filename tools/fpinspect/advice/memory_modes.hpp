// Memory of optimizer_step()'s arrays: every way to keep weights, states and gradients.
#pragma once

#include <optional>

#include "fpinspect/cli/options.hpp"
#include "fpinspect/output/output.hpp"
#include "fpinspect/output/terminal.hpp"

namespace fpinspect {

/// Writes one row for each combination that `arguments` name.
///
/// @param parameters  number of weights, all of one tensor; nothing: only bytes a parameter
/// @throws usage_error  if an argument is invalid
void write_memory_modes(const memory_arguments& arguments, const std::optional<double>& parameters,
                        const terminal& term, output& out);

}  // namespace fpinspect
