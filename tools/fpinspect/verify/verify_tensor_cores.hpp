// The part of `fpinspect verify` that compares a GPU's tensor cores with their model.
#pragma once

#include "fpinspect/cli/command.hpp"

namespace fpinspect {

/// Declares the options of --tensor-cores. The function returned writes the report and returns the
/// number of results that differ.
std::function<std::uint64_t(const session&)> add_tensor_core_check(option_list& list);

/// "WHAT: 12 results compared, 1 differs", painted. `noun` is what differs, if that is not results.
std::string verify_summary(std::string_view what, std::uint64_t compared, std::uint64_t differed,
                           const terminal& term, std::string_view noun = "");

}  // namespace fpinspect
